/*  trial - can the state of an environment be saved, and how? One worker plays and saves, a second one loads and plays the same
 *  (python/tutti_env/trial.py).
 *
 *  Threads: pure but for the processes. */
#pragma once
#include <jansson.h>
#include "collector/gym/gym.h"

/*  "copy BYTES", "replay BYTES", or "no", and then why stands in the log: of the env that `asked` describes. It waits: for as long as TT_ENV_START_S at most for
 *  each of up to four workers. */
void gym_trial(
    char out[TT_ENV_SAVES_MAX], const char *id, const char *python, const char *package, const json_t *asked);

/*  Such a text as a worker is told it: {"kind": "copy", "room": BYTES}, and "", 0 where it says no. */
json_t *gym_saves(const char *text);
