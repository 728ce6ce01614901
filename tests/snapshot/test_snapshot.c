/*  Snapshots: a round trip gives everything back; damaged and foreign files are told apart and leave nothing. */
#include "tests/test.h"
#include "tests/learner/near.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "common/nn/inference.h"
#include "common/snapshot/seal.h"
#include "common/snapshot/snapshot.h"

enum { ENVS = 3, STATE = 7, NORM = 9, REWARD = 3, EPISODES = 20, VERSIONS = 2 };

typedef struct {
    tt_inference_t *net;
    float *now, *params[VERSIONS], *opt;
    double norm[VERSIONS][NORM], reward[VERSIONS][REWARD], episodes[EPISODES], returns[ENVS];
    uint8_t states[ENVS * STATE];
} world_t;

/*  An actor and a critic; beside them a convolution of 2 x 2 numbers and a head of 2 on what it gives, 2 x 1 x 3. */
static tt_net_spec_t s_spec(uint32_t hidden)
{
    tt_net_spec_t spec = tt_net_actor_critic(4, (const uint32_t[]){hidden}, 1, TT_NN_TANH, 2, 2);
    spec.layers = 1;
    spec.layer[0] = (tt_layer_t){.kind = TT_LAYER_CONV2D, .units = 3, .kernel = {1, 2}, .stride = {1, 1}};
    spec.tower[2] =
        (tt_tower_t){.name = "encoder", .kind = TT_TOWER_ENCODER, .layers = 1, .height = 2, .width = 2, .channels = 1};
    spec.tower[3] = (tt_tower_t){.name = "reader", .from = 3, .out = 2};
    spec.towers = 4;
    return spec;
}

static void s_open(world_t *world, uint32_t hidden)
{
    const tt_net_spec_t spec = s_spec(hidden);
    memset(world, 0, sizeof *world);
    assert_ok(tt_inference_new(&world->net, "cpu", 0, &spec));
    const size_t count = tt_net_param_count(&spec);
    world->now = tt_array0(count, sizeof(float));
    world->opt = tt_array0(2 * count, sizeof(float));
    for (size_t v = 0; v < VERSIONS; v++) {
        world->params[v] = tt_array0(count, sizeof(float));
        for (size_t i = 0; i < count; i++)
            world->params[v][i] = (float)(v * 1000 + i);
        for (size_t i = 0; i < NORM; i++)
            world->norm[v][i] = (double)(v * 10 + i) + 0.25;
        for (size_t i = 0; i < REWARD; i++)
            world->reward[v][i] = (double)(v * 10 + i) + 0.5;
    }
    for (size_t i = 0; i < count; i++)
        world->now[i] = (float)i * 0.5f - 3;
    for (size_t i = 0; i < 2 * count; i++)
        world->opt[i] = (float)i * 0.125f;
    for (size_t i = 0; i < sizeof world->states; i++)
        world->states[i] = (uint8_t)(200 - i);
    for (size_t i = 0; i < EPISODES; i++)
        world->episodes[i] = (double)i / 3;
    for (size_t i = 0; i < ENVS; i++)
        world->returns[i] = -(double)i / 7;
}

static void s_close(world_t *world)
{
    for (size_t v = 0; v < VERSIONS; v++)
        free(world->params[v]);
    free(world->now);
    free(world->opt);
    tt_inference_destroy(&world->net);
}

static tt_snapshot_t s_expect(world_t *world)
{
    tt_snapshot_t out = {
        .norm_count = NORM, .reward_count = REWARD, .envs = ENVS, .env_bytes = STATE, .episodes_count = EPISODES};
    out.tensor = tt_net_tensors(tt_inference_net(world->net), &out.tensors);
    out.param_count = tt_net_param_count(tt_net_spec(tt_inference_net(world->net)));
    out.opts = 1;
    out.opt[0] = (tt_snapshot_opt_t){.name = "", .count = 2 * out.param_count};
    return out;
}

static tt_snapshot_t s_full(world_t *world)
{
    tt_snapshot_t out = s_expect(world);
    out.config = "name: x\nseed: 3\n";
    out.env = "CartPole-v1";
    out.algorithm = "ppo";
    out.return_mean = 123.5;
    out.update = 41;
    out.steps = 660;
    out.opt[0].step = 659;
    out.made = 658;
    out.lag_max = 1;
    out.trained = 3936;
    out.step = 4;
    out.solved = 72704;
    out.best = 99.25;
    out.params = world->now;
    out.opt[0].state = world->opt;
    out.versions = VERSIONS;
    for (size_t v = 0; v < VERSIONS; v++)
        out.version[v] = (tt_snapshot_version_t){40 + v, world->params[v], world->norm[v], world->reward[v]};
    out.env_states = world->states;
    out.episodes = world->episodes;
    out.returns = world->returns;
    return out;
}

