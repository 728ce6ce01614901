/*  SAC's losses, its draw and the way back through it against their formulas in double, derivatives against central
 *  differences of those; what is not read, what stands still, and what must be seen: numbers that are none. */
#include "learner/algorithms/sac_objective.h"
#include <math.h>
#include <string.h>
#include "common/base/rng.h"
#include "common/base/vmath.h"
#include "tests/learner/near.h"
#include "tests/test.h"

enum { UNITS = 64, MOST = 17, WIDEST = 2 * MOST };
enum { FIRST, SECOND, CRITICS };

typedef struct {
    bool critic; /* whose loss; else the actor's */
    uint32_t numbers, rows;
    float noise[UNITS * MOST], ret[UNITS], discount[UNITS], weight[UNITS];
    uint32_t position[TT_BLOCK];
    float log_alpha, d_log_alpha;
    float head[WIDEST * TT_BLOCK], d_head[WIDEST * TT_BLOCK];
    float q[CRITICS][TT_BLOCK], d_q[CRITICS][TT_BLOCK]; /* of the rows' own frames */
    float next[CRITICS][TT_BLOCK];
    float action[MOST * TT_BLOCK], d_action[MOST * TT_BLOCK], stats[TT_LOSS_STATS];
    sac_loss_t loss;
} case_t;

static const uint32_t numbers_of[] = {1, 3, MOST}, rows_of[] = {1, 7, TT_BLOCK};

static double s_random(uint32_t who, uint64_t k)
{
    uint32_t word[4];
    tt_draw(word, 7, TT_STREAM_TEST, who, k);
    return (double)tt_unit_f32(word[0]) - 0.5;
}

static float s_normal(uint32_t who, uint64_t k)
{
    uint32_t word[4];
    float z[4];
    tt_draw(word, 7, TT_STREAM_TEST, who, k);
    tt_normals(word, z);
    return z[0];
}

static void s_fill_units(case_t *c)
{
    for (uint32_t i = 0; i < UNITS; i++) {
        c->ret[i] = (float)(4 * s_random(1, i));
        c->discount[i] = i % 4 ? 0.97f : 0;
        c->weight[i] = i % 3 ? 1 : 0.75f;
        for (uint32_t a = 0; a < c->numbers; a++)
            c->noise[i * c->numbers + a] = s_normal(10 + a, i);
    }
}

/*  Rows of the units from number `first` on, of a shuffle. Some deviations are beyond their limits. */
static void s_fill(case_t *c, bool critic, uint32_t numbers, uint32_t first, uint32_t rows)
{
    c->critic = critic;
    c->numbers = numbers;
    c->rows = rows;
    c->log_alpha = -0.7f;
    c->loss = (sac_loss_t){.of = {numbers, 1.0f / UNITS}, .target_entropy = -1.5f, .tuned = true};
    s_fill_units(c);
    for (uint32_t r = 0; r < rows; r++) {
        const uint32_t i = c->position[r] = ((first + r) * 11 + 3) % UNITS;
        for (uint32_t a = 0; a < numbers; a++) {
            const float wide = (float)(2 * s_random(200 + a, i));
            c->head[a * TT_BLOCK + r] = (float)(4 * s_random(100 + a, i));
            c->head[(numbers + a) * TT_BLOCK + r] = (i + a) % 5 == 2 ? 2.5f : (i + a) % 7 == 3 ? -20.5f : wide;
        }
        for (uint32_t k = 0; k < CRITICS; k++) {
            c->q[k][r] = (float)(4 * s_random(300 + k, i));
            c->next[k][r] = (float)(4 * s_random(310 + k, i));
        }
    }
    memset(c->d_head, 0x7f, sizeof c->d_head);
    memset(c->d_q, 0x7f, sizeof c->d_q);
    memset(c->action, 0x7f, sizeof c->action);
}

static tt_net_spec_t s_net(uint32_t numbers)
{
    tt_net_spec_t net = tt_net_soft_actor_critic(1, (const uint32_t[]){4}, 1, TT_NN_TANH, 2 * numbers, numbers);
    net.sets = 2;
    return net;
}

