/*  A batch is evaluated in pieces: the same numbers as all at once, and somebody hears of each piece. A recurrent network goes from
 *  step to step, as by hand; and an update of it has the same bits however many learners share its shards. */
#include "learner/compute.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/job/fit.h"
#include "common/nn/tree.h"
#include "learner/algorithms/ppo_loss.h"
#include "learner/algorithms/ppo_options.h"
#include "tests/learner/segments.h"
#include "tests/test.h"
#include "tests/learner/settled.h"

enum { T = 1500, N = 4, ROWS = T * N, OBS = 4, HEADS = 3 };

typedef struct {
    float obs[ROWS][OBS];
    const void *row[ROWS];
    float *out[2]; /* [ROWS][HEADS] and [ROWS]       */
    uint32_t told; /* how often; and what was there: */
    size_t filled[ROWS];
} world_t;

/*  Rows whose heads are there. */
static size_t s_filled(const world_t *world)
{
    size_t rows = 0;
    while (rows < ROWS && world->out[0][rows * HEADS] != 0)
        rows++;
    return rows;
}

static void s_on_progress(void *ctx)
{
    world_t *world = ctx;
    world->filled[world->told++] = s_filled(world);
}

static void s_open(model_t *model, const tt_net_spec_t *spec)
{
    *model = (model_t){.train.learner.shards = 2};
    assert_ok(tt_device_open(&model->device, NULL, 0, 2));
    assert_ok(tt_stream_new(&model->stream, model->device));
    assert_ok(tt_net_new(&model->net, model->device, spec));
    assert_ok(tt_net_init(model->net, model->stream, 3, (const float[TT_TOWERS_MAX]){1, 1, 1, 1}, 0, TT_NO_PROGRESS));
}

static void s_close(model_t *model)
{
    tt_net_destroy(&model->net);
    tt_stream_destroy(&model->stream);
    tt_device_close(&model->device);
}

static void s_fill(world_t *world)
{
    for (uint32_t i = 0; i < ROWS; i++) {
        for (uint32_t k = 0; k < OBS; k++)
            world->obs[i][k] = (float)((i * 7 + k * 131) % 997) / 500.0f - 1.0f;
        world->row[i] = world->obs[i];
    }
    world->out[0] = tt_array0(ROWS * HEADS, sizeof(float));
    world->out[1] = tt_array0(ROWS, sizeof(float));
}

/*  All rows in one call. */
static void s_at_once(const model_t *model, const world_t *world, float *const out[2])
{
    tt_table_t *table = NULL;
    assert_ok(tt_table_new(&table, model->device, sizeof world->obs[0]));
    assert_ok(tt_table_put_rows(table, model->stream, world->row, ROWS));
    assert_ok(tt_net_forward(model->net, model->stream, 0, table, ROWS, NULL, out));
    assert_ok(tt_stream_sync(model->stream));
    tt_table_destroy(&table);
}

static void test_a_batch_in_pieces(void **state)
{
    (void)state;
    world_t *world = tt_new0(sizeof *world);
    model_t model;
    compute_t *compute = NULL;
    const tt_net_spec_t spec = tt_net_actor_critic(OBS, (const uint32_t[]){16}, 1, TT_NN_TANH, HEADS, 0);
    s_open(&model, &spec);
    s_fill(world);
    const tt_batch_t batch = {.T = T, .N = N, .obs = world->row, .last = world->row, .final_obs = NULL};
    assert_ok(compute_new(&compute, &model));
    assert_ok(compute_batch(compute, &batch));
    compute_progress(compute, (tt_progress_t){s_on_progress, world});
    const tt_evaluator_t net = compute_evaluator(compute);
    assert_ok(net.forward(net.ctx, TT_ROWS_OBS, world->out));
    assert_true(world->told >= 3);
    for (uint32_t k = 0; k < world->told; k++)
        assert_true(world->filled[k] >= 1024 && (k == 0 || world->filled[k] > world->filled[k - 1]));
    assert_true(world->filled[0] < ROWS);
    assert_int_equal(world->filled[world->told - 1], ROWS);

    float *whole[2] = {tt_array0(ROWS * HEADS, sizeof(float)), tt_array0(ROWS, sizeof(float))};
    s_at_once(&model, world, whole);
    assert_memory_equal(world->out[0], whole[0], ROWS * HEADS * sizeof(float));
    assert_memory_equal(world->out[1], whole[1], ROWS * sizeof(float));

    float *const one[2] = {NULL, world->out[1]}; /* and one head alone, of few rows */
    memset(world->out[1], 0, N * sizeof(float));
    assert_ok(net.forward(net.ctx, TT_ROWS_LAST, one));
    assert_memory_equal(world->out[1], whole[1], N * sizeof(float));
    for (int i = 0; i < 2; i++) {
        free(whole[i]);
        free(world->out[i]);
    }
    compute_destroy(&compute);
    s_close(&model);
    free(world);
}

