/*  A replay as one block of bytes, of which older batches may be elsewhere.
 *
 *    block: head: u64s as in head_t; batches `from` .. `next` - 1; tip [N][record]; priorities f32 by (clock, env), 0 of what
 *    does not live; minibatches whose priorities are not seen yet: total u64, units u64, unit u64 [units], p f32 [units];
 *    SHA-256 of all that.
 *    piece: batches, oldest first. Living batches before `from` are in pieces; who keeps those knows their checksums.
 *    batch: number u64, finals u64, broken u8 [N], age u32 [N], every stored column [T][N], final_row u32 [finals], finals
 *    [finals][record].
 *
 *  Little-endian, not aligned. What follows from these (marks, sums) is not in it. */
#include <inttypes.h>
#include <math.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "learner/replay/parts.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a block is little-endian");

enum { SEAL = crypto_hash_sha256_BYTES };
static const char s_magic[8] = "ttreplay";
#define FORMAT_VERSION 2

/*  What must be equal, X(name, what a person calls it, value), and what a block says. */
#define SETUP_MAP(X)                                                    \
    X(version, "the format's version", FORMAT_VERSION)                  \
    X(columns, "the columns (hash)", cfg->columns->hash)                \
    X(store, "the stored columns (mask)", cfg->store)                   \
    X(N, "num_envs", cfg->N)                                            \
    X(T, "steps of a batch", cfg->T)                                    \
    X(capacity, "the capacity", cfg->capacity)                          \
    X(stripes, "stripes", cfg->stripes)                                 \
    X(ahead, "ahead", cfg->ahead)                                       \
    X(gamma, "gamma (bits)", s_bits(cfg->gamma))                        \
    X(stack, "stack", cfg->stack)                                       \
    X(stacked, "the stacked column", cfg->stack > 1 ? cfg->stacked : 0) \
    X(pad, "pad", cfg->pad)                                             \
    X(alpha, "alpha (bits)", s_bits((double)cfg->alpha))                \
    X(epsilon, "epsilon (bits)", s_bits((double)cfg->epsilon))          \
    X(delay, "priority_delay", cfg->priority_delay)                     \
    X(seed, "the seed", cfg->seed)

typedef struct {
    char magic[sizeof s_magic];
#define X(name, what, value) uint64_t name;
    SETUP_MAP(X)
#undef X
    uint64_t first, from, next, total, late;
    double max_priority;
} head_t;

static uint64_t s_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static head_t s_setup(const replay_cfg_t *cfg)
{
    head_t head = {.magic = {0}};
    memcpy(head.magic, s_magic, sizeof s_magic);
#define X(name, what, value) head.name = (value);
    SETUP_MAP(X)
#undef X
    return head;
}

/* ---- save ----------------------------------------------------------------------------------------------------------- */

static uint64_t s_batch_size(const past_t *past, uint64_t finals)
{
    const uint64_t N = past->cfg.N;
    return 16 + 5 * N + N * past->cfg.T * past->row_bytes + finals * (past->record + sizeof(uint32_t));
}

uint64_t replay_settled(const replay_t *self)
{
    const past_t *past = &self->past;
    return past->first < past->next ? past->next - 1 : past->next;
}

uint64_t replay_batches_size(const replay_t *self, uint64_t first, uint64_t next)
{
    uint64_t size = 0;
    for (uint64_t b = first; b < next; b++)
        size += s_batch_size(&self->past, past_batch(&self->past, b)->finals);
    return size;
}

/*  A step that is under way is drawn again by whoever loads it. */
static bool s_is_known(const replay_late_t *late)
{
    return late->units && late->given;
}

uint64_t replay_save_size(const replay_t *self, uint64_t from)
{
    const past_t *past = &self->past;
    const uint64_t batches = past->next - past->first;
    uint64_t size = sizeof(head_t) + SEAL + replay_batches_size(self, from, past->next);
    size += past->cfg.N * (past->record + batches * past->cfg.T * sizeof(float));
    for (uint32_t i = 0; i < self->lates; i++)
        size += s_is_known(&self->late[i]) ? 16 + 12 * (uint64_t)self->late[i].units : 0;
    return size;
}

static tt_status_t s_save_batch(const past_t *past, const past_batch_t *batch, tt_buf_t *out)
{
    const uint64_t finals = batch->finals, count = (uint64_t)past->cfg.T * past->cfg.N;
    TT_TRY(tt_buf_add(out, &batch->batch, sizeof batch->batch));
    TT_TRY(tt_buf_add(out, &finals, sizeof finals));
    TT_TRY(tt_buf_add(out, batch->broken, past->cfg.N));
    TT_TRY(tt_buf_add(out, batch->age, past->cfg.N * sizeof *batch->age));
    for (uint32_t c = 0; c < past->cfg.columns->count; c++)
        if (past_stores(past, c))
            TT_TRY(tt_buf_add(out, batch->column[c], count * past->cfg.columns->at[c].bytes));
    TT_TRY(tt_buf_add(out, batch->final_row, finals * sizeof *batch->final_row));
    return tt_buf_add(out, batch->final, finals * past->record);
}

