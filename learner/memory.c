#include "learner/memory.h"
#include <stdlib.h>
#include "common/base/mem.h"

struct memory {
    replay_cfg_t cfg;
    tt_feed_t feed;
    replay_t *replay;
    replay_sample_t sample;
    tt_norm_t *norm; /* of observations; NULL: they are as they are */
    float clip;
    uint32_t row;                /* bytes of an observation */
    char *obs[TT_FRAMES];        /* [units][row]            */
    const void *view[TT_FRAMES]; /* the same, to be read    */
};

/*  Observations, masks and actions; rewards and flags always are. What an actor added is not read again. */
static uint64_t s_stored(const tt_columns_t *columns)
{
    uint64_t store = 0;
    for (uint32_t c = 0; c < columns->action + columns->action_count; c++)
        store |= UINT64_C(1) << c;
    return store;
}

static void s_make_room(memory_t *self)
{
    for (int f = 0; f < TT_FRAMES; f++)
        self->view[f] = self->obs[f] = tt_aligned0(tt_mul(self->feed.units, self->row));
}

tt_status_t memory_new(
    memory_t **self_p, const tt_train_cfg_t *train, const tt_columns_t *columns, const tt_feed_t *feed, double gamma)
{
    memory_t *self = tt_new0(sizeof *self);
    self->feed = *feed;
    self->row = columns->row;
    self->cfg = (replay_cfg_t){.columns = columns,
        .store = s_stored(columns),
        .N = train->num_envs,
        .T = train->num_steps,
        .capacity = feed->capacity,
        .stripes = train->learner.shards,
        .ahead = feed->ahead,
        .gamma = gamma,
        .stack = columns->stack.frames,
        .pad = columns->stack.pad,
        .alpha = feed->alpha,
        .epsilon = feed->epsilon,
        .priority_delay = feed->priority_delay,
        .seed = train->seed};
    if (train->normalize.obs)
        self->norm = tt_norm_new(columns->scaled);
    self->clip = train->normalize.clip_obs;
    s_make_room(self);
    const tt_status_t status = replay_new(&self->replay, &self->cfg);
    if (status == TT_OK)
        *self_p = self;
    else
        memory_destroy(&self);
    return status;
}

void memory_destroy(memory_t **self_p)
{
    memory_t *self = *self_p;
    if (!self)
        return;
    replay_destroy(&self->replay);
    tt_norm_destroy(&self->norm);
    for (int f = 0; f < TT_FRAMES; f++)
        free(self->obs[f]);
    free(self);
    *self_p = NULL;
}

void memory_reset(memory_t *self)
{
    replay_destroy(&self->replay);
    const tt_status_t again = replay_new(&self->replay, &self->cfg);
    TT_CHECK(again == TT_OK); /* as the first time */
}

/* ---- in --------------------------------------------------------------------------------------------------------------- */

tt_status_t memory_insert(memory_t *self, const intake_batch_t *batch, const uint8_t *broken)
{
    replay_stats_t stats;
    replay_stats(self->replay, &stats);
    if (stats.batches && stats.next > batch->batch)
        return TT_OK;
    replay_part_t *part = tt_array0(self->cfg.N, sizeof *part);
    uint32_t parts = 0;
    for (uint32_t lo = 0, hi; lo < self->cfg.N; lo = hi) {
        const intake_segment_t *segment = batch->segment[batch->owner[lo] - 1];
        for (hi = lo + 1; hi < self->cfg.N && batch->owner[hi] == batch->owner[lo]; hi++)
            continue;
        part[parts++] = (replay_part_t){.at = &segment->at,
            .E = segment->shape.E,
            .K = segment->shape.K,
            .first = lo - segment->env_lo,
            .count = hi - lo,
            .env = lo};
    }
    const tt_status_t status = replay_insert(self->replay, batch->batch, part, parts, broken);
    free(part);
    return status;
}

uint32_t memory_owed(const memory_t *self, uint64_t update)
{
    const uint64_t rows = (uint64_t)self->cfg.N * self->cfg.T;
    const tt_feed_t *feed = &self->feed;
    if (!replay_ready(self->replay))
        return 0;
    return (uint32_t)(replay_owed((update + 1) * rows, feed->start, feed->every, feed->steps) -
                      replay_owed(update * rows, feed->start, feed->every, feed->steps));
}

/* ---- out -------------------------------------------------------------------------------------------------------------- */

/*  Of the importance weights, by the rows that were inserted. */
static float s_beta(const memory_t *self)
{
    replay_stats_t stats;
    replay_stats(self->replay, &stats);
    const tt_feed_t *feed = &self->feed;
    const double rows = (double)stats.next * self->cfg.N * self->cfg.T, end = (double)feed->beta_rows;
    const double share = end > 0 && rows < end ? rows / end : 1;
    return (float)((double)feed->beta + share * ((double)feed->beta_end - (double)feed->beta));
}

tt_status_t memory_scale(memory_t *self, const double *block)
{
    return self->norm ? tt_norm_load(self->norm, block, tt_norm_block_count(self->cfg.columns->scaled)) : TT_OK;
}

tt_status_t memory_draw(memory_t *self, uint64_t total, const replay_sample_t **out)
{
    TT_TRY(replay_sample(self->replay, total, self->feed.units, s_beta(self), &self->sample));
    *out = &self->sample;
    return TT_OK;
}

void memory_gather(memory_t *self, uint32_t lo, uint32_t hi)
{
    const uint64_t *unit = self->sample.unit + lo;
    const size_t at = (size_t)lo * self->row;
    const uint32_t units = hi - lo;
    replay_gather_scaled(self->replay, unit, units, REPLAY_AT, self->norm, self->clip, self->obs[TT_AT] + at);
    replay_gather_scaled(self->replay, unit, units, REPLAY_NEXT, self->norm, self->clip, self->obs[TT_NEXT] + at);
}

const void *const *memory_obs(const memory_t *self)
{
    return self->view;
}

tt_status_t memory_found(memory_t *self, uint64_t total, const float *x)
{
    return replay_priorities(self->replay, total, x, self->feed.units);
}

replay_t *memory_replay(memory_t *self)
{
    return self->replay;
}

void memory_metrics(const memory_t *self, uint64_t made, tt_metric_fn emit, void *ctx)
{
    replay_stats_t stats;
    replay_stats(self->replay, &stats);
    emit(ctx, "replay/rows", (double)stats.rows);
    emit(ctx, "replay/units", (double)stats.units);
    emit(ctx, "replay/bytes", (double)stats.bytes);
    emit(ctx, "replay/sampled", (double)made * self->feed.units);
    if (self->feed.alpha > 0)
        emit(ctx, "replay/max_priority", (double)stats.max_priority);
}