static tt_objective_t s_objective(const case_t *c)
{
    const tt_net_spec_t net = s_net(c->numbers);
    return c->critic ? sac_critic_objective(&net) : sac_actor_objective(&net);
}

static tt_loss_block_t s_block(case_t *c)
{
    if (c->critic)
        return (tt_loss_block_t){.rows = c->rows,
            .row = c->position,
            .head = {[TWIN_NEXT] = c->head,
                [TWIN_Q1_NEXT] = c->next[FIRST],
                [TWIN_Q2_NEXT] = c->next[SECOND],
                [TWIN_Q1_AT] = c->q[FIRST],
                [TWIN_Q2_AT] = c->q[SECOND]},
            .d_head = {[TWIN_Q1_AT] = c->d_q[FIRST], [TWIN_Q2_AT] = c->d_q[SECOND]},
            .log_std = {[TWIN_NEXT] = &c->log_alpha},
            .stats = c->stats};
    return (tt_loss_block_t){.rows = c->rows,
        .row = c->position,
        .head = {[SAC_ACTOR] = c->head, [SAC_Q1] = c->q[FIRST], [SAC_Q2] = c->q[SECOND]},
        .d_head = {[SAC_ACTOR] = c->d_head, [SAC_Q1] = c->d_q[FIRST], [SAC_Q2] = c->d_q[SECOND]},
        .log_std = {[SAC_ACTOR] = &c->log_alpha},
        .d_log_std = {[SAC_ACTOR] = &c->d_log_alpha},
        .stats = c->stats};
}

typedef enum { DRAW, LOSS, BACK } call_t;

static void s_call(case_t *c, call_t call)
{
    const void *input[TT_INPUTS_MAX] = {[TWIN_IN_NOISE] = c->noise,
        [TWIN_IN_RETURN] = c->ret,
        [TWIN_IN_DISCOUNT] = c->discount,
        [TWIN_IN_WEIGHT] = c->weight};
    const tt_objective_t objective = s_objective(c);
    tt_loss_block_t block = s_block(c);
    if (call == LOSS) {
        objective.loss(&c->loss, input, &block);
        return;
    }
    for (int s = 1; s < TT_STAGES_MAX; s++) /* but for the stage that is drawn from nothing is there */
        block.head[s] = block.d_head[s] = NULL;
    block.stats = NULL;
    if (call == DRAW)
        objective.draw(&c->loss, input, &block, c->action);
    else
        objective.d_draw(&c->loss, input, &block, c->d_action);
}

/* ---- the formulas --------------------------------------------------------------------------------------------------- */

/*  The head of row r. */
static void s_head(const case_t *c, uint32_t r, double *head)
{
    for (uint32_t a = 0; a < 2 * c->numbers; a++)
        head[a] = (double)c->head[a * TT_BLOCK + r];
}

static double s_z(const case_t *c, uint32_t r, uint32_t a)
{
    return (double)c->noise[c->position[r] * c->numbers + a];
}

static double s_log_std(const case_t *c, const double *head, uint32_t a)
{
    return fmin(fmax(head[c->numbers + a], -20), 2);
}

/*  Number `a` of what is drawn for row r, before it is squashed. */
static double s_drawn(const case_t *c, uint32_t r, const double *head, uint32_t a)
{
    return head[a] + exp(s_log_std(c, head, a)) * s_z(c, r, a);
}

/*  log(1 - tanh^2 u), which is -2 log cosh u. */
static double s_log_slope(double u)
{
    return 2 * (log(2) - fabs(u) - log1p(exp(-2 * fabs(u))));
}

static double s_log_prob(const case_t *c, uint32_t r, const double *head)
{
    double sum = 0;
    for (uint32_t a = 0; a < c->numbers; a++) {
        const double z = s_z(c, r, a);
        sum += -0.5 * z * z - s_log_std(c, head, a) - 0.5 * log(2 * M_PI) - s_log_slope(s_drawn(c, r, head, a));
    }
    return sum;
}

