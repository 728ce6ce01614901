/*  proto - protobuf's messages as bytes: fields, each a number with its kind and then its value.
 *
 *  Format: https://protobuf.dev/programming-guides/encoding/ (varints, 4 bytes, and bytes with their length before them).
 *  The buffer is large enough for whatever the caller may write: running over its end is the caller's error.
 *  Threads: pure. */
#pragma once
#include <stdint.h>
#include "common/base/buf.h"

/*  int32, int64, enum: negative ones as 64 bits. */
void tt_proto_int(tt_buf_t *out, uint32_t field, int64_t value);
void tt_proto_float(tt_buf_t *out, uint32_t field, float value);
void tt_proto_bytes(tt_buf_t *out, uint32_t field, const void *data, size_t size);
void tt_proto_text(tt_buf_t *out, uint32_t field, const char *text);
/*  A message inside another, which is emptied. */
void tt_proto_message(tt_buf_t *out, uint32_t field, tt_buf_t *inner);
