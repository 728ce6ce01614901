/*  Minibatches beside the naive ones, with S = 1 to 8, priorities and delays; frequencies against probabilities; errors. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/vmath.h"
#include "learner/replay/parts.h"
#include "tests/replay/naive.h"
#include "tests/test.h"

static void s_check_minibatch(const replay_t *replay, naive_t *naive, uint64_t total, const replay_sample_t *got,
    const uint64_t *unit, const float *weight)
{
    (void)total;
    for (uint32_t i = 0; i < got->units; i++) {
        const uint64_t clock = unit[i] / naive->cfg.N;
        const uint32_t env = (uint32_t)(unit[i] % naive->cfg.N);
        assert_int_equal(got->unit[i], unit[i]);
        assert_true(got->weight[i] == weight[i]);
        assert_true(naive_lives(naive, clock, env));
        for (uint32_t t = 0; t < (naive->cfg.length ? naive->cfg.length : 1); t++) {
            const size_t at = (size_t)t * got->units + i;
            const uint32_t k = naive->cfg.burn + t;
            naive_row_t want;
            assert_true(naive_row(naive, clock + k, env, &want));
            assert_true(got->ret[at] == want.ret && got->discount[at] == want.discount);
            if (naive->cfg.length)
                assert_int_equal(got->next[at], naive_next(&want, k));
        }
    }
    assert_int_equal(got->next != NULL, naive->cfg.length > 0);
    assert_true(replay_ready(replay));
}

static void s_errors(float *x, uint32_t seed, uint64_t total, uint32_t units)
{
    for (uint32_t i = 0; i < units; i++)
        x[i] = (float)(world_unit(seed, total * 1024 + i) * 4);
}

/*  Some steps of an update. Returns how many of them drew. */
static uint32_t s_steps(world_t *world, replay_t *replay, naive_t *naive, uint64_t *total, uint32_t units)
{
    uint64_t unit[NAIVE_UNITS];
    float weight[NAIVE_UNITS], x[NAIVE_UNITS];
    uint32_t drawn = 0;
    for (uint64_t k = 0; k < 3; k++, ++*total) {
        const float beta = (float)world_unit(7, *total);
        replay_sample_t got;
        const bool there = naive_sample(naive, *total, units, beta, unit, weight);
        const tt_status_t status = replay_sample(replay, *total, units, beta, &got);
        assert_int_equal(status, there ? TT_OK : TT_AGAIN);
        if (!there)
            continue;
        drawn++;
        s_check_minibatch(replay, naive, *total, &got, unit, weight);
        assert_ok(replay_sample(replay, *total, units, beta, &got)); /* asked again, the same again */
        s_check_minibatch(replay, naive, *total, &got, unit, weight);
        s_errors(x, world->seed, *total, units);
        assert_ok(replay_priorities(replay, *total, x, units));
        if (naive->cfg.alpha > 0)
            naive_priorities(naive, *total, unit, x, units);
    }
    return drawn;
}

/*  Sequences by the seed too, for every second eight. */
static void s_sequences(replay_cfg_t *cfg, const world_t *world, uint32_t seed)
{
    cfg->burn = seed % 5;
    cfg->length = 1 + seed * 7 % 11;
    cfg->ahead = 1 + seed % 4;
    const uint64_t least = (cfg->burn + cfg->length + cfg->ahead - 1 + cfg->T - 1) / cfg->T;
    cfg->capacity += least * world_batch_bytes(world);
}

static void s_random_worlds(bool sequences)
{
    uint32_t drawn = 0, with[4] = {0};
    for (uint32_t seed = 0; seed < 32; seed++) {
        const uint32_t log_S = seed % 4;
        world_t *world = world_new(
            1 + (uint32_t)(world_unit(2000 + seed, 0) * 9), 1 + (uint32_t)(world_unit(2000 + seed, 1) * 12), seed);
        replay_cfg_t cfg = world_cfg(world, 3 + (uint32_t)(world_unit(2000 + seed, 2) * 20), 1u << log_S, 1 + seed % 3);
        cfg.alpha = seed % 8 < 4 ? 0 : 0.6f;
        cfg.epsilon = 1e-3f;
        cfg.priority_delay = seed / 8;
        cfg.stack = 1 + seed % 2;
        if (sequences)
            s_sequences(&cfg, world, seed);
        replay_t *replay = NULL;
        naive_t *naive = naive_new(world, &cfg);
        assert_ok(replay_new(&replay, &cfg));
        uint64_t total = 0;
        for (int batch = 0; batch < (sequences ? 60 : 30); batch++) {
            world_play(world);
            assert_ok(world_insert(world, replay));
            naive_insert(naive);
            const uint32_t steps = s_steps(world, replay, naive, &total, 5 + seed % 29);
            drawn += steps;
            with[log_S] += steps;
        }
        replay_stats_t stats;
        replay_stats(replay, &stats);
        assert_true(stats.max_priority == naive->max);
        replay_destroy(&replay);
        free(naive);
        world_destroy(&world);
    }
    assert_true(drawn > 1000 && with[0] && with[1] && with[2] && with[3]);
}

