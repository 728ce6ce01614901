/*  A2C and IMPALA: their settings, that an update is one step over all rows, what they report; and that a whole update of A2C is PPO's
 *  of one pass of one minibatch that clips nothing, gradient by gradient (arXiv:2205.09123), and IMPALA's of what nobody else acted
 *  A2C's. What V-trace makes of the rest: test_ppo_torch.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/rl/dist.h"
#include "common/nn/inference.h"
#include "learner/algorithms/ppo_options.h"
#include "learner/compute.h"
#include "tests/learner/segments.h"
#include "tests/test.h"

enum { T = 4, N = 6, ROWS = T * N };

static tt_columns_t *s_columns; /* of four numbers and two choices */

static int s_setup(void **state)
{
    (void)state;
    s_columns = made_columns("float32[4]", "discrete(2)", false);
    return 0;
}

static int s_teardown(void **state)
{
    (void)state;
    tt_columns_destroy(&s_columns);
    return 0;
}

static const tt_algorithm_t *s_find(const char *name)
{
    const tt_algorithm_t *found = NULL;
    assert_ok(tt_algorithm_find(&found, name));
    return found;
}

static tt_train_cfg_t s_train(void)
{
    return (tt_train_cfg_t){.num_envs = N, .num_steps = T, .learner.shards = 2, .seed = 1};
}

/*  cfg[] gets the settings. */
static tt_status_t s_read(const tt_algorithm_t *algorithm, const char *yaml, const tt_train_cfg_t *train, void *cfg)
{
    tt_config_t *config = NULL;
    assert_ok(tt_config_parse(&config, yaml, strlen(yaml), "test.yaml"));
    tt_config_put(config, "env", "CartPole-v1", "test");
    tt_config_ignore(config, "env");
    tt_status_t status = tt_config_claim(config, algorithm->fields, cfg);
    if (status == TT_OK)
        status = tt_config_finish(config);
    if (status == TT_OK)
        status = algorithm->check(config, train, cfg);
    tt_config_destroy(&config);
    return status;
}

static void test_settings(void **state)
{
    (void)state;
    const tt_algorithm_t *a2c = s_find("a2c");
    tt_train_cfg_t train = s_train();
    tt_algo_t *algo = NULL;
    void *cfg = tt_new0(a2c->cfg_size);
    assert_ok(s_read(a2c, "algorithm: {}\n", &train, cfg));
    assert_true(a2c->gamma(cfg) == 0.99);
    assert_ok(a2c->create(&algo, &train, s_columns, cfg));
    assert_int_equal(a2c->opt(algo, 0)->kind, TT_OPT_RMSPROP);
    assert_true(
        a2c->opt(algo, 0)->alpha == 0.99f && a2c->opt(algo, 0)->eps == 1e-5f && a2c->opt(algo, 0)->max_norm == 0.5f);
    assert_int_equal(a2c->steps(algo), 1);
    a2c->destroy(&algo);
    assert_int_equal(s_read(a2c, "algorithm: {clip: 0.2}\n", &train, cfg), TT_CONFIG);
    assert_non_null(strstr(tt_err_text(), "algorithm.clip"));
    train.learner.shards = 16;
    assert_int_equal(s_read(a2c, "algorithm: {}\n", &train, cfg), TT_CONFIG);
    assert_non_null(strstr(tt_err_text(), "learner.shards"));
    train.learner.shards = 2;
    assert_int_equal(s_read(a2c, "algorithm: {anneal: linear}\n", &train, cfg), TT_CONFIG);
    assert_non_null(strstr(tt_err_text(), "annealing needs an end"));
    free(cfg);
}

