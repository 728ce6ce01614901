/*  status - what was decided, in Kubeflow's words: conditions, their reasons and messages, counts, events.
 *
 *  The newest condition is the last, which `kubectl get tfjobs` shows as State. Running and Restarting take each other's place;
 *  both are off once the job has ended, and after Failed none comes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/text.h"
#include "common/base/words.h"
#include "k8s/api/recorder.h"
#include "k8s/front/object.h"
#include "k8s/tfjob/plan.h"

/* ---- conditions ----------------------------------------------------------------------------------------------------------- */

static void s_remove(planner_t *self, const char *type)
{
    parts_condition_drop(json_object_get(self->draft.status, "conditions"), type);
}

static void s_off(planner_t *self, const char *type)
{
    parts_condition_off(draft_condition(&self->draft, type), self->view->now_s);
}

/*  True: it was not so before. Words from outside may not be UTF-8. */
static bool s_on(planner_t *self, const char *type, const char *reason, const char *message)
{
    const json_t *old = draft_condition(&self->draft, type);
    if (parts_is(old, "status", "True") && parts_is(old, "reason", reason))
        return false;
    char *words = tt_text_dup(message);
    parts_condition_on(draft_conditions(&self->draft), type, reason, words, NULL, self->view->now_s);
    free(words);
    return true;
}

/*  What others turn when this one comes. */
static void s_turn(planner_t *self, tfjob_phase_t phase)
{
    switch (phase) {
    case TFJOB_PHASE_RUNNING:
        s_remove(self, "Restarting");
        break;
    case TFJOB_PHASE_RESTARTING:
        s_remove(self, "Running");
        break;
    case TFJOB_PHASE_SUSPENDED:
    case TFJOB_PHASE_SUCCEEDED:
    case TFJOB_PHASE_FAILED:
        s_off(self, "Running");
        s_off(self, "Restarting");
        break;
    case TFJOB_PHASE_NONE:
    case TFJOB_PHASE_CREATED:
    case TFJOB_PHASES:
        break;
    }
}

static void s_phase(planner_t *self, tfjob_phase_t phase, const char *reason, const char *message)
{
    const bool bad = phase == TFJOB_PHASE_RESTARTING || phase == TFJOB_PHASE_FAILED;
    s_turn(self, phase);
    self->phase = phase;
    if (s_on(self, tfjob_phases[phase], reason, message))
        draft_event(&self->draft, bad ? "Warning" : "Normal", reason, "%s", message);
    if (phase == TFJOB_PHASE_SUCCEEDED || phase == TFJOB_PHASE_FAILED)
        json_object_set_new(self->draft.status, "completionTime", parts_time_text(self->view->now_s));
}

/* ---- how a pod ended -------------------------------------------------------------------------------------------------------- */

/*  "mnist-worker-1 exited with code 1 (Error: no such file)" */
static char *s_end_words(const tfjob_pod_t *pod)
{
    char code[32] = "failed";
    if (pod->exit_code >= 0)
        snprintf(code, sizeof code, "exited with code %d", pod->exit_code);
    const char *colon = pod->why && pod->words ? ": " : "";
    if (pod->why || pod->words)
        return tt_sprintf(
            "%s %s (%s%s%s)", pod->meta.name, code, pod->why ? pod->why : "", colon, pod->words ? pod->words : "");
    return tt_sprintf("%s %s", pod->meta.name, code);
}

static size_t s_failed(const planner_t *self, uint8_t type)
{
    size_t count = 0;
    for (size_t i = 0; i < self->view->pod_count; i++)
        count += self->pods[i]->type == type && self->pods[i]->phase == POD_FAILED;
    return count;
}

/*  "TFJob mnist is restarting because 1 Worker replica(s) failed: mnist-worker-1 exited with code 137" */
static void s_because(
    planner_t *self, tfjob_phase_t phase, const char *reason, const char *does, const tfjob_pod_t *pod)
{
    char *end = s_end_words(pod), words[KUBE_EVENT_WORDS + 1];
    char *all = tt_sprintf("TFJob %s %s because %zu %s replica(s) failed: %s", self->job->meta.name, does,
        s_failed(self, pod->type), tfjob_type_title((tfjob_type_t)pod->type), end);
    tt_words(words, sizeof words, all);
    s_phase(self, phase, reason, words);
    free(all);
    free(end);
}

/* ---- facts ------------------------------------------------------------------------------------------------------------------ */

