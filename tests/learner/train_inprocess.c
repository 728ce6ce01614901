/*  train_inprocess - a whole training run in one process and one thread, to try recipes and to test that PPO learns.
 *
 *  train_inprocess CONFIG [key=value ...] [seeds=1-5] [eval=100] [expect=475] [expect_last=480] [curve=1]
 *
 *  The same envs, networks, normalisers, algorithm and shard tree as the distributed run, and its lag (0 or 1) emulated
 *  by acting with an older version. One line a seed; ends with 1 when the mean over the seeds is below `expect`
 *  (greedy evaluation) or `expect_last` (last 100 training episodes). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/setup.h"
#include "collector/vec.h"
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/nn/nn.h"
#include "common/rl/dist.h"
#include "common/rl/episodes.h"
#include "common/rl/norm.h"
#include "learner/algorithm.h"

#define MUST(call)                                  \
    do {                                            \
        if ((call) != TT_OK) {                      \
            fprintf(stderr, "%s\n", tt_err_text()); \
            exit(2);                                \
        }                                           \
    } while (0)

enum {
    VERSIONS = 2 /* lag 0 or 1 */
};

typedef struct {
    const tt_train_cfg_t *cfg;
    const tt_env_ops_t *env;
    const tt_algorithm_t *algorithm;
    uint64_t seed;
    uint32_t T, N, D, A; /* A: logits or dimensions */
    bool continuous;

    tt_device_t *device;
    tt_net_t *net, *actor; /* being trained; the version that plays */
    tt_norm_t *obs_norm, *reward_norm;
    tt_returns_t *returns;
    tt_episodes_t *episodes;
    tt_algo_t *algo;
    tt_vec_t *vec;
    float *params[VERSIONS]; /* version v lies in v % VERSIONS */
    double *obs_block[VERSIONS], *reward_block[VERSIONS];

    float *raw, *obs, *last_obs, *final_obs, *box, *reward, *scaled, *log_prob, *value, *last_value, *final_value;
    int32_t *action;
    uint8_t *terminated, *truncated;
    uint32_t *final_row, finals, *who;
    const float **rows, **raw_rows, **last_rows, **final_rows;
    uint64_t *clock;
    float *head, *grads, *opt_state;
    uint64_t opt_step;

    void *owned[48];
    size_t owned_count;
} run_t;

/*  Memory that lives as long as the run. */
static void *s_array(run_t *r, size_t count, size_t size)
{
    TT_CHECK(r->owned_count < TT_COUNT(r->owned));
    return r->owned[r->owned_count++] = tt_array0(count, size);
}

static float *s_floats(run_t *r, size_t a, size_t b)
{
    return s_array(r, tt_mul(a, b), sizeof(float));
}

static void s_release(run_t *r)
{
    for (size_t i = 0; i < r->owned_count; i++)
        free(r->owned[i]);
    tt_norm_destroy(&r->obs_norm);
    tt_norm_destroy(&r->reward_norm);
    tt_returns_destroy(&r->returns);
    tt_episodes_destroy(&r->episodes);
    r->algorithm->destroy(&r->algo);
    tt_vec_destroy(&r->vec);
    tt_net_destroy(&r->actor);
    tt_net_destroy(&r->net);
    tt_device_close(&r->device);
}

