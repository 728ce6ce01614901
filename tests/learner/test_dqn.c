/*  DQN's settings: defaults, what it refuses and in which words, what it asks of collectors and of the replay, when the target
 *  network follows, and what it reports. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/job/fit.h"
#include "common/nn/inference.h"
#include "learner/algorithm.h"
#include "learner/algorithms/dqn_objective.h"
#include "learner/algorithms/dqn_options.h"
#include "tests/learner/near.h"
#include "tests/learner/segments.h"
#include "tests/test.h"

static const tt_algorithm_t *s_dqn(void)
{
    const tt_algorithm_t *found = NULL;
    assert_ok(tt_algorithm_find(&found, "dqn"));
    return found;
}

static tt_train_cfg_t s_train(void)
{
    return (tt_train_cfg_t){.num_envs = 4,
        .num_steps = 8,
        .learner.shards = 2,
        .seed = 1,
        .stop.env_steps = 50000,
        .space = {.obs = "float32[4]", .action = "discrete(3)"},
        .actor.kind = TT_ACT_ARGMAX};
}

static tt_status_t s_read(const char *yaml, const tt_train_cfg_t *train, dqn_cfg_t *cfg)
{
    tt_config_t *config = NULL;
    assert_ok(tt_config_parse(&config, yaml, strlen(yaml), "test.yaml"));
    tt_status_t status = tt_config_claim(config, s_dqn()->fields, cfg);
    if (status == TT_OK)
        status = tt_config_finish(config);
    if (status == TT_OK)
        status = s_dqn()->check(config, train, cfg);
    tt_config_destroy(&config);
    return status;
}

/*  As Stable-Baselines3's DQN. */
static void test_defaults(void **state)
{
    (void)state;
    const tt_train_cfg_t train = s_train();
    dqn_cfg_t cfg;
    assert_ok(s_read("algorithm: {}\n", &train, &cfg));
    assert_true(
        s_dqn()->gamma(&cfg) == 0.99 && cfg.off.common.learning_rate == 1e-4f && cfg.off.common.max_grad_norm == 10);
    assert_true(cfg.off.batch_size == 32 && cfg.off.n_step == 1 && cfg.off.random_shift == 0 && !cfg.double_q &&
                !cfg.dueling && cfg.loss == DQN_HUBER);
    assert_true(cfg.target_every == 10000 && cfg.off.tau == 1);
    assert_true(cfg.off.learning_starts == 100 && cfg.off.train_every == 4 && cfg.off.gradient_steps == 1);
    assert_true(!cfg.noisy && cfg.noisy_sigma == 0.5f);
    assert_true(dqn_epsilon_start(&cfg) == 1 && dqn_epsilon_end(&cfg) == 0.05);
    assert_true(cfg.off.capacity == 1000000 && !cfg.replay.prioritized);
    const tt_opt_spec_t opt = common_opt_spec(&cfg.off.common);
    assert_true(opt.kind == TT_OPT_ADAM && opt.eps == 1e-8f && opt.max_norm == 10);
}

/* ---- what is refused ------------------------------------------------------------------------------------------------ */

static void s_refused(const char *yaml, const tt_train_cfg_t *train, const char *first, const char *second)
{
    dqn_cfg_t cfg;
    assert_int_equal(s_read(yaml, train, &cfg), TT_CONFIG);
    if (!strstr(tt_err_text(), first) || !strstr(tt_err_text(), second))
        fail_msg("%s: '%s' has not '%s' and '%s'", yaml, tt_err_text(), first, second);
}

