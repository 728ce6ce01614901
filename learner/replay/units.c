#include "learner/replay/units.h"
#include <string.h>
#include <stdlib.h>
#include "common/base/mem.h"

enum { SUMMED = 64 };

/*  The ring of slots holds what can live at once, so that no two living units share one. */
static uint64_t s_slots(const units_t *self)
{
    const uint64_t most = stripes_most(&self->stripes, self->past->room * self->past->cfg.T / self->period);
    uint64_t slots = 1;
    while (slots < most)
        slots *= 2;
    return slots;
}

/*  How many periods of rows belong to a unit: it reads them and one more. */
static uint32_t s_rows(const replay_cfg_t *cfg)
{
    return cfg->length ? (cfg->burn + cfg->length + cfg->ahead - 1) / cfg->T + 1 : cfg->ahead;
}

void units_init(units_t *self, const past_t *past)
{
    const replay_cfg_t *cfg = &past->cfg;
    *self = (units_t){.past = past, .period = cfg->length ? cfg->T : 1};
    stripes_init(&self->stripes, cfg->N, cfg->stripes, stripes_log_block(s_rows(cfg)));
    self->tree = tt_array0(cfg->stripes, sizeof *self->tree);
    for (uint32_t s = 0; s < cfg->stripes; s++)
        sumtree_init(&self->tree[s], s_slots(self));
    self->next_end = tt_array0(cfg->N, sizeof *self->next_end);
}

void units_free(units_t *self)
{
    for (uint32_t s = 0; self->tree && s < self->stripes.S; s++)
        sumtree_free(&self->tree[s]);
    free(self->tree);
    free(self->next_end);
    stripes_free(&self->stripes);
    *self = (units_t){0};
}

/* ---- priorities ------------------------------------------------------------------------------------------------------- */

static uint64_t s_slot(const units_t *self, uint64_t clock, uint32_t env, sumtree_t **tree)
{
    const uint64_t turn = clock / self->period;
    *tree = &self->tree[stripes_of(&self->stripes, turn, env)];
    return stripes_number(&self->stripes, turn, env) & ((*tree)->slots - 1);
}

/*  The number in its stripe of the first unit from this clock on. */
static uint64_t s_number(const units_t *self, uint32_t stripe, uint64_t clock)
{
    return stripes_first(&self->stripes, stripe, (clock + self->period - 1) / self->period);
}

uint64_t units_first(const units_t *self, uint32_t stripe)
{
    return s_number(self, stripe, past_oldest(self->past));
}

uint64_t units_of_slot(const units_t *self, uint32_t stripe, uint64_t first, uint64_t slot)
{
    const uint32_t N = self->past->cfg.N;
    const uint64_t number = first + ((slot - first) & (self->tree[stripe].slots - 1));
    const uint64_t unit = stripes_unit(&self->stripes, stripe, number); /* its clock is counted in periods */
    return self->period == 1 ? unit : unit / N * self->period * N + unit % N;
}

float units_priority(const units_t *self, uint64_t clock, uint32_t env)
{
    sumtree_t *tree;
    const uint64_t slot = s_slot(self, clock, env, &tree);
    return (float)sumtree_at(tree, slot);
}

void units_set(units_t *self, uint64_t clock, uint32_t env, float priority)
{
    sumtree_t *tree;
    const uint64_t slot = s_slot(self, clock, env, &tree);
    sumtree_put(tree, slot, (double)priority);
}

/*  Those of one stripe together: in a minibatch they stand side by side. */
void units_sum(units_t *self, const uint64_t *unit, uint32_t count)
{
    const uint32_t N = self->past->cfg.N;
    uint64_t slot[SUMMED];
    sumtree_t *tree = NULL;
    uint32_t slots = 0;
    for (uint32_t i = 0; i < count; i++) {
        sumtree_t *next;
        const uint64_t at = s_slot(self, unit[i] / N, (uint32_t)(unit[i] % N), &next);
        if (slots == SUMMED || (slots && next != tree)) {
            sumtree_refresh_these(tree, slot, slots);
            slots = 0;
        }
        tree = next;
        slot[slots++] = at;
    }
    if (slots)
        sumtree_refresh_these(tree, slot, slots);
}

/*  A run of clocks is a run of slots in every stripe. */
static void s_sum(units_t *self, uint64_t from, uint64_t to)
{
    for (uint32_t s = 0; s < self->stripes.S; s++) {
        const uint64_t first = s_number(self, s, from);
        sumtree_refresh(&self->tree[s], first, s_number(self, s, to) - first);
    }
}

void units_sum_all(units_t *self)
{
    s_sum(self, past_oldest(self->past), past_end(self->past));
}

/* ---- what lives ------------------------------------------------------------------------------------------------------- */

/*  Are the frames of its stack held? */
static bool s_seen(const units_t *self, const past_batch_t *batch, size_t at, uint64_t behind)
{
    const uint32_t shows = self->past->cfg.stack - 1, since = batch->since[at];
    return (batch->mark[at] & ROW_WHOLE) && behind >= (since < shows ? since : shows);
}

/*  One clock of the newest rows; next_end says where each env's episode ends from there on. */
static void s_add_clock(units_t *self, uint64_t clock, float priority)
{
    const uint32_t N = self->past->cfg.N, ahead = self->past->cfg.ahead;
    const bool reaches = past_end(self->past) - clock >= ahead;
    const uint64_t behind = clock - past_oldest(self->past);
    const past_place_t place = past_place(self->past, clock, 0);
    uint8_t *mark = place.in->mark + place.at;
    for (uint32_t e = 0; e < N; e++) {
        if (mark[e] & ROW_ENDS)
            self->next_end[e] = clock;
        const bool complete = reaches || self->next_end[e] - clock < ahead;
        if (!complete || (mark[e] & ROW_ALIVE) || !s_seen(self, place.in, place.at + e, behind))
            continue;
        mark[e] |= ROW_ALIVE;
        self->living++;
        units_set(self, clock, e, priority);
    }
}

