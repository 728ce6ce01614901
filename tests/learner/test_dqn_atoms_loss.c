/*  The loss of atoms against its formula in double, its derivatives against central differences of that formula; where returns lie between
 *  atoms, on one, and beyond the last; and which choice is the best: by what is expected, of masked ones, where nothing follows, where numbers
 *  are none. */
#include <math.h>
#include <string.h>
#include "common/base/rng.h"
#include "learner/algorithms/dqn_objective.h"
#include "tests/learner/near.h"
#include "tests/test.h"

enum { UNITS = 64, CHOICES = 5, MOST = 11, STAGES = 3, OUTS = CHOICES * MOST };

static const float s_low = -1.5f, s_high = 2.5f;

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
    tt_draw(word, 9, TT_STREAM_TEST, who, k);
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
                c->head[s][o * TT_BLOCK + r] = (float)(4 * s_random(100 + 60 * s + o, r));
    }
    memset(c->d_head, 0x7f, sizeof c->d_head);
}

static void s_run(case_t *c)
{
    const tt_values_t how = {.atoms = c->n, .low = s_low, .high = s_high};
    tt_net_spec_t net = tt_net_values(1, NULL, 0, TT_NN_TANH, CHOICES, &how);
    net.sets = 2;
    const tt_objective_t objective = dqn_objective(&net, c->twice);
    const dqn_loss_t params = {.choices = CHOICES, .atoms = c->n, .low = s_low, .high = s_high, .scale = 1.0f / UNITS};
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
    assert_ok(tt_objective_check(&objective, &net));
    objective.loss(&params, input, &block);
}

/* ---- the formula ------------------------------------------------------------------------------------------------------ */

static double s_atom(const case_t *c, uint32_t i)
{
    return (double)s_low + ((double)s_high - (double)s_low) * i / (c->n - 1);
}

/*  Of number i of choice a. */
static double s_share(const case_t *c, const float *head, uint32_t a, uint32_t i, uint32_t r)
{
    double sum = 0;
    for (uint32_t k = 0; k < c->n; k++)
        sum += exp((double)head[(a * c->n + k) * TT_BLOCK + r]);
    return exp((double)head[(a * c->n + i) * TT_BLOCK + r]) / sum;
}

static double s_expected(const case_t *c, const float *head, uint32_t a, uint32_t r)
{
    double sum = 0;
    for (uint32_t i = 0; i < c->n; i++)
        sum += s_atom(c, i) * s_share(c, head, a, i, r);
    return sum;
}

static uint32_t s_best(const case_t *c, uint32_t r)
{
    const float *chooser = c->head[c->twice ? 2 : 1];
    int best = -1;
    for (uint32_t a = 0; a < CHOICES; a++)
        if ((!c->masked || c->mask[c->position[r] * CHOICES + a]) &&
            (best < 0 || s_expected(c, chooser, a, r) > s_expected(c, chooser, (uint32_t)best, r)))
            best = (int)a;
    return (uint32_t)best;
}

/*  m[n]: each share goes to the atoms in proportion to how near they are, as triangles around them have it. */
static void s_target(const case_t *c, uint32_t r, double *m)
{
    const uint32_t unit = c->position[r], best = s_best(c, r);
    const double apart = s_atom(c, 1) - s_atom(c, 0);
    for (uint32_t i = 0; i < c->n; i++)
        m[i] = 0;
    for (uint32_t j = 0; j < c->n; j++) {
        const double follows = c->discount[unit] > 0 ? (double)c->discount[unit] * s_atom(c, j) : 0;
        const double held = fmin(fmax((double)c->ret[unit] + follows, (double)s_low), (double)s_high);
        for (uint32_t i = 0; i < c->n; i++)
            m[i] += s_share(c, c->head[1], best, j, r) * fmax(0, 1 - fabs(held - s_atom(c, i)) / apart);
    }
}

/*  Of a unit, were logit i of its choice `more` larger. */
static double s_cross(const case_t *c, uint32_t r, uint32_t more_at, double more)
{
    const uint32_t first = (uint32_t)c->action[c->position[r]] * c->n;
    double m[MOST], sum = 0, loss = 0;
    s_target(c, r, m);
    for (uint32_t i = 0; i < c->n; i++)
        sum += exp((double)c->head[0][(first + i) * TT_BLOCK + r] + (i == more_at ? more : 0));
    for (uint32_t i = 0; i < c->n; i++)
        loss -= m[i] * ((double)c->head[0][(first + i) * TT_BLOCK + r] + (i == more_at ? more : 0) - log(sum));
    return loss;
}