/*  Each test has a world of its own, a full snapshot of it, and room for its bytes. */
typedef struct {
    world_t world;
    tt_snapshot_t full;
    tt_buf_t bytes;
} fixture_t;

static int s_setup(void **state)
{
    fixture_t *f = tt_new0(sizeof *f);
    s_open(&f->world, 8);
    f->full = s_full(&f->world);
    tt_buf_init(&f->bytes, 1 << 24);
    *state = f;
    return 0;
}

static int s_teardown(void **state)
{
    fixture_t *f = *state;
    tt_buf_free(&f->bytes);
    s_close(&f->world);
    free(f);
    return 0;
}

static void s_encode(fixture_t *f)
{
    tt_buf_clear(&f->bytes);
    assert_ok(tt_snapshot_encode(&f->full, &f->bytes));
}

/*  The bytes in hand are refused by who expects `back`. */
static void s_refused(const fixture_t *f, tt_snapshot_t back, size_t size)
{
    assert_int_equal(tt_snapshot_decode(&back, f->bytes.data, size), TT_DATA);
}

static void test_a_round_trip_gives_everything_back(void **state)
{
    fixture_t *f = *state;
    s_encode(f);
    tt_snapshot_t back = s_expect(&f->world);
    assert_ok(tt_snapshot_decode(&back, f->bytes.data, f->bytes.size));
    assert_int_equal(back.update, 41);
    assert_int_equal(back.step, 4);
    assert_int_equal(back.steps, 660);
    assert_int_equal(back.opt[0].step, 659);
    assert_int_equal(back.made, 658);
    assert_int_equal(back.lag_max, 1);
    assert_int_equal(back.trained, 3936);
    assert_int_equal(back.solved, 72704);
    assert_near(back.best, 99.25, 0);
    assert_string_equal(back.config, f->full.config);
    assert_string_equal(back.env, "CartPole-v1");
    assert_string_equal(back.algorithm, "ppo");
    assert_memory_equal(back.params, f->world.now, f->full.param_count * sizeof(float));
    assert_memory_equal(back.opt[0].state, f->world.opt, f->full.opt[0].count * sizeof(float));
    assert_int_equal(back.versions, VERSIONS);
    for (size_t v = 0; v < VERSIONS; v++) {
        assert_int_equal(back.version[v].version, 40 + v);
        assert_memory_equal(back.version[v].params, f->world.params[v], f->full.param_count * sizeof(float));
        assert_memory_equal(back.version[v].norm, f->world.norm[v], sizeof f->world.norm[v]);
        assert_memory_equal(back.version[v].reward, f->world.reward[v], sizeof f->world.reward[v]);
    }
    assert_memory_equal(back.env_states, f->world.states, sizeof f->world.states);
    assert_null(back.sum); /* files have none */
    assert_memory_equal(back.episodes, f->world.episodes, sizeof f->world.episodes);
    assert_memory_equal(back.returns, f->world.returns, sizeof f->world.returns);
    tt_snapshot_close(&back);
}

/*  A joiner gets the kept sum of an optimiser step, too. */
static void test_a_kept_sum_travels_with_the_state(void **state)
{
    fixture_t *f = *state;
    f->full.sum = f->world.now;
    f->full.sum_count = f->full.param_count;
    f->full.sum_step = 659;
    s_encode(f);
    tt_snapshot_t back = s_expect(&f->world);
    back.sum_count = f->full.sum_count;
    assert_ok(tt_snapshot_decode(&back, f->bytes.data, f->bytes.size));
    assert_int_equal(back.sum_step, 659);
    assert_memory_equal(back.sum, f->world.now, f->full.sum_count * sizeof(float));
    tt_snapshot_close(&back);
    back = s_expect(&f->world);
    back.sum_count = f->full.sum_count - 1;
    s_refused(f, back, f->bytes.size);
}

