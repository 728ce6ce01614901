#include "learner/algorithms/off_policy_options.h"
#include <inttypes.h>
#include "common/base/limits.h"
#include "common/job/fit.h"
#include "learner/shift.h"
#include "learner/replay/stripes.h"

#define BAD(key, ...) COMMON_BAD(config, key, __VA_ARGS__)

uint64_t off_policy_batch(const tt_train_cfg_t *train)
{
    return (uint64_t)train->num_envs * train->num_steps;
}

static tt_status_t s_check_steps(
    const tt_config_t *config, const tt_train_cfg_t *train, const off_policy_cfg_t *cfg, off_policy_form_t form)
{
    const uint32_t shards = train->learner.shards, wanted = (cfg->batch_size + shards / 2) / shards * shards;
    const uint64_t end = train->stop.env_steps;
    const uint64_t most = ((off_policy_batch(train) - 1) / (cfg->train_every * form.rounds) + 1) * cfg->gradient_steps *
                          form.steps; /* of an update */
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
    if (end && (uint64_t)cfg->train_every * form.rounds > end - cfg->learning_starts)
        return BAD("algorithm.train_every",
            "%" PRIu32 " env steps, but stop.env_steps is %" PRIu64 " (%s), of which algorithm.learning_starts has "
            "%" PRIu64 ": nothing would be learned",
            cfg->train_every, end, tt_config_origin(config, "stop.env_steps"), cfg->learning_starts);
    return TT_OK;
}

/*  What is stored, in bytes: of a row, what stands before the estimates of an actor-critic; of its final, the observation behind a time
 *  limit; of an env and batch, what is carried into it. 0: the settings have no spaces that could be read. */
typedef struct {
    uint64_t row, final, env;
    uint32_t shows; /* rows before its own that an observation shows */
} stored_t;

static stored_t s_stored(const tt_train_cfg_t *train, off_policy_form_t form)
{
    tt_columns_t *columns = NULL;
    stored_t stored = {0};
    if (tt_train_columns(&columns, train) != TT_OK)
        return stored;
    for (uint32_t c = 0; c <= columns->truncated; c++) {
        stored.row += columns->at[c].bytes;
        stored.final += columns->at[c].keep ? columns->at[c].bytes : 0;
    }
    if (form.length)
        stored.env = columns->carry * sizeof(float);
    stored.shows = columns->stack.frames ? columns->stack.frames - 1 : 0;
    tt_columns_destroy(&columns);
    return stored;
}

/*  Of so many rows. */
static uint64_t s_bytes(const tt_train_cfg_t *train, const stored_t *stored, uint64_t rows)
{
    return rows * stored->row + (rows + train->num_steps - 1) / train->num_steps * stored->env;
}

/*  Batches that a replay must hold so that each stripe always has a unit: N envs lie side by side in as many stripes, and each
 *  block of clocks after that adds one. Sequences are counted in batches, and begin with one. */
static uint64_t s_least_batches(
    const tt_train_cfg_t *train, const off_policy_cfg_t *cfg, off_policy_form_t form, const stored_t *stored)
{
    const uint32_t shards = train->learner.shards, missing = shards > train->num_envs ? shards - train->num_envs : 0;
    const uint64_t T = train->num_steps, rows = (uint64_t)form.burn + form.length + cfg->n_step;
    const uint64_t reach = form.length ? (rows + T - 1) / T : rows;
    const uint64_t before = form.length ? (stored->shows + T - 1) / T : stored->shows;
    const uint64_t least = before + reach + ((uint64_t)missing << stripes_log_block((uint32_t)reach));
    return form.length ? least : (least + T - 1) / T;
}

/*  Each row of these batches may have a final. */
static uint64_t s_least_bytes(
    const tt_train_cfg_t *train, const off_policy_cfg_t *cfg, off_policy_form_t form, const stored_t *stored)
{
    const uint64_t batch = off_policy_batch(train);
    return s_least_batches(train, cfg, form, stored) * (s_bytes(train, stored, batch) + batch * stored->final);
}

/*  A learner of another host stores the replay as a part of a snapshot, which has to fit in a message; on the coordinator's host it is in files of
 *  any size. A learner that joins is sent it in pieces, but the priorities in one message. With one shard there is one learner, which nobody
 *  joins. */
