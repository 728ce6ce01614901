/*  Back from a block and pieces (block.h): nothing in them is believed. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include "common/base/mem.h"
#include "learner/replay/block.h"

typedef struct {
    const uint8_t *at;
    size_t left;
} reader_t;

static tt_status_t s_take(reader_t *in, void *out, uint64_t size)
{
    if (size > in->left)
        return tt_err(TT_DATA, "replay: the block ends too early");
    if (size) /* else there may be no array */
        memcpy(out, in->at, size);
    in->at += size;
    in->left -= size;
    return TT_OK;
}

static tt_status_t s_pass(reader_t *in, uint64_t size)
{
    if (size > in->left)
        return tt_err(TT_DATA, "replay: the block ends too early");
    in->at += size;
    in->left -= size;
    return TT_OK;
}

static tt_status_t s_check_setup(const block_head_t *head, const replay_cfg_t *cfg)
{
    const block_head_t ours = block_setup(cfg);
    if (memcmp(head->magic, ours.magic, sizeof ours.magic) != 0)
        return tt_err(TT_DATA, "replay: this is no saved replay");
#define X(name, what, value)     \
    if (head->name != ours.name) \
        return tt_err(           \
            TT_DATA, "replay: saved with another setup: " what " %" PRIu64 ", here %" PRIu64, head->name, ours.name);
    BLOCK_SETUP_LONGER(X) /* before the version, which only says whether there are any */
    BLOCK_SETUP(X)
#undef X
    return TT_OK;
}

static tt_status_t s_check_state(const block_head_t *head, const past_t *past, uint32_t lates)
{
    const uint64_t most = UINT64_MAX / 2 / ((uint64_t)past->cfg.T * past->cfg.N);
    if (head->first > head->from || head->from > head->next || head->next > most ||
        head->next - head->first > past->room)
        return tt_err(TT_DATA, "replay: batches %" PRIu64 " to %" PRIu64 "; there is room for %" PRIu64, head->first,
            head->next, past->room);
    if (head->late > lates || head->total >> 44)
        return tt_err(TT_DATA, "replay: %" PRIu64 " minibatches under way at step %" PRIu64, head->late, head->total);
    if (!(head->max_priority > 0 && head->max_priority <= (double)__FLT_MAX__))
        return tt_err(TT_DATA, "replay: a greatest priority of %g", head->max_priority);
    return TT_OK;
}

static bool s_flags_ok(const uint8_t *at, uint64_t count)
{
    uint8_t all = 0;
    for (uint64_t i = 0; i < count; i++)
        all |= at[i];
    return all <= 1;
}

/*  Choices become positions in a one-hot vector: what cannot be must not get in. */
static tt_status_t s_check_column(const past_t *past, uint32_t c, const uint8_t *at, uint64_t count, uint64_t batch)
{
    const tt_columns_t *columns = past->cfg.columns;
    if ((c == columns->terminated || c == columns->truncated) && !s_flags_ok(at, count))
        return tt_err(TT_DATA, "replay: batch %" PRIu64 ": %s is neither 0 nor 1", batch, columns->at[c].name);
    if (tt_segment_check_column(columns, c, at, count) != TT_OK)
        return tt_err_wrap(TT_DATA, "replay: batch %" PRIu64 ": %s", batch, columns->at[c].name);
    return TT_OK;
}

static tt_status_t s_check_records(const past_t *past, const uint8_t *at, uint64_t count, uint64_t batch)
{
    for (uint64_t i = 0; i < count; i++)
        for (uint32_t c = 0; c < past->cfg.columns->count; c++)
            if (past_keeps(past, c))
                TT_TRY(s_check_column(past, c, at + i * past->record + past->record_at[c], 1, batch));
    return TT_OK;
}

/*  Finals ascend; one for each truncation, and of the last step for envs that broke, which the newest batch has none of. */
static tt_status_t s_check_finals(const past_t *past, const past_batch_t *batch, bool newest)
{
    const uint32_t N = past->cfg.N, count = N * past->cfg.T;
    const uint8_t *terminated = batch->column[past->cfg.columns->terminated];
    const uint8_t *truncated = batch->column[past->cfg.columns->truncated];
    uint32_t cut = 0;
    for (uint32_t i = 0; i < batch->finals; i++) {
        const uint32_t row = batch->final_row[i];
        const bool may = row < count && (truncated[row] || (row >= count - N && !newest && !terminated[row]));
        if (!may || (i && row <= batch->final_row[i - 1]))
            return tt_err(
                TT_DATA, "replay: batch %" PRIu64 " has a final of row %" PRIu32 " that cannot be", batch->batch, row);
        cut += truncated[row];
    }
    for (uint32_t row = 0; row < count; row++)
        cut -= truncated[row];
    return cut ? tt_err(TT_DATA, "replay: batch %" PRIu64 " has truncations without a final", batch->batch) : TT_OK;
}

