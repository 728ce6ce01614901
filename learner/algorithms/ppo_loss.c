#include "learner/algorithms/ppo_loss.h"
#include <string.h>
#include "common/base/vmath.h"
#include "common/rl/gauss.h"
#include "learner/algorithms/block.h"

/*  Parameters and tables under their names. */
typedef struct {
    ppo_loss_t p;
    const ppo_row_t *row;
    const ppo_policy_t *policy;
    const uint8_t *mask;
    const void *const *action;
} given_t;

/*  The rows of a block as columns; weight 0 and harmless numbers behind the last. */
typedef struct {
    col_t advantage, target, old_log_prob, old_value, weight;
} cols_t;

BLOCK_FN void s_gather(const given_t *self, const tt_loss_block_t *block, cols_t *out)
{
    memset(out, 0, sizeof *out);
    EACH_GIVEN_ROW(r, block)
    {
        const ppo_row_t *row = &self->row[block->row[r]];
        out->advantage[r] = row->advantage;
        out->target[r] = row->target;
        out->old_log_prob[r] = row->log_prob;
        out->old_value[r] = row->value;
        out->weight[r] = self->p.weight;
    }
    EACH_ROW(r)
    {
        out->advantage[r] = (out->advantage[r] - self->p.mean) * self->p.scale;
    }
}

BLOCK_FN float s_clamp(float x, float low, float high)
{
    x = x < low ? low : x;
    return x > high ? high : x;
}

/*  d_log_prob = d loss / d log pi(a), weighted. */
BLOCK_CLONES static void s_policy(
    const given_t *self, const cols_t *in, col_in log_prob, col_out d_log_prob, float *stats)
{
    col_t loss, kl, old_kl, clipped;
    const float low = 1 - self->p.clip, high = 1 + self->p.clip;
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
        clipped[r] = __builtin_fabsf(ratio - 1) > self->p.clip ? w : 0;
    }
    block_add(&stats[PPO_POLICY_LOSS], block_sum(loss));
    block_add(&stats[PPO_KL], block_sum(kl));
    block_add(&stats[PPO_OLD_KL], block_sum(old_kl));
    block_add(&stats[PPO_CLIPPED], block_sum(clipped));
}

/*  The same without a ratio. */
BLOCK_CLONES static void s_plain_policy(const cols_t *in, col_in log_prob, col_out d_log_prob, float *stats)
{
    col_t loss;
    EACH_ROW(r)
    {
        d_log_prob[r] = -in->weight[r] * in->advantage[r];
        loss[r] = d_log_prob[r] * log_prob[r];
    }
    block_add(&stats[PPO_POLICY_LOSS], block_sum(loss));
}

BLOCK_CLONES static void s_value(
    const given_t *self, const cols_t *in, const float *value, float *d_value, float *stats)
{
    col_t loss;
    const float reach = self->p.clip_value ? self->p.clip : __builtin_inff();
    EACH_ROW(r)
    {
        const float off = value[r] - in->target[r], moved = value[r] - in->old_value[r];
        const float held = off - (moved - s_clamp(moved, -reach, reach)); /* exactly off inside the range */
        const float free_square = off * off, held_square = held * held;
        d_value[r] = in->weight[r] * self->p.value_coef * (free_square >= held_square ? off : 0);
        loss[r] = in->weight[r] * 0.5f * (free_square >= held_square ? free_square : held_square);
    }
    block_add(&stats[PPO_VALUE_LOSS], block_sum(loss));
}

BLOCK_FN void s_policy_of(const given_t *self, const cols_t *in, col_in log_prob, col_out d_log_prob, float *stats)
{
    if (self->p.plain)
        s_plain_policy(in, log_prob, d_log_prob, stats);
    else
        s_policy(self, in, log_prob, d_log_prob, stats);
}

/* ---- choices ------------------------------------------------------------------------------------------------------- */

/*  One discrete element of a block of actions. */
typedef struct {
    uint32_t n;
    const float *head; /* [n][TT_BLOCK] logits                                 */
    float *p;          /* [n][TT_BLOCK] probabilities, in the end derivatives  */
    choices_t chosen;
    col_t max, log_sum; /* of exp(logit - max) */
    col_t entropy, log_prob;
} choice_t;

