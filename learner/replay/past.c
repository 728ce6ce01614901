#include "learner/replay/past.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/limits.h"
#include "common/base/mem.h"
#include "learner/replay/places.h"

enum { LINE = 64 };

/* ---- sizes ---------------------------------------------------------------------------------------------------------- */

static void s_sizes(past_t *self)
{
    const tt_columns_t *columns = self->cfg.columns;
    const size_t rows = tt_mul(self->cfg.T, self->cfg.N);
    size_t block = tt_add(tt_align(tt_mul(5, self->cfg.N), LINE), tt_align(tt_mul(2, rows), LINE));
    for (uint32_t c = 0; c < columns->count; c++) {
        if (!past_stores(self, c))
            continue;
        self->row_bytes += columns->at[c].bytes;
        block = tt_add(block, tt_align(tt_mul(rows, columns->at[c].bytes), LINE));
        if (!past_keeps(self, c))
            continue;
        self->final_bytes += columns->at[c].bytes;
        self->record_at[c] = self->record;
        self->record = tt_align(self->record + columns->at[c].bytes, sizeof(uint64_t));
    }
    const size_t carry = tt_mul(tt_mul(self->cfg.N, self->cfg.carry), sizeof(float));
    self->batch_bytes = tt_add(tt_mul(rows, self->row_bytes), carry);
    self->block_bytes = tt_add(block, tt_align(carry, LINE));
    self->record = self->record ? self->record : sizeof(uint64_t);
}

static tt_status_t s_room(past_t *self)
{
    const uint64_t rows = (uint64_t)self->cfg.T * self->cfg.N;
    self->room = self->cfg.capacity / self->batch_bytes;
    if (!self->room)
        return tt_err(TT_CONFIG,
            "replay: a capacity of %" PRIu64 " bytes; one batch (%" PRIu32 " envs, %" PRIu32 " steps) takes %" PRIu64,
            self->cfg.capacity, self->cfg.N, self->cfg.T, self->batch_bytes);
    if (self->room > REPLAY_ROWS_MAX / rows)
        return tt_err(TT_CONFIG,
            "replay: a capacity of %" PRIu64 " bytes holds %" PRIu64 " batches of %" PRIu64 " rows; it can be %" PRIu64
            " rows in all",
            self->cfg.capacity, self->room, rows, REPLAY_ROWS_MAX);
    if (self->room < past_span(&self->cfg))
        return tt_err(TT_CONFIG,
            "replay: a capacity of %" PRIu64 " bytes holds %" PRIu64 " batches; a sequence of %" PRIu32 " and %" PRIu32
            " rows and the %" PRIu32 " ahead of them needs %" PRIu64,
            self->cfg.capacity, self->room, self->cfg.burn, self->cfg.length, self->cfg.ahead, past_span(&self->cfg));
    return TT_OK;
}

tt_status_t past_measure(past_t *self, const replay_cfg_t *cfg)
{
    *self = (past_t){.cfg = *cfg};
    const tt_columns_t *columns = cfg->columns;
    self->cfg.store |=
        (uint64_t)1 << columns->reward | (uint64_t)1 << columns->terminated | (uint64_t)1 << columns->truncated;
    s_sizes(self);
    TT_TRY(s_room(self));
    self->places = places_most(self);
    return TT_OK;
}

tt_status_t past_init(past_t *self, const replay_cfg_t *cfg)
{
    TT_TRY(past_measure(self, cfg));
    while (self->mask + 1 < self->room)
        self->mask = 2 * self->mask + 1;
    self->ring = tt_array0(self->mask + 1, sizeof(past_batch_t *));
    self->tip = tt_aligned0(tt_mul(cfg->N, self->record));
    self->held = tt_array0(cfg->N, 1);
    self->age = tt_array0(cfg->N, 1);
    return TT_OK;
}

static void s_batch_free(past_batch_t *batch)
{
    if (!batch)
        return;
    free(batch->block);
    free(batch->final_row);
    free(batch->final);
    free(batch);
}