static void test_random_worlds(void **state)
{
    (void)state;
    s_random_worlds(false);
}

static void test_random_sequences(void **state)
{
    (void)state;
    s_random_worlds(true);
}

/* ---- frequencies ------------------------------------------------------------------------------------------------------ */

typedef struct {
    world_t *world;
    replay_t *replay;
    uint64_t total;
} case_t;

static void s_open(case_t *c, uint32_t stripes, float alpha, uint32_t delay)
{
    *c = (case_t){.world = world_new(6, 8, 11)};
    replay_cfg_t cfg = world_cfg(c->world, 20, stripes, 1);
    cfg.alpha = alpha;
    cfg.epsilon = 0.01f;
    cfg.priority_delay = delay;
    assert_ok(replay_new(&c->replay, &cfg));
    for (int batch = 0; batch < 18; batch++) {
        world_play(c->world);
        assert_ok(world_insert(c->world, c->replay));
    }
}

static void s_close(case_t *c)
{
    replay_destroy(&c->replay);
    world_destroy(&c->world);
}

/*  What each unit weighs: its share of its stripe, each stripe alike. */
static double s_share(const case_t *c, uint64_t clock, uint32_t env)
{
    const units_t *units = &c->replay->units;
    if (!units_lives(units, clock, env))
        return 0;
    const sumtree_t *tree = &units->tree[stripes_of(&units->stripes, clock, env)];
    return (double)units_priority(units, clock, env) / sumtree_sum(tree) / units->stripes.S;
}

/*  Chi-square of all units' counts: with k degrees of freedom its mean is k, its variance 2 k; draws within a minibatch are
 *  stratified, which only makes it smaller. The seed is fixed, so this cannot flicker. */
static void s_check_frequencies(case_t *c)
{
    enum { STEPS = 4000, UNITS = 64 };
    const uint64_t clocks = c->world->batches * c->world->T;
    const uint32_t N = c->world->N;
    uint32_t *count = tt_array0(clocks * N, sizeof *count);
    for (uint64_t k = 0; k < STEPS; k++) {
        replay_sample_t got;
        assert_ok(replay_sample(c->replay, c->total + k, UNITS, 0, &got));
        for (uint32_t i = 0; i < UNITS; i++) {
            count[got.unit[i]]++;
            assert_true(replay_uniform(c->replay) || got.weight[i] == 1); /* beta 0 */
        }
        if (!replay_uniform(c->replay)) /* forget the step, so that priorities stay as they are */
            c->replay->late[(c->total + k) % c->replay->lates].units = 0;
    }
    double chi = 0;
    uint32_t cells = 0;
    for (uint64_t i = 0; i < clocks * N; i++) {
        const double want = s_share(c, i / N, (uint32_t)(i % N)) * STEPS * UNITS;
        if (want == 0) {
            assert_int_equal(count[i], 0);
            continue;
        }
        chi += (count[i] - want) * (count[i] - want) / want;
        cells++;
    }
    assert_true(cells > 700);
    assert_true(chi < cells + 5 * sqrt(2.0 * cells));
    assert_true(chi > cells * 0.3); /* random all the same */
    free(count);
}

static void test_uniform_frequencies(void **state)
{
    (void)state;
    for (uint32_t S = 1; S <= 8; S *= 4) {
        case_t c;
        s_open(&c, S, 0, 0);
        s_check_frequencies(&c);
        s_close(&c);
    }
}

static void test_prioritised_frequencies(void **state)
{
    (void)state;
    for (uint32_t S = 1; S <= 8; S *= 4) {
        case_t c;
        s_open(&c, S, 0.7f, 0);
        for (c.total = 0; c.total < 60; c.total++) {
            float x[64];
            replay_sample_t got;
            assert_ok(replay_sample(c.replay, c.total, 64, 0.5f, &got));
            s_errors(x, 17, c.total, 64);
            assert_ok(replay_priorities(c.replay, c.total, x, 64));
        }
        replay_sample_t got;
        assert_ok(replay_sample(c.replay, c.total, 1, 0.5f, &got));
        c.replay->late[c.total % c.replay->lates].units = 0;
        s_check_frequencies(&c);
        s_close(&c);
    }
}

