#define TT_LOG_COMPONENT "checkpoint"
#include <math.h>
#include <stdio.h>
#include "common/base/log.h"
#include "learner/core.h"

enum { DUE_PATIENCE_MS = 2000, FINAL_PATIENCE_MS = 15000 };

/*  Of a replay that an earlier life saved, and this one does not. */
static void s_sweep(const char *folder, uint64_t update)
{
    tt_piece_files_t files = {0};
    tt_piece_files_list(folder, &files);
    if (files.count)
        tt_checkpoints_sweep(folder, update, &files, NULL);
    tt_piece_files_free(&files);
}

static state_replay_t s_replay(const core_t *self)
{
    return self->model.shape.feed.save ? STATE_REPLAY_SINCE : STATE_REPLAY_NONE;
}

static tt_status_t s_write_here(core_t *self, const char *name, const char *path, bool best)
{
    char folder[4200];
    tt_snapshot_t snapshot;
    TT_TRY(tt_checkpoints_open(self->control.run_dir, folder, sizeof folder));
    state_capture(self, s_replay(self), 0, &snapshot);
    tt_link_state(self->link, "writing %s", name);
    const tt_status_t status = tt_snapshot_write(&snapshot, path, core_gets_on(self));
    state_release(&snapshot);
    TT_TRY(status);
    if (best)
        TT_TRY(tt_checkpoint_alias(folder, name, TT_CHECKPOINT_BEST));
    tt_checkpoints_keep(folder, self->model.train.checkpoint.keep, self->at.update, &self->checkpoint.found);
    if (self->data.memory)
        s_sweep(folder, self->at.update);
    return TT_OK;
}

static tt_status_t s_store(core_t *self, const tt_snapshot_t *snapshot, const char *name, bool best, int patience_ms)
{
    tt_buf_t bytes;
    tt_buf_init(&bytes, TT_SNAPSHOT_WIRE_MAX);
    tt_status_t status = tt_snapshot_encode(snapshot, &bytes);
    if (status == TT_OK)
        status = snapshot_remote_store(self, name, best, &bytes, patience_ms);
    tt_buf_free(&bytes);
    return status;
}

static tt_status_t s_write_there(core_t *self, const char *name, bool best, int patience_ms)
{
    tt_snapshot_t snapshot;
    state_capture(self, s_replay(self), 0, &snapshot);
    const tt_status_t status = s_store(self, &snapshot, name, best, patience_ms);
    state_release(&snapshot);
    return status;
}

/*  path: in the run directory, wherever that is. */
static tt_status_t s_write(core_t *self, const char *name, const char *path, int patience_ms)
{
    const double mean = tt_episodes_return_mean(self->statistics.episodes);
    const bool best = !self->evaluate && record_better(&self->record, mean);
    TT_TRY(
        self->location->dir[0] ? s_write_here(self, name, path, best) : s_write_there(self, name, best, patience_ms));
    self->checkpoint.newest_ns = tt_now_ns(self->clock);
    report_snapshot(self, path, mean, self->at.update, self->at.batches_counted * self->model.batch_steps);
    log_info("%s", path);
    return TT_OK;
}

void checkpoint_begin(core_t *self)
{
    char folder[4200];
    self->checkpoint.newest_ns = self->pace.laps.lap_ns;
    snprintf(folder, sizeof folder, "%s/" TT_CHECKPOINTS, self->control.run_dir);
    if (self->location->dir[0])
        tt_checkpoints_list(folder, &self->checkpoint.found);
    keeping_begin(self);
}

void checkpoint_end(checkpoint_t *self)
{
    tt_checkpoint_updates_free(&self->found);
}

void checkpoint_hurry(core_t *self)
{
    self->checkpoint.newest_ns = INT64_MIN / 2;
}

static bool s_is_due(const core_t *self)
{
    const double every_s = self->model.train.checkpoint.every_s;
    return !isnan(every_s) && (double)(tt_now_ns(self->clock) - self->checkpoint.newest_ns) >= every_s * 1e9;
}

static tt_status_t s_write_due(core_t *self)
{
    char name[TT_CHECKPOINT_NAME], path[4200];
    tt_checkpoint_name(name, self->at.update);
    snprintf(path, sizeof path, "%s/" TT_CHECKPOINTS "/%s", self->control.run_dir, name);
    return s_write(self, name, path, DUE_PATIENCE_MS);
}

/*  A full disk is no reason to lose the run: say so and try again at the next one. */
tt_status_t checkpoint_when_due(core_t *self)
{
    const bool due = s_is_due(self), beside = keeping_does(self);
    if (due)
        self->checkpoint.newest_ns = tt_now_ns(self->clock);
    if (beside || !due)
        return beside ? keeping_turn(self, due) : TT_OK;
    const tt_status_t status = s_write_due(self);
    if (status == TT_OK || status == TT_STOPPED)
        return TT_OK;
    report_unsaved(self, tt_err_text());
    return TT_OK;
}

tt_status_t checkpoint_final(core_t *self, char *path, size_t size)
{
    snprintf(path, size, "%s/" TT_CHECKPOINTS "/%s", self->control.run_dir, TT_CHECKPOINT_FINAL);
    const tt_status_t status =
        keeping_does(self) ? keeping_final(self) : s_write(self, TT_CHECKPOINT_FINAL, path, FINAL_PATIENCE_MS);
    if (status == TT_STOPPED)
        return TT_OK;
    return status == TT_OK ? TT_OK : tt_err_wrap(status, "the final checkpoint could not be written");
}

static tt_status_t s_write_best(core_t *self, const tt_snapshot_t *snapshot)
{
    char folder[4200], path[4300];
    if (!self->location->dir[0])
        return s_store(self, snapshot, TT_CHECKPOINT_BEST, false, DUE_PATIENCE_MS);
    TT_TRY(tt_checkpoints_open(self->control.run_dir, folder, sizeof folder));
    if (!tt_checkpoint_exceeds_best(folder, snapshot->return_mean))
        return TT_OK;
    snprintf(path, sizeof path, "%s/%s", folder, TT_CHECKPOINT_BEST);
    tt_link_state(self->link, "writing " TT_CHECKPOINT_BEST);
    return tt_snapshot_write(snapshot, path, core_gets_on(self));
}

tt_status_t checkpoint_best(core_t *self, const tt_snapshot_version_t *version, double return_mean)
{
    tt_snapshot_t snapshot;
    state_expect(self, &snapshot);
    snapshot.bare = true;
    snapshot.update = version->version;
    snapshot.return_mean = return_mean;
    snapshot.params = version->params;
    snapshot.versions = 1;
    snapshot.version[0] = *version;
    const tt_status_t status = s_write_best(self, &snapshot);
    if (status == TT_OK || status == TT_STOPPED)
        return TT_OK;
    log_error("the best version was not kept: %s", tt_err_text());
    report_event(self, "warning", tt_err_text(), 0);
    return TT_OK;
}