static double s_log_prob_of(const case_t *c, uint32_t r)
{
    double head[WIDEST];
    s_head(c, r, head);
    return s_log_prob(c, r, head);
}

/*  What row r counts. */
static double s_w(const case_t *c, uint32_t r)
{
    return (double)c->weight[c->position[r]] / UNITS;
}

static double s_least(const float q[CRITICS][TT_BLOCK], uint32_t r)
{
    return fmin((double)q[FIRST][r], (double)q[SECOND][r]);
}

static double s_target(const case_t *c, uint32_t r)
{
    const double ret = (double)c->ret[c->position[r]], discount = (double)c->discount[c->position[r]];
    if (discount == 0)
        return ret;
    return ret + discount * (s_least(c->next, r) - exp((double)c->log_alpha) * s_log_prob_of(c, r));
}

/*  What critics that say these add to their loss, weighted by 1. */
static double s_critics_loss(double first, double second, double target)
{
    return 0.5 * ((first - target) * (first - target) + (second - target) * (second - target));
}

/*  A critic, of its own in each row: what it says of an action, and its slope by number `a`. Both are far apart. */
static double s_critic(const case_t *c, uint32_t k, uint32_t r, const double *action)
{
    double sum = 0;
    for (uint32_t a = 0; a < c->numbers; a++)
        sum += s_random(400 + k, a) * action[a] + 0.3 * sin(3 * action[a] + k);
    return sum / c->numbers + (k == c->position[r] % 2 ? 1 : -1);
}

static double s_critic_slope(const case_t *c, uint32_t k, uint32_t a, double action)
{
    return (s_random(400 + k, a) + 0.9 * cos(3 * action + k)) / c->numbers;
}

/*  The actor's loss of a row, weighted by 1: critics stand as in the block, or go along with the action. */
static double s_actor_loss(const case_t *c, uint32_t r, const double *head, bool along)
{
    double action[MOST], least = s_least(c->q, r);
    for (uint32_t a = 0; a < c->numbers; a++)
        action[a] = tanh(s_drawn(c, r, head, a));
    if (along)
        least = fmin(s_critic(c, FIRST, r, action), s_critic(c, SECOND, r, action));
    return exp((double)c->log_alpha) * s_log_prob(c, r, head) - least;
}

/* ---- the draw ------------------------------------------------------------------------------------------------------- */

static void s_check_draw(const case_t *c)
{
    for (uint32_t r = 0; r < TT_BLOCK; r++) {
        double head[WIDEST];
        s_head(c, r, head);
        for (uint32_t a = 0; a < c->numbers; a++)
            if (r < c->rows)
                assert_near(c->action[a * TT_BLOCK + r], tanh(s_drawn(c, r, head, a)), 2e-6);
            else
                assert_true(c->action[a * TT_BLOCK + r] == 0);
    }
}

static void test_what_is_drawn(void **state)
{
    (void)state;
    for (int critic = 0; critic < 2; critic++)
        for (size_t i = 0; i < TT_COUNT(numbers_of); i++)
            for (size_t k = 0; k < TT_COUNT(rows_of); k++) {
                case_t c = {0};
                s_fill(&c, critic, numbers_of[i], 0, rows_of[k]);
                s_call(&c, DRAW);
                s_check_draw(&c);
            }
}

/*  Of one number and one row: what is drawn comes to u. */
static float s_entropy_at(case_t *c, float u, float log_std, float z)
{
    memset(c, 0, sizeof *c);
    s_fill(c, false, 1, 0, 1);
    c->loss.of.scale = 1;
    c->weight[c->position[0]] = 1;
    c->noise[c->position[0]] = z;
    c->head[TT_BLOCK] = log_std;
    c->head[0] = (float)((double)u - exp((double)log_std) * (double)z);
    s_call(c, LOSS);
    return c->stats[SAC_ENTROPY];
}

