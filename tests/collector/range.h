/*  range - a range of envs for a test: a vec with the columns that it needs.
 *
 *  Threads: one. */
#pragma once
#include "collector/vec.h"
#include "tests/test.h"

typedef struct {
    const tt_env_ops_t *ops;
    tt_columns_t *columns;
    tt_vec_t *vec;
    uint32_t count;
} range_t;

/*  The columns are there even when the vec could not be made. */
static inline tt_status_t range_try(range_t *self, const tt_env_ops_t *ops, const tt_env_arg_t *args, tt_vec_cfg_t cfg)
{
    *self = (range_t){.ops = ops, .count = cfg.count};
    assert_ok(tt_space_check(&ops->obs, "obs", false));
    assert_ok(tt_space_check(&ops->action, "action", true));
    assert_ok(tt_columns_new(&self->columns, &ops->obs, &ops->action, ops->mask, true));
    cfg.ops = ops;
    cfg.args = args;
    cfg.columns = self->columns;
    return tt_vec_new(&self->vec, &cfg);
}

/*  Envs lo .. lo + count - 1, at their beginnings. */
static inline range_t range_open(const tt_env_ops_t *ops, uint64_t seed, uint32_t lo, uint32_t count)
{
    range_t self;
    assert_ok(range_try(&self, ops, NULL, (tt_vec_cfg_t){.seed = seed, .lo = lo, .count = count}));
    return self;
}

static inline void range_close(range_t *self)
{
    tt_vec_destroy(&self->vec);
    tt_columns_destroy(&self->columns);
}

/*  The first leaf of the observations, float32. */
static inline const float *range_obs(const range_t *self)
{
    return tt_vec_obs(self->vec)[0];
}

/*  One action column. */
static inline tt_status_t range_step(
    const range_t *self, const void *action, float *reward, uint8_t *terminated, uint8_t *truncated)
{
    return tt_vec_step(self->vec, &action, reward, terminated, truncated);
}

/*  RANGE name = range_open(...): closed at the end of the block. */
#define RANGE __attribute__((cleanup(range_close))) range_t
