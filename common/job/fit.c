#include "common/job/fit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "common/base/limits.h"
#include "common/job/encoder.h"
#include "common/job/groups.h"
#include "common/nn/spec.h"
#include "common/rl/policy.h"

static tt_status_t s_columns(tt_columns_t **self_p, const tt_space_t *obs, const tt_train_cfg_t *cfg)
{
    tt_space_t *action = NULL;
    TT_TRY(tt_space_parse(&action, cfg->space.action));
    tt_status_t status = tt_space_check(action, "action", true);
    if (status == TT_OK)
        status = tt_columns_new_stacked(self_p, obs, action, cfg->space.mask, cfg->actor.kind == TT_ACT_SAMPLE,
            cfg->stack.frames, (tt_pad_t)cfg->stack.pad);
    tt_space_free(&action);
    return status;
}

/*  As in Rainbow: what comes behind the encoder, or behind the trunk of a dueling network. */
static void s_make_noisy(tt_net_spec_t *spec, float noise)
{
    for (uint32_t t = 0; t < spec->towers; t++)
        if (spec->tower[t].kind == TT_TOWER_MLP && spec->tower[t].out)
            spec->tower[t].noise = noise;
}

static tt_net_spec_t s_values(const tt_train_cfg_t *cfg, uint32_t obs, tt_nn_activation_t activation, uint32_t choices)
{
    const tt_values_t how = {.dueling = cfg->actor.dueling,
        .quantiles = cfg->actor.quantiles,
        .atoms = cfg->actor.atoms,
        .low = cfg->actor.v_min,
        .high = cfg->actor.v_max};
    return tt_net_values(obs, cfg->network.hidden.at, cfg->network.hidden.count, activation, choices, &how);
}

static tt_net_spec_t s_towers(const tt_train_cfg_t *cfg, const tt_columns_t *columns)
{
    tt_policy_t policy;
    tt_policy_of(&policy, columns);
    const tt_nn_activation_t activation = cfg->network.activation == TT_ACT_RELU ? TT_NN_RELU : TT_NN_TANH;
    if (cfg->actor.kind == TT_ACT_ARGMAX) {
        tt_net_spec_t spec = s_values(cfg, columns->flat, activation, policy.out);
        s_make_noisy(&spec, cfg->actor.noisy);
        return spec;
    }
    if (cfg->actor.kind == TT_ACT_MEAN)
        return tt_net_twin_critics(
            columns->flat, cfg->network.hidden.at, cfg->network.hidden.count, activation, policy.out);
    if (cfg->actor.kind == TT_ACT_SQUASHED)
        return tt_net_soft_actor_critic(columns->flat, cfg->network.hidden.at, cfg->network.hidden.count, activation,
            policy.out, policy.out - policy.own_std);
    /* an encoder or a recurrent layer that both read needs no trunk behind it */
    const bool before = tt_has_encoder(cfg) || cfg->network.rnn != TT_RNN_NONE;
    const bool trunk = cfg->network.shared && (cfg->network.hidden.count || !before);
    return (trunk ? tt_net_shared : tt_net_actor_critic)(
        columns->flat, cfg->network.hidden.at, cfg->network.hidden.count, activation, policy.out, policy.log_std);
}

void tt_train_parts(tt_net_spec_t *spec, const tt_columns_t *columns, bool named)
{
    bool bytes = false;
    for (uint32_t c = 0; c < columns->obs_count; c++)
        bytes |= tt_column_is_bytes(&columns->at[c]);
    for (uint32_t c = 0; (bytes || named) && c < columns->obs_count; c++)
        spec->part[spec->parts++] = (tt_part_t){.bytes = tt_column_is_bytes(&columns->at[c]),
            .elements = columns->stack.frames * columns->at[c].flat,
            .divisor = 1};
}

static tt_status_t s_put_groups(const tt_train_cfg_t *cfg, tt_net_spec_t *spec)
{
    tt_groups_t groups;
    TT_TRY(tt_groups_parse(&groups, cfg->actor.groups));
    return tt_groups_put(&groups, spec);
}

