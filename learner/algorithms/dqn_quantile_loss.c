/*  dqn_quantile_loss - Q-learning of a return's quantiles, and its derivatives, for blocks of units.
 *
 *  Source:  Dabney et al. 2017, "Distributional Reinforcement Learning with Quantile Regression", arXiv:1710.10044, equations 9 and 10 with
 *           kappa 1; sums and means as Stable-Baselines3 Contrib's quantile_huber_loss has them. For a unit with action a, quantiles
 *           t_0 .. t_{N-1} of q(at, a) and those of q_target(next, b), b the choice whose mean is the largest (double: by q(next)):
 *             u_ij = R + g q_target(next, b)_j - t_i,    p_i = (i + 1/2) / N
 *             w / units * sum over i, mean over j of |p_i - [u_ij < 0]| huber(u_ij)
 *  Sums:    of i and of j chains in their order.
 *  The rest, stages, choices, threads, is dqn_loss.h's; what rides is the size of the difference of the means. */
#include "common/base/limits.h"
#include "common/base/vmath.h"
#include "learner/algorithms/dqn_block.h"

/*  The mean of choice a's numbers, as a network's tower of means has it. */
BLOCK_FN void s_mean(const dqn_given_t *self, size_t a, const float *head, col_out mean)
{
    const size_t n = self->p.quantiles;
    block_load(head + a * n * TT_BLOCK, mean);
    for (size_t i = 1; i < n; i++)
        EACH_ROW(r)
        {
            mean[r] = mean[r] + head[(a * n + i) * TT_BLOCK + r];
        }
    EACH_ROW(r)
    {
        mean[r] = mean[r] / (float)n;
    }
}

/*  The allowed choice with the largest mean; -1 where none is larger than -inf, as with numbers that are none. */
BLOCK_FN void s_best(const dqn_given_t *self, const tt_loss_block_t *block, const float *chooser, choices_out best)
{
    col_t most, mean;
    EACH_ROW(r)
    {
        most[r] = -__builtin_inff();
        best[r] = -1;
    }
    for (size_t a = 0; a < self->p.choices; a++) {
        s_mean(self, a, chooser, mean);
        dqn_forbid(self, block, a, mean);
        EACH_ROW(r)
        {
            best[r] = mean[r] > most[r] ? (int32_t)a : best[r];
            most[r] = mean[r] > most[r] ? mean[r] : most[r];
        }
    }
}

/*  What the target network says; where nothing follows it is not read, and where there is no best choice it is no number: an update
 *  must not go on from there. Returns their mean. */
BLOCK_FN void s_targets(const dqn_given_t *self, const tt_loss_block_t *block, const dqn_cols_t *in,
    const float *chooser, col_t *target, col_out mean)
{
    choices_t best, read;
    col_t value;
    s_best(self, block, chooser, best);
    EACH_ROW(r)
    {
        read[r] = best[r] < 0 ? 0 : best[r];
    }
    block_zero(mean);
    for (size_t j = 0; j < self->p.quantiles; j++) {
        dqn_pick(block->head[DQN_TARGET_NEXT], read, self->p.quantiles, j, value);
        EACH_ROW(r)
        {
            const float known = best[r] < 0 ? __builtin_nanf("") : value[r];
            target[j][r] = dqn_wanted(self, in, r, known);
            mean[r] = mean[r] + target[j][r];
        }
    }
    EACH_ROW(r)
    {
        mean[r] = mean[r] / (float)self->p.quantiles;
    }
}

/*  Of one quantile, above which lies `above` of the returns and below which `below`: means over j, not weighted. */
BLOCK_FN void s_against(col_t *target, size_t n, float below, float above, col_in quantile, col_out slope, col_out loss)
{
    block_zero(slope);
    block_zero(loss);
    for (size_t j = 0; j < n; j++)
        EACH_ROW(r)
        {
            const float u = target[j][r] - quantile[r], size = __builtin_fabsf(u), low = u < -1 ? -1 : u;
            const float part = u < 0 ? above : below;
            slope[r] = slope[r] - part * (low > 1 ? 1 : low);
            loss[r] = loss[r] + part * (size < 1 ? 0.5f * u * u : size - 0.5f);
        }
    EACH_ROW(r)
    {
        slope[r] = slope[r] / (float)n;
        loss[r] = loss[r] / (float)n;
    }
}

/*  slope: d loss / d quantile i of the choice that was made. */
BLOCK_FN void s_put_slope(
    const dqn_given_t *self, const tt_loss_block_t *block, const dqn_cols_t *in, size_t i, col_in slope)
{
    float *d_head = block->d_head[DQN_Q_AT];
    for (size_t a = 0; a < self->p.choices; a++)
        EACH_ROW(r)
        {
            d_head[(a * self->p.quantiles + i) * TT_BLOCK + r] = in->action[r] == (int32_t)a ? slope[r] : 0;
        }
}

BLOCK_FN void s_loss(const dqn_given_t *self, const tt_loss_block_t *block, const float *chooser)
{
    const size_t n = self->p.quantiles;
    dqn_cols_t in;
    col_t target[TT_QUANTILES_MAX], target_mean, mean, size, loss;
    dqn_gather(self, block, &in);
    s_targets(self, block, &in, chooser, target, target_mean);
    block_zero(mean);
    block_zero(loss);
    for (size_t i = 0; i < n; i++) {
        const float below = ((float)i + 0.5f) / (float)n;
        col_t quantile, slope, part;
        dqn_pick(block->head[DQN_Q_AT], in.action, n, i, quantile);
        s_against(target, n, below, 1 - below, quantile, slope, part);
        EACH_ROW(r)
        {
            mean[r] = mean[r] + quantile[r];
            loss[r] = loss[r] + in.weight[r] * part[r];
            slope[r] = in.weight[r] * slope[r];
        }
        s_put_slope(self, block, &in, i, slope);
    }
    EACH_ROW(r)
    {
        mean[r] = mean[r] / (float)n;
    }
    dqn_error(mean, target_mean, size);
    dqn_report(block, &in, loss, mean, target_mean, size);
    dqn_ride(block, size);
}

BLOCK_CLONES void dqn_quantile_loss(const void *params, const void *const *input, const tt_loss_block_t *block)
{
    const dqn_given_t given = dqn_given(params, input);
    s_loss(&given, block, block->head[DQN_TARGET_NEXT]);
}

BLOCK_CLONES void dqn_quantile_double_loss(const void *params, const void *const *input, const tt_loss_block_t *block)
{
    const dqn_given_t given = dqn_given(params, input);
    s_loss(&given, block, block->head[DQN_Q_NEXT]);
}

BLOCK_CUDA(dqn_quantile, dqn_quantile_loss)
BLOCK_CUDA(dqn_quantile_double, dqn_quantile_double_loss)
