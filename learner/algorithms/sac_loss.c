#include "learner/algorithms/sac_loss.h"
#include <string.h>
#include "common/base/vmath.h"
#include "common/nn/math/activation.h"
#include "common/rl/gauss.h"
#include "learner/algorithms/block.h"

#define LN_2 0.693147181f

/*  Parameters and tables under their names. */
typedef struct {
    sac_loss_t p;
    const float *noise, *ret, *discount, *weight;
} given_t;

BLOCK_FN given_t s_given(const void *params, const void *const *input)
{
    return (given_t){.p = *(const sac_loss_t *)params,
        .noise = (const float *)input[SAC_IN_NOISE],
        .ret = (const float *)input[SAC_IN_RETURN],
        .discount = (const float *)input[SAC_IN_DISCOUNT],
        .weight = (const float *)input[SAC_IN_WEIGHT]};
}

/*  w of the units, 0 behind the last. */
BLOCK_FN void s_weights(const given_t *self, const tt_loss_block_t *block, col_out weight)
{
    block_zero(weight);
    EACH_GIVEN_ROW(r, block)
    {
        weight[r] = self->weight[block->row[r]] * self->p.scale;
    }
}

/*  A column of a table of one float a unit; zeros behind the last. */
BLOCK_FN void s_column(const tt_loss_block_t *block, const float *table, col_out out)
{
    block_zero(out);
    EACH_GIVEN_ROW(r, block)
    {
        out[r] = table[block->row[r]];
    }
}

/* ---- the draw ------------------------------------------------------------------------------------------------------- */

/*  Number `a` of what is drawn: z, its deviation, and y. */
typedef struct {
    col_t z, log_std, std, u, y;
} drawn_t;

BLOCK_FN void s_drawn(const given_t *self, const tt_loss_block_t *block, const float *head, uint32_t a, drawn_t *out)
{
    const float *mean = head + (size_t)a * TT_BLOCK, *raw = head + (size_t)(self->p.numbers + a) * TT_BLOCK;
    block_zero(out->z);
    EACH_GIVEN_ROW(r, block)
    {
        out->z[r] = self->noise[(size_t)block->row[r] * self->p.numbers + a];
    }
    EACH_ROW(r)
    {
        out->log_std[r] = tt_held_log_std(raw[r]);
        out->std[r] = tt_expf(out->log_std[r]);
        out->u[r] = mean[r] + out->std[r] * out->z[r];
        out->y[r] = tt_tanhf(out->u[r]);
    }
}

/*  log(1 - tanh^2 u) = 2 (ln 2 - |u| - log(1 + exp(-2 |u|))): without the difference, of which little is left. */
BLOCK_FN float s_log_slope(float u)
{
    const float size = __builtin_fabsf(u);
    return 2 * (LN_2 - size - tt_logf(1 + tt_expf(-2 * size)));
}

BLOCK_FN void s_log_prob(const given_t *self, const tt_loss_block_t *block, const float *head, col_out log_prob)
{
    drawn_t d;
    block_zero(log_prob);
    EACH_IN_TURN(a, self->p.numbers)
    {
        s_drawn(self, block, head, a, &d);
        EACH_ROW(r)
        {
            log_prob[r] += -0.5f * d.z[r] * d.z[r] - d.log_std[r] - TT_HALF_LN_2PI - s_log_slope(d.u[r]);
        }
    }
}

/*  Beyond its limits a deviation stands still. */
BLOCK_FN float s_std_slope(float raw, float slope)
{
    return raw < TT_LOG_STD_LEAST || raw > TT_LOG_STD_MOST ? 0 : slope;
}

BLOCK_FN void s_draw(const given_t *self, const tt_loss_block_t *block, float *action)
{
    drawn_t d;
    EACH_NUMBER(a, self->p.numbers)
    {
        s_drawn(self, block, block->head[0], a, &d);
        EACH_ROW(r)
        {
            action[(size_t)a * TT_BLOCK + r] = d.y[r];
        }
    }
}

BLOCK_FN void s_draw_back(const given_t *self, const tt_loss_block_t *block, const float *d_action)
{
    drawn_t d;
    EACH_NUMBER(a, self->p.numbers)
    {
        const float *raw = block->head[0] + (size_t)(self->p.numbers + a) * TT_BLOCK;
        float *d_mean = block->d_head[0] + (size_t)a * TT_BLOCK, *d_std = d_mean + (size_t)self->p.numbers * TT_BLOCK;
        s_drawn(self, block, block->head[0], a, &d);
        EACH_ROW(r)
        {
            const float d_u = tt_tanh_back(d.y[r], d_action[(size_t)a * TT_BLOCK + r]);
            d_mean[r] += d_u;
            d_std[r] += s_std_slope(raw[r], d_u * d.std[r] * d.z[r]);
        }
    }
}

BLOCK_CLONES void sac_draw(const void *params, const void *const *input, const tt_loss_block_t *block, float *action)
{
    const given_t given = s_given(params, input);
    s_draw(&given, block, action);
}

BLOCK_CLONES void sac_draw_back(
    const void *params, const void *const *input, const tt_loss_block_t *block, const float *d_action)
{
    const given_t given = s_given(params, input);
    s_draw_back(&given, block, d_action);
}

/*  Is the second critic the lesser one, or none? A NAN of the first stays without. */
BLOCK_FN bool s_is_second(float q1, float q2)
{
    return q2 < q1 || q2 != q2;
}

/* ---- the critics ---------------------------------------------------------------------------------------------------- */