tt_net_spec_t tt_train_net(const tt_train_cfg_t *cfg, const tt_columns_t *columns)
{
    tt_net_spec_t spec = s_towers(cfg, columns);
    if (s_put_groups(cfg, &spec) != TT_OK) {
        spec.towers = 0; /* no network; tt_train_fit says why */
        return spec;
    }
    tt_train_parts(&spec, columns, tt_has_encoder(cfg));
    spec.stack = columns->stack;
    spec.init = cfg->network.init == TT_INIT_UNIFORM ? TT_NN_UNIFORM : TT_NN_ORTHOGONAL;
    if (tt_has_encoder(cfg) && tt_encoder_put(cfg, columns, &spec) != TT_OK)
        spec.towers = 0; /* no network; tt_encoder_check says why */
    if (cfg->network.rnn != TT_RNN_NONE)
        tt_net_put_recurrent(&spec, cfg->network.rnn == TT_RNN_LSTM ? TT_TOWER_LSTM : TT_TOWER_GRU,
            cfg->network.rnn_size, !cfg->network.shared && cfg->actor.kind == TT_ACT_SAMPLE);
    return spec;
}

/*  What is carried follows from the network, which follows from the rest. */
static void s_put_carry(tt_columns_t *columns, const tt_train_cfg_t *cfg)
{
    if (cfg->network.rnn == TT_RNN_NONE)
        return;
    const tt_net_spec_t net = tt_train_net(cfg, columns);
    tt_columns_put_carry(columns, tt_net_carry(&net));
}

tt_status_t tt_train_columns(tt_columns_t **self_p, const tt_train_cfg_t *cfg)
{
    tt_space_t *obs = NULL;
    tt_status_t status = tt_space_parse(&obs, cfg->space.obs);
    if (status == TT_OK)
        status = s_columns(self_p, obs, cfg);
    tt_space_free(&obs);
    if (status != TT_OK) {
        tt_err_wrap(TT_CONFIG, "space");
        return TT_CONFIG;
    }
    (*self_p)->state_std = cfg->actor.state_std;
    (*self_p)->no_std = cfg->actor.kind == TT_ACT_MEAN;
    s_put_carry(*self_p, cfg);
    return TT_OK;
}

uint32_t tt_train_state_bytes(const tt_train_cfg_t *cfg, const tt_columns_t *columns)
{
    return cfg->space.env_state ? cfg->space.env_state + columns->carry * (uint32_t)sizeof(float) : 0;
}

static tt_segment_shape_t s_segment(const tt_train_cfg_t *cfg, const tt_columns_t *columns, uint32_t envs)
{
    return (tt_segment_shape_t){
        .columns = columns, .T = cfg->num_steps, .E = envs, .S = tt_train_state_bytes(cfg, columns)};
}

static bool s_is_held(const tt_train_cfg_t *cfg, const tt_columns_t *columns, uint32_t envs)
{
    const tt_segment_shape_t shape = s_segment(cfg, columns, envs);
    size_t bytes;
    return tt_segment_size(&shape, &bytes) == TT_OK && bytes <= TT_SEGMENT_MAX;
}

/*  The most envs whose segment is not too large. */
static uint32_t s_held(const tt_train_cfg_t *cfg, const tt_columns_t *columns)
{
    uint32_t low = 0, high = cfg->num_envs;
    if (s_is_held(cfg, columns, high))
        return high;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        *(s_is_held(cfg, columns, middle) ? &low : &high) = middle;
    }
    return low;
}

/*  Fewer, if somebody wants to see many segments of few envs. TT_INVALID: that is no number of envs. */
static tt_status_t s_wish(uint32_t *most)
{
    const char *text = getenv("TT_SEGMENT_ENVS");
    char *end;
    if (!text || !*text)
        return TT_OK;
    const unsigned long wish = strtoul(text, &end, 10);
    if (*end || wish < 1 || wish > TT_ENVS_MAX)
        return tt_err(
            TT_INVALID, "TT_SEGMENT_ENVS=%s: it can be 1 to %d; unset it to let Tutti choose", text, TT_ENVS_MAX);
    *most = wish < *most ? (uint32_t)wish : *most;
    return TT_OK;
}

uint32_t tt_train_segment_envs(const tt_train_cfg_t *cfg, const tt_columns_t *columns)
{
    uint32_t most = s_held(cfg, columns);
    (void)s_wish(&most); /* tt_train_fit says what is wrong with it */
    return most;
}

tt_segment_shape_t tt_train_segment(const tt_train_cfg_t *cfg, const tt_columns_t *columns)
{
    return s_segment(cfg, columns, tt_train_segment_envs(cfg, columns));
}

