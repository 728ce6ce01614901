#include "tests/replay/world.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/rng.h"

double world_unit(uint32_t seed, uint64_t k)
{
    uint32_t word[4];
    tt_draw(word, 99, TT_STREAM_TEST, seed, k);
    return tt_unit_f64(word[0], word[1]);
}

void world_vector(uint32_t env, uint32_t episode, uint32_t index, float out[3])
{
    out[0] = (float)env;
    out[1] = (float)episode;
    out[2] = (float)index;
}

void world_image(uint32_t env, uint32_t episode, uint32_t index, uint8_t out[4])
{
    out[0] = (uint8_t)(env + 1); /* never a frame of zeros */
    out[1] = (uint8_t)episode;
    out[2] = (uint8_t)index;
    out[3] = (uint8_t)(index >> 8);
}

uint64_t world_row_bytes(void)
{
    return 12 + 4 + 4 + 4 + 1 + 1; /* vector, image, action, reward, terminated, truncated */
}

uint64_t world_batch_bytes(const world_t *self)
{
    return self->N * (self->T * world_row_bytes() + self->carry * sizeof(float));
}

void world_carry(const world_t *self, uint64_t batch, uint32_t env, float *out)
{
    const bool begins = self->row[env][batch * self->T].index == 0;
    for (uint32_t i = 0; i < self->carry; i++)
        out[i] = begins ? 0 : (float)(batch * WORLD_ENVS + env) + (float)i / 8;
}

uint64_t world_final_bytes(void)
{
    return 12 + 4;
}

static void s_columns(world_t *self, uint32_t frames, tt_pad_t pad)
{
    static const int64_t three = 3;
    const tt_space_t leaf[] = {{.kind = TT_SPACE_BOX, .key = "image", .dtype = TT_U8, .rank = 2, .shape = {2, 2}},
        {.kind = TT_SPACE_BOX, .key = "vector", .dtype = TT_F32, .rank = 1, .shape = {3}}};
    const tt_space_t obs = {.kind = TT_SPACE_DICT, .part = leaf, .parts = 2};
    const tt_space_t action = TT_CHOICES(&three);
    const tt_status_t status = tt_columns_new_stacked(&self->columns, &obs, &action, false, true, frames, pad);
    TT_CHECK(status == TT_OK);
    self->image = 0;
    self->vector = 1;
    self->action = self->columns->action;
}

void world_stack(world_t *self, uint32_t frames, tt_pad_t pad)
{
    tt_columns_destroy(&self->columns);
    s_columns(self, frames, pad);
}

world_t *world_new(uint32_t N, uint32_t T, uint32_t seed)
{
    TT_CHECK(N <= WORLD_ENVS);
    world_t *self = tt_new0(sizeof *self);
    self->N = N;
    self->T = T;
    self->seed = seed;
    self->ends = 0.1;
    self->breaks = 0.1;
    s_columns(self, 1, TT_PAD_RESET);
    return self;
}

static void s_forget(world_t *self)
{
    for (uint32_t p = 0; p < self->parts; p++) {
        tt_segment_t *at = &self->segment[p];
        for (uint32_t c = 0; c < self->columns->count; c++) {
            free(at->column[c]);
            free(at->last[c]);
            free(at->final[c]);
        }
        free(at->age);
        free(at->carry);
        free(at->final_t);
        free(at->final_env);
        *at = (tt_segment_t){0};
    }
    self->parts = 0;
}

void world_destroy(world_t **self_p)
{
    s_forget(*self_p);
    tt_columns_destroy(&(*self_p)->columns);
    free(*self_p);
    *self_p = NULL;
}

/* ---- what happens ----------------------------------------------------------------------------------------------------- */

static void s_play_env(world_t *self, uint32_t e)
{
    const uint64_t start = self->batches * self->T;
    self->broke[e] = self->batches && world_unit(self->seed + 1, start * WORLD_ENVS + e) < self->breaks;
    if (self->broke[e]) {
        self->episode[e]++;
        self->index[e] = (uint32_t)(world_unit(self->seed + 2, start * WORLD_ENVS + e) * 4);
    }
    for (uint32_t t = 0; t < self->T; t++) {
        const double end = world_unit(self->seed, (start + t) * WORLD_ENVS + e);
        world_row_t *row = &self->row[e][start + t];
        *row = (world_row_t){.episode = self->episode[e],
            .index = self->index[e],
            .reward = (float)world_unit(self->seed + 3, (start + t) * WORLD_ENVS + e) - 0.5f,
            .terminated = end < self->ends || end > 1 - self->ends / 4,
            .truncated = end > 1 - self->ends};
        const bool over = row->terminated || row->truncated;
        self->episode[e] += over;
        self->index[e] = over ? 0 : self->index[e] + 1;
    }
}

/* ---- as segments -------------------------------------------------------------------------------------------------------- */

