/*  train_inprocess - a whole training run in one process and one thread, to try recipes and to test that PPO learns.
 *
 *  train_inprocess CONFIG [key=value ...] [seeds=1-5] [eval=100] [expect=475] [expect_last=480] [curve=1]
 *
 *  The same envs, segments, networks, normalisers, algorithm and shard tree as the distributed run, and its lag (0 or 1)
 *  emulated by acting with an older version. One line a seed; ends with 1 when the mean over the seeds is below `expect`
 *  (greedy evaluation, as `tutti eval` does it) or `expect_last` (last 100 training episodes). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/setup.h"
#include "collector/eval.h"
#include "collector/rollout.h"
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/job/fit.h"
#include "common/nn/nn.h"
#include "common/rl/episodes.h"
#include "common/rl/norm.h"
#include "learner/batch.h"
#include "learner/compute.h"
#include "learner/intake.h"
#include "tests/learner/settled.h"

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
    tt_train_cfg_t cfg; /* with the seed of this run */
    const tt_env_ops_t *env;
    const tt_algorithm_t *algorithm;
    tt_env_arg_t args[TT_ENV_ARGS_MAX + 1];
    tt_columns_t *columns;

    model_t model; /* being trained: of which computing needs a part */
    compute_t *compute;
    tt_inference_t *actor; /* the version that plays */
    tt_norm_t *obs_norm, *reward_norm;
    tt_returns_t *returns;
    tt_episodes_t *episodes;
    tt_algo_t *algo;
    float *params[VERSIONS]; /* version v lies in v % VERSIONS */
    double *obs_block[VERSIONS], *reward_block[VERSIONS];

    blocks_t *blocks;
    rollout_t *rollout;
    intake_t *intake;
    batch_t *batch;
    tt_batch_t current;
} run_t;

/* ---- life ----------------------------------------------------------------------------------------------------------- */

static void s_open_policy(run_t *r, const void *options)
{
    const tt_net_spec_t spec = tt_train_net(&r->cfg, r->columns);
    model_t *model = &r->model;
    model->train = r->cfg;
    MUST(tt_device_open(&model->device, NULL, 0, 1));
    MUST(tt_stream_new(&model->stream, model->device));
    MUST(tt_net_new(&model->net, model->device, &spec));
    MUST(tt_inference_new(&r->actor, "cpu", 0, &spec));
    MUST(tt_algorithm_init(r->algorithm, options, model->net, model->stream, r->cfg.seed, TT_NO_PROGRESS));
    MUST(r->algorithm->create(&r->algo, &r->cfg, r->columns, options));
    MUST(tt_opt_new(&model->opt[0], model->net, 0, r->algorithm->opt(r->algo, 0)));
    model->opts = 1;
    MUST(compute_new(&r->compute, model));
    r->obs_norm = tt_norm_new(r->columns->scaled), r->reward_norm = tt_norm_new(1);
    r->returns = tt_returns_new(r->cfg.num_envs, r->algorithm->gamma(options));
    r->episodes = tt_episodes_new(r->cfg.num_envs);
    for (int v = 0; v < VERSIONS; v++) {
        r->params[v] = tt_array0(tt_net_param_count(&spec), sizeof(float));
        r->obs_block[v] = tt_array0(tt_norm_block_count(r->columns->scaled), sizeof(double));
        r->reward_block[v] = tt_array0(tt_norm_block_count(1), sizeof(double));
    }
}

static void s_open_experience(run_t *r)
{
    const tt_train_cfg_t *cfg = &r->cfg;
    r->blocks = blocks_new();
    const rollout_cfg_t rollout = {.env = r->env,
        .args = r->args,
        .columns = r->columns,
        .net = r->actor,
        .norm = cfg->normalize.obs ? r->obs_norm : NULL,
        .blocks = r->blocks,
        .clip_obs = cfg->normalize.clip_obs,
        .seed = cfg->seed,
        .env_count = cfg->num_envs,
        .segment_envs = cfg->num_envs,
        .steps = cfg->num_steps,
        .actor = cfg->actor,
        .num_envs = cfg->num_envs};
    MUST(rollout_new(&r->rollout, &rollout));
    const intake_cfg_t intake = {.N = cfg->num_envs,
        .T = cfg->num_steps,
        .columns = r->columns,
        .state_bytes = (uint32_t)rollout_state_bytes(r->rollout),
        .lag = cfg->lag};
    const batch_cfg_t batch = {.N = cfg->num_envs,
        .T = cfg->num_steps,
        .columns = r->columns,
        .scale_obs = cfg->normalize.obs,
        .scale_reward = cfg->normalize.reward,
        .clip_obs = cfg->normalize.clip_obs,
        .clip_reward = cfg->normalize.clip_reward};
    r->intake = intake_new(&intake);
    r->batch = batch_new(&batch);
}

