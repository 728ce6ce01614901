/*  Drawing a minibatch, and the priorities that come back. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/base/vmath.h"
#include "learner/replay/parts.h"

enum { DRAW_BITS = 20 };
#define TOTAL_MAX ((uint64_t)1 << (64 - DRAW_BITS))

bool replay_ready(const replay_t *self)
{
    for (uint32_t s = 0; s < self->past.cfg.stripes; s++)
        if (!(sumtree_sum(&self->units.tree[s]) > 0))
            return false;
    return true;
}

/* ---- priorities ------------------------------------------------------------------------------------------------------- */

replay_late_t *replay_late(replay_t *self, uint64_t total, uint32_t units)
{
    replay_late_t *late = &self->late[total % self->lates];
    if (late->room < units) {
        late->room = units;
        late->unit = tt_realloc(late->unit, tt_mul(units, sizeof *late->unit));
        late->p = tt_realloc(late->p, tt_mul(units, sizeof *late->p));
    }
    late->total = total;
    late->units = units;
    late->given = false;
    return late;
}

/*  Has the time come that this one is seen? */
static bool s_due(const replay_t *self, const replay_late_t *late, uint64_t total)
{
    return late->units && late->total < total && total - late->total > self->past.cfg.priority_delay;
}

static tt_status_t s_check_late(const replay_t *self, uint64_t total)
{
    for (uint32_t i = 0; i < self->lates; i++)
        if (s_due(self, &self->late[i], total) && !self->late[i].given)
            return tt_err(TT_INTERNAL,
                "replay: step %" PRIu64 " is to see the priorities of step %" PRIu64 ", which were not given", total,
                self->late[i].total);
    return TT_OK;
}

/*  In order of positions: the last of equal units wins. */
static void s_see(replay_t *self, replay_late_t *late)
{
    const uint32_t N = self->past.cfg.N;
    for (uint32_t i = 0; i < late->units; i++) {
        const uint64_t clock = late->unit[i] / N;
        const uint32_t env = (uint32_t)(late->unit[i] % N);
        self->max_priority = late->p[i] > self->max_priority ? late->p[i] : self->max_priority;
        if (units_lives(&self->units, clock, env)) /* not evicted since */
            units_set(&self->units, clock, env, late->p[i]);
    }
    units_sum(&self->units, late->unit, late->units); /* of a slot that is another's by now it changes nothing */
    late->units = 0;
}

/*  Steps in their order: there are few. */
static void s_see_due(replay_t *self, uint64_t total)
{
    for (;;) {
        replay_late_t *first = NULL;
        for (uint32_t i = 0; i < self->lates; i++)
            if (s_due(self, &self->late[i], total) && (!first || self->late[i].total < first->total))
                first = &self->late[i];
        if (!first)
            return;
        s_see(self, first);
    }
}

tt_status_t replay_priorities(replay_t *self, uint64_t total, const float *x, uint32_t units)
{
    if (replay_uniform(self))
        return TT_OK;
    const replay_cfg_t *cfg = &self->past.cfg;
    replay_late_t *late = &self->late[total % self->lates];
    if (!late->units || late->total != total || late->units != units)
        return tt_err(TT_INTERNAL, "replay: %" PRIu32 " priorities of step %" PRIu64 ", which waits for %" PRIu32,
            units, total, late->total == total ? late->units : 0);
    for (uint32_t i = 0; i < units; i++)
        if (!(x[i] >= 0) || !isfinite(tt_powf(x[i] + cfg->epsilon, cfg->alpha)))
            return tt_err(x[i] < 0 ? TT_INTERNAL : TT_DIVERGED,
                "replay: position %" PRIu32 " of step %" PRIu64 " (env %" PRIu64 ", clock %" PRIu64
                ") comes to the priority of %g",
                i, total, late->unit[i] % cfg->N, late->unit[i] / cfg->N, (double)x[i]);
    for (uint32_t i = 0; i < units; i++)
        late->p[i] = tt_powf(x[i] + cfg->epsilon, cfg->alpha);
    late->given = true;
    return TT_OK;
}

/* ---- units ------------------------------------------------------------------------------------------------------------ */

static void s_room(replay_t *self, uint32_t units)
{
    if (units <= self->room)
        return;
    self->room = units;
    self->unit = tt_realloc(self->unit, tt_mul(units, sizeof *self->unit));
    self->aim = tt_realloc(self->aim, tt_mul(units, sizeof *self->aim));
    self->weight = tt_realloc(self->weight, tt_mul(units, sizeof(float)));
    const uint32_t length = self->past.cfg.length;
    const size_t rows = tt_mul(units, length ? length : 1);
    self->ret = tt_realloc(self->ret, tt_mul(rows, sizeof(float)));
    self->discount = tt_realloc(self->discount, tt_mul(rows, sizeof(float)));
    if (length)
        self->next = tt_realloc(self->next, tt_mul(rows, sizeof *self->next));
}

/*  n P of a unit: how much likelier it is than if all were drawn alike. */
static double s_odds(const replay_t *self, double p, double sum)
{
    const double odds = (double)self->units.living * p / ((double)self->past.cfg.stripes * sum);
    return odds > 0x1p-126 ? odds : 0x1p-126; /* as a float it is not 0: a weight is finite */
}

