/*  The batch table (env_batch.h): the slots are the envs of the range, in order; the arrays are the env's. */
#include <stdlib.h>
#include <string.h>
#include "collector/guard.h"
#include "collector/vec_self.h"
#include "common/base/mem.h"

/*  A batch that plays elsewhere has nothing here that could crash, and deadlines of its own. */
static void s_enter(const tt_vec_t *self, const char *what, bool within)
{
    if (self->batch->outside)
        return;
    if (within)
        guard_enter_within(self->ops->id, what);
    else
        guard_enter(self->ops->id, what);
}

static void s_leave(const tt_vec_t *self)
{
    if (!self->batch->outside)
        guard_leave();
}

static tt_status_t s_failed(const tt_vec_t *self, const tt_env_why_t *why)
{
    char text[sizeof why->text];
    vec_one_line(text, sizeof text, why->text);
    return tt_err(why->lost ? TT_UNAVAILABLE : TT_INTERNAL, "env %s: %s", self->ops->id, text);
}

/*  The env must have lent what its own table asks for. */
static bool s_rows_are_whole(const tt_vec_t *self)
{
    const tt_env_rows_t *rows = &self->rows;
    const tt_columns_t *columns = self->columns;
    bool whole = rows->todo && rows->seed && rows->action && rows->obs && rows->reward && rows->terminated &&
                 rows->truncated && (columns->mask < 0 || rows->mask) && (!rows->begun || rows->final) &&
                 (!rows->begun || columns->mask < 0 || rows->final_mask);
    for (uint32_t k = 0; whole && k < columns->obs_count; k++)
        whole = rows->obs[k] && (!rows->begun || rows->final[k]);
    for (uint32_t k = 0; whole && k < columns->action_count; k++)
        whole = rows->action[k] != NULL;
    return whole;
}

static bool s_halves_are_sound(const tt_vec_t *self)
{
    return self->rows.half == 0 || (self->rows.half < self->count && self->batch->send_half);
}

static tt_status_t s_open(tt_vec_t *self, const tt_env_arg_t *args, const tt_vec_t *from)
{
    const tt_env_open_t how = {.ops = self->batch,
        .args = args,
        .count = self->count,
        .first = self->lo,
        .from = from && from->batch == self->batch ? from->handle : NULL};
    tt_env_why_t why = {0};
    self->seeded = tt_array0(self->count, sizeof *self->seeded);
    s_enter(self, "open", true);
    const bool opened = self->batch->open(&self->handle, &how, &self->rows, &why);
    s_leave(self);
    if (!opened) {
        self->handle = NULL;
        self->rows = (tt_env_rows_t){0};
        return s_failed(self, &why);
    }
    self->lent = true;
    if (!s_rows_are_whole(self))
        return tt_err(
            TT_INTERNAL, "env %s: open left an array of its rows NULL that its table asks for", self->ops->id);
    if (!s_halves_are_sound(self))
        return tt_err(TT_INTERNAL,
            "env %s: open set rows.half to %u, of %u slots: it must be less, and the table have send_half",
            self->ops->id, self->rows.half, self->count);
    return TT_OK;
}

static void s_close(tt_vec_t *self)
{
    free(self->seeded);
    if (!self->lent)
        return;
    s_enter(self, "close", true);
    self->batch->close(self->handle);
    s_leave(self);
}

/* ---- moving ------------------------------------------------------------------------------------------------------ */

/*  32 bits for (seed, env, episode), drawn once an episode. */
static void s_seed(tt_vec_t *self, uint32_t i, uint64_t episode)
{
    uint32_t words[4];
    if (self->seeded[i] == episode + 1)
        return;
    tt_draw(words, self->seed, TT_STREAM_RESET, self->lo + i, episode << 32);
    self->rows.seed[i] = words[0];
    self->seeded[i] = episode + 1;
}

static tt_status_t s_go(tt_vec_t *self, const vec_half_t *half)
{
    tt_env_why_t why = {0};
    s_enter(self, half->steps ? "step" : "reset", false);
    const bool sent = self->halves == 2 ? self->batch->send_half(self->handle, (uint32_t)(half - self->half), &why)
                                        : self->batch->send(self->handle, &why);
    s_leave(self);
    return sent ? TT_OK : s_failed(self, &why);
}

static bool s_steps(const tt_vec_t *self, uint32_t half)
{
    return self->half[half].left && self->half[half].steps;
}