static void test_what_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *first, *second;
    } cases[] = {
        {"algorithm: {batch_size: 0}\n", "test.yaml:1:13: algorithm.batch_size", "1"},
        {"algorithm: {batch_size: 1048578}\n", "algorithm.batch_size", "1048576"},
        {"algorithm: {batch_size: 33}\n", "test.yaml:1:13: algorithm.batch_size: 33", "nearest: 34"},
        {"algorithm: {batch_size: 1}\n", "algorithm.batch_size: 1 ", "nearest: 2"},
        {"algorithm: {learning_starts: 50k}\n", "algorithm.learning_starts: 50000", "stop.env_steps is 50000"},
        {"algorithm: {train_every: 50k}\n", "algorithm.train_every: 50000 env steps, but stop.env_steps is 50000",
            "learning_starts has 100: nothing would be learned"},
        {"algorithm: {epsilon_end: 0.5, epsilon_start: 0.4}\n", "algorithm.epsilon_end: 0.5", "which is 0.4"},
        {"algorithm: {epsilon_start: -0.5}\n", "algorithm.epsilon_start: -0.5", "-1 for the usual"},
        {"algorithm: {noisy: true, epsilon_end: 0.1}\n", "algorithm.epsilon_end: 0.1",
            "which is 0 (default, with algorithm.noisy: leave epsilon_end away, too)"},
        {"algorithm: {noisy_sigma: 0}\n", "algorithm.noisy_sigma", "0.001"},
        {"algorithm: {n_step: 257}\n", "algorithm.n_step", "256"},
        {"algorithm: {loss: l1}\n", "algorithm.loss", "huber"},
        {"algorithm: {quantiles: 201}\n", "algorithm.quantiles", "200"},
        {"algorithm: {quantiles: 50, loss: mse}\n", "algorithm.quantiles: 50", "say huber"},
        {"algorithm: {atoms: 201}\n", "algorithm.atoms", "200"},
        {"algorithm: {atoms: 1}\n", "algorithm.atoms: 1 is no distribution", "2 to 200"},
        {"algorithm: {atoms: 51, quantiles: 50}\n", "test.yaml:1:13: algorithm.atoms: 51", "set one of both"},
        {"algorithm: {atoms: 51, v_max: -10}\n", "algorithm.v_max: -10 is not above", "which is -10 (default)"},
        {"algorithm: {atoms: 51, loss: mse}\n", "algorithm.loss: mse", "leave it away"},
        {"algorithm: {dueling: 2}\n", "test.yaml:1:13: algorithm.dueling", "true or false"},
        {"replay: {capacity: 31}\n", "test.yaml:1:10: replay.capacity: 31", "one batch, which has 32"},
        {"replay: {capacity: 200M}\n", "replay.capacity: 200000000", "more priorities than a learner that joins"},
        {"replay: {capacity: 32}\nalgorithm: {n_step: 9}\n", "replay.capacity: 32", "at least 64"},
        {"replay: {prioritized: true, beta: 0.9, beta_end: 0.5}\n", "replay.beta_end: 0.5", "which is 0.9"},
        {"replay: {prioritized: true, alpha: 0}\n", "replay.alpha", "0.001"},
        {"replay: {priority_delay: 65}\n", "replay.priority_delay", "64"},
    };
    const tt_train_cfg_t train = s_train();
    for (size_t i = 0; i < TT_COUNT(cases); i++)
        s_refused(cases[i].yaml, &train, cases[i].first, cases[i].second);
}

