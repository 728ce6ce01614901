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

/*  Frames of its episode before a row that are held, so far as a stack shows them. */
static uint32_t s_back(const naive_t *self, uint64_t clock, uint32_t env)
{
    const world_row_t *row = s_row(self, clock, env);
    uint32_t back = 0;
    while (back + 1 < self->cfg.stack && back < row->index && clock > s_oldest(self) + back &&
           s_row(self, clock - back - 1, env)->episode == row->episode)
        back++;
    return back;
}

static bool s_stack_is_there(const naive_t *self, uint64_t clock, uint32_t env)
{
    const uint32_t index = s_row(self, clock, env)->index, shows = self->cfg.stack - 1;
    return s_back(self, clock, env) >= (index < shows ? index : shows);
}

/*  What came after the newest row. */
static void s_tip(const naive_t *self, uint64_t clock, uint32_t env, naive_row_t *out)
{
    const world_row_t *last = s_row(self, clock - 1, env);
    *out =
        (naive_row_t){.env = env, .clock = clock, .episode = self->world->episode[env], .at = self->world->index[env]};
    if (last->episode == out->episode)
        out->at_back = s_back(self, clock - 1, env) + 1;
}

/*  Did the env go on in another episode, though this one had not ended? */
static bool s_breaks_after(const naive_t *self, uint64_t clock, uint32_t env)
{
    return clock + 1 < s_end(self) && s_row(self, clock + 1, env)->episode != s_row(self, clock, env)->episode;
}

bool naive_row(const naive_t *self, uint64_t clock, uint32_t env, naive_row_t *out)
{
    if (clock == s_end(self)) {
        s_tip(self, clock, env, out);
        return false;
    }
    const world_row_t *first = s_row(self, clock, env);
    *out = (naive_row_t){
        .env = env, .clock = clock, .episode = first->episode, .at = first->index, .at_back = s_back(self, clock, env)};
    double ret = 0, discount = 1;
    for (uint32_t i = 0; i < self->cfg.ahead && !out->over && !out->cut; i++) {
        const uint64_t at = clock + i;
        if (at >= s_end(self))
            return false; /* not yet */
        const world_row_t *row = s_row(self, at, env);
        ret += discount * (double)row->reward;
        discount *= row->terminated ? 0 : self->cfg.gamma;
        out->next = row->terminated ? row->index : row->index + 1;
        out->next_back = s_back(self, at, env) + !row->terminated;
        out->rows = i + 1;
        out->over = row->terminated;
        out->cut = !row->terminated && (row->truncated || s_breaks_after(self, at, env));
    }
    out->ret = (float)ret;
    out->discount = (float)discount;
    return true;
}

uint32_t naive_next(const naive_row_t *row, uint32_t k)
{
    if (row->over)
        return k + row->rows - 1;
    return row->cut ? REPLAY_FINAL_OF | (k + row->rows - 1) : k + row->rows;
}

/*  Is that row what the one before it led to: the next frame, or the first of the next episode? */
static bool s_follows(const naive_t *self, uint64_t clock, uint32_t env)
{
    const world_row_t *row = s_row(self, clock, env), *before = s_row(self, clock - 1, env);
    if (before->terminated || before->truncated)
        return row->episode == before->episode + 1 && row->index == 0;
    return row->episode == before->episode && row->index == before->index + 1;
}

static bool s_sequence_lives(const naive_t *self, uint64_t clock, uint32_t env)
{
    const uint32_t rows = self->cfg.burn + self->cfg.length;
    if (clock % self->cfg.T != 0)
        return false;
    for (uint32_t k = 0; k < rows + self->cfg.ahead; k++)
        if (clock + k > s_end(self)) /* the frame of k: a row's, or what came after the newest */
            return false;
    for (uint32_t k = 1; k < rows; k++)
        if (!s_follows(self, clock + k, env))
            return false;
    return true;
}

bool naive_lives(const naive_t *self, uint64_t clock, uint32_t env)
{
    naive_row_t row;
    if (clock < s_oldest(self) || clock >= s_end(self) || !s_stack_is_there(self, clock, env))
        return false;
    return self->cfg.length ? s_sequence_lives(self, clock, env) : naive_row(self, clock, env, &row);
}

uint64_t naive_living(const naive_t *self)
{
    uint64_t living = 0;
    for (uint64_t clock = s_oldest(self); clock < s_end(self); clock++)
        for (uint32_t e = 0; e < self->cfg.N; e++)
            living += naive_lives(self, clock, e);
    return living;
}

void naive_stack(const naive_t *self, uint32_t env, uint32_t episode, uint32_t index, uint32_t back, uint8_t (*out)[4])
{
    for (uint32_t j = 0; j < self->cfg.stack; j++) {
        uint8_t *to = out[self->cfg.stack - 1 - j];
        if (j <= back)
            world_image(env, episode, index - j, to);
        else if (self->cfg.pad == TT_PAD_RESET)
            world_image(env, episode, index - back, to);
        else
            memset(to, 0, 4);
    }
}

/* ---- batches ---------------------------------------------------------------------------------------------------------- */

uint64_t naive_bytes(const naive_t *self)
{
    uint64_t bytes = (self->world->batches - self->first) * self->cfg.N * self->cfg.carry * sizeof(float);
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
            if (!self->born[e][clock] && naive_lives(self, clock, e)) {
                self->born[e][clock] = true;
                self->p[e][clock] = self->max;
            }
        }
    }
}

/* ---- drawing ---------------------------------------------------------------------------------------------------------- */

/*  Clocks from one unit of an env to the next. */
static uint64_t s_period(const naive_t *self)
{
    return self->cfg.length ? self->cfg.T : 1;
}

/*  In periods. */
static uint64_t s_block(const naive_t *self)
{
    const uint32_t rows = self->cfg.burn + self->cfg.length + self->cfg.ahead;
    const uint32_t reach = self->cfg.length ? (rows + self->cfg.T - 1) / self->cfg.T : self->cfg.ahead;
    uint64_t C = 1;
    while (C < 16u * (1 + reach))
        C *= 2;
    return C;
}

uint32_t naive_stripe(const naive_t *self, uint64_t clock, uint32_t env)
{
    return (uint32_t)((env + clock / s_period(self) / s_block(self)) % self->cfg.stripes);
}

static uint64_t s_slots(const naive_t *self)
{
    const uint64_t N = self->cfg.N, S = self->cfg.stripes, C = s_block(self);
    const uint64_t batches = self->cfg.capacity / (N * (self->cfg.T * world_row_bytes() + 4 * self->cfg.carry));
    const uint64_t clocks = self->cfg.length ? batches : batches * self->cfg.T;
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
    for (uint64_t clock = 0; clock < s_end(self); clock += s_period(self)) {
        for (uint32_t e = 0; e < self->cfg.N; e++) {
            if (naive_stripe(self, clock, e) != stripe)
                continue;
            if (naive_lives(self, clock, e))
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
