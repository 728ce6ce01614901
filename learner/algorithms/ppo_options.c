#include "learner/algorithms/ppo_options.h"
#include <math.h>
#include "common/base/mem.h"
#include "common/nn/nn.h"

#define AT PPO_AT

enum { MINIBATCHES = 4 }; /* in a pass, where nothing says how many */

const tt_cfg_field_t ppo_fields[] = {
    PPO_SHARED_FIELDS("3e-4", "0.95", "0", "0.5", "true", "adam"),
    {"algorithm.epochs", TT_CFG_U32, AT(epochs), "4", 1, 1000, .help = "passes over each batch",
        .resume = TT_CFG_GIVEN},
    {"algorithm.minibatches", TT_CFG_U32, AT(minibatches), "0", 0, 1e6,
        .help = "optimizer steps in a pass; 0 = 4, or as many as minibatch_size makes", .resume = TT_CFG_GIVEN},
    {"algorithm.minibatch_size", TT_CFG_U32, AT(minibatch_size), "0", 0, 1e9,
        .help = "rows of a minibatch; 0 = num_envs * num_steps / minibatches", .rival = "algorithm.minibatches",
        .resume = TT_CFG_GIVEN},
    {"algorithm.clip", TT_CFG_F32, AT(clip), "0.2", 1e-6, 100, .help = "clip range of the probability ratio",
        .resume = TT_CFG_GIVEN},
    {"algorithm.clip_anneal", TT_CFG_ENUM, AT(clip_anneal), "none", .choices = "none|linear",
        .help = "how the clip range falls over the run, to 0", .resume = TT_CFG_GIVEN},
    {"algorithm.clip_value", TT_CFG_BOOL, AT(clip_value), "false",
        .help = "clip the change of a value to the clip range too, as CleanRL", .resume = TT_CFG_GIVEN},
    {"algorithm.target_kl", TT_CFG_F64, AT(target_kl), "null", 0, 100,
        .help = "end an update after a pass whose last minibatch's approx_kl is above; null = off",
        .resume = TT_CFG_GIVEN},
    {"algorithm.recompute", TT_CFG_BOOL, AT(recompute), "true",
        .help = "at lag > 0: values, advantages and log-probabilities anew with the version being trained",
        .resume = TT_CFG_GIVEN},
    {"algorithm.vtrace", TT_CFG_BOOL, AT(vtrace), "false",
        .help =
            "at lag > 0: advantages by V-trace, where each step weighs as likely as the version being trained makes it",
        .resume = TT_CFG_GIVEN},
    PPO_VTRACE_FIELDS,
    {0},
};

void ppo_shape(const tt_train_cfg_t *train, const void *cfg, tt_algorithm_shape_t *out)
{
    (void)train;
    out->actor.squash = ((const ppo_cfg_t *)cfg)->squash;
    out->actor.state_std = ((const ppo_cfg_t *)cfg)->state_std;
}

ppo_cfg_t ppo_plain(const void *cfg)
{
    ppo_cfg_t out = *(const ppo_cfg_t *)cfg;
    out.epochs = out.minibatches = 1;
    out.target_kl = NAN;
    out.recompute = out.plain = true;
    out.vtrace = out.vtrace_rho > 0; /* its least value is over 0 */
    return out;
}

uint32_t ppo_rows(const tt_train_cfg_t *train)
{
    return train->num_envs * train->num_steps;
}

static uint32_t s_minibatches(const ppo_cfg_t *cfg)
{
    return cfg->minibatches ? cfg->minibatches : MINIBATCHES;
}

uint32_t ppo_minibatch_rows(const tt_train_cfg_t *train, const ppo_cfg_t *cfg)
{
    return cfg->minibatch_size ? cfg->minibatch_size : ppo_rows(train) / s_minibatches(cfg);
}

/*  The divisor of n nearest to `wanted`, the smaller of two equally near. */
static uint32_t s_nearest_divisor(uint32_t n, uint32_t wanted)
{
    uint32_t best = 1;
    for (uint64_t d = 1; d * d <= n; d++) {
        if (n % d)
            continue;
        const uint32_t pair[] = {(uint32_t)d, n / (uint32_t)d};
        for (int i = 0; i < 2; i++) {
            const uint64_t gap = pair[i] > wanted ? pair[i] - wanted : wanted - pair[i];
            const uint64_t least = best > wanted ? best - wanted : wanted - best;
            if (gap < least || (gap == least && pair[i] < best))
                best = pair[i];
        }
    }
    return best;
}

/*  A minibatch of a policy that remembers is envs with all their steps. A shard need not have any. */
static tt_status_t s_check_envs(const tt_config_t *config, const tt_train_cfg_t *train, const ppo_cfg_t *cfg)
{
    const uint32_t envs = train->num_envs, steps = train->num_steps;
    const uint32_t size = cfg->minibatch_size, count = s_minibatches(cfg);
    if (size && (size % steps || envs % (size / steps)))
        return tt_err(TT_CONFIG,
            "%s: algorithm.minibatch_size %u must be num_steps %u times a divisor of num_envs %u, since with "
            "network.rnn (%s) a minibatch is whole envs; nearest that works: %u",
            tt_config_origin(config, "algorithm.minibatch_size"), size, steps, envs,
            tt_config_origin(config, "network.rnn"), s_nearest_divisor(envs, (size + steps / 2) / steps) * steps);
    if (!size && envs % count)
        return tt_err(TT_CONFIG,
            "%s: algorithm.minibatches, which is %u%s, must divide num_envs %u, since with network.rnn (%s) a "
            "minibatch is "
            "whole envs; nearest that works: set algorithm.minibatches to %u",
            tt_config_origin(config, "algorithm.minibatches"), count, cfg->minibatches ? "" : " where it is not set",
            envs, tt_config_origin(config, "network.rnn"), s_nearest_divisor(envs, count));
    return common_check_sequences(config, train,
        (common_sequences_t){.sequences = ppo_minibatch_rows(train, cfg) / steps,
            .steps = steps,
            .steps_key = "num_steps",
            .towers = train->network.shared ? 1 : 2});
}

