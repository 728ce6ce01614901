/*  fuzz_replay - arbitrary bytes as a saved replay, with the checksum made good, and perhaps as pieces of it: refused with words, or
 *  one that can be drawn from, read to the last frame of every unit or sequence, and saved again. */
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "learner/replay/parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { UNITS = 8, STACK = 3, SEAL = crypto_hash_sha256_BYTES };

static const tt_columns_t *s_columns(void)
{
    static tt_columns_t *made;
    tt_space_t *obs = NULL, *action = NULL;
    if (made)
        return made;
    const tt_status_t read = tt_space_parse(&obs, "{image: uint8[2, 2], room: discrete(3)}");
    const tt_status_t also = tt_space_parse(&action, "discrete(2)");
    TT_CHECK(read == TT_OK && also == TT_OK);
    const tt_status_t status = tt_columns_new(&made, obs, action, true, true);
    TT_CHECK(status == TT_OK);
    tt_space_free(&obs);
    tt_space_free(&action);
    return made;
}

enum { SEQUENCES = 16, LENGTH = 2, BURN = 1, CARRY = 2 };

/*  By the first byte: uniform or not, with stacks or without, rows or sequences. */
static replay_t *s_new(uint8_t kind)
{
    const tt_columns_t *columns = s_columns();
    const bool stack = kind & 2, sequences = kind & SEQUENCES;
    const replay_cfg_t cfg = {.columns = columns,
        .store = 3 | 1u << columns->mask | 1u << columns->action,
        .N = 2,
        .T = 3,
        .capacity = 1000,
        .stripes = 2,
        .ahead = 2,
        .length = sequences ? LENGTH : 0,
        .burn = sequences ? BURN : 0,
        .carry = sequences ? CARRY : 0,
        .gamma = 0.9,
        .stack = stack ? STACK : 1,
        .alpha = kind & 1 ? 0.5f : 0,
        .epsilon = 0.01f,
        .priority_delay = 1,
        .seed = 1};
    replay_t *replay = NULL;
    const tt_status_t status = replay_new(&replay, &cfg);
    TT_CHECK(status == TT_OK);
    return replay;
}

/*  Every frame that a network sees of sequences, and what it remembers before them. */
static void s_read_sequences(replay_t *replay, const replay_sample_t *got)
{
    const uint32_t N = replay->past.cfg.N, ahead = replay->past.cfg.ahead;
    uint8_t image[STACK * 4];
    for (uint32_t i = 0; i < UNITS; i++) {
        const float *carried = replay_carried(replay, got->unit[i]);
        TT_CHECK(carried[0] - carried[0] == 0 && carried[CARRY - 1] - carried[CARRY - 1] == 0);
        for (uint64_t k = 0; k < BURN + LENGTH + ahead; k++) {
            const uint64_t row = got->unit[i] + k * N;
            replay_begins(replay, row);
            replay_gather(replay, &row, 1, REPLAY_AT, 0, image);
        }
        for (uint32_t t = 0; t < LENGTH; t++) {
            const uint32_t next = got->next[t * UNITS + i];
            const uint64_t row = got->unit[i] + (uint64_t)(next & ~REPLAY_FINAL_OF) * N;
            replay_gather(replay, &row, 1, next & REPLAY_FINAL_OF ? REPLAY_FINAL : REPLAY_AT, 0, image);
        }
    }
}

static void s_read(replay_t *replay, const replay_sample_t *got)
{
    if (replay->past.cfg.length)
        s_read_sequences(replay, got);
    for (int which = REPLAY_AT; which <= REPLAY_NEXT; which++) {
        uint8_t image[UNITS * STACK * 4], mask[UNITS * 2];
        float rows[UNITS * 7]; /* of at most seven numbers, bytes or floats */
        replay_gather(replay, got->unit, UNITS, (replay_frame_t)which, 0, image);
        replay_gather(replay, got->unit, UNITS, (replay_frame_t)which, (uint32_t)s_columns()->mask, mask);
        if (replay->past.cfg.stack == 1)
            replay_gather_rows(replay, got->unit, UNITS, (replay_frame_t)which, rows);
    }
}

static void s_use(replay_t *replay)
{
    const uint64_t first = replay->total + 5;
    for (uint64_t total = first; total < first + 3; total++) {
        replay_sample_t got;
        const float x[UNITS] = {1, 2, 3};
        const tt_status_t status = replay_sample(replay, total, UNITS, 1, &got);
        if (status != TT_OK) {
            TT_CHECK(status == TT_AGAIN || status == TT_INVALID); /* a stripe is empty, or steps end */
            return;
        }
        s_read(replay, &got);
        const tt_status_t given = replay_priorities(replay, total, x, UNITS);
        TT_CHECK(given == TT_OK);
    }
}

/*  By the first byte too: so many bytes behind the block, cut in two, are pieces of batches 0 and 1. */
typedef struct {
    const uint8_t *at;
    size_t size;
    uint32_t cut;
} tail_t;

static tt_status_t s_get(void *ctx, uint32_t i, replay_piece_t *out)
{
    const tail_t *tail = ctx;
    const size_t half = tail->cut < tail->size ? tail->cut : tail->size;
    *out = (replay_piece_t){
        .bytes = i ? tail->at + half : tail->at, .size = i ? tail->size - half : half, .first = i, .next = i + 1};
    return TT_OK;
}

static void s_check_saved(const replay_t *replay, size_t size)
{
    tt_buf_t out;
    const uint64_t oldest = replay->past.first;
    tt_buf_init(&out, replay_save_size(replay, oldest));
    const tt_status_t saved = replay_save(replay, oldest, &out);
    TT_CHECK(saved == TT_OK && (!size || out.size == size));
    tt_buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { PIECE = 146 }; /* of a batch without finals: 2 envs, 3 steps, and nothing carried */
    if (size < 1 + SEAL)
        return 0;
    const uint32_t pieces = data[0] >> 2 & 3 ? data[0] % 2 + 1 : 0;
    const uint32_t piece = PIECE + (data[0] & SEQUENCES ? 2 * CARRY * sizeof(float) : 0);
    const size_t most = size - 1 - SEAL, behind = pieces * piece < most ? pieces * piece : most;
    tail_t tail = {data + size - behind, behind, piece};
    replay_t *replay = s_new(data[0]);
    uint8_t *block = tt_new0(size);
    size -= behind;
    memcpy(block, data + 1, size - 1);
    crypto_hash_sha256(block + size - 1 - SEAL, block, size - 1 - SEAL);
    const tt_status_t status = replay_load(replay, block, size - 1, &(replay_pieces_t){&tail, pieces, s_get});
    TT_CHECK(status == TT_OK || (status == TT_DATA && *tt_err_text()));
    if (status == TT_OK) {
        s_check_saved(replay, pieces ? 0 : size - 1);
        s_use(replay);
    }
    free(block);
    replay_destroy(&replay);
    return 0;
}