static void s_check_stats(const case_t *c)
{
    double expected[DQN_STATS] = {0};
    for (uint32_t r = 0; r < c->rows; r++) {
        double m[MOST], target = 0;
        s_target(c, r, m);
        for (uint32_t i = 0; i < c->n; i++)
            target += m[i] * s_atom(c, i);
        const uint32_t action = (uint32_t)c->action[c->position[r]];
        const double taken = s_expected(c, c->head[0], action, r), cross = s_cross(c, r, 0, 0);
        expected[DQN_LOSS] += (double)c->weight[c->position[r]] / UNITS * cross;
        expected[DQN_ERROR] += fabs(taken - target) / UNITS;
        expected[DQN_Q] += taken / UNITS;
        expected[DQN_TARGET] += target / UNITS;
        assert_near(c->ride[c->position[r]], cross, 1e-5);
    }
    for (int i = 0; i < DQN_STATS; i++)
        assert_near(c->stats[i], expected[i], 1e-5);
}

static void s_check_slopes(const case_t *c)
{
    const double by = 1e-5;
    for (uint32_t r = 0; r < TT_BLOCK; r++)
        for (uint32_t o = 0; o < CHOICES * c->n; o++) {
            const bool taken = r < c->rows && (int32_t)(o / c->n) == c->action[c->position[r]];
            const double weight = taken ? (double)c->weight[c->position[r]] / UNITS : 0;
            const double slope =
                taken ? weight * (s_cross(c, r, o % c->n, by) - s_cross(c, r, o % c->n, -by)) / (2 * by) : 0;
            assert_near(c->d_head[o * TT_BLOCK + r], slope, taken ? 1e-6 : 0);
        }
}

static void test_formula(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++)
        for (uint32_t n = 2; n <= MOST; n += 3) {
            static case_t c;
            c = (case_t){.twice = kind & 1, .masked = kind & 2, .n = n, .rows = n == 5 ? TT_BLOCK : 21};
            s_fill(&c);
            s_run(&c);
            s_check_stats(&c);
            s_check_slopes(&c);
        }
}

/*  Returns that are an atom, or beyond the first and the last: one atom has all, and the logits of one that has all already do not move. */
static void test_ends(void **state)
{
    (void)state;
    static const float ret[] = {-1.5f, -0.5f, 2.5f, -7, 40};
    static const uint32_t at[] = {0, 1, 4, 0, 4};
    static case_t c;
    c = (case_t){.n = 5, .rows = TT_COUNT(ret)};
    s_fill(&c);
    for (uint32_t r = 0; r < c.rows; r++) {
        const uint32_t unit = c.position[r];
        c.discount[unit] = 0;
        c.ret[unit] = ret[r];
        for (uint32_t i = 0; i < c.n; i++)
            c.head[0][((uint32_t)c.action[unit] * c.n + i) * TT_BLOCK + r] = i == at[r] ? 60 : 0;
    }
    s_run(&c);
    for (uint32_t r = 0; r < c.rows; r++) {
        assert_near(c.ride[c.position[r]], 0, 1e-6);
        for (uint32_t i = 0; i < c.n; i++)
            assert_near(c.d_head[((uint32_t)c.action[c.position[r]] * c.n + i) * TT_BLOCK + r], 0, 1e-6);
    }
}

/*  Of equals the lowest; and of what nobody allows, or of numbers that are none, nothing is made that an update could go on from. */
static void test_the_best(void **state)
{
    (void)state;
    static case_t c;
    c = (case_t){.n = 3, .rows = 4, .masked = true};
    s_fill(&c);
    memset(c.mask, 1, sizeof c.mask);
    for (uint32_t r = 0; r < c.rows; r++) {
        c.ret[c.position[r]] = 0;
        c.discount[c.position[r]] = 1;
        for (uint32_t o = 0; o < CHOICES * c.n;
             o++) /* the middle is expected of all: first of three, then of the two ends */
            c.head[1][o * TT_BLOCK + r] = o < 3 || o % 3 == 1 ? 0 : 40;
    }
    memset(c.mask + c.position[2] * CHOICES, 0, CHOICES);
    for (uint32_t o = 0; o < CHOICES * c.n; o++)
        c.head[1][o * TT_BLOCK + 3] = NAN;
    s_run(&c);
    double cross = 0;
    for (uint32_t i = 0; i < c.n; i++)
        cross -= log(s_share(&c, c.head[0], (uint32_t)c.action[c.position[0]], i, 0)) / 3;
    assert_near(c.ride[c.position[0]], cross, 1e-6);
    for (uint32_t r = 2; r < c.rows; r++)
        assert_true(isnan(c.ride[c.position[r]]) != 0);
    assert_true(isnan(c.stats[DQN_LOSS]) != 0);
    c.discount[c.position[2]] = c.discount[c.position[3]] = 0; /* nothing follows, so that is not read */
    memset(c.stats, 0, sizeof c.stats);
    s_run(&c);
    for (uint32_t r = 2; r < c.rows; r++)
        assert_true(isfinite(c.ride[c.position[r]]) != 0);
    assert_true(isfinite(c.stats[DQN_LOSS]) != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formula),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_the_best),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