static void test_shifts_that_are_refused(void **state)
{
    (void)state;
    static const char four[] = "algorithm: {random_shift: 4}\n";
    dqn_cfg_t cfg;
    tt_train_cfg_t train = s_train();
    s_refused("algorithm: {random_shift: 65}\n", &train, "test.yaml:1:13: algorithm.random_shift", "64");
    s_refused(four, &train, "test.yaml:1:13: algorithm.random_shift: 4, but no encoder reads a picture",
        "(network.encoder: none): give it one that does");
    strcpy(train.network.encoder, "dense 8 relu");
    s_refused(four, &train, "no encoder reads a picture (network.encoder: dense 8 relu)", "set this to 0");
    strcpy(train.space.obs, "{at: float32[2], image: uint8[5, 7, 3]}");
    strcpy(train.network.encoder, "conv 4 2x2 relu");
    assert_ok(s_read(four, &train, &cfg));
    assert_int_equal(cfg.off.random_shift, 4);
    const tt_algorithm_shape_t shape = tt_algorithm_shape(s_dqn(), &train, &cfg);
    assert_int_equal(shape.feed.shift, 4);
    s_refused("algorithm: {random_shift: 5}\n", &train, "algorithm.random_shift: 5 pixels would leave nothing",
        "of 5 x 7: at most 4");
    train.network.rnn = TT_RNN_LSTM;
    s_refused("algorithm: {random_shift: 4, sequence_length: 4, burn_in: 0}\n", &train,
        "algorithm.random_shift: 4, but not with network.rnn", "set it to 0");
    strcpy(train.space.obs, "nothing");
    train.network.rnn = TT_RNN_NONE;
    assert_ok(s_read(four, &train, &cfg));
}

static void test_what_the_job_is_refused_for(void **state)
{
    (void)state;
    dqn_cfg_t cfg;
    tt_train_cfg_t train = s_train();
    train.normalize.obs = true;
    assert_ok(s_read("algorithm: {}\n", &train, &cfg));
    train = s_train();
    train.normalize.reward = true;
    s_refused("algorithm: {}\n", &train, "normalize.reward: true", "set it to false");

    train = s_train();
    train.learner.shards = 1; /* nobody joins */
    assert_ok(s_read("replay: {capacity: 100M}\n", &train, &cfg));
    strcpy(train.coordinator.listen, "tcp://127.0.0.1:7000");
    s_refused("replay: {capacity: 100M}\n", &train, "replay.capacity: 100000000", "coordinator.listen is not set");
    assert_ok(s_read("replay: {capacity: 100M, save: false}\n", &train, &cfg));

    train = s_train(); /* what joins is sent pieces */
    assert_true(train.learner.shards > 1);
    assert_ok(s_read("replay: {capacity: 100M}\n", &train, &cfg));

    train = s_train();
    train.stop.env_steps = 0;
    s_refused("algorithm: {}\n", &train, "algorithm.epsilon_steps", "stop.env_steps");
    assert_ok(s_read("algorithm: {epsilon_steps: 1000}\n", &train, &cfg));
    assert_ok(s_read("algorithm: {epsilon_start: 0.1, epsilon_end: 0.1}\n", &train, &cfg));
    s_refused(
        "algorithm: {epsilon_steps: 9}\nreplay: {prioritized: true}\n", &train, "replay.beta_steps", "stop.env_steps");
    assert_ok(s_read("algorithm: {epsilon_steps: 9}\nreplay: {prioritized: true, beta_steps: 9}\n", &train, &cfg));

    train = s_train();
    train.num_envs = 4096;
    train.num_steps = 2048;
    s_refused("algorithm: {train_every: 1000, gradient_steps: 1M}\nreplay: {capacity: 10M}\n", &train,
        "algorithm.gradient_steps: 1000000 for every 1000", "8389000000 optimizer steps in an update of 8388608");
    assert_ok(s_read("algorithm: {train_every: 4000, gradient_steps: 1M}\nreplay: {capacity: 10M}\n", &train, &cfg));

    train = s_train();
    train.lag = 7;
    assert_ok(s_read("algorithm: {}\n", &train, &cfg));
}

/*  A replay of so many bytes, filled with so many batches, and more: has every stripe always something to draw? */
typedef struct {
    const tt_train_cfg_t *train;
    const dqn_cfg_t *cfg;
    uint64_t capacity, batches;
    bool cut; /* at every row the episodes of all envs but the last come to a time limit */
} filled_t;

