/*  PPO's rules between settings, schedules, shuffle, early end and metrics; and the list of algorithms. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "learner/algorithm.h"
#include "learner/algorithms/ppo_objective.h"
#include "learner/algorithms/ppo_options.h"
#include "tests/learner/segments.h"
#include "tests/test.h"

static const tt_algorithm_t *s_ppo(void)
{
    const tt_algorithm_t *ppo = NULL;
    assert_ok(tt_algorithm_find(&ppo, "ppo"));
    return ppo;
}

static void test_algorithms_are_found_by_name(void **state)
{
    (void)state;
    size_t count;
    const tt_algorithm_t *const *all = tt_algorithms(&count);
    const tt_algorithm_t *found = NULL;
    assert_true(count >= 1);
    for (size_t i = 0; i < count; i++) {
        assert_ok(tt_algorithm_find(&found, all[i]->name));
        assert_ptr_equal(found, all[i]);
    }
    assert_int_equal(tt_algorithm_find(&found, "pop"), TT_NOT_FOUND);
    assert_non_null(strstr(tt_err_text(), "'ppo'"));
}

/*  Who does not say that it can is refused, before its own rules are asked. */
static void test_who_trains_networks_that_remember(void **state)
{
    (void)state;
    static const char yaml[] = "network:\n  rnn: lstm\n";
    tt_config_t *config = NULL;
    const tt_algorithm_t *sac = NULL, *a2c = NULL;
    const tt_train_cfg_t train = {
        .num_envs = 3, .num_steps = 5, .learner.shards = 8, .network.rnn = TT_RNN_LSTM, .network.rnn_size = 4};
    assert_ok(tt_algorithm_find(&sac, "sac"));
    assert_ok(tt_algorithm_find(&a2c, "a2c"));
    assert_ok(tt_config_parse(&config, yaml, strlen(yaml), "test.yaml"));
    assert_int_equal(tt_algorithm_check(sac, config, &train, NULL), TT_CONFIG);
    assert_non_null(strstr(tt_err_text(), "test.yaml:2:"));
    assert_non_null(strstr(tt_err_text(), "sac trains networks that remember nothing"));
    assert_non_null(strstr(tt_err_text(), "ppo or a2c or impala or dqn"));
    const ppo_cfg_t cfg = {.epochs = 1};
    assert_ok(tt_algorithm_check(a2c, config, &train, &cfg)); /* all envs are its one minibatch */
    assert_int_equal(tt_algorithm_check(s_ppo(), config, &train, &cfg), TT_CONFIG);
    assert_non_null(strstr(tt_err_text(), "minibatches"));
    tt_config_destroy(&config);
}

/* ---- settings --------------------------------------------------------------------------------------------------------- */

static uint32_t s_shards = 4, s_envs = 6;
static int s_rnn = TT_RNN_NONE;
static uint32_t s_units, s_threads, s_steps = 32;
static bool s_shared = true;

static tt_status_t s_check(const char *yaml, tt_train_cfg_t *train, ppo_cfg_t *cfg)
{
    tt_config_t *config = NULL;
    assert_ok(tt_config_parse(&config, yaml, strlen(yaml), "test.yaml"));
    tt_config_put(config, "env", "CartPole-v1", "test");
    tt_config_ignore(config, "space.");
    assert_ok(tt_config_claim(config, s_ppo()->fields, cfg));
    memset(train, 0, sizeof *train);
    train->num_envs = s_envs;
    train->num_steps = s_steps; /* 192 rows */
    train->learner.shards = s_shards;
    train->learner.threads = s_threads;
    train->network.rnn = s_rnn;
    train->network.rnn_size = s_units;
    train->network.shared = s_shared;
    const tt_status_t status = s_ppo()->check(config, train, cfg);
    tt_config_destroy(&config);
    return status;
}

static void s_refused(const char *yaml, const char *part)
{
    tt_train_cfg_t train;
    ppo_cfg_t cfg;
    assert_int_equal(s_check(yaml, &train, &cfg), TT_CONFIG);
    if (!strstr(tt_err_text(), part))
        fail_msg("'%s' lacks '%s'", tt_err_text(), part);
}

