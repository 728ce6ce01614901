/*  trial - what is an environment, and can its state be saved, and how? One worker makes it and says what it is (the probe), then it plays and
 *  saves; a second one loads and plays the same (python/tutti_env/trial.py). Both import at the same time.
 *
 *  Threads: one; the workers die with it. */
#pragma once
#include <jansson.h>
#include "collector/gym/worker.h"

enum { GYM_TRIAL_PAIR = 2 };

typedef struct {
    const char *id, *python, *package; /* borrowed */
    const json_t *asked;               /* borrowed */
    gym_worker_t worker[GYM_TRIAL_PAIR];
    uint32_t started;
} gym_trial_t;

typedef struct {
    char saves[TT_ENV_SAVES_MAX]; /* "copy BYTES", "replay BYTES", or "no"              */
    char why[1024];               /* "no", and that for good: in words; else ""         */
    bool failed;                  /* its code or its worker failed: another time, maybe */
} gym_verdict_t;

/*  Start and ask: *about is what it says of itself (new; the caller's to release). `both`: its state will be tried. TT_NOT_FOUND, TT_INVALID, TT_INTERNAL,
 *  TT_UNAVAILABLE as gym_find; to be closed also then. */
tt_status_t gym_trial_open(gym_trial_t *self, bool both, json_t **about);
/*  Of the env that `asked` describes. It waits: for as long as TT_ENV_START_S at most for each part of it. The "sources" of about, which is what it
 *  says of itself, become those of the verdict, too: an env imports more when it is played. */
void gym_trial_run(gym_trial_t *self, json_t *about, gym_verdict_t *out);
void gym_trial_close(gym_trial_t *self);

/*  Such a text as a worker is told it: {"kind": "copy", "room": BYTES}, and "", 0 where it says no. */
json_t *gym_saves(const char *text);
