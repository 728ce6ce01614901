/*  The loss against its formula in double, its derivatives against central differences of that formula, and the shape of
 *  a block: unused rows, sums over blocks, a policy that has run away. */
#include "learner/algorithms/ppo_loss.h"
#include <math.h>
#include <string.h>
#include "common/base/rng.h"
#include "common/rl/dist.h"
#include "tests/test.h"

enum {
    MANY = 64, /* rows of the batch */
    WIDEST = 5
};

typedef struct {
    ppo_row_t row[MANY];
    float box[MANY * WIDEST];
    float head[WIDEST * TT_BLOCK], value[TT_BLOCK], log_std[WIDEST];
    uint32_t number[TT_BLOCK];
    float d_head[WIDEST * TT_BLOCK], d_value[TT_BLOCK], d_log_std[WIDEST], stats[TT_LOSS_STATS];
    ppo_loss_t loss;
    tt_loss_block_t block;
} case_t;

static double s_random(uint32_t who, uint64_t k)
{
    uint32_t word[4];
    tt_draw(word, 5, TT_STREAM_TEST, who, k);
    return (double)tt_unit_f32(word[0]) - 0.5;
}

typedef enum { CLIPPED, CLIPPED_VALUE, PLAIN, MODES } way_t;

static void s_fill(case_t *c, uint32_t A, uint32_t rows, way_t way, uint32_t seed)
{
    memset(c, 0, sizeof *c);
    for (uint32_t i = 0; i < MANY; i++) {
        c->row[i].advantage = (float)(4 * s_random(seed, i));
        c->row[i].target = (float)(2 * s_random(seed + 1, i));
        c->row[i].value = (float)(2 * s_random(seed + 2, i));
        c->row[i].action = (int32_t)(i % A);
    }
    for (uint32_t i = 0; i < MANY * A; i++)
        c->box[i] = (float)(3 * s_random(seed + 4, i));
    for (uint32_t r = 0; r < rows; r++) {
        c->number[r] = (r * 7 + seed) % MANY;
        c->value[r] = c->row[c->number[r]].value + (float)s_random(seed + 5, r);
        for (uint32_t a = 0; a < A; a++)
            c->head[a * TT_BLOCK + r] = (float)(3 * s_random(seed + 6 + a, r));
    }
    for (uint32_t a = 0; a < A; a++)
        c->log_std[a] = (float)s_random(seed + 20, a);
    c->loss =
        (ppo_loss_t){c->row, c->box, A, 0.25f, 1.5f, 1.0f / 128, 0.2f, 0.03f, 0.5f, way == CLIPPED_VALUE, way == PLAIN};
    c->block = (tt_loss_block_t){
        rows, c->number, c->head, c->value, c->log_std, c->d_head, c->d_value, c->d_log_std, c->stats};
}

/*  Old log-probabilities around the current ones, so that ratios lie on both sides of both edges of the clip range. */
static double s_log_prob(const case_t *c, bool continuous, uint32_t r, const double *head, const double *log_std);

static void s_old_log_probs(case_t *c, bool continuous, uint32_t seed)
{
    for (uint32_t r = 0; r < c->block.rows; r++) {
        double head[WIDEST], log_std[WIDEST];
        for (uint32_t a = 0; a < c->loss.A; a++) {
            head[a] = (double)c->head[a * TT_BLOCK + r];
            log_std[a] = (double)c->log_std[a];
        }
        const double shift = s_random(seed, r);
        c->row[c->number[r]].log_prob = (float)(s_log_prob(c, continuous, r, head, log_std) + shift);
    }
}

static double s_log_prob(const case_t *c, bool continuous, uint32_t r, const double *head, const double *log_std)
{
    const uint32_t number = c->number[r], A = c->loss.A;
    double sum = 0;
    for (uint32_t a = 0; a < A; a++) {
        if (continuous) {
            const double z = ((double)c->box[number * A + a] - head[a]) / exp(log_std[a]);
            sum += -0.5 * z * z - log_std[a] - 0.5 * log(2 * M_PI);
        } else
            sum += exp(head[a]);
    }
    return continuous ? sum : head[c->row[number].action] - log(sum);
}

