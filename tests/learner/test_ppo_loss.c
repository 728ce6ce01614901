/*  The loss against its formula in double, its derivatives against central differences of that formula, and the shape of
 *  a block: unused rows, sums over blocks, a policy that has run away. */
#include "learner/algorithms/ppo_objective.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/rl/dist.h"
#include "tests/learner/segments.h"
#include "tests/test.h"

enum {
    MANY = 64,  /* rows of the batch    */
    WIDEST = 48 /* floats of a head     */
};

typedef struct {
    tt_columns_t *columns;
    tt_policy_t policy;
    ppo_row_t row[MANY];
    void *action[TT_COLUMNS_MAX];
    uint8_t *mask; /* NULL = the env has none */
    float head[WIDEST * TT_BLOCK], value[TT_BLOCK], log_std[WIDEST];
    uint32_t number[TT_BLOCK];
    float d_head[WIDEST * TT_BLOCK], d_value[TT_BLOCK], d_log_std[WIDEST], stats[TT_LOSS_STATS];
    ppo_loss_t loss;
    ppo_policy_t *parts; /* the policy, as the loss reads it */
    tt_loss_block_t block;
} case_t;

static void s_loss(const case_t *c)
{
    const void *input[TT_INPUTS_MAX] = {[PPO_IN_ROW] = c->row, [PPO_IN_POLICY] = c->parts, [PPO_IN_MASK] = c->mask};
    memcpy(input + PPO_IN_ACTION, c->action, c->policy.parts * sizeof *input);
    ppo_loss(&c->loss, input, &c->block);
}

/*  Spaces of actions. */
typedef struct {
    const char *action;
    bool mask, state_std;
} kind_t;

static const kind_t s_choice = {"discrete(2)", false, false}, s_box = {"float32[2]", false, false};

static double s_random(uint32_t who, uint64_t k)
{
    uint32_t word[4];
    tt_draw(word, 5, TT_STREAM_TEST, who, k);
    return (double)tt_unit_f32(word[0]) - 0.5;
}

typedef enum { CLIPPED, CLIPPED_VALUE, PLAIN, MODES } way_t;

static void s_free(case_t *c)
{
    for (uint32_t p = 0; p < c->policy.parts; p++)
        free(c->action[p]);
    free(c->mask);
    free(c->parts);
    tt_columns_destroy(&c->columns);
}

static void s_open(case_t *c, const kind_t *kind)
{
    memset(c, 0, sizeof *c);
    c->columns = made_columns("float32[1]", kind->action, kind->mask);
    c->columns->state_std = kind->state_std;
    size_t bytes;
    tt_policy_of(&c->policy, c->columns);
    c->parts = ppo_policy_new(&c->policy, &bytes);
    assert_true(c->policy.out <= WIDEST);
    for (uint32_t p = 0; p < c->policy.parts; p++)
        c->action[p] = tt_array0(MANY, c->columns->at[c->policy.part[p].column].bytes);
    if (kind->mask)
        c->mask = tt_array0(MANY, c->policy.mask_bits);
}

/*  Choice of row i, element e: of n. */
static uint32_t s_choose(uint32_t i, uint32_t e, uint32_t n)
{
    return (i + 3 * e) % n;
}

static void s_fill_choices(case_t *c, const tt_policy_part_t *part, uint32_t i, uint32_t seed)
{
    for (uint32_t e = 0, bit = part->mask; e < part->elements; bit += part->n[e++]) {
        const uint32_t chosen = s_choose(i, e, part->n[e]);
        if (part->bits)
            ((uint8_t *)c->action[part->number])[i * part->elements + e] = (uint8_t)chosen;
        else
            ((int32_t *)c->action[part->number])[i * part->elements + e] = (int32_t)chosen;
        for (uint32_t a = 0; c->mask && a < part->n[e]; a++)
            c->mask[i * c->policy.mask_bits + bit + a] = a == chosen || s_random(seed + 30 + a + bit, i) > 0;
    }
}

