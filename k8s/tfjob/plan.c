/*  plan - may the job begin, what is made of it by the one planner, and that as actions on pods and services. */
#include "k8s/tfjob/plan.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/text.h"

enum { MESSAGE_ROOM = 1024 }; /* as long as an event's message may be */

/* ---- actions --------------------------------------------------------------------------------------------------------------- */

static front_action_t *s_action(planner_t *self, front_do_t what, const char *name)
{
    front_plan_t *out = self->out;
    if (out->count == self->room) {
        self->room = self->room ? 2 * self->room : 8;
        out->actions = tt_realloc(out->actions, tt_mul(self->room, sizeof *out->actions));
    }
    front_action_t *action = &out->actions[out->count++];
    *action = (front_action_t){.what = what, .name = name ? tt_strdup(name) : NULL, .grace_s = -1};
    return action;
}

void tfjob_event(planner_t *self, const char *type, const char *reason, const char *fmt, ...)
{
    char text[MESSAGE_ROOM];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    front_action_t *action = s_action(self, FRONT_EVENT, NULL);
    action->type = type;
    action->reason = reason;
    action->message = tt_text_dup(text); /* cut, it may not be UTF-8 */
}

/*  A service has no name here: it may be of a place where nobody is yet. */
static void s_create(planner_t *self, const tt_action_t *action, front_do_t what)
{
    const tfjob_type_t type = (tfjob_type_t)action->group;
    char *name = what == FRONT_CREATE_POD ? tfjob_place_name(self->job, type, action->index) : NULL;
    tfjob_place_t *place = tt_new0(sizeof *place);
    *place = (tfjob_place_t){.type = type, .index = action->index, .restarts = action->restarts};
    front_action_t *create = s_action(self, what, name);
    create->group = (int)type;
    create->needs = what == FRONT_CREATE_POD ? FRONT_NEEDS_JOB : 0;
    create->own = place;
    free(name);
}

/*  One that failed goes for another to come; how it ended is said while it can be. */
static void s_delete(planner_t *self, const tt_action_t *action)
{
    const tfjob_pod_t *pod = self->pods[action->replica];
    const char *namespace_ = *pod->meta.namespace_ ? pod->meta.namespace_ : "default";
    s_action(self, FRONT_DELETE_POD, pod->meta.name)->grace_s = action->grace_s;
    if (pod->phase == POD_FAILED && self->phase == TFJOB_PHASE_RESTARTING && pod->exit_code >= 0)
        tfjob_event(self, "Normal", "ExitedWithCode", "Pod: %s.%s exited with code %d", namespace_, pod->meta.name,
            pod->exit_code);
}

static void s_do(planner_t *self, const tt_action_t *action)
{
    switch (action->what) {
    case TT_DO_CREATE:
        s_create(self, action, FRONT_CREATE_POD);
        break;
    case TT_DO_SERVE:
        s_create(self, action, FRONT_CREATE_SERVICE);
        break;
    case TT_DO_DELETE:
        s_delete(self, action);
        break;
    case TT_DO_UNSERVE:
        s_action(
            self, FRONT_DELETE_SERVICE, ((const tfjob_service_t *)self->view->services[action->service])->meta.name);
        break;
    case TT_DO_FORGET:
        s_action(self, FRONT_DELETE_JOB, NULL);
        break;
    }
}

/*  What is there of it already another process of ours may have made: making it again does no harm. */
static void s_objects(planner_t *self)
{
    const uint32_t missing = tfjob_old_objects(self->job) & ~self->view->made;
    for (int i = 0; i < TFJOB_OLD_OBJECTS; i++)
        if (missing & 1u << i) {
            front_action_t *create = s_action(self, FRONT_CREATE_OBJECT, NULL);
            create->object = i;
            create->needs = FRONT_NEEDS_JOB;
        }
}

/*  Names before who is found by them. */
static void s_do_all(planner_t *self, const tt_plan_t *plan)
{
    for (size_t i = 0; i < plan->count; i++)
        if (plan->actions[i].what == TT_DO_SERVE)
            s_do(self, &plan->actions[i]);
    for (size_t i = 0; i < plan->count; i++)
        if (plan->actions[i].what != TT_DO_SERVE)
            s_do(self, &plan->actions[i]);
}

/* ---- the plan --------------------------------------------------------------------------------------------------------------- */

static bool s_has_ended(const planner_t *self)
{
    return self->phase == TFJOB_PHASE_SUCCEEDED || self->phase == TFJOB_PHASE_FAILED;
}

static void s_decide(planner_t *self)
{
    rules_t rules;
    tt_plan_t plan;
    const bool ended = s_has_ended(self);
    tfjob_rules_open(&rules, self);
    tt_plan(&plan, &rules.rules, &rules.state, &rules.seen);
    if (!ended)
        tfjob_status_facts(self, &rules, &plan);
    s_do_all(self, &plan);
    if (!s_has_ended(self)) {
        s_objects(self);
        tfjob_status_refusals(self);
    }
    tfjob_status_count(self, ended);
    self->out->again_s = plan.again_s;
    tt_plan_clear(&plan);
    tfjob_rules_close(&rules);
}

static json_t *s_status_of(const tfjob_t *job)
{
    json_t *status = job->status ? json_loads(job->status, 0, NULL) : NULL;
    if (json_is_object(status))
        return status;
    json_decref(status);
    return json_object();
}

static void s_write(planner_t *self)
{
    json_t *before = s_status_of(self->job);
    if (!json_equal(before, self->status))
        self->out->status = kube_dump(self->status);
    json_decref(before);
}

tt_status_t tfjob_plan(front_plan_t *out, const front_view_t *view)
{
    const tfjob_t *job = view->job;
    *out = (front_plan_t){.again_s = -1};
    if (job->deleting) /* the garbage collector does the rest */
        return TT_OK;
    planner_t self = {.view = view,
        .job = job,
        .pods = (const tfjob_pod_t *const *)view->pods,
        .status = s_status_of(job),
        .phase = job->phase,
        .out = out};
    if (job->invalid && !s_has_ended(&self)) {
        if (view->pod_count > 0)
            tfjob_status_refused(&self);
        else
            tfjob_status_invalid(&self);
        tfjob_status_count(&self, false);
    } else {
        s_decide(&self);
    }
    s_write(&self);
    json_decref(self.status);
    return TT_OK;
}

void tfjob_plan_clear(front_plan_t *self)
{
    for (size_t i = 0; i < self->count; i++) {
        free((void *)(uintptr_t)self->actions[i].name);
        free((void *)(uintptr_t)self->actions[i].message);
        free((void *)(uintptr_t)self->actions[i].own);
    }
    free(self->actions);
    free((void *)(uintptr_t)self->status);
    *self = (front_plan_t){.again_s = -1};
}
