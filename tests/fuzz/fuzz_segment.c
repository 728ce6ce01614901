/*  Any shape and any bytes as a segment: refused, or such that every final can be followed safely. The shape is the first 24
 *  bytes, as it comes in a SEGMENT header. */
#include "common/wire/segment.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void s_walk(const tt_segment_shape_t *shape, uint8_t *block)
{
    tt_segment_t s;
    float sum = 0;
    tt_segment_map(shape, block, &s);
    for (uint32_t k = 0; k < shape->K; k++) {
        const size_t at = (size_t)s.final_t[k] * shape->E + s.final_env[k];
        TT_CHECK(at < (size_t)shape->T * shape->E && s.truncated[at] == 1);
        sum += s.final_obs[(size_t)k * shape->D] + s.final_value[k] + s.obs[at * shape->D];
    }
    volatile float sink = sum;
    (void)sink;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tt_segment_shape_t shape;
    size_t bytes;
    if (size < sizeof shape)
        return 0;
    memcpy(&shape, data, sizeof shape);
    data += sizeof shape;
    size -= sizeof shape;
    if (tt_segment_check(&shape, data, size) != TT_OK)
        return 0;
    TT_CHECK(tt_segment_size(&shape, &bytes) == TT_OK && bytes == size);
    uint8_t *block = aligned_alloc(64, (size + 63) / 64 * 64); /* what a receiver does */
    TT_CHECK(block != NULL);
    memcpy(block, data, size);
    s_walk(&shape, block);
    free(block);
    return 0;
}
