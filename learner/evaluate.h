/*  evaluate - versions that are due for evaluation (eval.every), and a thread that plays them beside the training.
 *
 *  Version v is due when env steps v * batch pass a multiple of eval.every, so which versions are played, and what comes out, is a
 *  function of the config and the version alone. Every learner keeps the newest two that are due, until it knows how they did; the
 *  leader plays, the oldest first, and goes on training with one outstanding, not with two. So whoever leads next has
 *  all that its predecessor owed. What comes out twice has the same bits; the coordinator counts it once.
 *
 *  Threads: one plays, with a low priority, and sees nothing but its game; all calls are the learner's thread's. */
#pragma once
#include "common/config/train.h"
#include "common/rl/columns.h"
#include "common/snapshot/snapshot.h"
#include "learner/publish.h"

/*  Everything a game needs. All borrowed. */
typedef struct {
    const tt_train_cfg_t *train;
    const tt_columns_t *columns;
    const float *params;                      /* flat, as tt_net_put takes them                           */
    const double *norm;                       /* block of the observations' normaliser                    */
    bool (*watch)(void *ctx, uint32_t ended); /* after every step: episodes that have ended; false = stop */
    void *watch_ctx;
} evaluate_game_t;

typedef struct {
    double mean, std, min, max, length; /* of the returns; of the lengths: their mean. std: population */
    uint32_t cut;                       /* episodes that a limit of steps ended                        */
} evaluate_result_t;

/*  Play eval.episodes of them. Roles do not know of one another: whoever starts a learner hands in who can play. TT_STOPPED: `watch`
 *  said so; others: the env or the policy failed. */
typedef tt_status_t (*evaluate_play_fn)(const evaluate_game_t *game, evaluate_result_t *out);

typedef struct {
    evaluate_play_fn play;
    const tt_train_cfg_t *train; /* copied, as far as it is needed */
    size_t params, norm;         /* numbers of a version           */
} evaluate_cfg_t;

typedef struct evaluate evaluate_t; /* opaque */

/*  TT_CONFIG: the spaces are none. Caller owns *self_p. */
tt_status_t evaluate_new(evaluate_t **self_p, const evaluate_cfg_t *cfg);
/*  A game in hand is stopped. One that hangs in its environment is left behind, with all that it uses, after two seconds. */
void evaluate_destroy(evaluate_t **self_p);

/*  An eventfd, readable when a game is over; for the caller to read away. */
int evaluate_fd(const evaluate_t *self);

/*  Forget all versions (a new era); a game in hand does not count. */
void evaluate_reset(evaluate_t *self);
/*  A version was made: kept when it is due, by reference. */
void evaluate_keep(evaluate_t *self, version_t *version);
/*  What is outstanding, into a snapshot (borrowed until the next call) and from there. */
void evaluate_capture(const evaluate_t *self, tt_snapshot_t *out);
void evaluate_restore(evaluate_t *self, const tt_snapshot_t *from);

/*  Versions that are due and not played yet, the one in play included. */
uint32_t evaluate_outstanding(const evaluate_t *self);
/*  Begin with the oldest of them, unless one is in play. TT_OS: there is no thread for it. */
tt_status_t evaluate_begin(evaluate_t *self);
/*  A game that is over: TT_OK, with its version, borrowed until evaluate_done; TT_AGAIN: none. Others: it failed, in these words. */
tt_status_t evaluate_take(evaluate_t *self, tt_snapshot_version_t *version, evaluate_result_t *out);
/*  That result was told: the version is outstanding no more. */
void evaluate_done(evaluate_t *self);

/*  Has the game moved since the last call? */
bool evaluate_moved(evaluate_t *self);
/*  "version 40 (3 of 10 episodes have ended)". Returns out. */
const char *evaluate_doing(const evaluate_t *self, char *out, size_t size);