static double s_entropy(const case_t *c, bool continuous, const double *head, const double *log_std)
{
    double sum = 0, entropy = 0;
    for (uint32_t a = 0; a < c->loss.A; a++)
        sum += continuous ? log_std[a] + 0.5 * log(2 * M_PI * M_E) : exp(head[a]);
    if (continuous)
        return sum;
    for (uint32_t a = 0; a < c->loss.A; a++)
        entropy -= exp(head[a]) / sum * (head[a] - log(sum));
    return entropy;
}

/*  The definition: loss of row r (unweighted), and the six statistics. */
static double s_reference(const case_t *c, bool continuous, uint32_t r, const double *head, const double *log_std,
    double value, double stats[PPO_STATS])
{
    const ppo_row_t *row = &c->row[c->number[r]];
    const double clip = (double)c->loss.clip;
    const double advantage = ((double)row->advantage - (double)c->loss.mean) * (double)c->loss.scale;
    const double log_ratio = s_log_prob(c, continuous, r, head, log_std) - (double)row->log_prob;
    const double ratio = exp(log_ratio);
    stats[PPO_POLICY_LOSS] = fmax(-advantage * ratio, -advantage * fmin(fmax(ratio, 1 - clip), 1 + clip));
    const double off = value - (double)row->target, old = (double)row->value;
    const double held = old + fmin(fmax(value - old, -clip), clip) - (double)row->target;
    stats[PPO_VALUE_LOSS] = 0.5 * (c->loss.clip_value ? fmax(off * off, held * held) : off * off);
    stats[PPO_ENTROPY] = s_entropy(c, continuous, head, log_std);
    stats[PPO_KL] = ratio - 1 - log_ratio;
    stats[PPO_OLD_KL] = -log_ratio;
    stats[PPO_CLIPPED] = fabs(ratio - 1) > clip;
    if (c->loss.plain) {
        stats[PPO_POLICY_LOSS] = -advantage * s_log_prob(c, continuous, r, head, log_std);
        stats[PPO_KL] = stats[PPO_OLD_KL] = stats[PPO_CLIPPED] = 0;
    }
    return stats[PPO_POLICY_LOSS] - (double)c->loss.entropy_coef * stats[PPO_ENTROPY] +
           (double)c->loss.value_coef * stats[PPO_VALUE_LOSS];
}

/*  Central difference of the loss of row r by one number. */
static double s_slope(const case_t *c, bool continuous, uint32_t r, double *x, const double *head,
    const double *log_std, const double *value)
{
    const double h = 1e-6, keep = *x;
    double stats[PPO_STATS];
    *x = keep + h;
    const double up = s_reference(c, continuous, r, head, log_std, *value, stats);
    *x = keep - h;
    const double down = s_reference(c, continuous, r, head, log_std, *value, stats);
    *x = keep;
    return (up - down) / (2 * h) * (double)c->loss.weight;
}

static void s_check(case_t *c, bool continuous)
{
    const uint32_t A = c->loss.A;
    double sums[PPO_STATS] = {0}, d_log_std[WIDEST] = {0};
    const double tolerance = 1e-5 * (double)c->loss.weight;
    for (uint32_t r = 0; r < TT_BLOCK; r++) {
        double head[WIDEST], log_std[WIDEST], value = (double)c->value[r], stats[PPO_STATS];
        for (uint32_t a = 0; a < A; a++) {
            head[a] = (double)c->head[a * TT_BLOCK + r];
            log_std[a] = (double)c->log_std[a];
        }
        if (r >= c->block.rows) { /* unused rows are written as zeros */
            assert_true(c->d_value[r] == 0);
            for (uint32_t a = 0; a < A; a++)
                assert_true(c->d_head[a * TT_BLOCK + r] == 0);
            continue;
        }
        s_reference(c, continuous, r, head, log_std, value, stats);
        for (int i = 0; i < PPO_STATS; i++)
            sums[i] += stats[i] * (double)c->loss.weight;
        assert_true(fabs((double)c->d_value[r] - s_slope(c, continuous, r, &value, head, log_std, &value)) < tolerance);
        for (uint32_t a = 0; a < A; a++) {
            const double slope = s_slope(c, continuous, r, &head[a], head, log_std, &value);
            assert_true(fabs((double)c->d_head[a * TT_BLOCK + r] - slope) < 10 * tolerance);
            if (continuous)
                d_log_std[a] += s_slope(c, continuous, r, &log_std[a], head, log_std, &value);
        }
    }
    for (uint32_t a = 0; a < A; a++)
        assert_true(fabs((double)c->d_log_std[a] - d_log_std[a]) < 300 * tolerance);
    for (int i = 0; i < PPO_STATS; i++)
        assert_true(fabs((double)c->stats[i] - sums[i]) < 1e-5);
}

