#include "learner/algorithms/dqn_loss.h"
#include "common/base/vmath.h"
#include "learner/algorithms/dqn_block.h"

/*  What the target network says of the best choice. Where nothing is better than -inf, as with numbers that are none, it is
 *  NAN: an update must not go on from there. */
BLOCK_FN void s_best(const dqn_given_t *self, const tt_loss_block_t *block, const float *chooser, col_out value)
{
    const float *q = block->head[DQN_TARGET_NEXT];
    col_t best, score;
    EACH_ROW(r)
    {
        best[r] = -__builtin_inff();
        value[r] = __builtin_nanf("");
    }
    EACH_COLUMN(a, 0, self->p.choices)
    {
        dqn_allowed(self, block, a, chooser, score);
        EACH_ROW(r)
        {
            value[r] = score[r] > best[r] ? q[a * TT_BLOCK + r] : value[r];
            best[r] = score[r] > best[r] ? score[r] : best[r];
        }
    }
}

BLOCK_FN void s_targets(const dqn_given_t *self, const dqn_cols_t *in, col_in value, col_out target)
{
    EACH_ROW(r)
    {
        target[r] = dqn_wanted(self, in, r, value[r]);
    }
}

BLOCK_FN void s_taken(const dqn_given_t *self, const tt_loss_block_t *block, const dqn_cols_t *in, col_out q)
{
    block_zero(q);
    EACH_COLUMN(a, 0, self->p.choices)
    EACH_ROW(r)
    {
        q[r] = in->action[r] == (int32_t)a ? block->head[DQN_Q_AT][a * TT_BLOCK + r] : q[r];
    }
}

/*  slope = d loss / d q(at, a), weighted. */
BLOCK_FN void s_huber(const dqn_cols_t *in, col_in error, col_out slope, col_out loss)
{
    EACH_ROW(r)
    {
        const float d = error[r], size = __builtin_fabsf(d), low = d < -1 ? -1 : d;
        slope[r] = in->weight[r] * (low > 1 ? 1 : low);
        loss[r] = in->weight[r] * (size < 1 ? 0.5f * d * d : size - 0.5f);
    }
}

BLOCK_FN void s_square(const dqn_cols_t *in, col_in error, col_out slope, col_out loss)
{
    EACH_ROW(r)
    {
        slope[r] = in->weight[r] * (2 * error[r]);
        loss[r] = in->weight[r] * (error[r] * error[r]);
    }
}

BLOCK_FN void s_slopes(const dqn_given_t *self, const tt_loss_block_t *block, const dqn_cols_t *in, col_in slope)
{
    float *d_head = block->d_head[DQN_Q_AT];
    EACH_COLUMN(a, 0, self->p.choices)
    EACH_ROW(r)
    {
        d_head[a * TT_BLOCK + r] = in->action[r] == (int32_t)a ? slope[r] : 0;
    }
}

BLOCK_FN void s_loss(const dqn_given_t *self, const tt_loss_block_t *block, const float *chooser)
{
    dqn_cols_t in;
    col_t value, target, q, error, size, slope, loss;
    dqn_gather(self, block, &in);
    s_best(self, block, chooser, value);
    s_targets(self, &in, value, target);
    s_taken(self, block, &in, q);
    EACH_ROW(r)
    {
        error[r] = q[r] - target[r];
    }
    if (self->p.squared)
        s_square(&in, error, slope, loss);
    else
        s_huber(&in, error, slope, loss);
    s_slopes(self, block, &in, slope);
    dqn_error(q, target, size);
    dqn_report(block, &in, loss, q, target, size);
    dqn_ride(block, size);
}

BLOCK_CLONES void dqn_loss(const void *params, const void *const *input, const tt_loss_block_t *block)
{
    const dqn_given_t given = dqn_given(params, input);
    s_loss(&given, block, block->head[DQN_TARGET_NEXT]);
}

BLOCK_CLONES void dqn_double_loss(const void *params, const void *const *input, const tt_loss_block_t *block)
{
    const dqn_given_t given = dqn_given(params, input);
    s_loss(&given, block, block->head[DQN_Q_NEXT]);
}

BLOCK_CUDA(dqn, dqn_loss)
BLOCK_CUDA(dqn_double, dqn_double_loss)
