#define TT_LOG_COMPONENT "ends"
#include "coordinator/ends.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/json.h"
#include "common/base/log.h"
#include "coordinator/files.h"
#include "coordinator/state.h"

static const int64_t s_grace_ns = 15000000000; /* for rank 0's last update and snapshot */

const char *ends_phase_name(ends_phase_t phase)
{
    static const char *const names[] = {"running", "stopping", "ended"};
    return names[phase];
}

/* ---- the summary --------------------------------------------------------------------------------------------------- */

static json_t *s_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *s_seconds(const coordinator_t *self, int64_t time_ns)
{
    return time_ns == 0 ? json_null() : s_real((double)(time_ns - self->start_ns) * 1e-9);
}

static void s_set_missing(json_t *object, const char *key, json_t *value)
{
    if (json_object_get(object, key))
        json_decref(value);
    else
        json_object_set_new(object, key, value);
}

/*  What rank 0 did not say, or could not say any more. */
static void s_fill_from_stats(const coordinator_t *self, json_t *summary)
{
    const progress_t *p = &self->progress;
    s_set_missing(summary, "env_steps", json_integer((json_int_t)p->at.env_steps));
    s_set_missing(summary, "updates", json_integer((json_int_t)p->at.update));
    s_set_missing(summary, "episodes", json_integer((json_int_t)p->episodes));
    s_set_missing(summary, "return_mean", s_real(p->return_mean));
    s_set_missing(summary, "lag_max", json_integer((json_int_t)p->lag_max));
}

/*  Of this era there was no STATS: the run is where its newest snapshot is, and what that does not say is not known. */
static void s_fill_from_snapshot(const coordinator_t *self, json_t *summary)
{
    const journal_snapshot_t *snapshot = &self->snapshot;
    s_set_missing(summary, "env_steps", json_integer((json_int_t)snapshot->env_steps));
    s_set_missing(summary, "updates", json_integer((json_int_t)snapshot->update));
    s_set_missing(summary, "episodes", json_null());
    s_set_missing(summary, "return_mean", snapshot->path[0] ? s_real(snapshot->return_mean) : json_null());
    s_set_missing(summary, "lag_max", json_null());
}

static json_t *s_summary(const coordinator_t *self, const char *text, const char *status, const char *reason)
{
    json_error_t error;
    json_t *summary = text ? json_loads(text, 0, &error) : NULL;
    if (!json_is_object(summary)) {
        if (text)
            log_warn("EVENT finished does not hold a JSON object (%s): its numbers are left out", error.text);
        json_decref(summary);
        summary = json_object();
    }
    const int64_t now = tt_now_ns(self->clock);
    const progress_t *p = &self->progress;
    s_set_missing(summary, "reason", tt_json_text(reason));
    if (p->at.any && p->at.era == roster_era(self->roster))
        s_fill_from_stats(self, summary);
    else
        s_fill_from_snapshot(self, summary);
    json_object_set_new(summary, "status", json_string(status));
    json_object_set_new(summary, "rolled_back", json_integer(roster_rolled_back(self->roster)));
    json_object_set_new(summary, "restored_from", self->restore.story ? json_incref(self->restore.story) : json_null());
    json_object_set_new(
        summary, "solved_at_steps", p->solved_steps ? json_integer((json_int_t)p->solved_steps) : json_null());
    json_object_set_new(summary, "solved_at_s", s_seconds(self, p->solved_ns));
    json_object_set_new(summary, "first_step_s", s_seconds(self, p->first_step_ns));
    json_object_set_new(summary, "wall_s", s_seconds(self, now));
    json_object_set_new(summary, "eval", evaluations_json(self->evaluations));
    const uint64_t steps = (uint64_t)json_integer_value(json_object_get(summary, "env_steps"));
    const double sps = progress_sps_overall(p, steps, now);
    json_object_set_new(summary, "sps", sps > 0 ? json_real(sps) : json_null());
    return summary;
}

/* ---- the end ------------------------------------------------------------------------------------------------------- */

static void s_keep(coordinator_t *self, const char *json, uint32_t code)
{
    if (self->journal && journal_end(self->journal, json, code) != TT_OK)
        log_error("%s", tt_err_text());
    if (files_replace(self->root, "result.json", json, 0644) != TT_OK)
        log_error("%s", tt_err_text());
}

static void s_tell_end(coordinator_t *self, const char *kind, const char *text, uint32_t code)
{
    const tt_msg_EVENT_t event = TT_MSG(EVENT, .kind = (char *)(uintptr_t)kind, .text = (char *)(uintptr_t)text,
        .update = self->progress.at.update, .env_steps = self->progress.at.env_steps,
        .value = self->progress.return_mean, .code = code, .time_ns = tt_now_ns(self->clock));
    observers_flush(self->observers, true);
    observers_tell(self->observers, &event);
    control_stop(self->roster, self->ends.reason, code);
    self->ends.phase = ENDS_ENDED;
    self->ends.exit_code = (int)code;
}

