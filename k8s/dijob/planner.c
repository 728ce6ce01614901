/*  planner - actions, names and the status that is being made. */
#include "k8s/dijob/planner.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/text.h"

/* ---- names ------------------------------------------------------------------------------------------------------------- */

size_t planner_find(const planner_t *self, const char *name)
{
    const dijob_pod_t *const *pod = tt_dict_get(&self->names, name);
    return pod ? (size_t)(pod - self->pods) : self->view->pod_count;
}

bool planner_stays(const planner_t *self, size_t pod)
{
    return !self->pods[pod]->deleting && !self->going[pod];
}

static char *s_free_name(const planner_t *self, dijob_role_t role, uint64_t *random)
{
    for (;;) {
        char *name = dijob_pod_name(self->job->meta.name, role, random);
        if (planner_find(self, name) == self->view->pod_count)
            return name;
        free(name);
    }
}

char *planner_name(planner_t *self, dijob_role_t role)
{
    return s_free_name(self, role, &self->random);
}

char *planner_name_for(planner_t *self, dijob_role_t role, const dijob_pod_t *old)
{
    uint64_t random = dijob_name_seed(old->meta.uid);
    return s_free_name(self, role, &random);
}

/* ---- actions ----------------------------------------------------------------------------------------------------------- */

static const char *s_put(char **at, const char *text)
{
    const size_t size = text ? strlen(text) + 1 : 0;
    char *copy = size ? memcpy(*at, text, size) : NULL;
    *at += size;
    return copy;
}

/*  The same with its strings as one block. Who takes another's place gets what was asked for that one. */
static dijob_pod_want_t *s_keep(const planner_t *self, const dijob_pod_want_t *want)
{
    const size_t old = want->replaces ? planner_find(self, want->replaces) : self->view->pod_count;
    const char *asked = old < self->view->pod_count ? self->pods[old]->asked : NULL;
    const char *const all[] = {
        want->name, want->replaces, want->aggregator, want->aggregator_uid, want->master_name, asked};
    size_t size = sizeof *want;
    for (size_t i = 0; i < TT_COUNT(all); i++)
        size += all[i] ? strlen(all[i]) + 1 : 0;
    dijob_pod_want_t *copy = tt_new0(size);
    char *at = (char *)(copy + 1);
    *copy = *want;
    copy->old_curve = dijob_has_old_curve(self->pods, self->view->pod_count);
    copy->name = s_put(&at, want->name);
    copy->replaces = s_put(&at, want->replaces);
    copy->aggregator = s_put(&at, want->aggregator);
    copy->aggregator_uid = s_put(&at, want->aggregator_uid);
    copy->master_name = s_put(&at, want->master_name);
    if (asked)
        (void)dijob_asked(&copy->resources, strcpy(at, asked));
    return copy;
}

/*  An aggregator's template is the job's, or an AggregatorConfig's. */
int planner_needs(const dijob_t *job, dijob_role_t role)
{
    const bool config = role == DIJOB_AGGREGATOR && !job->has[DIJOB_AGGREGATOR];
    return FRONT_NEEDS_JOB | (config ? FRONT_NEEDS_CONFIG : 0);
}

void planner_create(planner_t *self, const dijob_pod_want_t *want)
{
    self->creates++;
    front_action_t *action = draft_add(&self->draft, FRONT_CREATE_POD, want->name);
    action->group = dijob_group(want->role, want->task);
    action->who = want->role == DIJOB_TASK ? self->job->tasks[want->task].name : dijob_role_label(want->role);
    action->needs = planner_needs(self->job, want->role);
    action->own = s_keep(self, want);
}

void planner_delete(planner_t *self, size_t pod, int grace_s)
{
    if (!planner_stays(self, pod))
        return;
    self->going[pod] = true;
    draft_add(&self->draft, FRONT_DELETE_POD, self->pods[pod]->meta.name)->grace_s = grace_s;
}

void planner_curve(planner_t *self)
{
    if (!self->job->tutti || self->view->made & 1u << DIJOB_CURVE)
        return;
    draft_add(&self->draft, FRONT_CREATE_OBJECT, NULL)->object = DIJOB_CURVE;
    draft_again(&self->draft, 0);
}

/* ---- status ------------------------------------------------------------------------------------------------------------ */

void planner_set(planner_t *self, const char *key, json_t *value)
{
    if (value)
        json_object_set_new(self->draft.status, key, value);
    else
        json_object_del(self->draft.status, key);
}

