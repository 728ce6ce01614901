/*  TD3's losses, its draws and the way back against their formulas in double, derivatives against central differences of those;
 *  what is cut, what is not read, and what must be seen: numbers that are none. */
#include <math.h>
#include <string.h>
#include "common/base/rng.h"
#include "common/base/vmath.h"
#include "learner/algorithms/td3_objective.h"
#include "tests/learner/near.h"
#include "tests/test.h"

enum { UNITS = 64, MOST = 17 };
enum { FIRST, SECOND, CRITICS };

typedef struct {
    bool critic; /* whose loss; else the actor's */
    uint32_t numbers, rows;
    float noise[UNITS * MOST], ret[UNITS], discount[UNITS], weight[UNITS];
    uint32_t position[TT_BLOCK];
    float head[MOST * TT_BLOCK], d_head[MOST * TT_BLOCK];
    float q[CRITICS][TT_BLOCK], d_q[CRITICS][TT_BLOCK]; /* of the rows' own frames */
    float next[CRITICS][TT_BLOCK];
    float action[MOST * TT_BLOCK], d_action[MOST * TT_BLOCK], stats[TT_LOSS_STATS];
    td3_loss_t loss;
} case_t;

static const uint32_t numbers_of[] = {1, 3, MOST}, rows_of[] = {1, 7, TT_BLOCK};

static float s_random(uint32_t who, uint64_t k)
{
    uint32_t word[4];
    tt_draw(word, 7, TT_STREAM_TEST, who, k);
    return tt_unit_f32(word[0]) - 0.5f;
}

static float s_normal(uint32_t who, uint64_t k)
{
    uint32_t word[4];
    float z[4];
    tt_draw(word, 7, TT_STREAM_TEST, who, k);
    tt_normals(word, z);
    return z[0];
}

static void s_fill(case_t *c, bool critic, uint32_t numbers, uint32_t rows)
{
    *c = (case_t){.critic = critic, .numbers = numbers, .rows = rows};
    c->loss = (td3_loss_t){.of = {numbers, 1.0f / UNITS}, .noise = 0.4f, .clip = 0.5f};
    for (uint32_t i = 0; i < UNITS; i++) {
        c->ret[i] = 4 * s_random(1, i);
        c->discount[i] = i % 4 ? 0.97f : 0;
        c->weight[i] = i % 3 ? 1 : 0.75f;
        for (uint32_t a = 0; a < numbers; a++)
            c->noise[i * numbers + a] = s_normal(10 + a, i);
    }
    for (uint32_t r = 0; r < rows; r++) {
        const uint32_t i = c->position[r] = (r * 11 + 3) % UNITS;
        for (uint32_t a = 0; a < numbers; a++)
            c->head[a * TT_BLOCK + r] = 4 * s_random(100 + a, i);
        for (uint32_t k = 0; k < CRITICS; k++) {
            c->q[k][r] = 4 * s_random(300 + k, i);
            c->next[k][r] = 4 * s_random(310 + k, i);
        }
    }
    memset(c->d_head, 0x7f, sizeof c->d_head);
    memset(c->d_q, 0x7f, sizeof c->d_q);
    memset(c->action, 0x7f, sizeof c->action);
}

static tt_net_spec_t s_net(uint32_t numbers)
{
    tt_net_spec_t net = tt_net_twin_critics(1, (const uint32_t[]){4}, 1, TT_NN_TANH, numbers);
    net.sets = 2;
    return net;
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
            .stats = c->stats};
    return (tt_loss_block_t){.rows = c->rows,
        .row = c->position,
        .head = {[TD3_ACTOR] = c->head, [TD3_Q] = c->q[FIRST]},
        .d_head = {[TD3_ACTOR] = c->d_head, [TD3_Q] = c->d_q[FIRST]},
        .stats = c->stats};
}

typedef enum { DRAW, LOSS, BACK } call_t;

