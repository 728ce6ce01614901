/*  twin_block - what the losses of an actor and two critics share: a block's units as columns, and the critics' loss. In the words of block.h.
 *
 *  Threads: pure. */
#pragma once
#include <stdbool.h>
#include "learner/algorithms/block.h"
#include "learner/algorithms/twin_loss.h"

/*  Tables under their names, and what all parameters begin with. */
typedef struct {
    twin_loss_t p;
    const float *noise, *ret, *discount, *weight;
} twin_given_t;

BLOCK_FN twin_given_t twin_given(const void *params, const void *const *input)
{
    return (twin_given_t){.p = *(const twin_loss_t *)params,
        .noise = (const float *)input[TWIN_IN_NOISE],
        .ret = (const float *)input[TWIN_IN_RETURN],
        .discount = (const float *)input[TWIN_IN_DISCOUNT],
        .weight = (const float *)input[TWIN_IN_WEIGHT]};
}

/*  What units count, 0 behind the last. */
BLOCK_FN void twin_weights(const twin_given_t *self, const tt_loss_block_t *block, col_out weight)
{
    block_zero(weight);
    EACH_GIVEN_ROW(r, block)
    {
        weight[r] = self->weight[block->row[r]] * self->p.scale;
    }
}

/*  A column of a table of one float a unit; zeros behind the last. */
BLOCK_FN void twin_column(const tt_loss_block_t *block, const float *table, col_out out)
{
    block_zero(out);
    EACH_GIVEN_ROW(r, block)
    {
        out[r] = table[block->row[r]];
    }
}

/*  The normals of number `a`. */
BLOCK_FN void twin_noise(const twin_given_t *self, const tt_loss_block_t *block, uint32_t a, col_out out)
{
    block_zero(out);
    EACH_GIVEN_ROW(r, block)
    {
        out[r] = self->noise[(size_t)block->row[r] * self->p.numbers + a];
    }
}

/*  Is the second critic the lesser one, or none? A NAN of the first stays without. */
BLOCK_FN bool twin_is_second(float q1, float q2)
{
    return q2 < q1 || q2 != q2;
}

/*  The lesser of both that follow. */
BLOCK_FN void twin_least_next(const tt_loss_block_t *block, col_out least)
{
    const float *q1 = block->head[TWIN_Q1_NEXT], *q2 = block->head[TWIN_Q2_NEXT];
    EACH_ROW(r)
    {
        least[r] = twin_is_second(q1[r], q2[r]) ? q2[r] : q1[r];
    }
}

BLOCK_FN void twin_critic(const tt_loss_block_t *block, uint32_t stage, col_in weight, col_in target, col_out loss)
{
    const float *q = block->head[stage];
    float *d_q = block->d_head[stage];
    EACH_ROW(r)
    {
        const float error = q[r] - target[r];
        d_q[r] = weight[r] * error;
        loss[r] += 0.5f * weight[r] * error * error;
    }
}

/*  Half the squared error of each critic to the return and what follows, which is not read where nothing does. */
BLOCK_FN void twin_critics(const twin_given_t *self, const tt_loss_block_t *block, col_in follows)
{
    const float *q1 = block->head[TWIN_Q1_AT], *q2 = block->head[TWIN_Q2_AT];
    col_t weight, target, discount, loss, q;
    twin_weights(self, block, weight);
    twin_column(block, self->discount, discount);
    twin_column(block, self->ret, target);
    EACH_ROW(r)
    {
        target[r] += discount[r] > 0 ? discount[r] * follows[r] : 0;
    }
    block_zero(loss);
    twin_critic(block, TWIN_Q1_AT, weight, target, loss);
    twin_critic(block, TWIN_Q2_AT, weight, target, loss);
    EACH_ROW(r)
    {
        q[r] = weight[r] * 0.5f * (q1[r] + q2[r]);
        target[r] *= weight[r];
    }
    block_add(&block->stats[TWIN_CRITIC_LOSS], block_sum(loss));
    block_add(&block->stats[TWIN_Q], block_sum(q));
    block_add(&block->stats[TWIN_TARGET], block_sum(target));
}
