/*  Assembly: a batch in one segment, and cut into overlapping ones, is the same batch. */
#include "tests/test.h"
#include "tests/learner/near.h"
#include <math.h>
#include "learner/batch.h"
#include "tests/learner/segments.h"

enum { N = 6, T = 4, D = 3, S = 5 };

typedef struct {
    const char *obs, *action;
    bool mask;
    bool whole, scale;
    bool bare; /* acting estimated nothing */
    uint32_t frames;
    tt_pad_t pad;
    uint32_t carry;
} plan_t;

typedef struct {
    tt_columns_t *columns;
    intake_t *intake;
    batch_t *batch;
    tt_norm_t *obs, *reward;
    tt_batch_t out;
} world_t;

static void s_add(world_t *world, uint64_t batch, uint32_t lo, uint32_t count)
{
    zmq_msg_t frame;
    const made_t made = {batch, batch, 1, lo, count};
    const tt_msg_SEGMENT_t msg = made_segment(&made, world->columns, T, S, &frame);
    assert_ok(intake_add(world->intake, &msg, &frame, NULL, NULL));
    zmq_msg_close(&frame);
}

static void s_make_norms(world_t *world)
{
    const float rows[4][D] = {{1, 2, 3}, {100, 50, 7}, {-30, 400, 0}, {9, 9, 9}};
    const float *row[4] = {rows[0], rows[1], rows[2], rows[3]};
    const double returns[3] = {1, -20, 30};
    assert_int_equal(world->columns->scaled, D);
    tt_norm_merge(world->obs, row, 4);
    tt_norm_merge_f64(world->reward, returns, 3);
}

static void s_assemble(world_t *world, const plan_t *plan)
{
    const uint64_t number = plan->frames > 1 || plan->carry; /* batch 1 goes on from 0 */
    world->columns = made_columns_stacked(plan->obs, plan->action, plan->mask, !plan->bare, plan->frames, plan->pad);
    tt_columns_put_carry(world->columns, plan->carry);
    const intake_cfg_t intake = {.N = N, .T = T, .columns = world->columns, .state_bytes = S, .lag = 0};
    const batch_cfg_t batch = {.N = N,
        .T = T,
        .columns = world->columns,
        .scale_obs = plan->scale,
        .scale_reward = plan->scale,
        .clip_obs = 10,
        .clip_reward = 10};
    world->intake = intake_new(&intake);
    world->batch = batch_new(&batch);
    world->obs = tt_norm_new(world->columns->scaled);
    world->reward = tt_norm_new(1);
    if (plan->scale)
        s_make_norms(world);
    intake_reset(world->intake, number);
    if (plan->whole) {
        s_add(world, number, 0, N);
    } else {
        s_add(world, number, 3, 2);
        s_add(world, number, 1, 3); /* env 3 is there already */
        s_add(world, number, 0, N); /* and most of these */
    }
    batch_assemble(world->batch, intake_batch(world->intake, number), world->obs, world->reward, &world->out);
}

/*  A vector and one choice: what is read where it lies. */
static void s_assemble_plain(world_t *world, bool whole, bool scale)
{
    s_assemble(world, &(plan_t){.obs = "float32[3]", .action = "discrete(2)", .whole = whole, .scale = scale});
}

static void s_free(world_t *world)
{
    intake_destroy(&world->intake);
    batch_destroy(&world->batch);
    tt_norm_destroy(&world->obs);
    tt_norm_destroy(&world->reward);
    tt_columns_destroy(&world->columns);
}

static const float *s_floats(const void *row)
{
    return row;
}

