#define TT_LOG_COMPONENT "keeping"
#include "learner/keeping.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "common/base/log.h"
#include "learner/core.h"

enum { INLINE_BATCHES = 2, INLINE_SHARE = 64, FILE_SHARE = 8, FILE_LEAST = 256 << 10 };

/*  Where learners may come from other hosts, any of them may have to begin from a snapshot: it has to be in one piece. */
bool keeping_does(const core_t *self)
{
    return self->data.memory && self->model.shape.feed.save && self->location->dir[0] &&
           !self->model.train.coordinator.listen[0];
}

/* ---- make and end ------------------------------------------------------------------------------------------------------- */

/*  Only so that a wait ends; keep_take takes what has been done. */
static tt_status_t s_on_fd(void *ctx, int fd)
{
    (void)ctx;
    uint64_t rung;
    const ssize_t got = read(fd, &rung, sizeof rung);
    return got == sizeof rung || errno == EAGAIN || errno == EINTR ? TT_OK : tt_err_errno(TT_OS, "eventfd");
}

static tt_status_t s_open(core_t *self)
{
    char folder[4200];
    if (self->keeping.keep)
        return TT_OK;
    const uint64_t share = self->model.shape.feed.capacity / FILE_SHARE;
    TT_TRY(tt_checkpoints_open(self->control.run_dir, folder, sizeof folder));
    const keep_cfg_t cfg = {.folder = folder,
        .instance = tt_link_instance(self->link),
        .file_bytes = share > FILE_LEAST ? share : FILE_LEAST};
    TT_TRY(keep_new(&self->keeping.keep, &cfg));
    tt_loop_fd(self->loop, keep_fd(self->keeping.keep), s_on_fd, self);
    return TT_OK;
}

/*  When a snapshot is due is late enough to say that there is no place for it. */
void keeping_begin(core_t *self)
{
    if (keeping_does(self) && s_open(self) != TT_OK)
        log_debug("%s", tt_err_text());
}

void keeping_inherit(core_t *self, uint64_t leader)
{
    if (self->keeping.keep)
        keep_inherit(self->keeping.keep, leader);
}

void keeping_reset(core_t *self)
{
    if (self->keeping.keep)
        keep_forget(self->keeping.keep);
    self->keeping.phase = KEEPING_NOTHING;
    self->keeping.broken = false;
}

void keeping_close(keeping_t *self)
{
    keep_destroy(&self->keep);
}

uint64_t keeping_disk(const core_t *self)
{
    return self->keeping.disk;
}

/* ---- pieces --------------------------------------------------------------------------------------------------------------- */

static uint64_t s_oldest(const core_t *self)
{
    return replay_oldest(memory_replay(self->data.memory));
}

static tt_status_t s_give_piece(core_t *self, uint64_t first, uint64_t settled, uint64_t *bytes)
{
    const replay_t *replay = memory_replay(self->data.memory);
    const uint64_t next = replay_run(replay, first, settled), size = replay_batches_size(replay, first, next);
    tt_buf_t piece;
    tt_buf_init(&piece, size);
    TT_TRY(replay_save_batches(replay, first, next, &piece));
    keep_piece(self->keeping.keep, &piece, self->view.era, self->at.update, first, next);
    self->keeping.given += size;
    *bytes = size;
    return TT_OK;
}

/*  A few: what is copied now, the others wait for. */
static tt_status_t s_give(core_t *self)
{
    keep_t *keep = self->keeping.keep;
    const uint64_t oldest = s_oldest(self), settled = replay_settled(memory_replay(self->data.memory));
    for (uint64_t given = 0, bytes; given < 2 * REPLAY_PIECE && keep_has_room(keep); given += bytes) {
        const uint64_t first = keep_next(keep, oldest);
        if (first >= settled)
            break;
        TT_TRY(s_give_piece(self, first, settled, &bytes));
    }
    return TT_OK;
}

/*  What would be in the snapshot itself is little. */
static bool s_is_little(const core_t *self)
{
    const replay_t *replay = memory_replay(self->data.memory);
    const uint64_t share = self->model.shape.feed.capacity / INLINE_SHARE, settled = replay_settled(replay);
    const uint64_t first = keep_next(self->keeping.keep, s_oldest(self));
    return first + INLINE_BATCHES >= settled ||
           replay_batches_size(replay, first, settled) <= (share < REPLAY_PIECE ? share : REPLAY_PIECE);
}

/* ---- the snapshot ----------------------------------------------------------------------------------------------------------- */

