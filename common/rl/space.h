/*  space - what an observation or an action looks like (Gymnasium's Discrete and Box, of one dimension).
 *
 *  Part of the environment plug-in interface: plain data, nothing to link against. */
#pragma once
#include <stdint.h>

typedef enum {
    TT_SPACE_DISCRETE, /* an int32 in 0 .. n-1                                   */
    TT_SPACE_BOX       /* float32[n], each element between low[i] and high[i]    */
} tt_space_kind_t;

typedef struct {
    tt_space_kind_t kind;
    uint32_t n;        /* choices (discrete) or elements (box); >= 1             */
    const float *low;  /* box: n lower bounds, -INFINITY = none; discrete: NULL  */
    const float *high; /* box: n upper bounds; discrete: NULL                    */
} tt_space_t;