tt_status_t replay_save_batches(const replay_t *self, uint64_t first, uint64_t next, tt_buf_t *out)
{
    const past_t *past = &self->past;
    TT_CHECK(past->first <= first && first <= next && next <= past->next);
    const size_t before = out->size;
    for (uint64_t b = first; b < next; b++) {
        const tt_status_t status = s_save_batch(past, past_batch(past, b), out);
        if (status != TT_OK) {
            tt_buf_cut(out, before);
            return status;
        }
    }
    return TT_OK;
}

static tt_status_t s_save_priorities(const replay_t *self, tt_buf_t *out)
{
    const uint32_t N = self->past.cfg.N;
    for (uint64_t clock = past_oldest(&self->past); clock < past_end(&self->past); clock++) {
        for (uint32_t e = 0; e < N; e++) {
            const float p = units_lives(&self->units, clock, e) ? units_priority(&self->units, clock, e) : 0;
            TT_TRY(tt_buf_add(out, &p, sizeof p));
        }
    }
    return TT_OK;
}

static tt_status_t s_save_late(const replay_late_t *late, tt_buf_t *out)
{
    const uint64_t numbers[] = {late->total, late->units};
    TT_TRY(tt_buf_add(out, numbers, sizeof numbers));
    TT_TRY(tt_buf_add(out, late->unit, late->units * sizeof *late->unit));
    return tt_buf_add(out, late->p, late->units * sizeof *late->p);
}

static tt_status_t s_save(const replay_t *self, const head_t *head, tt_buf_t *out)
{
    const past_t *past = &self->past;
    TT_TRY(tt_buf_add(out, head, sizeof *head));
    TT_TRY(replay_save_batches(self, head->from, head->next, out));
    TT_TRY(tt_buf_add(out, past->tip, past->cfg.N * past->record));
    TT_TRY(s_save_priorities(self, out));
    for (uint32_t i = 0; i < self->lates; i++)
        if (s_is_known(&self->late[i]))
            TT_TRY(s_save_late(&self->late[i], out));
    return TT_OK;
}

tt_status_t replay_save(const replay_t *self, uint64_t from, tt_buf_t *out)
{
    const size_t before = out->size;
    head_t head = s_setup(&self->past.cfg);
    head.first = self->past.first;
    head.from = from;
    head.next = self->past.next;
    head.total = self->total;
    head.max_priority = (double)self->max_priority;
    for (uint32_t i = 0; i < self->lates; i++)
        head.late += s_is_known(&self->late[i]);
    uint8_t seal[SEAL];
    tt_status_t status = s_save(self, &head, out);
    if (status == TT_OK) {
        crypto_hash_sha256(seal, (const uint8_t *)out->data + before, out->size - before);
        status = tt_buf_add(out, seal, sizeof seal);
    }
    if (status != TT_OK)
        tt_buf_cut(out, before);
    return status;
}

/* ---- load: nothing in the block is believed -------------------------------------------------------------------------- */

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

static tt_status_t s_check_setup(const head_t *head, const replay_cfg_t *cfg)
{
    const head_t ours = s_setup(cfg);
    if (memcmp(head->magic, ours.magic, sizeof ours.magic) != 0)
        return tt_err(TT_DATA, "replay: this is no saved replay");
#define X(name, what, value)     \
    if (head->name != ours.name) \
        return tt_err(           \
            TT_DATA, "replay: saved with another setup: " what " %" PRIu64 ", here %" PRIu64, head->name, ours.name);
    SETUP_MAP(X)
#undef X
    return TT_OK;
}

static tt_status_t s_check_state(const head_t *head, const past_t *past, uint32_t lates)
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

/*  first: batches before it have been evicted since the piece was written, and are passed over. */
static tt_status_t s_load_batch(past_t *past, uint64_t number, uint64_t first, bool newest, reader_t *in)
{
    uint64_t said[2] = {0}; /* number, finals */
    TT_TRY(s_take(in, said, sizeof said));
    if (said[0] != number)
        return tt_err(TT_DATA, "replay: batch %" PRIu64 " where %" PRIu64 " belongs", said[0], number);
    if (said[1] > (uint64_t)past->cfg.T * past->cfg.N || said[1] > in->left / past->record)
        return tt_err(TT_DATA, "replay: batch %" PRIu64 " has %" PRIu64 " finals", number, said[1]);
    if (number < first)
        return s_pass(in, s_batch_size(past, said[1]) - sizeof said);
    past_batch_t *batch = past_push(past, number, (uint32_t)said[1]);
    TT_TRY(s_take(in, batch->broken, past->cfg.N));
    TT_TRY(s_take(in, batch->age, past->cfg.N * sizeof *batch->age));
    if (!s_flags_ok(batch->broken, past->cfg.N))
        return tt_err(TT_DATA, "replay: batch %" PRIu64 ": an env is broken, or it is not", number);
    TT_TRY(s_load_columns(past, batch, in));
    TT_TRY(s_load_finals(past, batch, newest, in));
    past_mark(past, batch);
    return TT_OK;
}