/*  Evenly over the stripe's sum, each somewhere in its part of it. */
static void s_aim(const replay_t *self, uint64_t total, uint32_t stripe, double *u, uint32_t units)
{
    const double sum = sumtree_sum(&self->units.tree[stripe]);
    for (uint32_t j = 0; j < units; j++) {
        uint32_t word[4];
        tt_draw(word, self->past.cfg.seed, TT_STREAM_REPLAY, stripe, total << DRAW_BITS | j);
        u[j] = ((double)j + tt_unit_f64(word[0], word[1])) * sum / units;
    }
}

static void s_draw_stripe(replay_t *self, uint64_t total, uint32_t stripe, uint32_t first, uint32_t units, float beta)
{
    const sumtree_t *tree = &self->units.tree[stripe];
    const double sum = sumtree_sum(tree);
    const uint64_t base = units_first(&self->units, stripe);
    uint64_t *slot = self->unit + first;
    s_aim(self, total, stripe, self->aim, units);
    sumtree_find(tree, self->aim, slot, units);
    for (uint32_t j = 0; j < units; j++) {
        const double odds = s_odds(self, sumtree_at(tree, slot[j]), sum);
        self->weight[first + j] = replay_uniform(self) ? (float)(1 / odds) : tt_powf((float)odds, -beta);
        slot[j] = units_of_slot(&self->units, stripe, base, slot[j]);
    }
}

/*  Over the largest of the minibatch. */
static void s_normalise(replay_t *self, uint32_t units)
{
    float most = 0;
    for (uint32_t i = 0; i < units; i++)
        most = self->weight[i] > most ? self->weight[i] : most;
    for (uint32_t i = 0; i < units; i++)
        self->weight[i] /= most;
}

static void s_returns(replay_t *self, uint32_t units)
{
    const uint32_t N = self->past.cfg.N;
    for (uint32_t i = 0; i < units; i++) {
        units_reach_t reach;
        const past_place_t place = past_place(&self->past, self->unit[i] / N, (uint32_t)(self->unit[i] % N));
        units_reach(&self->units, place, &reach);
        self->ret[i] = reach.ret;
        self->discount[i] = reach.discount;
    }
}

/*  Where NEXT of a sequence's row k is, counted in its rows. */
static uint32_t s_next(const units_reach_t *reach, uint32_t k)
{
    const uint32_t last = k + reach->rows - 1;
    if (reach->mark & ROW_TERMINATED)
        return last;
    return reach->mark & ROW_CUT ? REPLAY_FINAL_OF | last : last + 1;
}

/*  Of the rows that are trained on, by row and position. */
static void s_returns_of_sequences(replay_t *self, uint32_t units)
{
    const replay_cfg_t *cfg = &self->past.cfg;
    for (uint32_t i = 0; i < units; i++) {
        const uint64_t clock = self->unit[i] / cfg->N + cfg->burn;
        past_place_t place = past_place(&self->past, clock, (uint32_t)(self->unit[i] % cfg->N));
        for (uint32_t t = 0; t < cfg->length; t++) {
            const size_t at = (size_t)t * units + i;
            units_reach_t reach;
            units_reach(&self->units, place, &reach);
            self->ret[at] = reach.ret;
            self->discount[at] = reach.discount;
            self->next[at] = s_next(&reach, cfg->burn + t);
            if (t + 1 < cfg->length)
                place = past_after(&self->past, place);
        }
    }
}

static tt_status_t s_check_step(const replay_t *self, uint64_t total, uint32_t units, float beta)
{
    if (!units || units > REPLAY_UNITS_MAX)
        return tt_err(TT_INVALID, "replay: %" PRIu32 " units of a step; there can be 1 to %d", units, REPLAY_UNITS_MAX);
    if (total >= TOTAL_MAX || total < self->total)
        return tt_err(TT_INVALID, "replay: step %" PRIu64 " after step %" PRIu64, total, self->total);
    if (!replay_uniform(self) && !(beta >= 0 && beta <= 1))
        return tt_err(TT_INVALID, "replay: beta is %g; it can be 0 to 1", (double)beta);
    return s_check_late(self, total);
}

tt_status_t replay_sample(replay_t *self, uint64_t total, uint32_t units, float beta, replay_sample_t *out)
{
    const uint32_t S = self->past.cfg.stripes;
    TT_TRY(s_check_step(self, total, units, beta));
    s_see_due(self, total);
    self->total = total;
    if (!replay_ready(self))
        return tt_err(TT_AGAIN, "replay: a stripe has nothing to draw");
    s_room(self, units);
    for (uint32_t s = 0; s < S; s++) {
        const uint32_t first = (uint32_t)((uint64_t)s * units / S), end = (uint32_t)((s + 1ull) * units / S);
        s_draw_stripe(self, total, s, first, end - first, beta);
    }
    if (self->past.cfg.length)
        s_returns_of_sequences(self, units);
    else
        s_returns(self, units);
    if (!replay_uniform(self)) {
        s_normalise(self, units);
        memcpy(replay_late(self, total, units)->unit, self->unit, units * sizeof *self->unit);
    }
    *out = (replay_sample_t){units, self->unit, self->weight, self->ret, self->discount, self->next};
    return TT_OK;
}