/*  Versions that are still to be evaluated, which need not be among those that batches are collected with. */
static void test_what_is_to_be_evaluated_travels_too(void **state)
{
    fixture_t *f = *state;
    const world_t *w = &f->world;
    f->full.waitings = 2;
    f->full.waiting[0] = (tt_snapshot_version_t){.version = 20, .params = w->params[0], .norm = w->norm[0]};
    f->full.waiting[1] = (tt_snapshot_version_t){.version = 30, .params = w->params[1], .norm = w->norm[1]};
    s_encode(f);
    tt_snapshot_t back = s_expect(&f->world);
    assert_ok(tt_snapshot_decode(&back, f->bytes.data, f->bytes.size));
    assert_int_equal(back.waitings, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(back.waiting[i].version, 20 + 10 * i);
        assert_memory_equal(back.waiting[i].params, w->params[i], f->full.param_count * sizeof(float));
        assert_memory_equal(back.waiting[i].norm, w->norm[i], sizeof w->norm[i]);
    }
    tt_snapshot_close(&back);
    static const uint64_t bad[][2] = {{30, 20}, {20, 42}, {UINT64_MAX, 5}};
    for (size_t i = 0; i < TT_COUNT(bad); i++) {
        f->full.waiting[0].version = bad[i][0];
        f->full.waiting[1].version = bad[i][1];
        s_encode(f);
        s_refused(f, s_expect(&f->world), f->bytes.size);
    }
}

/*  A policy to act with, and nothing to go on from. */
static void test_a_bare_one_has_the_weights_alone(void **state)
{
    fixture_t *f = *state;
    char dir[] = "/tmp/tt-snapshot-XXXXXX";
    assert_non_null(mkdtemp(dir));
    char *path = tt_sprintf("%s/best.safetensors", dir);
    f->full.bare = true;
    f->full.version[1].reward = NULL;
    f->full.version[0] = f->full.version[1];
    f->full.versions = 1;
    assert_ok(tt_snapshot_write(&f->full, path, TT_NO_PROGRESS));
    tt_snapshot_info_t info;
    assert_ok(tt_snapshot_inspect(path, &info));
    assert_true(info.bare && info.update == 41 && info.return_mean == 123.5);
    tt_snapshot_info_free(&info);
    tt_st_t *file;
    float *params = tt_array0(f->full.param_count, sizeof *params);
    assert_ok(tt_snapshot_open_file(&file, path));
    assert_ok(tt_snapshot_weights(file, f->full.tensor, f->full.tensors, true, params));
    assert_memory_equal(params, f->full.params, f->full.param_count * sizeof *params);
    assert_non_null(tt_snapshot_norm(file, 41));
    tt_st_destroy(&file);
    free(params);
    tt_snapshot_t back = s_expect(&f->world);
    assert_int_equal(tt_snapshot_read(&back, path), TT_DATA);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
    free(path);
}

/*  Files hold [out][in], as PyTorch does. */
static void test_weights_are_shaped_as_pytorch_shapes_them(void **state)
{
    fixture_t *f = *state;
    s_encode(f);
    tt_st_t *file = NULL;
    assert_ok(tt_st_decode(&file, f->bytes.data, f->bytes.size));
    const tt_st_array_t *weight = tt_st_find(file, "actor.0.weight"), *bias = tt_st_find(file, "actor.0.bias");
    assert_non_null(weight);
    assert_non_null(bias);
    assert_int_equal(weight->rank, 2);
    assert_int_equal(weight->shape[0], 8);
    assert_int_equal(weight->shape[1], 4);
    assert_int_equal(bias->rank, 1);
    assert_int_equal(bias->shape[0], 8);
    const tt_tensor_t *tensor = f->full.tensor;
    assert_string_equal(tensor->name, "actor.0.weight");
    const float *data = weight->data;
    for (size_t o = 0; o < 8; o++)
        for (size_t i = 0; i < 4; i++)
            assert_near(data[o * 4 + i], f->world.now[tensor->offset + i * 8 + o], 0);
    const char *sha = tt_st_meta(file, "weights_sha256");
    char want[65];
    tt_weights_sha256(f->world.now, f->full.param_count, want);
    assert_string_equal(sha, want);
    tt_st_destroy(&file);
}

static const float *s_now(const fixture_t *f, const char *name)
{
    size_t t = 0;
    while (strcmp(f->full.tensor[t].name, name) != 0)
        t++;
    return f->world.now + f->full.tensor[t].offset;
}