/*  Where tanh is 1 but for its last bits, and where 1 is all that is left of it, too. */
static void test_log_pi_far_out(void **state)
{
    (void)state;
    static const float size[] = {0, 1e-4f, 0.03f, 0.5f, 1, 2.5f, 5, 7, 8, 8.5f, 9.5f, 12, 16, 20};
    static const float log_std[] = {-20, -3, 0, 2}, z[] = {-2, 0, 0.7f};
    for (size_t i = 0; i < 2 * TT_COUNT(size); i++)
        for (size_t k = 0; k < TT_COUNT(log_std) * TT_COUNT(z); k++) {
            case_t c;
            double head[2];
            const float u = i % 2 ? -size[i / 2] : size[i / 2];
            const float entropy = s_entropy_at(&c, u, log_std[k % TT_COUNT(log_std)], z[k / TT_COUNT(log_std)]);
            s_head(&c, 0, head);
            const double drawn = s_drawn(&c, 0, head, 0);
            assert_near(s_log_slope(drawn), -2 * log(cosh(drawn)), 1e-12);
            assert_near(drawn, u, 1e-5);
            assert_near(entropy, -s_log_prob(&c, 0, head), 5e-6);
        }
}

/* ---- the critics ---------------------------------------------------------------------------------------------------- */

static void s_expect_critics(const case_t *c, double *stats)
{
    for (uint32_t r = 0; r < c->rows; r++) {
        const double first = (double)c->q[FIRST][r], second = (double)c->q[SECOND][r], target = s_target(c, r);
        stats[TWIN_CRITIC_LOSS] += s_critics_loss(first, second, target) * s_w(c, r);
        stats[TWIN_Q] += (first + second) / 2 * s_w(c, r);
        stats[TWIN_TARGET] += target * s_w(c, r);
    }
}

static void s_check_stats(const case_t *c, const double *expected, int count)
{
    for (int i = 0; i < count; i++)
        assert_near(c->stats[i], expected[i], 1e-5 * (1 + fabs(expected[i])));
    for (int i = count; i < TT_LOSS_STATS; i++)
        assert_true(c->stats[i] == 0);
}

static void s_check_critics_slopes(const case_t *c)
{
    const double by = 1e-4;
    for (uint32_t r = 0; r < TT_BLOCK; r++) {
        if (r >= c->rows) {
            assert_true(c->d_q[FIRST][r] == 0 && c->d_q[SECOND][r] == 0);
            continue;
        }
        const double first = (double)c->q[FIRST][r], second = (double)c->q[SECOND][r], target = s_target(c, r);
        const double by_first = s_critics_loss(first + by, second, target) - s_critics_loss(first - by, second, target);
        const double by_second =
            s_critics_loss(first, second + by, target) - s_critics_loss(first, second - by, target);
        const double tolerance = 3e-6 * (1 + fabs(target)) * s_w(c, r);
        assert_near(c->d_q[FIRST][r], by_first / (2 * by) * s_w(c, r), tolerance);
        assert_near(c->d_q[SECOND][r], by_second / (2 * by) * s_w(c, r), tolerance);
    }
}

static void test_critics_values_and_slopes(void **state)
{
    (void)state;
    for (size_t i = 0; i < TT_COUNT(numbers_of); i++)
        for (size_t k = 0; k < TT_COUNT(rows_of); k++) {
            case_t c = {0};
            double expected[TWIN_CRITIC_STATS] = {0};
            s_fill(&c, true, numbers_of[i], 0, rows_of[k]);
            s_call(&c, LOSS);
            s_expect_critics(&c, expected);
            s_check_stats(&c, expected, TWIN_CRITIC_STATS);
            s_check_critics_slopes(&c);
        }
}

/*  One unit that goes on with discount 0.97, from return 0; deviations are within their limits. */
static void s_one(case_t *c, bool critic)
{
    memset(c, 0, sizeof *c);
    s_fill(c, critic, 3, 0, 1);
    for (uint32_t a = 0; a < c->numbers; a++)
        c->head[(c->numbers + a) * TT_BLOCK] = (float)a / 4 - 0.5f;
    c->loss.of.scale = 1;
    c->weight[c->position[0]] = 1;
    c->ret[c->position[0]] = 0;
    c->discount[c->position[0]] = 0.97f;
}