static tt_status_t s_check_travels(
    const tt_config_t *config, const tt_train_cfg_t *train, const off_policy_cfg_t *cfg, const stored_t *bytes)
{
    enum { ROOM = TT_FRAME_MAX / 2, BESIDE = 16 /* bytes of a row: priority, flags of its env */ };
    const bool stored = train->coordinator.listen[0] && cfg->save, joins = train->learner.shards > 1;
    const uint64_t row =
        stored ? bytes->row + (bytes->env + train->num_steps - 1) / train->num_steps + BESIDE : sizeof(float);
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
static tt_status_t s_check_batch(const tt_config_t *config, const tt_train_cfg_t *train, uint64_t row)
{
    const uint64_t most = row ? TT_SEGMENT_MAX / row : UINT64_MAX;
    if (off_policy_batch(train) <= most)
        return TT_OK;
    return BAD("num_steps",
        "a batch of %" PRIu32 " envs x %" PRIu32 " steps has %" PRIu64 " transitions of %" PRIu64
        " bytes, a replay takes %" PRIu64 " (%d MiB) at once: lower it, or num_envs",
        train->num_envs, train->num_steps, off_policy_batch(train), row, most, TT_SEGMENT_MAX >> 20);
}

static tt_status_t s_check_capacity(
    const tt_config_t *config, const tt_train_cfg_t *train, const off_policy_cfg_t *cfg, off_policy_form_t form)
{
    const uint64_t batch = off_policy_batch(train), capacity = cfg->capacity;
    const stored_t stored = s_stored(train, form);
    const uint64_t batches = s_least_batches(train, cfg, form, &stored);
    if (capacity < batch)
        return BAD("replay.capacity",
            "%" PRIu64 " transitions are less than one batch, which has %" PRIu64 " (num_envs %" PRIu32
            " times num_steps %" PRIu32 ")",
            capacity, batch, train->num_envs, train->num_steps);
    if (capacity < batches * batch)
        return BAD("replay.capacity",
            "%" PRIu64 " transitions are too few for learner.shards %" PRIu32 " (%s), each of which draws "
            "from a part of its own, and %s%" PRIu32 ": at least %" PRIu64,
            capacity, train->learner.shards, tt_config_origin(config, "learner.shards"),
            form.length ? "sequences that reach over rows, with n_step, of " : "n_step ",
            form.burn + form.length + cfg->n_step, batches * batch);
    TT_TRY(s_check_batch(config, train, stored.row));
    return s_check_travels(config, train, cfg, &stored);
}

/*  Observations are normalised when they are read; of a return of n steps, each reward of which would be clipped, the rewards are not
 *  there any more then. */
static tt_status_t s_check_normalize(const tt_config_t *config, const tt_train_cfg_t *train)
{
    if (train->normalize.reward)
        return BAD("normalize.reward", "true, but rewards from a replay are not scaled: set it to false");
    return TT_OK;
}

/*  Can what the encoder reads be shifted so far? */
static tt_status_t s_check_picture(
    const tt_config_t *config, const tt_train_cfg_t *train, const off_policy_cfg_t *cfg, const tt_columns_t *columns)
{
    const tt_net_spec_t net = tt_train_net(train, columns);
    tt_shift_t picture;
    if (!shift_picture(&net, &picture))
        return BAD("algorithm.random_shift",
            "%" PRIu32
            ", but no encoder reads a picture (network.encoder: %s): give it one that does, as nature, or set "
            "this to 0",
            cfg->random_shift, *train->network.encoder ? train->network.encoder : "none");
    const uint32_t side = picture.height < picture.width ? picture.height : picture.width;
    if (cfg->random_shift >= side)
        return BAD("algorithm.random_shift",
            "%" PRIu32 " pixels would leave nothing of a picture of %" PRIu32 " x %" PRIu32 ": at most %" PRIu32,
            cfg->random_shift, picture.height, picture.width, side - 1);
    return TT_OK;
}

static tt_status_t s_check_shift(const tt_config_t *config, const tt_train_cfg_t *train, const off_policy_cfg_t *cfg)
{
    tt_columns_t *columns = NULL;
    if (!cfg->random_shift)
        return TT_OK;
    if (train->network.rnn != TT_RNN_NONE)
        return BAD("algorithm.random_shift",
            "%" PRIu32
            ", but not with network.rnn (%s), which is trained on sequences: set it to 0, or network.rnn to none",
            cfg->random_shift, tt_config_origin(config, "network.rnn"));
    if (tt_train_columns(&columns, train) != TT_OK)
        return TT_OK; /* no spaces that could be read: who has some is told of it elsewhere */
    const tt_status_t status = s_check_picture(config, train, cfg, columns);
    tt_columns_destroy(&columns);
    return status;
}

tt_status_t off_policy_check(
    const tt_config_t *config, const tt_train_cfg_t *train, const off_policy_cfg_t *cfg, off_policy_form_t form)
{
    TT_TRY(s_check_normalize(config, train));
    TT_TRY(s_check_steps(config, train, cfg, form));
    TT_TRY(s_check_shift(config, train, cfg));
    return s_check_capacity(config, train, cfg, form);
}

tt_feed_t off_policy_feed(const tt_train_cfg_t *train, const off_policy_cfg_t *cfg, off_policy_form_t form)
{
    const stored_t stored = s_stored(train, form);
    const uint64_t asked = s_bytes(train, &stored, cfg->capacity), least = s_least_bytes(train, cfg, form, &stored);
    return (tt_feed_t){.source = TT_FEED_REPLAY,
        .capacity = asked > least ? asked : least,
        .length = form.length,
        .burn = form.burn,
        .ahead = cfg->n_step,
        .units = cfg->batch_size,
        .shift = cfg->random_shift,
        .save = cfg->save,
        .memory = (tt_memory_t)cfg->memory,
        .start = cfg->learning_starts,
        .every = cfg->train_every * form.rounds,
        .steps = cfg->gradient_steps * form.steps};
}
