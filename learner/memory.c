#define TT_LOG_COMPONENT "replay"
#include "learner/memory.h"
#include <inttypes.h>
#include <stdlib.h>
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/job/fit.h"
#include "learner/shelf.h"
#include "learner/shift.h"

struct memory {
    replay_cfg_t cfg;
    tt_feed_t feed;
    replay_t *replay;
    replay_sample_t sample;
    tt_norm_t *norm; /* of observations; NULL: they are as they are */
    float clip;
    shift_t *shift;       /* of pictures; NULL: they are as they are             */
    shelf_t *shelf;       /* NULL: frames are on the host alone                  */
    tt_stream_t *stream;  /* for what is put there                               */
    uint64_t shown;       /* batches before it are on the shelf                  */
    char *obs[TT_FRAMES]; /* [units][columns->row]; NULL: nobody asked for them  */
    size_t room;          /* of sequences: rows of obs[TT_AT]                    */
    sequences_t sequences;
    float *found; /* [units] of sequences: what their rows' errors come to */
    compute_units_t view;
};

/* ---- make and end ------------------------------------------------------------------------------------------------------- */

/*  Observations, masks and actions; rewards and flags always are. What an actor added is not read again. */
static uint64_t s_stored(const tt_columns_t *columns)
{
    uint64_t store = 0;
    for (uint32_t c = 0; c < columns->action + columns->action_count; c++)
        store |= UINT64_C(1) << c;
    return store;
}

static replay_cfg_t s_cfg(const tt_train_cfg_t *train, const tt_columns_t *columns, const tt_feed_t *feed, double gamma)
{
    return (replay_cfg_t){.columns = columns,
        .store = s_stored(columns),
        .N = train->num_envs,
        .T = train->num_steps,
        .capacity = feed->capacity,
        .stripes = train->learner.shards,
        .ahead = feed->ahead,
        .length = feed->length,
        .burn = feed->burn,
        .carry = feed->length ? columns->carry : 0,
        .gamma = gamma,
        .stack = columns->stack.frames,
        .pad = columns->stack.pad,
        .alpha = feed->alpha,
        .epsilon = feed->epsilon,
        .priority_delay = feed->priority_delay,
        .seed = train->seed};
}

tt_status_t memory_new(
    memory_t **self_p, const tt_train_cfg_t *train, const tt_columns_t *columns, const tt_feed_t *feed, double gamma)
{
    memory_t *self = tt_new0(sizeof *self);
    self->feed = *feed;
    self->cfg = s_cfg(train, columns, feed, gamma);
    if (train->normalize.obs)
        self->norm = tt_norm_new(columns->scaled);
    self->clip = train->normalize.clip_obs;
    if (feed->shift) {
        const tt_net_spec_t net = tt_train_net(train, columns);
        self->shift = shift_new(&net, train->seed, feed->units, feed->shift);
    }
    if (feed->length) {
        sequences_init(&self->sequences, &self->cfg, feed->units);
        self->found = tt_array0(feed->units, sizeof *self->found);
        self->view.sequences = &self->sequences;
    }
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
    shift_destroy(&self->shift);
    shelf_destroy(&self->shelf);
    replay_destroy(&self->replay);
    tt_norm_destroy(&self->norm);
    for (int f = 0; f < TT_FRAMES; f++)
        free(self->obs[f]);
    sequences_free(&self->sequences);
    free(self->found);
    free(self);
    *self_p = NULL;
}

void memory_reset(memory_t *self)
{
    replay_destroy(&self->replay);
    const tt_status_t again = replay_new(&self->replay, &self->cfg);
    TT_CHECK(again == TT_OK); /* as the first time */
    self->shown = 0;
}

/* ---- where frames are ------------------------------------------------------------------------------------------------- */

uint64_t memory_copy_bytes(const tt_train_cfg_t *train, const tt_columns_t *columns, const tt_feed_t *feed)
{
    const replay_cfg_t cfg = s_cfg(train, columns, feed, 0);
    return replay_places_of(&cfg) * columns->frame;
}

static double s_mib(uint64_t bytes)
{
    return (double)bytes / (1 << 20);
}