static void test_row_t_N_plus_env(void **state)
{
    (void)state;
    for (int whole = 0; whole <= 1; whole++) {
        world_t world;
        s_assemble_plain(&world, whole, false);
        const tt_batch_t *b = &world.out;
        assert_int_equal(b->finals, N);
        for (uint32_t t = 0; t < T; t++)
            for (uint32_t e = 0; e < N; e++) {
                const uint32_t r = t * N + e;
                for (uint32_t d = 0; d < D; d++)
                    assert_near(s_floats(b->obs[r])[d], made_obs(0, e, t, d), 0);
                assert_int_equal(((const int32_t *)b->action[0])[r], (e + t) % 2);
                assert_near(b->reward[r], e + 1, 0);
                assert_near(b->value[r], e * 100 + t, 0);
                assert_near(b->log_prob[r], -(float)(e * 100 + t), 0);
                assert_int_equal(b->truncated[r], made_truncated(e, t, T));
                assert_int_equal(b->terminated[r], 0);
            }
        for (uint32_t e = 0; e < N; e++) {
            assert_near(b->last_value[e], e + 0.5, 0);
            assert_near(s_floats(b->last[e])[1], made_obs(0, e, T, 1), 0);
        }
        for (uint32_t k = 0; k < b->finals; k++) {
            const uint32_t env = b->final_row[k] % N, t = b->final_row[k] / N;
            assert_true(k == 0 || b->final_row[k] > b->final_row[k - 1]);
            assert_int_equal(t, env % T);
            assert_near(b->final_value[k], 1000 + env, 0);
            assert_near(s_floats(b->final_obs[k])[2], -made_obs(0, env, t, 2), 0);
        }
        assert_int_equal(batch_oldest_version(world.batch), 0);
        s_free(&world);
    }
}

static void test_without_estimates(void **state)
{
    (void)state;
    for (int whole = 0; whole <= 1; whole++) {
        world_t world;
        s_assemble(&world,
            &(plan_t){.obs = "float32[3]", .action = "discrete(2)", .whole = whole, .scale = true, .bare = true});
        const tt_batch_t *b = &world.out;
        assert_null(b->log_prob);
        assert_null(b->value);
        assert_null(b->last_value);
        assert_null(b->final_value);
        assert_int_equal(b->finals, N);
        for (uint32_t r = 0; r < T * N; r++) {
            assert_int_equal(((const int32_t *)b->action[0])[r], (r % N + r / N) % 2);
            assert_int_equal(b->truncated[r], made_truncated(r % N, r / N, T));
        }
        s_free(&world);
    }
}

/*  The floats of frame t of batch 1 as they are read; t < 0: of batch 0. */
static void s_frame(const world_t *world, bool scale, uint32_t env, int t, bool final, float out[D])
{
    float raw[D];
    for (uint32_t d = 0; d < D; d++)
        raw[d] = (final ? -1.0f : 1.0f) * made_obs(t >= 0, env, (uint32_t)(t >= 0 ? t : T + t), d);
    if (scale)
        tt_norm_scale(world->obs, raw, 1, 10, out);
    else
        memcpy(out, raw, sizeof raw);
}

/*  Frames oldest first: `own` behind those of t - 1, t - 2 ..., `back` in all. */
static void s_expect_stack(const world_t *world, const plan_t *plan, const void *const *list, size_t at, uint32_t env,
    int t, bool final, uint32_t back)
{
    for (uint32_t k = 0; k < plan->frames; k++) {
        float want[D] = {0};
        const uint32_t j = k <= back ? k : back;
        if (k <= back || plan->pad == TT_PAD_RESET)
            s_frame(world, plan->scale, env, final && j ? t + 1 - (int)j : t - (int)j, final && j == 0, want);
        assert_memory_equal((const char *)list[plan->frames - 1 - k] + at, want, sizeof want);
    }
}