/*  Somebody's words, as a fault of a key. */
static tt_status_t s_blame(const tt_config_t *config, const char *key, tt_status_t status)
{
    if (status == TT_OK)
        return TT_OK;
    tt_err_wrap(TT_CONFIG, "%s%s%s", config ? tt_config_origin(config, key) : "", config ? ": " : "", key);
    return TT_CONFIG;
}

/*  What the env decides about the networks is not the fault of their keys. */
static tt_status_t s_check_widths(const tt_train_cfg_t *cfg, const tt_net_spec_t *net)
{
    if (net->obs > TT_UNITS_MAX && !tt_has_encoder(cfg))
        return tt_err(TT_INVALID,
            "an observation is %u numbers, flattened; layers without an encoder (network.encoder) read at most %d",
            net->obs, TT_UNITS_MAX);
    if (net->obs > TT_ELEMENTS_MAX)
        return tt_err(
            TT_INVALID, "an observation is %u numbers; the networks read at most %d", net->obs, TT_ELEMENTS_MAX);
    const uint32_t out = net->tower[tt_net_tower(net, tt_actor_head(&cfg->actor))].out;
    if (out > TT_UNITS_MAX)
        return tt_err(TT_INVALID, "an action has %u choices and numbers; at most %d are possible", out, TT_UNITS_MAX);
    return TT_OK;
}

/*  The best of all choices is looked for among those of one head. */
static tt_status_t s_check_actor(const tt_train_cfg_t *cfg, const tt_columns_t *columns)
{
    tt_policy_t policy;
    tt_policy_of(&policy, columns);
    if (tt_actor_has_twins(&cfg->actor) && !tt_policy_boxes(&policy))
        return tt_err(TT_INVALID,
            "%s has no head for the actions of %s, %s: it takes boxes of float32 or float64 alone", cfg->algorithm.name,
            cfg->env, cfg->space.action);
    if (cfg->actor.state_std && !policy.own_std)
        return tt_err(TT_INVALID, "algorithm.state_std: the actions of %s, %s, have no box, and no deviation", cfg->env,
            cfg->space.action);
    if (cfg->actor.kind != TT_ACT_ARGMAX || tt_policy_one_choice(&policy))
        return TT_OK;
    return tt_err(TT_INVALID, "%s has no head for the actions of %s, %s: it takes discrete(n)", cfg->algorithm.name,
        cfg->env, cfg->space.action);
}

static tt_status_t s_check_segment(const tt_train_cfg_t *cfg, const tt_columns_t *columns)
{
    uint32_t most = s_held(cfg, columns);
    if (!most)
        return tt_err(TT_INVALID, "%u steps of one env are more than %d MiB, the most that a segment can be: lower it",
            cfg->num_steps, TT_SEGMENT_MAX >> 20);
    const uint32_t parts = tt_segment_parts(cfg->num_envs, most);
    if (parts > TT_SEGMENTS_MAX)
        return tt_err(TT_INVALID,
            "a batch of %u envs x %u steps is %u segments of %d MiB, at most %d are possible: lower it, or num_envs",
            cfg->num_envs, cfg->num_steps, parts, TT_SEGMENT_MAX >> 20, TT_SEGMENTS_MAX);
    return s_wish(&most);
}

/*  What a learner makes of observations: copies of those that are not read where they lie, with one-hot choices as floats
 *  (common/rl/rows.h), and lists of the frames that stacked rows show. Where choices are many it is far more than what they were. */
static tt_status_t s_check_rows(const tt_train_cfg_t *cfg, const tt_columns_t *columns)
{
    const uint64_t most = (uint64_t)4 * TT_SEGMENT_MAX, rows = (uint64_t)cfg->num_envs * (cfg->num_steps + 1);
    const uint64_t copies = tt_columns_plain(columns) ? 0 : rows * columns->frame; /* at most 2^33 rows of 2^26 bytes */
    const uint64_t lists = columns->before ? rows * columns->stack.frames * sizeof(void *) : 0;
    const uint64_t bytes = copies + lists;
    if (bytes <= most)
        return TT_OK;
    return tt_err(TT_INVALID,
        "the observations of %u envs x %u steps, as the networks read them (%u bytes each), are %llu MiB, at most %llu "
        "are possible: lower it, or num_envs",
        cfg->num_envs, cfg->num_steps, columns->frame, (unsigned long long)((bytes + (1 << 20) - 1) >> 20),
        (unsigned long long)(most >> 20));
}

/*  What common/snapshot writes, and a joiner is sent: weights, two numbers a weight for the optimiser, a sum of gradients,
 *  lag + 2 versions with their normalisers, env states with what is carried on, statistics. Generous: no optimiser keeps more. */
