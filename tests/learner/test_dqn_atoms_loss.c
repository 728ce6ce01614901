/*  The loss of atoms against its formula in double, its derivatives against central differences of that formula; where returns lie between
 *  atoms, on one, and beyond the last; and which choice is the best: by what is expected, of masked ones, where nothing follows, where numbers
 *  are none. */
#include <math.h>
#include <string.h>
#include "tests/learner/dqn_stage.h"
#include "tests/learner/near.h"
#include "tests/test.h"

enum { ATOMS = 11 }; /* at most */

static const float s_low = -1.5f, s_high = 2.5f;

/* ---- the formula ------------------------------------------------------------------------------------------------------ */

static double s_atom(const dqn_stage_t *c, uint32_t i)
{
    return (double)s_low + ((double)s_high - (double)s_low) * i / (c->how.atoms - 1);
}

/*  Of number i of choice a. */
static double s_share(const dqn_stage_t *c, const float *head, uint32_t a, uint32_t i, uint32_t r)
{
    double sum = 0;
    for (uint32_t k = 0; k < c->how.atoms; k++)
        sum += exp(dqn_stage_number(c, head, a, k, r));
    return exp(dqn_stage_number(c, head, a, i, r)) / sum;
}

static double s_expected(const dqn_stage_t *c, const float *head, uint32_t a, uint32_t r)
{
    double sum = 0;
    for (uint32_t i = 0; i < c->how.atoms; i++)
        sum += s_atom(c, i) * s_share(c, head, a, i, r);
    return sum;
}

/*  m[n]: each share goes to the atoms in proportion to how near they are, as triangles around them have it. */
static void s_target(const dqn_stage_t *c, uint32_t r, double *m)
{
    const uint32_t best = dqn_stage_best(c, r, s_expected);
    const double ret = (double)c->ret[c->position[r]], discount = (double)c->discount[c->position[r]];
    const double apart = s_atom(c, 1) - s_atom(c, 0);
    for (uint32_t i = 0; i < c->how.atoms; i++)
        m[i] = 0;
    for (uint32_t j = 0; j < c->how.atoms; j++) {
        const double follows = discount > 0 ? discount * s_atom(c, j) : 0;
        const double held = fmin(fmax(ret + follows, (double)s_low), (double)s_high);
        for (uint32_t i = 0; i < c->how.atoms; i++)
            m[i] += s_share(c, c->head[DQN_TARGET_NEXT], best, j, r) * fmax(0, 1 - fabs(held - s_atom(c, i)) / apart);
    }
}

/*  Of row r, were logit `more_at` of its choice `more` larger. */
static double s_cross(const dqn_stage_t *c, uint32_t r, uint32_t more_at, double more)
{
    double m[ATOMS], logit[ATOMS], sum = 0, loss = 0;
    s_target(c, r, m);
    for (uint32_t i = 0; i < c->how.atoms; i++) {
        logit[i] = dqn_stage_number(c, c->head[DQN_Q_AT], dqn_stage_action(c, r), i, r) + (i == more_at ? more : 0);
        sum += exp(logit[i]);
    }
    for (uint32_t i = 0; i < c->how.atoms; i++)
        loss -= m[i] * (logit[i] - log(sum));
    return loss;
}

static void s_check_stats(const dqn_stage_t *c)
{
    double expected[DQN_STATS] = {0};
    for (uint32_t r = 0; r < c->rows; r++) {
        double m[ATOMS], target = 0;
        s_target(c, r, m);
        for (uint32_t i = 0; i < c->how.atoms; i++)
            target += m[i] * s_atom(c, i);
        const double taken = s_expected(c, c->head[DQN_Q_AT], dqn_stage_action(c, r), r), cross = s_cross(c, r, 0, 0);
        expected[DQN_LOSS] += dqn_stage_weight(c, r) * cross;
        expected[DQN_ERROR] += fabs(taken - target) / DQN_UNITS;
        expected[DQN_Q] += taken / DQN_UNITS;
        expected[DQN_TARGET] += target / DQN_UNITS;
        assert_near(c->ride[c->position[r]], cross, 1e-5);
    }
    for (int i = 0; i < DQN_STATS; i++)
        assert_near(c->stats[i], expected[i], 1e-5);
}

