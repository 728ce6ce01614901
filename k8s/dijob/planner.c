/*  planner - actions, names and the status that is being made. */
#include "k8s/dijob/planner.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/text.h"

/* ---- names ------------------------------------------------------------------------------------------------------------- */

static void s_names_init(plan_names_t *self, size_t count)
{
    self->room = 16;
    while (self->room < 2 * count)
        self->room *= 2;
    self->names = tt_array0(self->room, sizeof *self->names);
    self->values = tt_array0(self->room, sizeof *self->values);
}

/*  The place of a name, or the free one where it belongs. */
static size_t s_slot(const plan_names_t *self, const char *name)
{
    size_t at = (size_t)dijob_name_seed(name) & (self->room - 1);
    while (self->names[at] && strcmp(self->names[at], name) != 0)
        at = (at + 1) & (self->room - 1);
    return at;
}

static void s_names_add(plan_names_t *self, const char *name, size_t value)
{
    const size_t at = s_slot(self, name);
    self->names[at] = name;
    self->values[at] = (uint32_t)value;
}

static void s_names_free(plan_names_t *self)
{
    free(self->names);
    free(self->values);
}

size_t planner_find(const planner_t *self, const char *name)
{
    const size_t at = s_slot(&self->pods, name);
    return self->pods.names[at] ? self->pods.values[at] : self->view->pod_count;
}

bool planner_may_serve(const char *name)
{
    const size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");
    return !name[length] && length > 0 && length <= 63 && name[0] >= 'a' && name[length - 1] != '-';
}

bool planner_stays(const planner_t *self, size_t pod)
{
    return !self->view->pods[pod]->deleting && !self->going[pod];
}

