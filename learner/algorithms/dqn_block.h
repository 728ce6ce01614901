/*  dqn_block - what DQN's losses share: a block's units as columns, and which choices are allowed. In the words of block.h.
 *
 *  Threads: pure. */
#pragma once
#include <string.h>
#include "learner/algorithms/block.h"
#include "learner/algorithms/dqn_loss.h"

/*  Parameters and tables under their names. */
typedef struct {
    dqn_loss_t p;
    const int32_t *action;
    const float *ret, *discount, *weight;
    const uint8_t *mask;
} dqn_given_t;

/*  The units of a block as columns; zeros behind the last. */
typedef struct {
    col_t ret, discount, weight, mean; /* mean: the weight of a statistic */
    choices_t action;
} dqn_cols_t;

BLOCK_FN void dqn_gather(const dqn_given_t *self, const tt_loss_block_t *block, dqn_cols_t *out)
{
    memset(out, 0, sizeof *out);
    EACH_GIVEN_ROW(r, block)
    {
        const uint32_t unit = block->row[r];
        out->ret[r] = self->ret[unit];
        out->discount[r] = self->discount[unit];
        out->weight[r] = self->weight[unit] * self->p.scale;
        out->mean[r] = self->p.scale;
        out->action[r] = self->action[unit];
    }
}

/*  A choice's score becomes -inf for each unit to which it is not allowed. */
BLOCK_FN void dqn_forbid(const dqn_given_t *self, const tt_loss_block_t *block, size_t choice, col_out score)
{
    if (!self->mask)
        return;
    EACH_GIVEN_ROW(r, block)
    {
        if (!self->mask[(size_t)block->row[r] * self->p.choices + choice])
            score[r] = -__builtin_inff();
    }
}

/*  A score for each unit; -inf for what is not allowed. */
BLOCK_FN void dqn_allowed(
    const dqn_given_t *self, const tt_loss_block_t *block, size_t choice, const float *q, col_out score)
{
    block_load(q + choice * TT_BLOCK, score);
    dqn_forbid(self, block, choice, score);
}

/*  Number i of the n of each unit's choice. */
BLOCK_FN void dqn_pick(const float *head, choices_out choice, size_t n, size_t i, col_out out)
{
    EACH_ROW(r)
    {
        out[r] = head[((size_t)choice[r] * n + i) * TT_BLOCK + r];
    }
}

/*  h, and back: of sums that would lose their small parts, the quotients. */
BLOCK_FN float dqn_h(float e, float x)
{
    const float size = __builtin_fabsf(x), root = size / (tt_sqrtf(size + 1) + 1);
    return (x < 0 ? -root : root) + e * x;
}

BLOCK_FN float dqn_h_back(float e, float x)
{
    const float more = __builtin_fabsf(x) + 1 + e, root = 2 * more / (tt_sqrtf(1 + 4 * e * more) + 1);
    const float size = (root - 1) * (root + 1);
    return x < 0 ? -size : size;
}

/*  R + g v of a row. Where nothing follows, what stands in `value` is not read. */
BLOCK_FN float dqn_wanted(const dqn_given_t *self, const dqn_cols_t *in, size_t r, float value)
{
    const float e = self->p.rescale;
    const float plain = e > 0 ? dqn_h_back(e, value) : value;
    const float follows = in->discount[r] > 0 ? in->discount[r] * plain : 0;
    const float wanted = in->ret[r] + follows;
    return e > 0 ? dqn_h(e, wanted) : wanted;
}

BLOCK_FN float dqn_mean(const dqn_cols_t *in, col_in col)
{
    col_t part;
    EACH_ROW(r)
    {
        part[r] = in->mean[r] * col[r];
    }
    return block_sum(part);
}

/*  Of the choice that was made, what is said and what is wanted. */
BLOCK_FN void dqn_error(col_in q, col_in target, col_out size)
{
    EACH_ROW(r)
    {
        size[r] = __builtin_fabsf(q[r] - target[r]);
    }
}

/*  What a loss comes to. loss: weighted; error: of q and its target. */
BLOCK_FN void dqn_report(
    const tt_loss_block_t *block, const dqn_cols_t *in, col_in loss, col_in q, col_in target, col_in error)
{
    block_add(&block->stats[DQN_LOSS], block_sum(loss));
    block_add(&block->stats[DQN_ERROR], dqn_mean(in, error));
    block_add(&block->stats[DQN_Q], dqn_mean(in, q));
    block_add(&block->stats[DQN_TARGET], dqn_mean(in, target));
}

/*  How badly a unit was predicted. */
BLOCK_FN void dqn_ride(const tt_loss_block_t *block, col_in size)
{
    if (!block->ride)
        return;
    EACH_GIVEN_ROW(r, block)
    {
        block->ride[block->row[r]] = size[r];
    }
}

BLOCK_FN dqn_given_t dqn_given(const void *params, const void *const *input)
{
    return (dqn_given_t){.p = *(const dqn_loss_t *)params,
        .action = (const int32_t *)input[DQN_IN_ACTION],
        .ret = (const float *)input[DQN_IN_RETURN],
        .discount = (const float *)input[DQN_IN_DISCOUNT],
        .weight = (const float *)input[DQN_IN_WEIGHT],
        .mask = (const uint8_t *)input[DQN_IN_MASK]};
}