static tt_status_t s_load_carry(const past_t *past, const past_batch_t *batch, reader_t *in)
{
    const uint64_t count = (uint64_t)past->cfg.N * past->cfg.carry;
    TT_TRY(s_take(in, batch->carry, count * sizeof *batch->carry));
    for (uint64_t i = 0; i < count; i++)
        if (!isfinite(batch->carry[i]))
            return tt_err(TT_DATA, "replay: batch %" PRIu64 ": env %" PRIu64 " carries %g", batch->batch,
                i / past->cfg.carry, (double)batch->carry[i]);
    return TT_OK;
}

static tt_status_t s_load_columns(const past_t *past, const past_batch_t *batch, reader_t *in)
{
    const uint64_t count = (uint64_t)past->cfg.T * past->cfg.N;
    for (uint32_t c = 0; c < past->cfg.columns->count; c++) {
        if (!past_stores(past, c))
            continue;
        TT_TRY(s_take(in, batch->column[c], count * past->cfg.columns->at[c].bytes));
        TT_TRY(s_check_column(past, c, batch->column[c], count, batch->batch));
    }
    return TT_OK;
}

static tt_status_t s_load_finals(past_t *past, past_batch_t *batch, bool newest, reader_t *in)
{
    TT_TRY(s_take(in, batch->final_row, batch->finals * sizeof *batch->final_row));
    TT_TRY(s_take(in, batch->final, batch->finals * past->record));
    TT_TRY(s_check_finals(past, batch, newest));
    return s_check_records(past, batch->final, batch->finals, batch->batch);
}

/*  What broke has ended before: else two episodes would be one. */
static tt_status_t s_check_broken(const past_t *past, const past_batch_t *batch)
{
    const uint32_t N = past->cfg.N;
    if (batch->batch == past->first)
        return TT_OK;
    const uint8_t *before = past_batch(past, batch->batch - 1)->mark + (size_t)(past->cfg.T - 1) * N;
    for (uint32_t e = 0; e < N; e++)
        if (batch->broken[e] && !(before[e] & ROW_ENDS))
            return tt_err(TT_DATA, "replay: env %" PRIu32 " broke before batch %" PRIu64 " and has no final there", e,
                batch->batch);
    return TT_OK;
}

/*  As insertion does it, so that a batch that was evicted there while it was on its way is evicted here too. */
static void s_evict(past_t *past, uint64_t finals)
{
    const uint64_t bytes = past->batch_bytes + finals * past->final_bytes;
    while (past->first < past->next && past->bytes + bytes > past->cfg.capacity)
        past_evict(past);
}

/*  Batches before `least` have been evicted since they were written, and are passed over. */
static tt_status_t s_load_batch(past_t *past, uint64_t number, uint64_t least, bool newest, reader_t *in)
{
    uint64_t said[2] = {0}; /* number, finals */
    TT_TRY(s_take(in, said, sizeof said));
    if (said[0] != number)
        return tt_err(TT_DATA, "replay: batch %" PRIu64 " where %" PRIu64 " belongs", said[0], number);
    if (said[1] > (uint64_t)past->cfg.T * past->cfg.N || said[1] > in->left / past->record)
        return tt_err(TT_DATA, "replay: batch %" PRIu64 " has %" PRIu64 " finals", number, said[1]);
    if (number < least)
        return s_pass(in, block_batch_size(past, said[1]) - sizeof said);
    s_evict(past, said[1]);
    past_batch_t *batch = past_push(past, number, (uint32_t)said[1]);
    TT_TRY(s_take(in, batch->broken, past->cfg.N));
    TT_TRY(s_take(in, batch->age, past->cfg.N * sizeof *batch->age));
    if (!s_flags_ok(batch->broken, past->cfg.N))
        return tt_err(TT_DATA, "replay: batch %" PRIu64 ": an env is broken, or it is not", number);
    TT_TRY(s_load_carry(past, batch, in));
    TT_TRY(s_load_columns(past, batch, in));
    TT_TRY(s_load_finals(past, batch, newest, in));
    past_mark(past, batch);
    return s_check_broken(past, batch);
}