/*  Half of a card's memory is left to networks, their work and other processes. */
static bool s_wants_shelf(const memory_t *self, tt_device_t *device)
{
    const uint64_t needs = shelf_needs(self->replay, self->cfg.columns), free_bytes = tt_device_free(device);
    if (self->feed.memory != TT_MEMORY_AUTO)
        return self->feed.memory == TT_MEMORY_BOTH;
    if (free_bytes && needs > free_bytes / 2)
        log_info(
            "frames stay in the host's memory: on %s they would take %.1f MiB, more than half of the %.1f MiB that are "
            "free there (replay.memory)",
            tt_device_name(device), s_mib(needs), s_mib(free_bytes));
    return free_bytes && needs <= free_bytes / 2;
}

tt_status_t memory_place(memory_t *self, tt_device_t *device, tt_stream_t *stream)
{
    if (!s_wants_shelf(self, device))
        return TT_OK;
    self->stream = stream;
    const tt_status_t status = shelf_new(&self->shelf, self->replay, self->cfg.columns, device);
    if (status == TT_UNAVAILABLE && self->feed.memory == TT_MEMORY_AUTO) {
        log_info("frames stay in the host's memory: %s (replay.memory)", tt_err_text());
        return TT_OK;
    }
    if (status != TT_OK)
        return tt_err_wrap(status == TT_UNAVAILABLE ? TT_UNSUPPORTED : status, "replay.memory is both");
    log_info("frames are in the memory of %s, too: %.1f MiB", tt_device_name(device), s_mib(shelf_bytes(self->shelf)));
    return TT_OK;
}

/* ---- in --------------------------------------------------------------------------------------------------------------- */

static uint32_t s_parts(const memory_t *self, const intake_batch_t *batch, replay_part_t *part)
{
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
    return parts;
}

static tt_status_t s_insert(
    memory_t *self, uint64_t batch, const replay_part_t *part, uint32_t parts, const uint8_t *broken)
{
    replay_stats_t stats;
    replay_stats(self->replay, &stats);
    if (stats.batches == 0 || stats.next <= batch)
        return replay_insert(self->replay, batch, part, parts, broken);
    if (replay_has(self->replay, batch, part, parts, broken))
        return TT_OK;
    return tt_err(TT_UNAVAILABLE,
        "batch %" PRIu64 " is in the replay, and was then composed anew of other rows: this learner begins anew, with "
        "the replay of the others",
        batch);
}

tt_status_t memory_insert(memory_t *self, const intake_batch_t *batch, const uint8_t *broken)
{
    replay_part_t *part = tt_array0(self->cfg.N, sizeof *part);
    const uint32_t parts = s_parts(self, batch, part);
    const tt_status_t status = s_insert(self, batch->batch, part, parts, broken);
    free(part);
    return status;
}

tt_status_t memory_load(memory_t *self, const void *block, size_t size, const replay_pieces_t *pieces)
{
    self->shown = 0;
    return replay_load(self->replay, block, size, pieces);
}