/* ---- networks that remember ------------------------------------------------------------------------------------------ */

enum { STEPS = 9, FEW = 5, MANY = 1100, UNITS = 6, SHARDS = 8 };

/*  A batch of N envs whose episodes end now and then, and a network for it. */
typedef struct {
    uint32_t N, rows, carries;
    tt_train_cfg_t train;
    tt_columns_t *columns;
    model_t model;
    compute_t *compute;
    float *obs, *carry; /* of rows, then N after the last, then as many finals as there are rows */
    const void **row, **carried;
    float *reward, *log_prob, *value;
    int32_t *action;
    uint8_t *terminated, *truncated, *begins;
    uint32_t *final_row;
    tt_batch_t batch;
    uint32_t told;
} memory_t;

static float s_random(uint32_t who, uint64_t k)
{
    uint32_t word[4];
    tt_draw(word, 11, TT_STREAM_TEST, who, k);
    return 2 * tt_unit_f32(word[0]) - 1;
}

static float *s_randoms(size_t count, uint32_t who)
{
    float *out = tt_array0(count, sizeof *out);
    for (size_t i = 0; i < count; i++)
        out[i] = s_random(who, i);
    return out;
}

static const void **s_pointers(const float *rows, size_t count, size_t floats)
{
    const void **out = tt_array0(count, sizeof *out);
    for (size_t i = 0; i < count; i++)
        out[i] = rows + i * floats;
    return out;
}

/*  Every env ends now and then, some with the last step; some episodes begin with the first. */
static void s_make_ends(memory_t *m)
{
    for (uint32_t r = 0; r < m->rows; r++) {
        m->terminated[r] = s_random(20, r) > 0.8f;
        m->truncated[r] = s_random(21, r) > 0.7f;
        m->begins[r] = r < m->N ? s_random(22, r) > 0 : m->terminated[r - m->N] || m->truncated[r - m->N];
        if (m->truncated[r])
            m->final_row[m->batch.finals++] = r;
    }
}

static void s_make_batch(memory_t *m)
{
    m->obs = s_randoms((size_t)(2 * m->rows + m->N) * OBS, 1);
    m->carry = s_randoms((size_t)m->N * m->carries, 2);
    m->row = s_pointers(m->obs, 2 * m->rows + m->N, OBS);
    m->carried = s_pointers(m->carry, m->N, m->carries);
    m->reward = s_randoms(m->rows, 3);
    m->log_prob = s_randoms(m->rows, 4);
    m->value = s_randoms(m->rows, 5);
    m->action = tt_array0(m->rows, sizeof *m->action);
    m->terminated = tt_array0(m->rows, 1);
    m->truncated = tt_array0(m->rows, 1);
    m->begins = tt_array0(m->rows, 1);
    m->final_row = tt_array0(m->rows, sizeof *m->final_row);
    m->batch = (tt_batch_t){.T = STEPS, .N = m->N, .D = OBS, .columns = m->columns, .stale = true, .carry = m->carried};
    s_make_ends(m);
    for (uint32_t r = 0; r < m->rows; r++)
        m->action[r] = (int32_t)(r % HEADS);
    tt_batch_t *b = &m->batch;
    b->obs = m->row;
    b->last = m->row + m->rows;
    b->final_obs = b->last + m->N;
    b->final_row = m->final_row;
    b->begins = m->begins;
    b->terminated = m->terminated;
    b->truncated = m->truncated;
    b->action[0] = m->action;
    b->reward = m->reward;
    b->log_prob = m->log_prob;
    b->value = b->last_value = b->final_value = m->value;
}

