#include "learner/batch.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"

/*  The final observation of one truncation, before they are put in order. */
typedef struct {
    uint32_t row;
    const float *obs;
    float value;
} final_t;

struct batch {
    batch_cfg_t cfg;
    const float **raw;  /* [T*N] into segments                      */
    const float **last; /* [N]                                      */
    const float **rows; /* [T*N] what the algorithm sees            */
    float *obs;         /* [T*N + N][D] scaled copies               */
    uint8_t *action;    /* gathered fields, [T][N]                  */
    float *reward, *log_prob, *value, *last_value;
    uint8_t *terminated, *truncated;
    uint32_t *age; /* [N] */
    float *scaled_reward;
    const float *raw_reward; /* of the batch in hand */
    final_t *final;
    uint32_t finals, final_room;
    uint32_t *final_row;
    const float **final_obs;
    float *final_value, *final_scaled;
    uint64_t oldest;
};

batch_t *batch_new(const batch_cfg_t *cfg)
{
    batch_t *self = tt_new0(sizeof *self);
    const size_t N = cfg->N, rows = tt_mul(cfg->T, N), action = cfg->A ? cfg->A : 1;
    self->cfg = *cfg;
    self->raw = tt_array0(rows, sizeof *self->raw);
    self->last = tt_array0(N, sizeof *self->last);
    self->action = tt_aligned0(tt_mul(rows, action * 4));
    self->reward = tt_aligned0(tt_mul(rows, sizeof(float)));
    self->log_prob = tt_aligned0(tt_mul(rows, sizeof(float)));
    self->value = tt_aligned0(tt_mul(rows, sizeof(float)));
    self->last_value = tt_aligned0(tt_mul(N, sizeof(float)));
    self->terminated = tt_aligned0(rows);
    self->truncated = tt_aligned0(rows);
    self->age = tt_array0(N, sizeof *self->age);
    if (cfg->scale_reward)
        self->scaled_reward = tt_aligned0(tt_mul(rows, sizeof(float)));
    if (cfg->scale_obs) {
        self->obs = tt_aligned0(tt_mul(tt_mul(rows + N, cfg->D), sizeof(float)));
        self->rows = tt_array0(rows, sizeof *self->rows);
        for (size_t r = 0; r < rows; r++)
            self->rows[r] = self->obs + r * cfg->D;
    }
    return self;
}

void batch_destroy(batch_t **self_p)
{
    batch_t *self = *self_p;
    if (!self)
        return;
    void *owned[] = {self->raw, self->last, self->rows, self->obs, self->action, self->reward, self->log_prob,
        self->value, self->last_value, self->terminated, self->truncated, self->age, self->scaled_reward, self->final,
        self->final_row, self->final_obs, self->final_value, self->final_scaled, self};
    for (size_t i = 0; i < TT_COUNT(owned); i++)
        free(owned[i]);
    *self_p = NULL;
}

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
            self->final_obs = tt_realloc(self->final_obs, tt_mul(self->final_room, sizeof *self->final_obs));
            self->final_value = tt_realloc(self->final_value, tt_mul(self->final_room, sizeof *self->final_value));
        }
        self->final[self->finals++] = (final_t){segment->at.final_t[k] * self->cfg.N + env,
            segment->at.final_obs + (size_t)k * self->cfg.D, segment->at.final_value[k]};
    }
}

static int s_by_row(const void *a, const void *b)
{
    const final_t *x = a, *y = b;
    return (x->row > y->row) - (x->row < y->row);
}

static void s_gather_finals(batch_t *self, const intake_batch_t *from)
{
    self->finals = 0;
    for (uint32_t s = 0; s < from->segments; s++)
        s_add_finals(self, from, s);
    if (from->segments > 1 && self->finals > 1)
        qsort(self->final, self->finals, sizeof *self->final, s_by_row);
    for (uint32_t k = 0; k < self->finals; k++) {
        self->final_row[k] = self->final[k].row;
        self->final_obs[k] = self->final[k].obs;
        self->final_value[k] = self->final[k].value;
    }
}