static void test_the_lesser_target_counts(void **state)
{
    (void)state;
    static const float next[][CRITICS] = {{-3, 5}, {5, -3}, {-3, -3}};
    for (size_t i = 0; i < TT_COUNT(next); i++) {
        case_t c;
        s_one(&c, true);
        c.next[FIRST][0] = next[i][FIRST];
        c.next[SECOND][0] = next[i][SECOND];
        s_call(&c, LOSS);
        const double soft = -3 - exp((double)c.log_alpha) * s_log_prob_of(&c, 0);
        assert_near(c.stats[TWIN_TARGET], 0.97 * soft, 1e-5);
    }
}

/*  Behind an end the frame is forwarded for nothing, whatever it gives. */
static void test_where_nothing_follows_nothing_is_read(void **state)
{
    (void)state;
    case_t c;
    s_one(&c, true);
    c.ret[c.position[0]] = 0.5f;
    c.discount[c.position[0]] = 0;
    for (uint32_t a = 0; a < 2 * c.numbers; a++)
        c.head[a * TT_BLOCK] = a % 2 ? INFINITY : NAN;
    c.next[FIRST][0] = NAN;
    c.next[SECOND][0] = INFINITY;
    c.q[FIRST][0] = 2;
    c.q[SECOND][0] = -1;
    s_call(&c, LOSS);
    assert_true(c.stats[TWIN_TARGET] == 0.5f && c.stats[TWIN_Q] == 0.5f);
    assert_true(c.d_q[FIRST][0] == 1.5f && c.d_q[SECOND][0] == -1.5f);
    assert_true(c.stats[TWIN_CRITIC_LOSS] == 2.25f);
}

/* ---- the actor ------------------------------------------------------------------------------------------------------ */

static void s_expect_actor(const case_t *c, double *stats)
{
    const double alpha = exp((double)c->log_alpha);
    for (uint32_t r = 0; r < c->rows; r++) {
        const double log_prob = s_log_prob_of(c, r);
        stats[SAC_ACTOR_LOSS] += (alpha * log_prob - s_least(c->q, r)) * s_w(c, r);
        stats[SAC_ALPHA_LOSS] -= (double)c->log_alpha * (log_prob + (double)c->loss.target_entropy) * s_w(c, r);
        stats[SAC_ALPHA] += alpha / UNITS;
        stats[SAC_ENTROPY] -= log_prob * s_w(c, r);
    }
}

/*  Of row r by number `a` of its head. */
static void s_check_actor_slope(const case_t *c, uint32_t r, uint32_t a, bool along)
{
    const double by = 1e-6;
    const float got = c->d_head[a * TT_BLOCK + r];
    double head[WIDEST];
    if (r >= c->rows) {
        assert_true(got == 0);
        return;
    }
    s_head(c, r, head);
    const double at = head[a];
    head[a] = at + by;
    const double up = s_actor_loss(c, r, head, along);
    head[a] = at - by;
    const double slope = (up - s_actor_loss(c, r, head, along)) / (2 * by);
    assert_near(got, slope * s_w(c, r), 2e-5 * (1 + fabs(slope)) * s_w(c, r));
}

static void s_check_actor_slopes(const case_t *c, bool along)
{
    for (uint32_t r = 0; r < TT_BLOCK; r++)
        for (uint32_t a = 0; a < 2 * c->numbers; a++)
            s_check_actor_slope(c, r, a, along);
}

/*  The lesser has all of it. */
static void s_check_critics_share(const case_t *c)
{
    for (uint32_t r = 0; r < TT_BLOCK; r++) {
        const bool second = c->q[SECOND][r] < c->q[FIRST][r];
        assert_true(c->d_q[second][r] == (r < c->rows ? -(c->weight[c->position[r]] * (1.0f / UNITS)) : 0) &&
                    c->d_q[!second][r] == 0);
    }
}

/*  By log alpha, with log pi held. What stood there is added to. */
static void s_check_alpha_slope(const case_t *c, double before)
{
    double slope = 0;
    for (uint32_t r = 0; r < c->rows; r++)
        slope -= (s_log_prob_of(c, r) + (double)c->loss.target_entropy) * s_w(c, r);
    assert_near(c->d_log_alpha, before + slope, 1e-5 * (1 + fabs(slope)));
}

