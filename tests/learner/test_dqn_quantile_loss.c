/*  The loss of quantiles against its formula in double, its derivatives against central differences of that formula, and which choice is the
 *  best: by means, of masked ones, where nothing follows, where numbers are none. */
#include <math.h>
#include <string.h>
#include "tests/learner/dqn_stage.h"
#include "tests/learner/near.h"
#include "tests/test.h"

/* ---- the formula ------------------------------------------------------------------------------------------------------ */

static double s_mean(const dqn_stage_t *c, const float *head, uint32_t a, uint32_t r)
{
    double sum = 0;
    for (uint32_t i = 0; i < c->how.quantiles; i++)
        sum += dqn_stage_number(c, head, a, i, r);
    return sum / c->how.quantiles;
}

static double s_target(const dqn_stage_t *c, uint32_t r, uint32_t j)
{
    const double ret = (double)c->ret[c->position[r]], discount = (double)c->discount[c->position[r]];
    const double next = dqn_stage_number(c, c->head[DQN_TARGET_NEXT], dqn_stage_best(c, r, s_mean), j, r);
    return ret + (discount > 0 ? discount * next : 0);
}

static double s_taken(const dqn_stage_t *c, uint32_t r, uint32_t i)
{
    return dqn_stage_number(c, c->head[DQN_Q_AT], dqn_stage_action(c, r), i, r);
}

/*  Of quantile i, were it `value`. */
static double s_part(const dqn_stage_t *c, uint32_t r, uint32_t i, double value)
{
    const double level = (i + 0.5) / c->how.quantiles;
    double sum = 0;
    for (uint32_t j = 0; j < c->how.quantiles; j++) {
        const double u = s_target(c, r, j) - value, size = fabs(u);
        sum += fabs(level - (u < 0 ? 1 : 0)) * (size < 1 ? u * u / 2 : size - 0.5);
    }
    return dqn_stage_weight(c, r) * sum / c->how.quantiles;
}

static void s_check_stats(const dqn_stage_t *c)
{
    double expected[DQN_STATS] = {0};
    for (uint32_t r = 0; r < c->rows; r++) {
        double taken = 0, target = 0;
        for (uint32_t i = 0; i < c->how.quantiles; i++) {
            expected[DQN_LOSS] += s_part(c, r, i, s_taken(c, r, i));
            taken += s_taken(c, r, i) / c->how.quantiles;
            target += s_target(c, r, i) / c->how.quantiles;
        }
        expected[DQN_ERROR] += fabs(taken - target) / DQN_UNITS;
        expected[DQN_Q] += taken / DQN_UNITS;
        expected[DQN_TARGET] += target / DQN_UNITS;
        assert_near(c->ride[c->position[r]], fabs(taken - target), 4e-6);
    }
    for (int i = 0; i < DQN_STATS; i++)
        assert_near(c->stats[i], expected[i], 4e-6);
}

static void s_check_slopes(const dqn_stage_t *c)
{
    const double by = 1e-5;
    for (uint32_t r = 0; r < TT_BLOCK; r++)
        for (uint32_t o = 0; o < c->choices * c->how.quantiles; o++) {
            const bool taken = r < c->rows && o / c->how.quantiles == dqn_stage_action(c, r);
            const double q = taken ? s_taken(c, r, o % c->how.quantiles) : 0;
            const double slope =
                taken ? (s_part(c, r, o % c->how.quantiles, q + by) - s_part(c, r, o % c->how.quantiles, q - by)) /
                            (2 * by)
                      : 0;
            assert_near(c->d_head[o * TT_BLOCK + r], slope, taken ? 1e-5 : 0);
        }
}

static void test_formula(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++)
        for (uint32_t n = 1; n <= 9; n += 4) {
            dqn_stage_t c = {.twice = kind & 1, .masked = kind & 2, .how.quantiles = n, .choices = 5};
            c.rows = n == 5 ? TT_BLOCK : 21;
            dqn_stage_fill(&c);
            dqn_stage_run(&c, true);
            s_check_stats(&c);
            s_check_slopes(&c);
        }
}

/*  Of equal means the lowest; and of what nobody allows, or of numbers that are none, nothing is made that an update could go on from. */
static void test_the_best(void **state)
{
    (void)state;
    dqn_stage_t c = {.masked = true, .how.quantiles = 2, .choices = 5, .rows = 4};
    dqn_stage_fill(&c);
    memset(c.mask, 1, sizeof c.mask);
    memset(c.mask + c.position[2] * c.choices, 0, c.choices);
    for (uint32_t r = 0; r < c.rows; r++) {
        c.discount[c.position[r]] = 1;
        for (uint32_t o = 0; o < c.choices * 2; o++) /* means of 1, of spreads that differ */
            c.head[DQN_TARGET_NEXT][o * TT_BLOCK + r] = r == 3 ? NAN : 1 + (o % 2 ? 1.0f : -1.0f) * (float)(o / 2);
    }
    dqn_stage_run(&c, true);
    assert_near(c.ride[c.position[0]],
        fabs((s_taken(&c, 0, 0) + s_taken(&c, 0, 1)) / 2 - (double)c.ret[c.position[0]] - 1), 1e-6);
    assert_true(c.d_head[dqn_stage_action(&c, 0) * 2 * TT_BLOCK] != 0);
    for (uint32_t r = 2; r < c.rows; r++)
        assert_true(isnan(c.ride[c.position[r]]) != 0);
    assert_true(isnan(c.stats[DQN_LOSS]) != 0);
    c.discount[c.position[2]] = c.discount[c.position[3]] = 0; /* nothing follows, so that is not read */
    memset(c.stats, 0, sizeof c.stats);
    dqn_stage_run(&c, true);
    for (uint32_t r = 2; r < c.rows; r++)
        assert_true(isfinite(c.ride[c.position[r]]) != 0);
    assert_true(isfinite(c.stats[DQN_LOSS]) != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formula),
        cmocka_unit_test(test_the_best),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
