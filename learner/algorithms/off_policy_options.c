#include "learner/algorithms/off_policy_options.h"
#include <inttypes.h>
#include "common/base/limits.h"
#include "common/job/fit.h"
#include "learner/replay/stripes.h"

#define BAD(key, ...) COMMON_BAD(config, key, __VA_ARGS__)

uint64_t off_policy_batch(const tt_train_cfg_t *train)
{
    return (uint64_t)train->num_envs * train->num_steps;
}

static tt_status_t s_check_steps(
    const tt_config_t *config, const tt_train_cfg_t *train, const off_policy_cfg_t *cfg, off_policy_turns_t turns)
{
    const uint32_t shards = train->learner.shards, wanted = (cfg->batch_size + shards / 2) / shards * shards;
    const uint64_t end = train->stop.env_steps;
    const uint64_t most = ((off_policy_batch(train) - 1) / (cfg->train_every * turns.rounds) + 1) *
                          cfg->gradient_steps * turns.steps; /* of an update */
    if (cfg->batch_size % shards)
        return BAD("algorithm.batch_size",
            "%" PRIu32 " is no multiple of learner.shards %" PRIu32 " (%s); nearest: %" PRIu32, cfg->batch_size, shards,
            tt_config_origin(config, "learner.shards"), wanted ? wanted : shards);
    if (most > UINT32_MAX)
        return BAD("algorithm.gradient_steps",
            "%" PRIu32 " for every %" PRIu32 " env steps (algorithm.train_every) are %" PRIu64
            " optimizer steps in an update of %" PRIu64 " env steps, more than can be counted",
            cfg->gradient_steps, cfg->train_every, most, off_policy_batch(train));
    if (end && cfg->learning_starts >= end)
        return BAD("algorithm.learning_starts",
            "%" PRIu64 " env steps, but stop.env_steps is %" PRIu64 " (%s): nothing would "
            "be learned",
            cfg->learning_starts, end, tt_config_origin(config, "stop.env_steps"));
    return TT_OK;
}

/*  Clocks that a replay must hold so that each stripe always has a unit: N envs lie side by side in as many stripes, and each
 *  block of clocks after that adds one. */
static uint64_t s_least_clocks(const tt_train_cfg_t *train, const off_policy_cfg_t *cfg)
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
static tt_status_t s_check_travels(const tt_config_t *config, const tt_train_cfg_t *train, const off_policy_cfg_t *cfg)
{
    enum { ROOM = TT_FRAME_MAX / 2, BESIDE = 16 /* bytes of a row: priority, flags of its env */ };
    const bool stored = train->coordinator.listen[0] && cfg->save, joins = train->learner.shards > 1;
    const uint64_t row = stored ? s_row_bytes(train) + BESIDE : sizeof(float);
    if (!(stored || joins) || cfg->capacity <= ROOM / row)
        return TT_OK;
    if (!stored)
        return BAD("replay.capacity",
            "%" PRIu64 " transitions have more priorities than a learner that joins can be sent: at most %" PRIu64
            ", unless learner.shards is 1 (one learner)",
            cfg->capacity, ROOM / row);
    return BAD("replay.capacity",
        "%" PRIu64 " transitions of %" PRIu64
        " bytes are more than a learner on another host can store: at most %" PRIu64
        ", unless replay.save is false or coordinator.listen is not set",
        cfg->capacity, row, ROOM / row);
}

/*  A replay has whole batches, which go to joiners and into snapshots as they are: none may be larger than a segment can be. */
static tt_status_t s_check_batch(const tt_config_t *config, const tt_train_cfg_t *train)
{
    const uint64_t row = s_row_bytes(train), most = row ? TT_SEGMENT_MAX / row : UINT64_MAX;
    if (off_policy_batch(train) <= most)
        return TT_OK;
    return BAD("num_steps",
        "a batch of %" PRIu32 " envs x %" PRIu32 " steps has %" PRIu64 " transitions of %" PRIu64
        " bytes, a replay takes %" PRIu64 " (%d MiB) at once: lower it, or num_envs",
        train->num_envs, train->num_steps, off_policy_batch(train), row, most, TT_SEGMENT_MAX >> 20);
}

static tt_status_t s_check_capacity(const tt_config_t *config, const tt_train_cfg_t *train, const off_policy_cfg_t *cfg)
{
    const uint64_t batch = off_policy_batch(train), capacity = cfg->capacity;
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

/*  Observations are normalised when they are read; of a return of n steps, each reward of which would be clipped, the rewards are not
 *  there any more then. */
static tt_status_t s_check_normalize(const tt_config_t *config, const tt_train_cfg_t *train)
{
    if (train->normalize.reward)
        return BAD("normalize.reward", "true, but rewards from a replay are not scaled: set it to false");
    return TT_OK;
}

tt_status_t off_policy_check(
    const tt_config_t *config, const tt_train_cfg_t *train, const off_policy_cfg_t *cfg, off_policy_turns_t turns)
{
    TT_TRY(s_check_normalize(config, train));
    TT_TRY(s_check_steps(config, train, cfg, turns));
    return s_check_capacity(config, train, cfg);
}

tt_feed_t off_policy_feed(const tt_train_cfg_t *train, const off_policy_cfg_t *cfg, off_policy_turns_t turns)
{
    return (tt_feed_t){.source = TT_FEED_REPLAY,
        .capacity = cfg->capacity * s_row_bytes(train),
        .ahead = cfg->n_step,
        .units = cfg->batch_size,
        .save = cfg->save,
        .memory = (tt_memory_t)cfg->memory,
        .start = cfg->learning_starts,
        .every = cfg->train_every * turns.rounds,
        .steps = cfg->gradient_steps * turns.steps};
}
