/*  fill - messages with made-up values, by their tables: for round trips, golden vectors and fuzzing. */
#pragma once
#include "common/wire/msg.h"

typedef enum {
    FILL_ZERO,  /* nothing set                                 */
    FILL_SMALL, /* each field another small value              */
    FILL_LIMIT, /* each number at its limit; texts and lists short of it (they would be long) */
    FILL_RANDOM /* anything the table allows, texts up to 300 bytes, lists up to 5             */
} fill_t;

/*  Make a message; clear it with tt_msg_clear. */
void fill_message(tt_msg_t *out, const tt_msg_info_t *info, fill_t how, uint64_t seed);

/*  Are two messages the same, NANs by their bits? Else `where` names a field. */
bool fill_equal(const tt_msg_t *a, const tt_msg_t *b, const char **where);