static void test_defaults(void **state)
{
    (void)state;
    tt_train_cfg_t train;
    ppo_cfg_t cfg;
    assert_ok(s_check("algorithm: {name: ppo}\n", &train, &cfg));
    assert_int_equal(ppo_minibatch_rows(&train, &cfg), 48);
    assert_true(isnan(cfg.target_kl) && cfg.recompute && cfg.normalize_advantage && !cfg.clip_value);
    assert_true(s_ppo()->head_gain(&cfg) == 0.01f && s_ppo()->log_std0(&cfg) == 0 && s_ppo()->gamma(&cfg) == 0.99);
}

static void test_minibatches_must_divide(void **state)
{
    (void)state;
    tt_train_cfg_t train;
    ppo_cfg_t cfg;
    s_refused("algorithm:\n  minibatches: 5\n", "test.yaml:2:");
    s_refused("algorithm:\n  minibatches: 5\n", "nearest that works: 4");
    s_refused("algorithm: {minibatches: 36}\n", "nearest that works: 24"); /* 48 is as near */
    s_refused("algorithm: {minibatch_size: 50}\n", "nearest that works: 48");
    s_refused("algorithm: {minibatch_size: 1}\n", "nearest that works: 4");
    s_refused("algorithm: {minibatch_size: 4000}\n", "nearest that works: 192");
    assert_ok(s_check("algorithm: {minibatches: 48}\n", &train, &cfg));
    assert_ok(s_check("algorithm: {minibatches: 5, minibatch_size: 64}\n", &train, &cfg)); /* the size wins */
    s_shards = 128;
    s_refused("algorithm: {}\n", "nearest that does: num_steps 128");
    s_shards = 4;
}

/*  Its numbers without it, log-probabilities of nobody, and a correction that counts more than what it corrects. */
static void test_vtrace_rules(void **state)
{
    (void)state;
    tt_train_cfg_t train;
    ppo_cfg_t cfg;
    assert_ok(s_check("algorithm: {vtrace: true, vtrace_rho: 2, vtrace_c: 1.5}\n", &train, &cfg));
    assert_true(cfg.vtrace && cfg.vtrace_rho == 2 && cfg.vtrace_c == 1.5f);
    s_refused("algorithm:\n  vtrace_rho: 2\n", "test.yaml:2:3: algorithm.vtrace_rho: is V-trace's");
    s_refused("algorithm: {vtrace_c: 0.5}\n", "algorithm.vtrace_c: is V-trace's");
    s_refused("algorithm: {vtrace: true, recompute: false}\n", "algorithm.recompute: false, but algorithm.vtrace");
    s_refused("algorithm: {vtrace: true, vtrace_c: 1.5}\n", "1.5 is above algorithm.vtrace_rho 1");
}

/*  A minibatch is whole envs, and shards divide nothing. */
/*  16 GiB are 32 sequences of 8192 steps of 9 x 1820.4 floats. */
static void test_what_is_kept_of_sequences(void **state)
{
    (void)state;
    tt_train_cfg_t train;
    ppo_cfg_t cfg;
    static const char one[] = "algorithm: {minibatches: 1}\nnetwork:\n  rnn_size: 7\n";
    s_rnn = TT_RNN_LSTM;
    s_envs = 512;
    s_shards = 16;
    s_steps = 8192;
    s_units = 1820 / 16 * 16;
    assert_ok(s_check(one, &train, &cfg)); /* 32 to a shard */
    s_units += 1;                          /* is as much as 16 more */
    s_refused(one, "test.yaml:3:3: network.rnn_size 1809: 32 sequences of 8192 steps at a time, in each of 1 threads, "
                   "are 16416 MiB that a learner keeps while it trains on them, at most 16384 are possible: lower it, "
                   "num_steps or learner.threads, or raise learner.shards");
    assert_ok(s_check("algorithm: {minibatches: 2}\n", &train, &cfg));
    s_envs = 2048; /* in groups of 32, one after another */
    s_units -= 1;
    assert_ok(s_check(one, &train, &cfg));
    s_threads = 2;
    s_refused(one, "in each of 2 threads, are 32544 MiB");
    s_threads = 0;
    s_shared = false;
    s_refused(one, "in each of 1 threads, are 32544 MiB");
    s_units = 904;
    s_refused(one, "network.rnn_size 904: ");
    s_units = 896;
    assert_ok(s_check(one, &train, &cfg));
    s_units = 65536;
    s_envs = 1024;
    s_steps = 65536; /* as much as can be said */
    s_threads = TT_THREADS_MAX;
    s_refused(one, "are 2415919104 MiB");
    s_rnn = TT_RNN_NONE;
    s_envs = 6;
    s_shards = 4;
    s_steps = 32;
    s_units = 0;
    s_threads = 0;
    s_shared = true;
}

