/*  Policies of several parts: one part is dist.h to the bit, masks forbid to the bit, draws are independent and each row's own. */
#include "common/rl/policy.h"
#include <math.h>
#include <string.h>
#include "common/base/vmath.h"
#include "tests/test.h"

enum { ROWS = 4000 };

typedef struct {
    tt_columns_t *columns;
    tt_policy_t policy;
    float head[ROWS * 16], log_std[8], log_prob[ROWS];
    uint8_t mask[ROWS * 16];
    uint32_t who[ROWS];
    uint64_t clock[ROWS];
    tt_dist_draw_t draw;
    int32_t choice[3][ROWS * 4];
    float box[ROWS * 4];
} case_t;

static case_t s_case;

static case_t *s_make(const char *action, bool mask)
{
    case_t *c = &s_case;
    tt_space_t *obs = NULL, *act = NULL;
    memset(c, 0, sizeof *c);
    assert_ok(tt_space_parse(&obs, "float32"));
    assert_ok(tt_space_parse(&act, action));
    assert_ok(tt_columns_new(&c->columns, obs, act, mask, true));
    tt_space_free(&obs);
    tt_space_free(&act);
    tt_policy_of(&c->policy, c->columns);
    for (size_t i = 0; i < ROWS; i++) {
        c->who[i] = (uint32_t)(i % 40);
        c->clock[i] = i / 40;
    }
    c->draw = (tt_dist_draw_t){5, TT_STREAM_ACTION, c->who, c->clock};
    for (size_t k = 0; k < TT_COUNT(c->head); k++) {
        uint32_t word[4];
        tt_draw(word, 3, TT_STREAM_TEST, 0, k);
        c->head[k] = 2 * tt_unit_f32(word[0]) - 1;
        c->mask[k] = word[1] % 3 != 0;
    }
    for (size_t k = 0; k < TT_COUNT(c->log_std); k++)
        c->log_std[k] = -0.1f * (float)k;
    return c;
}

static void s_end(case_t *c)
{
    tt_columns_destroy(&c->columns);
}

static void test_parts(void **state)
{
    (void)state;
    case_t *c = s_make("(discrete(3), float32[5], multi_binary[2], float32[2], multi_discrete(4, 2))", false);
    const tt_policy_part_t *p = c->policy.part;
    assert_int_equal(c->policy.parts, 5);
    assert_int_equal(c->policy.out, 3 + 5 + 4 + 2 + 6);
    assert_int_equal(c->policy.log_std, 7);
    assert_int_equal(p[3].log_std, 5);
    assert_int_equal(p[4].head, 14);
    assert_int_equal(p[4].mask, 3 + 4);
    assert_int_equal(p[4].draw, 1 + 2 + 2 + 1); /* five floats take two blocks */
    assert_true(p[2].bits && !p[2].box && p[2].n[1] == 2);
    s_end(c);
}

/*  A mask that allows everything goes the long way, and comes to the same. */
static void test_one_choice_is_dist(void **state)
{
    (void)state;
    case_t *c = s_make("discrete(5)", true);
    void *const mine[] = {c->choice[0]}, *const masked[] = {c->choice[1]};
    float *log_prob = c->box;
    memset(c->mask, 1, sizeof c->mask);
    tt_cat_sample(c->head, ROWS, 5, &c->draw, c->choice[2], log_prob);
    tt_policy_sample(&c->policy, c->head, NULL, NULL, ROWS, &c->draw, mine, c->log_prob);
    assert_memory_equal(c->choice[0], c->choice[2], ROWS * 4);
    assert_memory_equal(c->log_prob, log_prob, ROWS * 4);
    tt_policy_sample(&c->policy, c->head, NULL, c->mask, ROWS, &c->draw, masked, c->log_prob);
    assert_memory_equal(c->choice[1], c->choice[2], ROWS * 4);
    assert_memory_equal(c->log_prob, log_prob, ROWS * 4);
    const void *const given[] = {c->choice[2]};
    tt_policy_log_prob(&c->policy, c->head, NULL, c->mask, ROWS, given, c->log_prob);
    assert_memory_equal(c->log_prob, log_prob, ROWS * 4);
    s_end(c);
}

static void test_greedy(void **state)
{
    (void)state;
    case_t *c = s_make("discrete(3)", false);
    const float logits[] = {1, 3, 3, -INFINITY, -2, -INFINITY};
    void *const actions[] = {c->choice[0]};
    tt_policy_greedy(&c->policy, logits, NULL, 2, actions);
    assert_int_equal(c->choice[0][0], 1);
    assert_int_equal(c->choice[0][1], 1);
    s_end(c);
}