static void s_name(const core_t *self, bool final, char out[TT_CHECKPOINT_NAME])
{
    if (final)
        snprintf(out, TT_CHECKPOINT_NAME, "%s", TT_CHECKPOINT_FINAL);
    else
        tt_checkpoint_name(out, self->at.update);
}

/*  Of what is now; only copies are handed over. */
static tt_status_t s_make(core_t *self, bool final)
{
    tt_snapshot_t snapshot;
    tt_buf_t bytes;
    tt_buf_init(&bytes, TT_SNAPSHOT_FILE_MAX);
    TT_TRY(state_capture(self, STATE_REPLAY_BESIDE, 0, &snapshot));
    keep_snapshot_t what = {.best = checkpoint_is_best(self, &snapshot),
        .keep = self->model.train.checkpoint.keep,
        .update = self->at.update,
        .env_steps = self->at.batches_counted * self->model.batch_steps,
        .return_mean = snapshot.return_mean};
    const tt_status_t status = tt_snapshot_encode(&snapshot, &bytes);
    state_release(&snapshot);
    s_name(self, final, what.name);
    if (status == TT_OK)
        keep_snapshot(self->keeping.keep, &bytes, &what);
    tt_buf_free(&bytes);
    self->keeping.phase = status == TT_OK ? KEEPING_WRITES : KEEPING_NOTHING;
    return status;
}

/*  It is in place. */
static void s_tell(core_t *self, const keep_snapshot_t *what)
{
    char path[4300];
    if (what->best)
        record_better(&self->record, what->return_mean);
    snprintf(path, sizeof path, "%s/" TT_CHECKPOINTS "/%s", self->control.run_dir, what->name);
    report_snapshot(self, path, what->return_mean, what->update, what->env_steps);
    log_info("%s; the replay's files have %llu bytes", path, (unsigned long long)self->keeping.disk);
}

/*  What has been done since. TT_OK: nothing, or all went well. */
static tt_status_t s_take(core_t *self)
{
    keeping_t *keeping = &self->keeping;
    keep_snapshot_t what;
    const tt_status_t status = keep_take(keeping->keep, &what, &keeping->disk);
    if (status == TT_AGAIN)
        return TT_OK;
    keeping->phase = KEEPING_NOTHING;
    if (status == TT_OK)
        s_tell(self, &what);
    return status;
}

/* ---- beside the training ------------------------------------------------------------------------------------------------------ */

/*  Wait until all that was given is done. *served: what became of that, if it is the learner's end; else the snapshot failed. */
static tt_status_t s_await(core_t *self, uint32_t era, tt_status_t *served)
{
    while (keep_under_way(self->keeping.keep)) {
        const uint64_t moved = keep_moved(self->keeping.keep);
        TT_TRY(*served = core_wait(self, "writing the replay to disk"));
        if (self->ending.leave || self->view.era != era || !core_leads(self))
            return TT_STOPPED;
        TT_TRY(s_take(self));
        if (keep_moved(self->keeping.keep) != moved)
            core_progress(self);
        core_lap(self, CORE_publish);
    }
    return TT_OK;
}

/*  All of it, now. */
static tt_status_t s_drain(core_t *self, uint32_t era, tt_status_t *served)
{
    for (;;) {
        TT_TRY(s_give(self));
        if (!keep_under_way(self->keeping.keep))
            return TT_OK;
        TT_TRY(s_await(self, era, served));
    }
}

/*  Experience comes faster than the disk takes it: the next one would be due already, or as much was written as there is. */
static bool s_is_late(const core_t *self)
{
    if (self->keeping.given >= self->model.shape.feed.capacity)
        return true;
    const double every_s = self->model.train.checkpoint.every_s, least_s = every_s > 1 ? every_s : 1;
    return (double)(tt_now_ns(self->clock) - self->keeping.since_ns) > least_s * 1e9;
}

/*  What comes while the last pieces are written is little again, or becomes another piece. */
static tt_status_t s_copy(core_t *self, tt_status_t *served)
{
    if (s_is_late(self))
        TT_TRY(s_drain(self, self->view.era, served));
    if (!s_is_little(self))
        return s_give(self);
    return keep_under_way(self->keeping.keep) ? TT_OK : s_make(self, false);
}

static tt_status_t s_go_on(core_t *self, tt_status_t *served)
{
    keeping_t *keeping = &self->keeping;
    TT_TRY(s_open(self));
    TT_TRY(s_take(self));
    return keeping->phase == KEEPING_COPIES ? s_copy(self, served) : TT_OK;
}

/*  A full disk is no reason to lose the run: say so, and try again with the next one. */
static void s_give_up(core_t *self)
{
    self->keeping.phase = KEEPING_NOTHING;
    report_unsaved(self, tt_err_text());
}