static void s_fill(case_t *c, const kind_t *kind, uint32_t rows, way_t way, uint32_t seed)
{
    s_open(c, kind);
    const uint32_t A = c->policy.out;
    for (uint32_t i = 0; i < MANY; i++) {
        c->row[i].advantage = (float)(4 * s_random(seed, i));
        c->row[i].target = (float)(2 * s_random(seed + 1, i));
        c->row[i].value = (float)(2 * s_random(seed + 2, i));
    }
    for (uint32_t p = 0; p < c->policy.parts; p++) {
        const tt_policy_part_t *part = &c->policy.part[p];
        for (uint32_t i = 0; part->box && i < MANY * part->elements; i++)
            ((float *)c->action[p])[i] = (float)(3 * s_random(seed + 4 + 1000 * p, i));
        for (uint32_t i = 0; !part->box && i < MANY; i++)
            s_fill_choices(c, part, i, seed);
    }
    for (uint32_t r = 0; r < rows; r++) {
        c->number[r] = (r * 7 + seed) % MANY;
        c->value[r] = c->row[c->number[r]].value + (float)s_random(seed + 5, r);
        for (uint32_t a = 0; a < A; a++)
            c->head[a * TT_BLOCK + r] = (float)(3 * s_random(seed + 6 + a, r));
    }
    for (uint32_t a = 0; a < c->policy.log_std; a++)
        c->log_std[a] = (float)s_random(seed + 20, a);
    for (uint32_t a = A - c->policy.own_std; a < A; a++)
        for (uint32_t r = 0; r < rows; r++)
            c->head[a * TT_BLOCK + r] =
                r % 5 == 3 ? 2.5f : 0.3f * c->head[a * TT_BLOCK + r]; /* some are beyond the limit */
    c->loss = (ppo_loss_t){0.25f, 1.5f, 1.0f / 128, 0.2f, 0.03f, 0.5f, way == CLIPPED_VALUE, way == PLAIN};
    c->block = (tt_loss_block_t){.rows = rows,
        .row = c->number,
        .head = {c->head, c->value},
        .d_head = {c->d_head, c->d_value},
        .log_std = {c->log_std},
        .d_log_std = {c->d_log_std},
        .stats = c->stats};
}

static bool s_allowed(const case_t *c, uint32_t number, uint32_t bit)
{
    return !c->mask || c->mask[number * c->policy.mask_bits + bit];
}

/*  Adds log-probability and entropy of a discrete element whose logits begin at head[0], and bits of the mask at `bit`. */
static void s_choice_terms(const case_t *c, uint32_t number, uint32_t bit, uint32_t n, uint32_t chosen,
    const double *head, double *log_prob, double *entropy)
{
    double sum = 0;
    for (uint32_t a = 0; a < n; a++)
        sum += s_allowed(c, number, bit + a) ? exp(head[a]) : 0;
    *log_prob += head[chosen] - log(sum);
    for (uint32_t a = 0; a < n; a++)
        *entropy -= s_allowed(c, number, bit + a) ? exp(head[a]) / sum * (head[a] - log(sum)) : 0;
}

/*  The log deviation of a number: a weight, or of the row's head, within its limits. */
static double s_log_std(const case_t *c, uint32_t number, const double *head, const double *log_std)
{
    const uint32_t own = c->policy.own_std;
    return own ? fmin(fmax(head[c->policy.out - own + number], -20), 2) : log_std[number];
}

/*  Of row r of the block: both are sums over all elements. */
static void s_terms(
    const case_t *c, uint32_t r, const double *head, const double *log_std, double *log_prob, double *entropy)
{
    const uint32_t number = c->number[r];
    *log_prob = *entropy = 0;
    for (uint32_t p = 0; p < c->policy.parts; p++) {
        const tt_policy_part_t *part = &c->policy.part[p];
        for (uint32_t e = 0, before = 0; e < part->elements; before += part->box ? 1 : part->n[e], e++) {
            if (part->box) {
                const double action = (double)((const float *)c->action[p])[number * part->elements + e];
                const double wide = s_log_std(c, part->log_std + e, head, log_std),
                             z = (action - head[part->head + e]) / exp(wide);
                *log_prob += -0.5 * z * z - wide - 0.5 * log(2 * M_PI);
                *entropy += wide + 0.5 * log(2 * M_PI * M_E);
            } else
                s_choice_terms(c, number, part->mask + before, part->n[e], s_choose(number, e, part->n[e]),
                    head + part->head + before, log_prob, entropy);
        }
    }
}

