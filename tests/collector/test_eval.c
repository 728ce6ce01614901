/*  Greedy evaluation against a plain loop over single episodes, and reading a policy back from a file. */
#include "collector/eval.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "collector/checkpoint.h"
#include "collector/registry.h"
#include "collector/vec.h"
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/nn/safetensors.h"
#include "common/rl/dist.h"
#include "tests/test.h"

enum { SEED = 9 };

static void s_net(tt_device_t **device, tt_net_t **net, const tt_env_ops_t *env)
{
    const tt_net_spec_t spec = {.obs = env->obs.n,
        .hidden_count = 1,
        .hidden = {16},
        .out = env->action.n,
        .continuous = env->action.kind == TT_SPACE_BOX};
    assert_ok(tt_device_open(device, "cpu", 0));
    assert_ok(tt_net_new(net, *device, &spec, 1));
    assert_ok(tt_net_init(*net, SEED, 1.0f, 0));
}

/*  Episode k alone, one row at a time. */
static eval_episode_t s_episode(const tt_env_ops_t *env, tt_net_t *net, uint32_t k, uint32_t max_steps)
{
    uint32_t words[4];
    tt_draw(words, SEED, TT_STREAM_EVAL, 0, 0);
    tt_vec_t *vec;
    assert_ok(tt_vec_new(&vec, env, (uint64_t)words[1] << 32 | words[0], k, 1, 0));
    eval_episode_t out = {0};
    uint8_t terminated = 0, truncated = 0;
    while (!terminated && !truncated && !out.cut) {
        const float *row = tt_vec_obs(vec);
        float head[8], reward;
        int32_t choice;
        assert_ok(tt_net_forward(net, 0, &row, 1, head, NULL));
        tt_cat_greedy(head, 1, env->action.n, &choice);
        const bool box = env->action.kind == TT_SPACE_BOX;
        assert_ok(tt_vec_step(vec, box ? (void *)head : (void *)&choice, &reward, &terminated, &truncated));
        out.ret += (double)reward;
        out.length++;
        out.cut = !terminated && !truncated && out.length == max_steps;
    }
    tt_vec_destroy(&vec);
    return out;
}

static void test_same_as_one_by_one(void **state)
{
    (void)state;
    static const char *const names[] = {"CartPole-v1", "Pendulum-v1"};
    for (size_t n = 0; n < TT_COUNT(names); n++) {
        const tt_env_ops_t *env;
        tt_device_t *device;
        tt_net_t *net;
        enum { EPISODES = 131 }; /* more than are played side by side */
        eval_episode_t episode[EPISODES];
        assert_ok(tt_env_find(&env, names[n]));
        s_net(&device, &net, env);
        const eval_cfg_t cfg = {.env = env, .net = net, .seed = SEED, .episodes = EPISODES};
        assert_ok(eval_play(&cfg, episode));
        for (uint32_t k = 0; k < EPISODES; k++) {
            const eval_episode_t alone = s_episode(env, net, k, 0);
            assert_true(alone.ret == episode[k].ret);
            assert_int_equal(alone.length, episode[k].length);
            assert_false(episode[k].cut);
        }
        tt_net_destroy(&net);
        tt_device_close(&device);
    }
}

static void test_long_episodes_are_cut(void **state)
{
    (void)state;
    const tt_env_ops_t *env;
    tt_device_t *device;
    tt_net_t *net;
    eval_episode_t episode[4];
    assert_ok(tt_env_find(&env, "Pendulum-v1"));
    s_net(&device, &net, env);
    const eval_cfg_t cfg = {.env = env, .net = net, .seed = SEED, .episodes = 4, .max_steps = 10};
    assert_ok(eval_play(&cfg, episode));
    for (uint32_t k = 0; k < 4; k++)
        assert_true(episode[k].cut && episode[k].length == 10 && episode[k].ret == s_episode(env, net, k, 10).ret);
    const eval_summary_t sum = eval_summary(episode, 4);
    assert_int_equal(sum.cut, 4);
    assert_true(sum.length == 10 && sum.min <= sum.mean && sum.mean <= sum.max && sum.std >= 0);
    const tt_env_ops_t *other;
    assert_ok(tt_env_find(&other, "CartPole-v1"));
    const eval_cfg_t wrong = {.env = other, .net = net, .seed = SEED, .episodes = 1};
    assert_int_equal(eval_play(&wrong, episode), TT_INVALID);
    tt_net_destroy(&net);
    tt_device_close(&device);
}

/* ---- checkpoints --------------------------------------------------------------------------------------------------- */

static const char s_config[] =
    "env: CartPole-v1\nname: test\nnum_envs: 4\nnetwork:\n  hidden: [16]\nnormalize:\n  obs: true\n"
    "space:\n  obs: 4\n  actions: 2\n  action_dims: 1\n";

typedef struct {
    char path[64];
    tt_device_t *device;
    tt_net_t *net;
    float *params;
    tt_st_array_t array[32];
    size_t arrays;
    float *turned[32];
    int64_t update;
    double norm[9];
} file_t;