static void test_minibatches_of_envs(void **state)
{
    (void)state;
    tt_train_cfg_t train;
    ppo_cfg_t cfg;
    s_rnn = TT_RNN_GRU;
    s_shards = 16;
    s_refused("algorithm:\n  minibatches: 5\n", "test.yaml:2:");
    s_refused("algorithm: {minibatches: 5}\n", "nearest that works: set algorithm.minibatches to 6");
    s_refused("algorithm: {minibatches: 48}\n", "nearest that works: set algorithm.minibatches to 6");
    s_refused("algorithm: {}\nnetwork: {rnn: gru}\n", "with network.rnn (test.yaml:2:");
    s_refused("algorithm: {}\n", "algorithm.minibatches, which is 4 where it is not set, must divide num_envs 6");
    s_refused("algorithm: {minibatch_size: 48}\n", "must be num_steps 32 times a divisor of num_envs 6");
    s_refused("algorithm: {minibatch_size: 48}\n", "nearest that works: 64");
    s_refused("algorithm: {minibatch_size: 128}\n", "nearest that works: 96");
    s_refused("algorithm: {minibatch_size: 1}\n", "nearest that works: 32");
    s_refused("algorithm: {minibatch_size: 4000}\n", "nearest that works: 192");
    assert_ok(s_check("algorithm: {minibatches: 3}\n", &train, &cfg));
    assert_int_equal(ppo_minibatch_rows(&train, &cfg), 64);
    assert_ok(s_check("algorithm: {minibatch_size: 96}\n", &train, &cfg));
    for (s_envs = 1; s_envs < 4; s_envs++) {
        char nearest[64];
        snprintf(nearest, sizeof nearest, "set algorithm.minibatches to %u", s_envs);
        s_refused("algorithm: {}\n", nearest);
        s_refused("algorithm: {minibatch_size: 128}\n", "nearest that works");
        assert_ok(s_check("algorithm: {minibatches: 1}\n", &train, &cfg));
    }
    s_envs = 8;
    assert_ok(s_check("algorithm: {}\n", &train, &cfg));
    s_envs = 6;
    s_shards = 4;
    s_rnn = TT_RNN_NONE;
}

static void test_annealing_needs_an_end(void **state)
{
    (void)state;
    tt_train_cfg_t train;
    ppo_cfg_t cfg;
    s_refused("algorithm:\n  anneal: linear\n", "algorithm.anneal_steps");
    s_refused("algorithm:\n  clip_anneal: linear\n", "stop.env_steps");
    assert_ok(s_check("algorithm: {anneal: linear, anneal_steps: 1000}\n", &train, &cfg));
}

/*  CleanRL: (iteration - 1) / num_iterations with num_iterations = total / batch, rounded down. */
static void test_progress(void **state)
{
    (void)state;
    const tt_train_cfg_t train = {.num_envs = 4, .num_steps = 128, .stop = {.env_steps = 500000}};
    ppo_cfg_t cfg = {0};
    assert_true(ppo_progress(&train, &cfg, 0) == 0);
    assert_true(ppo_progress(&train, &cfg, 512 * 488) == 488 / 976.0);
    assert_true(ppo_progress(&train, &cfg, 512 * 976) == 1);
    assert_true(ppo_progress(&train, &cfg, 512 * 2000) == 1);
    cfg.anneal_steps = 512 * 10;
    assert_true(ppo_progress(&train, &cfg, 512 * 5) == 0.5);
}

/* ---- an update -------------------------------------------------------------------------------------------------------- */

