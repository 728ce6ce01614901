#include "learner/algorithms/dqn_options.h"
#include <inttypes.h>
#include <stddef.h>
#include "common/base/limits.h"
#include "common/job/fit.h"
#include "learner/replay/replay.h"
#include "learner/replay/stripes.h"

#define AT(member)   offsetof(dqn_cfg_t, member)
#define CAPACITY_MAX 2e9 /* rows: within REPLAY_ROWS_MAX */

_Static_assert((uint64_t)CAPACITY_MAX <= REPLAY_ROWS_MAX, "a replay holds what the key may say");
_Static_assert((int)REPLAY_UNITS_MAX <= (int)TT_RIDE_MAX, "the priorities of a step ride on its sum");

const tt_cfg_field_t dqn_fields[] = {
    COMMON_LEARNING_RATE("1e-4"),
    COMMON_GAMMA(TT_CFG_FIXED), /* the replay holds returns that were discounted by it */
    {"algorithm.batch_size", TT_CFG_U32, AT(batch_size), "32", 1, REPLAY_UNITS_MAX,
        .help = "transitions of an optimizer step"},
    {"algorithm.double", TT_CFG_BOOL, AT(double_q), "false",
        .help = "the trained network chooses, the target network says what that is worth", .resume = TT_CFG_GIVEN},
    {"algorithm.dueling", TT_CFG_BOOL, AT(dueling), "false",
        .help = "the network says what a state is worth, and how much better each choice is"},
    {"algorithm.quantiles", TT_CFG_U32, AT(quantiles), "0", 0, TT_QUANTILES_MAX,
        .help = "how many quantiles of its return a choice has (QR-DQN; 50 to 200 are usual); 0 = its mean alone"},
    {"algorithm.noisy", TT_CFG_BOOL, AT(noisy), "false",
        .help = "layers of the heads are noisy, which explores in place of epsilon"},
    {"algorithm.noisy_sigma", TT_CFG_F32, AT(noisy_sigma), "0.5", 1e-3, TT_NOISE_MAX,
        .help = "of noisy layers: their deviations at first, times the root of the inputs"},
    {"algorithm.n_step", TT_CFG_U32, AT(n_step), "1", 1, REPLAY_AHEAD_MAX,
        .help = "rewards of a return before the target network goes on"},
    {"algorithm.loss", TT_CFG_ENUM, AT(loss), "huber", .choices = "huber|mse",
        .help = "of the error: linear beyond 1, or its square", .resume = TT_CFG_GIVEN},
    {"algorithm.target_every", TT_CFG_U64, AT(target_every), "10000", 1, 1e15,
        .help = "env steps after which the target network follows", .resume = TT_CFG_GIVEN},
    {"algorithm.tau", TT_CFG_F32, AT(tau), "1", 1e-6, 1, .help = "how far it follows; 1 = to the trained one",
        .resume = TT_CFG_GIVEN},
    {"algorithm.learning_starts", TT_CFG_U64, AT(learning_starts), "100", 0, 1e15,
        .help = "env steps before the first optimizer step, played at random"},
    {"algorithm.train_every", TT_CFG_U32, AT(train_every), "4", 1, 1e9,
        .help = "env steps for which gradient_steps are made"},
    {"algorithm.gradient_steps", TT_CFG_U32, AT(gradient_steps), "1", 1, 1e6,
        .help = "optimizer steps for train_every env steps"},
    {"algorithm.epsilon_start", TT_CFG_F64, AT(epsilon_start), "-1", -1, 1,
        .help = "probability of any choice at first; -1 = 1, or 0 where layers are noisy", .resume = TT_CFG_GIVEN},
    {"algorithm.epsilon_end", TT_CFG_F64, AT(epsilon_end), "-1", -1, 1,
        .help = "the same, later on; -1 = 0.05, or 0 where layers are noisy", .resume = TT_CFG_GIVEN},
    {"algorithm.epsilon_steps", TT_CFG_U64, AT(epsilon_steps), "0", 0, 1e15,
        .help = "env steps from the one to the other; 0 = a tenth of stop.env_steps", .resume = TT_CFG_GIVEN},
    {"algorithm.epsilon_power", TT_CFG_F32, AT(epsilon_power), "0", 0, TT_EPSILON_POWER_MAX,
        .help = "env i of N explores by epsilon ^ (1 + epsilon_power * i / (N - 1)); 0 = all alike",
        .resume = TT_CFG_GIVEN},
    COMMON_MAX_GRAD_NORM("10"),
    COMMON_OPTIMIZER("adam", "1e-8"),
    COMMON_HEAD_GAIN("1"),
    {"replay.capacity", TT_CFG_U64, AT(replay.capacity), "1e6", 1, CAPACITY_MAX,
        .help = "transitions that are kept; the oldest batches go first"},
    {"replay.prioritized", TT_CFG_BOOL, AT(replay.prioritized), "false",
        .help = "draw what was predicted badly more often"},
    {"replay.alpha", TT_CFG_F32, AT(replay.alpha), "0.6", 1e-3, 1, .help = "priority = (|error| + epsilon)^alpha"},
    {"replay.beta", TT_CFG_F32, AT(replay.beta), "0.4", 0, 1, .help = "weight = (n P)^-beta, at first",
        .resume = TT_CFG_GIVEN},
    {"replay.beta_end", TT_CFG_F32, AT(replay.beta_end), "1", 0, 1, .help = "the same, later on",
        .resume = TT_CFG_GIVEN},
    {"replay.beta_steps", TT_CFG_U64, AT(replay.beta_steps), "0", 0, 1e15,
        .help = "env steps from the one to the other; 0 = stop.env_steps", .resume = TT_CFG_GIVEN},
    {"replay.epsilon", TT_CFG_F32, AT(replay.epsilon), "1e-6", 1e-30, 1,
        .help = "so that every transition can be drawn"},
    {"replay.priority_delay", TT_CFG_U32, AT(replay.priority_delay), "1", 0, REPLAY_DELAY_MAX,
        .help = "optimizer steps after which new priorities count; 0 = with the next one"},
    {"replay.save", TT_CFG_BOOL, AT(replay.save), "true",
        .help = "snapshots have it too, in files beside them; false: a resumed run begins with an empty one",
        .resume = TT_CFG_GIVEN},
    {"replay.memory", TT_CFG_ENUM, AT(replay.memory), "auto", .choices = "auto|host|both",
        .help = "where learners have its frames: both = in the memory of learner.device, too; auto = there if it is a "
                "card with "
                "room; the result is the same",
        .resume = TT_CFG_FREE},
    {0},
};

