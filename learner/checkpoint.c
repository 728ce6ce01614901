#define TT_LOG_COMPONENT "checkpoint"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "common/base/log.h"
#include "learner/core.h"

enum { DUE_PATIENCE_MS = 2000, FINAL_PATIENCE_MS = 15000 };

/*  Of a replay that an earlier life saved, and this one does not. */
static void s_sweep(const char *folder, uint64_t update)
{
    tt_piece_files_t files = {0};
    if (tt_piece_files_list(folder, &files) != TT_OK)
        log_warn("%s", tt_err_text()); /* what was listed is there all the same */
    if (files.count)
        tt_checkpoints_sweep(folder, update, &files, NULL);
    tt_piece_files_free(&files);
}

static state_replay_t s_replay(const core_t *self)
{
    return self->model.shape.feed.save ? STATE_REPLAY_SINCE : STATE_REPLAY_NONE;
}

/*  Of now; where the run ends within an update, of before that. */
static tt_status_t s_capture(core_t *self, tt_snapshot_t *out)
{
    if (!self->boundary.left)
        return state_capture(self, s_replay(self), 0, out);
    *out = boundary_snapshot(self);
    return TT_OK;
}

static void s_release(const core_t *self, tt_snapshot_t *snapshot)
{
    if (!self->boundary.left)
        state_release(snapshot);
}

bool checkpoint_is_best(const core_t *self, tt_snapshot_t *snapshot)
{
    const bool best = !self->evaluate && record_exceeds(&self->record, snapshot->return_mean);
    if (best)
        snapshot->best = snapshot->return_mean;
    return best;
}

