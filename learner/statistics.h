/*  statistics - what a learner counts while it trains: episodes, the discounted returns that scale rewards, normalisers.
 *
 *  statistics.c alone writes them, object and all; everyone else reads. Episodes are counted when a batch is assembled
 *  (the stop rules look at them), returns and normalisers when its update ends. Open from WELCOME on.
 *  Threads: the learner's. */
#pragma once
#include "common/rl/episodes.h"
#include "common/rl/norm.h"
#include "learner/batch.h"
#include "learner/model.h"
#include "learner/publish.h"

typedef struct {
    uint32_t envs, scaled; /* floats of an observation that its normaliser knows */
    tt_episodes_t *episodes;
    double *before;  /* block of the episodes before the batch that was counted last */
    uint64_t broken; /* trajectories that did not go on from the batch before        */
    tt_returns_t *returns;
    tt_norm_t *obs_norm, *reward_norm; /* scratch: whoever needs them loads them from a version first */
} statistics_t;

void statistics_open(statistics_t *self, const model_t *model);
void statistics_close(statistics_t *self);
/*  A new era. `broken` goes on: it tells of the process. */
void statistics_reset(statistics_t *self);
/*  Of a snapshot: the block of episodes, and [envs] accumulators. TT_DATA: not such a block. */
tt_status_t statistics_restore(statistics_t *self, const double *episodes, const double *returns);

/*  Count the episodes of a batch that was assembled. Returns how many envs do not go on from where they were: two
 *  episodes must not become one. */
uint32_t statistics_count(statistics_t *self, const batch_t *from, const tt_batch_t *batch);
/*  As if that had not been. TT_DATA: never, once one was counted. */
tt_status_t statistics_uncount(statistics_t *self);

/*  Both normalisers: as of a version; joined with a batch; into a version. TT_DATA: no such blocks. */
tt_status_t statistics_load(statistics_t *self, version_t *version);
void statistics_learn(statistics_t *self, const tt_train_cfg_t *train, const batch_t *from, const tt_batch_t *batch);
void statistics_save(const statistics_t *self, version_t *version);