static tt_status_t s_check_rows(const tt_config_t *config, const tt_train_cfg_t *train, const ppo_cfg_t *cfg)
{
    const uint32_t rows = ppo_rows(train), shards = train->learner.shards;
    if (rows % shards)
        return tt_err(TT_CONFIG,
            "%s: learner.shards %u does not divide the %u rows of a batch (num_envs %u times num_steps %u); nearest "
            "that "
            "does: num_steps %u",
            tt_config_origin(config, "learner.shards"), shards, rows, train->num_envs, train->num_steps,
            (train->num_steps + shards / 2) / shards ? (train->num_steps + shards / 2) / shards * shards : shards);
    const uint32_t units = rows / shards; /* a minibatch is a whole number of rows for each shard */
    const uint32_t size = cfg->minibatch_size, count = s_minibatches(cfg);
    if (size && (size % shards || rows % size))
        return tt_err(TT_CONFIG,
            "%s: algorithm.minibatch_size %u must divide the %u rows of a batch (num_envs %u times num_steps %u) and "
            "be "
            "a multiple of learner.shards %u; nearest that works: %u",
            tt_config_origin(config, "algorithm.minibatch_size"), size, rows, train->num_envs, train->num_steps, shards,
            s_nearest_divisor(units, (size + shards / 2) / shards) * shards);
    if (!size && units % count)
        return tt_err(TT_CONFIG,
            "%s: algorithm.minibatches %u times learner.shards %u must divide the %u rows of a batch (num_envs %u "
            "times "
            "num_steps %u); nearest that works: %u",
            tt_config_origin(config, "algorithm.minibatches"), count, shards, rows, train->num_envs, train->num_steps,
            s_nearest_divisor(units, count));
    return TT_OK;
}

/*  Of V-trace. rho below c: the paper's targets are of no policy then (section 4.1). */
static tt_status_t s_check_vtrace(const tt_config_t *config, const ppo_cfg_t *cfg)
{
    if (!cfg->plain && !cfg->vtrace && (cfg->vtrace_rho != 1 || cfg->vtrace_c != 1)) {
        const char *key = cfg->vtrace_rho != 1 ? "algorithm.vtrace_rho" : "algorithm.vtrace_c";
        return COMMON_BAD(config, key, "is V-trace's, but algorithm.vtrace (%s) is false: leave it away",
            tt_config_origin(config, "algorithm.vtrace"));
    }
    if (cfg->vtrace && !cfg->recompute)
        return COMMON_BAD(config, "algorithm.recompute",
            "false, but algorithm.vtrace (%s) compares log-probabilities with those of the version being trained",
            tt_config_origin(config, "algorithm.vtrace"));
    if (cfg->vtrace_c > cfg->vtrace_rho)
        return COMMON_BAD(config, "algorithm.vtrace_c", "%g is above algorithm.vtrace_rho %g (%s): %g at most",
            (double)cfg->vtrace_c, (double)cfg->vtrace_rho, tt_config_origin(config, "algorithm.vtrace_rho"),
            (double)cfg->vtrace_rho);
    return TT_OK;
}

tt_status_t ppo_check(const tt_config_t *config, const tt_train_cfg_t *train, const ppo_cfg_t *cfg)
{
    if ((uint64_t)train->num_envs * train->num_steps > 1u << 30)
        return tt_err(TT_CONFIG, "%s: num_envs %u times num_steps %u is over 2^30 rows in a batch",
            tt_config_origin(config, "num_steps"), train->num_envs, train->num_steps);
    TT_TRY((train->network.rnn == TT_RNN_NONE ? s_check_rows : s_check_envs)(config, train, cfg));
    if ((uint64_t)cfg->epochs * (ppo_rows(train) / ppo_minibatch_rows(train, cfg)) > UINT32_MAX)
        return tt_err(TT_CONFIG, "%s: algorithm.epochs: %u passes of %u minibatches are more steps than can be counted",
            tt_config_origin(config, "algorithm.epochs"), cfg->epochs,
            ppo_rows(train) / ppo_minibatch_rows(train, cfg));
    if (cfg->state_std && cfg->log_std0 != 0)
        return tt_err(TT_CONFIG,
            "%s: algorithm.log_std0: with algorithm.state_std (%s) the network's first deviations are about 1; leave "
            "it away",
            tt_config_origin(config, "algorithm.log_std0"), tt_config_origin(config, "algorithm.state_std"));
    TT_TRY(s_check_vtrace(config, cfg));
    const bool anneals = cfg->anneal == PPO_LINEAR || cfg->clip_anneal == PPO_LINEAR;
    if (anneals && !cfg->anneal_steps && !train->stop.env_steps)
        return tt_err(TT_CONFIG, "%s: annealing needs an end: set algorithm.anneal_steps or stop.env_steps",
            tt_config_origin(config, cfg->anneal == PPO_LINEAR ? "algorithm.anneal" : "algorithm.clip_anneal"));
    return TT_OK;
}

double ppo_progress(const tt_train_cfg_t *train, const ppo_cfg_t *cfg, uint64_t env_steps)
{
    const uint64_t steps = cfg->anneal_steps ? cfg->anneal_steps : train->stop.env_steps;
    const uint64_t batch = ppo_rows(train), batches = steps / batch ? steps / batch : 1;
    const double done = (double)(env_steps / batch) / (double)batches;
    return done < 1 ? done : 1;
}