static void test_one_box_is_dist(void **state)
{
    (void)state;
    case_t *c = s_make("float32[3]", false);
    static float direct[ROWS * 3], log_prob[ROWS];
    void *const mine[] = {c->box};
    tt_gauss_sample(c->head, c->log_std, ROWS, 3, &c->draw, direct, log_prob);
    tt_policy_sample(&c->policy, c->head, c->log_std, NULL, ROWS, &c->draw, mine, c->log_prob);
    assert_memory_equal(c->box, direct, sizeof direct);
    assert_memory_equal(c->log_prob, log_prob, sizeof log_prob);
    tt_policy_greedy(&c->policy, c->head, NULL, ROWS, mine);
    assert_memory_equal(c->box, c->head, sizeof direct);
    s_end(c);
}

/*  Each row's own deviations, within their limits: as if they were everybody's, and it alone were there. */
static void test_deviations_of_the_rows(void **state)
{
    (void)state;
    enum { SOME = 30, OUT = 3 + 2 + 1 + 3 };
    case_t *c = s_make("(float32[2], discrete(3), float32)", true);
    const tt_policy_t shared = c->policy;
    c->columns->state_std = true;
    tt_policy_of(&c->policy, c->columns);
    assert_int_equal(c->policy.out, OUT);
    assert_int_equal(c->policy.own_std, 3);
    assert_int_equal(c->policy.log_std, 0);
    c->head[7] = -30, c->head[8] = 2.5f; /* of the first row */
    float boxes[2][SOME * 2], numbers[2][SOME], log_prob[SOME], again[SOME];
    void *const own[] = {boxes[0], c->choice[0], numbers[0]};
    tt_policy_sample(&c->policy, c->head, NULL, c->mask, SOME, &c->draw, own, log_prob);
    for (size_t i = 0; i < SOME; i++) {
        const float *head = c->head + i * OUT;
        const tt_dist_draw_t draw = {c->draw.seed, c->draw.stream, c->who + i, c->clock + i};
        const float held[] = {head[6], i ? head[7] : -20, i ? head[8] : 2};
        void *const alone[] = {boxes[1] + 2 * i, c->choice[1] + i, numbers[1] + i};
        tt_policy_sample(&shared, head, held, c->mask + 3 * i, 1, &draw, alone, &again[i]);
    }
    assert_memory_equal(boxes[0], boxes[1], sizeof boxes[0]);
    assert_memory_equal(numbers[0], numbers[1], sizeof numbers[0]);
    assert_memory_equal(c->choice[0], c->choice[1], SOME * sizeof(int32_t));
    assert_memory_equal(log_prob, again, sizeof log_prob);
    const void *const given[] = {boxes[0], c->choice[0], numbers[0]};
    tt_policy_log_prob(&c->policy, c->head, NULL, c->mask, SOME, given, again);
    assert_memory_equal(log_prob, again, sizeof log_prob);
    tt_policy_greedy(&c->policy, c->head, c->mask, SOME, own);
    for (size_t i = 0; i < SOME; i++)
        assert_true(boxes[0][2 * i + 1] == c->head[i * OUT + 1] && numbers[0][i] == c->head[i * OUT + 5]);
    s_end(c);
}