static tt_status_t s_check_snapshot(const tt_train_cfg_t *cfg, const tt_net_spec_t *net, const tt_columns_t *columns)
{
    enum { NOW = 1, OPTIMISER = 2, SUM = 1, HEADER = 1 << 20, STATISTICS = 64 /* bytes an env */ };
    const uint64_t versions = cfg->lag + 2, params = tt_net_param_count(net);
    const uint64_t bytes = 4 * params * (NOW + OPTIMISER + SUM + versions) +
                           versions * (3 * 8 * (uint64_t)columns->scaled + 64) +
                           (uint64_t)cfg->num_envs * (tt_train_state_bytes(cfg, columns) + STATISTICS) + HEADER;
    if (bytes <= TT_FRAME_MAX)
        return TT_OK;
    return tt_err(TT_INVALID,
        "%llu parameters, lag %u and %u envs make a snapshot of %llu MiB, at most %d are possible: lower it, or lag",
        (unsigned long long)params, cfg->lag, cfg->num_envs, (unsigned long long)(bytes >> 20), TT_FRAME_MAX >> 20);
}

/*  A network with next to nothing behind its encoder, which could be at fault: critics beside an action need a layer at least. */
static tt_train_cfg_t s_encoder_alone(const tt_train_cfg_t *cfg)
{
    tt_train_cfg_t alone = *cfg;
    alone.network.rnn = TT_RNN_NONE;
    alone.network.hidden.at[0] = 1;
    alone.network.hidden.count = tt_actor_has_twins(&cfg->actor);
    return alone;
}

/*  The words, then whether such layers fit the picture. */
static tt_status_t s_check_encoder(const tt_config_t *config, const tt_train_cfg_t *cfg, const tt_columns_t *columns)
{
    const tt_train_cfg_t alone = s_encoder_alone(cfg);
    const char *key;
    const tt_status_t status = tt_encoder_check(cfg, columns, &key);
    TT_TRY(s_blame(config, key, status));
    const tt_net_spec_t net = tt_train_net(&alone, columns);
    return s_blame(config, key, tt_spec_check(&net));
}

bool tt_train_could_see(const tt_train_cfg_t *cfg, const tt_columns_t *columns, const char *words)
{
    tt_train_cfg_t alone = s_encoder_alone(cfg);
    const char *key;
    snprintf(alone.network.encoder, sizeof alone.network.encoder, "%s", words);
    alone.space.divisor = 1;
    if (tt_encoder_check(&alone, columns, &key) != TT_OK)
        return false;
    const tt_net_spec_t net = tt_train_net(&alone, columns);
    return tt_spec_check(&net) == TT_OK;
}

/*  Without the layers behind it, which could be at fault as well. A state travels with what is carried on from it. */
static tt_status_t s_check_memory(const tt_train_cfg_t *cfg, const tt_columns_t *columns)
{
    tt_train_cfg_t alone = *cfg;
    alone.network.hidden.count = 0;
    const tt_net_spec_t net = tt_train_net(&alone, columns);
    TT_TRY(tt_spec_check(&net));
    if (tt_train_state_bytes(cfg, columns) <= TT_ENV_STATE_MAX)
        return TT_OK;
    return tt_err(TT_INVALID,
        "a saved state of %s is %u bytes, and each env carries %u floats beside it: together at most %d MiB are "
        "possible: lower it",
        cfg->env, cfg->space.env_state, columns->carry, TT_ENV_STATE_MAX >> 20);
}

static tt_status_t s_check_rnn(const tt_config_t *config, const tt_train_cfg_t *cfg, const tt_columns_t *columns)
{
    if (cfg->network.rnn == TT_RNN_NONE)
        return TT_OK;
    return s_blame(config, "network.rnn_size", s_check_memory(cfg, columns));
}

static tt_status_t s_check_network(const tt_config_t *config, const tt_train_cfg_t *cfg, const tt_columns_t *columns)
{
    const bool encoder = tt_has_encoder(cfg);
    if (*cfg->network.picture && !encoder)
        return s_blame(
            config, "network.picture", tt_err(TT_INVALID, "network.encoder is none: nothing reads a picture"));
    if (encoder)
        TT_TRY(s_check_encoder(config, cfg, columns));
    const tt_net_spec_t net = tt_train_net(cfg, columns);
    TT_TRY(s_blame(config, "env", s_check_widths(cfg, &net)));
    TT_TRY(s_check_rnn(config, cfg, columns));
    const bool before = encoder || cfg->network.rnn != TT_RNN_NONE;
    if (cfg->network.shared && cfg->network.hidden.count == 0 && !before)
        return s_blame(config, "network.shared",
            tt_err(TT_INVALID, "there are no layers to share: set it to false, or give network.hidden some"));
    return s_blame(config, "network.hidden", tt_spec_check(&net));
}