static void s_end(coordinator_t *self, const char *text, const char *status, const char *reason, uint32_t code)
{
    json_t *summary = s_summary(self, text, status, reason);
    char *json = json_dumps(summary, JSON_COMPACT | JSON_REAL_PRECISION(12));
    json_decref(summary);
    TT_CHECK(json != NULL);
    tt_text_copy(self->ends.reason, sizeof self->ends.reason, reason);
    s_keep(self, json, code);
    if (strcmp(status, "failed") == 0)
        s_tell_end(self, "failed", reason, code);
    else
        s_tell_end(self, "finished", json, code);
    free(json);
}

/* ---- stop requests ------------------------------------------------------------------------------------------------- */

static void s_ask_rank0(coordinator_t *self)
{
    const peer_t *rank0 = roster_rank0(self->roster);
    if (!rank0)
        return;
    const tt_msg_STOP_t stop = TT_MSG(STOP, .finish = true, .reason = self->ends.reason, .code = self->ends.code);
    control_send(rank0->sock, rank0->identity, &stop);
}

void ends_stop(coordinator_t *self, const char *reason, uint32_t code, bool now)
{
    ends_t *ends = &self->ends;
    if (ends->phase == ENDS_ENDED)
        return;
    /* who was rank 0 before this coordinator was started is here or on its way, with the weights: ends_roster tells it */
    if (now || (!roster_rank0(self->roster) && !roster_goes_on(self->roster))) {
        log_info("the run is stopped at once: %s", reason);
        s_end(self, NULL, "stopped", reason, 0);
        return;
    }
    if (ends->phase == ENDS_STOPPING)
        return;
    log_info("the run is to stop after the update in hand: %s", reason);
    tt_text_copy(ends->reason, sizeof ends->reason, reason);
    ends->code = code;
    ends->phase = ENDS_STOPPING;
    ends->deadline_ns = tt_now_ns(self->clock) + s_grace_ns;
    s_ask_rank0(self);
}

void ends_leave(coordinator_t *self, const char *why, uint32_t code)
{
    log_info("%s: this coordinator ends; the run goes on, and waits for another one", why);
    self->ends.phase = ENDS_ENDED;
    self->ends.exit_code = (int)code;
}

void ends_roster(coordinator_t *self)
{
    if (self->ends.phase != ENDS_STOPPING)
        return;
    if (roster_rank0(self->roster))
        s_ask_rank0(self);
    else /* whoever could have finished is gone */
        s_end(self, NULL, "stopped", self->ends.reason, 0);
}

void ends_heard(coordinator_t *self, const peer_t *peer)
{
    if (self->ends.phase == ENDS_STOPPING && peer == roster_rank0(self->roster))
        s_ask_rank0(self);
}

int64_t ends_tick(coordinator_t *self)
{
    if (self->ends.phase != ENDS_STOPPING)
        return INT64_MAX;
    if (tt_now_ns(self->clock) >= self->ends.deadline_ns) {
        log_warn("rank 0 did not finish in %.0f s: ended without a last snapshot", (double)s_grace_ns * 1e-9);
        s_end(self, NULL, "stopped", self->ends.reason, 0);
    }
    return self->ends.deadline_ns;
}

/* ---- what rank 0 or fate decides ----------------------------------------------------------------------------------- */

/*  Rank 0 met a stop rule, even though a stop was asked for at the same time? Rules are named after their config key. */
static bool s_is_rule(const char *reason)
{
    static const char *const rules[] = {"env_steps", "return_mean", "wall_s"};
    bool is = false;
    for (size_t i = 0; i < TT_COUNT(rules); i++)
        is |= strcmp(reason, rules[i]) == 0;
    return is;
}

/*  Why rank 0 has finished. Of a stop that was asked for before this coordinator was started it alone knows. */
static void s_read_reason(const coordinator_t *self, const char *text, char *out, size_t size)
{
    json_t *object = json_loads(text, 0, NULL);
    const char *reason = json_string_value(json_object_get(object, "reason"));
    tt_text_copy(out, size, reason ? reason : self->ends.reason);
    json_decref(object);
}

void ends_finished(coordinator_t *self, const tt_msg_EVENT_t *event)
{
    if (self->ends.phase == ENDS_ENDED)
        return;
    const char *text = event->text ? event->text : "";
    char reason[sizeof self->ends.reason];
    s_read_reason(self, text, reason, sizeof reason);
    const bool stopped = !s_is_rule(reason);
    log_info("the run is over after update %llu, %llu env steps", (unsigned long long)event->update,
        (unsigned long long)event->env_steps);
    s_end(self, text, stopped ? "stopped" : "succeeded", stopped ? reason : "finished", 0);
}

void ends_fail(coordinator_t *self, uint32_t code, const char *text)
{
    if (self->ends.phase == ENDS_ENDED)
        return;
    log_error("the run has failed: %s", text);
    s_end(self, NULL, "failed", text, code ? code : (uint32_t)tt_status_exit_code(TT_INTERNAL));
}

void ends_repeat(coordinator_t *self, const char *json, uint32_t code)
{
    json_t *object = json_loads(json, 0, NULL);
    const char *reason = json_string_value(json_object_get(object, "reason"));
    const char *status = json_string_value(json_object_get(object, "status"));
    const bool failed = status && strcmp(status, "failed") == 0;
    tt_text_copy(self->ends.reason, sizeof self->ends.reason, reason ? reason : "");
    s_tell_end(self, failed ? "failed" : "finished", failed ? self->ends.reason : json, code);
    json_decref(object);
}