static void s_run(case_t *c, bool continuous)
{
    (continuous ? ppo_loss_continuous : ppo_loss_discrete)(&c->loss, &c->block);
}

static void test_against_the_formula(void **state)
{
    (void)state;
    static case_t c;
    const uint32_t rows[] = {1, 7, 31, 32};
    uint32_t seed = 0;
    for (int continuous = 0; continuous < 2; continuous++)
        for (uint32_t A = 1; A <= WIDEST; A++)
            for (size_t k = 0; k < TT_COUNT(rows); k++)
                for (way_t way = CLIPPED; way < MODES; way++) {
                    s_fill(&c, A, rows[k], way, seed += 100);
                    s_old_log_probs(&c, continuous, seed + 50);
                    s_run(&c, continuous);
                    s_check(&c, continuous);
                }
}

/*  The old log-probabilities come from dist, the new ones from the loss: with unchanged parameters the ratio is 1 to the
 *  bit, so nothing is clipped and both KL estimates are 0. */
static void test_first_pass_has_ratio_one(void **state)
{
    (void)state;
    static case_t c;
    for (int continuous = 0; continuous < 2; continuous++) {
        s_fill(&c, 3, 32, CLIPPED, 77);
        for (uint32_t r = 0; r < 32; r++) {
            const float head[] = {c.head[r], c.head[TT_BLOCK + r], c.head[2 * TT_BLOCK + r]};
            ppo_row_t *row = &c.row[c.number[r]];
            if (continuous)
                tt_gauss_log_prob(head, c.log_std, 1, 3, &c.box[c.number[r] * 3], &row->log_prob);
            else
                tt_cat_log_prob(head, 1, 3, &row->action, &row->log_prob);
        }
        s_run(&c, continuous);
        assert_true(c.stats[PPO_KL] == 0 && c.stats[PPO_OLD_KL] == 0 && c.stats[PPO_CLIPPED] == 0);
    }
}

/*  Sums are added to what is there. */
static void test_blocks_add_up(void **state)
{
    (void)state;
    static case_t c;
    s_fill(&c, 2, 20, CLIPPED_VALUE, 3);
    s_old_log_probs(&c, true, 9);
    s_run(&c, true);
    float stats[TT_LOSS_STATS], d_log_std[2];
    memcpy(stats, c.stats, sizeof stats);
    memcpy(d_log_std, c.d_log_std, sizeof d_log_std);
    s_run(&c, true);
    for (int i = 0; i < TT_LOSS_STATS; i++)
        assert_true(c.stats[i] == 2 * stats[i]);
    assert_true(c.d_log_std[0] == 2 * d_log_std[0] && c.d_log_std[1] == 2 * d_log_std[1]);
}

/*  A log-ratio of 1000 gives finite derivatives; a NaN in the head gives NaN in its row alone. */
static void test_runaway_and_nan(void **state)
{
    (void)state;
    static case_t c;
    s_fill(&c, 2, 32, CLIPPED_VALUE, 4);
    for (uint32_t i = 0; i < MANY; i++)
        c.row[i].log_prob = i % 2 ? -1000.0f : 1000.0f;
    s_run(&c, false);
    for (uint32_t r = 0; r < 32; r++)
        assert_true(isfinite(c.d_head[r]) && isfinite(c.d_head[TT_BLOCK + r]));
    s_old_log_probs(&c, false, 9);
    c.head[5] = NAN;
    s_run(&c, false);
    for (uint32_t r = 0; r < 32; r++)
        assert_true((isnan(c.d_head[r]) != 0) == (r == 5));
    assert_true(isnan(c.stats[PPO_POLICY_LOSS]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_the_formula),
        cmocka_unit_test(test_first_pass_has_ratio_one),
        cmocka_unit_test(test_blocks_add_up),
        cmocka_unit_test(test_runaway_and_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