static void s_open(run_t *r, const tt_setup_t *setup, uint64_t seed)
{
    *r = (run_t){.cfg = *tt_setup_train(setup), .env = tt_setup_env(setup), .algorithm = tt_setup_algorithm(setup)};
    r->cfg.seed = seed;
    MUST(r->cfg.lag < VERSIONS ? TT_OK : tt_err(TT_USAGE, "lag 0 or 1 here"));
    MUST(tt_train_columns(&r->columns, &r->cfg));
    tt_env_args_of(r->args, &r->cfg);
    s_open_policy(r, tt_setup_algorithm_cfg(setup));
    s_open_experience(r);
}

static void s_close(run_t *r)
{
    for (int v = 0; v < VERSIONS; v++) {
        free(r->params[v]);
        free(r->obs_block[v]);
        free(r->reward_block[v]);
    }
    batch_destroy(&r->batch);
    intake_destroy(&r->intake);
    rollout_destroy(&r->rollout);
    blocks_destroy(&r->blocks);
    tt_norm_destroy(&r->obs_norm);
    tt_norm_destroy(&r->reward_norm);
    tt_returns_destroy(&r->returns);
    tt_episodes_destroy(&r->episodes);
    r->algorithm->destroy(&r->algo);
    tt_inference_destroy(&r->actor);
    compute_destroy(&r->compute);
    tt_opt_destroy(&r->model.opt[0]);
    tt_net_destroy(&r->model.net);
    tt_stream_destroy(&r->model.stream);
    tt_device_close(&r->model.device);
    tt_columns_destroy(&r->columns);
}

/* ---- one batch, one update ------------------------------------------------------------------------------------------ */

static void s_keep_version(run_t *r, uint64_t version)
{
    MUST(tt_net_get(r->model.net, r->model.stream, 0, r->params[version % VERSIONS]));
    tt_norm_save(r->obs_norm, r->obs_block[version % VERSIONS]);
    tt_norm_save(r->reward_norm, r->reward_block[version % VERSIONS]);
}

static void s_load_norms(run_t *r, uint64_t version)
{
    MUST(tt_norm_load(r->obs_norm, r->obs_block[version % VERSIONS], tt_norm_block_count(r->columns->scaled)));
    MUST(tt_norm_load(r->reward_norm, r->reward_block[version % VERSIONS], tt_norm_block_count(1)));
}

/*  Batch n, played with version `acting`, in r->current. */
static void s_collect(run_t *r, uint64_t n, uint64_t acting)
{
    bool done = false;
    rollout_segment_t played;
    MUST(tt_inference_put(r->actor, r->params[acting % VERSIONS]));
    s_load_norms(r, acting);
    MUST(rollout_begin(r->rollout));
    while (!done)
        MUST(rollout_play(r->rollout, r->cfg.num_steps, &done));
    MUST(rollout_finish(r->rollout, &played));
    const tt_segment_shape_t shape = played.shape;
    const tt_msg_SEGMENT_t msg = TT_MSG(SEGMENT, .batch = n, .version = acting, .env_count = shape.E, .steps = shape.T,
        .columns = shape.columns->hash, .finals = shape.K, .state_bytes = shape.S);
    MUST(intake_add(r->intake, &msg, &played.frame, NULL, NULL));
    tt_frame_close(&played.frame);
    batch_assemble(r->batch, intake_batch(r->intake, n), r->obs_norm, r->reward_norm, &r->current);
    r->current.env_steps = n * shape.T * shape.E;
    tt_episodes_feed(
        r->episodes, shape.T, batch_raw_reward(r->batch), r->current.terminated, r->current.truncated, NULL, NULL);
}