/* ---- rules ---------------------------------------------------------------------------------------------------------- */

/*  "file:1:2: key" of what is at fault, said once. */
#define BAD(key, ...) s_bad(config, key, tt_err(TT_CONFIG, __VA_ARGS__))

static tt_status_t s_bad(const tt_config_t *config, const char *key, tt_status_t status)
{
    return tt_err_wrap(status, "%s: %s", tt_config_origin(config, key), key);
}

static uint64_t s_batch(const tt_train_cfg_t *train)
{
    return (uint64_t)train->num_envs * train->num_steps;
}

double dqn_epsilon_start(const dqn_cfg_t *cfg)
{
    const double usual = cfg->noisy ? 0 : 1;
    return cfg->epsilon_start == DQN_USUAL ? usual : cfg->epsilon_start;
}

double dqn_epsilon_end(const dqn_cfg_t *cfg)
{
    const double usual = cfg->noisy ? 0 : 0.05;
    return cfg->epsilon_end == DQN_USUAL ? usual : cfg->epsilon_end;
}

static tt_status_t s_check_usual(const tt_config_t *config, const char *key, double value)
{
    if (value >= 0 || value == DQN_USUAL)
        return TT_OK;
    return BAD(key, "%g is no probability: 0 to 1, or -1 for the usual", value);
}