static tt_status_t s_load_priorities(replay_t *self, reader_t *in)
{
    const past_t *past = &self->past;
    for (uint64_t clock = past_oldest(past); clock < past_end(past); clock += self->units.period) {
        for (uint32_t e = 0; e < past->cfg.N; e++) {
            float p = 0;
            TT_TRY(s_take(in, &p, sizeof p));
            const bool lives = units_lives(&self->units, clock, e);
            if (!(lives ? p > 0 && p <= self->max_priority : p == 0) || (replay_uniform(self) && lives && p != 1))
                return tt_err(
                    TT_DATA, "replay: env %" PRIu32 ", clock %" PRIu64 " has the priority %g", e, clock, (double)p);
            units_set(&self->units, clock, e, p);
        }
    }
    units_sum_all(&self->units);
    return TT_OK;
}

static tt_status_t s_load_late(replay_t *self, reader_t *in)
{
    uint64_t numbers[2] = {0}; /* total, units */
    TT_TRY(s_take(in, numbers, sizeof numbers));
    if (numbers[0] > self->total || self->total - numbers[0] >= self->lates || !numbers[1] ||
        numbers[1] > REPLAY_UNITS_MAX || numbers[1] > in->left / 12 || self->late[numbers[0] % self->lates].units)
        return tt_err(TT_DATA, "replay: %" PRIu64 " units under way of step %" PRIu64, numbers[1], numbers[0]);
    replay_late_t *late = replay_late(self, numbers[0], (uint32_t)numbers[1]);
    TT_TRY(s_take(in, late->unit, late->units * sizeof *late->unit));
    TT_TRY(s_take(in, late->p, late->units * sizeof *late->p));
    for (uint32_t i = 0; i < late->units; i++)
        if (!(late->p[i] > 0) || !isfinite(late->p[i]))
            return tt_err(TT_DATA, "replay: step %" PRIu64 " gave a priority of %g", late->total, (double)late->p[i]);
    late->given = true;
    return TT_OK;
}

/* ---- pieces ----------------------------------------------------------------------------------------------------------- */

struct replay_warm {
    replay_t *replay; /* its batches alone: which units live, their priorities and sums follow from the block */
    uint64_t least;   /* batches before it are evicted */
    uint64_t next;
    bool begun;
};

void replay_warm_new(replay_warm_t **self_p, const replay_t *like)
{
    replay_warm_t *self = tt_new0(sizeof *self);
    const tt_status_t again = replay_new(&self->replay, &like->past.cfg);
    TT_CHECK(again == TT_OK); /* as that one was */
    *self_p = self;
}

void replay_warm_destroy(replay_warm_t **self_p)
{
    if (!*self_p)
        return;
    replay_destroy(&(*self_p)->replay);
    free(*self_p);
    *self_p = NULL;
}

uint64_t replay_warm_next(const replay_warm_t *self)
{
    return self->next;
}

void replay_warm_skip(replay_warm_t *self, uint64_t oldest)
{
    past_t *past = &self->replay->past;
    while (past->first < past->next && past->first < oldest)
        past_evict(past);
    self->least = oldest > self->least ? oldest : self->least;
    if (self->next >= oldest)
        return;
    self->next = oldest;
    self->begun = false; /* nothing is held: what comes next need not follow */
}

tt_status_t replay_warm_add(replay_warm_t *self, const replay_piece_t *piece)
{
    past_t *past = &self->replay->past;
    const uint64_t most = UINT64_MAX / 2 / ((uint64_t)past->cfg.T * past->cfg.N);
    if (piece->first >= piece->next || piece->next > most || (self->begun && piece->first != self->next))
        return tt_err(TT_DATA, "replay: a piece of batches %" PRIu64 " to %" PRIu64 " where %" PRIu64 " belongs",
            piece->first, piece->next, self->next);
    reader_t in = {piece->bytes, piece->size};
    for (uint64_t b = piece->first; b < piece->next; b++)
        TT_TRY(s_load_batch(past, b, self->least, false, &in));
    if (in.left)
        return tt_err(TT_DATA, "replay: a piece has %zu bytes too many", in.left);
    self->next = piece->next;
    self->begun = true;
    return TT_OK;
}

/* ---- the block -------------------------------------------------------------------------------------------------------- */

static tt_status_t s_check_seal(const void *bytes, size_t size)
{
    uint8_t seal[BLOCK_SEAL];
    if (size < BLOCK_HEAD + BLOCK_SEAL || memcmp(bytes, BLOCK_MAGIC, sizeof BLOCK_MAGIC - 1) != 0)
        return tt_err(TT_DATA, "replay: this is no saved replay");
    crypto_hash_sha256(seal, bytes, size - BLOCK_SEAL);
    if (memcmp(seal, (const uint8_t *)bytes + size - BLOCK_SEAL, BLOCK_SEAL) != 0)
        return tt_err(TT_DATA, "replay: the block is damaged: it is not what its checksum says");
    return TT_OK;
}

