#include "collector/parts.h"
#include <stdlib.h>
#include <string.h>
#include "collector/frames.h"
#include "common/base/mem.h"

size_t parts_state_bytes(const parts_t *self)
{
    return self->cfg.env_bytes ? self->cfg.env_bytes + carry_bytes(self->cfg.carry) : 0;
}

static tt_segment_shape_t s_shape(const parts_t *self, uint32_t envs, uint32_t finals)
{
    return (tt_segment_shape_t){
        .columns = self->cfg.columns, .T = self->cfg.T, .E = envs, .K = finals, .S = (uint32_t)parts_state_bytes(self)};
}

tt_segment_shape_t parts_shape(const parts_t *self, const part_t *part)
{
    return s_shape(self, part->E, part->finals.count);
}

/*  Where a step's rows wait for their places. */
static tt_status_t s_stage(parts_t *self)
{
    const tt_segment_shape_t step = {.columns = self->cfg.columns, .T = 1, .E = self->cfg.E};
    size_t bytes;
    TT_TRY(tt_segment_size(&step, &bytes));
    self->staged_block = tt_aligned0(bytes);
    tt_segment_map(&step, self->staged_block, &self->staged);
    return TT_OK;
}

tt_status_t parts_init(parts_t *self, const parts_cfg_t *cfg)
{
    *self = (parts_t){.cfg = *cfg, .count = tt_segment_parts(cfg->E, cfg->most)};
    self->part = tt_array0(self->count, sizeof *self->part);
    for (uint32_t p = 0; p < self->count; p++) {
        part_t *part = &self->part[p];
        tt_segment_part(cfg->E, cfg->most, p, &part->first, &part->E);
        self->widest = part->E > self->widest ? part->E : self->widest;
    }
    return self->count > 1 ? s_stage(self) : TT_OK;
}

void parts_free(parts_t *self)
{
    parts_abandon(self);
    for (uint32_t p = 0; p < self->count; p++)
        finals_free(&self->part[p].finals);
    free(self->part);
    free(self->staged_block);
    *self = (parts_t){0};
}

bool parts_in_hand(const parts_t *self)
{
    return self->part[0].block != NULL; /* they are taken together, and given away together */
}

void parts_abandon(parts_t *self)
{
    for (uint32_t p = 0; p < self->count; p++) {
        if (self->part[p].block)
            blocks_give(self->cfg.blocks, self->part[p].block);
        self->part[p].block = NULL;
    }
}

/* ---- the beginning of a batch ------------------------------------------------------------------------------------ */

/*  A block with room for so many finals, as large for each part, so that any may have it next; what lay before the finals in the old
 *  one is kept. */
static void s_take_block(parts_t *self, part_t *part, uint32_t finals)
{
    size_t size = 0;
    const tt_segment_shape_t shape = s_shape(self, part->E, 0), widest = s_shape(self, self->widest, finals);
    const tt_status_t fits = tt_segment_size(&widest, &size);
    TT_CHECK(fits == TT_OK); /* the caller checked it for the job */
    void *block = blocks_take(self->cfg.blocks, size);
    tt_segment_t at;
    tt_segment_map(&shape, block, &at);
    if (part->block) {
        memcpy(block, part->block, (size_t)((char *)at.final_t - (char *)block));
        blocks_give(self->cfg.blocks, part->block);
    }
    part->block = block;
    part->at = at;
}

/*  Frames that the learners need of the batch before; zeros where they are another episode's. */
static void s_put_before(parts_t *self, part_t *part)
{
    const tt_columns_t *columns = self->cfg.columns;
    const tt_vec_t *vec = self->cfg.vec;
    const uint32_t before = columns->before;
    for (uint32_t k = 1; k <= before; k++)
        for (uint32_t i = 0; i < part->E; i++) {
            void *row[TT_COLUMNS_MAX];
            tt_vec_before(vec, part->first + i, k, row);
            for (uint32_t c = 0; c < columns->obs_count; c++) {
                const size_t bytes = columns->at[c].bytes;
                char *to = (char *)part->at.before[c] + ((size_t)(before - k) * part->E + i) * bytes;
                if (tt_vec_age(vec, part->first + i) < k)
                    memset(to, 0, bytes);
                else
                    memcpy(to, row[c], bytes);
            }
        }
}

static void s_put_carry(const parts_t *self, part_t *part)
{
    const carry_t *carry = self->cfg.carry;
    if (part->at.carry)
        memcpy(part->at.carry, carry_row(carry, part->first), part->E * carry_bytes(carry));
}

