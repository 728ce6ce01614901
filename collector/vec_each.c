/*  The ordinary table: a state an env, moved one after the other or by step_many, in this thread. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "collector/guard.h"
#include "collector/vec_self.h"
#include "common/base/mem.h"

static tt_status_t s_init(tt_vec_t *self, uint32_t i, const tt_env_arg_t *args)
{
    char text[256];
    guard_enter_within(self->ops->id, "init");
    const char *reason = self->ops->init(vec_state(self, i), args);
    if (reason)
        vec_one_line(text, sizeof text, reason);
    guard_leave();
    return reason ? tt_err(TT_INTERNAL, "env %s: init of env %u failed: %s", self->ops->id, self->lo + i, text) : TT_OK;
}

static tt_status_t s_open(tt_vec_t *self, const tt_env_arg_t *args, const tt_vec_t *from)
{
    (void)from;                                         /* its envs are made anew in no time */
    self->stride = tt_align(self->ops->state_size, 16); /* = state_size when there is step_many */
    self->states = tt_aligned0(tt_mul(self->count, self->stride));
    for (; self->ops->init && self->ready < self->count; self->ready++)
        TT_TRY(s_init(self, self->ready, args));
    return TT_OK;
}

static void s_close(tt_vec_t *self)
{
    for (uint32_t i = 0; self->ops->fini && i < self->ready; i++) {
        guard_enter_within(self->ops->id, "fini");
        self->ops->fini(vec_state(self, i));
        guard_leave();
    }
    free(self->states);
}

/* ---- moving ------------------------------------------------------------------------------------------------------ */

static void s_reset(tt_vec_t *self, uint32_t i)
{
    tt_env_rng_t rng = vec_rng(self, i, TT_STREAM_RESET, self->episode[i] << 32);
    void *row[TT_COLUMNS_MAX];
    tt_env_out_t out = {.obs = row, .mask = vec_mask(self, i)};
    for (uint32_t k = 0; k < self->columns->obs_count; k++)
        row[k] = (char *)self->raw[k] + i * self->obs_leaf[k].bytes;
    if (out.mask)
        memset(out.mask, 1, self->columns->mask_bits);
    guard_enter(self->ops->id, "reset");
    self->ops->reset(vec_state(self, i), &rng, &out);
    guard_leave();
}

static tt_status_t s_begin(tt_vec_t *self)
{
    for (uint32_t k = 0; k < self->endings; k++)
        s_reset(self, self->ending[k]);
    return TT_OK;
}

/*  The next env's rows. */
static void s_next_rows(const tt_vec_t *self, void **row, const void **action)
{
    for (uint32_t k = 0; k < self->columns->obs_count; k++)
        row[k] = (char *)row[k] + self->obs_leaf[k].bytes;
    for (uint32_t k = 0; k < self->columns->action_count; k++)
        action[k] = (const char *)action[k] + self->action_leaf[k].bytes;
}

static void s_move_each(tt_vec_t *self, const vec_share_t *share)
{
    const tt_env_ops_t *ops = self->ops;
    void *row[TT_COLUMNS_MAX];
    const void *action[TT_COLUMNS_MAX];
    memcpy(row, self->raw, self->columns->obs_count * sizeof *row);
    memcpy(action, self->given, self->columns->action_count * sizeof *action);
    for (uint32_t i = 0; i < self->count; i++) {
        tt_env_rng_t rng = vec_rng(self, i, TT_STREAM_ENV, self->clock[i] << 8);
        /* an env that forgets to write the reward is found out */
        tt_env_out_t out = {.obs = row, .mask = vec_mask(self, i), .reward = NAN};
        ops->step(vec_state(self, i), action, &rng, &out);
        share->out.reward[i] = (float)out.reward;
        share->out.terminated[i] = out.terminated;
        share->out.truncated[i] = out.truncated;
        s_next_rows(self, row, action);
    }
}

/*  There is one share, of all. */
static tt_status_t s_send(tt_vec_t *self, vec_share_t *share)
{
    const tt_env_many_t out = {self->raw, self->mask, share->out.reward, share->out.terminated, share->out.truncated};
    if (self->mask)
        memset(self->mask, 1, (size_t)self->count * self->columns->mask_bits);
    memset(out.terminated, 0, self->count);
    memset(out.truncated, 0, self->count);
    guard_enter(self->ops->id, "step");
    if (self->ops->step_many)
        self->ops->step_many(self->states, self->count, self->given, &out);
    else
        s_move_each(self, share);
    guard_leave();
    return TT_OK;
}

/*  All of them have moved. */
static tt_status_t s_recv(tt_vec_t *self, uint32_t *first, uint32_t *count)
{
    *first = 0;
    *count = self->count;
    return TT_OK;
}

static bool s_ready(const tt_vec_t *self)
{
    (void)self;
    return true;
}

/* ---- states ------------------------------------------------------------------------------------------------------ */

static tt_status_t s_save(const tt_vec_t *self, uint32_t i, void *bytes)
{
    const tt_env_ops_t *ops = self->ops;
    if (!ops->save) {
        memcpy(bytes, vec_state(self, i), ops->state_size);
        return TT_OK;
    }
    guard_enter(ops->id, "save");
    ops->save(vec_state(self, i), bytes);
    guard_leave();
    return TT_OK;
}

static tt_status_t s_load(tt_vec_t *self, uint32_t i, const void *bytes)
{
    const tt_env_ops_t *ops = self->ops;
    if (!ops->load) {
        memcpy(vec_state(self, i), bytes, ops->state_size);
        return TT_OK;
    }
    guard_enter_within(ops->id, "load");
    const int rc = ops->load(vec_state(self, i), bytes);
    guard_leave();
    return rc ? tt_err(TT_DATA, "env %s: load refused a saved state: it returned %d", ops->id, rc) : TT_OK;
}

/*  By load itself. */
static tt_status_t s_loaded(tt_vec_t *self, bool *all, uint64_t *moves)
{
    (void)self;
    *all = true;
    *moves = 0;
    return TT_OK;
}

const vec_mover_t vec_each = {s_open, s_close, s_begin, s_send, s_recv, s_ready, s_save, s_load, s_loaded};