static void test_actors_values_and_slopes(void **state)
{
    (void)state;
    for (size_t i = 0; i < TT_COUNT(numbers_of); i++)
        for (size_t k = 0; k < TT_COUNT(rows_of); k++) {
            case_t c = {.d_log_alpha = 0.25f};
            double expected[SAC_ACTOR_STATS] = {0};
            s_fill(&c, false, numbers_of[i], 0, rows_of[k]);
            s_call(&c, LOSS);
            s_expect_actor(&c, expected);
            s_check_stats(&c, expected, SAC_ACTOR_STATS);
            s_check_actor_slopes(&c, false);
            s_check_critics_share(&c);
            s_check_alpha_slope(&c, 0.25);
        }
}

/*  What critics say of what is drawn, and what comes back from them: with their slopes as the loss has given them. */
static void s_put_critics(case_t *c)
{
    for (uint32_t r = 0; r < c->rows; r++) {
        double head[WIDEST], action[MOST];
        s_head(c, r, head);
        for (uint32_t a = 0; a < c->numbers; a++)
            action[a] = tanh(s_drawn(c, r, head, a));
        for (uint32_t k = 0; k < CRITICS; k++)
            c->q[k][r] = (float)s_critic(c, k, r, action);
    }
}

static void s_put_what_comes_back(case_t *c)
{
    for (uint32_t r = 0; r < c->rows; r++) {
        double head[WIDEST];
        s_head(c, r, head);
        for (uint32_t a = 0; a < c->numbers; a++) {
            const double action = tanh(s_drawn(c, r, head, a));
            double d = 0;
            for (uint32_t k = 0; k < CRITICS; k++)
                d += (double)c->d_q[k][r] * s_critic_slope(c, k, a, action);
            c->d_action[a * TT_BLOCK + r] = (float)d;
        }
    }
}

static void test_the_way_back_through_the_draw(void **state)
{
    (void)state;
    for (size_t i = 0; i < TT_COUNT(numbers_of); i++)
        for (size_t k = 0; k < TT_COUNT(rows_of); k++) {
            case_t c = {0};
            s_fill(&c, false, numbers_of[i], 0, rows_of[k]);
            s_put_critics(&c);
            s_call(&c, LOSS);
            s_check_critics_share(&c);
            s_put_what_comes_back(&c);
            s_call(&c, BACK);
            s_check_actor_slopes(&c, true);
        }
}

static void test_of_equal_critics_the_first(void **state)
{
    (void)state;
    static const struct {
        float q[CRITICS], d[CRITICS];
    } cases[] = {{{2, 2}, {-1, 0}}, {{2, 3}, {-1, 0}}, {{2, 1}, {0, -1}}, {{0.0f, -0.0f}, {-1, 0}}};
    for (size_t i = 0; i < TT_COUNT(cases); i++) {
        case_t c;
        s_one(&c, false);
        for (uint32_t k = 0; k < CRITICS; k++)
            c.q[k][0] = cases[i].q[k];
        s_call(&c, LOSS);
        assert_true(c.d_q[FIRST][0] == cases[i].d[FIRST] && c.d_q[SECOND][0] == cases[i].d[SECOND]);
    }
}

/*  Beyond: no slope from either side, and the deviation is that of the limit. At the limit it moves. */
static void test_deviations_stand_still_beyond_their_limits(void **state)
{
    (void)state;
    static const float raw[] = {2.0001f, 30, -20.001f, -1e30f, 2, -20}, held[] = {2, 2, -20, -20, 2, -20};
    for (size_t i = 0; i < TT_COUNT(raw); i++) {
        case_t c, at;
        s_one(&c, false);
        c.head[c.numbers * TT_BLOCK] = raw[i];
        for (uint32_t a = 0; a < c.numbers; a++)
            c.d_action[a * TT_BLOCK] = 0.5f;
        at = c;
        at.head[c.numbers * TT_BLOCK] = held[i];
        for (call_t call = DRAW; call <= BACK; call++) {
            s_call(&c, call);
            s_call(&at, call);
        }
        const bool beyond = raw[i] != held[i];
        assert_true((c.d_head[c.numbers * TT_BLOCK] == 0) == beyond);
        assert_true(c.d_head[(c.numbers + 1) * TT_BLOCK] != 0);
        assert_memory_equal(c.action, at.action, sizeof c.action);
        assert_memory_equal(c.stats, at.stats, sizeof c.stats);
        assert_true(c.d_head[0] == at.d_head[0] && c.d_head[0] != 0);
    }
}

