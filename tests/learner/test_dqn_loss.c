/*  DQN's loss against its formula in double, its derivatives against central differences of that formula, and which choice is
 *  the best: of equals, of masked ones, where nothing follows, where numbers are none. */
#include <math.h>
#include <string.h>
#include "tests/learner/dqn_stage.h"
#include "tests/learner/near.h"
#include "tests/test.h"

/* ---- the formula ---------------------------------------------------------------------------------------------------- */

/*  As the paper has them. */
static double s_h(const dqn_stage_t *c, double x)
{
    return c->rescale > 0 ? copysign(sqrt(fabs(x) + 1) - 1, x) + (double)c->rescale * x : x;
}

static double s_back(const dqn_stage_t *c, double x)
{
    const double e = (double)c->rescale;
    if (!(e > 0))
        return x;
    const double root = (sqrt(1 + 4 * e * (fabs(x) + 1 + e)) - 1) / (2 * e);
    return copysign(root * root - 1, x);
}

static double s_value(const dqn_stage_t *c, const float *head, uint32_t a, uint32_t r)
{
    return dqn_stage_number(c, head, a, 0, r);
}

static double s_target(const dqn_stage_t *c, uint32_t r)
{
    const double ret = (double)c->ret[c->position[r]], discount = (double)c->discount[c->position[r]];
    const double next = s_value(c, c->head[DQN_TARGET_NEXT], dqn_stage_best(c, r, s_value), r);
    return s_h(c, ret + (discount > 0 ? discount * s_back(c, next) : 0));
}

static double s_loss(const dqn_stage_t *c, uint32_t r, double q)
{
    const double d = q - s_target(c, r), size = fabs(d);
    const double huber = size < 1 ? d * d / 2 : size - 0.5;
    return dqn_stage_weight(c, r) * (c->squared ? d * d : huber);
}

static double s_taken(const dqn_stage_t *c, uint32_t r)
{
    return s_value(c, c->head[DQN_Q_AT], dqn_stage_action(c, r), r);
}

static void s_check_stats(const dqn_stage_t *c)
{
    double expected[DQN_STATS] = {0};
    for (uint32_t r = 0; r < c->rows; r++) {
        expected[DQN_LOSS] += s_loss(c, r, s_taken(c, r));
        expected[DQN_ERROR] += fabs(s_taken(c, r) - s_target(c, r)) / DQN_UNITS;
        expected[DQN_Q] += s_taken(c, r) / DQN_UNITS;
        expected[DQN_TARGET] += s_target(c, r) / DQN_UNITS;
    }
    for (int i = 0; i < DQN_STATS; i++)
        assert_near(c->stats[i], expected[i], 2e-6);
    for (int i = DQN_STATS; i < TT_LOSS_STATS; i++)
        assert_true(c->stats[i] == 0);
}

static void s_check_slopes(const dqn_stage_t *c)
{
    const double by = 1e-5;
    for (uint32_t r = 0; r < TT_BLOCK; r++)
        for (uint32_t a = 0; a < c->choices; a++) {
            const bool taken = r < c->rows && a == dqn_stage_action(c, r);
            const double q = taken ? s_taken(c, r) : 0;
            const double slope = taken ? (s_loss(c, r, q + by) - s_loss(c, r, q - by)) / (2 * by) : 0;
            assert_near(c->d_head[a * TT_BLOCK + r], slope, taken ? 1e-6 : 0);
        }
}

static void s_check_ride(const dqn_stage_t *c)
{
    bool mine[DQN_UNITS] = {false};
    for (uint32_t r = 0; r < c->rows; r++) {
        mine[c->position[r]] = true;
        assert_near(c->ride[c->position[r]], fabs(s_taken(c, r) - s_target(c, r)), 2e-6 * (1 + fabs(s_target(c, r))));
    }
    for (uint32_t i = 0; i < DQN_UNITS; i++)
        assert_true(mine[i] || c->ride[i] == -1);
}

static void test_values_and_slopes(void **state)
{
    (void)state;
    static const uint32_t choices[] = {1, 2, 5, DQN_CHOICES}, rows[] = {1, 7, TT_BLOCK};
    for (uint32_t kind = 0; kind < 8; kind++)
        for (size_t i = 0; i < TT_COUNT(choices); i++)
            for (size_t k = 0; k < TT_COUNT(rows); k++) {
                dqn_stage_t c = {
                    .twice = kind & 1, .squared = kind & 2, .masked = kind & 4, .choices = choices[i], .rows = rows[k]};
                dqn_stage_fill(&c);
                dqn_stage_run(&c, true);
                s_check_stats(&c);
                s_check_slopes(&c);
                s_check_ride(&c);
            }
}

