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

/*  Each has somebody, and together they have all. */
static bool s_shares_are_sound(const tt_vec_t *self)
{
    const uint32_t *end = self->rows.share_end, shares = self->rows.shares;
    if (shares == 0)
        return true;
    bool sound = self->batch->send_share && end && shares <= self->count && end[0] > 0;
    for (uint32_t k = 1; sound && k < shares; k++)
        sound = end[k] > end[k - 1];
    return sound && end[shares - 1] == self->count;
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
    if (self->rows.loads_later && !self->batch->loaded)
        return tt_err(TT_INTERNAL, "env %s: open set rows.loads_later, and its table has no loaded", self->ops->id);
    if (!s_shares_are_sound(self))
        return tt_err(TT_INTERNAL,
            "env %s: open set rows.shares to %u, of %u slots: each must end, by rows.share_end, behind the one before "
            "it, "
            "the last one with the slots, and the table have send_share",
            self->ops->id, self->rows.shares, self->count);
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

static tt_status_t s_go(tt_vec_t *self, const vec_share_t *share)
{
    tt_env_why_t why = {0};
    s_enter(self, share->steps ? "step" : "reset", false);
    const bool sent = self->shares > 1 ? self->batch->send_share(self->handle, (uint32_t)(share - self->share), &why)
                                       : self->batch->send(self->handle, &why);
    s_leave(self);
    return sent ? TT_OK : s_failed(self, &why);
}

/*  For who looks what it hangs in. */
static bool s_any_steps(const tt_vec_t *self)
{
    for (uint32_t k = 0; k < self->shares; k++)
        if (self->share[k].left && self->share[k].steps)
            return true;
    return false;
}

/*  Rows that have come; a batch that names others than it was sent would lead us anywhere. */
static tt_status_t s_come(tt_vec_t *self, uint32_t *first, uint32_t *count)
{
    tt_env_why_t why = {0};
    s_enter(self, !self->batch->outside && s_any_steps(self) ? "step" : "reset", false);
    const bool came = self->batch->recv(self->handle, first, count, &why);
    s_leave(self);
    if (!came)
        return s_failed(self, &why);
    if (*count < 1 || *count > self->count || *first > self->count - *count)
        return tt_err(
            TT_INTERNAL, "env %s: recv named %u rows from %u on, of %u", self->ops->id, *count, *first, self->count);
    const vec_share_t *share = vec_share_of(self, *first);
    if (share->left == 0 || *count > share->first + share->count - *first)
        return tt_err(TT_INTERNAL, "env %s: recv named %u rows from %u on, which are not all under way", self->ops->id,
            *count, *first);
    return TT_OK;
}

/*  These of `ending`, which are of one share; the others of it rest. */
static tt_status_t s_begin_some(tt_vec_t *self, const uint32_t *ending, uint32_t count)
{
    vec_share_t *share = vec_share_of(self, ending[0]);
    memset(self->rows.todo + share->first, TT_ENV_REST, share->count);
    for (uint32_t k = 0; k < count; k++) {
        self->rows.todo[ending[k]] = TT_ENV_BEGIN;
        s_seed(self, ending[k], self->episode[ending[k]]);
    }
    share->steps = false;
    share->left = share->count;
    return s_go(self, share);
}

/*  They are in order, so those of a share stand together. */
static tt_status_t s_begin(tt_vec_t *self)
{
    for (uint32_t k = 0, end; k < self->endings; k = end) {
        for (end = k + 1; end < self->endings; end++)
            if (vec_share_of(self, self->ending[end]) != vec_share_of(self, self->ending[k]))
                break;
        TT_TRY(s_begin_some(self, self->ending + k, end - k));
    }
    return TT_OK;
}

static tt_status_t s_send(tt_vec_t *self, vec_share_t *share)
{
    const tt_columns_t *columns = self->columns;
    memset(self->rows.todo + share->first, TT_ENV_STEP, share->count);
    for (uint32_t i = share->first; self->rows.begun && i < share->first + share->count; i++)
        s_seed(self, i, self->episode[i] + 1);
    for (uint32_t k = 0; k < columns->action_count; k++) {
        const size_t bytes = self->action_leaf[k].bytes, at = share->first * bytes;
        if (self->given[k] != self->rows.action[k])
            memcpy((char *)self->rows.action[k] + at, (const char *)self->given[k] + at, share->count * bytes);
    }
    return s_go(self, share);
}

static tt_status_t s_recv(tt_vec_t *self, uint32_t *first, uint32_t *count)
{
    const tt_env_rows_t *rows = &self->rows;
    TT_TRY(s_come(self, first, count));
    const vec_share_t *share = vec_share_of(self, *first);
    if (!share->steps)
        return TT_OK;
    memcpy(share->out.reward + *first, rows->reward + *first, *count * sizeof(float));
    memcpy(share->out.terminated + *first, rows->terminated + *first, *count);
    memcpy(share->out.truncated + *first, rows->truncated + *first, *count);
    for (uint32_t i = *first; rows->begun && i < *first + *count; i++)
        if (rows->begun[i] && !(rows->terminated[i] | rows->truncated[i]))
            return tt_err(TT_INTERNAL, "env %s: env %u has begun another episode, but says not that one has ended",
                self->ops->id, self->lo + i);
    return TT_OK;
}

static bool s_ready(const tt_vec_t *self)
{
    return self->shares > 1 && self->batch->ready && self->batch->ready(self->handle);
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

static tt_status_t s_loaded(tt_vec_t *self, bool *all, uint64_t *moves)
{
    tt_env_why_t why = {0};
    *all = true;
    *moves = 0;
    if (!self->rows.loads_later)
        return TT_OK;
    s_enter(self, "load", true);
    const bool well = self->batch->loaded(self->handle, all, moves, &why);
    s_leave(self);
    return well ? TT_OK : s_failed(self, &why);
}

const vec_mover_t vec_batch = {s_open, s_close, s_begin, s_send, s_recv, s_ready, s_save, s_load, s_loaded};