static void test_a_weight_that_is_not_tuned_stands_still(void **state)
{
    (void)state;
    case_t tuned = {0}, held = {0};
    s_fill(&tuned, false, 3, 0, 7);
    s_fill(&held, false, 3, 0, 7);
    held.loss.tuned = false;
    s_call(&tuned, LOSS);
    s_call(&held, LOSS);
    assert_true(tuned.d_log_alpha != 0 && held.d_log_alpha == 0);
    assert_memory_equal(tuned.d_head, held.d_head, sizeof held.d_head);
    assert_memory_equal(tuned.stats, held.stats, sizeof held.stats);
}

/*  Over blocks that have each unit once they are means, and the sum by log alpha goes on. */
static void test_statistics_are_means(void **state)
{
    (void)state;
    static const uint32_t blocks[] = {TT_BLOCK, 7, 1, 24};
    for (int critic = 0; critic < 2; critic++) {
        case_t c = {0};
        double expected[TT_LOSS_STATS] = {0}, slope = 0;
        for (size_t i = 0, first = 0; i < TT_COUNT(blocks); first += blocks[i++]) {
            s_fill(&c, critic, 3, (uint32_t)first, blocks[i]);
            s_call(&c, LOSS);
            (critic ? s_expect_critics : s_expect_actor)(&c, expected);
            for (uint32_t r = 0; r < c.rows; r++)
                slope -= (s_log_prob_of(&c, r) + (double)c.loss.target_entropy) * s_w(&c, r);
            memset(c.head, 0, sizeof c.head); /* behind the last row stand zeros */
            memset(c.q, 0, sizeof c.q);
            memset(c.next, 0, sizeof c.next);
        }
        s_check_stats(&c, expected, critic ? (int)TWIN_CRITIC_STATS : (int)SAC_ACTOR_STATS);
        if (critic)
            continue;
        assert_near(c.stats[SAC_ALPHA], exp((double)c.log_alpha), 1e-6);
        assert_near(c.stats[SAC_ALPHA_LOSS], slope * (double)c.log_alpha, 1e-5 * (1 + fabs(slope)));
        assert_near(c.d_log_alpha, slope, 1e-5 * (1 + fabs(slope)));
    }
}

/* ---- numbers that are none ------------------------------------------------------------------------------------------ */

/*  The critics' step: both critics' slopes are none where the target is, else that of the one whose own value is. */
static void test_the_critics_show_what_is_none(void **state)
{
    (void)state;
    for (uint32_t k = 0; k < CRITICS; k++) {
        case_t c;
        s_one(&c, true);
        c.q[k][0] = NAN;
        s_call(&c, LOSS);
        assert_true(isnan(c.d_q[k][0]) && isfinite(c.d_q[!k][0]));
        assert_true(isnan(c.stats[TWIN_CRITIC_LOSS]) && isnan(c.stats[TWIN_Q]));
    }
    case_t first, second, mean, wide, alpha;
    case_t *const all[] = {&first, &second, &mean, &wide, &alpha};
    for (size_t i = 0; i < TT_COUNT(all); i++)
        s_one(all[i], true);
    first.next[FIRST][0] = NAN;
    second.next[SECOND][0] = NAN;
    mean.head[0] = NAN;
    wide.head[wide.numbers * TT_BLOCK] = NAN;
    alpha.log_alpha = NAN;
    for (size_t i = 0; i < TT_COUNT(all); i++) {
        s_call(all[i], LOSS);
        assert_true(isnan(all[i]->d_q[FIRST][0]) && isnan(all[i]->d_q[SECOND][0]));
        assert_true(isnan(all[i]->stats[TWIN_CRITIC_LOSS]) && isnan(all[i]->stats[TWIN_TARGET]));
    }
}