/*  Word by word: tanh of the mean and noise of the words that sampling takes, cut short of the bounds, as the number whose tanh it is. */
static void test_noisy_means(void **state)
{
    (void)state;
    enum { SOME = 500, LEG = 5, OUT = LEG + 2 };
    static const float sigmas[] = {0, 0.1f, 3};
    static float legs[2][SOME * LEG], arms[2][SOME * 2];
    case_t *c = s_make("(float32[5], float32[2])", false);
    c->columns->no_std = true;
    tt_policy_of(&c->policy, c->columns);
    assert_true(
        c->policy.out == OUT && c->policy.log_std == 0 && c->policy.own_std == 0 && tt_policy_boxes(&c->policy));
    c->head[2] = 40, c->head[OUT + 6] = -40;
    for (size_t s = 0; s < TT_COUNT(sigmas); s++) {
        uint32_t cut = 0;
        tt_policy_noisy_mean(&c->policy, c->head, SOME, sigmas[s], &c->draw, (void *const[]){legs[0], arms[0]});
        for (uint32_t i = 0; i < SOME; i++) {
            const tt_dist_draw_t draw = {c->draw.seed, c->draw.stream, c->who + i, c->clock + i};
            tt_policy_noisy_mean(&c->policy, c->head + i * OUT, 1, sigmas[s], &draw,
                (void *const[]){legs[1] + i * LEG, arms[1] + i * 2});
            for (uint32_t k = 0; k < OUT; k++) {
                uint32_t word[4];
                float z[4];
                const uint32_t e = k < LEG ? k : k - LEG, block = k < LEG ? e / 4 : 2;
                tt_draw(word, c->draw.seed, TT_STREAM_ACTION, c->who[i], c->clock[i] << 8 | block);
                tt_normals(word, z);
                const double most = 1 - 0x1p-20,
                             y = tanh((double)c->head[i * OUT + k]) + (double)(sigmas[s] * z[e % 4]);
                const double held = fmin(fmax(y, -most), most);
                const double u = (double)(k < LEG ? legs[0][i * LEG + e] : arms[0][i * 2 + e]);
                assert_true(fabs(u) < 7.3 && fabs(tanh(u) - held) < 1e-6);
                cut += held != y;
            }
        }
        assert_true(s == 0 ? cut == 2 : s == 1 ? cut < 10 : cut > SOME * OUT / 2);
        assert_memory_equal(legs[0], legs[1], sizeof legs[0]);
        assert_memory_equal(arms[0], arms[1], sizeof arms[0]);
    }
    tt_policy_greedy(&c->policy, c->head, NULL, SOME, (void *const[]){legs[0], arms[0]});
    assert_true(legs[0][2] == 40 && arms[0][2 + 1] == -40);
    s_end(c);
    c = s_make("(float32, discrete(2))", false);
    assert_false(tt_policy_boxes(&c->policy));
    s_end(c);
}

/*  What is not allowed is never drawn, and what is comes as often as its share. */
static void test_masks_forbid(void **state)
{
    (void)state;
    case_t *c = s_make("multi_discrete(3, 2)", true);
    void *const actions[] = {c->choice[0]};
    const void *const given[] = {c->choice[0]};
    for (size_t i = 0; i < ROWS; i++) {
        const float head[] = {0.5f, 9, -0.5f, 1, 1};
        const uint8_t mask[] = {1, 0, 1, i % 2, 1};
        memcpy(c->head + i * 5, head, sizeof head);
        memcpy(c->mask + i * 5, mask, sizeof mask);
    }
    tt_policy_sample(&c->policy, c->head, NULL, c->mask, ROWS, &c->draw, actions, c->log_prob);
    size_t first = 0, second = 0;
    for (size_t i = 0; i < ROWS; i++) {
        const int32_t *a = c->choice[0] + 2 * i;
        assert_true(a[0] == 0 || a[0] == 2);
        assert_true(a[1] == 1 || (a[1] == 0 && i % 2));
        const double p = exp(0.5) / (exp(0.5) + exp(-0.5)), expected = log(a[0] ? 1 - p : p) + (i % 2 ? log(0.5) : 0);
        assert_true(fabs(c->log_prob[i] - expected) < 1e-5);
        first += a[0] == 0;
        second += a[1] == 0;
    }
    assert_true(fabs((double)first / ROWS - 0.731) < 0.03);
    assert_true(fabs((double)second / ROWS - 0.25) < 0.03);
    float again[ROWS];
    tt_policy_log_prob(&c->policy, c->head, NULL, c->mask, ROWS, given, again);
    assert_memory_equal(again, c->log_prob, sizeof again);
    tt_policy_greedy(&c->policy, c->head, c->mask, ROWS, actions);
    for (size_t i = 0; i < ROWS; i++)
        assert_true(c->choice[0][2 * i] == 0 && c->choice[0][2 * i + 1] == (i % 2 ? 0 : 1));
    c->choice[0][0] = 1; /* forbidden: it could not have been */
    tt_policy_log_prob(&c->policy, c->head, NULL, c->mask, 1, given, again);
    assert_true(isinf(again[0]) && again[0] < 0);
    s_end(c);
}