static void s_open_memory(memory_t *m, uint32_t envs, tt_rnn_t rnn, bool shared)
{
    *m = (memory_t){.N = envs, .rows = envs * STEPS, .train = {.seed = 9, .num_envs = envs, .num_steps = STEPS}};
    m->train.learner.shards = SHARDS;
    m->train.network.rnn = (int)rnn;
    m->train.network.rnn_size = UNITS;
    m->train.network.shared = shared;
    m->train.network.hidden = (tt_cfg_list_t){.count = 1, .at = {8}};
    m->columns = made_columns("float32[4]", "discrete(3)", false);
    const tt_net_spec_t spec = tt_train_net(&m->train, m->columns);
    m->carries = tt_net_carry(&spec);
    assert_int_equal(m->carries, UNITS * (rnn == TT_RNN_LSTM ? 2 : 1) * (shared ? 1 : 2));
    tt_columns_put_carry(m->columns, m->carries);
    s_open(&m->model, &spec);
    m->model.train = m->train;
    assert_ok(compute_new(&m->compute, &m->model));
    s_make_batch(m);
}

static void s_close_memory(memory_t *m)
{
    compute_destroy(&m->compute);
    s_close(&m->model);
    tt_columns_destroy(&m->columns);
    void *owned[] = {m->obs, m->carry, m->row, m->carried, m->reward, m->log_prob, m->value, m->action, m->terminated,
        m->truncated, m->begins, m->final_row};
    for (size_t i = 0; i < TT_COUNT(owned); i++)
        free(owned[i]);
}

static void s_on_step(void *ctx)
{
    ((memory_t *)ctx)->told++;
}

/*  Heads of one row: actor, then value. */
enum { WIDTH = HEADS + 1 };

static void s_row_by_hand(const memory_t *m, tt_table_t *table, size_t row, float *carry, float *head)
{
    float *out[TT_TOWERS_MAX] = {NULL};
    const tt_net_spec_t *spec = tt_net_spec(m->model.net);
    out[tt_net_tower(spec, "actor")] = head;
    out[tt_net_tower(spec, "critic")] = head + HEADS;
    assert_ok(tt_table_put_rows(table, m->model.stream, m->row + row, 1));
    assert_ok(tt_net_forward(m->model.net, m->model.stream, 0, table, 1, &(tt_carry_t){carry, carry}, out));
    assert_ok(tt_stream_sync(m->model.stream));
}

/*  One env, from its first step to what follows its last: want[rows, then N after the last, then finals][WIDTH]. */
static void s_env_by_hand(const memory_t *m, tt_table_t *table, uint32_t env, float *want)
{
    float carry[4 * UNITS], aside[4 * UNITS];
    const size_t bytes = m->carries * sizeof *carry;
    memcpy(carry, m->carried[env], bytes);
    for (uint32_t t = 0; t < STEPS; t++) {
        const uint32_t row = t * m->N + env;
        if (m->begins[row])
            memset(carry, 0, bytes);
        s_row_by_hand(m, table, row, carry, want + (size_t)row * WIDTH);
        for (uint32_t k = 0, at = m->rows + m->N; k < m->batch.finals; k++)
            if (m->final_row[k] == row) {
                memcpy(aside, carry, bytes);
                s_row_by_hand(m, table, at + k, aside, want + (size_t)(at + k) * WIDTH);
            }
        if (m->terminated[row] || m->truncated[row])
            memset(carry, 0, bytes);
    }
    s_row_by_hand(m, table, m->rows + env, carry, want + (size_t)(m->rows + env) * WIDTH);
}