/*  Old log-probabilities around the current ones, so that ratios lie on both sides of both edges of the clip range. */
static void s_old_log_probs(case_t *c, uint32_t seed)
{
    for (uint32_t r = 0; r < c->block.rows; r++) {
        double head[WIDEST], log_std[WIDEST], log_prob, entropy;
        for (uint32_t a = 0; a < c->policy.out; a++) {
            head[a] = (double)c->head[a * TT_BLOCK + r];
            log_std[a] = (double)c->log_std[a];
        }
        s_terms(c, r, head, log_std, &log_prob, &entropy);
        c->row[c->number[r]].log_prob = (float)(log_prob + s_random(seed, r));
    }
}

/*  The definition: loss of row r (unweighted), and the six statistics. */
static double s_reference(
    const case_t *c, uint32_t r, const double *head, const double *log_std, double value, double stats[PPO_STATS])
{
    double log_prob;
    s_terms(c, r, head, log_std, &log_prob, &stats[PPO_ENTROPY]);
    const ppo_row_t *row = &c->row[c->number[r]];
    const double clip = (double)c->loss.clip;
    const double advantage = ((double)row->advantage - (double)c->loss.mean) * (double)c->loss.scale;
    const double log_ratio = log_prob - (double)row->log_prob;
    const double ratio = exp(log_ratio);
    stats[PPO_POLICY_LOSS] = fmax(-advantage * ratio, -advantage * fmin(fmax(ratio, 1 - clip), 1 + clip));
    const double off = value - (double)row->target, old = (double)row->value;
    const double held = old + fmin(fmax(value - old, -clip), clip) - (double)row->target;
    stats[PPO_VALUE_LOSS] = 0.5 * (c->loss.clip_value ? fmax(off * off, held * held) : off * off);
    stats[PPO_KL] = ratio - 1 - log_ratio;
    stats[PPO_OLD_KL] = -log_ratio;
    stats[PPO_CLIPPED] = fabs(ratio - 1) > clip;
    if (c->loss.plain) {
        stats[PPO_POLICY_LOSS] = -advantage * log_prob;
        stats[PPO_KL] = stats[PPO_OLD_KL] = stats[PPO_CLIPPED] = 0;
    }
    return stats[PPO_POLICY_LOSS] - (double)c->loss.entropy_coef * stats[PPO_ENTROPY] +
           (double)c->loss.value_coef * stats[PPO_VALUE_LOSS];
}

/*  Central difference of the loss of row r by one number. */
static double s_slope(
    const case_t *c, uint32_t r, double *x, const double *head, const double *log_std, const double *value)
{
    const double h = 1e-6, keep = *x;
    double stats[PPO_STATS];
    *x = keep + h;
    const double up = s_reference(c, r, head, log_std, *value, stats);
    *x = keep - h;
    const double down = s_reference(c, r, head, log_std, *value, stats);
    *x = keep;
    return (up - down) / (2 * h) * (double)c->loss.weight;
}

/*  Is number a of the head a logit that its row may not choose? */
static bool s_is_masked(const case_t *c, uint32_t r, uint32_t a)
{
    for (uint32_t p = 0; p < c->policy.parts; p++) {
        const tt_policy_part_t *part = &c->policy.part[p];
        if (!part->box && a >= part->head && a < part->head + part->out)
            return !s_allowed(c, c->number[r], part->mask + a - part->head);
    }
    return false;
}

static void s_check_row(const case_t *c, uint32_t r, double *sums, double *d_log_std)
{
    const double tolerance = 1e-5 * (double)c->loss.weight;
    double head[WIDEST], log_std[WIDEST], value = (double)c->value[r], stats[PPO_STATS];
    for (uint32_t a = 0; a < c->policy.out; a++) {
        head[a] = (double)c->head[a * TT_BLOCK + r];
        log_std[a] = (double)c->log_std[a];
    }
    s_reference(c, r, head, log_std, value, stats);
    for (int i = 0; i < PPO_STATS; i++)
        sums[i] += stats[i] * (double)c->loss.weight;
    assert_true(fabs((double)c->d_value[r] - s_slope(c, r, &value, head, log_std, &value)) < tolerance);
    for (uint32_t a = 0; a < c->policy.out; a++) {
        const double slope = s_slope(c, r, &head[a], head, log_std, &value), got = (double)c->d_head[a * TT_BLOCK + r];
        assert_true(s_is_masked(c, r, a) ? got == 0 : fabs(got - slope) < 10 * tolerance);
    }
    for (uint32_t a = 0; a < c->policy.log_std; a++)
        d_log_std[a] += s_slope(c, r, &log_std[a], head, log_std, &value);
}