static void s_rows_of(const filled_t *c, const tt_columns_t *columns, tt_segment_t *at)
{
    const uint32_t N = c->train->num_envs, rows = N * c->train->num_steps;
    *at = (tt_segment_t){.age = tt_array0(N, sizeof(uint32_t)),
        .carry = tt_array0(tt_mul(N, columns->carry + 1), sizeof(float)),
        .final_t = tt_array0(rows, sizeof(uint32_t)),
        .final_env = tt_array0(rows, sizeof(uint32_t))};
    for (uint32_t i = 0; i <= columns->truncated; i++) {
        at->column[i] = tt_array0(rows, columns->at[i].bytes);
        at->last[i] = columns->at[i].keep ? tt_array0(N, columns->at[i].bytes) : NULL;
        at->final[i] = columns->at[i].keep ? tt_array0(rows, columns->at[i].bytes) : NULL;
    }
}

static void s_rows_free(const tt_columns_t *columns, tt_segment_t *at)
{
    for (uint32_t i = 0; i <= columns->truncated; i++) {
        free(at->column[i]);
        free(at->last[i]);
        free(at->final[i]);
    }
    free(at->age);
    free(at->carry);
    free(at->final_t);
    free(at->final_env);
}

static uint32_t s_cut(const filled_t *c, const tt_columns_t *columns, tt_segment_t *at)
{
    const uint32_t N = c->train->num_envs;
    uint32_t K = 0;
    for (uint32_t t = 0; c->cut && t < c->train->num_steps; t++) {
        for (uint32_t e = 0; e + 1 < N; e++, K++) {
            ((uint8_t *)at->column[columns->truncated])[t * N + e] = 1;
            at->final_t[K] = t;
            at->final_env[K] = e;
        }
    }
    return K;
}

static replay_cfg_t s_replay_cfg(const filled_t *c, const tt_columns_t *columns)
{
    const off_policy_form_t form = dqn_form(c->train, c->cfg);
    return (replay_cfg_t){.columns = columns,
        .store = (1ull << columns->reward) - 1,
        .N = c->train->num_envs,
        .T = c->train->num_steps,
        .capacity = c->capacity,
        .stripes = c->train->learner.shards,
        .ahead = c->cfg->off.n_step,
        .length = form.length,
        .burn = form.burn,
        .carry = form.length ? columns->carry : 0,
        .gamma = 0.99,
        .stack = columns->stack.frames};
}

static bool s_always_ready(const filled_t *c)
{
    tt_columns_t *columns = NULL;
    replay_t *replay = NULL;
    tt_segment_t at;
    assert_ok(tt_train_columns(&columns, c->train));
    s_rows_of(c, columns, &at);
    const replay_cfg_t cfg = s_replay_cfg(c, columns);
    const replay_part_t part = {.at = &at, .E = cfg.N, .count = cfg.N, .K = s_cut(c, columns, &at)};
    bool ready = true;
    const bool fits = replay_new(&replay, &cfg) == TT_OK;
    assert_true(fits || cfg.length);
    for (uint64_t b = 0; fits && b < 40 * c->batches; b++) {
        for (uint32_t e = 0; e < cfg.N; e++)
            at.age[e] = c->cut && e + 1 < cfg.N ? 0 : (uint32_t)b * cfg.T;
        assert_ok(replay_insert(replay, b, &part, 1, NULL));
        ready = ready && (b < c->batches || replay_ready(replay));
    }
    replay_destroy(&replay);
    s_rows_free(columns, &at);
    tt_columns_destroy(&columns);
    return fits && ready;
}

/*  The least capacity that check() lets through, in batches. */
static uint64_t s_least(const tt_train_cfg_t *train, const uint32_t *k, dqn_cfg_t *cfg)
{
    uint64_t batches = 0;
    tt_status_t status;
    do {
        char yaml[160];
        snprintf(yaml, sizeof yaml,
            "algorithm: {n_step: %u, sequence_length: %u, burn_in: %u, batch_size: 8}\nreplay: {capacity: %" PRIu64
            "}\n",
            k[3], k[4] ? k[4] : 1, k[5], ++batches * k[0] * k[1]);
        status = s_read(yaml, train, cfg);
    } while (status != TT_OK && batches < 10000);
    assert_ok(status);
    return batches;
}

