/*  Assembly: a batch in one segment, and cut into overlapping ones, is the same batch. */
#include "tests/test.h"
#include "tests/learner/near.h"
#include <math.h>
#include "learner/batch.h"
#include "tests/learner/segments.h"

enum { N = 6, T = 4, D = 3, S = 5 };

static void s_add_of(intake_t *intake, uint64_t batch, uint32_t lo, uint32_t count)
{
    zmq_msg_t frame;
    const made_t made = {batch, batch, 1, lo, count};
    const tt_msg_SEGMENT_t msg = made_segment(&made, T, D, S, &frame);
    assert_ok(intake_add(intake, &msg, &frame, NULL, NULL));
    zmq_msg_close(&frame);
}

static void s_add(intake_t *intake, uint32_t lo, uint32_t count)
{
    s_add_of(intake, 0, lo, count);
}

typedef struct {
    intake_t *intake;
    batch_t *batch;
    tt_norm_t *obs, *reward;
    tt_batch_t out;
} world_t;

static void s_assemble(world_t *world, bool whole, bool scale)
{
    const intake_cfg_t intake = {.N = N, .T = T, .D = D, .actions = 2, .state_bytes = S, .lag = 0};
    const batch_cfg_t batch = {
        .N = N, .T = T, .D = D, .scale_obs = scale, .scale_reward = scale, .clip_obs = 10, .clip_reward = 10};
    world->intake = intake_new(&intake);
    world->batch = batch_new(&batch);
    world->obs = tt_norm_new(D);
    world->reward = tt_norm_new(1);
    if (scale) {
        const float rows[4][D] = {{1, 2, 3}, {100, 50, 7}, {-30, 400, 0}, {9, 9, 9}};
        const float *row[4] = {rows[0], rows[1], rows[2], rows[3]};
        const double returns[3] = {1, -20, 30};
        tt_norm_merge(world->obs, row, 4);
        tt_norm_merge_f64(world->reward, returns, 3);
    }
    if (whole) {
        s_add(world->intake, 0, N);
    } else {
        s_add(world->intake, 3, 2);
        s_add(world->intake, 1, 3); /* env 3 is there already */
        s_add(world->intake, 0, N); /* and most of these */
    }
    batch_assemble(world->batch, intake_batch(world->intake, 0), world->obs, world->reward, &world->out);
}

static void s_free(world_t *world)
{
    intake_destroy(&world->intake);
    batch_destroy(&world->batch);
    tt_norm_destroy(&world->obs);
    tt_norm_destroy(&world->reward);
}

static void test_row_t_N_plus_env(void **state)
{
    (void)state;
    for (int whole = 0; whole <= 1; whole++) {
        world_t world;
        s_assemble(&world, whole, false);
        const tt_batch_t *b = &world.out;
        assert_int_equal(b->finals, N);
        for (uint32_t t = 0; t < T; t++)
            for (uint32_t e = 0; e < N; e++) {
                const uint32_t r = t * N + e;
                for (uint32_t d = 0; d < D; d++)
                    assert_near(b->obs[r][d], made_obs(0, e, t, d), 0);
                assert_int_equal(b->action[r], (e + t) % 2);
                assert_near(b->reward[r], e + 1, 0);
                assert_near(b->value[r], e * 100 + t, 0);
                assert_near(b->log_prob[r], -(float)(e * 100 + t), 0);
                assert_int_equal(b->truncated[r], made_truncated(e, t, T));
                assert_int_equal(b->terminated[r], 0);
            }
        for (uint32_t e = 0; e < N; e++) {
            assert_near(b->last_value[e], e + 0.5, 0);
            assert_near(b->last[e][1], made_obs(0, e, T, 1), 0);
        }
        for (uint32_t k = 0; k < b->finals; k++) {
            const uint32_t env = b->final_row[k] % N, t = b->final_row[k] / N;
            assert_true(k == 0 || b->final_row[k] > b->final_row[k - 1]);
            assert_int_equal(t, env % T);
            assert_near(b->final_value[k], 1000 + env, 0);
            assert_near(b->final_obs[k][2], -made_obs(0, env, t, 2), 0);
        }
        assert_int_equal(batch_oldest_version(world.batch), 0);
        s_free(&world);
    }
}

static void test_scaled_copies_do_not_depend_on_the_cut(void **state)
{
    (void)state;
    world_t whole, cut;
    s_assemble(&whole, true, true);
    s_assemble(&cut, false, true);
    for (uint32_t r = 0; r < T * N; r++) {
        assert_memory_equal(whole.out.obs[r], cut.out.obs[r], D * sizeof(float));
        const double want =
            (batch_raw_obs(whole.batch)[r][0] - tt_norm_mean(whole.obs, 0)) / sqrt(tt_norm_var(whole.obs, 0) + 1e-8);
        assert_near(whole.out.obs[r][0], fmax(-10, fmin(10, want)), 1e-4);
        assert_near(batch_raw_obs(cut.batch)[r][0], made_obs(0, r % N, r / N, 0), 0); /* raw stays raw */
        assert_near(batch_raw_reward(cut.batch)[r], r % N + 1, 0);
    }
    assert_memory_equal(whole.out.reward, cut.out.reward, T * N * sizeof(float));
    assert_near(whole.out.reward[1], 2 / sqrt(tt_norm_var(whole.reward, 0) + 1e-8), 1e-5);
    for (uint32_t k = 0; k < N; k++)
        assert_memory_equal(whole.out.final_obs[k], cut.out.final_obs[k], D * sizeof(float));
    for (uint32_t e = 0; e < N; e++)
        assert_memory_equal(whole.out.last[e], cut.out.last[e], D * sizeof(float));
    s_free(&whole);
    s_free(&cut);
}

static void test_ages_do_not_depend_on_the_cut(void **state)
{
    (void)state;
    for (int whole = 0; whole <= 1; whole++) {
        world_t world;
        s_assemble(&world, whole, false);
        intake_reset(world.intake, 2);
        if (!whole)
            s_add_of(world.intake, 2, 2, 3);
        s_add_of(world.intake, 2, 0, N);
        batch_assemble(world.batch, intake_batch(world.intake, 2), world.obs, world.reward, &world.out);
        for (uint32_t e = 0; e < N; e++)
            assert_int_equal(batch_age(world.batch)[e], T - 1 - e % T);
        s_free(&world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_row_t_N_plus_env),
        cmocka_unit_test(test_scaled_copies_do_not_depend_on_the_cut),
        cmocka_unit_test(test_ages_do_not_depend_on_the_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