static tt_status_t s_check_epsilon(const tt_config_t *config, const tt_train_cfg_t *train, const dqn_cfg_t *cfg)
{
    const double start = dqn_epsilon_start(cfg), end = dqn_epsilon_end(cfg);
    TT_TRY(s_check_usual(config, "algorithm.epsilon_start", cfg->epsilon_start));
    TT_TRY(s_check_usual(config, "algorithm.epsilon_end", cfg->epsilon_end));
    if (end > start)
        return BAD("algorithm.epsilon_end", "%g is more than algorithm.epsilon_start, which is %g (%s)", end, start,
            tt_config_origin(config, "algorithm.epsilon_start"));
    if (end < start && !cfg->epsilon_steps && !train->stop.env_steps)
        return BAD("algorithm.epsilon_steps", "0 is a tenth of stop.env_steps, which is not set: set one of both");
    return TT_OK;
}

static tt_status_t s_check_steps(const tt_config_t *config, const tt_train_cfg_t *train, const dqn_cfg_t *cfg)
{
    const uint32_t shards = train->learner.shards, wanted = (cfg->batch_size + shards / 2) / shards * shards;
    const uint64_t end = train->stop.env_steps;
    const uint64_t most = ((s_batch(train) - 1) / cfg->train_every + 1) * cfg->gradient_steps; /* of an update */
    if (cfg->batch_size % shards)
        return BAD("algorithm.batch_size",
            "%" PRIu32 " is no multiple of learner.shards %" PRIu32 " (%s); nearest: %" PRIu32, cfg->batch_size, shards,
            tt_config_origin(config, "learner.shards"), wanted ? wanted : shards);
    if (most > UINT32_MAX)
        return BAD("algorithm.gradient_steps",
            "%" PRIu32 " for every %" PRIu32 " env steps (algorithm.train_every) are %" PRIu64
            " optimizer steps in an update of %" PRIu64 " env steps, more than can be counted",
            cfg->gradient_steps, cfg->train_every, most, s_batch(train));
    if (end && cfg->learning_starts >= end)
        return BAD("algorithm.learning_starts",
            "%" PRIu64 " env steps, but stop.env_steps is %" PRIu64 " (%s): nothing would "
            "be learned",
            cfg->learning_starts, end, tt_config_origin(config, "stop.env_steps"));
    return s_check_epsilon(config, train, cfg);
}

/*  Clocks that a replay must hold so that each stripe always has a unit: N envs lie side by side in as many stripes, and each
 *  block of clocks after that adds one. */
static uint64_t s_least_clocks(const tt_train_cfg_t *train, const dqn_cfg_t *cfg)
{
    const uint32_t shards = train->learner.shards, missing = shards > train->num_envs ? shards - train->num_envs : 0;
    return cfg->n_step + ((uint64_t)missing << stripes_log_block(cfg->n_step));
}

/*  Of what stands before the estimates of an actor-critic in a row; 0: the settings have no spaces that could be read. */
static uint64_t s_row_bytes(const tt_train_cfg_t *train)
{
    tt_columns_t *columns = NULL;
    uint64_t bytes = 0;
    if (tt_train_columns(&columns, train) != TT_OK)
        return 0;
    for (uint32_t c = 0; c <= columns->truncated; c++)
        bytes += columns->at[c].bytes;
    tt_columns_destroy(&columns);
    return bytes;
}

/*  A learner of another host stores the replay as a part of a snapshot, which has to fit in a message; on the coordinator's host it is in files of
 *  any size. A learner that joins is sent it in pieces, but the priorities in one message. With one shard there is one learner, which nobody
 *  joins. */