const char *planner_text(const planner_t *self, const char *key)
{
    const char *text = json_string_value(json_object_get(self->draft.status, key));
    return text ? text : "";
}

void planner_phase(planner_t *self, dijob_phase_t phase, const char *reason, const char *type, const char *fmt, ...)
{
    const bool same = phase == self->phase;
    const char *name = dijob_phase_name(phase);
    if (same && parts_is(draft_condition(&self->draft, name), "status", "True"))
        return; /* else the condition was edited away */
    va_list args;
    va_start(args, fmt);
    char *message = draft_words(fmt, args);
    va_end(args);
    self->phase = phase;
    planner_set(self, "phase", json_string(dijob_phase_name(phase)));
    dijob_condition_set(draft_conditions(&self->draft), self->job->tasks_shape, dijob_phase_name(phase), reason,
        message, self->view->now_s);
    if (phase == DIJOB_PHASE_RUNNING && !*planner_text(self, "startTimestamp"))
        planner_set(self, "startTimestamp", parts_time_text(self->view->now_s));
    if (dijob_phase_final(phase))
        planner_set(self, "completionTimestamp", parts_time_text(self->view->now_s));
    if (type && !same)
        draft_event(&self->draft, type, reason, "%s", message);
    free(message);
}

bool planner_condition(planner_t *self, const char *type, bool on, const char *reason, const char *message)
{
    const json_t *old = draft_condition(&self->draft, type);
    const int64_t now_s = self->view->now_s;
    char *words = tt_text_dup(message);
    const bool changed = parts_is(old, "status", "True") != on || (on && !parts_is(old, "message", words));
    if (changed)
        json_object_set_new(parts_condition_set(draft_conditions(&self->draft), type, on, reason, words, now_s),
            "lastUpdateTime", parts_time_text(now_s));
    free(words);
    return changed;
}

/* ---- life -------------------------------------------------------------------------------------------------------------- */

/*  The phase may have been edited behind our back; a condition that says how the job ended still ends it. */
static dijob_phase_t s_phase(const planner_t *self)
{
    static const dijob_phase_t finals[] = {DIJOB_PHASE_SUCCEEDED, DIJOB_PHASE_FAILED};
    if (dijob_phase_final(self->job->phase))
        return self->job->phase;
    for (size_t i = 0; i < TT_COUNT(finals); i++) {
        if (parts_is(draft_condition(&self->draft, dijob_phase_name(finals[i])), "status", "True"))
            return finals[i];
    }
    return self->job->phase;
}

static void s_index(planner_t *self)
{
    const front_view_t *view = self->view;
    for (size_t i = 0; i < view->pod_count; i++)
        tt_dict_set(&self->names, self->pods[i]->meta.name, (void *)(uintptr_t)&self->pods[i]);
    for (size_t i = 0; i < view->pod_count; i++) {
        const size_t old = self->pods[i]->replaces ? planner_find(self, self->pods[i]->replaces) : view->pod_count;
        if (old < view->pod_count)
            self->replaced[old] = true;
    }
}

void planner_open(planner_t *self, front_plan_t *out, const front_view_t *view)
{
    *self = (planner_t){.view = view,
        .job = view->job,
        .pods = (const dijob_pod_t *const *)view->pods,
        .services = (const dijob_service_t *const *)view->services,
        .random = view->random};
    draft_open(&self->draft, out, self->job->status, view->now_s);
    self->going = tt_array0(view->pod_count, sizeof *self->going);
    self->replaced = tt_array0(view->pod_count, sizeof *self->replaced);
    s_index(self);
    self->phase = s_phase(self);
    self->ended = dijob_phase_final(self->phase);
    if (self->phase != DIJOB_PHASE_NONE)
        planner_set(self, "phase", json_string(dijob_phase_name(self->phase)));
}

/*  Pods first, events last; else as they were decided. */
static void s_order(front_plan_t *plan)
{
    front_action_t *sorted = tt_array0(plan->count, sizeof *sorted);
    size_t count = 0;
    for (front_do_t what = FRONT_CREATE_POD; what <= FRONT_EVENT; what++)
        for (size_t i = 0; i < plan->count; i++)
            if (plan->actions[i].what == what)
                sorted[count++] = plan->actions[i];
    free(plan->actions);
    plan->actions = sorted;
}

void planner_close(planner_t *self)
{
    s_order(self->draft.out);
    draft_close(&self->draft);
    tt_dict_free(&self->names);
    free(self->going);
    free(self->replaced);
}
