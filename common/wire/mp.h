/*  mp - reads msgpack one token at a time, for bytes that nobody vouches for.
 *
 *  Source:  the msgpack specification (github.com/msgpack/msgpack, spec.md).
 *  Why not msgpack-c's unpacker: it builds an object tree and believes the element counts it reads (five bytes make it
 *  ask for some 96 GB, msgpack-c issue 1013). This reader allocates nothing and believes nothing: a length or count
 *  that the remaining bytes cannot hold is an error.
 *  Threads: pure; a reader belongs to one thread. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/base/status.h"

typedef struct {
    const uint8_t *at, *end; /* borrowed */
} tt_mp_reader_t;

typedef enum {
    TT_MP_NIL,
    TT_MP_FLAG,  /* number: 0 or 1                                  */
    TT_MP_UINT,  /* number: an integer >= 0                         */
    TT_MP_INT,   /* number: an integer < 0, as int64_t              */
    TT_MP_FLOAT, /* real                                            */
    TT_MP_STR,   /* bytes, number of them                           */
    TT_MP_BIN,   /* the same                                        */
    TT_MP_EXT,   /* the same, without the type byte                 */
    TT_MP_ARRAY, /* number of elements that follow                  */
    TT_MP_MAP    /* number of pairs that follow                     */
} tt_mp_kind_t;

typedef struct {
    tt_mp_kind_t kind;
    uint64_t number;
    double real;
    const uint8_t *bytes; /* borrowed from the reader's memory */
} tt_mp_token_t;

/*  The next token. TT_PROTOCOL: cut off, the unused byte 0xc1, or more elements than bytes are left. */
tt_status_t tt_mp_next(tt_mp_reader_t *self, tt_mp_token_t *out);

/*  Pass over one whole value. TT_PROTOCOL: as above, or nested deeper than 8. */
tt_status_t tt_mp_skip(tt_mp_reader_t *self);