static tt_status_t s_check_travels(const tt_config_t *config, const tt_train_cfg_t *train, const dqn_cfg_t *cfg)
{
    enum { ROOM = TT_FRAME_MAX / 2, BESIDE = 16 /* bytes of a row: priority, flags of its env */ };
    const bool stored = train->coordinator.listen[0] && cfg->replay.save, joins = train->learner.shards > 1;
    const uint64_t row = stored ? s_row_bytes(train) + BESIDE : sizeof(float);
    if (!(stored || joins) || cfg->replay.capacity <= ROOM / row)
        return TT_OK;
    if (!stored)
        return BAD("replay.capacity",
            "%" PRIu64 " transitions have more priorities than a learner that joins can be sent: at most %" PRIu64
            ", unless learner.shards is 1 (one learner)",
            cfg->replay.capacity, ROOM / row);
    return BAD("replay.capacity",
        "%" PRIu64 " transitions of %" PRIu64
        " bytes are more than a learner on another host can store: at most %" PRIu64
        ", unless replay.save is false or coordinator.listen is not set",
        cfg->replay.capacity, row, ROOM / row);
}

/*  A replay has whole batches, which go to joiners and into snapshots as they are: none may be larger than a segment can be. */
static tt_status_t s_check_batch(const tt_config_t *config, const tt_train_cfg_t *train)
{
    const uint64_t row = s_row_bytes(train), most = row ? TT_SEGMENT_MAX / row : UINT64_MAX;
    if (s_batch(train) <= most)
        return TT_OK;
    return BAD("num_steps",
        "a batch of %" PRIu32 " envs x %" PRIu32 " steps has %" PRIu64 " transitions of %" PRIu64
        " bytes, a replay takes %" PRIu64 " (%d MiB) at once: lower it, or num_envs",
        train->num_envs, train->num_steps, s_batch(train), row, most, TT_SEGMENT_MAX >> 20);
}

static tt_status_t s_check_capacity(const tt_config_t *config, const tt_train_cfg_t *train, const dqn_cfg_t *cfg)
{
    const uint64_t batch = s_batch(train), capacity = cfg->replay.capacity;
    const uint64_t batches = (s_least_clocks(train, cfg) + train->num_steps - 1) / train->num_steps;
    if (capacity < batch)
        return BAD("replay.capacity",
            "%" PRIu64 " transitions are less than one batch, which has %" PRIu64 " (num_envs %" PRIu32
            " times num_steps %" PRIu32 ")",
            capacity, batch, train->num_envs, train->num_steps);
    if (capacity < batches * batch)
        return BAD("replay.capacity",
            "%" PRIu64 " transitions are too few for learner.shards %" PRIu32 " (%s), each of which draws "
            "from a part of its own, and n_step %" PRIu32 ": at least %" PRIu64,
            capacity, train->learner.shards, tt_config_origin(config, "learner.shards"), cfg->n_step, batches * batch);
    TT_TRY(s_check_batch(config, train));
    return s_check_travels(config, train, cfg);
}

static tt_status_t s_check_priorities(const tt_config_t *config, const tt_train_cfg_t *train, const dqn_cfg_t *cfg)
{
    if (!cfg->replay.prioritized)
        return TT_OK;
    if (cfg->replay.beta_end < cfg->replay.beta)
        return BAD("replay.beta_end", "%g is less than replay.beta, which is %g (%s)", (double)cfg->replay.beta_end,
            (double)cfg->replay.beta, tt_config_origin(config, "replay.beta"));
    if (cfg->replay.beta_end > cfg->replay.beta && !cfg->replay.beta_steps && !train->stop.env_steps)
        return BAD("replay.beta_steps", "0 is stop.env_steps, which is not set: set one of both");
    return TT_OK;
}

/*  Observations are normalised when they are read; of a return of n steps, each reward of which would be clipped, the rewards are not
 *  there any more then. */