enum { T = 32, N = 6, ROWS = T * N };

typedef struct {
    float obs[ROWS], reward[ROWS], log_prob[ROWS], value[ROWS], last_value[N];
    int32_t action[ROWS];
    uint8_t none[ROWS];
    const void *rows[ROWS];
    tt_batch_t batch;
    tt_train_cfg_t train;
    ppo_cfg_t cfg;
    tt_columns_t *columns;
    tt_algo_t *algo;
} update_t;

static void s_setup(update_t *u, const char *yaml)
{
    memset(u, 0, sizeof *u);
    assert_ok(s_check(yaml, &u->train, &u->cfg));
    u->train.network.rnn_size = 4;
    u->train.network.shared = true;
    for (int i = 0; i < ROWS; i++) {
        u->rows[i] = &u->obs[i];
        u->reward[i] = (float)(i % 7) - 3;
        u->value[i] = (float)(i % 5);
        u->log_prob[i] = -0.7f;
    }
    u->batch = (tt_batch_t){.T = T,
        .N = N,
        .D = 1,
        .obs = u->rows,
        .last = u->rows,
        .action = {u->action},
        .reward = u->reward,
        .terminated = u->none,
        .truncated = u->none,
        .log_prob = u->log_prob,
        .value = u->value,
        .last_value = u->last_value};
    u->columns = made_columns("float32[1]", "discrete(2)", false);
    u->batch.columns = u->columns;
    if (u->train.network.rnn != TT_RNN_NONE)
        tt_columns_put_carry(u->columns, 4);
    assert_ok(s_ppo()->create(&u->algo, &u->train, u->columns, &u->cfg));
}

static void s_teardown(update_t *u)
{
    s_ppo()->destroy(&u->algo);
    tt_columns_destroy(&u->columns);
}

static tt_status_t s_no_forward(void *ctx, tt_batch_rows_t which, float *const *out)
{
    (void)ctx, (void)which, (void)out;
    return tt_err(TT_DEVICE, "no forward here");
}

static void s_begin(update_t *u, uint64_t update)
{
    u->batch.update = update;
    u->batch.env_steps = update * ROWS;
    assert_ok(s_ppo()->begin(u->algo, &u->batch, &(tt_evaluator_t){.forward = s_no_forward}));
}

/*  Every pass goes over every row once, in an order of its own; the same step gives the same rows again, whatever was
 *  asked for in between. */
static void test_shuffle(void **state)
{
    (void)state;
    static update_t u;
    s_setup(&u, "algorithm: {epochs: 3}\n");
    s_begin(&u, 4);
    assert_int_equal(s_ppo()->steps(u.algo), 12);
    uint32_t seen[ROWS] = {0}, first[12];
    tt_minibatch_t m;
    for (uint32_t step = 0; step < 12; step++) {
        assert_ok(s_ppo()->minibatch(u.algo, &(tt_at_t){.step = step}, &m));
        assert_int_equal(m.rows, 48);
        first[step] = m.row[0];
        for (uint32_t i = 0; i < m.rows; i++)
            seen[m.row[i]]++;
        if (step % 4 == 3)
            for (int i = 0; i < ROWS; i++)
                assert_int_equal(seen[i], step / 4 + 1);
    }
    assert_false(first[0] == first[4] && first[4] == first[8] && first[1] == first[5]);
    for (uint32_t k = 0; k < 12; k++) {
        const uint32_t step = k * 7 % 12;
        assert_ok(s_ppo()->minibatch(u.algo, &(tt_at_t){.step = step}, &m));
        assert_int_equal(m.row[0], first[step]);
    }
    s_begin(&u, 5); /* another update, another order */
    uint32_t same = 0;
    for (uint32_t step = 0; step < 12; step++) {
        assert_ok(s_ppo()->minibatch(u.algo, &(tt_at_t){.step = step}, &m));
        same += m.row[0] == first[step];
    }
    assert_true(same < 3);
    s_teardown(&u);
}

