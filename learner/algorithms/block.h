/*  block - what the losses share: a block of rows as columns of TT_BLOCK numbers (tt_loss_block_t), and the one order in which
 *  such a column is added up.
 *
 *  Inlined into each clone of a loss, so that its loops become that processor's vectors.
 *  Threads: pure. */
#pragma once
#include "common/nn/nn.h"

#define BLOCK_FN    static inline __attribute__((always_inline))
#define EACH_ROW(r) for (size_t r = 0; r < TT_BLOCK; r++)

typedef float col_t[TT_BLOCK]; /* one number for each row of a block */

_Static_assert(TT_BLOCK == 32, "block_sum adds 32 numbers");

/*  32 -> 16 -> 8 -> 4 -> 2 -> 1, always. */
BLOCK_FN float block_sum(const float *col)
{
    float a[16], b[8], c[4];
    for (int i = 0; i < 16; i++)
        a[i] = col[i] + col[i + 16];
    for (int i = 0; i < 8; i++)
        b[i] = a[i] + a[i + 8];
    for (int i = 0; i < 4; i++)
        c[i] = b[i] + b[i + 4];
    return (c[0] + c[2]) + (c[1] + c[3]);
}
