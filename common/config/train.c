#include "common/config/train.h"
#include <arpa/inet.h>
#include <ctype.h>
#include <math.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/rl/spaces.h"

#define AT(member)   offsetof(tt_train_cfg_t, member)
#define ROOM(member) sizeof(((tt_train_cfg_t *)NULL)->member)

const tt_cfg_field_t tt_train_fields[] = {
    {"name", TT_CFG_STR, AT(name), "", .size = ROOM(name), .help = "name of the run; default: from the env",
        .resume = TT_CFG_FREE},
    {"seed", TT_CFG_U64, AT(seed), "1", .help = "of everything random; the same seed gives the same weights"},
    {"env", TT_CFG_STR, AT(env), NULL, .size = ROOM(env),
        .help = "id ('tutti envs' lists them), gym:ID for any of Gymnasium's, or the path of a shared object"},
    {"env.args", TT_CFG_MAP, AT(env_args), "{}",
        .help = "what the environment takes ('tutti envs ENV' lists it): env: {id: ENV, args: {KEY: VALUE}}"},
    {"env.python", TT_CFG_STR, AT(gym.python), "", .size = ROOM(gym.python),
        .help = "gym: the interpreter; default: TT_PYTHON, an active environment's, python3 of PATH",
        .resume = TT_CFG_FREE, .quiet = true},
    {"env.path", TT_CFG_STR, AT(gym.path), "", .size = ROOM(gym.path),
        .help = "gym: folders of modules of your own, divided by ':'; default: the config's and the current one",
        .resume = TT_CFG_FREE, .quiet = true},
    {"env.workers", TT_CFG_U32, AT(gym.workers), "0", 0, 1024,
        .help = "gym: worker processes of each collector, at most one an environment; 0 = as many as cores",
        .resume = TT_CFG_FREE, .quiet = true},
    {"env.wrappers", TT_CFG_TEXTS, AT(gym.wrappers), "",
        .help =
            "gym: wrappers of Gymnasium's, or module:Class, the innermost first: [FlattenObservation, NAME(KEY=VALUE)]",
        .quiet = true},
    {"env.mask", TT_CFG_STR, AT(gym.mask), "", .size = ROOM(gym.mask),
        .help = "gym: the key of `info` under which it says which choices are allowed: action_mask; default: all are",
        .quiet = true},
    {"env.stack", TT_CFG_U32, AT(stack.frames), "1", 1, TT_STACK_MAX,
        .help =
            "observations show the newest so many, as Gymnasium's FrameStackObservation; each is stored and sent once",
        .quiet = true},
    {"env.stack_pad", TT_CFG_ENUM, AT(stack.pad), "reset", .choices = "reset|zero",
        .help = "what stands for those before an episode: its first, or zeros", .quiet = true},
    {"env.frames.screen_size", TT_CFG_U32, AT(frames.screen_size), "0", 0, 1024,
        .help =
            "Atari's games: grey screens of so many pixels a side, as Gymnasium's AtariPreprocessing; 0 = none of it",
        .quiet = true},
    {"env.frames.frame_skip", TT_CFG_U32, AT(frames.frame_skip), "4", 1, 64,
        .help = "frames for which an action is held; the larger of the last two are seen", .quiet = true},
    {"env.frames.noop_max", TT_CFG_U32, AT(frames.noop_max), "30", 0, 1024,
        .help = "an episode begins with 1 to so many idle frames; 0 = none", .quiet = true},
    {"env.frames.terminal_on_life_loss", TT_CFG_BOOL, AT(frames.terminal_on_life_loss), "false",
        .help = "a lost life ends an episode", .quiet = true},
    {"env.frames.clip_reward", TT_CFG_BOOL, AT(frames.clip_reward), "false",
        .help = "rewards are -1, 0 or 1: their sign", .quiet = true},
    {"num_envs", TT_CFG_U32, AT(num_envs), "8", 1, TT_ENVS_MAX, .help = "environments, in all collectors together"},
    {"num_steps", TT_CFG_U32, AT(num_steps), "128", 1, TT_STEPS_MAX, .help = "steps of every environment in a batch"},
    {"lag", TT_CFG_U32, AT(lag), "1", 0, TT_LAG_MAX,
        .help = "updates that a batch may be behind: 0 lock-step, 1 pipelined, more: asynchronous"},
    {"algorithm.name", TT_CFG_STR, AT(algorithm.name), "ppo", .size = ROOM(algorithm.name),
        .help = "'tutti algorithms' lists them; its options stand beside it"},
    {"network.hidden", TT_CFG_LIST, AT(network.hidden), "[64, 64]", 0, TT_LAYERS_MAX,
        .help = "units of each hidden layer"},
    {"network.activation", TT_CFG_ENUM, AT(network.activation), "tanh", .choices = "tanh|relu",
        .help = "of the hidden layers"},
    {"network.shared", TT_CFG_BOOL, AT(network.shared), "false",
        .help = "policy and value function read the same hidden layers; false: each has its own"},
    {"network.init", TT_CFG_ENUM, AT(network.init), "orthogonal", .choices = "orthogonal|uniform",
        .help = "first weights; uniform: within 1/sqrt(inputs), biases too, as PyTorch's Linear"},
    {"network.encoder", TT_CFG_WORDS, AT(network.encoder), "none", .size = ROOM(network.encoder),
        .help =
            "before the hidden layers, for pictures: none, nature, impala, minatar, or a list of layers: conv 32 8x8 "
            "/4 pad 1 relu; max_pool 3x3 /2 pad 1; avg_pool 2x2 /2; dense 512 relu; layer_norm; relu; tanh; residual 2 "
            "(LAYERS); concat KEY; embed KEY 16. With one, network.hidden is [] unless it is set (of sac and td3 it "
            "stays as it is)"},
    {"network.rnn", TT_CFG_ENUM, AT(network.rnn), "none", .choices = "none|lstm|gru",
        .help = "a layer that remembers, between the encoder (or the observation) and the hidden layers. With one, "
                "network.hidden is [] and network.shared true unless they are set"},
    {"network.rnn_size", TT_CFG_U32, AT(network.rnn_size), "128", 1, TT_UNITS_MAX, .help = "units of network.rnn"},
    {"network.picture", TT_CFG_STR, AT(network.picture), "", .size = ROOM(network.picture),
        .help =
            "KEY of the observation that the encoder reads as a picture; default: the only one of bytes with two or "
            "three dimensions"},
    {"normalize.obs", TT_CFG_BOOL, AT(normalize.obs), "false",
        .help = "observations to mean 0 and variance 1, as seen so far"},
    {"normalize.reward", TT_CFG_BOOL, AT(normalize.reward), "false",
        .help = "rewards by the deviation of the discounted return so far"},
    {"normalize.clip_obs", TT_CFG_F32, AT(normalize.clip_obs), "10", 0.1, 1e6,
        .help = "normalised observations are cut to -x .. x"},
    {"normalize.clip_reward", TT_CFG_F32, AT(normalize.clip_reward), "10", 0.1, 1e6,
        .help = "normalised rewards are cut to -x .. x"},
    {"collector.replicas", TT_CFG_U32, AT(collector.replicas), "1", 1, TT_COLLECTORS_MAX,
        .help = "processes that play; at most num_envs", .resume = TT_CFG_FREE},
    {"collector.device", TT_CFG_STR, AT(collector.device), "cpu", .size = ROOM(collector.device),
        .help =
            "where collectors evaluate the policy: cpu, cuda or cuda:N (card N), auto (a card where there is one); the "
            "result is the same",
        .resume = TT_CFG_FREE},
    {"learner.replicas", TT_CFG_U32, AT(learner.replicas), "1", 1, TT_LEARNERS_MAX,
        .help = "processes that learn; at most learner.shards", .resume = TT_CFG_FREE},
    {"learner.shards", TT_CFG_U32, AT(learner.shards), "2", 1, TT_SHARDS_OF_JOB_MAX,
        .help = "parts of a minibatch's gradient, a power of two; the result depends on it, not on the replicas"},
    {"learner.threads", TT_CFG_U32, AT(learner.threads), "1", 0, TT_THREADS_MAX,
        .help = "threads of each learner; 0 = one a core", .resume = TT_CFG_FREE},
    {"learner.device", TT_CFG_STR, AT(learner.device), "cpu", .size = ROOM(learner.device),
        .help = "where learners compute: cpu, cuda or cuda:N (card N), auto (a card where there is one); the result is "
                "the same",
        .resume = TT_CFG_FREE},
    {"learner.precision", TT_CFG_ENUM, AT(learner.precision), "exact", .choices = "exact|tf32|bf16",
        .help = "how learners multiply large layers: exact gives the CPU's bits; tf32 and bf16 are rounded, by "
                "tensor cores, and want a card (learner.device)",
        .resume = TT_CFG_GIVEN, .quiet = true},
    {"aggregator.replicas", TT_CFG_U32, AT(aggregator.replicas), "0", 0, TT_AGGREGATORS_MAX,
        .help = "processes that sum gradients; 0 = one when there are several learners", .resume = TT_CFG_FREE},
    {"stop.env_steps", TT_CFG_U64, AT(stop.env_steps), "null", 1, 1e18,
        .help = "end after so many env steps; null = no such end", .resume = TT_CFG_GIVEN},
    {"stop.return_mean", TT_CFG_F64, AT(stop.return_mean), "null", -1e12, 1e12,
        .help = "end when the last 100 episodes' mean return reaches it; null = no such end", .resume = TT_CFG_GIVEN},
    {"stop.wall_s", TT_CFG_F64, AT(stop.wall_s), "null", 0, 1e9,
        .help = "end after so many seconds; null = no such end", .resume = TT_CFG_GIVEN},
    {"eval.every", TT_CFG_U64, AT(eval.every), "null", 1, 1e18,
        .help = "env steps from one evaluation beside training to the next; null = none", .resume = TT_CFG_FREE},
    {"eval.episodes", TT_CFG_U32, AT(eval.episodes), "10", 1, TT_EVAL_EPISODES_MAX,
        .help = "episodes of an evaluation, with the most probable actions", .resume = TT_CFG_FREE},
    {"eval.seed", TT_CFG_U64, AT(eval.seed), "1", .help = "of their environments; never the starts that training saw",
        .resume = TT_CFG_FREE},
    {"checkpoint.every_s", TT_CFG_F64, AT(checkpoint.every_s), "60", 0.01, 1e9,
        .help = "seconds between snapshots; null = only at the end", .resume = TT_CFG_FREE, .null = true},
    {"checkpoint.keep", TT_CFG_U32, AT(checkpoint.keep), "3", 1, 10000,
        .help = "newest snapshots kept, at least two, besides best and final", .resume = TT_CFG_FREE},
    {"net.beat_ms", TT_CFG_U32, AT(net.beat_ms), "1000", 10, TT_BEAT_MS_MAX, .help = "milliseconds between heartbeats",
        .resume = TT_CFG_FREE},
    {"net.lease_ms", TT_CFG_U32, AT(net.lease_ms), "5000", 20, TT_LEASE_MS_MAX,
        .help = "milliseconds of silence after which a process counts as dead", .resume = TT_CFG_FREE},
    {"net.stall_s", TT_CFG_U32, AT(net.stall_s), "60", 1, 86400,
        .help = "seconds without progress after which the run fails and says who waits for what",
        .resume = TT_CFG_FREE},
    {"net.shared_memory", TT_CFG_BOOL, AT(net.shared_memory), "true",
        .help = "learners on one host keep partial sums in memory that they share; false = they send them",
        .resume = TT_CFG_FREE},
    {"coordinator.listen", TT_CFG_STR, AT(coordinator.listen), "", .size = ROOM(coordinator.listen),
        .help = "tcp://ADDRESS:PORT lets roles on other hosts join; empty = this host only", .resume = TT_CFG_FREE},
    {"coordinator.http", TT_CFG_STR, AT(coordinator.http), "127.0.0.1:0", .size = ROOM(coordinator.http),
        .help = "ADDRESS:PORT of status, scale and metrics; port 0 = a free one", .resume = TT_CFG_FREE},
    {"space.obs", TT_CFG_STR, AT(space.obs), "", .size = ROOM(space.obs),
        .help = "the observation space in words (filled in from the env)"},
    {"space.action", TT_CFG_STR, AT(space.action), "", .size = ROOM(space.action),
        .help = "the action space in words (filled in from the env)"},
    {"space.mask", TT_CFG_BOOL, AT(space.mask), "false",
        .help = "the env says which choices are allowed (filled in from the env)"},
    {"space.env_state", TT_CFG_U32, AT(space.env_state), "0", 0, TT_ENV_STATE_MAX,
        .help = "bytes of one saved env, 0 = cannot be saved (filled in from the env)"},
    {"space.env_saves", TT_CFG_STR, AT(space.env_saves), "", .size = ROOM(space.env_saves),
        .help = "how the state of one of Gymnasium's is saved: by a copy or by its actions, and bytes (filled in from "
                "the env)"},
    {"space.divisor", TT_CFG_U32, AT(space.divisor), "1", 1, 255,
        .help = "what the encoder divides the picture's bytes by: 255, or 1 (filled in from the env)"},
    {"space.threshold", TT_CFG_F64, AT(space.threshold), "null", -1e12, 1e12,
        .help = "mean return that counts as solved (filled in from the env)", .resume = TT_CFG_FREE},
    /* the algorithm's own keys say whether they may change in a resumed run */
    {"actor.kind", TT_CFG_ENUM, AT(actor.kind), "sample", .choices = "sample|argmax|squashed|mean",
        .help = "how collectors act (filled in from the algorithm)"},
    {"actor.squash", TT_CFG_BOOL, AT(actor.squash), "false",
        .help = "sample: numbers go through tanh onto the bounds of actions (filled in from the algorithm)"},
    {"actor.state_std", TT_CFG_BOOL, AT(actor.state_std), "false",
        .help = "sample: deviations of numbers come from the network (filled in from the algorithm)"},
    {"actor.dueling", TT_CFG_BOOL, AT(actor.dueling), "false",
        .help = "argmax: values of choices are made of the state's and advantages (filled in from the algorithm)"},
    {"actor.quantiles", TT_CFG_U32, AT(actor.quantiles), "0", 0, TT_QUANTILES_MAX,
        .help = "argmax: values of choices are means of so many numbers; 0 = of one (filled in from the algorithm)"},
    {"actor.atoms", TT_CFG_U32, AT(actor.atoms), "0", 0, TT_ATOMS_MAX,
        .help = "argmax: values of choices are expected of so many atoms; 0 = there are none (filled in from the "
                "algorithm)"},
    {"actor.v_min", TT_CFG_F32, AT(actor.v_min), "0", -1e6, 1e6,
        .help = "argmax: the first atom (filled in from the algorithm)"},
    {"actor.v_max", TT_CFG_F32, AT(actor.v_max), "0", -1e6, 1e6,
        .help = "argmax: the last atom (filled in from the algorithm)"},
    {"actor.noisy", TT_CFG_F32, AT(actor.noisy), "0", 0, TT_NOISE_MAX,
        .help = "argmax: layers of heads are noisy, with so much at first; 0 = none (filled in from the algorithm)"},
    {"actor.epsilon", TT_CFG_F64, AT(actor.epsilon), "0", 0, 1,
        .help = "argmax: probability of a uniform choice, at first (filled in from the algorithm)",
        .resume = TT_CFG_FREE},
    {"actor.epsilon_end", TT_CFG_F64, AT(actor.epsilon_end), "0", 0, 1,
        .help = "argmax: the same, later on (filled in from the algorithm)", .resume = TT_CFG_FREE},
    {"actor.epsilon_rows", TT_CFG_U64, AT(actor.epsilon_rows), "0", 0, 1e18,
        .help = "env steps from the one to the other (filled in from the algorithm)", .resume = TT_CFG_FREE},
    {"actor.random_rows", TT_CFG_U64, AT(actor.random_rows), "0", 0, 1e18,
        .help = "env steps that are all uniform choices (filled in from the algorithm)", .resume = TT_CFG_FREE},
    {"actor.sigma", TT_CFG_F32, AT(actor.sigma), "0", 0, TT_SIGMA_MAX,
        .help = "mean: deviation of the noise, of numbers within -1 and 1 (filled in from the algorithm)",
        .resume = TT_CFG_FREE},
    {"actor.epsilon_power", TT_CFG_F32, AT(actor.epsilon_power), "0", 0, TT_EPSILON_POWER_MAX,
        .help = "argmax: of env i of N, epsilon ^ (1 + this i / (N - 1)) (filled in from the algorithm)",
        .resume = TT_CFG_FREE},
    {"actor.groups", TT_CFG_STR, AT(actor.groups), "", .size = ROOM(actor.groups),
        .help = "parts of the weights with an optimiser each, by the tower that each begins with: 'policy: actor, "
                "baseline: critic'; empty = one (filled in from the algorithm)",
        .quiet = true},
    {0},
};