/*  The actor's step: a critic that is none is the one that the slope goes through, whatever the other says. */
static void test_the_actor_shows_what_is_none(void **state)
{
    (void)state;
    for (uint32_t k = 0; k < CRITICS; k++)
        for (int lesser = 0; lesser < 2; lesser++) {
            case_t c;
            s_one(&c, false);
            c.q[k][0] = NAN;
            c.q[!k][0] = lesser ? -1e9f : 1e9f;
            s_call(&c, LOSS);
            assert_true(isnan(c.stats[SAC_ACTOR_LOSS]));
            assert_true(c.d_q[k][0] == -1 && c.d_q[!k][0] == 0);
        }
    for (uint32_t a = 0; a < 2 * 3; a++) {
        case_t c;
        s_one(&c, false);
        c.head[a * TT_BLOCK] = NAN;
        s_call(&c, DRAW);
        s_call(&c, LOSS);
        assert_true(isnan(c.action[a % 3 * TT_BLOCK]) && isfinite(c.action[(a + 1) % 3 * TT_BLOCK]));
        assert_true(isnan(c.d_head[a % 3 * TT_BLOCK]) && isnan(c.d_head[(3 + a % 3) * TT_BLOCK]));
        assert_true(isnan(c.d_log_alpha) && isnan(c.stats[SAC_ACTOR_LOSS]) && isnan(c.stats[SAC_ENTROPY]));
    }
}

/*  What came back from a critic that is none, and a weight that is none. */
static void test_what_is_none_comes_back(void **state)
{
    (void)state;
    case_t c;
    s_one(&c, false);
    s_call(&c, LOSS);
    c.d_action[TT_BLOCK] = NAN;
    s_call(&c, BACK);
    assert_true(isnan(c.d_head[TT_BLOCK]) && isnan(c.d_head[(c.numbers + 1) * TT_BLOCK]));
    assert_true(isfinite(c.d_head[0]) && isfinite(c.d_head[c.numbers * TT_BLOCK]));
    s_one(&c, false);
    c.log_alpha = NAN;
    s_call(&c, LOSS);
    for (uint32_t a = 0; a < 2 * c.numbers; a++)
        assert_true(isnan(c.d_head[a * TT_BLOCK]));
    assert_true(isnan(c.stats[SAC_ACTOR_LOSS]) && isnan(c.stats[SAC_ALPHA]));
}

/* ---- objectives ----------------------------------------------------------------------------------------------------- */

static void test_the_network_has_the_stages(void **state)
{
    (void)state;
    for (size_t i = 0; i < TT_COUNT(numbers_of); i++) {
        const tt_net_spec_t net = s_net(numbers_of[i]);
        const tt_objective_t critic = sac_critic_objective(&net), actor = sac_actor_objective(&net);
        assert_ok(tt_objective_check(&critic, &net));
        assert_ok(tt_objective_check(&actor, &net));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_drawn),
        cmocka_unit_test(test_log_pi_far_out),
        cmocka_unit_test(test_critics_values_and_slopes),
        cmocka_unit_test(test_the_lesser_target_counts),
        cmocka_unit_test(test_where_nothing_follows_nothing_is_read),
        cmocka_unit_test(test_actors_values_and_slopes),
        cmocka_unit_test(test_the_way_back_through_the_draw),
        cmocka_unit_test(test_of_equal_critics_the_first),
        cmocka_unit_test(test_deviations_stand_still_beyond_their_limits),
        cmocka_unit_test(test_a_weight_that_is_not_tuned_stands_still),
        cmocka_unit_test(test_statistics_are_means),
        cmocka_unit_test(test_the_critics_show_what_is_none),
        cmocka_unit_test(test_the_actor_shows_what_is_none),
        cmocka_unit_test(test_what_is_none_comes_back),
        cmocka_unit_test(test_the_network_has_the_stages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
