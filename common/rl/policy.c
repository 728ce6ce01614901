#include "common/rl/policy.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/vmath.h"
#include "common/nn/math/activation.h"

/*  Floats on the stack: an element with more choices takes memory, and so do more deviations. */
enum { SCRATCH = 1024, OWN = 64 };

void tt_policy_of(tt_policy_t *self, const tt_columns_t *columns)
{
    *self = (tt_policy_t){.parts = columns->action_count, .mask_bits = columns->mask_bits};
    uint32_t mask = 0, draw = 0, deviations = 0;
    for (uint32_t p = 0; p < self->parts; p++) {
        const tt_column_t *column = &columns->at[columns->action + p];
        tt_policy_part_t *part = &self->part[p];
        *part = (tt_policy_part_t){.box = !column->choice,
            .column = columns->action + p,
            .number = p,
            .bits = column->dtype == TT_U8,
            .elements = column->elements,
            .n = column->choice ? columns->choices + column->first : NULL,
            .head = self->out,
            .out = column->flat,
            .log_std = deviations,
            .mask = mask,
            .draw = draw};
        self->out += part->out;
        deviations += part->box ? part->elements : 0;
        mask += part->box ? 0 : part->out;
        draw += part->box ? (part->elements + 3) / 4 : part->elements;
    }
    self->log_std = columns->state_std || columns->no_std ? 0 : deviations;
    self->own_std = columns->state_std ? deviations : 0;
    self->out += self->own_std;
}

bool tt_policy_boxes(const tt_policy_t *self)
{
    bool all = self->parts > 0;
    for (uint32_t p = 0; p < self->parts; p++)
        all &= self->part[p].box;
    return all;
}

bool tt_policy_one_choice(const tt_policy_t *self)
{
    const tt_policy_part_t *part = self->part;
    return self->parts == 1 && !part->box && part->elements == 1 && !part->bits;
}

/*  One categorical or one Gaussian, and nothing to forbid: whole arrays at once. */
static bool s_one_choice(const tt_policy_t *self, const uint8_t *mask)
{
    return tt_policy_one_choice(self) && !mask;
}

static bool s_one_box(const tt_policy_t *self)
{
    return self->parts == 1 && self->part->box && !self->own_std;
}

/* ---- one element: logits[n], allowed[n] or NULL -------------------------------------------------------------------- */

typedef struct {
    const float *logits;
    const uint8_t *allowed;
    uint32_t n;
} s_choice_t;

/*  e[n] = exp(logit - max) of what is allowed, 0 elsewhere; *sum in order. */
static void s_weights(const s_choice_t *c, float *e, float *max, float *sum)
{
    float top = 0;
    bool any = false;
    for (uint32_t a = 0; a < c->n; a++)
        if (!c->allowed || c->allowed[a]) {
            top = any && !(c->logits[a] > top) ? top : c->logits[a];
            any = true;
        }
    for (uint32_t a = 0; a < c->n; a++)
        e[a] = !c->allowed || c->allowed[a] ? c->logits[a] - top : 0;
    tt_vexp(e, e, c->n);
    *max = top;
    *sum = 0;
    for (uint32_t a = 0; a < c->n; a++) {
        e[a] = !c->allowed || c->allowed[a] ? e[a] : 0;
        *sum += e[a];
    }
}

/*  The first choice whose cumulative weight exceeds `level`; when rounding left none, the last one with any weight, and the
 *  first that is allowed when the weights are no numbers. */
static uint32_t s_pick(const s_choice_t *c, const float *e, float level)
{
    float sum = 0;
    uint32_t last = 0;
    while (c->allowed && last + 1 < c->n && !c->allowed[last])
        last++;
    for (uint32_t a = 0; a < c->n; a++) {
        sum += e[a];
        if (sum > level)
            return a;
        last = e[a] > 0 ? a : last;
    }
    return last;
}

static uint32_t s_best(const s_choice_t *c)
{
    uint32_t best = c->n;
    for (uint32_t a = 0; a < c->n; a++)
        if ((!c->allowed || c->allowed[a]) && (best == c->n || c->logits[a] > c->logits[best]))
            best = a;
    return best < c->n ? best : 0;
}

static float s_log_prob(const s_choice_t *c, uint32_t choice, float max, float sum)
{
    if (c->allowed && !c->allowed[choice])
        return -__builtin_inff();
    return c->logits[choice] - max - tt_logf(sum);
}

/* ---- rows ---------------------------------------------------------------------------------------------------------- */

/*  What walking over the elements of one row needs. */
typedef struct {
    const tt_policy_t *policy;
    const float *head;   /* of the row */
    const uint8_t *mask; /* of the row, or NULL */
    const float *log_std;
    float *scratch, stack[SCRATCH];
    float *own, own_stack[OWN]; /* the row's log_std, where it has one of its own and somebody asks; else NULL */
} s_walk_t;

