/*  pair - a replay and the naive one, of one world, that go on together.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include <stdlib.h>
#include "tests/replay/naive.h"
#include "tests/test.h"

typedef struct {
    world_t *world; /* owned, as all of it */
    replay_t *replay;
    naive_t *naive;
    uint64_t lived, cut, over, on, tips; /* of sequences: what there was to be seen */
} pair_t;

static inline void pair_open(pair_t *pair, world_t *world, const replay_cfg_t *cfg)
{
    *pair = (pair_t){.world = world, .naive = naive_new(world, cfg)};
    assert_ok(replay_new(&pair->replay, cfg));
}

static inline void pair_close(pair_t *pair)
{
    replay_destroy(&pair->replay);
    free(pair->naive);
    world_destroy(&pair->world);
}

/*  A batch more. */
static inline void pair_play(pair_t *pair)
{
    world_play(pair->world);
    assert_ok(world_insert(pair->world, pair->replay));
    naive_insert(pair->naive);
}