/*  The actor's reads neither noise nor returns. */
static void s_call(case_t *c, call_t call)
{
    const void *input[TT_INPUTS_MAX] = {[TWIN_IN_NOISE] = c->critic ? c->noise : NULL,
        [TWIN_IN_RETURN] = c->critic ? c->ret : NULL,
        [TWIN_IN_DISCOUNT] = c->critic ? c->discount : NULL,
        [TWIN_IN_WEIGHT] = c->weight};
    const tt_net_spec_t net = s_net(c->numbers);
    const tt_objective_t objective = c->critic ? td3_critic_objective(&net) : td3_actor_objective(&net);
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

static double s_w(const case_t *c, uint32_t r)
{
    return (double)c->weight[c->position[r]] / UNITS;
}

/*  What the actor says of number `a` of row r, with noise where a next action is drawn. */
static double s_drawn(const case_t *c, uint32_t r, uint32_t a)
{
    const double y = tanh((double)c->head[a * TT_BLOCK + r]);
    const double noise = (double)c->loss.noise * (double)c->noise[c->position[r] * c->numbers + a];
    const double clip = (double)c->loss.clip;
    return c->critic ? fmax(-1, fmin(1, y + fmax(-clip, fmin(clip, noise)))) : y;
}

static double s_target(const case_t *c, uint32_t r)
{
    const double ret = (double)c->ret[c->position[r]], discount = (double)c->discount[c->position[r]];
    return discount == 0 ? ret : ret + discount * fmin((double)c->next[FIRST][r], (double)c->next[SECOND][r]);
}

static double s_critics_loss(double first, double second, double target)
{
    return 0.5 * ((first - target) * (first - target) + (second - target) * (second - target));
}

/*  A critic of its own in each row: what it says of an action, and its slope by number `a`. */
static double s_critic(const case_t *c, uint32_t r, const double *action)
{
    double sum = 0;
    for (uint32_t a = 0; a < c->numbers; a++)
        sum += (double)s_random(400 + r, a) * action[a] + 0.3 * sin(3 * action[a]);
    return sum;
}

/* ---- the draws ------------------------------------------------------------------------------------------------------ */

/*  Noise is cut where it is more than the clip, and an action where it would leave its bounds; both happen. */
static void test_what_is_drawn(void **state)
{
    (void)state;
    uint32_t cut = 0, ends = 0;
    for (int critic = 0; critic < 2; critic++)
        for (size_t i = 0; i < TT_COUNT(numbers_of); i++)
            for (size_t k = 0; k < TT_COUNT(rows_of); k++) {
                case_t c;
                s_fill(&c, critic, numbers_of[i], rows_of[k]);
                s_call(&c, DRAW);
                for (uint32_t r = 0; r < TT_BLOCK; r++)
                    for (uint32_t a = 0; a < c.numbers; a++) {
                        const float y = c.action[a * TT_BLOCK + r];
                        assert_near(y, r < c.rows ? s_drawn(&c, r, a) : 0, 1e-6);
                        assert_true(fabsf(y) <= 1);
                        ends += fabsf(y) == 1;
                        cut += fabsf(c.noise[c.position[r] * c.numbers + a]) > 1.25f;
                    }
            }
    assert_true(ends > 20 && cut > 100);
}

/*  Without noise, or with none that is let through, the next action is what the actor says. */
static void test_no_noise(void **state)
{
    (void)state;
    for (int way = 0; way < 2; way++) {
        case_t with, without;
        s_fill(&with, true, 3, TT_BLOCK);
        s_fill(&without, false, 3, TT_BLOCK);
        *(way ? &with.loss.noise : &with.loss.clip) = 0;
        s_call(&with, DRAW);
        s_call(&without, DRAW);
        for (uint32_t k = 0; k < 3 * TT_BLOCK; k++)
            assert_true(with.action[k] == without.action[k]);
    }
}

/* ---- the critics ---------------------------------------------------------------------------------------------------- */

static void s_check_stats(const case_t *c, const double *expected, int count)
{
    for (int i = 0; i < count; i++)
        assert_near(c->stats[i], expected[i], 1e-5 * (1 + fabs(expected[i])));
    for (int i = count; i < TT_LOSS_STATS; i++)
        assert_true(c->stats[i] == 0);
}

static void test_critics_values_and_slopes(void **state)
{
    (void)state;
    const double by = 1e-4;
    for (size_t i = 0; i < TT_COUNT(numbers_of); i++)
        for (size_t k = 0; k < TT_COUNT(rows_of); k++) {
            case_t c;
            double expected[TWIN_CRITIC_STATS] = {0};
            s_fill(&c, true, numbers_of[i], rows_of[k]);
            s_call(&c, LOSS);
            for (uint32_t r = 0; r < TT_BLOCK; r++) {
                const double q1 = (double)c.q[FIRST][r], q2 = (double)c.q[SECOND][r];
                if (r >= c.rows) {
                    assert_true(c.d_q[FIRST][r] == 0 && c.d_q[SECOND][r] == 0);
                    continue;
                }
                const double target = s_target(&c, r), w = s_w(&c, r);
                expected[TWIN_CRITIC_LOSS] += s_critics_loss(q1, q2, target) * w;
                expected[TWIN_Q] += (q1 + q2) / 2 * w;
                expected[TWIN_TARGET] += target * w;
                const double first = s_critics_loss(q1 + by, q2, target) - s_critics_loss(q1 - by, q2, target);
                const double second = s_critics_loss(q1, q2 + by, target) - s_critics_loss(q1, q2 - by, target);
                assert_near(c.d_q[FIRST][r], first / (2 * by) * w, 3e-6 * (1 + fabs(target)) * w);
                assert_near(c.d_q[SECOND][r], second / (2 * by) * w, 3e-6 * (1 + fabs(target)) * w);
            }
            s_check_stats(&c, expected, TWIN_CRITIC_STATS);
        }
}

/*  One unit that goes on with discount 0.5, from return 0. */
static void s_one(case_t *c, bool critic)
{
    s_fill(c, critic, 3, 1);
    c->loss.of.scale = 1;
    c->weight[c->position[0]] = 1;
    c->ret[c->position[0]] = 0;
    c->discount[c->position[0]] = 0.5f;
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
        assert_true(c.stats[TWIN_TARGET] == -1.5f);
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
    c.head[0] = NAN;
    c.next[FIRST][0] = NAN;
    c.next[SECOND][0] = INFINITY;
    c.q[FIRST][0] = 2;
    c.q[SECOND][0] = -1;
    s_call(&c, LOSS);
    assert_true(c.stats[TWIN_TARGET] == 0.5f && c.stats[TWIN_Q] == 0.5f && c.stats[TWIN_CRITIC_LOSS] == 2.25f);
    assert_true(c.d_q[FIRST][0] == 1.5f && c.d_q[SECOND][0] == -1.5f);
}

/* ---- the actor ------------------------------------------------------------------------------------------------------ */

/*  The loss gives the critic a slope and the head none; the way back brings what came through the critic. */
static void test_actors_values_and_slopes(void **state)
{
    (void)state;
    const double by = 1e-6;
    for (size_t i = 0; i < TT_COUNT(numbers_of); i++)
        for (size_t k = 0; k < TT_COUNT(rows_of); k++) {
            case_t c;
            double expected[TD3_ACTOR_STATS] = {0}, action[MOST];
            s_fill(&c, false, numbers_of[i], rows_of[k]);
            for (uint32_t r = 0; r < c.rows; r++) {
                for (uint32_t a = 0; a < c.numbers; a++)
                    action[a] = s_drawn(&c, r, a);
                c.q[FIRST][r] = (float)s_critic(&c, r, action);
                expected[TD3_ACTOR_LOSS] -= (double)c.q[FIRST][r] * s_w(&c, r);
            }
            s_call(&c, LOSS);
            s_check_stats(&c, expected, TD3_ACTOR_STATS);
            for (uint32_t r = 0; r < TT_BLOCK; r++)
                assert_true(c.d_q[FIRST][r] == (r < c.rows ? -(c.weight[c.position[r]] * (1.0f / UNITS)) : 0));
            for (uint32_t k2 = 0; k2 < c.numbers * TT_BLOCK; k2++) {
                const uint32_t a = k2 / TT_BLOCK, r = k2 % TT_BLOCK;
                assert_true(c.d_head[k2] == 0);
                const double y = s_drawn(&c, r, a);
                c.d_action[k2] = (float)((double)c.d_q[FIRST][r] * ((double)s_random(400 + r, a) + 0.9 * cos(3 * y)));
            }
            s_call(&c, BACK);
            for (uint32_t r = 0; r < TT_BLOCK; r++)
                for (uint32_t a = 0; a < c.numbers; a++) {
                    if (r >= c.rows) {
                        assert_true(c.d_head[a * TT_BLOCK + r] == 0);
                        continue;
                    }
                    for (uint32_t b = 0; b < c.numbers; b++)
                        action[b] = s_drawn(&c, r, b);
                    action[a] = tanh((double)c.head[a * TT_BLOCK + r] + by);
                    const double up = -s_critic(&c, r, action);
                    action[a] = tanh((double)c.head[a * TT_BLOCK + r] - by);
                    const double slope = (up + s_critic(&c, r, action)) / (2 * by);
                    assert_near(c.d_head[a * TT_BLOCK + r], slope * s_w(&c, r), 2e-5 * s_w(&c, r));
                }
        }
}

/*  What the loss has written stays below it. */
static void test_the_way_back_adds(void **state)
{
    (void)state;
    case_t c;
    s_one(&c, false);
    c.head[0] = 0;
    c.d_head[0] = 1;
    c.d_action[0] = 0.5f;
    s_call(&c, BACK);
    assert_true(c.d_head[0] == 1.5f);
}

/* ---- numbers that are none ------------------------------------------------------------------------------------------ */

static void test_what_is_none_shows(void **state)
{
    (void)state;
    for (int critic = 0; critic < 2; critic++) {
        case_t c;
        s_one(&c, critic);
        c.head[TT_BLOCK] = NAN;
        s_call(&c, DRAW);
        assert_true(isnan(c.action[TT_BLOCK]) && isfinite(c.action[0]) && isfinite(c.action[2 * TT_BLOCK]));
    }
    for (uint32_t k = 0; k < CRITICS; k++) {
        case_t c;
        s_one(&c, true);
        c.next[k][0] = NAN;
        s_call(&c, LOSS);
        assert_true(isnan(c.stats[TWIN_TARGET]) && isnan(c.d_q[FIRST][0]) && isnan(c.d_q[SECOND][0]));
        s_one(&c, true);
        c.q[k][0] = NAN;
        s_call(&c, LOSS);
        assert_true(isnan(c.stats[TWIN_CRITIC_LOSS]) && isnan(c.d_q[k][0]) && isfinite(c.d_q[!k][0]));
    }
    case_t c;
    s_one(&c, true);
    c.noise[c.position[0] * 3 + 2] = NAN;
    s_call(&c, DRAW);
    assert_true(isnan(c.action[2 * TT_BLOCK]) && isfinite(c.action[0]));
    s_one(&c, false);
    c.q[FIRST][0] = NAN;
    s_call(&c, LOSS);
    assert_true(isnan(c.stats[TD3_ACTOR_LOSS]));
    c.d_action[TT_BLOCK] = NAN;
    s_call(&c, BACK);
    assert_true(isnan(c.d_head[TT_BLOCK]) && isfinite(c.d_head[0]));
}

static void test_the_network_has_the_stages(void **state)
{
    (void)state;
    for (size_t i = 0; i < TT_COUNT(numbers_of); i++) {
        const tt_net_spec_t net = s_net(numbers_of[i]);
        const tt_objective_t critic = td3_critic_objective(&net), actor = td3_actor_objective(&net);
        assert_ok(tt_objective_check(&critic, &net));
        assert_ok(tt_objective_check(&actor, &net));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_drawn),
        cmocka_unit_test(test_no_noise),
        cmocka_unit_test(test_critics_values_and_slopes),
        cmocka_unit_test(test_the_lesser_target_counts),
        cmocka_unit_test(test_where_nothing_follows_nothing_is_read),
        cmocka_unit_test(test_actors_values_and_slopes),
        cmocka_unit_test(test_the_way_back_adds),
        cmocka_unit_test(test_what_is_none_shows),
        cmocka_unit_test(test_the_network_has_the_stages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