/*  [out][in][kh][kw], and inputs in the order [channels][height][width]. */
static void test_pictures_are_shaped_as_pytorch_shapes_them(void **state)
{
    const fixture_t *f = *state;
    tt_st_t *file = NULL;
    s_encode(*state);
    assert_ok(tt_st_decode(&file, f->bytes.data, f->bytes.size));
    const tt_st_array_t *kernel = tt_st_find(file, "encoder.0.weight"), *weight = tt_st_find(file, "reader.0.weight");
    const uint64_t want[] = {3, 1, 1, 2};
    assert_int_equal(kernel->rank, 4);
    assert_memory_equal(kernel->shape, want, sizeof want);
    assert_true(weight->rank == 2 && weight->shape[0] == 2 && weight->shape[1] == 6);
    for (size_t o = 0; o < 3; o++)
        for (size_t kw = 0; kw < 2; kw++)
            assert_near(((const float *)kernel->data)[o * 2 + kw], s_now(f, "encoder.0.weight")[kw * 3 + o], 0);
    for (size_t o = 0; o < 2; o++)
        for (size_t c = 0; c < 3; c++)
            for (size_t y = 0; y < 2; y++)
                assert_near(((const float *)weight->data)[o * 6 + c * 2 + y],
                    s_now(f, "reader.0.weight")[(y * 3 + c) * 2 + o], 0);
    tt_st_destroy(&file);
}

/*  A kernel that was turned has as many bytes. */
static void test_another_shape_is_refused(void **state)
{
    fixture_t *f = *state;
    s_encode(f);
    tt_st_t *file = NULL;
    assert_ok(tt_st_decode(&file, f->bytes.data, f->bytes.size));
    tt_tensor_t turned[16];
    assert_true(f->full.tensors <= TT_COUNT(turned));
    memcpy(turned, f->full.tensor, f->full.tensors * sizeof *turned);
    for (size_t t = 0; t < f->full.tensors; t++)
        if (strcmp(turned[t].name, "encoder.0.weight") == 0) {
            turned[t].kernel[0] = 2;
            turned[t].kernel[1] = 1;
        }
    float *params = tt_array0(f->full.param_count, sizeof *params);
    assert_int_equal(tt_snapshot_weights(file, turned, f->full.tensors, true, params), TT_DATA);
    assert_non_null(strstr(tt_err_text(), "encoder.0.weight: the shape is [3][1][1][2] and not [3][1][2][1]"));
    free(params);
    tt_st_destroy(&file);
}

/*  Who acts needs no critic, nor what it alone reads. */
static void test_a_critic_may_be_lacking(void **state)
{
    static const struct {
        const char *name;
        bool needed;
    } lacking[] = {{"critic.8.bias", false}, {"critic_encoder.0.bias", false}, {"critic_gru.bias_hh_l0", false},
        {"actor_gru.bias_hh_l0", true}, {"gru.bias_hh_l0", true}, {"critics.0.bias", true}};
    fixture_t *f = *state;
    s_encode(f);
    tt_st_t *file = NULL;
    assert_ok(tt_st_decode(&file, f->bytes.data, f->bytes.size));
    tt_tensor_t tensor[16];
    const size_t count = f->full.tensors;
    assert_true(count < TT_COUNT(tensor));
    memcpy(tensor, f->full.tensor, count * sizeof *tensor);
    tensor[count] = tensor[count - 1];
    float *params = tt_array0(f->full.param_count, sizeof *params);
    for (size_t i = 0; i < TT_COUNT(lacking); i++) {
        snprintf(tensor[count].name, sizeof tensor->name, "%s", lacking[i].name);
        assert_int_equal(
            tt_snapshot_weights(file, tensor, count + 1, false, params), lacking[i].needed ? TT_DATA : TT_OK);
        assert_int_equal(tt_snapshot_weights(file, tensor, count + 1, true, params), TT_DATA);
        assert_non_null(strstr(tt_err_text(), lacking[i].name));
    }
    free(params);
    tt_st_destroy(&file);
}

static void test_another_network_is_refused(void **state)
{
    fixture_t *f = *state;
    world_t other;
    s_open(&other, 9);
    s_encode(f);
    s_refused(f, s_expect(&other), f->bytes.size);
    assert_non_null(strstr(tt_err_text(), "another network"));
    tt_snapshot_t back = s_expect(&f->world);
    back.envs = ENVS + 1;
    s_refused(f, back, f->bytes.size);
    s_close(&other);
}