static tt_status_t s_write_here(
    core_t *self, const tt_snapshot_t *snapshot, const char *name, const char *path, bool best)
{
    char folder[4200];
    TT_TRY(tt_checkpoints_open(self->control.run_dir, folder, sizeof folder));
    tt_link_state(self->link, "writing %s", name);
    TT_TRY(tt_snapshot_write(snapshot, path, core_gets_on(self)));
    if (best)
        TT_TRY(tt_checkpoint_alias_best(folder, name, snapshot->return_mean));
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

/*  path: in the run directory, wherever that is. */
static tt_status_t s_write(core_t *self, const char *name, const char *path, int patience_ms)
{
    tt_snapshot_t snapshot;
    TT_TRY(s_capture(self, &snapshot));
    const double mean = snapshot.return_mean;
    const bool best = checkpoint_is_best(self, &snapshot);
    const tt_status_t status = self->location->dir[0] ? s_write_here(self, &snapshot, name, path, best)
                                                      : s_store(self, &snapshot, name, best, patience_ms);
    s_release(self, &snapshot);
    TT_TRY(status);
    if (best)
        record_better(&self->record, mean);
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
    if (self->location->dir[0] && tt_checkpoints_list(folder, &self->checkpoint.found) != TT_OK)
        log_warn("what lies there of a time that the run has gone back from stays: %s", tt_err_text());
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

/* ---- weights alone ----------------------------------------------------------------------------------------------------- */

/*  A version to act with, and nothing to go on from. */
static void s_bare(core_t *self, const tt_snapshot_version_t *version, double return_mean, tt_snapshot_t *out)
{
    state_expect(self, out);
    out->bare = true;
    out->update = version->version;
    out->return_mean = return_mean;
    out->params = version->params;
    out->versions = 1;
    out->version[0] = *version;
    out->version[0].reward = NULL;
}

static tt_status_t s_put_bare(core_t *self, const tt_snapshot_t *snapshot, const char *folder, const char *name)
{
    char path[4300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    tt_link_state(self->link, "writing %s", name);
    return tt_snapshot_write(snapshot, path, core_gets_on(self));
}

/*  One of an earlier life that can be gone on from stays, by its number. */
static tt_status_t s_spare_final(const char *folder)
{
    char path[4300], name[TT_CHECKPOINT_NAME];
    tt_snapshot_info_t info;
    snprintf(path, sizeof path, "%s/" TT_CHECKPOINT_FINAL, folder);
    if (tt_snapshot_inspect(path, &info) != TT_OK)
        return TT_OK;
    tt_checkpoint_name(name, info.update);
    const tt_status_t status = info.bare ? TT_OK : tt_checkpoint_alias(folder, TT_CHECKPOINT_FINAL, name);
    tt_snapshot_info_free(&info);
    return status;
}

static tt_status_t s_write_final_bare(core_t *self)
{
    char folder[4200];
    tt_snapshot_t snapshot;
    version_t *newest = publish_newest(self->data.publish);
    const tt_snapshot_version_t version = {newest->version, version_params(newest), version_norm(newest), NULL};
    s_bare(self, &version, tt_episodes_return_mean(self->statistics.episodes), &snapshot);
    if (!self->location->dir[0])
        return s_store(self, &snapshot, TT_CHECKPOINT_FINAL, false, FINAL_PATIENCE_MS);
    TT_TRY(tt_checkpoints_open(self->control.run_dir, folder, sizeof folder));
    TT_TRY(s_spare_final(folder));
    return s_put_bare(self, &snapshot, folder, TT_CHECKPOINT_FINAL);
}

/*  Weights are small beside all else that a snapshot has: what was learned is not lost for want of room. */
static tt_status_t s_save_weights(core_t *self)
{
    char why[sizeof self->checkpoint.bare];
    snprintf(why, sizeof why, "%s", tt_err_text());
    const tt_status_t status = s_write_final_bare(self);
    if (status == TT_STOPPED)
        return status;
    if (status != TT_OK)
        return tt_err(TT_IO, "%s", why);
    memcpy(self->checkpoint.bare, why, sizeof why);
    log_error("%s has the weights alone: %s", TT_CHECKPOINT_FINAL, why);
    return TT_OK;
}

tt_status_t checkpoint_final(core_t *self, char *path, size_t size)
{
    snprintf(path, size, "%s/" TT_CHECKPOINTS "/%s", self->control.run_dir, TT_CHECKPOINT_FINAL);
    self->checkpoint.bare[0] = '\0';
    tt_status_t status =
        keeping_does(self) ? keeping_final(self) : s_write(self, TT_CHECKPOINT_FINAL, path, FINAL_PATIENCE_MS);
    if (status == TT_IO)
        status = s_save_weights(self);
    if (status == TT_STOPPED)
        return TT_OK;
    return status == TT_OK ? TT_OK : tt_err_wrap(status, "the final checkpoint could not be written");
}

static tt_status_t s_write_best(core_t *self, const tt_snapshot_t *snapshot)
{
    char folder[4200];
    bool exceeds;
    if (!self->location->dir[0])
        return s_store(self, snapshot, TT_CHECKPOINT_BEST, false, DUE_PATIENCE_MS);
    TT_TRY(tt_checkpoints_open(self->control.run_dir, folder, sizeof folder));
    TT_TRY(tt_checkpoint_exceeds_best(folder, snapshot->return_mean, &exceeds));
    return exceeds ? s_put_bare(self, snapshot, folder, TT_CHECKPOINT_BEST) : TT_OK;
}

void checkpoint_best(core_t *self, const tt_snapshot_version_t *version, double return_mean)
{
    tt_snapshot_t snapshot;
    char text[600];
    const uint32_t era = self->view.era;
    if (!record_exceeds(&self->record, return_mean))
        return;
    s_bare(self, version, return_mean, &snapshot);
    const tt_status_t status = s_write_best(self, &snapshot);
    if (status == TT_OK && self->view.era == era)
        record_better(&self->record, return_mean);
    if (status == TT_OK || status == TT_STOPPED)
        return;
    snprintf(text, sizeof text, "the best version was not kept: %.560s", tt_err_text());
    log_error("%s", text);
    report_event(self, "warning", text, 0);
}