static uint32_t s_least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/*  Env e is cut at step e % T, and has T - 1 - e % T steps behind it when batch 1 begins. */
static void s_check_stacks(const plan_t *plan)
{
    world_t world;
    s_assemble(&world, plan);
    const tt_batch_t *b = &world.out;
    const uint32_t S1 = plan->frames - 1;
    const size_t at = world.columns->at[world.columns->obs_count - 1].at;
    for (uint32_t e = 0; e < N; e++) {
        const uint32_t cut = e % T, age = T - 1 - cut;
        for (uint32_t t = 0; t <= T; t++)
            s_expect_stack(&world, plan, (t < T ? b->obs + (t * N + e) * plan->frames : b->last + e * plan->frames), at,
                e, (int)t, false, s_least(S1, t > cut ? t - cut - 1 : t + age));
    }
    assert_int_equal(b->finals, N);
    for (uint32_t k = 0; k < b->finals; k++) {
        const uint32_t e = b->final_row[k] % N, t = b->final_row[k] / N;
        s_expect_stack(
            &world, plan, b->final_obs + k * plan->frames, at, e, (int)t, true, s_least(S1, 1 + t + T - 1 - e % T));
    }
    assert_memory_equal(b->obs + (size_t)T * N * plan->frames, b->last, N * sizeof *b->last);
    s_free(&world);
}

static void test_stacks(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 48; i++)
        s_check_stacks(&(plan_t){.obs = i & 1 ? "float32[3]" : "{a: uint8[2], b: float32[3]}",
            .action = "discrete(2)",
            .whole = i >> 1 & 1,
            .scale = i >> 2 & 1,
            .pad = i >> 3 & 1 ? TT_PAD_ZERO : TT_PAD_RESET,
            .frames = (const uint32_t[]){2, 4, 9}[i / 16]});
}

static void test_scaled_copies_do_not_depend_on_the_cut(void **state)
{
    (void)state;
    world_t whole, cut;
    s_assemble_plain(&whole, true, true);
    s_assemble_plain(&cut, false, true);
    for (uint32_t r = 0; r < T * N; r++) {
        assert_memory_equal(whole.out.obs[r], cut.out.obs[r], D * sizeof(float));
        const double want =
            (batch_raw_obs(whole.batch)[r][0] - tt_norm_mean(whole.obs, 0)) / sqrt(tt_norm_var(whole.obs, 0) + 1e-8);
        assert_near(s_floats(whole.out.obs[r])[0], fmax(-10, fmin(10, want)), 1e-4);
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
        s_assemble_plain(&world, whole, false);
        intake_reset(world.intake, 2);
        if (!whole)
            s_add(&world, 2, 2, 3);
        s_add(&world, 2, 0, N);
        batch_assemble(world.batch, intake_batch(world.intake, 2), world.obs, world.reward, &world.out);
        for (uint32_t e = 0; e < N; e++)
            assert_int_equal(batch_age(world.batch)[e], T - 1 - e % T);
        s_free(&world);
    }
}

/*  What is carried is read where it lies, from the segment that owns the env. Env e is cut at step e % T, and has T - 1 - e % T steps
 *  behind it when batch 1 begins. */
static void test_what_is_carried(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        const plan_t plan = {
            .obs = "float32[3]", .action = "discrete(2)", .whole = i & 1, .frames = 1 + (i & 2), .carry = 5};
        world_t world;
        s_assemble(&world, &plan);
        const tt_batch_t *b = &world.out;
        assert_int_equal(intake_batch(world.intake, 1)->segments, plan.whole ? 1 : 3);
        for (uint32_t e = 0; e < N; e++) {
            const intake_segment_t *from = intake_owner(world.intake, 1, e);
            assert_ptr_equal(b->carry[e], from->at.carry + (size_t)(e - from->env_lo) * plan.carry);
            for (uint32_t k = 0; k < plan.carry; k++)
                assert_true(s_floats(b->carry[e])[k] == made_carry(1, e, T - 1 - e % T, k));
            for (uint32_t t = 0; t < T; t++)
                assert_int_equal(b->begins[t * N + e], t ? t - 1 == e % T : e % T == T - 1);
        }
        s_free(&world);
    }
}

