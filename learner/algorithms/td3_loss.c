#include "learner/algorithms/td3_loss.h"
#include "common/nn/math/activation.h"
#include "learner/algorithms/twin_block.h"

/* ---- the draws ------------------------------------------------------------------------------------------------------ */

/*  NAN stays. */
BLOCK_FN float s_within(float x, float most)
{
    x = x > most ? most : x;
    return x < -most ? -most : x;
}

BLOCK_CLONES void td3_draw_next(
    const void *params, const void *const *input, const tt_loss_block_t *block, float *action)
{
    const td3_loss_t p = *(const td3_loss_t *)params;
    const twin_given_t given = twin_given(params, input);
    EACH_NUMBER(a, p.of.numbers)
    {
        const float *mean = block->head[0] + (size_t)a * TT_BLOCK;
        col_t z;
        twin_noise(&given, block, a, z);
        EACH_ROW(r)
        {
            action[(size_t)a * TT_BLOCK + r] = s_within(tt_tanhf(mean[r]) + s_within(p.noise * z[r], p.clip), 1);
        }
    }
}

BLOCK_CLONES void td3_draw(const void *params, const void *const *input, const tt_loss_block_t *block, float *action)
{
    const td3_loss_t p = *(const td3_loss_t *)params;
    (void)input;
    EACH_NUMBER(a, p.of.numbers)
    {
        const float *mean = block->head[0] + (size_t)a * TT_BLOCK;
        EACH_ROW(r)
        {
            action[(size_t)a * TT_BLOCK + r] = tt_tanhf(mean[r]);
        }
    }
}

BLOCK_CLONES void td3_draw_back(
    const void *params, const void *const *input, const tt_loss_block_t *block, const float *d_action)
{
    const td3_loss_t p = *(const td3_loss_t *)params;
    (void)input;
    EACH_NUMBER(a, p.of.numbers)
    {
        const float *mean = block->head[0] + (size_t)a * TT_BLOCK;
        float *d_mean = block->d_head[0] + (size_t)a * TT_BLOCK;
        EACH_ROW(r)
        {
            d_mean[r] += tt_tanh_back(tt_tanhf(mean[r]), d_action[(size_t)a * TT_BLOCK + r]);
        }
    }
}

/* ---- the losses ----------------------------------------------------------------------------------------------------- */

BLOCK_CLONES void td3_critic_loss(const void *params, const void *const *input, const tt_loss_block_t *block)
{
    const twin_given_t given = twin_given(params, input);
    col_t least;
    twin_least_next(block, least);
    twin_critics(&given, block, least);
}

/*  What comes through the critic is all that the actor learns by: its head is given nothing else. */
BLOCK_CLONES void td3_actor_loss(const void *params, const void *const *input, const tt_loss_block_t *block)
{
    const twin_given_t given = twin_given(params, input);
    const float *q = block->head[TD3_Q];
    float *d_q = block->d_head[TD3_Q];
    col_t weight, loss;
    twin_weights(&given, block, weight);
    EACH_IN_TURN(a, given.p.numbers)
    {
        EACH_ROW(r)
        {
            block->d_head[TD3_ACTOR][(size_t)a * TT_BLOCK + r] = 0;
        }
    }
    EACH_ROW(r)
    {
        d_q[r] = -weight[r];
        loss[r] = -weight[r] * q[r];
    }
    block_add(&block->stats[TD3_ACTOR_LOSS], block_sum(loss));
}

BLOCK_CUDA_LOSS(td3_critic, td3_critic_loss)
BLOCK_CUDA_LOSS(td3_actor, td3_actor_loss)
BLOCK_CUDA_DRAW(td3_critic, td3_draw_next, td3_draw_back)
BLOCK_CUDA_DRAW(td3_actor, td3_draw, td3_draw_back)