enum { ROW = 4 * 4 + 4 + 4 + 1 + 1 }; /* bytes of what is stored of one */

/*  What check() lets through can be trained on, whatever ends: few envs, many shards, stacks; and a batch less cannot. */
static void test_a_capacity_that_passes_is_never_empty(void **state)
{
    (void)state;
    static const uint32_t kinds[][7] = {/* envs, steps, shards, n, length and burn-in of sequences, frames of a stack */
        {1, 32, 2, 1}, {1, 4, 4, 1}, {2, 5, 8, 3}, {3, 16, 4, 1}, {8, 1, 2, 5}, {1, 1, 1, 4}, {1, 16, 2, 1, 8, 3},
        {3, 5, 4, 2, 9, 4}, {8, 10, 8, 5, 20, 10}, {2, 8, 2, 1, 7, 0}, {8, 1, 2, 5, 0, 0, 4}, {2, 3, 4, 2, 0, 0, 8},
        {3, 5, 4, 2, 9, 4, 4}};
    for (size_t i = 0; i < TT_COUNT(kinds); i++) {
        const uint32_t *k = kinds[i];
        tt_train_cfg_t train = s_train();
        dqn_cfg_t cfg;
        train.num_envs = k[0];
        train.num_steps = k[1];
        train.learner.shards = k[2];
        train.network.rnn = k[4] ? TT_RNN_GRU : TT_RNN_NONE;
        train.network.rnn_size = 4;
        train.stack.frames = k[6];
        filled_t c = {.train = &train, .cfg = &cfg, .batches = s_least(&train, k, &cfg)};
        c.capacity = tt_algorithm_shape(s_dqn(), &train, &cfg).feed.capacity;
        assert_true(s_always_ready(&c));
        c.cut = true;
        assert_true(s_always_ready(&c));
        c.cut = false;
        c.capacity = --c.batches * k[0] * (k[1] * ROW + (k[4] ? train.network.rnn_size * sizeof(float) : 0));
        assert_true(c.batches == 0 || !s_always_ready(&c));
    }
}

/* ---- what it asks for ----------------------------------------------------------------------------------------------- */

