#include "learner/sequences.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"

void sequences_init(sequences_t *self, const replay_cfg_t *cfg, uint32_t units)
{
    *self = (sequences_t){.envs = cfg->N,
        .carries = cfg->carry,
        .length = cfg->length,
        .burn = cfg->burn,
        .ahead = cfg->ahead,
        .frames = cfg->burn + cfg->length + cfg->ahead,
        .units = units};
    const size_t rows = tt_mul(self->frames, units);
    self->row = tt_array0(rows, sizeof *self->row);
    self->begins = tt_array0(rows, sizeof *self->begins);
    self->final_of = tt_array0(rows, sizeof *self->final_of);
    self->carry = tt_array0(tt_mul(units, self->carries), sizeof *self->carry);
    self->next = tt_array0(tt_mul(self->length, units), sizeof *self->next);
}

void sequences_free(sequences_t *self)
{
    free(self->row);
    free(self->begins);
    free(self->final_of);
    free(self->carry);
    free(self->next);
    free(self->final_at);
    free(self->final);
    *self = (sequences_t){0};
}

/*  What came after the newest row may be a unit's last frame; nothing goes on from there, so whether it begins an episode is not asked. */
static void s_read_unit(sequences_t *self, const replay_t *replay, uint64_t unit, uint32_t u)
{
    for (uint32_t k = 0; k < self->frames; k++) {
        const uint32_t at = sequences_at(self, k, u);
        self->row[at] = unit + (uint64_t)k * self->envs;
        self->begins[at] = k + 1 < self->frames && replay_begins(replay, self->row[at]);
    }
    if (self->carries)
        memcpy(self->carry + (size_t)u * self->carries, replay_carried(replay, unit), self->carries * sizeof(float));
}

/*  Which finals are read. */
static void s_mark_finals(sequences_t *self, const replay_sample_t *sample)
{
    memset(self->final_of, 0, (size_t)sequences_rows(self) * sizeof *self->final_of);
    for (uint32_t t = 0; t < self->length; t++)
        for (uint32_t u = self->lo; u < self->hi; u++) {
            const uint32_t next = sample->next[(size_t)t * self->units + u];
            if (next & REPLAY_FINAL_OF)
                self->final_of[(size_t)(next & ~REPLAY_FINAL_OF) * self->units + u] = 1;
        }
}

static void s_add_final(sequences_t *self, uint32_t k, uint32_t unit, uint64_t row)
{
    if (self->finals == self->final_room) {
        self->final_room = 2 * self->final_room + 16;
        self->final_at = tt_realloc(self->final_at, tt_mul(self->final_room, sizeof *self->final_at));
        self->final = tt_realloc(self->final, tt_mul(self->final_room, sizeof *self->final));
    }
    self->final_at[self->finals] = sequences_at(self, k, unit);
    self->final[self->finals++] = row;
    self->final_of[(size_t)k * self->units + unit] = self->finals;
}

/*  In the order of frames, and of units: a walk comes by them in that order. */
static void s_list_finals(sequences_t *self, const replay_sample_t *sample)
{
    self->finals = 0;
    for (uint32_t k = 0; k < self->frames; k++)
        for (uint32_t u = self->lo; u < self->hi; u++)
            if (self->final_of[(size_t)k * self->units + u])
                s_add_final(self, k, u, sample->unit[u] + (uint64_t)k * self->envs);
}

static void s_find_next(sequences_t *self, const replay_sample_t *sample)
{
    for (uint32_t t = 0; t < self->length; t++)
        for (uint32_t u = self->lo; u < self->hi; u++) {
            const size_t i = (size_t)t * self->units + u;
            const uint32_t k = sample->next[i] & ~REPLAY_FINAL_OF;
            self->next[i] = sample->next[i] & REPLAY_FINAL_OF
                                ? sequences_rows(self) + self->final_of[(size_t)k * self->units + u] - 1
                                : sequences_at(self, k, u);
        }
}

void sequences_read(sequences_t *self, const replay_t *replay, const replay_sample_t *sample, uint32_t lo, uint32_t hi)
{
    TT_CHECK(sample->units == self->units && lo <= hi && hi <= self->units);
    self->lo = lo;
    self->hi = hi;
    for (uint32_t u = lo; u < hi; u++)
        s_read_unit(self, replay, sample->unit[u], u);
    s_mark_finals(self, sample);
    s_list_finals(self, sample);
    s_find_next(self, sample);
}