/* ---- priorities --------------------------------------------------------------------------------------------------------- */

/*  Step k sees what steps up to k - 1 - d found, and the last of equal units wins. */
static void test_delay_and_the_last_wins(void **state)
{
    (void)state;
    for (uint32_t delay = 0; delay < 4; delay++) {
        case_t c;
        s_open(&c, 1, 1, delay);
        replay_sample_t got;
        float x[2048];
        assert_ok(replay_sample(c.replay, 0, 2048, 1, &got)); /* more than there are: some come twice */
        uint64_t unit[2048], twice = 0;
        memcpy(unit, got.unit, sizeof unit);
        for (uint32_t i = 0; i < 2048; i++) {
            x[i] = (float)i;
            twice += i && unit[i] == unit[i - 1];
        }
        assert_true(twice > 100);
        assert_ok(replay_priorities(c.replay, 0, x, 2048));
        for (uint64_t total = 1; total <= delay + 1; total++) {
            for (uint32_t i = 0; i < 2048; i++)
                assert_true(units_priority(&c.replay->units, unit[i] / 6, (uint32_t)(unit[i] % 6)) == 1);
            assert_ok(replay_sample(c.replay, total, 1, 1, &got));
            assert_ok(replay_priorities(c.replay, total, &(float){0}, 1));
        }
        for (uint32_t i = 0; i < 2048; i++)
            if (i == 2047 || unit[i] != unit[i + 1])
                assert_true(units_priority(&c.replay->units, unit[i] / 6, (uint32_t)(unit[i] % 6)) ==
                            tt_powf((float)i + 0.01f, 1));
        replay_stats_t stats;
        replay_stats(c.replay, &stats);
        assert_true(stats.max_priority == tt_powf(2047.01f, 1));
        world_play(c.world); /* new ones get the greatest */
        assert_ok(world_insert(c.world, c.replay));
        assert_true(units_priority(&c.replay->units, 18 * 8, 0) == stats.max_priority);
        s_close(&c);
    }
}

/*  Several steps that come due at once are seen in their order, wherever they lie. */
static void test_steps_in_their_order(void **state)
{
    (void)state;
    for (uint64_t first = 0; first < 5; first++) {
        case_t c;
        s_open(&c, 1, 1, 3);
        for (uint64_t total = first; total < first + 4; total++) {
            static float x[2048];
            replay_sample_t got;
            assert_ok(replay_sample(c.replay, total, 2048, 1, &got)); /* every unit, each time */
            for (uint32_t i = 0; i < 2048; i++)
                x[i] = (float)total;
            assert_ok(replay_priorities(c.replay, total, x, 2048));
        }
        replay_sample_t got;
        assert_ok(replay_sample(c.replay, first + 50, 1, 1, &got));
        assert_true(sumtree_sum(&c.replay->units.tree[0]) > 0);
        for (uint64_t clock = 0; clock < 18 * 8; clock++)
            assert_true(units_priority(&c.replay->units, clock, 0) == tt_powf((float)(first + 3) + 0.01f, 1));
        s_close(&c);
    }
}

