/*  episodes - returns and lengths of the episodes that training sees: per-env accumulators and the last 100 ended.
 *
 *  Order:   (step, env id), so the mean of the last 100 is the same whoever collected what.
 *  Layout:  the flat block for snapshots, in doubles: episodes, steps, return[envs], length[envs], ring of 100 returns,
 *           ring of 100 lengths (entry k holds the last episode whose number is k modulo 100). A length below 0: the
 *           episode's beginning was not seen, it is that many steps old and will not count.
 *  Threads: one. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "common/base/status.h"

enum {
    TT_EPISODES_LAST = 100 /* what "solved" and stop.return_mean look at */
};

typedef struct tt_episodes tt_episodes_t; /* opaque */

/*  An episode ended: step and env of the batch being fed. */
typedef void (*tt_episode_fn)(void *ctx, uint32_t t, uint32_t env, double ret, double length);

tt_episodes_t *tt_episodes_new(uint32_t envs);
void tt_episodes_destroy(tt_episodes_t **self_p);

/*  Before a batch: age[envs], the steps that each env's episode has behind it. Where that is not what was seen of it, the
 *  env does not go on from where the batch before left it (it moved and could not be saved, or was reset): what was seen
 *  of the old episode is no return, and is forgotten. Returns for how many envs. */
uint32_t tt_episodes_join(tt_episodes_t *self, const uint32_t *age);
/*  [envs] 1 for each of those, until the next join. */
const uint8_t *tt_episodes_broken(const tt_episodes_t *self);
/*  A whole batch, [T][envs], raw rewards. `ended` may be NULL. */
void tt_episodes_feed(tt_episodes_t *self, uint32_t T, const float *reward, const uint8_t *terminated,
    const uint8_t *truncated, tt_episode_fn ended, void *ctx);

/*  How many ended so far; means over the last 100 of them (over all while there are fewer; NAN before the first). */
uint64_t tt_episodes_count(const tt_episodes_t *self);
double tt_episodes_return_mean(const tt_episodes_t *self);
double tt_episodes_length_mean(const tt_episodes_t *self);

size_t tt_episodes_block_count(uint32_t envs);
void tt_episodes_save(const tt_episodes_t *self, double *block);
/*  TT_DATA: not such a block. */
tt_status_t tt_episodes_load(tt_episodes_t *self, const double *block, size_t count);