static void test_a_weight_that_is_not_finite_is_refused(void **state)
{
    fixture_t *f = *state;
    f->world.now[5] = NAN;
    s_encode(f);
    s_refused(f, s_expect(&f->world), f->bytes.size);
}

static void test_cut_anywhere_it_is_refused(void **state)
{
    fixture_t *f = *state;
    s_encode(f);
    for (size_t size = 0; size < f->bytes.size; size += size < 4000 ? 7 : 501)
        s_refused(f, s_expect(&f->world), size);
}

static void test_a_file_and_a_missing_one(void **state)
{
    fixture_t *f = *state;
    char directory[] = "/tmp/tt_snapshot_XXXXXX", path[64];
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/a.safetensors", directory);
    assert_ok(tt_snapshot_write(&f->full, path, TT_NO_PROGRESS));
    tt_snapshot_t back = s_expect(&f->world);
    assert_ok(tt_snapshot_read(&back, path));
    assert_int_equal(back.update, 41);
    tt_snapshot_close(&back);
    assert_int_equal(unlink(path), 0);
    back = s_expect(&f->world);
    assert_int_equal(tt_snapshot_read(&back, path), TT_NOT_FOUND);
    assert_int_equal(rmdir(directory), 0); /* nothing else was left there */
}

/*  The optimisers of several groups have blocks by their names; none of another name will do, nor that of a lone one. */
static void test_an_optimiser_for_each_group(void **state)
{
    fixture_t *f = *state;
    const size_t half = f->full.opt[0].count / 2;
    f->full.opts = 3;
    f->full.opt[0] = (tt_snapshot_opt_t){.name = "policy", .count = half, .state = f->world.opt, .step = 12};
    f->full.opt[1] = (tt_snapshot_opt_t){.name = "plain", .step = 13};
    f->full.opt[2] =
        (tt_snapshot_opt_t){.name = "critics", .count = half - 3, .state = f->world.opt + half, .step = 14};
    s_encode(f);
    tt_snapshot_t back = s_expect(&f->world);
    back.opts = 3;
    for (uint32_t g = 0; g < 3; g++)
        back.opt[g] = (tt_snapshot_opt_t){.name = f->full.opt[g].name, .count = f->full.opt[g].count};
    const tt_snapshot_t wanted = back;
    assert_ok(tt_snapshot_decode(&back, f->bytes.data, f->bytes.size));
    assert_true(back.opt[0].step == 12 && back.opt[1].step == 13 && back.opt[2].step == 14 && back.made == 658);
    assert_null(back.opt[1].state);
    assert_memory_equal(back.opt[0].state, f->world.opt, half * sizeof(float));
    assert_memory_equal(back.opt[2].state, f->world.opt + half, (half - 3) * sizeof(float));
    tt_snapshot_close(&back);
    s_refused(f, s_expect(&f->world), f->bytes.size);
    back = wanted;
    back.opt[2].name = "critic";
    s_refused(f, back, f->bytes.size);
    back = wanted;
    back.opt[2].count++;
    s_refused(f, back, f->bytes.size);
}

/*  Before there were groups the optimiser's steps were the only count. */
static void test_of_before_there_were_groups(void **state)
{
    fixture_t *f = *state;
    s_encode(f);
    char *name = memmem(f->bytes.data, f->bytes.size, "tutti.made", 10);
    assert_non_null(name);
    memcpy(name, "tutti.else", 10);
    memcpy(f->bytes.data + TT_SEAL_AT, &(TT_SEAL_OPEN)[sizeof "sha256:" - 1], TT_SEAL_DIGITS);
    assert_ok(tt_seal(f->bytes.data, f->bytes.size));
    tt_snapshot_t back = s_expect(&f->world);
    assert_ok(tt_snapshot_decode(&back, f->bytes.data, f->bytes.size));
    assert_int_equal(back.made, 659);
    tt_snapshot_close(&back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_round_trip_gives_everything_back, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_kept_sum_travels_with_the_state, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_what_is_to_be_evaluated_travels_too, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_bare_one_has_the_weights_alone, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_weights_are_shaped_as_pytorch_shapes_them, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_pictures_are_shaped_as_pytorch_shapes_them, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_another_shape_is_refused, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_critic_may_be_lacking, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_another_network_is_refused, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_weight_that_is_not_finite_is_refused, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_cut_anywhere_it_is_refused, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_file_and_a_missing_one, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_an_optimiser_for_each_group, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_of_before_there_were_groups, s_setup, s_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