void past_free(past_t *self)
{
    while (self->ring && self->first < self->next)
        past_evict(self);
    s_batch_free(self->spare);
    free(self->ring);
    free(self->tip);
    free(self->held);
    free(self->age);
    *self = (past_t){0};
}

/* ---- batches -------------------------------------------------------------------------------------------------------- */

static void s_map(const past_t *self, past_batch_t *batch)
{
    const tt_columns_t *columns = self->cfg.columns;
    const size_t rows = (size_t)self->cfg.T * self->cfg.N;
    uint8_t *at = batch->block;
    batch->age = (uint32_t *)(void *)at;
    batch->broken = at + 4 * (size_t)self->cfg.N;
    at += tt_align(5 * (size_t)self->cfg.N, LINE);
    batch->mark = at;
    batch->since = at + rows;
    at += tt_align(2 * rows, LINE);
    for (uint32_t c = 0; c < columns->count; c++) {
        if (!past_stores(self, c))
            continue;
        batch->column[c] = at;
        at += tt_align(rows * columns->at[c].bytes, LINE);
    }
    batch->carry = (float *)(void *)at;
}

/*  With some to spare: a batch is used again, and most have about as many. */
static void s_finals_room(past_t *self, past_batch_t *batch, uint32_t finals)
{
    if (finals <= batch->finals_room)
        return;
    const uint32_t room = finals + finals / 2;
    self->finals_room += room - batch->finals_room;
    batch->finals_room = room;
    batch->final_row = tt_realloc(batch->final_row, tt_mul(batch->finals_room, sizeof *batch->final_row));
    batch->final = tt_realloc(batch->final, tt_mul(batch->finals_room, self->record));
}

/*  Of a batch that is to come. */
static uint64_t s_place(const past_t *self)
{
    if (self->first == self->next)
        return 0;
    const past_batch_t *before = past_batch(self, self->next - 1);
    return places_after(self, before, (uint64_t)self->cfg.T * self->cfg.N + before->finals);
}

past_batch_t *past_push(past_t *self, uint64_t number, uint32_t finals)
{
    past_batch_t *batch = self->spare;
    self->spare = NULL;
    if (!batch) {
        batch = tt_new0(sizeof *batch);
        batch->block = tt_aligned0(self->block_bytes);
        s_map(self, batch);
    }
    batch->batch = number;
    batch->place = s_place(self);
    batch->finals = finals;
    s_finals_room(self, batch, finals);
    if (self->first == self->next) {
        self->first = number;
        memset(self->held, 0, self->cfg.N);
    }
    self->next = number + 1;
    self->ring[number & self->mask] = batch;
    self->finals += finals;
    self->bytes += self->batch_bytes + finals * self->final_bytes;
    return batch;
}

void past_evict(past_t *self)
{
    past_batch_t **slot = &self->ring[self->first & self->mask], *batch = *slot;
    *slot = NULL;
    self->first++;
    self->finals -= batch->finals;
    self->bytes -= self->batch_bytes + batch->finals * self->final_bytes;
    if (self->spare)
        self->finals_room -= self->spare->finals_room;
    s_batch_free(self->spare);
    self->spare = batch;
}

static int s_by_row(const void *key, const void *row)
{
    const uint32_t a = *(const uint32_t *)key, b = *(const uint32_t *)row;
    return (a > b) - (a < b);
}

uint32_t past_final_number(const past_batch_t *batch, size_t at)
{
    const uint32_t row = (uint32_t)at;
    const uint32_t *found = bsearch(&row, batch->final_row, batch->finals, sizeof row, s_by_row);
    TT_CHECK(found);
    return (uint32_t)(found - batch->final_row);
}

/* ---- what a batch must be --------------------------------------------------------------------------------------------- */