static void test_settings_of_impala(void **state)
{
    (void)state;
    const tt_algorithm_t *impala = s_find("impala");
    tt_train_cfg_t train = s_train();
    tt_algo_t *algo = NULL;
    ppo_cfg_t cfg = {0};
    assert_int_equal(impala->cfg_size, sizeof cfg);
    assert_ok(s_read(impala, "algorithm: {}\n", &train, &cfg));
    assert_true(cfg.vtrace_rho == 1 && cfg.vtrace_c == 1 && cfg.gae_lambda == 1 && !cfg.normalize_advantage);
    assert_true(cfg.entropy_coef == 0.01f && cfg.value_coef == 0.5f);
    assert_ok(impala->create(&algo, &train, s_columns, &cfg));
    assert_int_equal(impala->opt(algo, 0)->kind, TT_OPT_RMSPROP);
    assert_int_equal(impala->steps(algo), 1);
    impala->destroy(&algo);
    assert_ok(s_read(impala, "algorithm: {vtrace_rho: 2, vtrace_c: 0.5}\n", &train, &cfg));
    assert_true(cfg.vtrace_rho == 2 && cfg.vtrace_c == 0.5f);
    assert_int_equal(s_read(impala, "algorithm: {vtrace_rho: 0.5}\n", &train, &cfg), TT_CONFIG);
    assert_non_null(strstr(tt_err_text(), "algorithm.vtrace_c: 1 is above algorithm.vtrace_rho 0.5 (test.yaml:1:"));
    assert_int_equal(s_read(impala, "algorithm: {vtrace: true}\n", &train, &cfg), TT_CONFIG); /* it always does */
    assert_int_equal(s_read(s_find("a2c"), "algorithm: {vtrace_rho: 2}\n", &train, &cfg), TT_CONFIG);
}

/* ---- an update ------------------------------------------------------------------------------------------------------ */

typedef struct {
    float obs[ROWS + N][4], reward[ROWS], log_prob[ROWS], value[ROWS], last_value[N];
    const void *row[ROWS], *last[N];
    int32_t action[ROWS];
    uint8_t terminated[ROWS], truncated[ROWS];
    tt_batch_t batch;
} data_t;

static float s_random(uint32_t who, uint64_t k)
{
    uint32_t word[4];
    tt_draw(word, 11, TT_STREAM_TEST, who, k);
    return 2 * tt_unit_f32(word[0]) - 1;
}

static void s_fill(data_t *d, tt_inference_t *net)
{
    float head[2];
    memset(d, 0, sizeof *d);
    for (uint32_t i = 0; i < ROWS + N; i++)
        for (uint32_t k = 0; k < 4; k++)
            d->obs[i][k] = s_random(i, k);
    for (uint32_t i = 0; i < ROWS; i++) {
        d->row[i] = d->obs[i];
        d->reward[i] = s_random(100 + i, 0);
        d->action[i] = (int32_t)(i % 2);
        d->terminated[i] = i % 7 == 3;
        assert_ok(tt_inference_run(net, &d->row[i], 1, NULL, (float *const[]){head, &d->value[i]}));
        tt_cat_log_prob(head, 1, 2, &d->action[i], &d->log_prob[i]);
    }
    for (uint32_t e = 0; e < N; e++)
        d->last[e] = d->obs[ROWS + e];
    assert_ok(tt_inference_run(net, d->last, N, NULL, (float *const[]){NULL, d->last_value}));
    d->batch = (tt_batch_t){.T = T,
        .N = N,
        .D = 4,
        .columns = s_columns,
        .obs = d->row,
        .last = d->last,
        .action = {d->action},
        .reward = d->reward,
        .terminated = d->terminated,
        .truncated = d->truncated,
        .log_prob = d->log_prob,
        .value = d->value,
        .last_value = d->last_value};
}

static tt_status_t s_no_forward(void *ctx, tt_batch_rows_t which, float *const *out)
{
    (void)ctx, (void)which, (void)out;
    return tt_err(TT_DEVICE, "asked");
}

static void s_copy(const tt_inference_t *from, model_t *to)
{
    float *params = tt_aligned0(tt_net_param_count(tt_net_spec(to->net)) * sizeof *params);
    assert_ok(tt_net_get(tt_inference_net(from), tt_inference_stream(from), 0, params));
    assert_ok(tt_net_put(to->net, to->stream, 0, params));
    free(params);
}

