#include "tests/replay/naive.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/base/vmath.h"

naive_t *naive_new(const world_t *world, const replay_cfg_t *cfg)
{
    naive_t *self = tt_new0(sizeof *self);
    self->world = world;
    self->cfg = *cfg;
    self->max = 1;
    return self;
}

static const world_row_t *s_row(const naive_t *self, uint64_t clock, uint32_t env)
{
    return &self->world->row[env][clock];
}
static uint64_t s_oldest(const naive_t *self)
{
    return self->first * self->cfg.T;
}
static uint64_t s_end(const naive_t *self)
{
    return self->world->batches * self->cfg.T;
}

/* ---- units ------------------------------------------------------------------------------------------------------------ */

static bool s_stack_is_there(const naive_t *self, uint64_t clock, uint32_t env)
{
    const world_row_t *row = s_row(self, clock, env);
    for (uint32_t j = 1; j < self->cfg.stack && j <= row->index; j++)
        if (clock < s_oldest(self) + j || s_row(self, clock - j, env)->episode != row->episode)
            return false;
    return true;
}

bool naive_unit(const naive_t *self, uint64_t clock, uint32_t env, naive_unit_t *out)
{
    if (clock < s_oldest(self) || clock >= s_end(self) || !s_stack_is_there(self, clock, env))
        return false;
    const world_row_t *first = s_row(self, clock, env);
    *out = (naive_unit_t){env, clock, 0, 0, first->episode, first->index, 0};
    double ret = 0, discount = 1;
    for (uint32_t i = 0; i < self->cfg.ahead; i++) {
        const uint64_t at = clock + i;
        if (at >= s_end(self))
            return false; /* not yet */
        const world_row_t *row = s_row(self, at, env);
        ret += discount * (double)row->reward;
        discount *= self->cfg.gamma;
        out->next = row->terminated ? row->index : row->index + 1;
        if (row->terminated)
            discount = 0;
        if (row->terminated || row->truncated ||
            (at + 1 < s_end(self) && s_row(self, at + 1, env)->episode != row->episode))
            break;
    }
    out->ret = (float)ret;
    out->discount = (float)discount;
    return true;
}

uint64_t naive_living(const naive_t *self)
{
    naive_unit_t unit;
    uint64_t living = 0;
    for (uint64_t clock = s_oldest(self); clock < s_end(self); clock++)
        for (uint32_t e = 0; e < self->cfg.N; e++)
            living += naive_unit(self, clock, e, &unit);
    return living;
}

void naive_stack(const naive_t *self, uint32_t env, uint32_t episode, uint32_t index, uint8_t (*out)[4])
{
    for (uint32_t j = 0; j < self->cfg.stack; j++) {
        uint8_t *to = out[self->cfg.stack - 1 - j];
        if (j <= index)
            world_image(env, episode, index - j, to);
        else if (self->cfg.pad == TT_PAD_RESET)
            world_image(env, episode, 0, to);
        else
            memset(to, 0, 4);
    }
}

/* ---- batches ---------------------------------------------------------------------------------------------------------- */

uint64_t naive_bytes(const naive_t *self)
{
    uint64_t bytes = 0;
    for (uint64_t clock = s_oldest(self); clock < s_end(self); clock++) {
        for (uint32_t e = 0; e < self->cfg.N; e++) {
            const world_row_t *row = s_row(self, clock, e);
            const bool ends = row->terminated || row->truncated;
            const bool broke = !ends && clock + 1 < s_end(self) && s_row(self, clock + 1, e)->episode != row->episode;
            bytes += world_row_bytes() + (row->truncated || broke ? world_final_bytes() : 0);
        }
    }
    return bytes;
}

void naive_insert(naive_t *self)
{
    while (self->first + 1 < self->world->batches && naive_bytes(self) > self->cfg.capacity)
        self->first++;
    for (uint64_t clock = s_oldest(self); clock < s_end(self); clock++) {
        for (uint32_t e = 0; e < self->cfg.N; e++) {
            naive_unit_t unit;
            if (!self->born[e][clock] && naive_unit(self, clock, e, &unit)) {
                self->born[e][clock] = true;
                self->p[e][clock] = self->max;
            }
        }
    }
}

/* ---- drawing ---------------------------------------------------------------------------------------------------------- */

static uint64_t s_block(const naive_t *self)
{
    uint64_t C = 1;
    while (C < 16u * (1 + self->cfg.ahead))
        C *= 2;
    return C;
}

uint32_t naive_stripe(const naive_t *self, uint64_t clock, uint32_t env)
{
    return (uint32_t)((env + clock / s_block(self)) % self->cfg.stripes);
}

