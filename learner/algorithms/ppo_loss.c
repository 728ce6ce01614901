#include "learner/algorithms/ppo_loss.h"
#include <string.h>
#include "common/base/vmath.h"
#include "common/rl/dist.h"

/*  Inlined into each clone of the two losses, so that their loops become that processor's vectors. */
#define INLINE      static inline __attribute__((always_inline))
#define EACH_ROW(r) for (size_t r = 0; r < TT_BLOCK; r++)

typedef float col_t[TT_BLOCK]; /* one number for each row of a block */

/*  The rows of a block as columns; weight 0 and harmless numbers behind the last. */
typedef struct {
    col_t advantage, target, old_log_prob, old_value, weight;
    int32_t action[TT_BLOCK];
} cols_t;

INLINE void s_gather(const ppo_loss_t *self, const tt_loss_block_t *block, cols_t *out)
{
    memset(out, 0, sizeof *out);
    for (size_t r = 0; r < block->rows; r++) {
        const ppo_row_t *row = &self->row[block->row[r]];
        out->advantage[r] = row->advantage;
        out->target[r] = row->target;
        out->old_log_prob[r] = row->log_prob;
        out->old_value[r] = row->value;
        out->action[r] = row->action;
        out->weight[r] = self->weight;
    }
    EACH_ROW(r)
    {
        out->advantage[r] = (out->advantage[r] - self->mean) * self->scale;
    }
}

_Static_assert(TT_BLOCK == 32, "s_sum adds 32 numbers");

/*  32 -> 16 -> 8 -> 4 -> 2 -> 1, always. */
INLINE float s_sum(const float *col)
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

INLINE float s_clamp(float x, float low, float high)
{
    x = x < low ? low : x;
    return x > high ? high : x;
}

/*  d_log_prob = d loss / d log pi(a), weighted. */
TT_CLONES static void s_policy(
    const ppo_loss_t *self, const cols_t *in, const float *log_prob, float *d_log_prob, float *stats)
{
    col_t loss, kl, old_kl, clipped;
    const float low = 1 - self->clip, high = 1 + self->clip;
    EACH_ROW(r)
    {
        const float log_ratio = log_prob[r] - in->old_log_prob[r], w = in->weight[r];
        const float ratio = tt_expf(s_clamp(log_ratio, -20, 20));
        const float free = -in->advantage[r] * ratio, held = -in->advantage[r] * s_clamp(ratio, low, high);
        /* inside the range both are equal and pass the gradient together; outside only the free one has any */
        d_log_prob[r] = w * (free >= held ? free : 0);
        loss[r] = w * (free >= held ? free : held);
        kl[r] = w * (ratio - 1 - log_ratio);
        old_kl[r] = -w * log_ratio;
        clipped[r] = __builtin_fabsf(ratio - 1) > self->clip ? w : 0;
    }
    stats[PPO_POLICY_LOSS] += s_sum(loss);
    stats[PPO_KL] += s_sum(kl);
    stats[PPO_OLD_KL] += s_sum(old_kl);
    stats[PPO_CLIPPED] += s_sum(clipped);
}

/*  The same without a ratio. */
TT_CLONES static void s_plain_policy(const cols_t *in, const float *log_prob, float *d_log_prob, float *stats)
{
    col_t loss;
    EACH_ROW(r)
    {
        d_log_prob[r] = -in->weight[r] * in->advantage[r];
        loss[r] = d_log_prob[r] * log_prob[r];
    }
    stats[PPO_POLICY_LOSS] += s_sum(loss);
}

TT_CLONES static void s_value(
    const ppo_loss_t *self, const cols_t *in, const float *value, float *d_value, float *stats)
{
    col_t loss;
    const float reach = self->clip_value ? self->clip : __builtin_inff();
    EACH_ROW(r)
    {
        const float off = value[r] - in->target[r], moved = value[r] - in->old_value[r];
        const float held = off - (moved - s_clamp(moved, -reach, reach)); /* exactly off inside the range */
        const float free_square = off * off, held_square = held * held;
        d_value[r] = in->weight[r] * self->value_coef * (free_square >= held_square ? off : 0);
        loss[r] = in->weight[r] * 0.5f * (free_square >= held_square ? free_square : held_square);
    }
    stats[PPO_VALUE_LOSS] += s_sum(loss);
}

static void s_policy_of(
    const ppo_loss_t *self, const cols_t *in, const float *log_prob, float *d_log_prob, float *stats)
{
    if (self->plain)
        s_plain_policy(in, log_prob, d_log_prob, stats);
    else
        s_policy(self, in, log_prob, d_log_prob, stats);
}