bool tt_train_fills_in(const char *key)
{
    return strncmp(key, "space.", 6) == 0 || strncmp(key, "actor.", 6) == 0;
}

/*  "file:1:2: key" of what is at fault, said once. */
#define BAD(key, ...) s_bad(config, key, tt_err(TT_CONFIG, __VA_ARGS__))

static tt_status_t s_bad(const tt_config_t *config, const char *key, tt_status_t status)
{
    return tt_err_wrap(status, "%s: %s", tt_config_origin(config, key), key);
}

static bool s_is_name(const char *name)
{
    for (; *name; name++)
        if (!isalnum((unsigned char)*name) && !strchr("-_.", *name))
            return false;
    return true;
}

static tt_status_t s_check_replicas(const tt_config_t *config, const tt_train_cfg_t *cfg)
{
    const uint32_t shards = cfg->learner.shards;
    if ((shards & (shards - 1)) != 0)
        return BAD("learner.shards", "%u is not a power of two", shards);
    if (cfg->learner.replicas > shards)
        return BAD("learner.replicas", "%u learners, but learner.shards is %u (%s): every learner needs a shard",
            cfg->learner.replicas, shards, tt_config_origin(config, "learner.shards"));
    if (cfg->collector.replicas > cfg->num_envs)
        return BAD("collector.replicas", "%u collectors, but num_envs is %u (%s): every collector needs an environment",
            cfg->collector.replicas, cfg->num_envs, tt_config_origin(config, "num_envs"));
    return TT_OK;
}