/*  An episode that ends by itself is an end like one that is cut. */
static void test_termination_begins_an_episode(void **state)
{
    (void)state;
    world_t world;
    s_assemble(&world, &(plan_t){.obs = "float32[3]", .action = "discrete(2)", .whole = true, .carry = 1});
    intake_owner(world.intake, 1, 0)->at.terminated[2 * N + 4] = 1;
    batch_assemble(world.batch, intake_batch(world.intake, 1), world.obs, world.reward, &world.out);
    assert_int_equal(world.out.begins[3 * N + 4], 1);
    assert_int_equal(world.out.begins[3 * N + 5], 0);
    s_free(&world);
}

static void test_where_nothing_is_carried(void **state)
{
    (void)state;
    world_t world;
    s_assemble_plain(&world, true, false);
    assert_null(world.out.carry);
    assert_null(world.out.begins);
    s_free(&world);
}

/*  One vector is not copied: the network reads the segment itself. */
static void test_a_plain_vector_stays_in_place(void **state)
{
    (void)state;
    for (int whole = 0; whole <= 1; whole++) {
        world_t world;
        s_assemble_plain(&world, whole, false);
        for (uint32_t e = 0; e < N; e++) {
            const intake_segment_t *from = intake_owner(world.intake, 0, e);
            const float *at = (const float *)from->at.column[0] + (size_t)(1 * from->env_count + e - from->env_lo) * D;
            assert_ptr_equal(world.out.obs[N + e], at);
        }
        s_free(&world);
    }
}

/*  Nor are frames: four times less to hold, and nothing to copy. */
static void test_a_frame_stays_in_place(void **state)
{
    (void)state;
    const plan_t plan = {.obs = "uint8[2, 3]", .action = "discrete(3)"};
    world_t world;
    s_assemble(&world, &plan);
    assert_int_equal(world.columns->row, 6);
    for (uint32_t e = 0; e < N; e++) {
        const intake_segment_t *from = intake_owner(world.intake, 0, e);
        const uint8_t *at = (const uint8_t *)from->at.column[0] + (size_t)(1 * from->env_count + e - from->env_lo) * 6;
        assert_ptr_equal(world.out.obs[N + e], at);
        assert_ptr_equal(world.out.last[e], (const uint8_t *)from->at.last[0] + (size_t)(e - from->env_lo) * 6);
    }
    s_free(&world);
}

/* ---- any spaces ------------------------------------------------------------------------------------------------------- */

static const plan_t s_mixed = {
    .obs = "{image: uint8[2, 2], mode: discrete(3), speed: float32[2], where: (float32, int64)}",
    .action = "(multi_discrete(3, 2), float32[2], multi_binary[2])",
    .mask = true};

enum { FLAT = 4 + 3 + 2 + 1 + 1 };

/*  The row of the network: the bytes of the image, then floats. */
typedef struct {
    uint8_t image[4];
    float mode[3], speed[2], where[2];
} mixed_t;

/*  What the network reads of (env, t), element by element; `sign` of the floats. */
static void s_check_row(const void *read, uint32_t env, uint32_t t, float sign)
{
    const mixed_t *row = read;
    const float base = made_obs(0, env, t, 0);
    for (uint32_t d = 0; d < 4; d++)
        assert_int_equal(row->image[d], (uint32_t)(base + (float)d) & 255);
    for (uint32_t a = 0; a < 3; a++)
        assert_near(row->mode[a], (env + t) % 3 == a, 0);
    assert_near(row->speed[0], sign * base, 0);
    assert_near(row->speed[1], sign * (base + 1), 0);
    assert_near(row->where[0], sign * base, 0);
    assert_near(row->where[1], base, 0);
}