static tt_status_t s_check_groups(const tt_train_cfg_t *cfg, const tt_columns_t *columns)
{
    tt_net_spec_t spec = s_towers(cfg, columns);
    return s_put_groups(cfg, &spec);
}

static tt_status_t s_check_device(const char *wish)
{
    char meant[TT_MEANT_MAX], why[256];
    const tt_status_t status = tt_device_check_wish(wish);
    if (status == TT_OK)
        return TT_OK;
    snprintf(why, sizeof why, "%s", tt_err_text());
    return tt_err(status, "%s%s", why, tt_meant(meant, strcasecmp(wish, "gpu") ? wish : "cuda", "cpu|cuda|auto"));
}

/*  A run's bits would hang on which of its learners has a card. Whether `auto` finds one is seen when it looks. */
static tt_status_t s_check_precision(const tt_train_cfg_t *cfg)
{
    if (cfg->learner.precision == TT_EXACT || strcmp(cfg->learner.device, "cpu") != 0)
        return TT_OK;
    return tt_err(TT_INVALID, "%s wants a card, and learner.device is cpu, which is exact: say learner.device: cuda",
        tt_precision_name((tt_precision_t)cfg->learner.precision));
}

/*  Two critics read the observation, or what their encoder makes of it, and an action side by side, with layers of their own behind them. */
static tt_status_t s_check_critics(const tt_config_t *config, const tt_train_cfg_t *cfg)
{
    const char *name = cfg->algorithm.name;
    if (!tt_actor_has_twins(&cfg->actor))
        return TT_OK;
    if (cfg->network.rnn != TT_RNN_NONE)
        return s_blame(config, "network.rnn",
            tt_err(TT_INVALID, "%s trains networks that remember nothing: set it to none", name));
    if (cfg->network.shared)
        return s_blame(config, "network.shared",
            tt_err(TT_INVALID, "%s's actor and critics are trained apart: set it to false", name));
    if (!cfg->network.hidden.count)
        return s_blame(
            config, "network.hidden", tt_err(TT_INVALID, "%s's critics need a layer at least, as [256, 256]", name));
    return TT_OK;
}

static tt_status_t s_check_all(const tt_config_t *config, const tt_train_cfg_t *cfg, const tt_columns_t *columns)
{
    TT_TRY(s_blame(config, "learner.device", s_check_device(cfg->learner.device)));
    TT_TRY(s_blame(config, "learner.precision", s_check_precision(cfg)));
    TT_TRY(s_blame(config, "collector.device", s_check_device(cfg->collector.device)));
    TT_TRY(s_blame(config, "algorithm.name", s_check_actor(cfg, columns)));
    TT_TRY(s_check_critics(config, cfg));
    TT_TRY(s_blame(config, "actor.groups", s_check_groups(cfg, columns)));
    TT_TRY(s_check_network(config, cfg, columns));
    TT_TRY(s_blame(config, "num_steps", s_check_segment(cfg, columns)));
    TT_TRY(s_blame(config, "num_steps", s_check_rows(cfg, columns)));
    const tt_net_spec_t net = tt_train_net(cfg, columns);
    const char *large = cfg->network.rnn == TT_RNN_NONE ? "network.hidden" : "network.rnn_size";
    TT_TRY(s_blame(config, large, s_check_snapshot(cfg, &net, columns)));
    if (!cfg->normalize.obs || columns->scaled)
        return TT_OK;
    return s_blame(config, "normalize.obs",
        tt_err(TT_INVALID, "%s observes no float32 numbers that could be normalised: set it to false", cfg->env));
}

tt_status_t tt_train_fit(const tt_config_t *config, const tt_train_cfg_t *cfg)
{
    tt_columns_t *columns = NULL;
    TT_TRY(s_blame(config, "env", tt_train_columns(&columns, cfg)));
    const tt_status_t status = s_check_all(config, cfg, columns);
    tt_columns_destroy(&columns);
    return status;
}
