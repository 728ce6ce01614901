#define TT_LOG_COMPONENT "restore"
#include "coordinator/restore.h"
#include <stdio.h>
#include <string.h>
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/snapshot/checkpoints.h"
#include "coordinator/state.h"

/*  What a choice comes to while it is made. */
typedef struct {
    json_t *passed_over;
    const json_t *known;
} choice_t;

static const char *s_known(void *ctx, const char *name)
{
    const choice_t *choice = ctx;
    return json_string_value(json_object_get(choice->known, name));
}

static void s_pass_over(void *ctx, const char *name, const char *why)
{
    choice_t *choice = ctx;
    log_error(TT_CHECKPOINTS "/%s is passed over: %s", name, why);
    char path[512];
    snprintf(path, sizeof path, TT_CHECKPOINTS "/%.400s", name);
    json_array_append_new(
        choice->passed_over, json_pack("{s:o, s:o}", "snapshot", tt_json_text(path), "reason", tt_json_text(why)));
}

/*  There never was a snapshot; or there is nothing left to say that there was. */
static void s_begin_anew(restore_t *self, const choice_t *choice)
{
    if (!self->lived)
        return;
    self->story = json_pack(
        "{s:n, s:i, s:b, s:O}", "snapshot", "updates", 0, "adopted", false, "passed_over", choice->passed_over);
    self->untold = true;
}

static tt_status_t s_refuse(const coordinator_t *self, tt_status_t status)
{
    if (status == TT_NOT_FOUND)
        return tt_err(TT_NOT_FOUND,
            "%s: none of the %u snapshots that its journal names is there any more; start a new run", self->root,
            self->snapshots);
    return tt_err_wrap(status, "the run does not begin again with version 0");
}

/*  What the journal says of it; of one that it does not know, what follows from the file. */
static tt_status_t s_look_up(coordinator_t *self, const tt_checkpoint_t *found, bool *adopted)
{
    journal_snapshot_t *snapshot = &self->snapshot;
    char path[sizeof TT_CHECKPOINTS + TT_CHECKPOINT_NAME + 1];
    snprintf(path, sizeof path, TT_CHECKPOINTS "/%s", found->name);
    const tt_status_t status = journal_find_snapshot(self->journal, path, snapshot);
    if (status != TT_OK && status != TT_NOT_FOUND)
        return status;
    *adopted = status == TT_NOT_FOUND || snapshot->update != found->info.update;
    if (!*adopted)
        return TT_OK;
    *snapshot = (journal_snapshot_t){.era = roster_era(self->roster),
        .update = found->info.update,
        .env_steps = found->info.update * self->cfg.num_envs * self->cfg.num_steps,
        .return_mean = found->info.return_mean};
    snprintf(snapshot->path, sizeof snapshot->path, "%s", path);
    self->snapshots++;
    return journal_snapshot(self->journal, snapshot);
}

static tt_status_t s_take(coordinator_t *self, const tt_checkpoint_t *found, choice_t *choice)
{
    restore_t *restore = &self->restore;
    bool adopted = false;
    TT_TRY(s_look_up(self, found, &adopted));
    snprintf(restore->path, sizeof restore->path, "%s/%s", self->root, self->snapshot.path);
    restore->story = json_pack("{s:o, s:I, s:b, s:O}", "snapshot", tt_json_text(self->snapshot.path), "updates",
        (json_int_t)found->info.update, "adopted", adopted, "passed_over", choice->passed_over);
    restore->untold = true;
    if (adopted)
        log_warn("%s is not in the journal, which was lost or is behind: adopted", self->snapshot.path);
    return TT_OK;
}

static void s_forget_story(coordinator_t *self)
{
    json_t *known = self->restore.known;
    json_decref(self->restore.story);
    self->restore = (restore_t){.known = known, .lived = self->restore.lived};
}

static tt_status_t s_choose(coordinator_t *self, choice_t *choice)
{
    char folder[sizeof self->root + 32];
    tt_checkpoint_t found;
    s_forget_story(self);
    self->snapshot = (journal_snapshot_t){0};
    snprintf(folder, sizeof folder, "%s/" TT_CHECKPOINTS, self->root);
    choice->known = self->restore.known;
    tt_status_t status = tt_checkpoints_newest_but(folder, &found, s_known, s_pass_over, choice);
    if (status == TT_NOT_FOUND && self->snapshots == 0) {
        s_begin_anew(&self->restore, choice);
        return TT_OK;
    }
    if (status != TT_OK)
        return s_refuse(self, status);
    status = s_take(self, &found, choice);
    tt_snapshot_info_free(&found.info);
    return status;
}

