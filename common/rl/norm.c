#include "common/rl/norm.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/scale.h"

#define COUNT0  1e-4
#define EPSILON 1e-8

struct tt_norm {
    uint32_t dims;
    double count;
    double *mean, *m2; /* m2 = count * variance            */
    double *inv;       /* 1 / sqrt(variance + epsilon)     */
    double *work;      /* [2][dims]: moments of a batch    */
};

static void s_refresh(tt_norm_t *self)
{
    for (uint32_t d = 0; d < self->dims; d++)
        self->inv[d] = 1 / sqrt(self->m2[d] / self->count + EPSILON);
}

tt_norm_t *tt_norm_new(uint32_t dims)
{
    tt_norm_t *self = tt_new0(sizeof *self);
    self->dims = dims;
    self->count = COUNT0;
    self->mean = tt_array0(tt_mul(5, dims), sizeof(double));
    self->m2 = self->mean + dims;
    self->inv = self->m2 + dims;
    self->work = self->inv + dims;
    for (uint32_t d = 0; d < dims; d++)
        self->m2[d] = COUNT0;
    s_refresh(self);
    return self;
}

void tt_norm_destroy(tt_norm_t **self_p)
{
    if (*self_p)
        free((*self_p)->mean);
    free(*self_p);
    *self_p = NULL;
}

double tt_norm_count(const tt_norm_t *self)
{
    return self->count;
}

double tt_norm_mean(const tt_norm_t *self, uint32_t dim)
{
    return self->mean[dim];
}

double tt_norm_var(const tt_norm_t *self, uint32_t dim)
{
    return self->m2[dim] / self->count;
}

const double *tt_norm_means(const tt_norm_t *self)
{
    return self->mean;
}

const double *tt_norm_invs(const tt_norm_t *self)
{
    return self->inv;
}

/*  Chan's formula for the batch moments in work: mean, then sum of squared deviations. */
static void s_join(tt_norm_t *self, double rows)
{
    const double total = self->count + rows;
    for (uint32_t d = 0; d < self->dims; d++) {
        const double delta = self->work[d] - self->mean[d];
        self->mean[d] += delta * (rows / total);
        self->m2[d] += self->work[self->dims + d] + delta * delta * (self->count * rows / total);
    }
    self->count = total;
    s_refresh(self);
}

void tt_norm_merge(tt_norm_t *self, const float *const *row, size_t rows)
{
    if (!rows)
        return;
    const uint32_t dims = self->dims;
    double *mean = self->work, *square = self->work + dims;
    memset(self->work, 0, 2 * dims * sizeof(double));
    for (size_t k = 0; k < rows; k++)
        for (uint32_t d = 0; d < dims; d++)
            mean[d] += (double)row[k][d];
    for (uint32_t d = 0; d < dims; d++)
        mean[d] /= (double)rows;
    for (size_t k = 0; k < rows; k++)
        for (uint32_t d = 0; d < dims; d++) {
            const double off = (double)row[k][d] - mean[d];
            square[d] += off * off;
        }
    s_join(self, (double)rows);
}

void tt_norm_merge_f64(tt_norm_t *self, const double *x, size_t count)
{
    TT_CHECK(self->dims == 1);
    if (!count)
        return;
    double mean = 0, square = 0;
    for (size_t k = 0; k < count; k++)
        mean += x[k];
    mean /= (double)count;
    for (size_t k = 0; k < count; k++)
        square += (x[k] - mean) * (x[k] - mean);
    self->work[0] = mean;
    self->work[1] = square;
    s_join(self, (double)count);
}

void tt_norm_scale(const tt_norm_t *self, const float *in, size_t rows, float clip, float *out)
{
    const uint32_t dims = self->dims;
    for (size_t k = 0; k < rows; k++)
        for (uint32_t d = 0; d < dims; d++)
            out[k * dims + d] = tt_scaled(in[k * dims + d], self->mean[d], self->inv[d], clip);
}

void tt_norm_scale_reward(const tt_norm_t *self, const float *in, size_t count, float clip, float *out)
{
    TT_CHECK(self->dims == 1);
    for (size_t k = 0; k < count; k++)
        out[k] = tt_scaled(in[k], 0, self->inv[0], clip);
}

size_t tt_norm_block_count(uint32_t dims)
{
    return 1 + 2 * (size_t)dims;
}

void tt_norm_save(const tt_norm_t *self, double *block)
{
    block[0] = self->count;
    memcpy(block + 1, self->mean, self->dims * sizeof(double));
    memcpy(block + 1 + self->dims, self->m2, self->dims * sizeof(double));
}

tt_status_t tt_norm_load(tt_norm_t *self, const double *block, size_t count)
{
    const uint32_t dims = self->dims;
    if (count != tt_norm_block_count(dims))
        return tt_err(TT_DATA, "normaliser: %zu numbers where %zu belong", count, tt_norm_block_count(dims));
    bool sound = isfinite(block[0]) && block[0] > 0;
    for (uint32_t d = 0; d < dims; d++)
        sound = sound && isfinite(block[1 + d]) && isfinite(block[1 + dims + d]) && block[1 + dims + d] >= 0;
    if (!sound)
        return tt_err(TT_DATA, "normaliser: a count, mean or variance that cannot be");
    self->count = block[0];
    memcpy(self->mean, block + 1, dims * sizeof(double));
    memcpy(self->m2, block + 1 + dims, dims * sizeof(double));
    s_refresh(self);
    return TT_OK;
}

/* ---- discounted returns ------------------------------------------------------------------------------------------- */

struct tt_returns {
    uint32_t envs;
    double gamma;
    double *now;  /* [envs]                              */
    double *seen; /* [T][envs] of the batch being fed   */
    size_t room;
};

tt_returns_t *tt_returns_new(uint32_t envs, double gamma)
{
    tt_returns_t *self = tt_new0(sizeof *self);
    self->envs = envs;
    self->gamma = gamma;
    self->now = tt_array0(envs, sizeof(double));
    return self;
}

void tt_returns_destroy(tt_returns_t **self_p)
{
    if (*self_p) {
        free((*self_p)->now);
        free((*self_p)->seen);
    }
    free(*self_p);
    *self_p = NULL;
}

void tt_returns_forget(tt_returns_t *self, const uint8_t *broken)
{
    for (uint32_t env = 0; env < self->envs; env++)
        self->now[env] = broken[env] ? 0 : self->now[env];
}

void tt_returns_feed(tt_returns_t *self, tt_norm_t *norm, uint32_t T, const float *reward, const uint8_t *terminated,
    const uint8_t *truncated)
{
    const size_t count = tt_mul(T, self->envs);
    if (count > self->room) {
        self->seen = tt_realloc(self->seen, tt_mul(count, sizeof(double)));
        self->room = count;
    }
    for (size_t i = 0; i < count; i++) {
        double *now = &self->now[i % self->envs];
        self->seen[i] = self->gamma * *now + (double)reward[i];
        *now = terminated[i] || truncated[i] ? 0 : self->seen[i];
    }
    tt_norm_merge_f64(norm, self->seen, count);
}

double *tt_returns_state(tt_returns_t *self)
{
    return self->now;
}