/*  Two equal elements draw from words of their own: they agree as often as chance says. */
static void test_elements_are_independent(void **state)
{
    (void)state;
    case_t *c = s_make("(multi_discrete(2, 2), multi_binary[1], float32[1])", false);
    uint8_t *bits = (uint8_t *)c->choice[1];
    void *const actions[] = {c->choice[0], bits, c->box};
    memset(c->head, 0, sizeof c->head);
    tt_policy_sample(&c->policy, c->head, c->log_std, NULL, ROWS, &c->draw, actions, c->log_prob);
    size_t same = 0, with_bits = 0, with_box = 0;
    for (size_t i = 0; i < ROWS; i++) {
        same += c->choice[0][2 * i] == c->choice[0][2 * i + 1];
        with_bits += c->choice[0][2 * i] == bits[i];
        with_box += c->choice[0][2 * i] == (c->box[i] > 0);
        const double z = c->box[i], expected = 3 * log(0.5) - 0.5 * z * z - 0.918938533;
        assert_true(fabs(c->log_prob[i] - expected) < 1e-4);
    }
    assert_in_range(100 * same, 46 * ROWS, 54 * ROWS);
    assert_in_range(100 * with_bits, 46 * ROWS, 54 * ROWS);
    assert_in_range(100 * with_box, 46 * ROWS, 54 * ROWS);
    s_end(c);
}

/*  A row's actions do not depend on the rows beside it. */
static void test_rows_alone(void **state)
{
    (void)state;
    case_t *c = s_make("(multi_discrete(3, 4), float32[5])", true);
    void *const actions[] = {c->choice[0], c->box};
    static int32_t choice[2];
    static float box[5];
    for (size_t i = 0; i < 50; i++)
        c->mask[i * 7] = c->mask[i * 7 + 3] = 1;
    tt_policy_sample(&c->policy, c->head, c->log_std, c->mask, 50, &c->draw, actions, c->log_prob);
    for (size_t i = 0; i < 50; i++) {
        void *const one[] = {choice, box};
        const tt_dist_draw_t draw = {5, TT_STREAM_ACTION, c->who + i, c->clock + i};
        float log_prob;
        tt_policy_sample(&c->policy, c->head + i * 12, c->log_std, c->mask + i * 7, 1, &draw, one, &log_prob);
        assert_memory_equal(choice, c->choice[0] + 2 * i, sizeof choice);
        assert_memory_equal(box, c->box + 5 * i, sizeof box);
        assert_memory_equal(&log_prob, &c->log_prob[i], sizeof log_prob);
    }
    s_end(c);
}

/* ---- the best choice, or any ------------------------------------------------------------------------------------------ */

/*  Word by word as it is written down: the first says whether, the second which of those that are allowed. */
static int32_t s_explored(const case_t *c, size_t row, uint32_t n, const uint8_t *mask, float epsilon)
{
    const float *q = c->head + row * n;
    int32_t allowed[16], count = 0, best = 0;
    uint32_t word[4];
    for (uint32_t a = 0; a < n; a++)
        if (!mask || mask[row * n + a])
            allowed[count++] = (int32_t)a;
    tt_draw(word, c->draw.seed, TT_STREAM_ACTION, c->who[row], c->clock[row] << 8);
    for (int32_t k = 1; k < count; k++)
        best = q[allowed[k]] > q[allowed[best]] ? k : best;
    const bool any = (float)(word[0] >> 8) / 16777216.0f < epsilon;
    return allowed[any ? (int32_t)((uint64_t)word[1] * (uint64_t)count >> 32) : best];
}

static void test_explore_word_by_word(void **state)
{
    (void)state;
    case_t *c = s_make("discrete(5)", true);
    static float epsilon[ROWS];
    for (size_t i = 0; i < ROWS; i++) {
        epsilon[i] = (float)(i % 5) / 4;
        if (i % 3 == 0) { /* just not below it */
            uint32_t word[4];
            tt_draw(word, c->draw.seed, TT_STREAM_ACTION, c->who[i], c->clock[i] << 8);
            epsilon[i] = tt_unit_f32(word[0]);
        }
        c->mask[i * 5 + i % 5] = 1;
        c->head[i * 5 + 1] = c->head[i * 5 + 3]; /* equals */
    }
    for (int masked = 0; masked <= 1; masked++) {
        const uint8_t *mask = masked ? c->mask : NULL;
        tt_policy_explore(&c->policy, c->head, mask, ROWS, epsilon, &c->draw, c->choice[0]);
        for (size_t i = 0; i < ROWS; i++)
            assert_int_equal(c->choice[0][i], s_explored(c, i, 5, mask, epsilon[i]));
    }
    s_end(c);
}