/*  The gradient of the only step, and what was said of it. */
static void s_step(const tt_algorithm_t *algorithm, const char *yaml, data_t *d, tt_inference_t *net, float *grad)
{
    const tt_train_cfg_t train = s_train();
    tt_algo_t *algo = NULL;
    tt_minibatch_t minibatch;
    void *cfg = tt_new0(algorithm->cfg_size);
    assert_ok(s_read(algorithm, yaml, &train, cfg));
    assert_ok(algorithm->create(&algo, &train, s_columns, cfg));
    assert_int_equal(algorithm->steps(algo), 1);
    assert_ok(algorithm->begin(algo, &d->batch, &(tt_evaluator_t){.forward = s_no_forward}));
    assert_ok(algorithm->minibatch(algo, &(tt_at_t){0}, &minibatch));
    assert_int_equal(minibatch.rows, ROWS);
    model_t model = {.train = train};
    compute_t *compute = NULL;
    const float *sum;
    assert_ok(tt_device_open(&model.device, NULL, 0, 1));
    assert_ok(tt_stream_new(&model.stream, model.device));
    assert_ok(tt_net_new(&model.net, model.device, tt_net_spec(tt_inference_net(net))));
    s_copy(net, &model);
    assert_ok(compute_new(&compute, &model));
    assert_ok(compute_batch(compute, &d->batch));
    assert_ok(compute_gradients(compute, &minibatch, NULL, 0, train.learner.shards));
    assert_ok(compute_node(compute, 1, &sum));
    memcpy(grad, sum, tt_net_grad_count(tt_net_spec(model.net)) * sizeof *grad);
    compute_destroy(&compute);
    tt_net_destroy(&model.net);
    tt_stream_destroy(&model.stream);
    tt_device_close(&model.device);
    algorithm->destroy(&algo);
    free(cfg);
}

static void test_an_update_is_ppos_of_one_step(void **state)
{
    (void)state;
    tt_inference_t *net = NULL;
    const tt_net_spec_t spec = tt_net_actor_critic(4, (const uint32_t[]){16}, 1, TT_NN_TANH, 2, 0);
    static data_t d;
    assert_ok(tt_inference_new(&net, "cpu", 0, &spec));
    assert_ok(
        tt_net_init(tt_inference_net(net), tt_inference_stream(net), 3, (const float[]){1, 1}, 0, TT_NO_PROGRESS));
    s_fill(&d, net);
    float *a2c = tt_aligned0(tt_net_grad_count(&spec) * sizeof *a2c),
          *ppo = tt_aligned0(tt_net_grad_count(&spec) * sizeof *ppo);
    s_step(s_find("a2c"), "algorithm: {entropy_coef: 0.02}\n", &d, net, a2c);
    s_step(s_find("ppo"),
        "algorithm: {entropy_coef: 0.02, epochs: 1, minibatches: 1, clip: 100, gae_lambda: 1, value_coef: 1, "
        "normalize_advantage: false}\n",
        &d, net, ppo);
    float largest = 0;
    for (size_t i = 0; i < tt_net_param_count(&spec); i++) {
        assert_true(fabsf(a2c[i] - ppo[i]) < 1e-6f);
        largest = fabsf(a2c[i]) > largest ? fabsf(a2c[i]) : largest;
    }
    assert_true(largest > 1e-3f);
    float *impala = ppo; /* rho above 1 cuts no ratio that is 1 */
    s_step(s_find("impala"), "algorithm: {entropy_coef: 0.02, value_coef: 1, vtrace_rho: 1.5}\n", &d, net, impala);
    for (size_t i = 0; i < tt_net_param_count(&spec); i++)
        assert_true(fabsf(a2c[i] - impala[i]) < 1e-6f);
    free(a2c);
    free(ppo);
    tt_inference_destroy(&net);
}