static bool s_is_port(const char *text)
{
    char *end;
    return isdigit((unsigned char)*text) && strtoul(text, &end, 10) <= 65535 && !*end;
}

/*  1.2.3.4 or [::1]. */
static bool s_is_numeric(const char *host)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    const size_t length = strlen(host);
    char inside[64];
    if (host[0] != '[' || host[length - 1] != ']' || length > sizeof inside)
        return inet_pton(AF_INET, host, bytes) == 1;
    snprintf(inside, sizeof inside, "%.*s", (int)length - 2, host + 1);
    return inet_pton(AF_INET6, inside, bytes) == 1;
}

/*  The name of a network interface, which may or may not be there. */
static bool s_is_interface(const char *host)
{
    const size_t length = strlen(host);
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)host[i]) && !strchr("-_.", host[i]))
            return false;
    return length > 0 && length < IF_NAMESIZE && !isdigit((unsigned char)host[0]);
}

/*  "HOST:PORT" taken apart: what can be bound, so that `run` does not refuse what `check` lets through. any: '*' stands for
 *  every address, or a free port, and interfaces have names, as ZeroMQ has it. */
static bool s_is_address(const char *text, bool any)
{
    char host[128];
    const char *colon = strrchr(text, ':');
    if (!colon || (size_t)(colon - text) >= sizeof host)
        return false;
    snprintf(host, sizeof host, "%.*s", (int)(colon - text), text);
    if (!s_is_port(colon + 1) && !(any && strcmp(colon + 1, "*") == 0))
        return false;
    if (*host && s_is_numeric(host))
        return true;
    return any ? strcmp(host, "*") == 0 || s_is_interface(host) : strcmp(host, "localhost") == 0;
}