static void s_walk_init(s_walk_t *self, const tt_policy_t *policy, const float *log_std)
{
    uint32_t most = 0;
    self->own = policy->own_std <= OWN ? self->own_stack : tt_array0(policy->own_std, sizeof(float));
    self->log_std = policy->own_std ? self->own : log_std;
    for (uint32_t p = 0; p < policy->parts; p++)
        for (uint32_t j = 0; !policy->part[p].box && j < policy->part[p].elements; j++)
            most = policy->part[p].n[j] > most ? policy->part[p].n[j] : most;
    self->policy = policy;
    self->scratch = most <= SCRATCH ? self->stack : tt_array0(most, sizeof(float));
}

static void s_walk_free(s_walk_t *self)
{
    if (self->scratch != self->stack)
        free(self->scratch);
    if (self->own != self->own_stack)
        free(self->own);
}

static void s_walk_row(s_walk_t *self, const float *head, const uint8_t *mask, size_t row)
{
    const tt_policy_t *policy = self->policy;
    self->head = head + row * policy->out;
    self->mask = mask ? mask + row * policy->mask_bits : NULL;
    for (uint32_t a = 0; self->own && a < policy->own_std; a++)
        self->own[a] = tt_held_log_std(self->head[policy->out - policy->own_std + a]);
}

/*  Element j of a part begins `before` choices into it. */
static s_choice_t s_element(const s_walk_t *self, const tt_policy_part_t *part, uint32_t j, uint32_t before)
{
    return (s_choice_t){.logits = self->head + part->head + before,
        .allowed = self->mask ? self->mask + part->mask + before : NULL,
        .n = part->n[j]};
}

static void s_put(const tt_policy_part_t *part, void *action, size_t at, uint32_t choice)
{
    if (part->bits)
        ((uint8_t *)action)[at] = (uint8_t)choice;
    else
        ((int32_t *)action)[at] = (int32_t)choice;
}

static uint32_t s_get(const tt_policy_part_t *part, const void *action, size_t at)
{
    return part->bits ? ((const uint8_t *)action)[at] : (uint32_t)((const int32_t *)action)[at];
}

static float s_sample_choices(
    s_walk_t *self, const tt_policy_part_t *part, const tt_dist_draw_t *draw, size_t row, void *action)
{
    float total = 0;
    for (uint32_t j = 0, before = 0; j < part->elements; before += part->n[j++]) {
        const s_choice_t c = s_element(self, part, j, before);
        float max, sum;
        uint32_t word[4];
        s_weights(&c, self->scratch, &max, &sum);
        tt_dist_words(draw, row, part->draw + j, word);
        const uint32_t choice = s_pick(&c, self->scratch, tt_unit_f32(word[0]) * sum);
        s_put(part, action, row * part->elements + j, choice);
        total += s_log_prob(&c, choice, max, sum);
    }
    return total;
}

static float s_sample_box(
    s_walk_t *self, const tt_policy_part_t *part, const tt_dist_draw_t *draw, size_t row, float *action)
{
    const float *mean = self->head + part->head, *log_std = self->log_std + part->log_std;
    float log_prob;
    action += row * part->elements;
    tt_gauss_sample_row(mean, log_std, part->elements, draw, row, part->draw, action);
    tt_gauss_log_prob(mean, log_std, 1, part->elements, action, &log_prob);
    return log_prob;
}

void tt_policy_sample(const tt_policy_t *self, const float *head, const float *log_std, const uint8_t *mask,
    size_t rows, const tt_dist_draw_t *draw, void *const *action, float *log_prob)
{
    if (s_one_choice(self, mask)) {
        tt_cat_sample(head, rows, self->out, draw, action[0], log_prob);
        return;
    }
    if (s_one_box(self)) {
        tt_gauss_sample(head, log_std, rows, self->out, draw, action[0], log_prob);
        return;
    }
    s_walk_t walk;
    s_walk_init(&walk, self, log_std);
    for (size_t i = 0; i < rows; i++) {
        float total = 0;
        s_walk_row(&walk, head, mask, i);
        for (uint32_t p = 0; p < self->parts; p++)
            total += self->part[p].box ? s_sample_box(&walk, &self->part[p], draw, i, action[p])
                                       : s_sample_choices(&walk, &self->part[p], draw, i, action[p]);
        if (log_prob)
            log_prob[i] = total;
    }
    s_walk_free(&walk);
}

void tt_policy_greedy(const tt_policy_t *self, const float *head, const uint8_t *mask, size_t rows, void *const *action)
{
    s_walk_t walk = {.policy = self};
    for (size_t i = 0; i < rows; i++) {
        s_walk_row(&walk, head, mask, i);
        for (uint32_t p = 0; p < self->parts; p++) {
            const tt_policy_part_t *part = &self->part[p];
            const size_t at = i * part->elements;
            if (part->box)
                memcpy((float *)action[p] + at, walk.head + part->head, part->elements * sizeof(float));
            for (uint32_t j = 0, before = 0; !part->box && j < part->elements; before += part->n[j++]) {
                const s_choice_t c = s_element(&walk, part, j, before);
                s_put(part, action[p], at + j, s_best(&c));
            }
        }
    }
}

