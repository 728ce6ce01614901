#include "learner/batch.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/rl/rows.h"

/*  One truncation, before they are put in order. */
typedef struct {
    uint32_t row;
    const intake_segment_t *segment;
    uint32_t number; /* of the segment's finals */
} final_t;

struct batch {
    batch_cfg_t cfg;
    tt_rows_t rows;                  /* [T*N] of the steps, [N] after the last, then [before][N] before the first */
    tt_rows_t final_rows;            /* [finals]                                    */
    const void **list;               /* stacks: [T*N + N][frames] of these; else NULL */
    const void **final_list;         /* [finals][frames]                            */
    uint8_t *column[TT_COLUMNS_MAX]; /* gathered, [T][N]; NULL: of an observation   */
    float *last_value;               /* [N] gathered; NULL: rows have no values     */
    uint32_t *age;                   /* [N]                                         */
    const void **carry;              /* [N] in the segments; NULL: nothing is carried */
    uint8_t *begins;                 /* [T][N]; NULL alike                          */
    float *scaled_reward;
    const float *raw_reward; /* of the batch in hand */
    final_t *final;
    uint32_t finals, final_room;
    uint32_t *final_row;
    float *final_value;
    uint64_t oldest;
};

batch_t *batch_new(const batch_cfg_t *cfg)
{
    batch_t *self = tt_new0(sizeof *self);
    const tt_columns_t *columns = cfg->columns;
    const size_t N = cfg->N, count = tt_mul(cfg->T, N);
    self->cfg = *cfg;
    tt_rows_init(&self->rows, columns, cfg->scale_obs, cfg->clip_obs);
    tt_rows_init(&self->final_rows, columns, cfg->scale_obs, cfg->clip_obs);
    tt_rows_need(&self->rows, count + N + columns->before * N);
    if (columns->before)
        self->list = tt_array0(tt_mul(count + N, columns->stack.frames), sizeof *self->list);
    for (uint32_t c = columns->obs_count; c < columns->count; c++)
        self->column[c] = tt_aligned0(tt_mul(count, columns->at[c].bytes));
    if (columns->value >= 0)
        self->last_value = tt_aligned0(tt_mul(N, sizeof(float)));
    self->age = tt_array0(N, sizeof *self->age);
    if (columns->carry) {
        self->carry = tt_array0(N, sizeof *self->carry);
        self->begins = tt_aligned0(count);
    }
    if (cfg->scale_reward)
        self->scaled_reward = tt_aligned0(tt_mul(count, sizeof(float)));
    return self;
}

void batch_destroy(batch_t **self_p)
{
    batch_t *self = *self_p;
    if (!self)
        return;
    tt_rows_free(&self->rows);
    tt_rows_free(&self->final_rows);
    for (uint32_t c = 0; c < TT_COLUMNS_MAX; c++)
        free(self->column[c]);
    void *owned[] = {self->last_value, self->age, self->carry, self->begins, self->scaled_reward, self->final,
        self->final_row, self->final_value, self->list, self->final_list};
    for (size_t i = 0; i < TT_COUNT(owned); i++)
        free(owned[i]);
    free(self);
    *self_p = NULL;
}

/* ---- stacks ------------------------------------------------------------------------------------------------------- */

/*  The frame of an env k before that of step t, as it is read: all of the steps', then those before the first. */
static const void *s_frame(const batch_t *self, uint32_t t, uint32_t env, uint32_t k)
{
    const size_t N = self->cfg.N, before = self->cfg.columns->before;
    const size_t at = k <= t ? t - k : (size_t)self->cfg.T + 1 + before + t - k;
    return self->rows.at[at * N + env];
}

/*  What the observation of step t shows (T: after the last); `own` NULL: its frame is that of the step, else a final behind it. */
static void s_stack(
    const batch_t *self, const intake_segment_t *from, uint32_t t, uint32_t env, const void *own, const void **list)
{
    const tt_stack_t *stack = &self->cfg.columns->stack;
    const uint32_t most = stack->frames - 1, first = own != NULL;
    const uint32_t there = first + tt_segment_back(&from->shape, &from->at, t, env - from->env_lo);
    const uint32_t back = there < most ? there : most;
    list[most] = own;
    for (uint32_t k = first; k <= back; k++)
        list[most - k] = s_frame(self, t, env, k - first);
    tt_stack_pad(stack, list, back, self->cfg.columns->zero);
}