/*  What common/snapshot/snapshot.h says a file holds, written from its words. `critic`: with the value network. */
static void s_draft(file_t *f, bool critic)
{
    const tt_env_ops_t *env;
    size_t count;
    *f = (file_t){.path = "/tmp/tt-checkpoint-XXXXXX", .update = 7, .norm = {4, 1, 2, 3, 4, 4, 8, 12, 16}};
    const int fd = mkstemp(f->path);
    assert_true(fd >= 0);
    close(fd);
    assert_ok(tt_env_find(&env, "CartPole-v1"));
    s_net(&f->device, &f->net, env);
    f->params = tt_array0(tt_net_param_count(tt_net_spec(f->net)), sizeof(float));
    assert_ok(tt_net_get(f->net, f->params));
    const tt_tensor_t *tensor = tt_net_tensors(f->net, &count);
    for (size_t i = 0; i < count; i++) {
        const bool weight = strstr(tensor[i].name, ".weight") != NULL;
        const size_t rows = tensor[i].rows, cols = tensor[i].cols;
        if (!critic && strncmp(tensor[i].name, "critic", 6) == 0)
            continue;
        float *turned = f->turned[f->arrays] = tt_array0(rows * cols, sizeof *turned);
        for (size_t r = 0; r < rows; r++)
            for (size_t c = 0; c < cols; c++)
                turned[weight ? c * rows + r : r * cols + c] = f->params[tensor[i].offset + r * cols + c];
        tt_st_array_t *array = &f->array[f->arrays++];
        *array = (tt_st_array_t){.type = TT_ST_F32, .rank = weight ? 2 : 1, .data = turned, .bytes = rows * cols * 4};
        array->shape[0] = weight ? cols : rows * cols;
        array->shape[1] = rows;
        snprintf(array->name, sizeof array->name, "%s", tensor[i].name);
    }
    f->array[f->arrays++] = (tt_st_array_t){"tutti.update", TT_ST_I64, 1, {1}, &f->update, 8};
    f->array[f->arrays++] = (tt_st_array_t){"tutti.version.7.norm", TT_ST_F64, 1, {9}, f->norm, sizeof f->norm};
}

static tt_status_t s_write_open(file_t *f, const char *format, checkpoint_t *out)
{
    tt_st_meta_t meta[] = {{"format", (char *)format}, {"config", (char *)s_config}};
    tt_buf_t bytes;
    tt_buf_init(&bytes, 1 << 20);
    assert_ok(tt_st_encode(&bytes, f->array, f->arrays, meta, 2));
    assert_ok(tt_st_save(&bytes, f->path, false));
    tt_buf_free(&bytes);
    return checkpoint_open(out, f->path);
}

static void s_free(file_t *f)
{
    for (size_t i = 0; i < TT_COUNT(f->turned); i++)
        free(f->turned[i]);
    free(f->params);
    tt_net_destroy(&f->net);
    tt_device_close(&f->device);
    unlink(f->path);
}

static void test_checkpoint_gives_the_policy_back(void **state)
{
    (void)state;
    for (int critic = 0; critic < 2; critic++) {
        file_t f;
        checkpoint_t c;
        s_draft(&f, critic);
        assert_ok(s_write_open(&f, "tutti-1", &c));
        assert_int_equal(c.update, 7);
        assert_string_equal(c.cfg.env, "CartPole-v1");
        assert_true(tt_norm_mean(c.norm, 2) == 3 && tt_norm_var(c.norm, 2) == 3);
        const float obs[4] = {0.1f, -0.2f, 0.3f, -0.4f}, *row = obs;
        float a[2], b[2];
        assert_ok(tt_net_forward(f.net, 0, &row, 1, a, NULL));
        assert_ok(tt_net_forward(c.net, 0, &row, 1, b, NULL));
        assert_memory_equal(a, b, sizeof a);
        checkpoint_close(&c);
        s_free(&f);
    }
}

static void test_bad_checkpoints(void **state)
{
    (void)state;
    file_t f;
    checkpoint_t c;
    s_draft(&f, true);
    assert_int_equal(s_write_open(&f, "pt", &c), TT_DATA);
    checkpoint_close(&c);
    f.array[0].name[0] = 'A'; /* the first tensor of the actor is not there */
    assert_int_equal(s_write_open(&f, "tutti-1", &c), TT_DATA);
    checkpoint_close(&c);
    f.array[0].name[0] = 'a';
    f.arrays--; /* no normaliser */
    assert_int_equal(s_write_open(&f, "tutti-1", &c), TT_DATA);
    checkpoint_close(&c);
    unlink(f.path);
    assert_int_equal(checkpoint_open(&c, f.path), TT_NOT_FOUND);
    checkpoint_close(&c);
    s_free(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_as_one_by_one),
        cmocka_unit_test(test_long_episodes_are_cut),
        cmocka_unit_test(test_checkpoint_gives_the_policy_back),
        cmocka_unit_test(test_bad_checkpoints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