static tt_status_t s_open(const replay_t *self, const void *bytes, size_t size, block_head_t *head, reader_t *in)
{
    TT_TRY(s_check_seal(bytes, size));
    *in = (reader_t){bytes, size - BLOCK_SEAL};
    *head = (block_head_t){.magic = {0}};
    TT_TRY(s_take(in, head, BLOCK_HEAD));
    TT_TRY(s_take(in, (uint8_t *)head + BLOCK_HEAD, block_head_size(head) - BLOCK_HEAD));
    TT_TRY(s_check_setup(head, &self->past.cfg));
    return s_check_state(head, &self->past, self->lates);
}

/*  The batches that are in no piece, and with them all are here. */
static tt_status_t s_load_batches(past_t *past, const block_head_t *head, reader_t *in)
{
    for (uint64_t b = head->from; b < head->next; b++)
        TT_TRY(s_load_batch(past, b, head->first, b + 1 == head->next, in));
    TT_TRY(s_take(in, past->tip, past->cfg.N * past->record));
    if (head->first == head->next) { /* there is none yet */
        past->first = past->next = head->next;
        return TT_OK;
    }
    if (past->first != head->first)
        return tt_err(
            TT_DATA, "replay: batches %" PRIu64 " to %" PRIu64 " are more than the capacity", head->first, head->next);
    return s_check_records(past, past->tip, past->cfg.N, head->next);
}

static tt_status_t s_load(replay_t *self, const block_head_t *head, reader_t *in)
{
    self->max_priority = (float)head->max_priority;
    self->total = head->total;
    TT_TRY(s_load_batches(&self->past, head, in));
    units_add_all(&self->units, 1);
    TT_TRY(s_load_priorities(self, in));
    for (uint64_t i = 0; i < head->late; i++)
        TT_TRY(s_load_late(self, in));
    return in->left ? tt_err(TT_DATA, "replay: %zu bytes too many", in->left) : TT_OK;
}

static void s_swap(replay_t *a, replay_t *b)
{
    const replay_t mine = *a;
    *a = *b;
    *b = mine;
    a->units.past = &a->past;
    b->units.past = &b->past;
}

/*  head is of a block that was opened. */
static tt_status_t s_finish(replay_warm_t *self, const block_head_t *head, reader_t *in)
{
    replay_warm_skip(self, head->first);
    const uint64_t next = self->begun ? self->next : head->first;
    if (next != head->from || (head->from == head->next && head->first < head->next))
        return tt_err(TT_DATA, "replay: batches %" PRIu64 " to %" PRIu64 " are in no piece", next, head->from);
    return s_load(self->replay, head, in);
}

tt_status_t replay_warm_finish(replay_warm_t *self, replay_t *into, const void *bytes, size_t size)
{
    block_head_t head;
    reader_t in;
    TT_TRY(s_open(self->replay, bytes, size, &head, &in));
    TT_TRY(s_finish(self, &head, &in));
    s_swap(into, self->replay);
    return TT_OK;
}

/*  Pieces are of one run of batches that ends where the block goes on. */
static tt_status_t s_add_pieces(replay_warm_t *self, const block_head_t *head, const replay_pieces_t *pieces)
{
    uint64_t next = head->first;
    replay_warm_skip(self, head->first);
    for (uint32_t i = 0; pieces && i < pieces->count; i++) {
        replay_piece_t piece = {.bytes = NULL};
        TT_TRY(pieces->get(pieces->ctx, i, &piece));
        const bool goes_on = i ? piece.first == next : piece.first <= next && next < piece.next;
        if (!goes_on || piece.next > head->from)
            return tt_err(TT_DATA, "replay: a piece of batches %" PRIu64 " to %" PRIu64 " where %" PRIu64 " belongs",
                piece.first, piece.next, next);
        TT_TRY(replay_warm_add(self, &piece));
        next = piece.next;
    }
    return TT_OK;
}

tt_status_t replay_load(replay_t *self, const void *bytes, size_t size, const replay_pieces_t *pieces)
{
    block_head_t head;
    reader_t in;
    TT_TRY(s_open(self, bytes, size, &head, &in));
    TT_AUTO(replay_warm) warm = NULL;
    replay_warm_new(&warm, self);
    TT_TRY(s_add_pieces(warm, &head, pieces));
    TT_TRY(s_finish(warm, &head, &in));
    s_swap(self, warm->replay);
    return TT_OK;
}