static void test_refused(void **state)
{
    (void)state;
    case_t c;
    s_open(&c, 1, 0.5f, 1);
    replay_sample_t got;
    float x[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    assert_int_equal(replay_sample(c.replay, 0, 0, 1, &got), TT_INVALID);
    assert_int_equal(replay_sample(c.replay, 0, REPLAY_UNITS_MAX + 1, 1, &got), TT_INVALID);
    assert_int_equal(replay_sample(c.replay, (uint64_t)1 << 44, 8, 1, &got), TT_INVALID);
    assert_int_equal(replay_sample(c.replay, 0, 8, NAN, &got), TT_INVALID);
    assert_int_equal(replay_priorities(c.replay, 3, x, 8), TT_INTERNAL);
    assert_ok(replay_sample(c.replay, 3, 8, 1, &got));
    assert_int_equal(replay_sample(c.replay, 2, 8, 1, &got), TT_INVALID);
    assert_int_equal(replay_priorities(c.replay, 3, x, 7), TT_INTERNAL);
    const float bad[] = {NAN, INFINITY, -1};
    for (size_t i = 0; i < TT_COUNT(bad); i++) {
        x[5] = bad[i];
        assert_int_equal(replay_priorities(c.replay, 3, x, 8), x[5] < 0 ? TT_INTERNAL : TT_DIVERGED);
        assert_non_null(strstr(tt_err_text(), "position 5 of step 3"));
    }
    x[5] = 0;
    assert_ok(replay_sample(c.replay, 4, 8, 1, &got)); /* need not see step 3 yet */
    assert_int_equal(replay_sample(c.replay, 5, 8, 1, &got), TT_INTERNAL);
    assert_non_null(strstr(tt_err_text(), "the priorities of step 3"));
    assert_ok(replay_priorities(c.replay, 3, x, 8));
    assert_ok(replay_sample(c.replay, 5, 8, 1, &got));
    assert_int_equal(replay_priorities(c.replay, 3, x, 8), TT_INTERNAL); /* seen by now */
    s_close(&c);
}

/*  The bits of minibatches. */
static uint32_t s_hash(case_t *c)
{
    uint32_t hash = 2166136261u;
    for (uint64_t total = 0; total < 50; total++) {
        float x[32];
        replay_sample_t got;
        assert_ok(replay_sample(c->replay, total, 32, 0.4f, &got));
        for (uint32_t i = 0; i < 32; i++) {
            const uint32_t words[] = {(uint32_t)got.unit[i], tt_bits_of_f32(got.weight[i]), tt_bits_of_f32(got.ret[i])};
            for (size_t k = 0; k < TT_COUNT(words); k++)
                hash = (hash ^ words[k]) * 16777619u;
        }
        for (uint32_t i = 0; i < 32 * c->replay->past.cfg.length; i++) {
            hash = (hash ^ tt_bits_of_f32(got.ret[i])) * 16777619u;
            hash = (hash ^ got.next[i]) * 16777619u;
        }
        s_errors(x, 17, total, 32);
        assert_ok(replay_priorities(c->replay, total, x, 32));
    }
    return hash;
}

/*  What a seed means, whatever the compiler. */
static void test_bits_are_pinned(void **state)
{
    (void)state;
    case_t c;
    s_open(&c, 4, 0.6f, 1);
    assert_int_equal(s_hash(&c), 0x39b04650u);
    s_close(&c);
}

static void test_bits_of_sequences_are_pinned(void **state)
{
    (void)state;
    case_t c = {.world = world_new(6, 5, 11)};
    replay_cfg_t cfg = world_cfg(c.world, 600, 4, 3);
    cfg.burn = 3;
    cfg.length = 9;
    cfg.alpha = 0.6f;
    cfg.epsilon = 0.01f;
    cfg.priority_delay = 1;
    assert_ok(replay_new(&c.replay, &cfg));
    for (int batch = 0; batch < 300; batch++) { /* blocks of 64 batches: all four stripes */
        world_play(c.world);
        assert_ok(world_insert(c.world, c.replay));
    }
    assert_int_equal(s_hash(&c), 0x04d38857u);
    s_close(&c);
}

/*  Two envs and a short history fill no eight stripes. */
static void test_not_ready(void **state)
{
    (void)state;
    world_t *world = world_new(2, 8, 1);
    const replay_cfg_t cfg = world_cfg(world, 40, 8, 1); /* C = 32 */
    replay_t *replay = NULL;
    assert_ok(replay_new(&replay, &cfg));
    replay_sample_t got;
    for (uint32_t batch = 0; batch < 30; batch++) {
        const bool ready = batch * 8 > 32 * 6; /* stripes 0 1, then 1 2, 2 3, ... */
        assert_int_equal(replay_ready(replay), ready);
        assert_int_equal(replay_sample(replay, batch, 16, 1, &got), ready ? TT_OK : TT_AGAIN);
        world_play(world);
        assert_ok(world_insert(world, replay));
    }
    replay_destroy(&replay);
    world_destroy(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_worlds),
        cmocka_unit_test(test_random_sequences),
        cmocka_unit_test(test_uniform_frequencies),
        cmocka_unit_test(test_prioritised_frequencies),
        cmocka_unit_test(test_delay_and_the_last_wins),
        cmocka_unit_test(test_steps_in_their_order),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_bits_are_pinned),
        cmocka_unit_test(test_bits_of_sequences_are_pinned),
        cmocka_unit_test(test_not_ready),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