BLOCK_FN void s_chosen(
    const given_t *self, const tt_loss_block_t *block, const ppo_part_t *part, uint32_t element, choices_out chosen)
{
    const void *action = self->action[part - self->policy->part];
    block_no_choices(chosen);
    EACH_GIVEN_ROW(r, block)
    {
        const size_t at = (size_t)block->row[r] * part->elements + element;
        chosen[r] = part->bits ? ((const uint8_t *)action)[at] : ((const int32_t *)action)[at];
    }
}

/*  p = the logits; -inf for what is not allowed. */
BLOCK_FN void s_logits(const given_t *self, const tt_loss_block_t *block, size_t first_bit, const choice_t *c)
{
    block_copy(c->n, c->head, c->p);
    if (!self->mask)
        return;
    EACH_GIVEN_ROW(r, block)
    {
        const uint8_t *allowed = self->mask + (size_t)block->row[r] * self->policy->mask_bits + first_bit;
        EACH_COLUMN(a, 0, c->n)
        {
            if (!allowed[a])
                c->p[a * TT_BLOCK + r] = -__builtin_inff();
        }
    }
}

/*  p = the probabilities; the largest logit of every row, and the logarithm of the sum of exp(logit - max). */
BLOCK_FN void s_softmax(choice_t *c)
{
    float *restrict p = c->p;
    col_t sum = {0};
    block_load(p, c->max);
    EACH_COLUMN(a, 1, c->n)
    EACH_ROW(r)
    {
        c->max[r] = p[a * TT_BLOCK + r] > c->max[r] ? p[a * TT_BLOCK + r] : c->max[r];
    }
    EACH_COLUMN(a, 0, c->n)
    EACH_ROW(r)
    {
        p[a * TT_BLOCK + r] = tt_expf(p[a * TT_BLOCK + r] - c->max[r]);
        sum[r] += p[a * TT_BLOCK + r];
    }
    EACH_ROW(r)
    {
        c->log_sum[r] = tt_logf(sum[r]);
        sum[r] = tt_divf(1, sum[r]);
    }
    EACH_COLUMN(a, 0, c->n)
    EACH_ROW(r)
    {
        p[a * TT_BLOCK + r] *= sum[r];
    }
}

/*  Where p is 0, as it is for what is masked, nothing is added: log p is of the logit as it came, and finite. */
BLOCK_FN void s_entropy(choice_t *c)
{
    const float *restrict head = c->head, *restrict p = c->p;
    block_zero(c->entropy);
    block_zero(c->log_prob);
    EACH_COLUMN(a, 0, c->n)
    EACH_ROW(r)
    {
        const float log_p = head[a * TT_BLOCK + r] - c->max[r] - c->log_sum[r];
        c->entropy[r] -= p[a * TT_BLOCK + r] * log_p;
        c->log_prob[r] = c->chosen[r] == (int32_t)a ? log_p : c->log_prob[r];
    }
}

BLOCK_FN void s_choice(const given_t *self, const tt_loss_block_t *block, const ppo_part_t *part, uint32_t element,
    size_t before, choice_t *out)
{
    BLOCK_MAKE(choice_t, c, out);
    const size_t at = (part->head + before) * TT_BLOCK;
    c->n = self->policy->choices[part->choices + element];
    c->head = block->head[PPO_ACTOR] + at;
    c->p = block->d_head[PPO_ACTOR] + at;
    s_chosen(self, block, part, element, c->chosen);
    s_logits(self, block, part->mask + before, c);
    s_softmax(c);
    s_entropy(c);
    BLOCK_MADE(c, out);
}

BLOCK_FN void s_choice_slopes(const given_t *self, const cols_t *in, col_in d_log_prob, const choice_t *made)
{
    BLOCK_OWN(const choice_t, c, made);
    const float *restrict head = c->head;
    float *restrict p = c->p;
    EACH_COLUMN(a, 0, c->n)
    EACH_ROW(r)
    {
        const float prob = p[a * TT_BLOCK + r], log_p = head[a * TT_BLOCK + r] - c->max[r] - c->log_sum[r];
        const float chosen = c->chosen[r] == (int32_t)a ? 1.0f : 0.0f;
        p[a * TT_BLOCK + r] =
            d_log_prob[r] * (chosen - prob) + in->weight[r] * self->p.entropy_coef * prob * (log_p + c->entropy[r]);
    }
}