static void test_shape(void **state)
{
    (void)state;
    tt_train_cfg_t train = s_train();
    dqn_cfg_t cfg;
    tt_algorithm_shape_t shape = {0};
    assert_ok(s_read("algorithm: {n_step: 3, learning_starts: 1000, train_every: 256, gradient_steps: 128}\n"
                     "replay: {capacity: 100k}\n",
        &train, &cfg));
    s_dqn()->shape(&train, &cfg, &shape);
    assert_true(shape.actor.kind == TT_ACT_ARGMAX && shape.actor.epsilon == 1 && shape.actor.epsilon_end == 0.05);
    assert_true(shape.actor.epsilon_rows == 5000 && shape.actor.random_rows == 1000);
    assert_true(shape.feed.source == TT_FEED_REPLAY && shape.feed.ahead == 3 && shape.feed.units == 32);
    assert_true(shape.feed.start == 1000 && shape.feed.every == 256 && shape.feed.steps == 128);
    assert_true(shape.feed.alpha == 0 && shape.ride == 0 && shape.sets == 2);
    assert_int_equal(shape.feed.capacity, 100000 * (4 * 4 + 4 + 4 + 1 + 1));

    assert_true(shape.actor.noisy == 0);

    shape = (tt_algorithm_shape_t){0};
    assert_ok(s_read("algorithm: {noisy: true, noisy_sigma: 0.25}\n", &train, &cfg));
    s_dqn()->shape(&train, &cfg, &shape);
    assert_true(shape.actor.noisy == 0.25f && shape.actor.epsilon == 0 && shape.actor.epsilon_end == 0);

    train.space.mask = true;
    shape = (tt_algorithm_shape_t){0};
    assert_ok(s_read("algorithm: {epsilon_steps: 77}\nreplay: {prioritized: true, capacity: 64}\n", &train, &cfg));
    s_dqn()->shape(&train, &cfg, &shape);
    assert_int_equal(shape.feed.capacity, 64 * (4 * 4 + 3 + 4 + 4 + 1 + 1));
    assert_true(shape.actor.epsilon_rows == 77);
    assert_true(shape.feed.alpha == 0.6f && shape.feed.epsilon == 1e-6f && shape.feed.priority_delay == 1);
    assert_true(shape.feed.beta == 0.4f && shape.feed.beta_end == 1 && shape.feed.beta_rows == 50000);
    assert_int_equal(shape.ride, 32);

    assert_false(shape.actor.dueling);
    assert_ok(s_read("algorithm: {dueling: true}\n", &train, &cfg));
    s_dqn()->shape(&train, &cfg, &shape);
    assert_true(shape.actor.dueling && shape.actor.quantiles == 0);
    assert_ok(s_read("algorithm: {quantiles: 50}\n", &train, &cfg));
    s_dqn()->shape(&train, &cfg, &shape);
    assert_true(!shape.actor.dueling && shape.actor.quantiles == 50 && shape.actor.v_max == 0);
    assert_ok(s_read("algorithm: {atoms: 51, dueling: true}\n", &train, &cfg));
    s_dqn()->shape(&train, &cfg, &shape);
    assert_true(shape.actor.dueling && shape.actor.atoms == 51 && shape.actor.v_min == -10 && shape.actor.v_max == 10);
}

/*  Of a network that remembers units are sequences, the errors of all their rows ride, and what is carried into batches is kept. */
static void test_shape_of_sequences(void **state)
{
    (void)state;
    tt_train_cfg_t train = s_train();
    dqn_cfg_t cfg;
    tt_algorithm_shape_t shape = {0};
    static const char yaml[] =
        "algorithm: {n_step: 5, batch_size: 6}\nreplay: {prioritized: true, capacity: 6400, eta: 0.25}\n";
    assert_true(s_dqn()->sequences);
    assert_ok(s_read(yaml, &train, &cfg));
    s_dqn()->shape(&train, &cfg, &shape);
    assert_true(shape.feed.length == 0 && shape.feed.burn == 0 && shape.ride == 6);
    train.network.rnn = TT_RNN_LSTM;
    train.network.rnn_size = 16;
    assert_ok(s_read(yaml, &train, &cfg));
    s_dqn()->shape(&train, &cfg, &shape);
    assert_true(shape.feed.length == 80 && shape.feed.burn == 40 && shape.feed.ahead == 5 && shape.feed.units == 6);
    assert_true(shape.ride == 6 * 80 && shape.feed.eta == 0.25f);
    assert_int_equal(
        shape.forwards, (80 + 125 + 40 + 40) / 80); /* its own, the target's of all frames, its own of the burn-in */
    assert_int_equal(shape.feed.capacity, 6400 * (4 * 4 + 4 + 4 + 1 + 1) + 6400 / 8 * 2 * 16 * 4);

    s_refused("algorithm: {sequence_length: 2049}\n", &train, "algorithm.sequence_length", "2048");
    s_refused("algorithm: {burn_in: 2049}\n", &train, "algorithm.burn_in", "2048");
    s_refused("algorithm: {rescale: -1}\n", &train, "algorithm.rescale", "0");
    s_refused("replay: {eta: 1.5}\n", &train, "replay.eta", "1");
    s_refused(
        "algorithm: {batch_size: 20000}\n", &train, "algorithm.batch_size: 20000 sequences", "more than 1048576 steps");
    s_refused("replay: {capacity: 96}\n", &train, "replay.capacity: 96", "at least 512");
    train.network.rnn_size = 4096;
    train.learner.threads = 64;
    s_refused(
        "algorithm: {sequence_length: 2000}\n", &train, "network.rnn_size 4096", "lower it, algorithm.sequence_length");
}