static void s_add_rows(units_t *self, uint64_t from, float priority)
{
    const uint64_t end = past_end(self->past);
    for (uint32_t e = 0; e < self->past->cfg.N; e++)
        self->next_end[e] = UINT64_MAX;
    for (uint64_t clock = end; clock-- > from;)
        s_add_clock(self, clock, priority);
    s_sum(self, from, end);
}

/*  Does the env play on from that batch's first row, through all rows of a sequence? What broke behind them does no harm: their returns
 *  end there. */
static bool s_goes_on(const units_t *self, const past_batch_t *batch, uint32_t env)
{
    const replay_cfg_t *cfg = &self->past->cfg;
    const uint64_t last = batch->batch + (cfg->burn + cfg->length - 1) / cfg->T;
    for (uint64_t b = batch->batch + 1; b <= last; b++)
        if (past_batch(self->past, b)->broken[env])
            return false;
    return true;
}

/*  The sequences that begin with a batch, whose rows are all there. */
static void s_add_batch(units_t *self, uint64_t number, float priority)
{
    const past_batch_t *batch = past_batch(self->past, number);
    const uint64_t clock = number * self->past->cfg.T;
    for (uint32_t e = 0; e < self->past->cfg.N; e++) {
        if (!s_seen(self, batch, e, clock - past_oldest(self->past)) || !s_goes_on(self, batch, e))
            continue;
        batch->mark[e] |= ROW_ALIVE;
        self->living++;
        units_set(self, clock, e, priority);
    }
}

/*  From a batch on. */
static void s_add_sequences(units_t *self, uint64_t from, float priority)
{
    const uint64_t next = self->past->next, span = past_span(&self->past->cfg), T = self->past->cfg.T;
    uint64_t number = from;
    for (; next - number >= span; number++)
        s_add_batch(self, number, priority);
    s_sum(self, from * T, number * T);
}

static void s_add(units_t *self, uint64_t from, float priority)
{
    if (self->past->cfg.length)
        s_add_sequences(self, from / self->past->cfg.T, priority);
    else
        s_add_rows(self, from, priority);
}

/*  Rows before the newest batch that waited for it, with those of the batch. */
static uint64_t s_waited(const replay_cfg_t *cfg)
{
    return cfg->length ? past_span(cfg) * cfg->T : (uint64_t)cfg->T + cfg->ahead - 1;
}

void units_add(units_t *self, float priority)
{
    const uint64_t end = past_end(self->past), oldest = past_oldest(self->past), reach = s_waited(&self->past->cfg);
    s_add(self, end - oldest > reach ? end - reach : oldest, priority);
}

void units_add_all(units_t *self, float priority)
{
    s_add(self, past_oldest(self->past), priority);
}

/*  Rows of what stays that show a frame of what goes. */
static void s_drop_stacks(units_t *self, uint64_t oldest)
{
    const uint64_t end = past_end(self->past), to = oldest + self->past->cfg.stack - 1;
    for (uint64_t clock = oldest; clock < to && clock < end; clock++) {
        for (uint32_t e = 0; e < self->past->cfg.N; e++) {
            const past_place_t place = past_place(self->past, clock, e);
            if (!(place.in->mark[place.at] & ROW_ALIVE) || s_seen(self, place.in, place.at, clock - oldest))
                continue;
            place.in->mark[place.at] &= (uint8_t)~ROW_ALIVE;
            self->living--;
            units_set(self, clock, e, 0);
        }
    }
    s_sum(self, oldest, to < end ? to : end);
}

void units_drop(units_t *self)
{
    const past_batch_t *batch = past_batch(self->past, self->past->first);
    const size_t rows = (size_t)self->past->cfg.T * self->past->cfg.N;
    const uint64_t from = past_oldest(self->past), to = from + self->past->cfg.T;
    for (size_t i = 0; i < rows; i++)
        self->living -= (batch->mark[i] & ROW_ALIVE) != 0;
    for (uint32_t s = 0; s < self->stripes.S; s++) {
        const uint64_t first = s_number(self, s, from);
        sumtree_clear(&self->tree[s], first, s_number(self, s, to) - first);
    }
    if (self->past->cfg.stack > 1)
        s_drop_stacks(self, to);
}

/* ---- how far -------------------------------------------------------------------------------------------------------- */

bool units_complete(const units_t *self, past_place_t place)
{
    for (uint32_t i = 1;; i++, place = past_after(self->past, place)) {
        if ((place.in->mark[place.at] & ROW_ENDS) || i == self->past->cfg.ahead)
            return true;
        if (past_is_newest(self->past, place))
            return false;
    }
}

void units_reach(const units_t *self, past_place_t place, units_reach_t *out)
{
    const replay_cfg_t *cfg = &self->past->cfg;
    double ret = 0, weight = 1;
    for (uint32_t i = 0;; i++, place = past_after(self->past, place)) {
        const uint8_t ends = place.in->mark[place.at] & ROW_ENDS;
        float reward;
        memcpy(&reward, past_value(self->past, place, cfg->columns->reward), sizeof reward);
        ret += weight * (double)reward;
        weight *= cfg->gamma;
        if (!ends && i + 1 < cfg->ahead)
            continue;
        const bool over = ends & ROW_TERMINATED;
        *out = (units_reach_t){place, i + 1, ends, (float)ret, over ? 0 : (float)weight};
        return;
    }
}