/*  Observations of a frame, at number `at` of arrays. */
static void s_put(const world_t *self, void *const *column, size_t at, uint32_t env, uint32_t episode, uint32_t index)
{
    world_vector(env, episode, index, (float *)column[self->vector] + at * 3);
    world_image(env, episode, index, (uint8_t *)column[self->image] + at * 4);
}

static void s_arrays(const world_t *self, void **column, size_t rows, bool kept)
{
    for (uint32_t c = 0; c < self->columns->count; c++)
        column[c] = kept && !self->columns->at[c].keep ? NULL : tt_array0(rows, self->columns->at[c].bytes);
}

static void s_fill_env(const world_t *self, tt_segment_t *at, uint32_t E, uint32_t e, uint32_t env)
{
    const uint64_t start = self->batches * self->T;
    const tt_columns_t *columns = self->columns;
    at->age[e] = self->row[env][start].index;
    if (self->carry)
        world_carry(self, self->batches, env, at->carry + (size_t)e * self->carry);
    for (uint32_t t = 0; t < self->T; t++) {
        const world_row_t *row = &self->row[env][start + t];
        const size_t i = (size_t)t * E + e;
        s_put(self, at->column, i, env, row->episode, row->index);
        ((int32_t *)at->column[self->action])[i] = (int32_t)((start + t + env) % 3);
        ((float *)at->column[columns->reward])[i] = row->reward;
        ((uint8_t *)at->column[columns->terminated])[i] = row->terminated;
        ((uint8_t *)at->column[columns->truncated])[i] = row->truncated;
    }
    s_put(self, at->last, e, env, self->episode[env], self->index[env]);
}

static uint32_t s_fill_finals(const world_t *self, tt_segment_t *at, uint32_t E, uint32_t lo)
{
    const uint64_t start = self->batches * self->T;
    uint32_t k = 0;
    for (uint32_t t = 0; t < self->T; t++) {
        for (uint32_t e = 0; e < E; e++) {
            const world_row_t *row = &self->row[(lo + e) % self->N][start + t];
            if (!row->truncated)
                continue;
            at->final_t[k] = t;
            at->final_env[k] = e;
            s_put(self, at->final, k++, (lo + e) % self->N, row->episode, row->index + 1);
        }
    }
    return k;
}

/*  A segment of E envs, of which the batch wants `count` from `first` on; those around them belong to others. */
static void s_segment(world_t *self, uint32_t env, uint32_t first, uint32_t count, uint32_t E)
{
    tt_segment_t *at = &self->segment[self->parts];
    const size_t rows = (size_t)self->T * E;
    const uint32_t lo = env + self->N - first;
    s_arrays(self, at->column, rows, false);
    s_arrays(self, at->last, E, true);
    s_arrays(self, at->final, rows, true);
    at->age = tt_array0(E, sizeof *at->age);
    at->carry = self->carry ? tt_array0((size_t)E * self->carry, sizeof *at->carry) : NULL;
    at->final_t = tt_array0(rows, sizeof *at->final_t);
    at->final_env = tt_array0(rows, sizeof *at->final_env);
    for (uint32_t e = 0; e < E; e++)
        s_fill_env(self, at, E, e, (lo + e) % self->N);
    const uint32_t K = s_fill_finals(self, at, E, lo);
    self->part[self->parts++] = (replay_part_t){.at = at, .E = E, .K = K, .first = first, .count = count, .env = env};
}

void world_play(world_t *self)
{
    TT_CHECK((self->batches + 1) * self->T <= WORLD_CLOCKS);
    s_forget(self);
    for (uint32_t e = 0; e < self->N; e++)
        s_play_env(self, e);
    for (uint32_t env = 0; env < self->N;) { /* cut anew each time */
        const double unit = world_unit(self->seed + 4, self->batches * WORLD_ENVS + env);
        uint32_t count = 1 + (uint32_t)(unit * 1.7 * self->N), first = (uint32_t)(unit * 37) % 3 % self->N;
        count = count > self->N - env ? self->N - env : count;
        const uint32_t more = (uint32_t)(unit * 101) % 2;
        s_segment(self, env, first, count, first + count + more);
        env += count;
    }
    self->batches++;
}

tt_status_t world_insert(const world_t *self, replay_t *replay)
{
    return replay_insert(replay, self->batches - 1, self->part, self->parts, self->broke);
}

replay_cfg_t world_cfg(const world_t *self, uint32_t batches, uint32_t stripes, uint32_t ahead)
{
    return (replay_cfg_t){.columns = self->columns,
        .store = 1u << self->vector | 1u << self->image | 1u << self->action,
        .N = self->N,
        .T = self->T,
        .capacity = batches * world_batch_bytes(self),
        .carry = self->carry,
        .stripes = stripes,
        .ahead = ahead,
        .gamma = 0.9,
        .stack = 1,
        .seed = self->seed};
}