tt_status_t restore_choose(coordinator_t *self)
{
    choice_t choice = {.passed_over = json_array()};
    const tt_status_t status = s_choose(self, &choice);
    json_decref(choice.passed_over);
    self->restore.status = status;
    self->restore.chosen = true;
    return status;
}

bool restore_refuse(coordinator_t *self, const char *text)
{
    const char *slash = strrchr(self->restore.path, '/');
    const char *name = slash ? slash + 1 : ""; /* version 0 */
    const size_t length = strlen(name);
    if (!length || strncmp(text, name, length) != 0 || strncmp(text + length, ": ", 2) != 0)
        return false;
    if (!self->restore.known)
        self->restore.known = json_object();
    json_object_set_new(self->restore.known, name, tt_json_text(text + length + 2));
    return true;
}

bool restore_is_final(const coordinator_t *self)
{
    const json_t *story = self->restore.story;
    const char *path = json_string_value(json_object_get(story, "snapshot"));
    return path && strcmp(path, TT_CHECKPOINTS "/" TT_CHECKPOINT_FINAL) == 0 &&
           json_array_size(json_object_get(story, "passed_over")) == 0;
}

const char *restore_path(void *ctx)
{
    coordinator_t *self = ctx;
    if (!self->restore.chosen)
        (void)restore_choose(self); /* its status is kept */
    self->restore.chosen = false;
    if (self->progress.first_step_ns == 0) /* what this life does counts from here */
        self->progress.first_steps = self->snapshot.update * self->cfg.num_envs * self->cfg.num_steps;
    return self->restore.path;
}

static void s_warn(coordinator_t *self, const char *text)
{
    const tt_msg_EVENT_t event = TT_MSG(EVENT, .kind = (char *)(uintptr_t) "warning", .text = (char *)(uintptr_t)text,
        .update = self->snapshot.update, .env_steps = self->snapshot.env_steps, .time_ns = tt_now_ns(self->clock));
    observers_tell(self->observers, &event);
}

static void s_warn_of(coordinator_t *self, const json_t *story)
{
    const json_t *bad;
    size_t i;
    char text[512];
    json_array_foreach(json_object_get(story, "passed_over"), i, bad)
    {
        snprintf(text, sizeof text, "%.80s is passed over: %.300s", json_string_value(json_object_get(bad, "snapshot")),
            json_string_value(json_object_get(bad, "reason")));
        s_warn(self, text);
    }
    const bool adopted = json_is_true(json_object_get(story, "adopted"));
    snprintf(text, sizeof text, "the run goes on from %.80s, update %llu%s", self->snapshot.path,
        (unsigned long long)self->snapshot.update, adopted ? ", which the journal did not know" : "");
    if (adopted || i > 0)
        s_warn(self, text);
}

tt_status_t restore_tell(coordinator_t *self)
{
    restore_t *restore = &self->restore;
    if (!restore->untold)
        return TT_OK;
    restore->untold = false;
    if (json_is_null(json_object_get(restore->story, "snapshot"))) {
        log_warn("there is no snapshot to go on from: the run begins anew");
        s_warn(self, "there is no snapshot to go on from: the run begins anew");
    } else
        s_warn_of(self, restore->story);
    char *json = json_dumps(restore->story, JSON_COMPACT);
    const tt_status_t status = journal_restored(self->journal, json);
    free(json);
    return status;
}

void restore_recall(coordinator_t *self, const char *story, const char *path)
{
    s_forget_story(self);
    snprintf(self->restore.path, sizeof self->restore.path, "%s", path ? path : "");
    self->restore.story = story ? json_loads(story, 0, NULL) : NULL;
    self->restore.lived = self->restore.story != NULL;
}

void restore_free(coordinator_t *self)
{
    json_decref(self->restore.known);
    json_decref(self->restore.story);
    self->restore = (restore_t){0};
}
