/*  plan - may the job begin, what is made of it by the one planner, and that as actions on pods and services. */
#include "k8s/tfjob/plan.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"

/* ---- actions --------------------------------------------------------------------------------------------------------------- */

/*  A service that is to find another operator's pod selects by the labels of that ... */
static tfjob_labels_t s_labels_of_pod(const planner_t *self, tfjob_type_t type, int32_t index)
{
    for (size_t i = 0; i < self->view->pod_count; i++)
        if (self->pods[i]->type == type && self->pods[i]->index == index && self->pods[i]->labels != TFJOB_LABELS_OLD)
            return (tfjob_labels_t)self->pods[i]->labels;
    return TFJOB_LABELS_OLD;
}

static const tfjob_service_t *s_service(const planner_t *self, size_t at)
{
    return self->view->services[at];
}

/*  ... and a pod that another operator's service is to find has those by which that selects. */
static tfjob_labels_t s_labels_of_service(const planner_t *self, tfjob_type_t type, int32_t index)
{
    for (size_t i = 0; i < self->view->service_count; i++)
        if (s_service(self, i)->type == type && s_service(self, i)->index == index)
            return (tfjob_labels_t)s_service(self, i)->labels;
    return TFJOB_LABELS_OLD;
}

/*  By one of this job whose labels name no place: it is left alone, and may be what the name says. */
static bool s_is_taken(const planner_t *self, front_do_t what, const char *name)
{
    for (size_t i = 0; what == FRONT_CREATE_POD && i < self->view->pod_count; i++)
        if (self->pods[i]->type == TFJOB_TYPES && strcmp(self->pods[i]->meta.name, name) == 0)
            return true;
    for (size_t i = 0; what == FRONT_CREATE_SERVICE && i < self->view->service_count; i++)
        if (s_service(self, i)->type == TFJOB_TYPES && strcmp(s_service(self, i)->meta.name, name) == 0)
            return true;
    return false;
}

/*  A service has no name here: it may be of a place where nobody is yet. */
static void s_create(planner_t *self, const tt_action_t *action, front_do_t what)
{
    const tfjob_type_t type = (tfjob_type_t)action->group;
    const bool pod = what == FRONT_CREATE_POD;
    char *name = tfjob_place_name(self->job, type, action->index);
    if (!s_is_taken(self, what, name)) {
        tfjob_place_t *place = tt_new0(sizeof *place);
        *place = (tfjob_place_t){.type = type,
            .index = action->index,
            .restarts = action->restarts,
            .labels = (pod ? s_labels_of_service : s_labels_of_pod)(self, type, action->index)};
        front_action_t *create = draft_add(&self->draft, what, pod ? name : NULL);
        create->group = (int)type;
        create->needs = pod ? FRONT_NEEDS_JOB : 0;
        create->own = place;
    }
    free(name);
}

/*  One that failed goes for another to come; how it ended is said while it can be. One whose labels name no place stays, here as
 *  with services: who made it meant something by them. */
static void s_delete(planner_t *self, const tt_action_t *action)
{
    const tfjob_pod_t *pod = self->pods[action->replica];
    if (pod->type == TFJOB_TYPES)
        return;
    const char *namespace_ = *pod->meta.namespace_ ? pod->meta.namespace_ : "default";
    draft_add(&self->draft, FRONT_DELETE_POD, pod->meta.name)->grace_s = action->grace_s;
    if (pod->phase == POD_FAILED && self->phase == TFJOB_PHASE_RESTARTING && pod->exit_code >= 0)
        draft_event(&self->draft, "Normal", "ExitedWithCode", "Pod: %s.%s exited with code %d", namespace_,
            pod->meta.name, pod->exit_code);
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
        if (s_service(self, action->service)->type != TFJOB_TYPES)
            draft_add(&self->draft, FRONT_DELETE_SERVICE, s_service(self, action->service)->meta.name);
        break;
    case TT_DO_FORGET:
        draft_add(&self->draft, FRONT_DELETE_JOB, NULL);
        break;
    }
}

/*  What is there of it already another process of ours may have made: making it again does no harm. */
static void s_objects(planner_t *self)
{
    const uint32_t missing = tfjob_old_objects(self->job) & ~self->view->made;
    for (int i = 0; i < TFJOB_OLD_OBJECTS; i++)
        if (missing & 1u << i) {
            front_action_t *create = draft_add(&self->draft, FRONT_CREATE_OBJECT, NULL);
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

/*  Another operator's may have no pod just now, between two lives of them. */
static bool s_has_begun(const planner_t *self)
{
    return self->phase != TFJOB_PHASE_NONE && self->phase != TFJOB_PHASE_CREATED;
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
    self->draft.out->again_s = plan.again_s;
    tt_plan_clear(&plan);
    tfjob_rules_close(&rules);
}

tt_status_t tfjob_plan(front_plan_t *out, const front_view_t *view)
{
    const tfjob_t *job = view->job;
    *out = (front_plan_t){.again_s = -1};
    if (job->deleting) /* the garbage collector does the rest */
        return TT_OK;
    planner_t self = {.view = view, .job = job, .pods = (const tfjob_pod_t *const *)view->pods, .phase = job->phase};
    draft_open(&self.draft, out, job->status, view->now_s);
    if (job->invalid && !s_has_ended(&self)) {
        if (view->pod_count > 0 || s_has_begun(&self))
            tfjob_status_refused(&self);
        else
            tfjob_status_invalid(&self);
        tfjob_status_count(&self, false);
    } else {
        s_decide(&self);
    }
    draft_close(&self.draft);
    return TT_OK;
}