/*  The same by the evaluator, and beside it whether only the heads that are asked for come. */
static void s_evaluate(memory_t *m, float *got)
{
    const tt_net_spec_t *spec = tt_net_spec(m->model.net);
    compute_progress(m->compute, (tt_progress_t){s_on_step, m});
    const tt_evaluator_t net = compute_evaluator(m->compute);
    const size_t first[] = {0, m->rows, m->rows + m->N}, count[] = {m->rows, m->N, m->batch.finals};
    for (int which = TT_ROWS_OBS; which <= TT_ROWS_FINAL; which++) {
        float *head = tt_array0(count[which] * HEADS, sizeof *head), *value = tt_array0(count[which], sizeof *value);
        float *out[TT_TOWERS_MAX] = {NULL};
        out[tt_net_tower(spec, "actor")] = head;
        out[tt_net_tower(spec, "critic")] = value;
        assert_ok(net.forward(net.ctx, (tt_batch_rows_t)which, out));
        for (size_t i = 0; i < count[which]; i++) {
            memcpy(got + (first[which] + i) * WIDTH, head + i * HEADS, HEADS * sizeof *head);
            got[(first[which] + i) * WIDTH + HEADS] = value[i];
        }
        free(head);
        free(value);
        assert_true(which || m->told > (m->N > 1024)); /* it is told of a step of many rows more than once */
    }
}

static void s_check_steps(uint32_t envs, tt_rnn_t rnn, bool shared)
{
    memory_t m;
    tt_table_t *table = NULL;
    s_open_memory(&m, envs, rnn, shared);
    const size_t count = (size_t)(m.rows + envs + m.batch.finals) * WIDTH;
    float *want = tt_array0(count, sizeof *want), *got = tt_array0(count, sizeof *got);
    assert_true(m.batch.finals > 2);
    assert_ok(tt_table_new(&table, m.model.device, OBS * sizeof(float)));
    for (uint32_t env = 0; env < envs; env++)
        s_env_by_hand(&m, table, env, want);
    for (int again = 0; again < 2; again++) { /* nothing is left of the batch before */
        m.told = 0;
        memset(got, 0, count * sizeof *got);
        assert_ok(compute_batch(m.compute, &m.batch));
        s_evaluate(&m, got);
        for (size_t i = 0; i < count / WIDTH; i++)
            if (memcmp(got + i * WIDTH, want + i * WIDTH, WIDTH * sizeof *got) != 0)
                fail_msg("row %zu of %u, then %u, then %u: value %.9g, by hand %.9g", i, m.rows, envs, m.batch.finals,
                    (double)got[i * WIDTH + HEADS], (double)want[i * WIDTH + HEADS]);
    }
    tt_table_destroy(&table);
    free(want);
    free(got);
    s_close_memory(&m);
}

static void test_steps_as_by_hand(void **state)
{
    (void)state;
    s_check_steps(FEW, TT_RNN_LSTM, false);
    s_check_steps(FEW, TT_RNN_LSTM, true);
    s_check_steps(FEW, TT_RNN_GRU, false);
    s_check_steps(MANY, TT_RNN_GRU, true);
}

/*  What `learners` learners send, put together as an aggregator does: out[grads]. */
static void s_sum(memory_t *m, const tt_minibatch_t *minibatch, uint32_t learners, float *out)
{
    const size_t count = tt_net_grad_count(tt_net_spec(m->model.net));
    float *node = tt_array0((size_t)learners * TT_TREE_RUN_MAX * count, sizeof *node), *at = node;
    tt_tree_t *tree = NULL;
    assert_ok(tt_tree_new(&tree, SHARDS, count, NULL, NULL));
    for (uint32_t rank = 0; rank < learners; rank++) {
        uint32_t lo, hi, nodes[TT_TREE_RUN_MAX];
        tt_tree_run(SHARDS, learners, rank, &lo, &hi);
        assert_ok(compute_gradients(m->compute, minibatch, NULL, lo, hi));
        const size_t sent = tt_tree_nodes(SHARDS, lo, hi, nodes);
        for (size_t i = 0; i < sent; i++, at += count) {
            const float *sum;
            assert_ok(compute_node(m->compute, nodes[i], &sum));
            memcpy(at, sum, count * sizeof *sum);
            tt_tree_add(tree, nodes[i], at, NULL);
        }
    }
    memcpy(out, tt_tree_at(tree, 1, NULL), count * sizeof *out);
    tt_tree_destroy(&tree);
    free(node);
}