static void s_allocate(run_t *r)
{
    const size_t rows = (size_t)r->T * r->N;
    const tt_net_spec_t *spec = tt_net_spec(r->net);
    for (int v = 0; v < VERSIONS; v++) {
        r->params[v] = s_floats(r, tt_net_param_count(spec), 1);
        r->obs_block[v] = s_array(r, tt_norm_block_count(r->D), sizeof(double));
        r->reward_block[v] = s_array(r, tt_norm_block_count(1), sizeof(double));
    }
    r->raw = s_floats(r, rows, r->D), r->obs = s_floats(r, rows, r->D), r->last_obs = s_floats(r, r->N, r->D);
    r->final_obs = s_floats(r, rows, r->D), r->box = s_floats(r, rows, r->A), r->reward = s_floats(r, rows, 1);
    r->scaled = s_floats(r, rows, 1), r->log_prob = s_floats(r, rows, 1), r->value = s_floats(r, rows, 1);
    r->last_value = s_floats(r, r->N, 1), r->final_value = s_floats(r, rows, 1), r->head = s_floats(r, rows, r->A);
    r->action = s_array(r, rows, sizeof(int32_t));
    r->terminated = s_array(r, rows, 1), r->truncated = s_array(r, rows, 1);
    r->final_row = s_array(r, rows, sizeof(uint32_t)), r->who = s_array(r, r->N, sizeof(uint32_t));
    r->rows = s_array(r, rows, sizeof(float *)), r->raw_rows = s_array(r, rows, sizeof(float *));
    r->last_rows = s_array(r, r->N, sizeof(float *)), r->final_rows = s_array(r, rows, sizeof(float *));
    r->clock = s_array(r, r->N, sizeof(uint64_t));
    r->grads = s_floats(r, tt_net_grad_count(spec), r->cfg->learner.shards);
    r->opt_state = s_floats(r, tt_opt_state_count(r->algorithm->opt(r->algo), spec), 1);
    for (size_t i = 0; i < rows; i++) {
        r->rows[i] = r->obs + i * r->D;
        r->raw_rows[i] = r->raw + i * r->D;
        r->final_rows[i] = r->final_obs + i * r->D;
    }
    for (uint32_t e = 0; e < r->N; e++) {
        r->who[e] = e;
        r->last_rows[e] = r->last_obs + (size_t)e * r->D;
    }
}

static void s_scale_obs(const run_t *r, const float *in, size_t rows, float *out)
{
    if (r->cfg->normalize.obs)
        tt_norm_scale(r->obs_norm, in, rows, r->cfg->normalize.clip_obs, out);
    else
        memcpy(out, in, rows * r->D * sizeof(float));
}

static void s_keep_version(run_t *r, uint64_t version)
{
    MUST(tt_net_get(r->net, r->params[version % VERSIONS]));
    tt_norm_save(r->obs_norm, r->obs_block[version % VERSIONS]);
    tt_norm_save(r->reward_norm, r->reward_block[version % VERSIONS]);
}

static void s_load_norms(run_t *r, uint64_t version)
{
    MUST(tt_norm_load(r->obs_norm, r->obs_block[version % VERSIONS], tt_norm_block_count(r->D)));
    MUST(tt_norm_load(r->reward_norm, r->reward_block[version % VERSIONS], tt_norm_block_count(1)));
}

static void s_act(run_t *r, uint32_t t)
{
    const size_t first = (size_t)t * r->N;
    const tt_dist_draw_t draw = {r->seed, TT_STREAM_ACTION, r->who, r->clock};
    for (uint32_t e = 0; e < r->N; e++)
        r->clock[e] = tt_vec_clock(r->vec, e);
    MUST(tt_net_forward(r->actor, 0, r->rows + first, r->N, r->head, r->value + first));
    if (r->continuous)
        tt_gauss_sample(
            r->head, tt_net_log_std(r->actor), r->N, r->A, &draw, r->box + first * r->A, r->log_prob + first);
    else
        tt_cat_sample(r->head, r->N, r->A, &draw, r->action + first, r->log_prob + first);
}