/*  Step by step through a run: the target follows with the first step after another multiple. */
static void s_check_follows(const tt_train_cfg_t *train, const dqn_cfg_t *cfg)
{
    const uint64_t batch = (uint64_t)train->num_envs * train->num_steps;
    uint64_t made = 0, passed = 0, followed = 0;
    for (uint64_t update = 0; update < 200; update++) {
        const uint64_t rows = (update + 1) * batch;
        const uint64_t owed =
            replay_owed(rows, cfg->off.learning_starts, cfg->off.train_every, cfg->off.gradient_steps);
        for (uint32_t step = 0; made < owed; step++, made++) {
            const bool follows = rows / cfg->target_every > passed;
            const tt_at_t at = {.update = update, .rows = rows, .total = made, .step = step};
            passed = rows / cfg->target_every;
            followed += follows;
            assert_int_equal(dqn_follows(train, cfg, &at), follows);
        }
    }
    assert_true(followed > 0);
}

static void test_when_the_target_follows(void **state)
{
    (void)state;
    static const uint32_t kinds[][6] = {/* envs, steps, starts, every, steps, target */
        {4, 8, 0, 4, 1, 100}, {4, 8, 100, 4, 1, 100}, {1, 256, 1000, 256, 128, 10}, {1, 16, 100, 100, 3, 64},
        {3, 7, 50, 64, 2, 600}, {8, 1, 9, 1, 1, 8}, {5, 5, 1, 1000, 1, 1}};
    for (size_t i = 0; i < TT_COUNT(kinds); i++) {
        const uint32_t *k = kinds[i];
        tt_train_cfg_t train = s_train();
        train.num_envs = k[0];
        train.num_steps = k[1];
        const dqn_cfg_t cfg = {
            .off.learning_starts = k[2], .off.train_every = k[3], .off.gradient_steps = k[4], .target_every = k[5]};
        s_check_follows(&train, &cfg);
    }
}

/*  The gain is of the head that is acted by, though no tower is called an actor. */
static void test_the_heads_gain(void **state)
{
    (void)state;
    const tt_train_cfg_t train = s_train();
    const tt_net_spec_t spec = {.obs = 4,
        .towers = 1,
        .tower = {{.name = "q", .hidden_count = 1, .hidden = {8}, .activation = TT_NN_RELU, .out = 3}}};
    const float zeros[4] = {0};
    const void *obs = (const float[]){1, 2, 3, 4};
    float q[3];
    tt_inference_t *net = NULL;
    dqn_cfg_t cfg;
    assert_ok(s_read("algorithm: {head_gain: 0}\n", &train, &cfg));
    assert_ok(tt_inference_new(&net, "cpu", 0, &spec));
    assert_ok(tt_algorithm_init(s_dqn(), &cfg, tt_inference_net(net), tt_inference_stream(net), 1, TT_NO_PROGRESS));
    assert_ok(tt_inference_run(net, &obs, 1, NULL, (float *const[]){q}));
    assert_memory_equal(q, zeros, sizeof q);
    cfg.off.common.head_gain = 1;
    assert_ok(tt_algorithm_init(s_dqn(), &cfg, tt_inference_net(net), tt_inference_stream(net), 1, TT_NO_PROGRESS));
    assert_ok(tt_inference_run(net, &obs, 1, NULL, (float *const[]){q}));
    assert_true(q[0] != 0 && q[1] != 0 && q[2] != 0);
    tt_inference_destroy(&net);
}