static tt_status_t s_check_normalize(const tt_config_t *config, const tt_train_cfg_t *train)
{
    if (train->normalize.reward)
        return BAD("normalize.reward", "true, but rewards from a replay are not scaled: set it to false");
    return TT_OK;
}

static tt_status_t s_check_quantiles(const tt_config_t *config, const dqn_cfg_t *cfg)
{
    if (cfg->quantiles && cfg->dueling)
        return BAD("algorithm.quantiles", "%" PRIu32 ", but a dueling network has values alone: set one of both",
            cfg->quantiles);
    if (cfg->quantiles && cfg->loss != DQN_HUBER)
        return BAD("algorithm.quantiles", "%" PRIu32 ", but algorithm.loss is mse, which finds means: say huber",
            cfg->quantiles);
    return TT_OK;
}

tt_status_t dqn_check(const tt_config_t *config, const tt_train_cfg_t *train, const dqn_cfg_t *cfg)
{
    TT_TRY(s_check_normalize(config, train));
    TT_TRY(s_check_quantiles(config, cfg));
    TT_TRY(s_check_steps(config, train, cfg));
    TT_TRY(s_check_capacity(config, train, cfg));
    return s_check_priorities(config, train, cfg);
}

/* ---- what the rest of the system is told ---------------------------------------------------------------------------- */

void dqn_shape(const tt_train_cfg_t *train, const dqn_cfg_t *cfg, tt_shape_t *out)
{
    const uint64_t end = train->stop.env_steps;
    out->actor = (tt_actor_t){.kind = TT_ACT_ARGMAX,
        .epsilon = dqn_epsilon_start(cfg),
        .epsilon_end = dqn_epsilon_end(cfg),
        .epsilon_rows = cfg->epsilon_steps ? cfg->epsilon_steps : end / 10,
        .epsilon_power = cfg->epsilon_power,
        .random_rows = cfg->learning_starts,
        .noisy = cfg->noisy ? cfg->noisy_sigma : 0,
        .quantiles = cfg->quantiles,
        .dueling = cfg->dueling};
    out->forwards = cfg->double_q ? 3 : 2; /* dqn_objective */
    out->feed = (tt_feed_t){.source = TT_FEED_REPLAY,
        .capacity = cfg->replay.capacity * s_row_bytes(train),
        .ahead = cfg->n_step,
        .units = cfg->batch_size,
        .alpha = cfg->replay.prioritized ? cfg->replay.alpha : 0,
        .epsilon = cfg->replay.epsilon,
        .beta = cfg->replay.beta,
        .beta_end = cfg->replay.beta_end,
        .beta_rows = cfg->replay.beta_steps ? cfg->replay.beta_steps : end,
        .priority_delay = cfg->replay.priority_delay,
        .save = cfg->replay.save,
        .memory = (tt_memory_t)cfg->replay.memory,
        .start = cfg->learning_starts,
        .every = cfg->train_every,
        .steps = cfg->gradient_steps};
    out->sets = 2;
    out->ride = cfg->replay.prioritized ? cfg->batch_size : 0;
}

/*  Rows that were inserted when the steps before this update's were made: the first end of a batch at which as many steps were
 *  owed as at the end of the last batch. 0: there were none. */
static uint64_t s_rows_before(const tt_train_cfg_t *train, const dqn_cfg_t *cfg, uint64_t rows)
{
    const uint64_t batch = s_batch(train), before = rows > batch ? rows - batch : 0;
    const uint64_t over = before > cfg->learning_starts ? before - cfg->learning_starts : 0;
    const uint64_t times = over / cfg->train_every;
    const uint64_t least = cfg->learning_starts + times * cfg->train_every;
    return times ? (least + batch - 1) / batch * batch : 0;
}

bool dqn_follows(const tt_train_cfg_t *train, const dqn_cfg_t *cfg, const tt_at_t *at)
{
    return at->step == 0 && at->rows / cfg->target_every > s_rows_before(train, cfg, at->rows) / cfg->target_every;
}