/*  The one that `word` says of those that are allowed. */
static uint32_t s_any(const s_choice_t *c, uint32_t word)
{
    uint32_t allowed = 0;
    for (uint32_t a = 0; a < c->n; a++)
        allowed += !c->allowed || c->allowed[a];
    uint32_t left = tt_below(word, allowed);
    for (uint32_t a = 0; a < c->n; a++)
        if ((!c->allowed || c->allowed[a]) && left-- == 0)
            return a;
    return 0;
}

void tt_policy_explore(const tt_policy_t *self, const float *q, const uint8_t *mask, size_t rows, const float *epsilon,
    const tt_dist_draw_t *draw, int32_t *action)
{
    const bool one = tt_policy_one_choice(self);
    TT_CHECK(one);
    s_walk_t walk = {.policy = self};
    for (size_t i = 0; i < rows; i++) {
        uint32_t word[4];
        s_walk_row(&walk, q, mask, i);
        const s_choice_t c = s_element(&walk, self->part, 0, 0);
        tt_dist_words(draw, i, self->part->draw, word);
        action[i] = (int32_t)(tt_unit_f32(word[0]) < epsilon[i] ? s_any(&c, word[1]) : s_best(&c));
    }
}

/*  tanh(u) is even within -1 and 1: u = atanh(2 x - 1), and x within 0 and 1, at neither end. */
static float s_even(uint32_t word)
{
    const float x = ((float)(word >> 9) + 0.5f) * 0x1p-23f;
    return 0.5f * (tt_logf(x) - tt_logf(1 - x));
}

void tt_policy_any_squashed(const tt_policy_t *self, size_t rows, const tt_dist_draw_t *draw, void *const *action)
{
    for (size_t i = 0; i < rows; i++)
        for (uint32_t p = 0; p < self->parts; p++) {
            const tt_policy_part_t *part = &self->part[p];
            uint32_t word[4];
            TT_CHECK(part->box);
            for (uint32_t e = 0; e < part->elements; e++) {
                if (e % 4 == 0)
                    tt_dist_words(draw, i, part->draw + e / 4, word);
                ((float *)action[p])[i * part->elements + e] = s_even(word[e % 4]);
            }
        }
}

/*  atanh: the number whose tanh it is. Neither bound has one, and behind the last number there is none of the critics' to tell apart. */
static float s_unsquashed(float y)
{
    const float most = 1 - 0x1p-20f;
    y = y > most ? most : y < -most ? -most : y;
    return 0.5f * (tt_logf(1 + y) - tt_logf(1 - y));
}

void tt_policy_noisy_mean(const tt_policy_t *self, const float *head, size_t rows, float sigma,
    const tt_dist_draw_t *draw, void *const *action)
{
    for (size_t i = 0; i < rows; i++)
        for (uint32_t p = 0; p < self->parts; p++) {
            const tt_policy_part_t *part = &self->part[p];
            const float *mean = head + i * self->out + part->head;
            uint32_t word[4];
            float z[4];
            TT_CHECK(part->box);
            for (uint32_t e = 0; e < part->elements; e++) {
                if (e % 4 == 0) {
                    tt_dist_words(draw, i, part->draw + e / 4, word);
                    tt_normals(word, z);
                }
                ((float *)action[p])[i * part->elements + e] = s_unsquashed(tt_tanhf(mean[e]) + sigma * z[e % 4]);
            }
        }
}

static float s_part_log_prob(s_walk_t *self, const tt_policy_part_t *part, size_t row, const void *action)
{
    float total = 0, max, sum;
    const size_t at = row * part->elements;
    if (part->box) {
        tt_gauss_log_prob(self->head + part->head, self->log_std + part->log_std, 1, part->elements,
            (const float *)action + at, &total);
        return total;
    }
    for (uint32_t j = 0, before = 0; j < part->elements; before += part->n[j++]) {
        const s_choice_t c = s_element(self, part, j, before);
        s_weights(&c, self->scratch, &max, &sum);
        total += s_log_prob(&c, s_get(part, action, at + j), max, sum);
    }
    return total;
}

void tt_policy_log_prob(const tt_policy_t *self, const float *head, const float *log_std, const uint8_t *mask,
    size_t rows, const void *const *action, float *log_prob)
{
    if (s_one_choice(self, mask)) {
        tt_cat_log_prob(head, rows, self->out, action[0], log_prob);
        return;
    }
    if (s_one_box(self)) {
        tt_gauss_log_prob(head, log_std, rows, self->out, action[0], log_prob);
        return;
    }
    s_walk_t walk;
    s_walk_init(&walk, self, log_std);
    for (size_t i = 0; i < rows; i++) {
        s_walk_row(&walk, head, mask, i);
        log_prob[i] = 0;
        for (uint32_t p = 0; p < self->parts; p++)
            log_prob[i] += s_part_log_prob(&walk, &self->part[p], i, action[p]);
    }
    s_walk_free(&walk);
}