static void s_collect(run_t *r)
{
    r->finals = 0;
    for (uint32_t t = 0; t < r->T; t++) {
        const size_t first = (size_t)t * r->N;
        memcpy(r->raw + first * r->D, tt_vec_obs(r->vec), (size_t)r->N * r->D * sizeof(float));
        s_scale_obs(r, r->raw + first * r->D, r->N, r->obs + first * r->D);
        s_act(r, t);
        const void *action = r->continuous ? (void *)(r->box + first * r->A) : (void *)(r->action + first);
        MUST(tt_vec_step(r->vec, action, r->reward + first, r->terminated + first, r->truncated + first));
        for (uint32_t e = 0; e < r->N; e++)
            if (r->truncated[first + e]) {
                s_scale_obs(r, tt_vec_final_obs(r->vec, e), 1, r->final_obs + (size_t)r->finals * r->D);
                r->final_row[r->finals++] = (uint32_t)(first + e);
            }
    }
    s_scale_obs(r, tt_vec_obs(r->vec), r->N, r->last_obs);
    MUST(tt_net_forward(r->actor, 0, r->last_rows, r->N, NULL, r->last_value));
    if (r->finals)
        MUST(tt_net_forward(r->actor, 0, r->final_rows, r->finals, NULL, r->final_value));
    const size_t rows = (size_t)r->T * r->N;
    if (r->cfg->normalize.reward)
        tt_norm_scale_reward(r->reward_norm, r->reward, rows, r->cfg->normalize.clip_reward, r->scaled);
    else
        memcpy(r->scaled, r->reward, rows * sizeof(float));
}

static tt_status_t s_forward(void *ctx, const float *const *obs, size_t rows, float *head, float *value)
{
    return tt_net_forward(((run_t *)ctx)->net, 0, obs, rows, head, value);
}

/*  Shard gradients, summed as the tree does: neighbours first. */
static void s_optimise(run_t *r, const tt_minibatch_t *batch, const float **rows, float *norm)
{
    const tt_net_spec_t *spec = tt_net_spec(r->net);
    const uint32_t S = r->cfg->learner.shards, part = batch->rows / S;
    const size_t count = tt_net_grad_count(spec);
    for (uint32_t i = 0; i < batch->rows; i++)
        rows[i] = r->rows[batch->row[i]];
    for (uint32_t s = 0; s < S; s++)
        MUST(tt_net_shard_grad(r->net, 0, rows + (size_t)s * part, batch->row + (size_t)s * part, part, batch->loss,
            batch->loss_ctx, r->grads + s * count));
    for (uint32_t step = 1; step < S; step *= 2)
        for (uint32_t s = 0; s < S; s += 2 * step)
            tt_grad_add(r->grads + s * count, r->grads + (s + step) * count, count);
    MUST(tt_net_apply(r->net, batch->opt, r->opt_state, &r->opt_step, r->grads, batch->lr, norm));
}

static void s_update(run_t *r, uint64_t n, const float **rows)
{
    const tt_batch_t batch = {n, n * r->T * r->N, r->T, r->N, r->D, r->continuous ? r->A : 0, r->cfg->lag && n, r->rows,
        r->last_rows, r->continuous ? NULL : r->action, r->continuous ? r->box : NULL, r->scaled, r->terminated,
        r->truncated, r->log_prob, r->value, r->last_value, r->finals, r->final_row, r->final_rows, r->final_value};
    MUST(r->algorithm->begin(r->algo, &batch, r->net, s_forward, r));
    for (uint32_t step = 0; step < r->algorithm->steps(r->algo); step++) {
        tt_minibatch_t minibatch;
        float norm;
        MUST(r->algorithm->minibatch(r->algo, step, r->net, &minibatch));
        s_optimise(r, &minibatch, rows, &norm);
        if (r->algorithm->after(r->algo, step, r->grads + tt_net_stats_offset(tt_net_spec(r->net)), norm))
            break;
    }
}

static bool s_stops(const run_t *r, uint64_t env_steps)
{
    return (r->cfg->stop.env_steps && env_steps >= r->cfg->stop.env_steps) ||
           tt_episodes_return_mean(r->episodes) >= r->cfg->stop.return_mean;
}

