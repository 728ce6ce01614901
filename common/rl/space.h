/*  space - what an observation or an action looks like: Gymnasium's spaces, as plain data.
 *
 *  A space is a tree: its leaves are arrays of numbers, dict and tuple hold other spaces in order. Sequences, graphs and
 *  texts have no place here. Part of the environment plug-in interface: nothing to link against. */
#pragma once
#include <stdint.h>

typedef enum { TT_F32, TT_F64, TT_U8, TT_I32, TT_I64, TT_BOOL, TT_DTYPE_COUNT } tt_dtype_t;

typedef enum {
    TT_SPACE_BOX,            /* dtype[shape], each element between low and high                     */
    TT_SPACE_DISCRETE,       /* one int32 of n[0] choices, from start[0] on                         */
    TT_SPACE_MULTI_DISCRETE, /* int32[shape], element i of n[i] choices, from start[i] on           */
    TT_SPACE_MULTI_BINARY,   /* uint8[shape], each 0 or 1                                           */
    TT_SPACE_DICT,           /* parts by key, in order (Gymnasium sorts the keys of a plain dict)   */
    TT_SPACE_TUPLE,          /* parts                                                               */
    TT_SPACE_KIND_COUNT
} tt_space_kind_t;

enum { TT_RANK_MAX = 4 };

typedef struct tt_space tt_space_t;
struct tt_space {
    tt_space_kind_t kind;
    const char *key;             /* inside a dict: letters, digits, '_', '-'                               */
    tt_dtype_t dtype;            /* box. F64 observations are stored and learned from as F32               */
    uint32_t rank;               /* box, multi-discrete, multi-binary; 0 = a single number                 */
    uint32_t shape[TT_RANK_MAX]; /* [rank] each >= 1                                                       */
    const double *low, *high;    /* box: bounds; NULL = none. [elements], or [1] with `same_bounds`        */
    uint8_t same_bounds;         /* low[0] and high[0] hold for every element                              */
    const int64_t *n, *start;    /* discrete, multi-discrete: [elements]; start NULL = 0                   */
    const tt_space_t *part;      /* dict, tuple: [parts]                                                   */
    uint32_t parts;
};

/*  The usual ones, as initialisers: a float32 vector with bounds for each element (arrays of double), and n choices
 *  (an array of one). */
#define TT_BOX(elements, lows, highs)                                                                     \
    {                                                                                                     \
        .kind = TT_SPACE_BOX, .dtype = TT_F32, .rank = 1, .shape = {elements}, .low = lows, .high = highs \
    }
#define TT_CHOICES(counts)                     \
    {                                          \
        .kind = TT_SPACE_DISCRETE, .n = counts \
    }