static tt_status_t s_check_envs(const past_t *self, const replay_part_t *part, uint32_t parts)
{
    uint32_t envs = 0;
    for (uint32_t i = 0; i < parts; i++) {
        const replay_part_t *a = &part[i];
        if (!a->count || a->first > a->E || a->count > a->E - a->first)
            return tt_err(TT_INVALID, "replay: part %" PRIu32 " has %" PRIu32 " envs from %" PRIu32 " on, of %" PRIu32,
                i, a->count, a->first, a->E);
        if (a->env != envs || a->count > self->cfg.N - envs)
            return tt_err(TT_INVALID,
                "replay: part %" PRIu32 " begins with env %" PRIu32 " and has %" PRIu32 "; env %" PRIu32 " of %" PRIu32
                " is due",
                i, a->env, a->count, envs, self->cfg.N);
        envs += a->count;
    }
    if (envs != self->cfg.N)
        return tt_err(TT_INVALID, "replay: a batch of %" PRIu32 " envs; there are %" PRIu32, envs, self->cfg.N);
    return TT_OK;
}

static bool s_final_is_ours(const replay_part_t *part, uint32_t k)
{
    return part->at->final_env[k] - part->first < part->count;
}

/*  Every truncation of the part has a final, in order, and nothing else has. */
static tt_status_t s_check_finals(const past_t *self, const replay_part_t *part)
{
    const uint8_t *truncated = part->at->column[self->cfg.columns->truncated];
    uint32_t k = 0;
    for (uint32_t t = 0; t < self->cfg.T; t++) {
        for (uint32_t e = part->first; e < part->first + part->count; e++) {
            if (!truncated[(size_t)t * part->E + e])
                continue;
            while (k < part->K && !s_final_is_ours(part, k))
                k++;
            if (k == part->K || part->at->final_t[k] != t || part->at->final_env[k] != e)
                return tt_err(TT_INVALID,
                    "replay: env %" PRIu32 " is truncated at step %" PRIu32 " without a final observation",
                    part->env + e - part->first, t);
            k++;
        }
    }
    for (; k < part->K; k++)
        if (s_final_is_ours(part, k))
            return tt_err(TT_INVALID,
                "replay: a final observation of env %" PRIu32 " that is not truncated at step %" PRIu32,
                part->env + part->at->final_env[k] - part->first, part->at->final_t[k]);
    return TT_OK;
}

tt_status_t past_check(const past_t *self, uint64_t batch, const replay_part_t *part, uint32_t parts)
{
    if (self->first < self->next && batch != self->next)
        return tt_err(TT_INVALID, "replay: batch %" PRIu64 " is due, not %" PRIu64, self->next, batch);
    if (batch > UINT64_MAX / 2 / ((uint64_t)self->cfg.T * self->cfg.N))
        return tt_err(TT_INVALID, "replay: batch %" PRIu64 " is beyond what can be counted", batch);
    TT_TRY(s_check_envs(self, part, parts));
    for (uint32_t i = 0; i < parts; i++)
        TT_TRY(s_check_finals(self, &part[i]));
    return TT_OK;
}

static uint32_t s_finals(const replay_part_t *part, uint32_t parts)
{
    uint32_t finals = 0;
    for (uint32_t i = 0; i < parts; i++)
        for (uint32_t k = 0; k < part[i].K; k++)
            finals += s_final_is_ours(&part[i], k);
    return finals;
}

uint64_t past_bytes(const past_t *self, const replay_part_t *part, uint32_t parts)
{
    return self->batch_bytes + s_finals(part, parts) * self->final_bytes;
}

/* ---- copying in ----------------------------------------------------------------------------------------------------- */

/*  `count` rows of a column, from one stride to another. */
static void s_copy(uint8_t *to, size_t to_stride, const uint8_t *from, size_t from_stride, size_t bytes, uint32_t times)
{
    if (to_stride == bytes && from_stride == bytes) {
        memcpy(to, from, bytes * times);
        return;
    }
    for (uint32_t i = 0; i < times; i++)
        memcpy(to + i * to_stride, from + i * from_stride, bytes);
}