/*  One that failed, or fails still on its way out, of a job that goes on; NULL. */
static const tfjob_pod_t *s_any_failed(const planner_t *self)
{
    for (size_t i = 0; i < self->view->pod_count; i++)
        if (self->pods[i]->phase == POD_FAILED && self->pods[i]->type < TFJOB_TYPES)
            return self->pods[i];
    return NULL;
}

/*  Does every place hold one that runs, or that is done? */
static bool s_is_whole(const rules_t *rules)
{
    const tt_seen_t *seen = &rules->seen;
    int64_t wanted = 0, there = 0;
    for (size_t i = 0; i < rules->rules.group_count; i++)
        wanted += rules->groups[i].want;
    for (size_t i = 0; i < seen->replica_count; i++)
        there += !seen->replicas[i].deleting &&
                 (seen->replicas[i].state == TT_REPLICA_RUNNING || seen->replicas[i].state == TT_REPLICA_SUCCEEDED);
    return there >= wanted;
}

static void s_created(planner_t *self)
{
    char *words = tt_sprintf("TFJob %s is created.", self->job->meta.name);
    const bool new = s_on(self, "Created", "TFJobCreated", words);
    if (new)
        draft_event(&self->draft, "Normal", "TFJobCreated", "%s", words);
    for (int type = 0; type < TFJOB_TYPES && new; type++)
        if (self->job->types[type].overruled)
            draft_event(&self->draft, "Warning", "SettedPodTemplateRestartPolicy",
                "Restart policy in the pod template of %s is overwritten by the one of its replica spec",
                tfjob_type_title((tfjob_type_t)type));
    free(words);
}

static void s_failed_fact(planner_t *self, const tt_fact_t *fact)
{
    char *words = NULL;
    const char *name = self->job->meta.name;
    if (fact->why == TT_WHY_DEADLINE)
        words =
            tt_sprintf("TFJob %s has failed because " PLAN_LATE " (%lld s)", name, (long long)self->job->deadline_s);
    else if (fact->why == TT_WHY_LIMIT)
        words = tt_sprintf("TFJob %s has failed because " PLAN_LIMIT " (%lld): %zu restarts", name,
            (long long)self->job->backoff_limit, fact->count);
    if (words)
        s_phase(self, TFJOB_PHASE_FAILED, "TFJobFailed", words);
    else
        s_because(self, TFJOB_PHASE_FAILED, "TFJobFailed", "has failed", self->pods[fact->replica]);
    free(words);
}

static void s_say(planner_t *self, tfjob_phase_t phase, const char *reason, const char *how)
{
    const char *namespace_ = *self->job->meta.namespace_ ? self->job->meta.namespace_ : "default";
    char *words = tt_sprintf("TFJob %s/%s %s.", namespace_, self->job->meta.name, how);
    s_phase(self, phase, reason, words);
    free(words);
}

static void s_fact(planner_t *self, const rules_t *rules, const tt_fact_t *fact)
{
    switch (fact->stage) {
    case TT_STAGE_RUNNING:
        if (!s_any_failed(self) && (self->phase != TFJOB_PHASE_RESTARTING || s_is_whole(rules)))
            s_say(self, TFJOB_PHASE_RUNNING, "TFJobRunning", "is running");
        break;
    case TT_STAGE_SUSPENDED:
        s_say(self, TFJOB_PHASE_SUSPENDED, "TFJobSuspended", "is suspended");
        break;
    case TT_STAGE_SUCCEEDED:
        s_say(self, TFJOB_PHASE_SUCCEEDED, "TFJobSucceeded", "successfully completed");
        break;
    case TT_STAGE_FAILED:
        s_failed_fact(self, fact);
        break;
    case TT_STAGE_NEW:
    case TT_STAGE_PENDING:
    case TT_STAGE_STARTING:
    case TT_STAGE_RESTARTING: /* of jobs in step */
    case TT_STAGE_RESHAPING:
        break;
    }
}

/*  Its condition goes: what is last is how the job is. */
static void s_resumed(planner_t *self)
{
    if (self->phase != TFJOB_PHASE_SUSPENDED)
        return;
    s_remove(self, "Suspended");
    self->phase = TFJOB_PHASE_CREATED;
    draft_event(&self->draft, "Normal", "TFJobResumed", "TFJob %s goes on", self->job->meta.name);
}

static void s_restarting(planner_t *self)
{
    const tfjob_pod_t *pod = s_any_failed(self);
    const bool over = self->phase == TFJOB_PHASE_SUCCEEDED || self->phase == TFJOB_PHASE_FAILED ||
                      self->phase == TFJOB_PHASE_SUSPENDED;
    if (pod && !over)
        s_because(self, TFJOB_PHASE_RESTARTING, "TFJobRestarting", "is restarting", pod);
}