/*  Envs are shuffled as rows would be, and each has all its steps behind one another. */
static void test_shuffle_of_envs(void **state)
{
    (void)state;
    static update_t u, rows;
    s_setup(&rows, "algorithm: {epochs: 3, minibatches: 1}\n");
    s_rnn = TT_RNN_GRU;
    s_setup(&u, "algorithm: {epochs: 3, minibatches: 3}\n");
    s_rnn = TT_RNN_NONE;
    s_begin(&u, 4);
    s_begin(&rows, 4);
    assert_int_equal(s_ppo()->steps(u.algo), 9);
    uint32_t first[9];
    tt_minibatch_t m;
    for (uint32_t step = 0; step < 9; step++) {
        uint32_t word[4];
        assert_ok(s_ppo()->minibatch(u.algo, &(tt_at_t){.step = step}, &m));
        assert_int_equal(m.rows, 2 * T);
        assert_int_equal(m.length, T);
        assert_true(((const ppo_loss_t *)m.params)->weight == 1 / (float)m.rows);
        first[step] = m.row[0];
        for (uint32_t i = 0; i < m.rows; i++)
            assert_int_equal(m.row[i], i % T * N + m.row[i - i % T]);
        assert_true(m.row[0] < N && m.row[T] < N);
        if (step % 3 < 2)
            continue;
        tt_draw(
            word, u.train.seed, TT_STREAM_SHUFFLE, 4, (uint64_t)(step / 3) << 32); /* the last place is drawn first */
        assert_int_equal(m.row[T], tt_below(word[0], N));
    }
    for (uint32_t pass = 0; pass < 9; pass += 3)
        assert_true(first[pass] != first[pass + 1] && first[pass] != first[pass + 2]);
    for (uint32_t k = 0; k < 9; k++) {
        assert_ok(s_ppo()->minibatch(u.algo, &(tt_at_t){.step = k * 4 % 9}, &m));
        assert_int_equal(m.row[0], first[k * 4 % 9]);
    }
    assert_ok(s_ppo()->minibatch(rows.algo, &(tt_at_t){.step = 0}, &m));
    assert_int_equal(m.length, 0);
    s_teardown(&u);
    s_teardown(&rows);
}

static void test_schedules(void **state)
{
    (void)state;
    static update_t u;
    s_setup(&u, "algorithm: {learning_rate: 0.01, anneal: linear, anneal_to: 0.2, anneal_steps: 1920, clip: 0.2, "
                "clip_anneal: linear}\n");
    tt_minibatch_t m;
    s_begin(&u, 5); /* half of ten batches */
    assert_ok(s_ppo()->minibatch(u.algo, &(tt_at_t){.step = 0}, &m));
    assert_true(fabs((double)m.lr[0] - 0.006) < 1e-8);
    assert_true(fabs((double)((const ppo_loss_t *)m.params)->clip - 0.1) < 1e-8);
    s_begin(&u, 50);
    assert_ok(s_ppo()->minibatch(u.algo, &(tt_at_t){.step = 0}, &m));
    assert_true(fabs((double)m.lr[0] - 0.002) < 1e-8);
    s_teardown(&u);
}

/*  Advantages of a minibatch come out with mean 0 and deviation 1 (divided by rows - 1). */
static void test_advantages_are_normalised(void **state)
{
    (void)state;
    static update_t u;
    s_setup(&u, "algorithm: {minibatch_size: 16}\n");
    s_begin(&u, 0);
    tt_minibatch_t m;
    assert_ok(s_ppo()->minibatch(u.algo, &(tt_at_t){.step = 3}, &m));
    const ppo_loss_t *loss = m.params;
    const ppo_row_t *row = m.input[PPO_IN_ROW].at;
    double mean = 0, square = 0;
    for (uint32_t i = 0; i < 16; i++) {
        const double a = (double)((row[m.row[i]].advantage - loss->mean) * loss->scale);
        mean += a / 16;
        square += a * a / 15;
    }
    assert_true(fabs(mean) < 1e-6 && fabs(square - 1) < 1e-5);
    s_teardown(&u);
}

static bool s_after(const update_t *u, uint32_t step, const float *stats)
{
    return s_ppo()->after(u->algo, step, &(tt_result_t){.trained = 1, .stats = stats, .norm = &(float){1}});
}

