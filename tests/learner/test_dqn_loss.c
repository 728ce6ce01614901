/*  DQN's loss against its formula in double, its derivatives against central differences of that formula, and which choice is
 *  the best: of equals, of masked ones, where nothing follows, where numbers are none. */
#include "learner/algorithms/dqn_objective.h"
#include <math.h>
#include <string.h>
#include "common/base/rng.h"
#include "tests/learner/near.h"
#include "tests/test.h"

enum { UNITS = 64, MOST = 17, STAGES = 3 };

typedef struct {
    bool twice, squared, masked; /* twice: double DQN */
    double rescale;
    uint32_t choices, rows;
    int32_t action[UNITS];
    float ret[UNITS], discount[UNITS], weight[UNITS];
    uint8_t mask[UNITS * MOST];
    uint32_t position[TT_BLOCK];
    float head[STAGES][MOST * TT_BLOCK], d_head[MOST * TT_BLOCK], stats[TT_LOSS_STATS], ride[UNITS];
    dqn_loss_t loss;
    tt_loss_block_t block;
} case_t;

static double s_random(uint32_t who, uint64_t k)
{
    uint32_t word[4];
    tt_draw(word, 7, TT_STREAM_TEST, who, k);
    return (double)tt_unit_f32(word[0]) - 0.5;
}

static void s_fill_units(case_t *c)
{
    for (uint32_t i = 0; i < UNITS; i++) {
        c->action[i] = (int32_t)(i * 5 % c->choices);
        c->ret[i] = (float)(4 * s_random(1, i));
        c->discount[i] = i % 4 ? 0.97f : 0;
        c->weight[i] = (float)(1 + s_random(2, i));
        for (uint32_t a = 0; a < c->choices; a++)
            c->mask[i * c->choices + a] = a == i % c->choices || s_random(10 + a, i) > 0;
        c->ride[i] = -1;
    }
}

static tt_objective_t s_objective(const case_t *c)
{
    const tt_net_spec_t net = tt_net_one("q", 1, NULL, 0, TT_NN_TANH, c->choices);
    return dqn_objective(&net, c->twice);
}

static void s_point(case_t *c)
{
    c->loss =
        (dqn_loss_t){.choices = c->choices, .scale = 1.0f / UNITS, .rescale = (float)c->rescale, .squared = c->squared};
    c->block = (tt_loss_block_t){.rows = c->rows,
        .row = c->position,
        .head = {c->head[0], c->head[1], c->twice ? c->head[2] : NULL},
        .d_head = {c->d_head},
        .stats = c->stats,
        .ride = c->ride};
}

static void s_fill(case_t *c, uint32_t choices, uint32_t rows)
{
    c->choices = choices;
    c->rows = rows;
    s_fill_units(c);
    for (uint32_t r = 0; r < rows; r++) {
        c->position[r] = (r * 11 + 3) % UNITS;
        for (uint32_t s = 0; s < STAGES; s++)
            for (uint32_t a = 0; a < choices; a++)
                c->head[s][a * TT_BLOCK + r] = (float)(4 * s_random(100 + 20 * s + a, r));
    }
    memset(c->d_head, 0x7f, sizeof c->d_head);
    s_point(c);
}

static void s_run(case_t *c)
{
    const void *input[TT_INPUTS_MAX] = {[DQN_IN_ACTION] = c->action,
        [DQN_IN_RETURN] = c->ret,
        [DQN_IN_DISCOUNT] = c->discount,
        [DQN_IN_WEIGHT] = c->weight,
        [DQN_IN_MASK] = c->masked ? c->mask : NULL};
    s_objective(c).loss(&c->loss, input, &c->block);
}

/* ---- the formula ---------------------------------------------------------------------------------------------------- */

/*  As the paper has them. */
static double s_h(const case_t *c, double x)
{
    return c->rescale > 0 ? copysign(sqrt(fabs(x) + 1) - 1, x) + c->rescale * x : x;
}

static double s_back(const case_t *c, double x)
{
    const double e = c->rescale;
    if (!(e > 0))
        return x;
    const double root = (sqrt(1 + 4 * e * (fabs(x) + 1 + e)) - 1) / (2 * e);
    return copysign(root * root - 1, x);
}

static double s_target(const case_t *c, uint32_t r)
{
    const uint32_t i = c->position[r];
    const float *chooser = c->head[c->twice ? 2 : 1];
    int best = -1;
    for (uint32_t a = 0; a < c->choices; a++)
        if ((!c->masked || c->mask[i * c->choices + a]) &&
            (best < 0 || chooser[a * TT_BLOCK + r] > chooser[best * TT_BLOCK + (int)r]))
            best = (int)a;
    const double follows = c->discount[i] > 0 ? s_back(c, (double)c->head[1][best * TT_BLOCK + (int)r]) : 0;
    return s_h(c, (double)c->ret[i] + (double)c->discount[i] * follows);
}

static double s_loss(const case_t *c, uint32_t r, double q)
{
    const double d = q - s_target(c, r), size = fabs(d);
    const double huber = size < 1 ? d * d / 2 : size - 0.5;
    return (double)c->weight[c->position[r]] / UNITS * (c->squared ? d * d : huber);
}

static double s_taken(const case_t *c, uint32_t r)
{
    return (double)c->head[0][(uint32_t)c->action[c->position[r]] * TT_BLOCK + r];
}