/*  Mean greedy return of the first episode of `count` fresh envs. */
static double s_evaluate(run_t *r, uint32_t count)
{
    tt_vec_t *vec = NULL;
    MUST(tt_vec_new(&vec, r->env, r->seed ^ 0x5eed00000000ull, 0, count, 0));
    float *obs = s_floats(r, count, r->D), *head = s_floats(r, count, r->A), *reward = s_floats(r, count, 1);
    const float **rows = s_array(r, count, sizeof *rows);
    int32_t *action = s_array(r, count, sizeof *action);
    uint8_t *done = s_array(r, count, 1), *terminated = s_array(r, count, 1), *truncated = s_array(r, count, 1);
    uint32_t left = count;
    double sum = 0;
    for (uint32_t i = 0; i < count; i++)
        rows[i] = obs + (size_t)i * r->D;
    while (left) {
        s_scale_obs(r, tt_vec_obs(vec), count, obs);
        MUST(tt_net_forward(r->net, 0, rows, count, head, NULL));
        if (!r->continuous)
            tt_cat_greedy(head, count, r->A, action);
        MUST(tt_vec_step(vec, r->continuous ? (void *)head : (void *)action, reward, terminated, truncated));
        for (uint32_t i = 0; i < count; i++) {
            sum += done[i] ? 0 : (double)reward[i];
            left -= !done[i] && (terminated[i] || truncated[i]);
            done[i] |= terminated[i] | truncated[i];
        }
    }
    tt_vec_destroy(&vec);
    return sum / count;
}

typedef struct {
    double last, greedy;
} score_t;

static score_t s_train(const tt_setup_t *setup, uint64_t seed, uint32_t eval, bool curve)
{
    run_t r = {.cfg = tt_setup_train(setup), .env = tt_setup_env(setup), .algorithm = tt_setup_algorithm(setup)};
    const void *options = tt_setup_algorithm_cfg(setup);
    r.seed = seed, r.T = r.cfg->num_steps, r.N = r.cfg->num_envs, r.D = r.cfg->space.obs;
    r.continuous = r.cfg->space.actions == 0;
    r.A = r.continuous ? r.cfg->space.action_dims : r.cfg->space.actions;
    tt_net_spec_t spec = {.obs = r.D,
        .hidden_count = r.cfg->network.hidden.count,
        .out = r.A,
        .activation = (tt_nn_activation_t)r.cfg->network.activation,
        .continuous = r.continuous};
    memcpy(spec.hidden, r.cfg->network.hidden.at, sizeof spec.hidden);
    MUST(r.cfg->lag < VERSIONS ? TT_OK : tt_err(TT_USAGE, "lag 0 or 1 here"));
    MUST(tt_device_open(&r.device, "cpu", 0));
    MUST(tt_net_new(&r.net, r.device, &spec, 1));
    MUST(tt_net_new(&r.actor, r.device, &spec, 1));
    MUST(tt_net_init(r.net, seed, r.algorithm->head_gain(options), r.algorithm->log_std0(options)));
    tt_train_cfg_t train = *r.cfg;
    train.seed = seed;
    MUST(r.algorithm->create(&r.algo, &train, options));
    MUST(tt_vec_new(&r.vec, r.env, seed, 0, r.N, 0));
    r.obs_norm = tt_norm_new(r.D), r.reward_norm = tt_norm_new(1);
    r.returns = tt_returns_new(r.N, r.algorithm->gamma(options)), r.episodes = tt_episodes_new(r.N);
    s_allocate(&r);
    const float **rows = s_array(&r, (size_t)r.T * r.N, sizeof *rows);

    const int64_t start = tt_now_ns(tt_clock_real());
    uint64_t n = 0, env_steps = 0, solved_at = 0;
    double solved_s = NAN;
    for (;; n++) {
        s_keep_version(&r, n);
        const uint64_t acting = n > r.cfg->lag ? n - r.cfg->lag : 0;
        MUST(tt_net_put(r.actor, r.params[acting % VERSIONS]));
        s_load_norms(&r, acting);
        s_collect(&r);
        tt_episodes_feed(r.episodes, r.T, r.reward, r.terminated, r.truncated, NULL, NULL);
        env_steps += (uint64_t)r.T * r.N;
        const double mean = tt_episodes_return_mean(r.episodes);
        if (!solved_at && mean >= r.cfg->space.threshold && tt_episodes_count(r.episodes) >= TT_EPISODES_LAST) {
            solved_at = env_steps;
            solved_s = (double)(tt_now_ns(tt_clock_real()) - start) * 1e-9;
        }
        if (curve && n % 16 == 0)
            printf("  %8llu %9.2f\n", (unsigned long long)env_steps, mean);
        if (s_stops(&r, env_steps))
            break;
        s_update(&r, n, rows);
        s_load_norms(&r, n); /* version n, from which version n + 1 follows */
        tt_norm_merge(r.obs_norm, r.raw_rows, (size_t)r.T * r.N);
        tt_returns_feed(r.returns, r.reward_norm, r.T, r.reward, r.terminated, r.truncated);
    }
    s_load_norms(&r, n);
    const double wall = (double)(tt_now_ns(tt_clock_real()) - start) * 1e-9;
    const score_t score = {tt_episodes_return_mean(r.episodes), eval ? s_evaluate(&r, eval) : NAN};
    printf("seed %llu: %llu steps, %.2f s, %.0f SPS, last 100 %.2f, greedy %.2f, solved at %llu steps, %.3f s\n",
        (unsigned long long)seed, (unsigned long long)env_steps, wall, (double)env_steps / wall, score.last,
        score.greedy, (unsigned long long)solved_at, solved_s);
    fflush(stdout);
    s_release(&r);
    return score;
}

