/*  The loss of quantiles against its formula in double, its derivatives against central differences of that formula, and which choice is the
 *  best: by means, of masked ones, where nothing follows, where numbers are none. */
#include <math.h>
#include <string.h>
#include "common/base/rng.h"
#include "learner/algorithms/dqn_objective.h"
#include "tests/learner/near.h"
#include "tests/test.h"

enum { UNITS = 64, CHOICES = 5, MOST = 9, STAGES = 3, OUTS = CHOICES * MOST };

typedef struct {
    bool twice, masked; /* twice: double DQN */
    uint32_t n, rows;
    int32_t action[UNITS];
    float ret[UNITS], discount[UNITS], weight[UNITS];
    uint8_t mask[UNITS * CHOICES];
    uint32_t position[TT_BLOCK];
    float head[STAGES][OUTS * TT_BLOCK], d_head[OUTS * TT_BLOCK], stats[TT_LOSS_STATS], ride[UNITS];
} case_t;

static double s_random(uint32_t who, uint64_t k)
{
    uint32_t word[4];
    tt_draw(word, 8, TT_STREAM_TEST, who, k);
    return (double)tt_unit_f32(word[0]) - 0.5;
}

static void s_fill(case_t *c)
{
    for (uint32_t i = 0; i < UNITS; i++) {
        c->action[i] = (int32_t)(i * 3 % CHOICES);
        c->ret[i] = (float)(4 * s_random(1, i));
        c->discount[i] = i % 4 ? 0.97f : 0;
        c->weight[i] = (float)(1 + s_random(2, i));
        for (uint32_t a = 0; a < CHOICES; a++)
            c->mask[i * CHOICES + a] = a == i % CHOICES || s_random(10 + a, i) > 0;
        c->ride[i] = -1;
    }
    for (uint32_t r = 0; r < c->rows; r++) {
        c->position[r] = (r * 11 + 3) % UNITS;
        for (uint32_t s = 0; s < STAGES; s++)
            for (uint32_t o = 0; o < CHOICES * c->n; o++)
                c->head[s][o * TT_BLOCK + r] = (float)(4 * s_random(100 + 50 * s + o, r));
    }
    memset(c->d_head, 0x7f, sizeof c->d_head);
}

static void s_run(case_t *c)
{
    const tt_net_spec_t net = tt_net_values(1, NULL, 0, TT_NN_TANH, CHOICES, &(tt_values_t){.quantiles = c->n});
    const tt_objective_t objective = dqn_objective(&net, c->twice);
    const dqn_loss_t params = {.choices = CHOICES, .quantiles = c->n, .scale = 1.0f / UNITS};
    const void *input[TT_INPUTS_MAX] = {[DQN_IN_ACTION] = c->action,
        [DQN_IN_RETURN] = c->ret,
        [DQN_IN_DISCOUNT] = c->discount,
        [DQN_IN_WEIGHT] = c->weight,
        [DQN_IN_MASK] = c->masked ? c->mask : NULL};
    const tt_loss_block_t block = {.rows = c->rows,
        .row = c->position,
        .head = {c->head[0], c->head[1], c->twice ? c->head[2] : NULL},
        .d_head = {c->d_head},
        .stats = c->stats,
        .ride = c->ride};
    assert_ok(tt_objective_check(
        &objective, &(tt_net_spec_t){.obs = 1, .towers = 2, .sets = 2, .tower = {net.tower[0], net.tower[1]}}));
    objective.loss(&params, input, &block);
}

/* ---- the formula ------------------------------------------------------------------------------------------------------ */

static double s_mean(const case_t *c, const float *head, uint32_t a, uint32_t r)
{
    double sum = 0;
    for (uint32_t i = 0; i < c->n; i++)
        sum += (double)head[(a * c->n + i) * TT_BLOCK + r];
    return sum / c->n;
}

static uint32_t s_best(const case_t *c, uint32_t r)
{
    const float *chooser = c->head[c->twice ? 2 : 1];
    int best = -1;
    for (uint32_t a = 0; a < CHOICES; a++)
        if ((!c->masked || c->mask[c->position[r] * CHOICES + a]) &&
            (best < 0 || s_mean(c, chooser, a, r) > s_mean(c, chooser, (uint32_t)best, r)))
            best = (int)a;
    return (uint32_t)best;
}