/*  Small values and large ones, and that one is the other's inverse. */
static void test_rescaled(void **state)
{
    (void)state;
    static const float epsilons[] = {1e-3f, 1e-2f, 1}, scales[] = {1e-3f, 1, 50};
    for (size_t e = 0; e < TT_COUNT(epsilons); e++)
        for (size_t s = 0; s < TT_COUNT(scales); s++) {
            dqn_stage_t c = {.twice = s % 2, .masked = e % 2, .rescale = epsilons[e], .choices = 5, .rows = TT_BLOCK};
            dqn_stage_fill(&c);
            for (uint32_t i = 0; i < 5 * TT_BLOCK; i++)
                c.head[1][i] *= scales[s];
            for (uint32_t i = 0; i < DQN_UNITS; i++)
                c.ret[i] *= scales[s] * scales[s];
            for (double x = -300; x <= 300; x += 7)
                assert_near(s_back(&c, s_h(&c, x)), x, 1e-8);
            dqn_stage_run(&c, true);
            s_check_ride(&c);
            s_check_slopes(&c);
        }
}

/*  Statistics are added to what is there; uniform replay has no riding floats. */
static void test_sums_go_on(void **state)
{
    (void)state;
    dqn_stage_t c = {.choices = 3, .rows = TT_BLOCK}, again = c;
    dqn_stage_fill(&c);
    dqn_stage_fill(&again);
    dqn_stage_run(&c, true);
    dqn_stage_run(&again, true);
    dqn_stage_run(&again, false);
    for (int i = 0; i < DQN_STATS; i++)
        assert_true(again.stats[i] == c.stats[i] + c.stats[i]);
}

/* ---- the best ------------------------------------------------------------------------------------------------------- */

/*  One unit, three choices, return 0, discount 0.97. */
static void s_one(dqn_stage_t *c, const float target[3], const float online[3])
{
    c->choices = 3;
    c->rows = 1;
    dqn_stage_fill(c);
    c->ret[c->position[0]] = 0;
    c->discount[c->position[0]] = 0.97f;
    for (uint32_t a = 0; a < 3; a++) {
        c->head[1][a * TT_BLOCK] = target[a];
        c->head[2][a * TT_BLOCK] = online[a];
    }
}

static float s_target_of(dqn_stage_t *c)
{
    memset(c->stats, 0, sizeof c->stats);
    dqn_stage_run(c, true);
    return c->stats[DQN_TARGET] * DQN_UNITS;
}

static void test_of_equals_the_lowest(void **state)
{
    (void)state;
    dqn_stage_t c = {.twice = true};
    s_one(&c, (float[]){7, 3, 5}, (float[]){1, 2, 2});
    assert_true(s_target_of(&c) == 0.97f * 3);
    s_one(&c, (float[]){7, 3, 5}, (float[]){2, 2, 2});
    assert_true(s_target_of(&c) == 0.97f * 7);
}

static void test_a_masked_choice_is_never_the_best(void **state)
{
    (void)state;
    for (int twice = 0; twice < 2; twice++) {
        dqn_stage_t c = {.twice = twice, .masked = true};
        s_one(&c, (float[]){9, -3, -5}, (float[]){9, -3, -5});
        memcpy(c.mask + c.position[0] * 3, (uint8_t[]){0, 1, 1}, 3);
        assert_true(s_target_of(&c) == 0.97f * -3);
        memcpy(c.mask + c.position[0] * 3, (uint8_t[]){0, 0, 1}, 3);
        assert_true(s_target_of(&c) == 0.97f * -5);
    }
}

/*  Behind an end the frame is forwarded for nothing: whatever it gives, and whatever its mask says. */
static void test_where_nothing_follows_nothing_is_read(void **state)
{
    (void)state;
    dqn_stage_t c = {.twice = true, .masked = true};
    s_one(&c, (float[]){NAN, NAN, INFINITY}, (float[]){NAN, 1, 2});
    c.ret[c.position[0]] = 0.5f;
    c.discount[c.position[0]] = 0;
    assert_true(s_target_of(&c) == 0.5f);
    memset(c.mask, 0, sizeof c.mask);
    assert_true(s_target_of(&c) == 0.5f);
    assert_true(isfinite(c.ride[c.position[0]]));
}

/*  What has no best gives no slope that an optimiser would take, though Huber's is bounded. */
static void test_numbers_that_are_none_are_seen(void **state)
{
    (void)state;
    for (int twice = 0; twice < 2; twice++) {
        dqn_stage_t c = {.twice = twice};
        s_one(&c, (float[]){NAN, NAN, NAN}, (float[]){NAN, NAN, NAN});
        dqn_stage_run(&c, true);
        assert_true(isnan(c.d_head[dqn_stage_action(&c, 0) * TT_BLOCK]));
        assert_true(isnan(c.ride[c.position[0]]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_and_slopes),
        cmocka_unit_test(test_rescaled),
        cmocka_unit_test(test_sums_go_on),
        cmocka_unit_test(test_of_equals_the_lowest),
        cmocka_unit_test(test_a_masked_choice_is_never_the_best),
        cmocka_unit_test(test_where_nothing_follows_nothing_is_read),
        cmocka_unit_test(test_numbers_that_are_none_are_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