/*  The largest logit of every row, the logarithm of the sum of exp(logit - max), and the probabilities p[A]. */
INLINE void s_softmax(
    const float *restrict head, uint32_t A, float *restrict max, float *restrict log_sum, float *restrict p)
{
    col_t sum = {0};
    memcpy(max, head, sizeof sum);
    for (size_t a = 1; a < A; a++)
        EACH_ROW(r)
        {
            max[r] = head[a * TT_BLOCK + r] > max[r] ? head[a * TT_BLOCK + r] : max[r];
        }
    for (size_t a = 0; a < A; a++)
        EACH_ROW(r)
        {
            p[a * TT_BLOCK + r] = tt_expf(head[a * TT_BLOCK + r] - max[r]);
            sum[r] += p[a * TT_BLOCK + r];
        }
    EACH_ROW(r)
    {
        log_sum[r] = tt_logf(sum[r]);
        sum[r] = 1 / sum[r];
    }
    for (size_t a = 0; a < A; a++)
        EACH_ROW(r)
        {
            p[a * TT_BLOCK + r] *= sum[r];
        }
}

TT_CLONES void ppo_loss_discrete(const void *ctx, const tt_loss_block_t *block)
{
    const ppo_loss_t *self = ctx;
    const uint32_t A = self->A;
    const float *restrict head = block->head;
    float *restrict p = block->d_head; /* probabilities, then the derivatives */
    cols_t in;
    col_t max, log_sum, entropy = {0}, log_prob = {0}, d_log_prob;
    s_gather(self, block, &in);
    s_softmax(head, A, max, log_sum, p);
    for (size_t a = 0; a < A; a++)
        EACH_ROW(r)
        {
            const float log_p = head[a * TT_BLOCK + r] - max[r] - log_sum[r];
            entropy[r] -= p[a * TT_BLOCK + r] * log_p;
            log_prob[r] = in.action[r] == (int32_t)a ? log_p : log_prob[r];
        }

    s_policy_of(self, &in, log_prob, d_log_prob, block->stats);
    for (size_t a = 0; a < A; a++)
        EACH_ROW(r)
        {
            const float prob = p[a * TT_BLOCK + r], log_p = head[a * TT_BLOCK + r] - max[r] - log_sum[r];
            const float chosen = in.action[r] == (int32_t)a ? 1.0f : 0.0f;
            p[a * TT_BLOCK + r] =
                d_log_prob[r] * (chosen - prob) + in.weight[r] * self->entropy_coef * prob * (log_p + entropy[r]);
        }
    s_value(self, &in, block->value, block->d_value, block->stats);
    EACH_ROW(r)
    {
        entropy[r] *= in.weight[r];
    }
    block->stats[PPO_ENTROPY] += s_sum(entropy);
}

/*  z = (action - mean) / deviation of dimension a. */
INLINE void s_standardise(const ppo_loss_t *self, const tt_loss_block_t *block, size_t a, float inv_std, float *z)
{
    const float *mean = block->head + a * TT_BLOCK;
    memset(z, 0, sizeof(col_t));
    for (size_t r = 0; r < block->rows; r++)
        z[r] = self->action_box[(size_t)block->row[r] * self->A + a];
    EACH_ROW(r)
    {
        z[r] = (z[r] - mean[r]) * inv_std;
    }
}

TT_CLONES void ppo_loss_continuous(const void *ctx, const tt_loss_block_t *block)
{
    const ppo_loss_t *self = ctx;
    cols_t in;
    col_t z, log_prob = {0}, d_log_prob, d_log_std;
    s_gather(self, block, &in);
    for (size_t a = 0; a < self->A; a++) {
        const float log_std = block->log_std[a];
        s_standardise(self, block, a, tt_expf(-log_std), z);
        EACH_ROW(r)
        {
            log_prob[r] += -0.5f * z[r] * z[r] - log_std - TT_HALF_LN_2PI;
        }
    }

    s_policy_of(self, &in, log_prob, d_log_prob, block->stats);
    const float weight = s_sum(in.weight);
    for (size_t a = 0; a < self->A; a++) {
        const float inv_std = tt_expf(-block->log_std[a]);
        float *restrict d_mean = block->d_head + a * TT_BLOCK;
        s_standardise(self, block, a, inv_std, z);
        EACH_ROW(r)
        {
            d_mean[r] = d_log_prob[r] * z[r] * inv_std;
            d_log_std[r] = d_log_prob[r] * (z[r] * z[r] - 1);
        }
        block->d_log_std[a] += s_sum(d_log_std) - self->entropy_coef * weight;
    }
    s_value(self, &in, block->value, block->d_value, block->stats);
    block->stats[PPO_ENTROPY] += weight * tt_gauss_entropy(block->log_std, self->A);
}