static void s_update(run_t *r, uint64_t n)
{
    const tt_evaluator_t net = compute_evaluator(r->compute);
    MUST(compute_batch(r->compute, &r->current));
    MUST(r->algorithm->begin(r->algo, &r->current, &net));
    for (uint32_t step = 0; step < r->algorithm->steps(r->algo); step++) {
        tt_minibatch_t minibatch;
        tt_result_t result;
        MUST(r->algorithm->minibatch(r->algo, &(tt_at_t){.step = step}, &minibatch));
        MUST(compute_gradients(r->compute, &minibatch, NULL, 0, r->cfg.learner.shards));
        MUST(settled_step(r->compute, &minibatch, NULL, &result));
        if (r->algorithm->after(r->algo, step, &result))
            break;
    }
    s_load_norms(r, n); /* version n, from which version n + 1 follows */
    if (r->cfg.normalize.obs)
        tt_norm_merge(r->obs_norm, batch_raw_obs(r->batch), (size_t)r->current.T * r->current.N);
    tt_returns_feed(r->returns, r->reward_norm, r->current.T, batch_raw_reward(r->batch), r->current.terminated,
        r->current.truncated);
    intake_advance(r->intake, n + 1);
}

static bool s_stops(const run_t *r, uint64_t env_steps)
{
    return (r->cfg.stop.env_steps && env_steps >= r->cfg.stop.env_steps) ||
           tt_episodes_return_mean(r->episodes) >= r->cfg.stop.return_mean;
}

/*  Mean return of so many greedy episodes. */
static double s_evaluate(run_t *r, uint32_t count)
{
    float *params = tt_array0(tt_net_param_count(tt_net_spec(r->model.net)), sizeof *params);
    MUST(tt_net_get(r->model.net, r->model.stream, 0, params));
    MUST(tt_inference_put(r->actor, params));
    free(params);
    const eval_cfg_t cfg = {.env = r->env,
        .args = r->args,
        .columns = r->columns,
        .net = r->actor,
        .norm = r->cfg.normalize.obs ? r->obs_norm : NULL,
        .clip_obs = r->cfg.normalize.clip_obs,
        .seed = r->cfg.seed,
        .episodes = count};
    eval_episode_t *episode = tt_array0(count, sizeof *episode);
    MUST(eval_play(&cfg, episode));
    const double mean = eval_summary(episode, count).mean;
    free(episode);
    return mean;
}

typedef struct {
    double last, greedy;
} score_t;

static double s_since(int64_t start)
{
    return (double)(tt_now_ns(tt_clock_real()) - start) * 1e-9;
}

static score_t s_train(const tt_setup_t *setup, uint64_t seed, uint32_t eval, bool curve)
{
    static run_t r;
    s_open(&r, setup, seed);
    const int64_t start = tt_now_ns(tt_clock_real());
    uint64_t n = 0, env_steps = 0, solved_at = 0;
    double solved_s = NAN;
    for (;; n++) {
        s_keep_version(&r, n);
        s_collect(&r, n, n > r.cfg.lag ? n - r.cfg.lag : 0);
        env_steps += (uint64_t)r.current.T * r.current.N;
        const double mean = tt_episodes_return_mean(r.episodes);
        if (!solved_at && mean >= r.cfg.space.threshold && tt_episodes_count(r.episodes) >= TT_EPISODES_LAST) {
            solved_at = env_steps;
            solved_s = s_since(start);
        }
        if (curve && n % 16 == 0)
            printf("  %8llu %9.2f\n", (unsigned long long)env_steps, mean);
        if (s_stops(&r, env_steps))
            break;
        s_update(&r, n);
    }
    s_load_norms(&r, n);
    const double wall = s_since(start);
    const score_t score = {tt_episodes_return_mean(r.episodes), eval ? s_evaluate(&r, eval) : NAN};
    printf("seed %llu: %llu steps, %.2f s, %.0f SPS, last 100 %.2f, greedy %.2f, solved at %llu steps, %.3f s\n",
        (unsigned long long)seed, (unsigned long long)env_steps, wall, (double)env_steps / wall, score.last,
        score.greedy, (unsigned long long)solved_at, solved_s);
    fflush(stdout);
    s_close(&r);
    return score;
}

/* ---- the command line ----------------------------------------------------------------------------------------------- */

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