/*  Is it said of a step that it may end the update? */
static bool s_ends(const update_t *u, uint32_t step)
{
    tt_minibatch_t m;
    assert_ok(s_ppo()->minibatch(u->algo, &(tt_at_t){.step = step}, &m));
    return m.ends;
}

/*  target_kl is looked at after a whole pass only, and depends on that step alone. */
static void test_target_kl(void **state)
{
    (void)state;
    static update_t u;
    s_setup(&u, "algorithm: {target_kl: 0.01}\n");
    s_begin(&u, 0);
    float stats[TT_LOSS_STATS] = {[PPO_KL] = 0.02f};
    assert_true(!s_ends(&u, 0) && !s_ends(&u, 2) && s_ends(&u, 3));
    assert_false(s_after(&u, 0, stats));
    assert_false(s_after(&u, 2, stats));
    assert_true(s_after(&u, 3, stats));
    stats[PPO_KL] = 0.005f;
    assert_false(s_after(&u, 3, stats));
    s_teardown(&u);
    s_setup(&u, "algorithm: {}\n"); /* off by default */
    s_begin(&u, 0);
    stats[PPO_KL] = 1e9f;
    assert_false(s_ends(&u, 3));
    assert_false(s_after(&u, 3, stats));
    s_teardown(&u);
}

typedef struct {
    double lr, policy, kl;
    int count;
} metrics_t;

static void s_emit(void *ctx, const char *name, double value)
{
    metrics_t *m = ctx;
    m->count++;
    if (strcmp(name, "charts/learning_rate") == 0)
        m->lr = value;
    if (strcmp(name, "losses/policy_loss") == 0)
        m->policy = value;
    if (strcmp(name, "losses/approx_kl") == 0)
        m->kl = value;
}

static void test_metrics_are_means(void **state)
{
    (void)state;
    static update_t u;
    s_setup(&u, "algorithm: {learning_rate: 0.25}\n");
    s_begin(&u, 0);
    const float a[TT_LOSS_STATS] = {[PPO_POLICY_LOSS] = 1, [PPO_KL] = 4}, b[TT_LOSS_STATS] = {[PPO_POLICY_LOSS] = 2};
    s_after(&u, 0, a);
    s_after(&u, 1, b);
    metrics_t m = {0};
    s_ppo()->metrics(u.algo, s_emit, &m);
    assert_int_equal(m.count, 8); /* of which none is V-trace's */
    assert_true(m.lr == 0.25 && m.policy == 1.5 && m.kl == 2);
    s_begin(&u, 1); /* sums start anew */
    s_after(&u, 0, b);
    s_ppo()->metrics(u.algo, s_emit, &m);
    assert_true(m.policy == 2);
    s_teardown(&u);
}

/*  A stale batch asks for the current version's values; a fresh one, or recompute: false, does not. Errors come back. */
static void test_recompute_only_when_stale(void **state)
{
    (void)state;
    static update_t u;
    s_setup(&u, "algorithm: {}\n");
    s_begin(&u, 0);
    u.batch.stale = true;
    assert_int_equal(s_ppo()->begin(u.algo, &u.batch, &(tt_evaluator_t){.forward = s_no_forward}), TT_DEVICE);
    s_teardown(&u);
    s_setup(&u, "algorithm: {recompute: false}\n");
    u.batch.stale = true;
    s_begin(&u, 0);
    s_teardown(&u);
    assert_null(u.algo);
    s_ppo()->destroy(&u.algo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_algorithms_are_found_by_name),
        cmocka_unit_test(test_who_trains_networks_that_remember),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_minibatches_must_divide),
        cmocka_unit_test(test_what_is_kept_of_sequences),
        cmocka_unit_test(test_vtrace_rules),
        cmocka_unit_test(test_minibatches_of_envs),
        cmocka_unit_test(test_annealing_needs_an_end),
        cmocka_unit_test(test_progress),
        cmocka_unit_test(test_shuffle),
        cmocka_unit_test(test_shuffle_of_envs),
        cmocka_unit_test(test_schedules),
        cmocka_unit_test(test_advantages_are_normalised),
        cmocka_unit_test(test_target_kl),
        cmocka_unit_test(test_metrics_are_means),
        cmocka_unit_test(test_recompute_only_when_stale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