static double s_target(const case_t *c, uint32_t r, uint32_t j)
{
    const uint32_t i = c->position[r];
    const double next = (double)c->head[1][(s_best(c, r) * c->n + j) * TT_BLOCK + r];
    return (double)c->ret[i] + (c->discount[i] > 0 ? (double)c->discount[i] * next : 0);
}

static double s_taken(const case_t *c, uint32_t r, uint32_t i)
{
    const uint32_t action = (uint32_t)c->action[c->position[r]];
    return (double)c->head[0][(action * c->n + i) * TT_BLOCK + r];
}

/*  Of quantile i, were it `value`. */
static double s_part(const case_t *c, uint32_t r, uint32_t i, double value)
{
    const double level = (i + 0.5) / c->n;
    double sum = 0;
    for (uint32_t j = 0; j < c->n; j++) {
        const double u = s_target(c, r, j) - value, size = fabs(u);
        sum += fabs(level - (u < 0 ? 1 : 0)) * (size < 1 ? u * u / 2 : size - 0.5);
    }
    return (double)c->weight[c->position[r]] / UNITS * sum / c->n;
}

static void s_check_stats(const case_t *c)
{
    double expected[DQN_STATS] = {0};
    for (uint32_t r = 0; r < c->rows; r++) {
        double taken = 0, target = 0;
        for (uint32_t i = 0; i < c->n; i++) {
            expected[DQN_LOSS] += s_part(c, r, i, s_taken(c, r, i));
            taken += s_taken(c, r, i) / c->n;
            target += s_target(c, r, i) / c->n;
        }
        expected[DQN_ERROR] += fabs(taken - target) / UNITS;
        expected[DQN_Q] += taken / UNITS;
        expected[DQN_TARGET] += target / UNITS;
        assert_near(c->ride[c->position[r]], fabs(taken - target), 4e-6);
    }
    for (int i = 0; i < DQN_STATS; i++)
        assert_near(c->stats[i], expected[i], 4e-6);
}

static void s_check_slopes(const case_t *c)
{
    const double by = 1e-5;
    for (uint32_t r = 0; r < TT_BLOCK; r++)
        for (uint32_t o = 0; o < CHOICES * c->n; o++) {
            const bool taken = r < c->rows && (int32_t)(o / c->n) == c->action[c->position[r]];
            const double q = taken ? s_taken(c, r, o % c->n) : 0;
            const double slope =
                taken ? (s_part(c, r, o % c->n, q + by) - s_part(c, r, o % c->n, q - by)) / (2 * by) : 0;
            assert_near(c->d_head[o * TT_BLOCK + r], slope, taken ? 1e-5 : 0);
        }
}

static void test_formula(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++)
        for (uint32_t n = 1; n <= MOST; n += 4) {
            static case_t c;
            c = (case_t){.twice = kind & 1, .masked = kind & 2, .n = n, .rows = n == 5 ? TT_BLOCK : 21};
            s_fill(&c);
            s_run(&c);
            s_check_stats(&c);
            s_check_slopes(&c);
        }
}

/*  Of equal means the lowest; and of what nobody allows, or of numbers that are none, nothing is made that an update could go on from. */
static void test_the_best(void **state)
{
    (void)state;
    static case_t c;
    c = (case_t){.n = 2, .rows = 4};
    s_fill(&c);
    for (uint32_t r = 0; r < c.rows; r++) {
        c.discount[c.position[r]] = 1;
        for (uint32_t o = 0; o < CHOICES * c.n; o++) /* means of 1, of spreads that differ */
            c.head[1][o * TT_BLOCK + r] = 1 + (o % 2 ? 1.0f : -1.0f) * (float)(o / 2);
    }
    for (uint32_t o = 0; o < CHOICES * c.n; o++)
        c.head[1][o * TT_BLOCK + 3] = NAN;
    s_run(&c);
    assert_near(c.ride[c.position[0]],
        fabs((s_taken(&c, 0, 0) + s_taken(&c, 0, 1)) / 2 - (double)c.ret[c.position[0]] - 1), 1e-6);
    assert_true(c.d_head[((uint32_t)c.action[c.position[0]] * 2) * TT_BLOCK] != 0);
    assert_true(isnan(c.ride[c.position[3]]) && isnan(c.stats[DQN_LOSS]));
    c.discount[c.position[3]] = 0; /* nothing follows, so that is not read */
    memset(c.stats, 0, sizeof c.stats);
    s_run(&c);
    assert_false(isnan(c.ride[c.position[3]]) || isnan(c.stats[DQN_LOSS]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formula),
        cmocka_unit_test(test_the_best),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