static tt_status_t s_check_net(const tt_config_t *config, const tt_train_cfg_t *cfg)
{
    if (cfg->net.lease_ms < 2 * cfg->net.beat_ms)
        return BAD("net.lease_ms",
            "%u is less than twice net.beat_ms, which is %u (%s): one lost beat would end a process", cfg->net.lease_ms,
            cfg->net.beat_ms, tt_config_origin(config, "net.beat_ms"));
    const char *listen = cfg->coordinator.listen;
    if (*listen && (strncmp(listen, "tcp://", 6) != 0 || !s_is_address(listen + 6, true)))
        return BAD("coordinator.listen",
            "'%s' is not of the form tcp://ADDRESS:PORT, with a numeric address, an interface's name or *", listen);
    if (*cfg->coordinator.http && !s_is_address(cfg->coordinator.http, false))
        return BAD("coordinator.http", "'%s' is not of the form ADDRESS:PORT with a numeric address, as 127.0.0.1:0",
            cfg->coordinator.http);
    return TT_OK;
}

tt_status_t tt_train_check(const tt_config_t *config, const tt_train_cfg_t *cfg)
{
    if (!s_is_name(cfg->name) || cfg->name[0] == '.' || cfg->name[0] == '-')
        return BAD(
            "name", "'%s' is not a name: letters, digits, '-', '_', '.', beginning with a letter or digit", cfg->name);
    if (!*cfg->env)
        return BAD("env", "is empty; 'tutti envs' lists the environments");
    if ((uint64_t)cfg->num_envs * cfg->num_steps > TT_BATCH_ROWS_MAX)
        return BAD("num_steps", "a batch of %u envs x %u steps has more than %d rows", cfg->num_envs, cfg->num_steps,
            TT_BATCH_ROWS_MAX);
    TT_TRY(s_check_replicas(config, cfg));
    return s_check_net(config, cfg);
}

