/*  fuzz_replay - arbitrary bytes as a saved replay, with the checksum made good: refused with words, or one that can be drawn
 *  from, read to the last frame of every unit, and saved again. */
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

/*  By the first byte: uniform or not, with stacks or without. */
static replay_t *s_new(uint8_t kind)
{
    const tt_columns_t *columns = s_columns();
    const bool stack = kind & 2;
    const replay_cfg_t cfg = {.columns = columns,
        .store = 3 | 1u << columns->mask | 1u << columns->action,
        .N = 2,
        .T = 3,
        .capacity = 1000,
        .stripes = 2,
        .ahead = 2,
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

static void s_read(replay_t *replay, const replay_sample_t *got)
{
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 + SEAL)
        return 0;
    replay_t *replay = s_new(data[0]);
    uint8_t *block = tt_new0(size);
    memcpy(block, data + 1, size - 1);
    crypto_hash_sha256(block + size - 1 - SEAL, block, size - 1 - SEAL);
    const tt_status_t status = replay_load(replay, block, size - 1);
    TT_CHECK(status == TT_OK || (status == TT_DATA && *tt_err_text()));
    if (status == TT_OK) {
        tt_buf_t out;
        tt_buf_init(&out, size);
        const tt_status_t saved = replay_save(replay, &out);
        TT_CHECK(saved == TT_OK && out.size == size - 1);
        tt_buf_free(&out);
        s_use(replay);
    }
    free(block);
    replay_destroy(&replay);
    return 0;
}