/* ---- boxes ---------------------------------------------------------------------------------------------------------- */

/*  z = (action - mean) / deviation of an element. */
BLOCK_FN void s_standardise(const given_t *self, const tt_loss_block_t *block, const ppo_part_t *part, uint32_t element,
    float inv_std, col_out z)
{
    const float *mean = block->head[PPO_ACTOR] + (size_t)(part->head + element) * TT_BLOCK,
                *box = (const float *)self->action[part - self->policy->part];
    block_zero(z);
    EACH_GIVEN_ROW(r, block)
    {
        z[r] = box[(size_t)block->row[r] * part->elements + element];
    }
    EACH_ROW(r)
    {
        z[r] = (z[r] - mean[r]) * inv_std;
    }
}

BLOCK_FN void s_box(const given_t *self, const tt_loss_block_t *block, const ppo_part_t *part, col_out log_prob)
{
    col_t z;
    for (uint32_t e = 0; e < part->elements; e++) {
        const float log_std = block->log_std[PPO_ACTOR][part->log_std + e];
        s_standardise(self, block, part, e, tt_expf(-log_std), z);
        EACH_ROW(r)
        {
            log_prob[r] += -0.5f * z[r] * z[r] - log_std - TT_HALF_LN_2PI;
        }
    }
}

BLOCK_FN void s_box_slopes(
    const given_t *self, const tt_loss_block_t *block, const ppo_part_t *part, col_in d_log_prob, float weight)
{
    col_t z, d_log_std;
    for (uint32_t e = 0; e < part->elements; e++) {
        const float inv_std = tt_expf(-block->log_std[PPO_ACTOR][part->log_std + e]);
        float *restrict d_mean = block->d_head[PPO_ACTOR] + (size_t)(part->head + e) * TT_BLOCK;
        s_standardise(self, block, part, e, inv_std, z);
        EACH_ROW(r)
        {
            d_mean[r] = d_log_prob[r] * z[r] * inv_std;
            d_log_std[r] = d_log_prob[r] * (z[r] * z[r] - 1);
        }
        block_add(
            &block->d_log_std[PPO_ACTOR][part->log_std + e], block_sum(d_log_std) - self->p.entropy_coef * weight);
    }
}

/* ---- boxes whose deviation is the row's own ------------------------------------------------------------------------- */

/*  As s_standardise. raw: as the head has it. */
BLOCK_FN void s_own(const given_t *self, const tt_loss_block_t *block, const ppo_part_t *part, uint32_t element,
    const float **raw, col_out log_std, col_out inv_std, col_out z)
{
    const float *from =
        block->head[PPO_ACTOR] + (size_t)(self->policy->own_std_at + part->log_std + element) * TT_BLOCK;
    s_standardise(self, block, part, element, 1, z);
    EACH_ROW(r)
    {
        log_std[r] = tt_held_log_std(from[r]);
        inv_std[r] = tt_expf(-log_std[r]);
        z[r] *= inv_std[r];
    }
    *raw = from;
}

BLOCK_FN void s_own_box(
    const given_t *self, const tt_loss_block_t *block, const ppo_part_t *part, col_out log_prob, col_out entropy)
{
    const float *raw;
    col_t log_std, inv_std, z;
    for (uint32_t e = 0; e < part->elements; e++) {
        s_own(self, block, part, e, &raw, log_std, inv_std, z);
        EACH_ROW(r)
        {
            log_prob[r] += -0.5f * z[r] * z[r] - log_std[r] - TT_HALF_LN_2PI;
            entropy[r] += log_std[r] + (0.5f + TT_HALF_LN_2PI);
        }
    }
}

/*  Beyond its limits a deviation stands still. */
BLOCK_FN void s_own_slopes(
    const given_t *self, const tt_loss_block_t *block, const cols_t *in, const ppo_part_t *part, col_in d_log_prob)
{
    const float *raw;
    col_t log_std, inv_std, z;
    for (uint32_t e = 0; e < part->elements; e++) {
        float *restrict d_mean = block->d_head[PPO_ACTOR] + (size_t)(part->head + e) * TT_BLOCK;
        float *restrict d_std =
            block->d_head[PPO_ACTOR] + (size_t)(self->policy->own_std_at + part->log_std + e) * TT_BLOCK;
        s_own(self, block, part, e, &raw, log_std, inv_std, z);
        EACH_ROW(r)
        {
            const float slope = d_log_prob[r] * (z[r] * z[r] - 1) - in->weight[r] * self->p.entropy_coef;
            d_mean[r] = d_log_prob[r] * z[r] * inv_std[r];
            d_std[r] = raw[r] < TT_LOG_STD_LEAST || raw[r] > TT_LOG_STD_MOST ? 0 : slope;
        }
    }
}