/*  Of a dueling network it is the advantages': without them every choice is worth what the state is. */
static void test_the_advantages_gain(void **state)
{
    (void)state;
    const tt_train_cfg_t train = s_train();
    const uint32_t hidden[] = {8, 8};
    const tt_net_spec_t spec = tt_net_values(4, hidden, 2, TT_NN_RELU, 3, &(tt_values_t){.dueling = true});
    const void *obs = (const float[]){1, 2, 3, 4};
    float value, q[3];
    tt_inference_t *net = NULL;
    dqn_cfg_t cfg;
    assert_ok(s_read("algorithm: {dueling: true, head_gain: 0}\n", &train, &cfg));
    assert_ok(tt_inference_new(&net, "cpu", 0, &spec));
    assert_ok(tt_algorithm_init(s_dqn(), &cfg, tt_inference_net(net), tt_inference_stream(net), 1, TT_NO_PROGRESS));
    assert_ok(tt_inference_run(net, &obs, 1, NULL, (float *const[]){NULL, &value, NULL, q}));
    assert_true(value != 0 && q[0] == value && q[1] == value && q[2] == value);
    cfg.off.common.head_gain = 1;
    assert_ok(tt_algorithm_init(s_dqn(), &cfg, tt_inference_net(net), tt_inference_stream(net), 1, TT_NO_PROGRESS));
    assert_ok(tt_inference_run(net, &obs, 1, NULL, (float *const[]){NULL, &value, NULL, q}));
    assert_true(q[0] != value && q[1] != value && q[2] != value);
    tt_inference_destroy(&net);
}

/* ---- what it reports ------------------------------------------------------------------------------------------------ */

typedef struct {
    int count;
    double loss, q;
} said_t;

static void s_emit(void *ctx, const char *name, double value)
{
    said_t *said = ctx;
    said->count++;
    if (strcmp(name, "losses/td_loss") == 0)
        said->loss = value;
    if (strcmp(name, "losses/q_values") == 0)
        said->q = value;
}

static said_t s_say(const tt_algo_t *algo)
{
    said_t said = {0};
    s_dqn()->metrics(algo, s_emit, &said);
    return said;
}

static void s_after(tt_algo_t *algo, uint32_t step, const float *stats)
{
    assert_false(s_dqn()->after(algo, step, &(tt_result_t){.trained = 1, .stats = stats, .norm = &(float){1}}));
}

/*  Means over an update; before the first step there is nothing to tell, and an update without a step tells of the one before. */
static void test_what_it_reports(void **state)
{
    (void)state;
    const tt_train_cfg_t train = s_train();
    tt_columns_t *columns = made_columns(train.space.obs, train.space.action, false);
    tt_algo_t *algo = NULL;
    dqn_cfg_t cfg;
    assert_ok(s_read("algorithm: {}\n", &train, &cfg));
    assert_ok(s_dqn()->create(&algo, &train, columns, &cfg));
    assert_int_equal(s_say(algo).count, 1); /* the learning rate */
    for (uint32_t step = 0; step < 2; step++)
        s_after(algo, step, (float[TT_LOSS_STATS]){[DQN_LOSS] = 1 + (float)step, [DQN_Q] = 4});
    assert_int_equal(s_say(algo).count, 1 + DQN_STATS);
    assert_true(s_say(algo).loss == 1.5 && s_say(algo).q == 4);
    s_after(algo, 0, (float[TT_LOSS_STATS]){[DQN_LOSS] = 7});
    assert_true(s_say(algo).loss == 7 && s_say(algo).q == 0);
    s_dqn()->destroy(&algo);
    tt_columns_destroy(&columns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_shifts_that_are_refused),
        cmocka_unit_test(test_what_the_job_is_refused_for),
        cmocka_unit_test(test_a_capacity_that_passes_is_never_empty),
        cmocka_unit_test(test_shape),
        cmocka_unit_test(test_shape_of_sequences),
        cmocka_unit_test(test_when_the_target_follows),
        cmocka_unit_test(test_the_heads_gain),
        cmocka_unit_test(test_the_advantages_gain),
        cmocka_unit_test(test_what_it_reports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