/*  Of envs lo .. hi-1, all owned by `segment`. */
static void s_stack_run(batch_t *self, const intake_segment_t *segment, uint32_t lo, uint32_t hi)
{
    const size_t N = self->cfg.N, frames = self->cfg.columns->stack.frames;
    for (uint32_t t = 0; t <= self->cfg.T; t++)
        for (uint32_t env = lo; env < hi; env++)
            s_stack(self, segment, t, env, NULL, self->list + (t * N + env) * frames);
}

static void s_stack_finals(batch_t *self)
{
    const uint32_t N = self->cfg.N, frames = self->cfg.columns->stack.frames;
    for (uint32_t k = 0; self->list && k < self->finals; k++) {
        const final_t *final = &self->final[k];
        s_stack(self, final->segment, final->row / N, final->row % N, self->final_rows.at[k],
            self->final_list + (size_t)k * frames);
    }
}

/* ---- truncations ------------------------------------------------------------------------------------------------- */

static void s_add_finals(batch_t *self, const intake_batch_t *from, uint32_t number)
{
    const intake_segment_t *segment = from->segment[number];
    for (uint32_t k = 0; k < segment->shape.K; k++) {
        const uint32_t env = segment->env_lo + segment->at.final_env[k];
        if (from->owner[env] != number + 1)
            continue;
        if (self->finals == self->final_room) {
            self->final_room = self->final_room ? 2 * self->final_room : 64;
            self->final = tt_realloc(self->final, tt_mul(self->final_room, sizeof *self->final));
            self->final_row = tt_realloc(self->final_row, tt_mul(self->final_room, sizeof *self->final_row));
            self->final_value = tt_realloc(self->final_value, tt_mul(self->final_room, sizeof *self->final_value));
            if (self->list)
                self->final_list = tt_realloc(self->final_list,
                    tt_mul(tt_mul(self->final_room, self->cfg.columns->stack.frames), sizeof *self->final_list));
        }
        self->final[self->finals++] = (final_t){segment->at.final_t[k] * self->cfg.N + env, segment, k};
    }
}

static int s_by_row(const void *a, const void *b)
{
    const final_t *x = a, *y = b;
    return (x->row > y->row) - (x->row < y->row);
}

static void s_gather_finals(batch_t *self, const intake_batch_t *from, const tt_norm_t *norm)
{
    self->finals = 0;
    for (uint32_t s = 0; s < from->segments; s++)
        s_add_finals(self, from, s);
    if (from->segments > 1 && self->finals > 1)
        qsort(self->final, self->finals, sizeof *self->final, s_by_row);
    tt_rows_need(&self->final_rows, self->final_room);
    for (uint32_t k = 0; k < self->finals; k++) {
        const final_t *final = &self->final[k];
        const tt_segment_t *at = &final->segment->at;
        self->final_row[k] = final->row;
        if (at->final_value)
            self->final_value[k] = at->final_value[final->number];
        tt_rows_put(&self->final_rows, k, 1, norm, at->final, final->number);
    }
    s_stack_finals(self);
}

/* ---- steps --------------------------------------------------------------------------------------------------------- */

/*  What every env has once, and the observations: envs lo .. hi-1 of the batch, all owned by `segment`. */
static void s_take_run(batch_t *self, const intake_segment_t *segment, uint32_t lo, uint32_t hi, const tt_norm_t *norm)
{
    const size_t E = segment->shape.E, N = self->cfg.N, T = self->cfg.T, n = hi - lo, first = lo - segment->env_lo;
    const tt_segment_t *at = &segment->at;
    for (size_t t = 0; t < T; t++)
        tt_rows_put(&self->rows, t * N + lo, n, norm, at->column, t * E + first);
    tt_rows_put(&self->rows, T * N + lo, n, norm, at->last, first);
    for (size_t b = 0; b < self->cfg.columns->before; b++)
        tt_rows_put(&self->rows, (T + 1 + b) * N + lo, n, norm, at->before, b * E + first);
    if (self->list)
        s_stack_run(self, segment, lo, hi);
    if (at->last_value)
        memcpy(self->last_value + lo, at->last_value + first, n * sizeof(float));
    memcpy(self->age + lo, at->age + first, n * sizeof *self->age);
    for (size_t i = 0; self->carry && i < n; i++)
        self->carry[lo + i] = at->carry + (first + i) * self->cfg.columns->carry;
}

