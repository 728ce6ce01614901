/*  segment - one (batch, contiguous env range) of experience: the body of SEGMENT, the same in memory and on the wire.
 *
 *  One block of bytes, one array a field, each aligned to 64 bytes, little-endian, row-major [T][E][...]:
 *    obs f32 [T][E][D]; action i32 [T][E] or f32 [T][E][A]; reward f32 [T][E] (raw); terminated u8 [T][E];
 *    truncated u8 [T][E]; log_prob f32 [T][E]; value f32 [T][E]; age u32 [E] (steps of its episode that an env has behind
 *    it at the start); last_obs f32 [E][D]; last_value f32 [E];
 *    final_t u32 [K]; final_env u32 [K] (0-based in the range, ordered by (t, env)); final_obs f32 [K][D];
 *    final_value f32 [K]; states u8 [E][state_bytes] (after the last step).
 *  K = `finals` is known only when the segment is full, so what depends on it comes last.
 *
 *  Threads: pure. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "common/base/status.h"

typedef struct {
    uint32_t T, E, D, A; /* A: elements of a continuous action, 0 = discrete (int32) */
    uint32_t K;          /* finals                                                   */
    uint32_t S;          /* bytes of one env's saved state                           */
} tt_segment_shape_t;

/*  Pointers into one block. */
typedef struct {
    float *obs;
    void *action; /* int32_t[T][E] or float[T][E][A] */
    float *reward;
    uint8_t *terminated, *truncated;
    float *log_prob, *value;
    uint32_t *age;
    float *last_obs, *last_value;
    uint32_t *final_t, *final_env;
    float *final_obs, *final_value;
    uint8_t *states;
} tt_segment_t;

/*  Bytes of the block for this shape. TT_INVALID: it does not fit size_t or is over 1 GiB. */
tt_status_t tt_segment_size(const tt_segment_shape_t *shape, size_t *bytes);

/*  The pointers, given the block's start (64-byte aligned when it is ours; a received frame may be unaligned: copy it). */
void tt_segment_map(const tt_segment_shape_t *shape, void *block, tt_segment_t *out);

/*  Is a received block sound? Size equals tt_segment_size, flags are 0 or 1, finals ascending, in range and truncated,
 *  their count equal to the truncations, all numbers finite. TT_PROTOCOL with the field's name. */
tt_status_t tt_segment_check(const tt_segment_shape_t *shape, const void *block, size_t bytes);