static void s_copy_part(past_t *self, past_batch_t *batch, const replay_part_t *part)
{
    const tt_columns_t *columns = self->cfg.columns;
    for (uint32_t c = 0; c < columns->count; c++) {
        if (!past_stores(self, c))
            continue;
        const size_t bytes = columns->at[c].bytes;
        const uint8_t *from = (const uint8_t *)part->at->column[c] + part->first * bytes;
        s_copy(batch->column[c] + part->env * bytes, self->cfg.N * bytes, from, part->E * bytes, part->count * bytes,
            self->cfg.T);
        if (!past_keeps(self, c))
            continue;
        const uint8_t *last = (const uint8_t *)part->at->last[c] + part->first * bytes;
        for (uint32_t e = 0; e < part->count; e++)
            memcpy(self->tip + (part->env + e) * self->record + self->record_at[c], last + e * bytes, bytes);
    }
    memcpy(batch->age + part->env, part->at->age + part->first, part->count * sizeof(uint32_t));
    const size_t carry = self->cfg.carry;
    if (carry)
        memcpy(batch->carry + part->env * carry, part->at->carry + part->first * carry,
            part->count * carry * sizeof(float));
}

/*  A final of a batch on its way in: which part has it. */
typedef struct {
    uint32_t row, part, k;
} final_t;

static int s_by_final_row(const void *a, const void *b)
{
    const uint32_t x = ((const final_t *)a)->row, y = ((const final_t *)b)->row;
    return (x > y) - (x < y);
}

static void s_copy_final(past_t *self, uint8_t *record, const replay_part_t *part, uint32_t k)
{
    const tt_columns_t *columns = self->cfg.columns;
    memset(record, 0, self->record); /* between columns, too */
    for (uint32_t c = 0; c < columns->count; c++)
        if (past_keeps(self, c))
            memcpy(record + self->record_at[c], (const uint8_t *)part->at->final[c] + (size_t)k * columns->at[c].bytes,
                columns->at[c].bytes);
}

static void s_copy_finals(past_t *self, past_batch_t *batch, const replay_part_t *part, uint32_t parts)
{
    final_t *all = tt_array0(batch->finals, sizeof *all);
    uint32_t count = 0;
    for (uint32_t i = 0; i < parts; i++)
        for (uint32_t k = 0; k < part[i].K; k++)
            if (s_final_is_ours(&part[i], k))
                all[count++] = (final_t){
                    part[i].at->final_t[k] * self->cfg.N + part[i].env + part[i].at->final_env[k] - part[i].first, i,
                    k};
    if (parts > 1)
        qsort(all, count, sizeof *all, s_by_final_row);
    for (uint32_t i = 0; i < count; i++) {
        batch->final_row[i] = all[i].row;
        s_copy_final(self, batch->final + i * self->record, &part[all[i].part], all[i].k);
    }
    free(all);
}

void past_mark(past_t *self, past_batch_t *batch)
{
    const uint32_t N = self->cfg.N, shows = self->cfg.stack - 1;
    const uint8_t *terminated = batch->column[self->cfg.columns->terminated];
    const size_t rows = (size_t)self->cfg.T * N;
    memset(batch->mark, 0, rows);
    for (uint32_t i = 0; i < batch->finals; i++)
        batch->mark[batch->final_row[i]] = ROW_CUT;
    for (uint32_t e = 0; e < N; e++) {
        self->age[e] = batch->age[e] < SINCE_MAX ? (uint8_t)batch->age[e] : SINCE_MAX;
        self->held[e] = batch->broken[e] ? 0 : self->held[e];
    }
    for (size_t row = 0; row < rows; row += N) {
        for (uint32_t e = 0; e < N; e++) {
            const uint8_t age = self->age[e], held = self->held[e];
            const uint8_t ends = (uint8_t)(batch->mark[row + e] | (terminated[row + e] ? ROW_TERMINATED : 0));
            batch->mark[row + e] = (uint8_t)(ends | (held >= (age < shows ? age : shows) ? ROW_WHOLE : 0));
            batch->since[row + e] = age;
            self->age[e] = ends ? 0 : (uint8_t)(age + (age < SINCE_MAX));
            self->held[e] = ends ? 0 : (uint8_t)(held + (held < SINCE_MAX));
        }
    }
}