bool planner_refused(const planner_t *self, dijob_role_t role, int task)
{
    const int group = dijob_group(role, task);
    for (size_t i = 0; i < self->view->refusal_count; i++)
        if (self->view->refusals[i].group == group)
            return true;
    return false;
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

static dijob_action_t *s_action(planner_t *self, dijob_do_t what, const char *name)
{
    dijob_plan_t *out = self->out;
    if (out->count == out->room) {
        out->room = out->room ? 2 * out->room : 8;
        out->actions = tt_realloc(out->actions, tt_mul(out->room, sizeof *out->actions));
    }
    dijob_action_t *action = &out->actions[out->count++];
    *action = (dijob_action_t){.what = what, .name = tt_strdup(name), .grace_s = -1};
    return action;
}

/*  Who takes another's place gets what was asked for that one. */
static void s_keep_asked(const planner_t *self, dijob_action_t *action)
{
    const size_t old = action->pod.replaces ? planner_find(self, action->pod.replaces) : self->view->pod_count;
    if (old < self->view->pod_count)
        action->asked = dijob_asked(self->view->pods[old]->asked, &action->pod.resources);
}

void planner_create(planner_t *self, const dijob_pod_want_t *want)
{
    self->creates++;
    dijob_action_t *action = s_action(self, DIJOB_DO_CREATE_POD, want->name);
    action->pod = *want;
    action->pod.name = action->name;
    action->pod.replaces = tt_strdup(want->replaces);
    action->pod.aggregator = tt_strdup(want->aggregator);
    action->pod.aggregator_uid = tt_strdup(want->aggregator_uid);
    action->pod.master_name = tt_strdup(want->master_name);
    s_keep_asked(self, action);
}

void planner_delete(planner_t *self, size_t pod, int grace_s)
{
    if (!planner_stays(self, pod))
        return;
    self->going[pod] = true;
    s_action(self, DIJOB_DO_DELETE_POD, self->view->pods[pod]->meta.name)->grace_s = grace_s;
}

void planner_service(planner_t *self, dijob_do_t what, const char *name)
{
    s_action(self, what, name);
}

void planner_forget(planner_t *self)
{
    s_action(self, DIJOB_DO_DELETE_JOB, NULL);
}

void planner_curve(planner_t *self)
{
    if (!self->job->tutti || self->view->curve)
        return;
    s_action(self, DIJOB_DO_CREATE_CURVE, NULL);
    planner_again(self, 0);
}

/*  Words that came from outside, or were cut, may not be UTF-8, which no JSON takes. */
static char *s_format(const char *fmt, va_list args)
{
    char text[1024]; /* as long as an event's message may be */
    vsnprintf(text, sizeof text, fmt, args);
    return tt_text_dup(text);
}

static void s_event(planner_t *self, const char *type, const char *reason, const char *message)
{
    dijob_action_t *action = s_action(self, DIJOB_DO_EVENT, NULL);
    action->type = type;
    action->reason = reason;
    action->message = tt_strdup(message);
}

void planner_event(planner_t *self, const char *type, const char *reason, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char *message = s_format(fmt, args);
    va_end(args);
    s_event(self, type, reason, message);
    free(message);
}

void planner_again(planner_t *self, int64_t seconds)
{
    if (seconds < 0)
        seconds = 0;
    if (self->out->again_s < 0 || seconds < self->out->again_s)
        self->out->again_s = seconds;
}

/* ---- status ------------------------------------------------------------------------------------------------------------ */

void planner_set(planner_t *self, const char *key, json_t *value)
{
    if (value)
        json_object_set_new(self->status, key, value);
    else
        json_object_del(self->status, key);
}

int64_t planner_int(const planner_t *self, const char *key)
{
    const json_int_t value = json_integer_value(json_object_get(self->status, key));
    return value < 0 ? 0 : value < INT32_MAX ? value : INT32_MAX - 1; /* there is room for one more */
}

const char *planner_text(const planner_t *self, const char *key)
{
    const char *text = json_string_value(json_object_get(self->status, key));
    return text ? text : "";
}

static json_t *s_conditions(planner_t *self)
{
    json_t *conditions = json_object_get(self->status, "conditions");
    if (json_is_array(conditions))
        return conditions;
    planner_set(self, "conditions", json_array());
    return json_object_get(self->status, "conditions");
}

void planner_phase(planner_t *self, dijob_phase_t phase, const char *reason, const char *type, const char *fmt, ...)
{
    const bool same = phase == self->phase;
    const char *name = dijob_phase_name(phase);
    if (same && parts_is(parts_condition(json_object_get(self->status, "conditions"), name), "status", "True"))
        return; /* else the condition was edited away */
    va_list args;
    va_start(args, fmt);
    char *message = s_format(fmt, args);
    va_end(args);
    self->phase = phase;
    planner_set(self, "phase", json_string(dijob_phase_name(phase)));
    dijob_condition_set(
        s_conditions(self), self->job->tasks_shape, dijob_phase_name(phase), reason, message, self->view->now_s);
    if (phase == DIJOB_PHASE_RUNNING && !*planner_text(self, "startTimestamp"))
        planner_set(self, "startTimestamp", parts_time_text(self->view->now_s));
    if (dijob_phase_final(phase))
        planner_set(self, "completionTimestamp", parts_time_text(self->view->now_s));
    if (type && !same)
        s_event(self, type, reason, message);
    free(message);
}

static void s_write(planner_t *self, const char *type, bool on, const char *reason, const char *words)
{
    json_t *conditions = s_conditions(self), *entry = parts_condition(conditions, type);
    const char *status = on ? "True" : "False";
    if (!entry) {
        json_array_append_new(conditions, json_pack("{s:s}", "type", type));
        entry = parts_condition(conditions, type);
    }
    if (!parts_is(entry, "status", status))
        json_object_set_new(entry, "lastTransitionTime", parts_time_text(self->view->now_s));
    json_object_set_new(entry, "lastUpdateTime", parts_time_text(self->view->now_s));
    json_object_set_new(entry, "status", json_string(status));
    json_object_set_new(entry, "reason", json_string(reason));
    json_object_set_new(entry, "message", json_string(words));
}

bool planner_condition(planner_t *self, const char *type, bool on, const char *reason, const char *message)
{
    const json_t *old = parts_condition(json_object_get(self->status, "conditions"), type);
    const bool was_on = parts_is(old, "status", "True");
    char *words = tt_text_dup(message);
    const bool changed = was_on != on || (on && !parts_is(old, "message", words));
    if (changed)
        s_write(self, type, on, reason, words);
    free(words);
    return changed;
}

/* ---- life -------------------------------------------------------------------------------------------------------------- */

static json_t *s_status_of(const dijob_t *job)
{
    json_t *status = job->status ? json_loads(job->status, 0, NULL) : NULL;
    if (json_is_object(status))
        return status;
    json_decref(status);
    return json_object();
}

/*  The phase may have been edited behind our back; a condition that says how the job ended still ends it. */
static dijob_phase_t s_phase(const planner_t *self)
{
    static const dijob_phase_t finals[] = {DIJOB_PHASE_SUCCEEDED, DIJOB_PHASE_FAILED};
    if (dijob_phase_final(self->job->phase))
        return self->job->phase;
    for (size_t i = 0; i < TT_COUNT(finals); i++) {
        const json_t *conditions = json_object_get(self->status, "conditions");
        if (parts_is(parts_condition(conditions, dijob_phase_name(finals[i])), "status", "True"))
            return finals[i];
    }
    return self->job->phase;
}

static void s_index(planner_t *self)
{
    const dijob_view_t *view = self->view;
    s_names_init(&self->pods, view->pod_count);
    for (size_t i = 0; i < view->pod_count; i++)
        s_names_add(&self->pods, view->pods[i]->meta.name, i);
    for (size_t i = 0; i < view->pod_count; i++) {
        const size_t old = view->pods[i]->replaces ? planner_find(self, view->pods[i]->replaces) : view->pod_count;
        if (old < view->pod_count)
            self->replaced[old] = true;
    }
}

void planner_open(planner_t *self, dijob_plan_t *out, const dijob_view_t *view)
{
    *self = (planner_t){.view = view, .job = view->job, .out = out, .random = view->random};
    self->going = tt_array0(view->pod_count, sizeof *self->going);
    self->replaced = tt_array0(view->pod_count, sizeof *self->replaced);
    self->status = s_status_of(view->job);
    s_index(self);
    self->phase = s_phase(self);
    self->ended = dijob_phase_final(self->phase);
    if (self->phase != DIJOB_PHASE_NONE)
        planner_set(self, "phase", json_string(dijob_phase_name(self->phase)));
}

/*  Pods first, events last; else as they were decided. */
static void s_order(dijob_plan_t *plan)
{
    dijob_action_t *sorted = tt_array0(plan->room, sizeof *sorted);
    size_t count = 0;
    for (dijob_do_t what = DIJOB_DO_CREATE_POD; what <= DIJOB_DO_EVENT; what++)
        for (size_t i = 0; i < plan->count; i++)
            if (plan->actions[i].what == what)
                sorted[count++] = plan->actions[i];
    free(plan->actions);
    plan->actions = sorted;
}

void planner_close(planner_t *self)
{
    s_order(self->out);
    json_t *before = s_status_of(self->job);
    if (!json_equal(before, self->status))
        self->out->status = kube_dump(self->status);
    json_decref(before);
    json_decref(self->status);
    s_names_free(&self->pods);
    free(self->going);
    free(self->replaced);
}
