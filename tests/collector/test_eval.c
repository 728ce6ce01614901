/*  Greedy evaluation against a plain loop over single episodes, and reading a policy back from a file. */
#include "collector/eval.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "collector/checkpoint.h"
#include "collector/registry.h"
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/job/fit.h"
#include "common/nn/safetensors.h"
#include "common/rl/policy.h"
#include "tests/collector/range.h"
#include "tests/collector/zoo.h"

enum { SEED = 9 };

/*  An env and a policy for it. */
typedef struct {
    const tt_env_ops_t *env;
    tt_columns_t *columns;
    tt_policy_t policy;
    tt_inference_t *net;
} world_t;

static void s_open(world_t *w, const tt_env_ops_t *env, tt_tower_kind_t rnn)
{
    *w = (world_t){.env = env};
    assert_ok(tt_columns_new(&w->columns, &env->obs, &env->action, env->mask, true));
    tt_policy_of(&w->policy, w->columns);
    tt_net_spec_t spec =
        tt_net_actor_critic(w->columns->flat, (const uint32_t[]){16}, 1, TT_NN_TANH, w->policy.out, w->policy.log_std);
    tt_train_parts(&spec, w->columns, false);
    if (rnn != TT_TOWER_MLP) {
        tt_net_put_recurrent(&spec, rnn, 6, true);
        tt_columns_put_carry(w->columns, tt_net_carry(&spec));
    }
    assert_ok(tt_inference_new(&w->net, "cpu", 0, &spec));
    assert_ok(tt_net_init(tt_inference_net(w->net), tt_inference_stream(w->net), SEED,
        (const float[]){1.0f, 1.0f, 1.0f, 1.0f}, 0, TT_NO_PROGRESS));
}

static void s_open_id(world_t *w, const char *id, tt_tower_kind_t rnn)
{
    const tt_env_ops_t *env = &zoo_env;
    if (strcmp(id, zoo_env.id) != 0)
        assert_ok(tt_env_find(&env, id));
    s_open(w, env, rnn);
}

static void s_close(world_t *w)
{
    tt_inference_destroy(&w->net);
    tt_columns_destroy(&w->columns);
}

/*  Episode k alone, one row at a time. */
static eval_episode_t s_episode(const world_t *w, uint32_t k, uint32_t max_steps)
{
    uint32_t words[4];
    tt_draw(words, SEED, TT_STREAM_EVAL, 0, 0);
    RANGE range = range_open(w->env, (uint64_t)words[1] << 32 | words[0], k, 1);
    float carry[64] = {0};
    const tt_carry_t step = {carry, carry};
    float *heads[TT_TOWERS_MAX] = {NULL};
    eval_episode_t out = {0};
    uint8_t terminated = 0, truncated = 0;
    while (!terminated && !truncated && !out.cut) {
        float flat[64], head[64], reward;
        double room[TT_COLUMNS_MAX][8];
        void *action[TT_COLUMNS_MAX];
        const void *row = flat;
        tt_columns_read(w->columns, (const void *const *)tt_vec_obs(range.vec), flat);
        heads[tt_net_tower(tt_net_spec(tt_inference_net(w->net)), "actor")] = head;
        assert_ok(tt_inference_run(w->net, &row, 1, w->columns->carry ? &step : NULL, heads));
        for (uint32_t i = 0; i < w->columns->action_count; i++)
            action[i] = room[i];
        tt_policy_greedy(&w->policy, head, tt_vec_mask(range.vec), 1, action);
        assert_ok(tt_vec_step(range.vec, (const void *const *)action, &reward, &terminated, &truncated));
        out.ret += (double)reward;
        out.length++;
        out.cut = !terminated && !truncated && out.length == max_steps;
    }
    return out;
}

static void test_same_as_one_by_one(void **state)
{
    (void)state;
    static const struct {
        const char *env;
        tt_tower_kind_t rnn;
    } cases[] = {{"CartPole-v1", TT_TOWER_MLP}, {"Pendulum-v1", TT_TOWER_MLP}, {"Zoo-v0", TT_TOWER_MLP},
        {"CartPole-v1", TT_TOWER_LSTM}, {"Zoo-v0", TT_TOWER_GRU}};
    for (size_t n = 0; n < TT_COUNT(cases); n++) {
        world_t w;
        enum { EPISODES = 131 }; /* more than are played side by side */
        eval_episode_t episode[EPISODES];
        s_open_id(&w, cases[n].env, cases[n].rnn);
        const eval_cfg_t cfg = {.env = w.env, .columns = w.columns, .net = w.net, .seed = SEED, .episodes = EPISODES};
        assert_ok(eval_play(&cfg, episode));
        for (uint32_t k = 0; k < EPISODES; k++) {
            const eval_episode_t alone = s_episode(&w, k, 0);
            assert_true(alone.ret == episode[k].ret);
            assert_int_equal(alone.length, episode[k].length);
            assert_false(episode[k].cut);
        }
        s_close(&w);
    }
}

