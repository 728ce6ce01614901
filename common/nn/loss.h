/*  loss - what a loss sees: a block of rows with the heads of an objective's stages.
 *
 *  C17 and CUDA C++: the same loss is compiled for processors and for cards (learner/algorithms/block.h, cuda/loss.cuh).
 *  Threads: pure. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "common/base/limits.h"

enum {
    TT_BLOCK = 32,    /* rows that a loss sees at once                                  */
    TT_LOSS_STATS = 8 /* floats a loss may sum over rows (losses, KL, clip fraction ...) */
};

/*  A block of rows on its way through a loss. Arrays are by stage, in columns of TT_BLOCK floats, so that loops over rows
 *  are the inner ones: head[s][a * TT_BLOCK + r]. Entries at r >= rows hold zeros and must be written as zeros. */
typedef struct {
    uint32_t rows;                       /* 1 .. TT_BLOCK                                                */
    const uint32_t *row;                 /* [rows] the numbers given in the pass                         */
    const float *head[TT_STAGES_MAX];    /* [A][TT_BLOCK]                                                */
    float *d_head[TT_STAGES_MAX];        /* [A][TT_BLOCK] out: d loss / d head; NULL without grad        */
    const float *log_std[TT_STAGES_MAX]; /* [L] of the stage's tower and set, or NULL                    */
    float *d_log_std[TT_STAGES_MAX];     /* [L] add to it, rows in order; NULL without grad or log_std   */
    float *stats;                        /* [TT_LOSS_STATS] add to it, rows in order                     */
    float *ride;                         /* [spec.ride] zeros at first; NULL when there is none          */
} tt_loss_block_t;

/*  A loss: a pure function of its parameters (plain data, as given in the pass), of the pass's input tables and of the block.
 *  input[i]: the rows of table i side by side, by the numbers in block->row, or one row for all; NULL where the pass has
 *  none. */
typedef void (*tt_loss_fn)(const void *params, const void *const *input, const tt_loss_block_t *block);

/*  A draw: an action for each row, made of the head of one stage, before the stages that read it are forwarded: only that stage's entries of
 *  the block are there. action: [spec.action][TT_BLOCK] out. Pure, as a loss is: what is random about it comes from a table.
 *  And its way back: what came to the action, d_action, is added to the stage's d_head, which the loss has written by then. */
typedef void (*tt_draw_fn)(const void *params, const void *const *input, const tt_loss_block_t *block, float *action);
typedef void (*tt_draw_back_fn)(
    const void *params, const void *const *input, const tt_loss_block_t *block, const float *d_action);