/* ---- all of it ------------------------------------------------------------------------------------------------------ */

enum {
    CHOICES = 16
}; /* discrete elements whose numbers are kept between the two passes over them; more are made again */

BLOCK_FN choice_t *s_place(choice_t *choices, uint32_t number)
{
    return &choices[number < CHOICES ? number : CHOICES - 1];
}

/*  Log-probabilities and entropies of the block's rows. */
BLOCK_FN void s_log_prob(
    const given_t *self, const tt_loss_block_t *block, choice_t *choices, col_out log_prob, col_out entropy)
{
    const ppo_policy_t *policy = self->policy;
    uint32_t number = 0;
    for (uint32_t i = 0; i < policy->parts; i++) {
        const ppo_part_t *part = &policy->part[i];
        col_t total = {0}; /* of a part, as tt_policy_log_prob adds */
        if (part->box && policy->own_std_at)
            s_own_box(self, block, part, total, entropy);
        else if (part->box)
            s_box(self, block, part, total);
        size_t before = 0;
        for (uint32_t e = 0; !part->box && e < part->elements; before += policy->choices[part->choices + e++]) {
            choice_t *c = s_place(choices, number++);
            s_choice(self, block, part, e, before, c);
            EACH_ROW(r)
            {
                total[r] += c->log_prob[r];
                entropy[r] += c->entropy[r];
            }
        }
        EACH_ROW(r)
        {
            log_prob[r] += total[r];
        }
    }
}

/*  The derivatives by the head and by log_std. */
BLOCK_FN void s_slopes(const given_t *self, const tt_loss_block_t *block, const cols_t *in, choice_t *choices,
    col_in d_log_prob, float weight)
{
    const ppo_policy_t *policy = self->policy;
    uint32_t number = 0;
    for (uint32_t i = 0; i < policy->parts; i++) {
        const ppo_part_t *part = &policy->part[i];
        if (part->box && policy->own_std_at)
            s_own_slopes(self, block, in, part, d_log_prob);
        else if (part->box)
            s_box_slopes(self, block, part, d_log_prob, weight);
        size_t before = 0;
        for (uint32_t e = 0; !part->box && e < part->elements;
             before += policy->choices[part->choices + e++], number++) {
            choice_t *c = s_place(choices, number);
            if (number >= CHOICES - 1)
                s_choice(self, block, part, e, before, c);
            s_choice_slopes(self, in, d_log_prob, c);
        }
    }
}

BLOCK_CLONES void ppo_loss(const void *params, const void *const *input, const tt_loss_block_t *block)
{
    const given_t given = {.p = *(const ppo_loss_t *)params,
        .row = (const ppo_row_t *)input[PPO_IN_ROW],
        .policy = (const ppo_policy_t *)input[PPO_IN_POLICY],
        .mask = (const uint8_t *)input[PPO_IN_MASK],
        .action = input + PPO_IN_ACTION};
    const given_t *self = &given;
    choice_t choices[CHOICES];
    cols_t in;
    col_t log_prob = {0}, entropy = {0}, d_log_prob;
    s_gather(self, block, &in);
    s_log_prob(self, block, choices, log_prob, entropy);
    s_policy_of(self, &in, log_prob, d_log_prob, block->stats);
    const float weight = block_sum(in.weight);
    s_slopes(self, block, &in, choices, d_log_prob, weight);
    s_value(self, &in, block->head[PPO_CRITIC], block->d_head[PPO_CRITIC], block->stats);
    EACH_ROW(r)
    {
        entropy[r] *= in.weight[r];
    }
    block_add(&block->stats[PPO_ENTROPY],
        block_sum(entropy) + weight * tt_gauss_entropy(block->log_std[PPO_ACTOR], self->policy->log_std));
}

BLOCK_CUDA(ppo, ppo_loss)