static tt_status_t s_load_piece(past_t *past, const head_t *head, const replay_piece_t *piece)
{
    reader_t in = {piece->bytes, piece->size};
    for (uint64_t b = piece->first; b < piece->next; b++)
        TT_TRY(s_load_batch(past, b, head->first, b + 1 == head->next, &in));
    return in.left ? tt_err(TT_DATA, "replay: a piece has %zu bytes too many", in.left) : TT_OK;
}

/*  Pieces are of one run of batches that ends where the block goes on. */
static tt_status_t s_load_pieces(past_t *past, const head_t *head, const replay_pieces_t *pieces)
{
    uint64_t next = head->first;
    for (uint32_t i = 0; pieces && i < pieces->count; i++) {
        replay_piece_t piece = {.bytes = NULL};
        TT_TRY(pieces->get(pieces->ctx, i, &piece));
        const bool goes_on = i ? piece.first == next : piece.first <= next && next < piece.next;
        if (!goes_on || piece.first >= piece.next || piece.next > head->from)
            return tt_err(TT_DATA, "replay: a piece of batches %" PRIu64 " to %" PRIu64 " where %" PRIu64 " belongs",
                piece.first, piece.next, next);
        TT_TRY(s_load_piece(past, head, &piece));
        next = piece.next;
    }
    return next == head->from
               ? TT_OK
               : tt_err(TT_DATA, "replay: batches %" PRIu64 " to %" PRIu64 " are in no piece", next, head->from);
}

/*  What broke has ended before: else two episodes would be one. */
static tt_status_t s_check_broken(const past_t *past)
{
    const uint32_t N = past->cfg.N;
    for (uint64_t b = past->first + 1; b < past->next; b++) {
        const uint8_t *before = past_batch(past, b - 1)->mark + (size_t)(past->cfg.T - 1) * N;
        for (uint32_t e = 0; e < N; e++)
            if (past_batch(past, b)->broken[e] && !(before[e] & ROW_ENDS))
                return tt_err(
                    TT_DATA, "replay: env %" PRIu32 " broke before batch %" PRIu64 " and has no final there", e, b);
    }
    return TT_OK;
}

static tt_status_t s_load_priorities(replay_t *self, reader_t *in)
{
    const past_t *past = &self->past;
    for (uint64_t clock = past_oldest(past); clock < past_end(past); clock++) {
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

static tt_status_t s_load(replay_t *self, reader_t *in, const replay_pieces_t *pieces)
{
    past_t *past = &self->past;
    head_t head;
    TT_TRY(s_take(in, &head, sizeof head));
    TT_TRY(s_check_setup(&head, &past->cfg));
    TT_TRY(s_check_state(&head, past, self->lates));
    self->max_priority = (float)head.max_priority;
    self->total = head.total;
    TT_TRY(s_load_pieces(past, &head, pieces));
    for (uint64_t b = head.from; b < head.next; b++)
        TT_TRY(s_load_batch(past, b, head.first, b + 1 == head.next, in));
    TT_TRY(s_take(in, past->tip, past->cfg.N * past->record));
    if (head.first < head.next) /* else there is none yet */
        TT_TRY(s_check_records(past, past->tip, past->cfg.N, head.next));
    TT_TRY(s_check_broken(past));
    past->first = head.first;
    past->next = head.next;
    units_add_all(&self->units, 1);
    TT_TRY(s_load_priorities(self, in));
    for (uint64_t i = 0; i < head.late; i++)
        TT_TRY(s_load_late(self, in));
    return in->left ? tt_err(TT_DATA, "replay: %zu bytes too many", in->left) : TT_OK;
}

static tt_status_t s_check_seal(const void *bytes, size_t size)
{
    uint8_t seal[SEAL];
    if (size < sizeof(head_t) + SEAL || memcmp(bytes, s_magic, sizeof s_magic) != 0)
        return tt_err(TT_DATA, "replay: this is no saved replay");
    crypto_hash_sha256(seal, bytes, size - SEAL);
    if (memcmp(seal, (const uint8_t *)bytes + size - SEAL, SEAL) != 0)
        return tt_err(TT_DATA, "replay: the block is damaged: it is not what its checksum says");
    return TT_OK;
}

tt_status_t replay_load(replay_t *self, const void *bytes, size_t size, const replay_pieces_t *pieces)
{
    TT_TRY(s_check_seal(bytes, size));
    TT_AUTO(replay) fresh = NULL;
    TT_TRY(replay_new(&fresh, &self->past.cfg));
    reader_t in = {bytes, size - SEAL};
    TT_TRY(s_load(fresh, &in, pieces));
    const replay_t mine = *self;
    *self = *fresh;
    *fresh = mine;
    self->units.past = &self->past;
    fresh->units.past = &fresh->past;
    return TT_OK;
}