/*  Where nothing follows, what stands there is not read. */
BLOCK_FN void s_targets(const given_t *self, const tt_loss_block_t *block, col_out target)
{
    const float alpha = tt_expf(block->log_std[SAC_NEXT][0]);
    const float *q1 = block->head[SAC_Q1_NEXT], *q2 = block->head[SAC_Q2_NEXT];
    col_t log_prob, discount;
    s_log_prob(self, block, block->head[SAC_NEXT], log_prob);
    s_column(block, self->discount, discount);
    s_column(block, self->ret, target);
    EACH_ROW(r)
    {
        const float least = s_is_second(q1[r], q2[r]) ? q2[r] : q1[r], soft = least - alpha * log_prob[r];
        target[r] += discount[r] > 0 ? discount[r] * soft : 0;
    }
}

BLOCK_FN void s_critic(const tt_loss_block_t *block, uint32_t stage, col_in weight, col_in target, col_out loss)
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

BLOCK_CLONES void sac_critic_loss(const void *params, const void *const *input, const tt_loss_block_t *block)
{
    const given_t given = s_given(params, input);
    const float *q1 = block->head[SAC_Q1_AT], *q2 = block->head[SAC_Q2_AT];
    col_t weight, target, loss, q;
    s_weights(&given, block, weight);
    s_targets(&given, block, target);
    block_zero(loss);
    s_critic(block, SAC_Q1_AT, weight, target, loss);
    s_critic(block, SAC_Q2_AT, weight, target, loss);
    EACH_ROW(r)
    {
        q[r] = weight[r] * 0.5f * (q1[r] + q2[r]);
        target[r] *= weight[r];
    }
    block_add(&block->stats[SAC_CRITIC_LOSS], block_sum(loss));
    block_add(&block->stats[SAC_Q], block_sum(q));
    block_add(&block->stats[SAC_TARGET], block_sum(target));
}

/* ---- the actor ------------------------------------------------------------------------------------------------------ */

/*  By log pi; what comes through the critics is added by the draw. */
BLOCK_FN void s_actor_slopes(const given_t *self, const tt_loss_block_t *block, col_in weight, float alpha)
{
    drawn_t d;
    for (uint32_t a = 0; a < self->p.numbers; a++) {
        const float *raw = block->head[SAC_ACTOR] + (size_t)(self->p.numbers + a) * TT_BLOCK;
        float *d_mean = block->d_head[SAC_ACTOR] + (size_t)a * TT_BLOCK,
              *d_std = d_mean + (size_t)self->p.numbers * TT_BLOCK;
        s_drawn(self, block, block->head[SAC_ACTOR], a, &d);
        EACH_ROW(r)
        {
            const float slope = weight[r] * alpha, d_u = slope * 2 * d.y[r];
            d_mean[r] = d_u;
            d_std[r] = s_std_slope(raw[r], d_u * d.std[r] * d.z[r] - slope);
        }
    }
}

/*  The lesser of both critics, which alone has a slope. */
BLOCK_FN void s_least(const tt_loss_block_t *block, col_in weight, col_out q)
{
    const float *q1 = block->head[SAC_Q1], *q2 = block->head[SAC_Q2];
    float *d_q1 = block->d_head[SAC_Q1], *d_q2 = block->d_head[SAC_Q2];
    EACH_ROW(r)
    {
        const bool second = s_is_second(q1[r], q2[r]);
        q[r] = second ? q2[r] : q1[r];
        d_q1[r] = second ? 0 : -weight[r];
        d_q2[r] = second ? -weight[r] : 0;
    }
}

/*  d: by log alpha; statistics of the weight. */
BLOCK_FN float s_alpha(
    const given_t *self, const tt_loss_block_t *block, col_in weight, col_in log_prob, float log_alpha)
{
    col_t missing;
    EACH_ROW(r)
    {
        missing[r] = weight[r] * (log_prob[r] + self->p.target_entropy);
    }
    const float d = -block_sum(missing);
    block_add(&block->stats[SAC_ALPHA_LOSS], d * log_alpha);
    return self->p.tuned ? d : 0;
}

BLOCK_CLONES void sac_actor_loss(const void *params, const void *const *input, const tt_loss_block_t *block)
{
    const given_t given = s_given(params, input);
    const float log_alpha = block->log_std[SAC_ACTOR][0], alpha = tt_expf(log_alpha);
    col_t weight, log_prob, q;
    s_weights(&given, block, weight);
    s_log_prob(&given, block, block->head[SAC_ACTOR], log_prob);
    s_actor_slopes(&given, block, weight, alpha);
    s_least(block, weight, q);
    block_add(&block->d_log_std[SAC_ACTOR][0], s_alpha(&given, block, weight, log_prob, log_alpha));
    block_add(&block->stats[SAC_ALPHA], alpha * (given.p.scale * (float)block->rows));
    EACH_ROW(r)
    {
        q[r] = weight[r] * (alpha * log_prob[r] - q[r]);
        log_prob[r] = -weight[r] * log_prob[r];
    }
    block_add(&block->stats[SAC_ACTOR_LOSS], block_sum(q));
    block_add(&block->stats[SAC_ENTROPY], block_sum(log_prob));
}

BLOCK_CUDA_LOSS(sac_critic, sac_critic_loss)
BLOCK_CUDA_LOSS(sac_actor, sac_actor_loss)
BLOCK_CUDA_DRAW(sac_critic, sac_draw, sac_draw_back)
BLOCK_CUDA_DRAW(sac_actor, sac_draw, sac_draw_back)