tt_status_t memory_take(memory_t *self, replay_warm_t *warm, const void *block, size_t size)
{
    self->shown = 0;
    return replay_warm_finish(warm, self->replay, block, size);
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

/*  What came in since it was drawn from. */
static tt_status_t s_follow(memory_t *self)
{
    replay_stats_t stats;
    replay_stats(self->replay, &stats);
    if (!self->shelf || self->shown == stats.next)
        return TT_OK;
    TT_TRY(shelf_follow(self->shelf, self->replay, self->stream, self->shown));
    self->shown = stats.next;
    return TT_OK;
}

tt_status_t memory_draw(memory_t *self, uint64_t total, const replay_sample_t **out)
{
    TT_TRY(s_follow(self));
    TT_TRY(replay_sample(self->replay, total, self->feed.units, s_beta(self), &self->sample));
    if (self->shift)
        shift_draw(self->shift, total);
    *out = &self->sample;
    return TT_OK;
}

static const replay_frame_t s_of[TT_FRAMES] = {[TT_AT] = REPLAY_AT, [TT_NEXT] = REPLAY_NEXT};

static void s_gather(memory_t *self, uint32_t lo, uint32_t hi, int frame)
{
    const size_t row = self->cfg.columns->row;
    char **obs = &self->obs[frame];
    if (!*obs)
        self->view.rows[frame] = *obs = tt_aligned0(tt_mul(self->feed.units, row));
    replay_gather_scaled(
        self->replay, self->sample.unit + lo, hi - lo, s_of[frame], self->norm, self->clip, *obs + lo * row);
    if (self->shift)
        shift_rows(self->shift, (tt_frame_t)frame, lo, hi, *obs, row);
}

/*  Rows of the replay, from `at` on of the table. */
static void s_gather_rows(memory_t *self, const uint64_t *row, uint32_t rows, replay_frame_t frame, size_t at)
{
    replay_gather_scaled(
        self->replay, row, rows, frame, self->norm, self->clip, self->obs[TT_AT] + at * self->cfg.columns->row);
}

static void s_gather_sequences(memory_t *self)
{
    const sequences_t *of = &self->sequences;
    const size_t rows = (size_t)sequences_rows(of) + of->finals;
    if (self->room < rows) {
        self->room = rows + of->finals;
        free(self->obs[TT_AT]);
        self->view.rows[TT_AT] = self->obs[TT_AT] = tt_aligned0(tt_mul(self->room, self->cfg.columns->row));
    }
    for (uint32_t block = 0; block < of->frames; block++) {
        const size_t at = (size_t)block * of->units + of->lo;
        s_gather_rows(self, of->row + at, of->hi - of->lo, REPLAY_AT, at);
    }
    s_gather_rows(self, of->final, of->finals, REPLAY_FINAL, sequences_rows(of));
}

static const compute_units_t *s_sequences(memory_t *self, uint32_t lo, uint32_t hi)
{
    sequences_read(&self->sequences, self->replay, &self->sample, lo, hi);
    if (self->shelf)
        shelf_sequences(self->shelf, self->replay, &self->sequences, self->norm, self->clip, &self->view.stored[TT_AT]);
    else
        s_gather_sequences(self);
    return &self->view;
}

static void s_lend(memory_t *self, uint32_t lo, uint32_t hi, int frame)
{
    tt_stored_t *stored = &self->view.stored[frame];
    shelf_rows(self->shelf, self->replay, &(shelf_units_t){self->sample.unit, self->feed.units, lo, hi}, s_of[frame],
        self->norm, self->clip, stored);
    if (self->shift)
        stored->shift = shift_of(self->shift, (tt_frame_t)frame);
}

const compute_units_t *memory_units(memory_t *self, uint32_t lo, uint32_t hi)
{
    if (self->feed.length)
        return s_sequences(self, lo, hi);
    for (int f = 0; f < TT_FRAMES; f++)
        (self->shelf ? s_lend : s_gather)(self, lo, hi, f);
    return &self->view;
}

/*  Kapturowski et al. 2019, section 2.3: eta of the largest, the rest of the mean. A number that is none stays so. */
static float s_mixed(const memory_t *self, const float *x, uint32_t unit)
{
    const uint32_t units = self->feed.units, length = self->feed.length;
    double sum = 0, most = 0;
    for (uint32_t t = 0; t < length; t++) {
        const double error = (double)x[(size_t)t * units + unit];
        sum += error;
        most = error > most ? error : most;
    }
    const double eta = (double)self->feed.eta;
    return (float)(eta * most + (1 - eta) * (sum / length));
}

tt_status_t memory_found(memory_t *self, uint64_t total, const float *x)
{
    if (!(self->feed.alpha > 0))
        return TT_OK;
    for (uint32_t u = 0; self->found && u < self->feed.units; u++)
        self->found[u] = s_mixed(self, x, u);
    x = self->found ? self->found : x;
    return replay_priorities(self->replay, total, x, self->feed.units);
}

const replay_t *memory_replay(const memory_t *self)
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
    emit(ctx, "replay/device_bytes", self->shelf ? (double)shelf_bytes(self->shelf) : 0);
    emit(ctx, "replay/sampled", (double)made * self->feed.units);
    if (self->feed.alpha > 0)
        emit(ctx, "replay/max_priority", (double)stats.max_priority);
}