/*  The other columns of the same envs. */
static void s_gather_run(batch_t *self, const intake_segment_t *segment, uint32_t lo, uint32_t hi)
{
    const tt_columns_t *columns = self->cfg.columns;
    const size_t E = segment->shape.E, n = hi - lo;
    for (uint32_t c = columns->obs_count; c < columns->count; c++) {
        const size_t bytes = columns->at[c].bytes;
        const uint8_t *from = segment->at.column[c];
        for (size_t t = 0; t < self->cfg.T; t++)
            memcpy(self->column[c] + (t * self->cfg.N + lo) * bytes, from + (t * E + (lo - segment->env_lo)) * bytes,
                n * bytes);
    }
}

/*  One segment that is the whole batch stays in place: but for row pointers there is nothing to gather. */
static void s_gather(batch_t *self, const intake_batch_t *from, const tt_norm_t *norm)
{
    for (uint32_t lo = 0, hi; lo < self->cfg.N; lo = hi) {
        for (hi = lo + 1; hi < self->cfg.N && from->owner[hi] == from->owner[lo]; hi++)
            continue;
        const intake_segment_t *segment = from->segment[from->owner[lo] - 1];
        s_take_run(self, segment, lo, hi, norm);
        if (from->segments > 1)
            s_gather_run(self, segment, lo, hi);
    }
}

/* ---- all of it ------------------------------------------------------------------------------------------------------ */

static void s_describe(batch_t *self, const tt_segment_t *whole, tt_batch_t *out)
{
    const tt_columns_t *columns = self->cfg.columns;
    const void *column[TT_COLUMNS_MAX];
    for (uint32_t c = columns->obs_count; c < columns->count; c++)
        column[c] = whole ? whole->column[c] : self->column[c];
    out->T = self->cfg.T;
    out->N = self->cfg.N;
    out->D = columns->flat;
    out->columns = columns;
    out->obs = self->list ? self->list : self->rows.at;
    out->last = out->obs + (size_t)self->cfg.T * self->cfg.N * (self->list ? columns->stack.frames : 1);
    for (uint32_t a = 0; a < columns->action_count; a++)
        out->action[a] = column[columns->action + a];
    out->mask = columns->mask < 0 ? NULL : column[columns->mask];
    self->raw_reward = column[columns->reward];
    out->reward = self->cfg.scale_reward ? self->scaled_reward : self->raw_reward;
    out->terminated = column[columns->terminated];
    out->truncated = column[columns->truncated];
    out->log_prob = columns->log_prob < 0 ? NULL : column[columns->log_prob];
    out->value = columns->value < 0 ? NULL : column[columns->value];
    out->last_value = self->last_value;
    out->finals = self->finals;
    out->final_row = self->final_row;
    out->final_obs = self->list ? self->final_list : self->final_rows.at;
    out->final_value = columns->value < 0 ? NULL : self->final_value;
    out->carry = self->carry;
    out->begins = self->begins;
}

/*  An episode begins where the step before ended one; with the first step where nothing of it lies behind. */
static void s_find_begins(batch_t *self, const tt_batch_t *batch)
{
    const size_t N = batch->N, count = batch->T * N;
    for (size_t row = 0; self->begins && row < count; row++)
        self->begins[row] = row < N ? self->age[row] == 0 : batch->terminated[row - N] || batch->truncated[row - N];
}

static uint64_t s_oldest(const batch_t *self, const intake_batch_t *from)
{
    uint64_t oldest = from->batch;
    for (uint32_t env = 0; env < self->cfg.N; env++) {
        const uint64_t version = from->segment[from->owner[env] - 1]->version;
        oldest = version < oldest ? version : oldest;
    }
    return oldest;
}

void batch_assemble(
    batch_t *self, const intake_batch_t *from, const tt_norm_t *obs_norm, const tt_norm_t *reward_norm, tt_batch_t *out)
{
    TT_CHECK(from->filled == self->cfg.N);
    s_gather(self, from, obs_norm);
    s_gather_finals(self, from, obs_norm);
    self->oldest = s_oldest(self, from);
    *out = (tt_batch_t){.update = from->batch, .stale = self->oldest < from->batch};
    s_describe(self, from->segments == 1 ? &from->segment[0]->at : NULL, out);
    s_find_begins(self, out);
    if (self->cfg.scale_reward)
        tt_norm_scale_reward(reward_norm, self->raw_reward, (size_t)self->cfg.T * self->cfg.N, self->cfg.clip_reward,
            self->scaled_reward);
}

const float *const *batch_raw_obs(const batch_t *self)
{
    return self->rows.raw;
}

const float *batch_raw_reward(const batch_t *self)
{
    return self->raw_reward;
}

const uint32_t *batch_age(const batch_t *self)
{
    return self->age;
}

uint64_t batch_oldest_version(const batch_t *self)
{
    return self->oldest;
}