static void test_long_episodes_are_cut(void **state)
{
    (void)state;
    world_t w, other;
    eval_episode_t episode[4];
    s_open_id(&w, "Pendulum-v1", TT_TOWER_MLP);
    s_open_id(&other, "CartPole-v1", TT_TOWER_MLP);
    const eval_cfg_t cfg = {
        .env = w.env, .columns = w.columns, .net = w.net, .seed = SEED, .episodes = 4, .max_steps = 10};
    assert_ok(eval_play(&cfg, episode));
    for (uint32_t k = 0; k < 4; k++)
        assert_true(episode[k].cut && episode[k].length == 10 && episode[k].ret == s_episode(&w, k, 10).ret);
    const eval_summary_t sum = eval_summary(episode, 4);
    assert_int_equal(sum.cut, 4);
    assert_true(sum.length == 10 && sum.min <= sum.mean && sum.mean <= sum.max && sum.std >= 0);
    const eval_cfg_t wrong = {.env = other.env, .columns = other.columns, .net = w.net, .seed = SEED, .episodes = 1};
    assert_int_equal(eval_play(&wrong, episode), TT_INVALID);
    s_close(&w);
    s_close(&other);
}

/* ---- checkpoints --------------------------------------------------------------------------------------------------- */

static const char s_config[] =
    "env: CartPole-v1\nname: test\nnum_envs: 4\nnetwork:\n  hidden: [16]\n  rnn: %s\n  rnn_size: 6\nnormalize:\n"
    "  obs: true\nspace:\n  obs: float32[4]\n  action: discrete(2)\n";

typedef struct {
    char path[64], config[sizeof s_config + 8];
    world_t world;
    float *params;
    tt_st_array_t array[32];
    size_t arrays;
    float *turned[32];
    int64_t update;
    double norm[9];
} file_t;

/*  What common/snapshot/snapshot.h says a file holds, written from its words. `critic`: with the value network. lstm: both remember. */
static void s_draft(file_t *f, bool critic, bool lstm)
{
    size_t count;
    *f = (file_t){.path = "/tmp/tt-checkpoint-XXXXXX", .update = 7, .norm = {4, 1, 2, 3, 4, 4, 8, 12, 16}};
    const int fd = mkstemp(f->path);
    assert_true(fd >= 0);
    close(fd);
    s_open_id(&f->world, "CartPole-v1", lstm ? TT_TOWER_LSTM : TT_TOWER_MLP);
    snprintf(f->config, sizeof f->config, s_config, lstm ? "lstm" : "none");
    f->params = tt_array0(tt_net_param_count(tt_net_spec(tt_inference_net(f->world.net))), sizeof(float));
    assert_ok(tt_net_get(tt_inference_net(f->world.net), tt_inference_stream(f->world.net), 0, f->params));
    const tt_tensor_t *tensor = tt_net_tensors(tt_inference_net(f->world.net), &count);
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
    tt_st_meta_t meta[] = {{"format", (char *)format}, {"config", f->config}};
    tt_buf_t bytes;
    tt_buf_init(&bytes, 1 << 20);
    assert_ok(tt_st_encode(&bytes, f->array, f->arrays, meta, 2));
    assert_ok(tt_st_save(&bytes, f->path, false, TT_NO_PROGRESS));
    tt_buf_free(&bytes);
    return checkpoint_open(out, f->path, "cpu");
}

static void s_free(file_t *f)
{
    for (size_t i = 0; i < TT_COUNT(f->turned); i++)
        free(f->turned[i]);
    free(f->params);
    s_close(&f->world);
    unlink(f->path);
}

static void test_checkpoint_gives_the_policy_back(void **state)
{
    (void)state;
    for (int way = 0; way < 4; way++) {
        file_t f;
        checkpoint_t c;
        s_draft(&f, way & 1, way & 2);
        assert_ok(s_write_open(&f, "tutti-1", &c));
        assert_int_equal(c.update, 7);
        assert_string_equal(c.cfg.env, "CartPole-v1");
        assert_true(tt_norm_mean(c.norm, 2) == 3 && tt_norm_var(c.norm, 2) == 3);
        const float obs[4] = {0.1f, -0.2f, 0.3f, -0.4f};
        const float into[64] = {0.5f, -0.5f, 0.25f};
        const tt_carry_t step = {.in = into};
        const void *row = obs;
        float a[2], b[2], *out[TT_TOWERS_MAX] = {NULL};
        float **head = &out[tt_net_tower(tt_net_spec(tt_inference_net(c.net)), "actor")];
        assert_int_equal(c.columns->carry, way & 2 ? 24 : 0);
        *head = a;
        assert_ok(tt_inference_run(f.world.net, &row, 1, way & 2 ? &step : NULL, out));
        *head = b;
        assert_ok(tt_inference_run(c.net, &row, 1, way & 2 ? &step : NULL, out));
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
    s_draft(&f, true, false);
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
    assert_int_equal(checkpoint_open(&c, f.path, "cpu"), TT_NOT_FOUND);
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