static void s_set_time(planner_t *self, const char *key, int64_t at_s)
{
    if (at_s <= 0)
        json_object_del(self->draft.status, key);
    else if (!*parts_text(self->draft.status, key, ""))
        json_object_set_new(self->draft.status, key, parts_time_text(at_s));
}

void tfjob_status_facts(planner_t *self, const rules_t *rules, const tt_plan_t *plan)
{
    s_created(self);
    s_remove(self, "SpecRefused");
    if (plan->state.stage != TT_STAGE_SUSPENDED)
        s_resumed(self);
    s_set_time(self, "startTime", plan->state.started_s);
    for (size_t i = 0; i < plan->fact_count; i++)
        s_fact(self, rules, &plan->facts[i]);
    s_restarting(self);
    if (plan->state.restarts > 0)
        json_object_set_new(self->draft.status, "restarts", json_integer(plan->state.restarts));
    if (*plan->state.first)
        json_object_set_new(self->draft.status, "chiefUID", json_string(plan->state.first));
    else
        json_object_del(self->draft.status, "chiefUID");
}

void tfjob_status_invalid(planner_t *self)
{
    char *words =
        tt_sprintf("TFJob %s has failed because the spec is invalid: %s", self->job->meta.name, self->job->invalid);
    s_created(self);
    s_phase(self, TFJOB_PHASE_FAILED, "InvalidTFJobSpec", words);
    free(words);
}

void tfjob_status_refused(planner_t *self)
{
    s_created(self);
    if (s_on(self, "SpecRefused", "InvalidTFJobSpec", self->job->invalid))
        draft_event(
            &self->draft, "Warning", "InvalidTFJobSpec", "%s; its pods are left as they are", self->job->invalid);
}

void tfjob_status_refusals(planner_t *self)
{
    static const char *const types[] = {"TemplateRefused", "PodForbidden"};
    const front_view_t *view = self->view;
    for (size_t t = 0; t < TT_COUNT(types); t++) {
        const front_refusal_t *found = NULL;
        for (size_t i = 0; i < view->refusal_count && !found; i++) {
            const bool forbidden = view->refusals[i].reason && strcmp(view->refusals[i].reason, "Forbidden") == 0;
            found = forbidden == (t == 1) ? &view->refusals[i] : NULL;
        }
        if (!found)
            s_remove(self, types[t]);
        else if (s_on(self, types[t], found->reason ? found->reason : "Invalid", found->words))
            draft_event(&self->draft, "Warning", types[t], "%s: %s", tfjob_type_title((tfjob_type_t)found->group),
                found->words);
    }
}

/* ---- counts ----------------------------------------------------------------------------------------------------------------- */

static int64_t s_counted(const planner_t *self, int type, pod_phase_t phase)
{
    int64_t count = 0;
    for (size_t i = 0; i < self->view->pod_count; i++)
        count += self->pods[i]->type == type && self->pods[i]->phase == phase && !self->pods[i]->deleting;
    return count;
}

/*  A zero is left out. */
static void s_put(json_t *counts, const char *key, int64_t count)
{
    if (count > 0)
        json_object_set_new(counts, key, json_integer(count));
    else
        json_object_del(counts, key);
}

/*  Who was active when the job succeeded has succeeded with it. */
static json_t *s_counts(const planner_t *self, const json_t *before, int type, bool ended)
{
    int64_t active = s_counted(self, type, POD_RUNNING);
    json_t *counts = ended && json_is_object(before) ? json_deep_copy(before) : json_object();
    if (!ended) {
        const bool well = self->phase == TFJOB_PHASE_SUCCEEDED;
        s_put(counts, "succeeded", s_counted(self, type, POD_SUCCEEDED) + (well ? active : 0));
        s_put(counts, "failed", s_counted(self, type, POD_FAILED));
        active = well ? 0 : active;
    } else if (self->phase == TFJOB_PHASE_SUCCEEDED) {
        active = 0;
    }
    s_put(counts, "active", active);
    return counts;
}

void tfjob_status_count(planner_t *self, bool ended)
{
    if (self->job->old.there) {
        tfjob_status_old(self, ended);
        return;
    }
    json_t *all = json_object();
    for (int type = 0; type < TFJOB_TYPES; type++) {
        const char *title = tfjob_type_title((tfjob_type_t)type);
        const json_t *before = json_object_get(json_object_get(self->draft.status, "replicaStatuses"), title);
        if (self->job->types[type].there)
            json_object_set_new(all, title, s_counts(self, before, type, ended));
    }
    json_object_set_new(self->draft.status, "replicaStatuses", all);
}