tt_status_t keeping_turn(core_t *self, bool due)
{
    keeping_t *keeping = &self->keeping;
    tt_status_t served = TT_OK;
    if (!due && keeping->phase == KEEPING_NOTHING)
        return TT_OK;
    if (keeping->phase == KEEPING_NOTHING) {
        keeping->phase = KEEPING_COPIES;
        keeping->given = 0;
        keeping->since_ns = tt_now_ns(self->clock);
    }
    const tt_status_t status = s_go_on(self, &served);
    if (served == TT_OK && status != TT_OK && status != TT_STOPPED)
        s_give_up(self);
    return served;
}

tt_status_t keeping_final(core_t *self)
{
    const uint32_t era = self->view.era;
    tt_status_t served = TT_OK;
    TT_TRY(s_open(self));
    const tt_status_t before = s_await(self, era, &served);
    if (served != TT_OK || before == TT_STOPPED)
        return before;
    if (before != TT_OK)
        s_give_up(self);
    TT_TRY(s_drain(self, era, &served));
    TT_TRY(s_make(self, true));
    return s_await(self, era, &served);
}

/* ---- back again ----------------------------------------------------------------------------------------------------------------- */

/*  On the way of pieces into a replay. */
typedef struct {
    core_t *core;
    const tt_snapshot_t *from;
    const char *folder;
    tt_buf_t bytes;
} load_t;

static void s_break(keeping_t *keeping)
{
    keeping->broken = true;
    snprintf(keeping->why, sizeof keeping->why, "%s", tt_err_text());
}

static tt_status_t s_get(void *ctx, uint32_t i, replay_piece_t *out)
{
    load_t *load = ctx;
    const tt_piece_t *piece = &load->from->piece[i];
    const tt_status_t status = tt_piece_read(load->folder, piece, &load->bytes);
    if (status != TT_OK)
        s_break(&load->core->keeping);
    TT_TRY(status);
    core_progress(load->core);
    *out = (replay_piece_t){load->bytes.data, load->bytes.size, piece->first, piece->next};
    return TT_OK;
}

static tt_status_t s_load(core_t *self, const tt_snapshot_t *from, const char *folder)
{
    load_t load = {.core = self, .from = from, .folder = folder};
    const replay_pieces_t pieces = {&load, (uint32_t)from->pieces, s_get};
    tt_buf_init(&load.bytes, SIZE_MAX / 2);
    self->keeping.broken = false;
    const tt_status_t status = memory_load(self->data.memory, from->replay, from->replay_bytes, &pieces);
    tt_buf_free(&load.bytes);
    return status;
}

static void s_say_empty(core_t *self, const char *why)
{
    char text[160];
    snprintf(text, sizeof text, "the replay begins empty: %s", why);
    log_warn("%s", text);
    report_event(self, "warning", text, 0);
}

tt_status_t keeping_load(core_t *self, const tt_snapshot_t *from, const char *folder)
{
    if (!self->data.memory)
        return TT_OK;
    if (!folder && (!from->replay || from->pieces))
        return tt_err(TT_DATA, "another learner's state lacks its replay");
    if (folder && (!self->model.shape.feed.save || !from->replay)) {
        s_say_empty(self, from->replay ? "replay.save is false" : "the snapshot was made without it");
        return TT_OK;
    }
    if (folder && !folder[0] && from->pieces)
        return tt_err(TT_DATA,
            "its replay is in files beside it, which a learner on another host cannot read: let learner/0 run on the "
            "coordinator's host, or go on with an empty one: replay.save=false");
    if (!folder)
        return warm_finish(self, from->replay, from->replay_bytes);
    TT_TRY(s_load(self, from, folder));
    if (!folder[0])
        return TT_OK;
    TT_TRY(s_open(self));
    keep_adopt(self->keeping.keep, from->piece, from->pieces);
    return TT_OK;
}

bool keeping_refuse(core_t *self, const char *path)
{
    char text[1024];
    const char *slash = strrchr(path, '/');
    if (!self->keeping.broken)
        return false;
    snprintf(text, sizeof text, "%.100s: %.600s; without the replay it can be gone on from: replay.save=false",
        slash ? slash + 1 : path, self->keeping.why);
    self->keeping.broken = false;
    self->keeping.refused_era = self->view.era;
    log_error("%s", text);
    report_event(self, "damaged", text, 0);
    return true;
}

bool keeping_refused(const core_t *self)
{
    return self->keeping.refused_era && self->keeping.refused_era == self->view.era;
}