static void s_check_slopes(const dqn_stage_t *c)
{
    const double by = 1e-5;
    for (uint32_t r = 0; r < TT_BLOCK; r++)
        for (uint32_t o = 0; o < c->choices * c->how.atoms; o++) {
            const bool taken = r < c->rows && o / c->how.atoms == dqn_stage_action(c, r);
            const double weight = taken ? dqn_stage_weight(c, r) : 0;
            const double slope =
                taken ? weight * (s_cross(c, r, o % c->how.atoms, by) - s_cross(c, r, o % c->how.atoms, -by)) / (2 * by)
                      : 0;
            assert_near(c->d_head[o * TT_BLOCK + r], slope, taken ? 1e-6 : 0);
        }
}

static dqn_stage_t s_stage(uint32_t n, uint32_t rows)
{
    return (dqn_stage_t){.how = {.atoms = n, .low = s_low, .high = s_high}, .choices = 5, .rows = rows};
}

static void test_formula(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++)
        for (uint32_t n = 2; n <= ATOMS; n += 3) {
            dqn_stage_t c = s_stage(n, n == 5 ? TT_BLOCK : 21);
            c.twice = kind & 1;
            c.masked = kind & 2;
            dqn_stage_fill(&c);
            dqn_stage_run(&c, true);
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
    dqn_stage_t c = s_stage(5, TT_COUNT(ret));
    dqn_stage_fill(&c);
    for (uint32_t r = 0; r < c.rows; r++) {
        const uint32_t unit = c.position[r];
        c.discount[unit] = 0;
        c.ret[unit] = ret[r];
        for (uint32_t i = 0; i < c.how.atoms; i++)
            c.head[DQN_Q_AT][(dqn_stage_action(&c, r) * c.how.atoms + i) * TT_BLOCK + r] = i == at[r] ? 60 : 0;
    }
    dqn_stage_run(&c, true);
    for (uint32_t r = 0; r < c.rows; r++) {
        assert_near(c.ride[c.position[r]], 0, 1e-6);
        for (uint32_t i = 0; i < c.how.atoms; i++)
            assert_near(c.d_head[(dqn_stage_action(&c, r) * c.how.atoms + i) * TT_BLOCK + r], 0, 1e-6);
    }
}

/*  Where the distance of atoms was rounded down, the last one's place is an ulp too far; no share and no loss is below nothing for that. */
static void test_rounded(void **state)
{
    (void)state;
    static const float range[][2] = {{-5, 100}, {-6.5f, 20}, {-20, 475}, {-200, 10}, {-10, 10}};
    for (size_t i = 0; i < TT_COUNT(range); i++) {
        dqn_stage_t c = {.how = {.atoms = 51, .low = range[i][0], .high = range[i][1]}, .choices = 1, .rows = 3};
        dqn_stage_fill(&c);
        for (uint32_t r = 0; r < c.rows; r++) {
            c.discount[c.position[r]] = 0;
            c.ret[c.position[r]] = range[i][1] + (float)r;
            for (uint32_t n = 0; n < c.how.atoms; n++)
                c.head[DQN_Q_AT][n * TT_BLOCK + r] = n + 1 == c.how.atoms ? 16 : 0;
        }
        dqn_stage_run(&c, true);
        for (uint32_t r = 0; r < c.rows; r++)
            assert_true(c.ride[c.position[r]] >= 0 && c.ride[c.position[r]] < 1e-4f);
    }
}

/*  Of equals the lowest; and of what nobody allows, or of numbers that are none, nothing is made that an update could go on from. */
static void test_the_best(void **state)
{
    (void)state;
    dqn_stage_t c = s_stage(3, 4);
    c.masked = true;
    dqn_stage_fill(&c);
    memset(c.mask, 1, sizeof c.mask);
    memset(c.mask + c.position[2] * c.choices, 0, c.choices);
    for (uint32_t r = 0; r < c.rows; r++) {
        c.ret[c.position[r]] = 0;
        c.discount[c.position[r]] = 1;
        for (uint32_t o = 0; o < c.choices * c.how.atoms;
             o++) { /* the middle is expected of all: first of three, then of the two ends */
            const bool likely = o >= 3 && o % 3 != 1;
            c.head[DQN_TARGET_NEXT][o * TT_BLOCK + r] = r == 3 ? NAN : likely ? 40 : 0;
        }
    }
    dqn_stage_run(&c, true);
    double cross = 0;
    for (uint32_t i = 0; i < c.how.atoms; i++)
        cross -= log(s_share(&c, c.head[DQN_Q_AT], dqn_stage_action(&c, 0), i, 0)) / 3;
    assert_near(c.ride[c.position[0]], cross, 1e-6);
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
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_rounded),
        cmocka_unit_test(test_the_best),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