/*  Rows that have come; a batch that names others than it was sent would lead us anywhere. */
static tt_status_t s_come(tt_vec_t *self, uint32_t *first, uint32_t *count)
{
    tt_env_why_t why = {0};
    s_enter(self, s_steps(self, 0) || s_steps(self, 1) ? "step" : "reset", false);
    const bool came = self->batch->recv(self->handle, first, count, &why);
    s_leave(self);
    if (!came)
        return s_failed(self, &why);
    if (*count < 1 || *count > self->count || *first > self->count - *count)
        return tt_err(
            TT_INTERNAL, "env %s: recv named %u rows from %u on, of %u", self->ops->id, *count, *first, self->count);
    const vec_half_t *half = vec_half_of(self, *first);
    if (half->left == 0 || *count > half->first + half->count - *first)
        return tt_err(TT_INTERNAL, "env %s: recv named %u rows from %u on, which are not all under way", self->ops->id,
            *count, *first);
    return TT_OK;
}

/*  Those of one half that are in `ending`; the others of it rest. */
static tt_status_t s_begin_half(tt_vec_t *self, vec_half_t *half)
{
    bool any = false;
    for (uint32_t k = 0; k < self->endings; k++)
        any = any || vec_half_of(self, self->ending[k]) == half;
    if (!any)
        return TT_OK;
    memset(self->rows.todo + half->first, TT_ENV_REST, half->count);
    for (uint32_t k = 0; k < self->endings; k++) {
        const uint32_t i = self->ending[k];
        if (vec_half_of(self, i) != half)
            continue;
        self->rows.todo[i] = TT_ENV_BEGIN;
        s_seed(self, i, self->episode[i]);
    }
    half->steps = false;
    half->left = half->count;
    return s_go(self, half);
}

static tt_status_t s_begin(tt_vec_t *self)
{
    for (uint32_t h = 0; h < self->halves; h++)
        TT_TRY(s_begin_half(self, &self->half[h]));
    return TT_OK;
}

static tt_status_t s_send(tt_vec_t *self, vec_half_t *half)
{
    const tt_columns_t *columns = self->columns;
    memset(self->rows.todo + half->first, TT_ENV_STEP, half->count);
    for (uint32_t i = half->first; self->rows.begun && i < half->first + half->count; i++)
        s_seed(self, i, self->episode[i] + 1);
    for (uint32_t k = 0; k < columns->action_count; k++) {
        const size_t bytes = self->action_leaf[k].bytes, at = half->first * bytes;
        if (self->given[k] != self->rows.action[k])
            memcpy((char *)self->rows.action[k] + at, (const char *)self->given[k] + at, half->count * bytes);
    }
    return s_go(self, half);
}

static tt_status_t s_recv(tt_vec_t *self, uint32_t *first, uint32_t *count)
{
    const tt_env_rows_t *rows = &self->rows;
    TT_TRY(s_come(self, first, count));
    const vec_half_t *half = vec_half_of(self, *first);
    if (!half->steps)
        return TT_OK;
    memcpy(half->out.reward + *first, rows->reward + *first, *count * sizeof(float));
    memcpy(half->out.terminated + *first, rows->terminated + *first, *count);
    memcpy(half->out.truncated + *first, rows->truncated + *first, *count);
    for (uint32_t i = *first; rows->begun && i < *first + *count; i++)
        if (rows->begun[i] && !(rows->terminated[i] | rows->truncated[i]))
            return tt_err(TT_INTERNAL, "env %s: env %u has begun another episode, but says not that one has ended",
                self->ops->id, self->lo + i);
    return TT_OK;
}

/* ---- states ------------------------------------------------------------------------------------------------------ */

static tt_status_t s_save(const tt_vec_t *self, uint32_t i, void *bytes)
{
    tt_env_why_t why = {0};
    s_enter(self, "save", false);
    const bool saved = self->batch->save(self->handle, i, bytes, &why);
    s_leave(self);
    return saved ? TT_OK : s_failed(self, &why);
}

static tt_status_t s_load(tt_vec_t *self, uint32_t i, const void *bytes)
{
    tt_env_why_t why = {0};
    s_enter(self, "load", true);
    const bool loaded = self->batch->load(self->handle, i, bytes, &why);
    s_leave(self);
    if (loaded || why.lost)
        return loaded ? TT_OK : s_failed(self, &why);
    vec_one_line(why.text, sizeof why.text, why.text);
    return tt_err(TT_DATA, "env %s: load refused a saved state: %s", self->ops->id, why.text);
}

const vec_mover_t vec_batch = {s_open, s_close, s_begin, s_send, s_recv, s_save, s_load};
