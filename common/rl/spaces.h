/*  spaces - what the host does with a space: check it, list its leaves, put it in words and read them back.
 *
 *  Threads: pure. */
#pragma once
#include <stdbool.h>
#include "common/base/buf.h"
#include "common/base/status.h"
#include "common/rl/space.h"

enum {
    TT_SPACE_DEPTH_MAX = 8,  /* dicts and tuples in each other */
    TT_SPACE_PARTS_MAX = 64, /* of one of them                 */
    TT_SPACE_KEY_MAX = 40    /* bytes of a key                 */
};

/*  "multi_discrete", "float32": as Gymnasium and NumPy call them. */
extern const char *const tt_space_kinds[TT_SPACE_KIND_COUNT];
extern const char *const tt_dtypes[TT_DTYPE_COUNT];
bool tt_space_key_char(char c);

/*  TT_INVALID: a kind, dtype, shape, bound, count or key that is none; `what` ("obs") begins the text. Actions are boxes
 *  of F32 or F64, or choices, or dicts and tuples of these. */
tt_status_t tt_space_check(const tt_space_t *self, const char *what, bool action);
/*  Numbers of a leaf: 1 for a discrete one. */
uint32_t tt_space_elements(const tt_space_t *leaf);
/*  The leaves in order. Returns how many; fills at most `room`. */
uint32_t tt_space_leaves(const tt_space_t *self, const tt_space_t **leaf, uint32_t room);
/*  In words that read back: "float32[4]", "uint8[84, 84, 3]", "float64", "discrete(6)", "discrete(3, from -1)",
 *  "multi_discrete(3, 2)", "multi_binary[2, 4]", "{image: uint8[8, 8], speed: float32}", "(float32[2], discrete(3))".
 *  Bounds are not part of it. */
tt_status_t tt_space_text(const tt_space_t *self, tt_buf_t *out);
/*  Read it back; free with tt_space_free. TT_INVALID: the text says where it stops making sense. */
tt_status_t tt_space_parse(tt_space_t **self_p, const char *text);
void tt_space_free(tt_space_t **self_p);