void past_cut(past_t *self, const uint8_t *broken)
{
    if (!broken || self->first == self->next)
        return;
    const uint32_t N = self->cfg.N, row0 = (self->cfg.T - 1) * N;
    past_batch_t *batch = past_batch(self, self->next - 1);
    const uint32_t before = batch->finals;
    for (uint32_t e = 0; e < N; e++)
        batch->finals += broken[e] && !(batch->mark[row0 + e] & ROW_ENDS);
    const uint32_t added = batch->finals - before;
    s_finals_room(self, batch, batch->finals);
    uint32_t to = batch->finals, from = before; /* from the back, so that both lists stay in order in one array */
    for (uint32_t e = N; e-- > 0 && to > from;) {
        const bool cut = broken[e] && !(batch->mark[row0 + e] & ROW_ENDS);
        while (to > from && from && batch->final_row[from - 1] > row0 + e) {
            batch->final_row[--to] = batch->final_row[--from];
            memcpy(batch->final + to * self->record, batch->final + from * self->record, self->record);
        }
        if (!cut)
            continue;
        batch->final_row[--to] = row0 + e;
        memcpy(batch->final + to * self->record, self->tip + e * self->record, self->record);
        batch->mark[row0 + e] |= ROW_CUT;
    }
    self->finals += added;
    self->bytes += added * self->final_bytes;
}

void past_add(past_t *self, uint64_t number, const replay_part_t *part, uint32_t parts, const uint8_t *broken)
{
    past_batch_t *batch = past_push(self, number, s_finals(part, parts));
    if (broken)
        memcpy(batch->broken, broken, self->cfg.N);
    else
        memset(batch->broken, 0, self->cfg.N);
    for (uint32_t i = 0; i < parts; i++)
        s_copy_part(self, batch, &part[i]);
    s_copy_finals(self, batch, part, parts);
    past_mark(self, batch);
}

/* ---- the same again --------------------------------------------------------------------------------------------------- */

static bool s_same(const void *a, const void *b, size_t size)
{
    return size == 0 || memcmp(a, b, size) == 0; /* else there may be no arrays */
}

static bool s_same_columns(const past_t *self, const past_batch_t *a, const past_batch_t *b)
{
    const size_t rows = (size_t)self->cfg.T * self->cfg.N;
    bool same = true;
    for (uint32_t c = 0; c < self->cfg.columns->count; c++)
        if (past_stores(self, c))
            same = same && s_same(a->column[c], b->column[c], rows * self->cfg.columns->at[c].bytes);
    return same;
}

/*  Marks follow from these. */
static bool s_same_batch(const past_t *self, const past_batch_t *a, const past_batch_t *b)
{
    const size_t N = self->cfg.N;
    return a->finals == b->finals && s_same(a->broken, b->broken, N) && s_same(a->age, b->age, N * sizeof *a->age) &&
           s_same(a->carry, b->carry, N * self->cfg.carry * sizeof *a->carry) && s_same_columns(self, a, b) &&
           s_same(a->final_row, b->final_row, a->finals * sizeof *a->final_row) &&
           s_same(a->final, b->final, a->finals * self->record);
}

bool past_has(const past_t *self, uint64_t batch, const replay_part_t *part, uint32_t parts, const uint8_t *broken)
{
    if (self->first == self->next || self->next != batch + 1)
        return false;
    past_t alone;
    const tt_status_t again = past_init(&alone, &self->cfg);
    TT_CHECK(again == TT_OK); /* as the first time */
    bool same = past_check(&alone, batch, part, parts) == TT_OK;
    if (same) {
        past_add(&alone, batch, part, parts, broken);
        same = s_same_batch(self, past_batch(self, batch), past_batch(&alone, batch)) &&
               s_same(self->tip, alone.tip, self->cfg.N * self->record);
    }
    past_free(&alone);
    return same;
}
