#include "learner/algorithms/sac_loss.h"
#include "common/base/vmath.h"
#include "common/nn/math/activation.h"
#include "common/rl/gauss.h"
#include "learner/algorithms/twin_block.h"

#define LN_2 0.693147181f

/*  Parameters and tables under their names. */
typedef struct {
    sac_loss_t p;
    twin_given_t of;
} given_t;

BLOCK_FN given_t s_given(const void *params, const void *const *input)
{
    return (given_t){.p = *(const sac_loss_t *)params, .of = twin_given(params, input)};
}

/* ---- the draw ------------------------------------------------------------------------------------------------------- */

/*  Number `a` of what is drawn: z, its deviation, and y. */
typedef struct {
    col_t z, log_std, std, u, y;
} drawn_t;

BLOCK_FN void s_drawn(const given_t *self, const tt_loss_block_t *block, const float *head, uint32_t a, drawn_t *out)
{
    const float *mean = head + (size_t)a * TT_BLOCK, *raw = head + (size_t)(self->of.p.numbers + a) * TT_BLOCK;
    twin_noise(&self->of, block, a, out->z);
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
    EACH_IN_TURN(a, self->of.p.numbers)
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
    EACH_NUMBER(a, self->of.p.numbers)
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
    EACH_NUMBER(a, self->of.p.numbers)
    {
        const float *raw = block->head[0] + (size_t)(self->of.p.numbers + a) * TT_BLOCK;
        float *d_mean = block->d_head[0] + (size_t)a * TT_BLOCK,
              *d_std = d_mean + (size_t)self->of.p.numbers * TT_BLOCK;
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

/* ---- the critics ---------------------------------------------------------------------------------------------------- */

BLOCK_CLONES void sac_critic_loss(const void *params, const void *const *input, const tt_loss_block_t *block)
{
    const given_t given = s_given(params, input);
    const float alpha = tt_expf(block->log_std[TWIN_NEXT][0]);
    col_t log_prob, soft;
    s_log_prob(&given, block, block->head[TWIN_NEXT], log_prob);
    twin_least_next(block, soft);
    EACH_ROW(r)
    {
        soft[r] -= alpha * log_prob[r];
    }
    twin_critics(&given.of, block, soft);
}

/* ---- the actor ------------------------------------------------------------------------------------------------------ */

/*  By log pi; what comes through the critics is added by the draw. */
BLOCK_FN void s_actor_slopes(const given_t *self, const tt_loss_block_t *block, col_in weight, float alpha)
{
    drawn_t d;
    for (uint32_t a = 0; a < self->of.p.numbers; a++) {
        const float *raw = block->head[SAC_ACTOR] + (size_t)(self->of.p.numbers + a) * TT_BLOCK;
        float *d_mean = block->d_head[SAC_ACTOR] + (size_t)a * TT_BLOCK,
              *d_std = d_mean + (size_t)self->of.p.numbers * TT_BLOCK;
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
        const bool second = twin_is_second(q1[r], q2[r]);
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
    twin_weights(&given.of, block, weight);
    s_log_prob(&given, block, block->head[SAC_ACTOR], log_prob);
    s_actor_slopes(&given, block, weight, alpha);
    s_least(block, weight, q);
    block_add(&block->d_log_std[SAC_ACTOR][0], s_alpha(&given, block, weight, log_prob, log_alpha));
    block_add(&block->stats[SAC_ALPHA], alpha * (given.of.p.scale * (float)block->rows));
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