/*  Envs lo .. hi-1 of the batch, all owned by `segment`. */
static void s_gather_run(batch_t *self, const intake_segment_t *segment, uint32_t lo, uint32_t hi)
{
    const batch_cfg_t *cfg = &self->cfg;
    const size_t E = segment->shape.E, n = hi - lo, action = (cfg->A ? cfg->A : 1) * (size_t)4;
    const tt_segment_t *at = &segment->at;
    for (size_t t = 0; t < cfg->T; t++) {
        const size_t to = t * cfg->N + lo, src = t * E + (lo - segment->env_lo);
        for (size_t e = 0; e < n; e++)
            self->raw[to + e] = at->obs + (src + e) * cfg->D;
        memcpy(self->action + to * action, (const uint8_t *)at->action + src * action, n * action);
        memcpy(self->reward + to, at->reward + src, n * sizeof(float));
        memcpy(self->log_prob + to, at->log_prob + src, n * sizeof(float));
        memcpy(self->value + to, at->value + src, n * sizeof(float));
        memcpy(self->terminated + to, at->terminated + src, n);
        memcpy(self->truncated + to, at->truncated + src, n);
    }
    for (size_t e = lo; e < hi; e++) {
        self->last[e] = at->last_obs + (e - segment->env_lo) * cfg->D;
        self->last_value[e] = at->last_value[e - segment->env_lo];
        self->age[e] = at->age[e - segment->env_lo];
    }
}

static void s_gather(batch_t *self, const intake_batch_t *from)
{
    for (uint32_t lo = 0, hi; lo < self->cfg.N; lo = hi) {
        for (hi = lo + 1; hi < self->cfg.N && from->owner[hi] == from->owner[lo]; hi++)
            continue;
        s_gather_run(self, from->segment[from->owner[lo] - 1], lo, hi);
    }
}

/*  One segment is the whole batch: only the row pointers are new. */
static void s_in_place(batch_t *self, const intake_segment_t *segment)
{
    const size_t rows = (size_t)self->cfg.T * self->cfg.N, D = self->cfg.D;
    for (size_t r = 0; r < rows; r++)
        self->raw[r] = segment->at.obs + r * D;
    for (size_t e = 0; e < self->cfg.N; e++)
        self->last[e] = segment->at.last_obs + e * D;
    memcpy(self->age, segment->at.age, self->cfg.N * sizeof *self->age);
}

static void s_scale_rows(const batch_t *self, const tt_norm_t *norm, const float *const *rows, size_t count, float *out)
{
    for (size_t r = 0; r < count; r++)
        tt_norm_scale(norm, rows[r], 1, self->cfg.clip_obs, out + r * self->cfg.D);
}

static void s_scale_obs(batch_t *self, const tt_norm_t *norm)
{
    const size_t rows = (size_t)self->cfg.T * self->cfg.N, N = self->cfg.N, D = self->cfg.D;
    s_scale_rows(self, norm, self->raw, rows, self->obs);
    s_scale_rows(self, norm, self->last, N, self->obs + rows * D);
    for (size_t e = 0; e < N; e++)
        self->last[e] = self->obs + (rows + e) * D;
    self->final_scaled = tt_realloc(self->final_scaled, tt_mul(self->finals, D * sizeof(float)));
    s_scale_rows(self, norm, self->final_obs, self->finals, self->final_scaled);
    for (size_t k = 0; k < self->finals; k++)
        self->final_obs[k] = self->final_scaled + k * D;
}

static void s_describe(const batch_t *self, const tt_segment_t *whole, tt_batch_t *out)
{
    const void *action = whole ? whole->action : self->action;
    out->T = self->cfg.T;
    out->N = self->cfg.N;
    out->D = self->cfg.D;
    out->action_dims = self->cfg.A;
    out->obs = self->cfg.scale_obs ? self->rows : self->raw;
    out->last = self->last;
    out->action = self->cfg.A ? NULL : action;
    out->action_box = self->cfg.A ? action : NULL;
    out->reward = self->cfg.scale_reward ? self->scaled_reward : self->raw_reward;
    out->terminated = whole ? whole->terminated : self->terminated;
    out->truncated = whole ? whole->truncated : self->truncated;
    out->log_prob = whole ? whole->log_prob : self->log_prob;
    out->value = whole ? whole->value : self->value;
    out->last_value = whole ? whole->last_value : self->last_value;
    out->finals = self->finals;
    out->final_row = self->final_row;
    out->final_obs = self->final_obs;
    out->final_value = self->final_value;
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
    const tt_segment_t *whole = from->segments == 1 ? &from->segment[0]->at : NULL;
    if (whole)
        s_in_place(self, from->segment[0]);
    else
        s_gather(self, from);
    self->raw_reward = whole ? whole->reward : self->reward;
    s_gather_finals(self, from);
    if (self->cfg.scale_obs)
        s_scale_obs(self, obs_norm);
    if (self->cfg.scale_reward)
        tt_norm_scale_reward(reward_norm, self->raw_reward, (size_t)self->cfg.T * self->cfg.N, self->cfg.clip_reward,
            self->scaled_reward);
    self->oldest = s_oldest(self, from);
    *out = (tt_batch_t){.update = from->batch, .stale = self->oldest < from->batch};
    s_describe(self, whole, out);
}

const float *const *batch_raw_obs(const batch_t *self)
{
    return self->raw;
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
