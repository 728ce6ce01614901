/*  Any shape and any bytes as a segment of several lists of columns: refused, or such that every final, choice and mask can be
 *  followed safely. The first 20 bytes are which list, T, E, K and S. */
#include "common/wire/segment.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct {
    const char *obs, *action;
    bool mask, estimates;
    uint32_t frames, carry;
} s_spaces[] = {
    {"float32[5]", "float32[2]", false, true, 1, 0},
    {"float32", "discrete(3)", false, true, 1, 0},
    {"{image: uint8[2, 3], speed: float32[2], room: discrete(4)}", "(multi_discrete(2, 3), float32)", true, true, 1, 0},
    {"(int64[2], multi_binary[3])", "multi_binary[2]", true, true, 1, 0},
    {"uint8[4]", "discrete(3)", true, false, 1, 0},
    {"{image: uint8[2, 3], room: discrete(4)}", "discrete(3)", false, true, 3, 0},
    {"float32[2]", "discrete(3)", false, true, 1, 3},
};

static const tt_columns_t *s_columns(uint32_t which)
{
    static tt_columns_t *made[TT_COUNT(s_spaces)];
    which %= TT_COUNT(s_spaces);
    tt_space_t *obs = NULL, *action = NULL;
    if (!made[which]) {
        const tt_status_t read = tt_space_parse(&obs, s_spaces[which].obs);
        const tt_status_t also = tt_space_parse(&action, s_spaces[which].action);
        TT_CHECK(read == TT_OK && also == TT_OK);
        const tt_status_t status = tt_columns_new_stacked(&made[which], obs, action, s_spaces[which].mask,
            s_spaces[which].estimates, s_spaces[which].frames, TT_PAD_ZERO);
        TT_CHECK(status == TT_OK);
        if (s_spaces[which].carry)
            tt_columns_put_carry(made[which], s_spaces[which].carry);
        tt_space_free(&obs);
        tt_space_free(&action);
    }
    return made[which];
}

/*  Every frame that any stack shows. */
static float s_walk_stacks(const tt_segment_shape_t *shape, const tt_segment_t *s)
{
    float sum = 0, frame[64];
    for (size_t i = 0; shape->columns->before && i < (size_t)(shape->T + 1) * shape->E; i++) {
        const uint32_t t = (uint32_t)(i / shape->E), env = (uint32_t)(i % shape->E);
        const uint32_t back = tt_segment_back(shape, s, t, env);
        for (uint32_t k = 0; k <= back; k++) {
            const void *row[TT_COLUMNS_MAX];
            size_t index;
            void *const *column = tt_segment_frame(shape, s, t, env, k, &index);
            for (uint32_t c = 0; c < shape->columns->obs_count; c++)
                row[c] = (const char *)column[c] + index * shape->columns->at[c].bytes;
            tt_columns_read(shape->columns, row, frame);
            sum += frame[0];
        }
    }
    return sum;
}

/*  What a receiver does with it: index by what it holds. */
static void s_walk(const tt_segment_shape_t *shape, uint8_t *block)
{
    const tt_columns_t *columns = shape->columns;
    const size_t rows = (size_t)shape->T * shape->E;
    tt_segment_t s;
    float sum = 0, flat[64];
    tt_segment_map(shape, block, &s);
    for (uint32_t k = 0; k < shape->K; k++) {
        const size_t at = (size_t)s.final_t[k] * shape->E + s.final_env[k];
        const void *row[TT_COLUMNS_MAX];
        TT_CHECK(at < rows && s.truncated[at] == 1);
        for (uint32_t c = 0; c < columns->obs_count; c++)
            row[c] = (const char *)s.final[c] + (size_t)k * columns->at[c].bytes;
        tt_columns_read(columns, row, flat);
        sum += flat[0] + (columns->value < 0 ? s.reward[at] : s.final_value[k] + s.value[at]);
    }
    for (uint32_t c = 0; c < columns->count; c++)
        for (size_t i = 0; columns->at[c].choice && i < rows * columns->at[c].elements; i++) {
            const uint32_t n = columns->choices[columns->at[c].first + i % columns->at[c].elements];
            const bool bytes = columns->at[c].dtype == TT_U8;
            TT_CHECK((bytes ? ((uint8_t *)s.column[c])[i] : ((uint32_t *)s.column[c])[i]) < n);
        }
    sum += s_walk_stacks(shape, &s);
    for (size_t i = 0; i < (size_t)shape->E * columns->carry; i++) {
        TT_CHECK(isfinite(s.carry[i]) && (s.age[i / columns->carry] || s.carry[i] == 0));
        sum += s.carry[i];
    }
    volatile float sink = sum;
    (void)sink;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t head[5];
    size_t bytes = 0;
    if (size < sizeof head)
        return 0;
    memcpy(head, data, sizeof head);
    data += sizeof head;
    size -= sizeof head;
    const tt_segment_shape_t shape = {s_columns(head[0]), head[1], head[2], head[3], head[4]};
    if (tt_segment_check(&shape, data, size) != TT_OK)
        return 0;
    const tt_status_t status = tt_segment_size(&shape, &bytes);
    TT_CHECK(status == TT_OK && bytes == size);
    uint8_t *block = aligned_alloc(64, (size + 63) / 64 * 64); /* what a receiver does */
    TT_CHECK(block != NULL);
    memcpy(block, data, size);
    s_walk(&shape, block);
    free(block);
    return 0;
}