/*  A policy that remembers: all envs, each with all its steps, are the only minibatch; shards divide nothing. */
static void test_sequences(void **state)
{
    (void)state;
    const tt_algorithm_t *a2c = s_find("a2c");
    tt_train_cfg_t train = s_train();
    tt_columns_t *columns = made_columns("float32[4]", "discrete(2)", false);
    tt_inference_t *net = NULL;
    const tt_net_spec_t spec = tt_net_actor_critic(4, NULL, 0, TT_NN_TANH, 2, 0);
    static data_t d;
    tt_algo_t *algo = NULL;
    tt_minibatch_t m;
    void *cfg = tt_new0(a2c->cfg_size);
    bool seen[ROWS] = {false};
    train.network.rnn = TT_RNN_LSTM;
    train.network.rnn_size = 3;
    train.learner.shards = 16;
    tt_columns_put_carry(columns, 12);
    assert_ok(tt_inference_new(&net, "cpu", 0, &spec));
    s_fill(&d, net);
    assert_ok(s_read(a2c, "algorithm: {}\n", &train, cfg));
    assert_ok(a2c->create(&algo, &train, columns, cfg));
    assert_int_equal(a2c->steps(algo), 1);
    assert_ok(a2c->begin(algo, &d.batch, &(tt_evaluator_t){.forward = s_no_forward}));
    assert_ok(a2c->minibatch(algo, &(tt_at_t){0}, &m));
    assert_int_equal(m.rows, ROWS);
    assert_int_equal(m.length, T);
    for (uint32_t i = 0; i < ROWS; i++) {
        assert_int_equal(m.row[i], i % T * N + m.row[i - i % T]);
        assert_false(seen[m.row[i]]);
        seen[m.row[i]] = true;
    }
    a2c->destroy(&algo);
    free(cfg);
    tt_inference_destroy(&net);
    tt_columns_destroy(&columns);
}

typedef struct {
    int count, ratios;
} names_t;

static void s_emit(void *ctx, const char *name, double value)
{
    names_t *names = ctx;
    (void)value;
    names->count++;
    names->ratios += strstr(name, "kl") || strstr(name, "clip");
}

/*  Nothing is said of PPO's ratios, which there are none of; what an older version did has its values anew. */
static void s_reports(const char *name, int metrics)
{
    const tt_algorithm_t *algorithm = s_find(name);
    const tt_train_cfg_t train = s_train();
    const float stats[TT_LOSS_STATS] = {1, 2, 3};
    tt_inference_t *net = NULL;
    const tt_net_spec_t spec = tt_net_actor_critic(4, NULL, 0, TT_NN_TANH, 2, 0);
    static data_t d;
    assert_ok(tt_inference_new(&net, "cpu", 0, &spec));
    s_fill(&d, net);
    tt_algo_t *algo = NULL;
    names_t names = {0};
    void *cfg = tt_new0(algorithm->cfg_size);
    assert_ok(s_read(algorithm, "algorithm: {}\n", &train, cfg));
    assert_ok(algorithm->create(&algo, &train, s_columns, cfg));
    assert_ok(algorithm->begin(algo, &d.batch, &(tt_evaluator_t){.forward = s_no_forward}));
    assert_false(algorithm->after(algo, 0, &(tt_result_t){.trained = 1, .stats = stats, .norm = &(float){1}}));
    algorithm->metrics(algo, s_emit, &names);
    assert_int_equal(names.count, metrics);
    assert_int_equal(names.ratios, 0);
    d.batch.stale = true;
    assert_int_equal(algorithm->begin(algo, &d.batch, &(tt_evaluator_t){.forward = s_no_forward}), TT_DEVICE);
    algorithm->destroy(&algo);
    free(cfg);
    tt_inference_destroy(&net);
}

static void test_what_they_report_and_ask(void **state)
{
    (void)state;
    s_reports("a2c", 5);    /* learning rate, three losses, explained variance */
    s_reports("impala", 6); /* rho, too */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_settings_of_impala),
        cmocka_unit_test(test_an_update_is_ppos_of_one_step),
        cmocka_unit_test(test_sequences),
        cmocka_unit_test(test_what_they_report_and_ask),
    };
    return cmocka_run_group_tests(tests, s_setup, s_teardown);
}