/*  At 0 the greedy choice, at 1 every allowed one as often as any other, and in between so many of them. */
static void test_explore_shares(void **state)
{
    (void)state;
    case_t *c = s_make("discrete(4)", true);
    static float epsilon[ROWS];
    void *const greedy[] = {c->choice[1]};
    for (size_t i = 0; i < ROWS; i++)
        memcpy(c->mask + i * 4, (const uint8_t[]){1, 0, 1, 1}, 4);
    tt_policy_greedy(&c->policy, c->head, c->mask, ROWS, greedy);
    tt_policy_explore(&c->policy, c->head, c->mask, ROWS, epsilon, &c->draw, c->choice[0]);
    assert_memory_equal(c->choice[0], c->choice[1], ROWS * 4);
    for (int part = 1; part <= 4; part++) {
        size_t count[4] = {0}, other = 0;
        for (size_t i = 0; i < ROWS; i++)
            epsilon[i] = (float)part / 4;
        tt_policy_explore(&c->policy, c->head, c->mask, ROWS, epsilon, &c->draw, c->choice[0]);
        for (size_t i = 0; i < ROWS; i++) {
            count[c->choice[0][i]]++;
            other += c->choice[0][i] != c->choice[1][i];
        }
        assert_int_equal(count[1], 0);
        assert_true(fabs((double)other / ROWS - part / 4.0 * 2 / 3) < 0.03);
        for (int a = 0; a < 4 && part == 4; a++)
            assert_true(a == 1 || fabs((double)count[a] / ROWS - 1.0 / 3) < 0.03);
    }
    s_end(c);
}

static void test_explore_rows_alone(void **state)
{
    (void)state;
    case_t *c = s_make("discrete(6)", false);
    static float epsilon[ROWS];
    for (size_t i = 0; i < ROWS; i++)
        epsilon[i] = 0.5f;
    tt_policy_explore(&c->policy, c->head, NULL, ROWS, epsilon, &c->draw, c->choice[0]);
    for (size_t i = 0; i < 200; i++) {
        const tt_dist_draw_t draw = {5, TT_STREAM_ACTION, c->who + i, c->clock + i};
        int32_t one;
        tt_policy_explore(&c->policy, c->head + i * 6, NULL, 1, epsilon + i, &draw, &one);
        assert_int_equal(one, c->choice[0][i]);
    }
    s_end(c);
}

static void test_one_choice_and_nothing_else(void **state)
{
    (void)state;
    static const char *const others[] = {
        "float32", "multi_discrete(2, 2)", "multi_binary[1]", "(discrete(2), discrete(2))"};
    case_t *c = s_make("discrete(6)", false);
    assert_true(tt_policy_one_choice(&c->policy));
    s_end(c);
    for (size_t i = 0; i < TT_COUNT(others); i++) {
        c = s_make(others[i], false);
        assert_false(tt_policy_one_choice(&c->policy));
        s_end(c);
    }
}

/*  Logits that are no numbers: an allowed choice, and no undefined behaviour. */
static void test_not_a_number(void **state)
{
    (void)state;
    case_t *c = s_make("discrete(4)", true);
    void *const actions[] = {c->choice[0]};
    const float head[] = {NAN, NAN, NAN, NAN};
    const uint8_t mask[] = {0, 0, 1, 0};
    tt_policy_sample(&c->policy, head, NULL, mask, 1, &c->draw, actions, c->log_prob);
    assert_int_equal(c->choice[0][0], 2);
    for (float epsilon = 0; epsilon <= 1; epsilon += 1) {
        tt_policy_explore(&c->policy, head, mask, 1, &epsilon, &c->draw, c->choice[1]);
        assert_int_equal(c->choice[1][0], 2);
    }
    assert_true(isnan(c->log_prob[0]));
    s_end(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_one_choice_is_dist),
        cmocka_unit_test(test_greedy),
        cmocka_unit_test(test_one_box_is_dist),
        cmocka_unit_test(test_deviations_of_the_rows),
        cmocka_unit_test(test_noisy_means),
        cmocka_unit_test(test_masks_forbid),
        cmocka_unit_test(test_elements_are_independent),
        cmocka_unit_test(test_rows_alone),
        cmocka_unit_test(test_explore_word_by_word),
        cmocka_unit_test(test_explore_shares),
        cmocka_unit_test(test_explore_rows_alone),
        cmocka_unit_test(test_one_choice_and_nothing_else),
        cmocka_unit_test(test_not_a_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