/*  A whole update, at lag 1, of which the learners share the shards; 0: one that sends nothing. */
static void s_update(tt_rnn_t rnn, uint32_t learners, float *params)
{
    const ppo_cfg_t cfg = {.common = {.learning_rate = 0.01f,
                               .gamma = 0.9,
                               .max_grad_norm = 0.5f,
                               .adam_beta1 = 0.9f,
                               .adam_beta2 = 0.999f,
                               .adam_eps = 1e-5f},
        .gae_lambda = 0.9f,
        .epochs = 2,
        .minibatches = 3,
        .clip = 0.2f,
        .value_coef = 0.5f,
        .entropy_coef = 0.01f,
        .normalize_advantage = true,
        .target_kl = NAN,
        .recompute = true};
    const tt_algorithm_t *ppo = NULL;
    tt_algo_t *algo = NULL;
    memory_t m;
    s_open_memory(&m, 6, rnn, true);
    assert_ok(tt_algorithm_find(&ppo, "ppo"));
    assert_ok(ppo->create(&algo, &m.train, m.columns, &cfg));
    assert_ok(tt_opt_new(&m.model.opt[0], m.model.net, 0, ppo->opt(algo, 0)));
    m.model.opts = 1;
    float *sum = tt_array0(tt_net_grad_count(tt_net_spec(m.model.net)), sizeof *sum);
    const tt_evaluator_t net = compute_evaluator(m.compute);
    compute_progress(m.compute, (tt_progress_t){s_on_step, &m});
    assert_ok(compute_batch(m.compute, &m.batch));
    assert_ok(ppo->begin(algo, &m.batch, &net));
    assert_int_equal(ppo->steps(algo), 6);
    for (uint32_t step = 0; step < 6; step++) {
        tt_minibatch_t minibatch;
        tt_result_t result;
        const uint32_t told = m.told;
        assert_ok(ppo->minibatch(algo, &(tt_at_t){.step = step}, &minibatch));
        assert_int_equal(minibatch.rows, 2 * STEPS); /* two envs for eight shards */
        if (learners)
            s_sum(&m, &minibatch, learners, sum);
        else
            assert_ok(compute_gradients(m.compute, &minibatch, NULL, 0, SHARDS));
        assert_ok(settled_step(m.compute, &minibatch, learners ? sum : NULL, &result));
        assert_true(learners || m.told - told >= 2 * STEPS); /* of the sequence in the first lane, there and back */
        assert_true(isfinite(result.norm[0]) && result.norm[0] > 0);
        /* one that has not changed: steps of the evaluator and sequences of a pass have the same bits */
        assert_true(step || (result.stats[PPO_OLD_KL] == 0 && result.stats[PPO_CLIPPED] == 0));
        assert_false(ppo->after(algo, step, &result));
    }
    assert_ok(tt_net_get(m.model.net, m.model.stream, 0, params));
    free(sum);
    ppo->destroy(&algo);
    tt_opt_destroy(&m.model.opt[0]);
    s_close_memory(&m);
}

static void test_learners_share_sequences(void **state)
{
    (void)state;
    for (int rnn = TT_RNN_LSTM; rnn <= TT_RNN_GRU; rnn++) {
        float want[1024] = {0}, got[1024] = {0};
        s_update((tt_rnn_t)rnn, 0, want);
        for (uint32_t learners = 1; learners <= 5; learners++) { /* some have no env at all */
            s_update((tt_rnn_t)rnn, learners, got);
            assert_memory_equal(got, want, sizeof got);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_batch_in_pieces),
        cmocka_unit_test(test_steps_as_by_hand),
        cmocka_unit_test(test_learners_share_sequences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