static uint64_t s_slots(const naive_t *self)
{
    const uint64_t N = self->cfg.N, S = self->cfg.stripes, C = s_block(self);
    const uint64_t clocks = self->cfg.capacity / (N * self->cfg.T * world_row_bytes()) * self->cfg.T;
    const uint64_t by_clock = clocks * ((N + S - 1) / S), by_turn = (clocks / (C * S) + 1) * N * C;
    uint64_t slots = 1;
    while (slots < (by_clock < by_turn ? by_clock : by_turn))
        slots *= 2;
    return slots;
}

typedef struct {
    double p;
    uint64_t unit;
} leaf_t;

static double s_sum(const leaf_t *leaf, uint64_t count)
{
    return count == 1 ? leaf->p : s_sum(leaf, count / 2) + s_sum(leaf + count / 2, count / 2);
}

static const leaf_t *s_find(const leaf_t *leaf, uint64_t count, double u)
{
    if (count == 1)
        return leaf;
    const double left = s_sum(leaf, count / 2);
    if (u < left || s_sum(leaf + count / 2, count / 2) == 0)
        return s_find(leaf, count / 2, u);
    return s_find(leaf + count / 2, count / 2, u - left);
}

/*  Every unit of the stripe since clock 0 has a number; those that live lie in the slot that it falls on. */
static void s_lay(const naive_t *self, uint32_t stripe, leaf_t *leaf, uint64_t slots)
{
    uint64_t number = 0;
    memset(leaf, 0, slots * sizeof *leaf);
    for (uint64_t clock = 0; clock < s_end(self); clock++) {
        for (uint32_t e = 0; e < self->cfg.N; e++) {
            naive_unit_t unit;
            if (naive_stripe(self, clock, e) != stripe)
                continue;
            if (naive_unit(self, clock, e, &unit))
                leaf[number % slots] = (leaf_t){(double)self->p[e][clock], clock * self->cfg.N + e};
            number++;
        }
    }
}

static bool s_sample_stripe(
    const naive_t *self, uint64_t total, uint32_t stripe, uint32_t m, float beta, uint64_t *unit, float *weight)
{
    const uint64_t slots = s_slots(self);
    leaf_t *leaf = tt_array0(slots, sizeof *leaf);
    s_lay(self, stripe, leaf, slots);
    const double sum = s_sum(leaf, slots), living = (double)naive_living(self);
    for (uint32_t j = 0; j < m && sum > 0; j++) {
        uint32_t word[4];
        tt_draw(word, self->cfg.seed, TT_STREAM_REPLAY, stripe, total * (1 << 20) + j);
        const leaf_t *found = s_find(leaf, slots, (j + tt_unit_f64(word[0], word[1])) * sum / m);
        const double np = living * found->p / (self->cfg.stripes * sum);
        unit[j] = found->unit;
        weight[j] = self->cfg.alpha > 0 ? tt_powf((float)np, -beta) : (float)(1 / np);
    }
    free(leaf);
    return sum > 0;
}

static void s_see(naive_t *self, const naive_late_t *late)
{
    for (uint32_t i = 0; i < late->units; i++) {
        self->max = late->p[i] > self->max ? late->p[i] : self->max;
        self->p[late->unit[i] % self->cfg.N][late->unit[i] / self->cfg.N] = late->p[i];
    }
}

bool naive_sample(naive_t *self, uint64_t total, uint32_t units, float beta, uint64_t *unit, float *weight)
{
    const uint32_t S = self->cfg.stripes;
    while (self->lates && self->late[0].total + 1 + self->cfg.priority_delay <= total) {
        s_see(self, &self->late[0]);
        memmove(self->late, self->late + 1, --self->lates * sizeof *self->late);
    }
    for (uint32_t s = 0; s < S; s++) {
        const uint32_t first = s * units / S, end = (s + 1) * units / S;
        if (!s_sample_stripe(self, total, s, end - first, beta, unit + first, weight + first))
            return false;
    }
    float most = 0;
    for (uint32_t i = 0; i < units; i++)
        most = weight[i] > most ? weight[i] : most;
    for (uint32_t i = 0; i < units && self->cfg.alpha > 0; i++)
        weight[i] /= most;
    return true;
}

void naive_priorities(naive_t *self, uint64_t total, const uint64_t *unit, const float *x, uint32_t units)
{
    TT_CHECK(self->lates < NAIVE_LATE && units <= NAIVE_UNITS);
    naive_late_t *late = &self->late[self->lates++];
    late->total = total;
    late->units = units;
    memcpy(late->unit, unit, units * sizeof *unit);
    for (uint32_t i = 0; i < units; i++)
        late->p[i] = tt_powf(x[i] + self->cfg.epsilon, self->cfg.alpha);
}
