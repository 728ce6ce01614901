#include "learner/algorithms/dqn_loss.h"
#include <string.h>
#include "common/base/vmath.h"
#include "learner/algorithms/block.h"

/*  Parameters and tables under their names. */
typedef struct {
    dqn_loss_t p;
    const int32_t *action;
    const float *ret, *discount, *weight;
    const uint8_t *mask;
} given_t;

/*  The units of a block as columns; zeros behind the last. */
typedef struct {
    col_t ret, discount, weight, mean; /* mean: the weight of a statistic */
    choices_t action;
} cols_t;

BLOCK_FN void s_gather(const given_t *self, const tt_loss_block_t *block, cols_t *out)
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

/*  A score for each unit; -inf for what is not allowed. */
BLOCK_FN void s_allowed(const given_t *self, const tt_loss_block_t *block, size_t choice, const float *q, col_out score)
{
    block_load(q + choice * TT_BLOCK, score);
    if (!self->mask)
        return;
    EACH_GIVEN_ROW(r, block)
    {
        if (!self->mask[(size_t)block->row[r] * self->p.choices + choice])
            score[r] = -__builtin_inff();
    }
}

/*  What the target network says of the best choice. Where nothing is better than -inf, as with numbers that are none, it is
 *  NAN: an update must not go on from there. */
BLOCK_FN void s_best(const given_t *self, const tt_loss_block_t *block, const float *chooser, col_out value)
{
    const float *q = block->head[DQN_TARGET_NEXT];
    col_t best, score;
    EACH_ROW(r)
    {
        best[r] = -__builtin_inff();
        value[r] = __builtin_nanf("");
    }
    for (size_t a = 0; a < self->p.choices; a++) {
        s_allowed(self, block, a, chooser, score);
        EACH_ROW(r)
        {
            value[r] = score[r] > best[r] ? q[a * TT_BLOCK + r] : value[r];
            best[r] = score[r] > best[r] ? score[r] : best[r];
        }
    }
}

/*  Where nothing follows, what stands there is not read. */
BLOCK_FN void s_targets(const cols_t *in, col_in value, col_out target)
{
    EACH_ROW(r)
    {
        const float follows = in->discount[r] > 0 ? in->discount[r] * value[r] : 0;
        target[r] = in->ret[r] + follows;
    }
}

BLOCK_FN void s_taken(const given_t *self, const tt_loss_block_t *block, const cols_t *in, col_out q)
{
    block_zero(q);
    for (size_t a = 0; a < self->p.choices; a++)
        EACH_ROW(r)
        {
            q[r] = in->action[r] == (int32_t)a ? block->head[DQN_Q_AT][a * TT_BLOCK + r] : q[r];
        }
}

/*  slope = d loss / d q(at, a), weighted. */
BLOCK_FN void s_huber(const cols_t *in, col_in error, col_out slope, col_out loss)
{
    EACH_ROW(r)
    {
        const float d = error[r], size = __builtin_fabsf(d), low = d < -1 ? -1 : d;
        slope[r] = in->weight[r] * (low > 1 ? 1 : low);
        loss[r] = in->weight[r] * (size < 1 ? 0.5f * d * d : size - 0.5f);
    }
}

BLOCK_FN void s_square(const cols_t *in, col_in error, col_out slope, col_out loss)
{
    EACH_ROW(r)
    {
        slope[r] = in->weight[r] * (2 * error[r]);
        loss[r] = in->weight[r] * (error[r] * error[r]);
    }
}

BLOCK_FN void s_slopes(const given_t *self, const tt_loss_block_t *block, const cols_t *in, col_in slope)
{
    float *d_head = block->d_head[DQN_Q_AT];
    for (size_t a = 0; a < self->p.choices; a++)
        EACH_ROW(r)
        {
            d_head[a * TT_BLOCK + r] = in->action[r] == (int32_t)a ? slope[r] : 0;
        }
}

BLOCK_FN float s_mean(const cols_t *in, col_in col)
{
    col_t part;
    EACH_ROW(r)
    {
        part[r] = in->mean[r] * col[r];
    }
    return block_sum(part);
}

BLOCK_FN void s_loss(const given_t *self, const tt_loss_block_t *block, const float *chooser)
{
    cols_t in;
    col_t value, target, q, error, size, slope, loss;
    s_gather(self, block, &in);
    s_best(self, block, chooser, value);
    s_targets(&in, value, target);
    s_taken(self, block, &in, q);
    EACH_ROW(r)
    {
        error[r] = q[r] - target[r];
        size[r] = __builtin_fabsf(error[r]);
    }
    if (self->p.squared)
        s_square(&in, error, slope, loss);
    else
        s_huber(&in, error, slope, loss);
    s_slopes(self, block, &in, slope);
    block_add(&block->stats[DQN_LOSS], block_sum(loss));
    block_add(&block->stats[DQN_ERROR], s_mean(&in, size));
    block_add(&block->stats[DQN_Q], s_mean(&in, q));
    block_add(&block->stats[DQN_TARGET], s_mean(&in, target));
    if (!block->ride)
        return;
    EACH_GIVEN_ROW(r, block)
    {
        block->ride[block->row[r]] = size[r];
    }
}

BLOCK_FN given_t s_given(const void *params, const void *const *input)
{
    return (given_t){.p = *(const dqn_loss_t *)params,
        .action = (const int32_t *)input[DQN_IN_ACTION],
        .ret = (const float *)input[DQN_IN_RETURN],
        .discount = (const float *)input[DQN_IN_DISCOUNT],
        .weight = (const float *)input[DQN_IN_WEIGHT],
        .mask = (const uint8_t *)input[DQN_IN_MASK]};
}

BLOCK_CLONES void dqn_loss(const void *params, const void *const *input, const tt_loss_block_t *block)
{
    const given_t given = s_given(params, input);
    s_loss(&given, block, block->head[DQN_TARGET_NEXT]);
}

BLOCK_CLONES void dqn_double_loss(const void *params, const void *const *input, const tt_loss_block_t *block)
{
    const given_t given = s_given(params, input);
    s_loss(&given, block, block->head[DQN_Q_NEXT]);
}

BLOCK_CUDA(dqn, dqn_loss)
BLOCK_CUDA(dqn_double, dqn_double_loss)