typedef struct {
    const char *sets[64];
    size_t count;
    uint64_t from, to; /* seeds */
    uint32_t eval;
    double expect, expect_last;
    bool curve;
} args_t;

/*  The options of the head's usage line; everything else is a setting. */
static void s_parse(args_t *out, int argc, char **argv)
{
    *out = (args_t){.from = 1, .to = 1, .eval = 100, .expect = NAN, .expect_last = NAN};
    for (int i = 2; i < argc; i++) {
        char *value = strchr(argv[i], '='), *dash = NULL;
        const size_t name = value ? (size_t)(value++ - argv[i]) : 0;
        if (name == 5 && memcmp(argv[i], "seeds", name) == 0) {
            out->from = out->to = strtoull(value, &dash, 10);
            if (*dash == '-')
                out->to = strtoull(dash + 1, NULL, 10);
        } else if (name == 4 && memcmp(argv[i], "eval", name) == 0)
            out->eval = (uint32_t)strtoul(value, NULL, 10);
        else if (name == 6 && memcmp(argv[i], "expect", name) == 0)
            out->expect = strtod(value, NULL);
        else if (name == 11 && memcmp(argv[i], "expect_last", name) == 0)
            out->expect_last = strtod(value, NULL);
        else if (strcmp(argv[i], "curve=1") == 0)
            out->curve = true;
        else if (out->count < TT_COUNT(out->sets))
            out->sets[out->count++] = argv[i];
    }
}

int main(int argc, char **argv)
{
    args_t args;
    s_parse(&args, argc, argv);
    tt_setup_t *setup = NULL;
    MUST(argc > 1 ? tt_setup_new(&setup, argv[1], args.sets, args.count)
                  : tt_err(TT_USAGE, "usage: see the head of the source"));
    score_t sum = {0};
    const double seeds = (double)(args.to - args.from + 1);
    for (uint64_t seed = args.from; seed <= args.to; seed++) {
        const score_t score = s_train(setup, seed, args.eval, args.curve);
        sum.last += score.last / seeds;
        sum.greedy += score.greedy / seeds;
    }
    printf("mean: last 100 %.2f, greedy %.2f\n", sum.last, sum.greedy);
    tt_setup_destroy(&setup);
    return sum.greedy < args.expect || sum.last < args.expect_last;
}
