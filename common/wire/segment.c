#include "common/wire/segment.h"
#include "common/base/limits.h"
#include "common/base/mem.h"
#include <stdbool.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "segments are little-endian");

enum { ALIGN = 64, ARRAYS = 15 };

/*  The arrays in their order in the block; the same as in tt_segment_t. */
typedef struct {
    const char *name;
    size_t element, rows, columns, depth; /* bytes, and three factors of their number */
} s_array_t;

static void s_arrays(const tt_segment_shape_t *s, s_array_t out[ARRAYS])
{
    const s_array_t arrays[ARRAYS] = {
        {"obs", 4, s->T, s->E, s->D},
        {"action", 4, s->T, s->E, s->A ? s->A : 1},
        {"reward", 4, s->T, s->E, 1},
        {"terminated", 1, s->T, s->E, 1},
        {"truncated", 1, s->T, s->E, 1},
        {"log_prob", 4, s->T, s->E, 1},
        {"value", 4, s->T, s->E, 1},
        {"age", 4, s->E, 1, 1},
        {"last_obs", 4, s->E, s->D, 1},
        {"last_value", 4, s->E, 1, 1},
        {"final_t", 4, s->K, 1, 1},
        {"final_env", 4, s->K, 1, 1},
        {"final_obs", 4, s->K, s->D, 1},
        {"final_value", 4, s->K, 1, 1},
        {"states", 1, s->E, s->S, 1},
    };
    memcpy(out, arrays, sizeof arrays);
}

static bool s_array_bytes(const s_array_t *array, size_t *bytes)
{
    size_t count;
    return tt_mul_ok(array->rows, array->columns, &count) && tt_mul_ok(count, array->depth, &count) &&
           tt_mul_ok(count, array->element, bytes) && *bytes <= TT_FRAME_MAX;
}

tt_status_t tt_segment_size(const tt_segment_shape_t *shape, size_t *bytes)
{
    if (!shape->T || !shape->E || !shape->D)
        return tt_err(TT_INVALID, "a segment of %u steps, %u envs, %u obs elements", shape->T, shape->E, shape->D);
    if (shape->K > (uint64_t)shape->T * shape->E)
        return tt_err(TT_INVALID, "a segment with %u finals in %u x %u steps", shape->K, shape->T, shape->E);
    s_array_t arrays[ARRAYS];
    s_arrays(shape, arrays);
    size_t total = 0;
    for (size_t i = 0; i < ARRAYS; i++) {
        size_t size;
        if (!s_array_bytes(&arrays[i], &size))
            return tt_err(TT_INVALID, "%s of a segment would be over 1 GiB", arrays[i].name);
        total = tt_align(total, ALIGN) + size;
    }
    if (total > TT_FRAME_MAX)
        return tt_err(TT_INVALID, "a segment of %zu bytes is over 1 GiB", total);
    *bytes = total;
    return TT_OK;
}

void tt_segment_map(const tt_segment_shape_t *shape, void *block, tt_segment_t *out)
{
    s_array_t arrays[ARRAYS];
    s_arrays(shape, arrays);
    char *at[ARRAYS];
    size_t total = 0;
    for (size_t i = 0; i < ARRAYS; i++) {
        size_t size;
        const bool fits = s_array_bytes(&arrays[i], &size);
        TT_CHECK(fits);
        total = tt_align(total, ALIGN);
        at[i] = (char *)block + total;
        total += size;
    }
    *out = (tt_segment_t){
        .obs = (void *)at[0],
        .action = (void *)at[1],
        .reward = (void *)at[2],
        .terminated = (void *)at[3],
        .truncated = (void *)at[4],
        .log_prob = (void *)at[5],
        .value = (void *)at[6],
        .age = (void *)at[7],
        .last_obs = (void *)at[8],
        .last_value = (void *)at[9],
        .final_t = (void *)at[10],
        .final_env = (void *)at[11],
        .final_obs = (void *)at[12],
        .final_value = (void *)at[13],
        .states = (void *)at[14],
    };
}

/* ---- check: reads through memcpy, as a received block may lie anywhere -------------------------------------------- */

static uint32_t s_word(const void *words, size_t i)
{
    uint32_t word;
    memcpy(&word, (const char *)words + 4 * i, sizeof word);
    return word;
}

static tt_status_t s_check_finite(const char *name, const void *floats, size_t count)
{
    uint32_t bad = 0;
    for (size_t i = 0; i < count; i++)
        bad |= (s_word(floats, i) & 0x7f800000u) == 0x7f800000u;
    return bad ? tt_err(TT_PROTOCOL, "segment: %s is not finite", name) : TT_OK;
}

static tt_status_t s_check_flags(const char *name, const uint8_t *flags, size_t count, size_t *set)
{
    uint8_t all = 0;
    *set = 0;
    for (size_t i = 0; i < count; i++) {
        all |= flags[i];
        *set += flags[i];
    }
    return all > 1 ? tt_err(TT_PROTOCOL, "segment: %s is neither 0 nor 1", name) : TT_OK;
}

/*  As many as there are truncations, in order, each at one: then each truncation has its final. */
static tt_status_t s_check_finals(const tt_segment_shape_t *shape, const tt_segment_t *s, size_t truncations)
{
    if (shape->K != truncations)
        return tt_err(TT_PROTOCOL, "segment: %u finals for %zu truncations", shape->K, truncations);
    uint64_t next = 0; /* lowest place the next one may have */
    for (uint32_t k = 0; k < shape->K; k++) {
        const uint32_t t = s_word(s->final_t, k), env = s_word(s->final_env, k);
        if (t >= shape->T || env >= shape->E)
            return tt_err(TT_PROTOCOL, "segment: final %u is at step %u, env %u", k, t, env);
        const uint64_t place = (uint64_t)t * shape->E + env;
        if (place < next || !s->truncated[place])
            return tt_err(TT_PROTOCOL, "segment: final %u is out of order or not at a truncation", k);
        next = place + 1;
    }
    return TT_OK;
}

tt_status_t tt_segment_check(const tt_segment_shape_t *shape, const void *block, size_t bytes)
{
    size_t expected, ended, truncations;
    if (tt_segment_size(shape, &expected) != TT_OK)
        return TT_PROTOCOL;
    if (bytes != expected)
        return tt_err(TT_PROTOCOL, "segment: %zu bytes where its header says %zu", bytes, expected);
    tt_segment_t s;
    tt_segment_map(shape, (void *)(uintptr_t)block, &s);
    const size_t rows = (size_t)shape->T * shape->E, D = shape->D, K = shape->K;
    TT_TRY(s_check_flags("terminated", s.terminated, rows, &ended));
    TT_TRY(s_check_flags("truncated", s.truncated, rows, &truncations));
    TT_TRY(s_check_finals(shape, &s, truncations));
    TT_TRY(s_check_finite("obs", s.obs, rows * D));
    if (shape->A)
        TT_TRY(s_check_finite("action", s.action, rows * shape->A));
    TT_TRY(s_check_finite("reward", s.reward, rows));
    TT_TRY(s_check_finite("log_prob", s.log_prob, rows));
    TT_TRY(s_check_finite("value", s.value, rows));
    TT_TRY(s_check_finite("last_obs", s.last_obs, shape->E * D));
    TT_TRY(s_check_finite("last_value", s.last_value, shape->E));
    TT_TRY(s_check_finite("final_obs", s.final_obs, K * D));
    return s_check_finite("final_value", s.final_value, K);
}