static void s_check_stats(const case_t *c)
{
    double expected[DQN_STATS] = {0};
    for (uint32_t r = 0; r < c->rows; r++) {
        expected[DQN_LOSS] += s_loss(c, r, s_taken(c, r));
        expected[DQN_ERROR] += fabs(s_taken(c, r) - s_target(c, r)) / UNITS;
        expected[DQN_Q] += s_taken(c, r) / UNITS;
        expected[DQN_TARGET] += s_target(c, r) / UNITS;
    }
    for (int i = 0; i < DQN_STATS; i++)
        assert_near(c->stats[i], expected[i], 2e-6);
    for (int i = DQN_STATS; i < TT_LOSS_STATS; i++)
        assert_true(c->stats[i] == 0);
}

static void s_check_slopes(const case_t *c)
{
    const double by = 1e-5;
    for (uint32_t r = 0; r < TT_BLOCK; r++)
        for (uint32_t a = 0; a < c->choices; a++) {
            const bool taken = r < c->rows && (int32_t)a == c->action[c->position[r]];
            const double q = taken ? s_taken(c, r) : 0;
            const double slope = taken ? (s_loss(c, r, q + by) - s_loss(c, r, q - by)) / (2 * by) : 0;
            assert_near(c->d_head[a * TT_BLOCK + r], slope, taken ? 1e-6 : 0);
        }
}

static void s_check_ride(const case_t *c)
{
    bool mine[UNITS] = {false};
    for (uint32_t r = 0; r < c->rows; r++) {
        mine[c->position[r]] = true;
        assert_near(c->ride[c->position[r]], fabs(s_taken(c, r) - s_target(c, r)), 2e-6 * (1 + fabs(s_target(c, r))));
    }
    for (uint32_t i = 0; i < UNITS; i++)
        assert_true(mine[i] || c->ride[i] == -1);
}

static void test_values_and_slopes(void **state)
{
    (void)state;
    static const uint32_t choices[] = {1, 2, 5, MOST}, rows[] = {1, 7, TT_BLOCK};
    for (uint32_t kind = 0; kind < 8; kind++)
        for (size_t i = 0; i < TT_COUNT(choices); i++)
            for (size_t k = 0; k < TT_COUNT(rows); k++) {
                case_t c = {.twice = kind & 1, .squared = kind & 2, .masked = kind & 4};
                s_fill(&c, choices[i], rows[k]);
                s_run(&c);
                s_check_stats(&c);
                s_check_slopes(&c);
                s_check_ride(&c);
            }
}

/*  Small values and large ones, and that one is the other's inverse. */
static void test_rescaled(void **state)
{
    (void)state;
    static const double epsilons[] = {1e-3, 1e-2, 1};
    static const float scales[] = {1e-3f, 1, 50};
    for (size_t e = 0; e < TT_COUNT(epsilons); e++)
        for (size_t s = 0; s < TT_COUNT(scales); s++) {
            case_t c = {.twice = s % 2, .masked = e % 2, .rescale = epsilons[e]};
            s_fill(&c, 5, TT_BLOCK);
            for (uint32_t i = 0; i < 5 * TT_BLOCK; i++)
                c.head[1][i] *= scales[s];
            for (uint32_t i = 0; i < UNITS; i++)
                c.ret[i] *= scales[s] * scales[s];
            for (double x = -300; x <= 300; x += 7)
                assert_near(s_back(&c, s_h(&c, x)), x, 1e-8);
            s_run(&c);
            s_check_ride(&c);
            s_check_slopes(&c);
        }
}

/*  Statistics are added to what is there; uniform replay has no riding floats. */
static void test_sums_go_on(void **state)
{
    (void)state;
    case_t c = {0}, again = {0};
    s_fill(&c, 3, TT_BLOCK);
    s_fill(&again, 3, TT_BLOCK);
    s_run(&c);
    s_run(&again);
    again.block.ride = NULL;
    s_run(&again);
    for (int i = 0; i < DQN_STATS; i++)
        assert_true(again.stats[i] == c.stats[i] + c.stats[i]);
}

/* ---- the best ------------------------------------------------------------------------------------------------------- */

/*  One unit, three choices, return 0, discount 0.97. */
static void s_one(case_t *c, const float target[3], const float online[3])
{
    s_fill(c, 3, 1);
    c->ret[c->position[0]] = 0;
    c->discount[c->position[0]] = 0.97f;
    for (uint32_t a = 0; a < 3; a++) {
        c->head[1][a * TT_BLOCK] = target[a];
        c->head[2][a * TT_BLOCK] = online[a];
    }
}

static float s_target_of(case_t *c)
{
    memset(c->stats, 0, sizeof c->stats);
    s_run(c);
    return c->stats[DQN_TARGET] * UNITS;
}

static void test_of_equals_the_lowest(void **state)
{
    (void)state;
    case_t c = {.twice = true};
    s_one(&c, (float[]){7, 3, 5}, (float[]){1, 2, 2});
    assert_true(s_target_of(&c) == 0.97f * 3);
    s_one(&c, (float[]){7, 3, 5}, (float[]){2, 2, 2});
    assert_true(s_target_of(&c) == 0.97f * 7);
}

static void test_a_masked_choice_is_never_the_best(void **state)
{
    (void)state;
    for (int twice = 0; twice < 2; twice++) {
        case_t c = {.twice = twice, .masked = true};
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
    case_t c = {.twice = true, .masked = true};
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
        case_t c = {.twice = twice};
        s_one(&c, (float[]){NAN, NAN, NAN}, (float[]){NAN, NAN, NAN});
        s_run(&c);
        assert_true(isnan(c.d_head[(uint32_t)c.action[c.position[0]] * TT_BLOCK]));
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