void parts_begin(parts_t *self)
{
    for (uint32_t p = 0; p < self->count; p++) {
        part_t *part = &self->part[p];
        part->finals.count = 0;
        if (!part->block)
            s_take_block(self, part, self->block_finals);
        for (uint32_t i = 0; i < part->E; i++)
            part->at.age[i] = tt_vec_age(self->cfg.vec, part->first + i);
        s_put_before(self, part);
        s_put_carry(self, part);
    }
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

/*  The envs that a part and a run have in common: *first of the range; how many. */
static uint32_t s_common(const part_t *part, const run_t *run, uint32_t *first)
{
    const uint32_t part_end = part->first + part->E, run_end = run->first + run->E;
    const uint32_t end = part_end < run_end ? part_end : run_end;
    *first = part->first > run->first ? part->first : run->first;
    return end > *first ? end - *first : 0;
}

/*  A run's rows of a column, of which there is one for each env of the range, to the places of its step. */
static void s_spread(const parts_t *self, const run_t *run, uint32_t column, const void *rows)
{
    const size_t bytes = self->cfg.columns->at[column].bytes;
    for (uint32_t p = 0; p < self->count; p++) {
        const part_t *part = &self->part[p];
        uint32_t first;
        const uint32_t count = s_common(part, run, &first);
        char *to = (char *)parts_place(self, part, run->t, column);
        if (count)
            memcpy(to + (first - part->first) * bytes, (const char *)rows + first * bytes, count * bytes);
    }
}

void parts_put_seen(const parts_t *self, const run_t *run, void *const *seen)
{
    for (uint32_t c = 0; c < self->cfg.columns->action; c++)
        s_spread(self, run, c, seen[c]);
}

static void s_add_final(const parts_t *self, part_t *part, uint32_t t, uint32_t env)
{
    const void *row[TT_COLUMNS_MAX];
    for (uint32_t c = 0; c < self->cfg.columns->action; c++)
        row[c] = tt_vec_final(self->cfg.vec, part->first + env, c);
    finals_add(&part->finals, self->cfg.columns, t, env, row, carry_row(self->cfg.carry, part->first + env));
}

static void s_put_finals(const parts_t *self, part_t *part, const run_t *run)
{
    uint32_t first;
    const uint32_t count = s_common(part, run, &first), from = first - part->first;
    const uint8_t *truncated = parts_place(self, part, run->t, self->cfg.columns->truncated);
    if (count && memchr(truncated + from, 1, count))
        for (uint32_t i = from; i < from + count; i++)
            if (truncated[i])
                s_add_final(self, part, run->t, i);
}

/*  Of all parts: where they are several, flags are in one row of all envs, too. */
static void s_end_episodes(const parts_t *self, const run_t *run)
{
    const tt_columns_t *columns = self->cfg.columns;
    const uint8_t *terminated = parts_row(self, run->t, columns->terminated);
    const uint8_t *truncated = parts_row(self, run->t, columns->truncated);
    carry_end(self->cfg.carry, run->first, run->E, terminated + run->first, truncated + run->first);
}

void parts_put_step(parts_t *self, const run_t *run)
{
    const tt_columns_t *columns = self->cfg.columns;
    for (uint32_t c = columns->action; self->count > 1 && c < columns->count; c++) /* one part: they are there */
        s_spread(self, run, c, self->staged.column[c]);
    for (uint32_t p = 0; p < self->count; p++)
        s_put_finals(self, &self->part[p], run);
    if (self->cfg.carry->at)
        s_end_episodes(self, run);
}

/* ---- the end of a batch ------------------------------------------------------------------------------------------ */

/*  A little more than there are now, so that a block is rarely taken anew; never more than there can be. */
static uint32_t s_room_for(const parts_t *self, uint32_t finals)
{
    const uint64_t most = (uint64_t)self->cfg.T * self->widest, room = (uint64_t)finals + finals / 4 + 4;
    return (uint32_t)(room < most ? room : most);
}

/*  The blocks get as much room as the most finals of one of them need. */
static void s_make_room(parts_t *self)
{
    uint32_t most = 0;
    for (uint32_t p = 0; p < self->count; p++)
        most = self->part[p].finals.count > most ? self->part[p].finals.count : most;
    if (most <= self->block_finals)
        return;
    self->block_finals = s_room_for(self, most);
    for (uint32_t p = 0; p < self->count; p++)
        s_take_block(self, &self->part[p], self->block_finals);
}

void parts_put_ends(parts_t *self)
{
    const tt_columns_t *columns = self->cfg.columns;
    void *seen[TT_COLUMNS_MAX];
    frames_current(columns, self->cfg.vec, seen);
    s_make_room(self);
    for (uint32_t p = 0; p < self->count; p++) {
        part_t *part = &self->part[p];
        const tt_segment_shape_t shape = parts_shape(self, part);
        tt_segment_map(&shape, part->block, &part->at);
        for (uint32_t c = 0; c < columns->action; c++) {
            const size_t bytes = columns->at[c].bytes;
            memcpy(part->at.last[c], (const char *)seen[c] + part->first * bytes, part->E * bytes);
        }
        finals_put(&part->finals, columns, &part->at);
    }
}

float *parts_last_value(const parts_t *self)
{
    return self->count == 1 ? self->part[0].at.last_value : self->staged.last_value;
}

void parts_put_last_value(const parts_t *self)
{
    const float *value = self->staged.last_value;
    for (uint32_t p = 0; self->count > 1 && p < self->count; p++)
        memcpy(self->part[p].at.last_value, value + self->part[p].first, self->part[p].E * sizeof *value);
}

static tt_status_t s_put_state(const parts_t *self, uint32_t i, uint8_t *to)
{
    const carry_t *carry = self->cfg.carry;
    TT_TRY(tt_vec_save(self->cfg.vec, i, to));
    if (carry_bytes(carry))
        memcpy(to + self->cfg.env_bytes, carry_row(carry, i), carry_bytes(carry));
    return TT_OK;
}

tt_status_t parts_put_states(const parts_t *self)
{
    const size_t bytes = parts_state_bytes(self);
    for (uint32_t p = 0; bytes && p < self->count; p++)
        for (uint32_t i = 0; i < self->part[p].E; i++)
            TT_TRY(s_put_state(self, self->part[p].first + i, self->part[p].at.states + i * bytes));
    return TT_OK;
}

void parts_wrap(parts_t *self, rollout_segment_t *out)
{
    for (uint32_t p = 0; p < self->count; p++) {
        part_t *part = &self->part[p];
        size_t size = 0;
        out[p] = (rollout_segment_t){.first = part->first, .shape = parts_shape(self, part)};
        const tt_status_t fits = tt_segment_size(&out[p].shape, &size);
        TT_CHECK(fits == TT_OK);
        blocks_wrap(self->cfg.blocks, part->block, size, &out[p].frame);
        part->block = NULL;
    }
}