bool tt_train_endless(const tt_train_cfg_t *cfg)
{
    return !cfg->stop.env_steps && isnan(cfg->stop.return_mean) && isnan(cfg->stop.wall_s);
}

/*  Words that stand for a space. */
static tt_status_t s_check_space(const tt_config_t *config, const char *key, const char *text)
{
    tt_space_t *space = NULL;
    const tt_status_t status = tt_space_parse(&space, text);
    tt_space_free(&space);
    if (status == TT_OK)
        return TT_OK;
    tt_err_wrap(status, "%s: %s: this is not a resolved config", tt_config_origin(config, key), key);
    return TT_CONFIG;
}

bool tt_train_collectors_warm(const tt_train_cfg_t *cfg)
{
    return cfg->space.env_saves[0] && cfg->space.env_state > 0;
}

tt_status_t tt_train_parse(tt_train_cfg_t *out, const char *text, size_t size)
{
    tt_config_t *config = NULL;
    TT_TRY(tt_config_parse(&config, text, size, "job"));
    tt_train_cfg_t cfg = {.replays = tt_config_has(config, "replay.")};
    tt_config_upgrade_spaces(config);
    tt_config_ignore(config, "algorithm.");
    tt_config_ignore(config, "replay.");
    tt_status_t status = tt_config_claim(config, tt_train_fields, &cfg);
    if (status == TT_OK)
        status = tt_config_finish(config);
    if (status == TT_OK)
        status = tt_train_check(config, &cfg);
    if (status == TT_OK && (!cfg.space.obs[0] || !cfg.space.action[0]))
        status = tt_err(TT_CONFIG, "job: space.obs and space.action are missing: this is not a resolved config");
    if (status == TT_OK)
        status = s_check_space(config, "space.obs", cfg.space.obs);
    if (status == TT_OK)
        status = s_check_space(config, "space.action", cfg.space.action);
    if (status == TT_OK)
        *out = cfg;
    tt_config_destroy(&config);
    return status;
}