static void s_check(const case_t *c)
{
    double sums[PPO_STATS] = {0}, d_log_std[WIDEST] = {0};
    const double tolerance = 1e-5 * (double)c->loss.weight;
    for (uint32_t r = 0; r < c->block.rows; r++)
        s_check_row(c, r, sums, d_log_std);
    for (uint32_t r = c->block.rows; r < TT_BLOCK; r++) { /* unused rows are written as zeros */
        assert_true(c->d_value[r] == 0);
        for (uint32_t a = 0; a < c->policy.out; a++)
            assert_true(c->d_head[a * TT_BLOCK + r] == 0);
    }
    for (uint32_t a = 0; a < c->policy.log_std; a++)
        assert_true(fabs((double)c->d_log_std[a] - d_log_std[a]) < 300 * tolerance);
    for (int i = 0; i < PPO_STATS; i++)
        assert_true(fabs((double)c->stats[i] - sums[i]) < 1e-5);
}

static void test_against_the_formula(void **state)
{
    (void)state;
    static const kind_t kinds[] = {
        {"discrete(1)", false, false},
        {"discrete(2)", false, false},
        {"discrete(5)", false, false},
        {"float32", false, false},
        {"float32[5]", false, false},
        {"multi_discrete(3, 2, 5)", false, false},
        {"multi_binary[4]", false, false},
        {"discrete(5)", true, false},
        {"(discrete(3), float32[2], multi_binary[2], float32)", false, false},
        {"{go: float32[2], grip: multi_discrete(4, 3)}", true, false},
        {"multi_discrete(2, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 2)", true,
            false}, /* more than are kept */
        {"float32", false, true},
        {"float32[5]", false, true},
        {"(discrete(3), float32[2], multi_binary[2], float32)", true, true},
    };
    static case_t c;
    const uint32_t rows[] = {1, 7, 31, 32};
    uint32_t seed = 0;
    for (size_t kind = 0; kind < TT_COUNT(kinds); kind++)
        for (size_t k = 0; k < TT_COUNT(rows); k++)
            for (way_t way = CLIPPED; way < MODES; way++) {
                s_fill(&c, &kinds[kind], rows[k], way, seed += 100);
                s_old_log_probs(&c, seed + 50);
                s_loss(&c);
                s_check(&c);
                s_free(&c);
            }
}

/*  The old log-probabilities come from the policy, the new ones from the loss: with unchanged parameters the ratio is 1 to
 *  the bit, so nothing is clipped and both KL estimates are 0. */
static void test_first_pass_has_ratio_one(void **state)
{
    (void)state;
    static const kind_t kinds[] = {{"discrete(3)", false, false}, {"float32[3]", false, false},
        {"multi_discrete(3, 4)", true, false}, {"(multi_binary[3], float32[3], discrete(3), float32[2])", false, false},
        {"(float32[3], discrete(3), float32[2])", false, true}};
    static case_t c;
    for (size_t kind = 0; kind < TT_COUNT(kinds); kind++) {
        s_fill(&c, &kinds[kind], 32, CLIPPED, 77);
        float head[MANY * WIDEST] = {0}, log_prob[MANY];
        for (uint32_t r = 0; r < 32; r++)
            for (uint32_t a = 0; a < c.policy.out; a++)
                head[c.number[r] * c.policy.out + a] = c.head[a * TT_BLOCK + r];
        tt_policy_log_prob(&c.policy, head, c.log_std, c.mask, MANY, (const void *const *)c.action, log_prob);
        for (uint32_t i = 0; i < MANY; i++)
            c.row[i].log_prob = log_prob[i];
        s_loss(&c);
        assert_true(c.stats[PPO_KL] == 0 && c.stats[PPO_OLD_KL] == 0 && c.stats[PPO_CLIPPED] == 0);
        s_free(&c);
    }
}