static void s_check_actions(const tt_batch_t *b)
{
    for (uint32_t t = 0; t < T; t++)
        for (uint32_t e = 0; e < N; e++) {
            const uint32_t r = t * N + e, d = (e + t) % 3;
            assert_int_equal(((const int32_t *)b->action[0])[2 * r], (e + t) % 3);
            assert_int_equal(((const int32_t *)b->action[0])[2 * r + 1], (e + t + 1) % 2);
            assert_near(((const float *)b->action[1])[2 * r + 1], made_obs(0, e, t, 1), 0);
            assert_int_equal(((const uint8_t *)b->action[2])[2 * r], (e + t) % 2);
            for (uint32_t a = 0; a < 3; a++)
                assert_int_equal(b->mask[r * (3 + 2 + 2 + 2) + a], a != (d + 1) % 3);
        }
}

static void test_any_spaces_make_rows(void **state)
{
    (void)state;
    for (int whole = 0; whole <= 1; whole++) {
        plan_t plan = s_mixed;
        plan.whole = whole;
        world_t world;
        s_assemble(&world, &plan);
        const tt_batch_t *b = &world.out;
        assert_int_equal(b->D, FLAT);
        assert_int_equal(world.columns->row, sizeof(mixed_t));
        assert_ptr_equal(b->columns, world.columns);
        for (uint32_t r = 0; r < T * N; r++)
            s_check_row(b->obs[r], r % N, r / N, 1);
        for (uint32_t e = 0; e < N; e++)
            s_check_row(b->last[e], e, T, 1);
        assert_int_equal(b->finals, N);
        for (uint32_t k = 0; k < b->finals; k++)
            s_check_row(b->final_obs[k], b->final_row[k] % N, b->final_row[k] / N, -1);
        s_check_actions(b);
        s_free(&world);
    }
}

/*  Floats are scaled and what the normaliser learns from stays raw; bytes and choices are left alone. */
static void test_only_floats_are_scaled(void **state)
{
    (void)state;
    world_t worlds[2];
    for (int whole = 0; whole <= 1; whole++) {
        plan_t plan = s_mixed;
        plan.whole = whole, plan.scale = true;
        s_assemble(&worlds[whole], &plan);
    }
    const tt_batch_t *cut = &worlds[0].out, *b = &worlds[1].out;
    const float *const *raw = batch_raw_obs(worlds[1].batch);
    for (uint32_t r = 0; r < T * N; r++) {
        const float base = made_obs(0, r % N, r / N, 0), collected[D] = {base, base + 1, base};
        float scaled[D];
        tt_norm_scale(worlds[1].obs, collected, 1, 10, scaled);
        assert_memory_equal(raw[r], collected, sizeof collected);
        const mixed_t *row = b->obs[r];
        assert_memory_equal(row->speed, scaled, sizeof scaled);
        assert_near(row->where[1], base, 0);
        assert_near(row->mode[0] + row->mode[1] + row->mode[2], 1, 0);
        assert_memory_equal(row, cut->obs[r], sizeof *row);
        assert_memory_equal(batch_raw_obs(worlds[0].batch)[r], raw[r], D * sizeof(float));
    }
    for (uint32_t e = 0; e < N; e++)
        assert_memory_equal(b->last[e], cut->last[e], sizeof(mixed_t));
    for (uint32_t k = 0; k < N; k++)
        assert_memory_equal(b->final_obs[k], cut->final_obs[k], sizeof(mixed_t));
    s_free(&worlds[0]);
    s_free(&worlds[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_row_t_N_plus_env),
        cmocka_unit_test(test_without_estimates),
        cmocka_unit_test(test_stacks),
        cmocka_unit_test(test_scaled_copies_do_not_depend_on_the_cut),
        cmocka_unit_test(test_a_plain_vector_stays_in_place),
        cmocka_unit_test(test_a_frame_stays_in_place),
        cmocka_unit_test(test_any_spaces_make_rows),
        cmocka_unit_test(test_only_floats_are_scaled),
        cmocka_unit_test(test_ages_do_not_depend_on_the_cut),
        cmocka_unit_test(test_what_is_carried),
        cmocka_unit_test(test_termination_begins_an_episode),
        cmocka_unit_test(test_where_nothing_is_carried),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