/*  What is masked leaves no trace, whatever its logit: the same bits as of a policy that lacks it. */
static void test_a_masked_choice_leaves_no_trace(void **state)
{
    (void)state;
    static case_t c, without;
    s_fill(&c, &(kind_t){"discrete(3)", true, false}, 32, CLIPPED, 8);
    s_fill(&without, &s_choice, 32, CLIPPED, 8);
    for (uint32_t i = 0; i < MANY; i++) {
        ((int32_t *)c.action[0])[i] = ((int32_t *)without.action[0])[i];
        memcpy(c.mask + 3 * i, (const uint8_t[]){1, 1, 0}, 3);
    }
    for (uint32_t r = 0; r < 32; r++)
        c.head[2 * TT_BLOCK + r] = r % 2 ? 80.0f : -80.0f;
    s_loss(&c);
    s_loss(&without);
    assert_memory_equal(c.stats, without.stats, sizeof c.stats);
    assert_memory_equal(c.d_head, without.d_head, 2 * TT_BLOCK * sizeof(float));
    for (uint32_t r = 0; r < 32; r++)
        assert_true(c.d_head[2 * TT_BLOCK + r] == 0);
    s_free(&c);
    s_free(&without);
}

static void test_deviations_stand_still_beyond_their_limits(void **state)
{
    (void)state;
    static case_t c;
    s_fill(&c, &(kind_t){"float32", false, true}, 32, CLIPPED, 11);
    s_old_log_probs(&c, 9);
    c.head[TT_BLOCK] = -20.5f, c.head[TT_BLOCK + 1] = 2.25f, c.head[TT_BLOCK + 2] = 2, c.head[TT_BLOCK + 3] = NAN;
    s_loss(&c);
    assert_true(c.d_head[TT_BLOCK] == 0 && c.d_head[TT_BLOCK + 1] == 0);
    assert_true(c.d_head[TT_BLOCK + 2] != 0 && isnan(c.d_head[TT_BLOCK + 3]) && isfinite(c.d_head[TT_BLOCK + 4]));
    s_free(&c);
}

/*  Sums are added to what is there. */
static void test_blocks_add_up(void **state)
{
    (void)state;
    static case_t c;
    s_fill(&c, &s_box, 20, CLIPPED_VALUE, 3);
    s_old_log_probs(&c, 9);
    s_loss(&c);
    float stats[TT_LOSS_STATS], d_log_std[2];
    memcpy(stats, c.stats, sizeof stats);
    memcpy(d_log_std, c.d_log_std, sizeof d_log_std);
    s_loss(&c);
    for (int i = 0; i < TT_LOSS_STATS; i++)
        assert_true(c.stats[i] == 2 * stats[i]);
    assert_true(c.d_log_std[0] == 2 * d_log_std[0] && c.d_log_std[1] == 2 * d_log_std[1]);
    s_free(&c);
}

/*  A log-ratio of 1000 gives finite derivatives; a NaN in the head gives NaN in its row alone. */
static void test_runaway_and_nan(void **state)
{
    (void)state;
    static case_t c;
    s_fill(&c, &s_choice, 32, CLIPPED_VALUE, 4);
    for (uint32_t i = 0; i < MANY; i++)
        c.row[i].log_prob = i % 2 ? -1000.0f : 1000.0f;
    s_loss(&c);
    for (uint32_t r = 0; r < 32; r++)
        assert_true(isfinite(c.d_head[r]) && isfinite(c.d_head[TT_BLOCK + r]));
    s_old_log_probs(&c, 9);
    c.head[5] = NAN;
    s_loss(&c);
    for (uint32_t r = 0; r < 32; r++)
        assert_true((isnan(c.d_head[r]) != 0) == (r == 5));
    assert_true(isnan(c.stats[PPO_POLICY_LOSS]));
    s_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_the_formula),
        cmocka_unit_test(test_first_pass_has_ratio_one),
        cmocka_unit_test(test_a_masked_choice_leaves_no_trace),
        cmocka_unit_test(test_deviations_stand_still_beyond_their_limits),
        cmocka_unit_test(test_blocks_add_up),
        cmocka_unit_test(test_runaway_and_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
