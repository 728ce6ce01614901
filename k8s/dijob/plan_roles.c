/*  plan_roles - a job with a coordinator (v1alpha1's shape): the coordinator decides, the others are kept in number. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "k8s/dijob/planner.h"

static void s_created(planner_t *self)
{
    if (self->phase == DIJOB_PHASE_NONE)
        planner_phase(self, DIJOB_PHASE_CREATED, "DIJobCreated", "Normal", "DIJob %s created", self->job->meta.name);
}

/* ---- the coordinator ------------------------------------------------------------------------------------------------------ */

static bool s_has_name(const planner_t *self, const dijob_pod_t *pod)
{
    const char *name = self->job->meta.name;
    const size_t size = strlen(name);
    return strncmp(pod->meta.name, name, size) == 0 && strcmp(pod->meta.name + size, "-coordinator") == 0;
}

/*  Has more to say than the other: not going, the one that coordinated so far, the one with the right name, the older. */
static bool s_before(const planner_t *self, const dijob_pod_t *a, const dijob_pod_t *b)
{
    const char *uid = planner_text(self, "coordinatorUID");
    const bool same_a = strcmp(a->meta.uid, uid) == 0, same_b = strcmp(b->meta.uid, uid) == 0;
    const bool name_a = s_has_name(self, a), name_b = s_has_name(self, b);
    if (a->deleting != b->deleting)
        return b->deleting;
    if (same_a != same_b)
        return same_a;
    if (name_a != name_b)
        return name_a;
    return a->created_s != b->created_s ? a->created_s < b->created_s : strcmp(a->meta.name, b->meta.name) < 0;
}

/*  Of several only one has a say; the user is told. pod_count = there is none. */
static size_t s_find(planner_t *self)
{
    const dijob_view_t *view = self->view;
    size_t best = view->pod_count, count = 0;
    for (size_t i = 0; i < view->pod_count; i++) {
        const dijob_pod_t *pod = view->pods[i];
        if (pod->role != DIJOB_COORDINATOR)
            continue;
        count += !pod->deleting;
        if (best == view->pod_count || s_before(self, pod, view->pods[best]))
            best = i;
    }
    if (count > 1) {
        char *words = tt_sprintf(
            "%zu coordinator pods: %s coordinates, the others have no say", count, view->pods[best]->meta.name);
        if (planner_condition(self, "CoordinatorTwins", true, "TooManyCoordinators", words))
            planner_event(self, "Warning", "TooManyCoordinators", "%s", words);
        free(words);
    } else
        planner_condition(self, "CoordinatorTwins", false, "OneCoordinator", "");
    return best;
}

/*  Its UID is what tells it from a twin that was deleted by force and may still run. */
static void s_fence(planner_t *self, const dijob_pod_t *pod)
{
    const char *before = planner_text(self, "coordinatorUID");
    if (pod->deleting || strcmp(before, pod->meta.uid) == 0)
        return;
    if (*before)
        planner_set(self, "restarts", json_integer(planner_int(self, "restarts") + 1));
    planner_set(self, "coordinatorUID", json_string(pod->meta.uid));
}

/*  The phase follows the coordinator, and nobody else. */
static void s_decide(planner_t *self, const dijob_pod_t *pod)
{
    const char *name = self->job->meta.name;
    switch (dijob_pod_counts(pod)) {
    case 'a':
        planner_phase(self, DIJOB_PHASE_RUNNING, "DIJobRunning", NULL,
            "coordinator and aggregator of DIJob %s are running", name);
        break;
    case 's':
        planner_phase(self, DIJOB_PHASE_SUCCEEDED, "DIJobSucceeded", "Normal",
            "DIJob %s succeeded because coordinator succeeded", name);
        break;
    case 'f':
        if (self->job->tutti) /* ours goes on where it was */
            break;
        self->reason = pod->why ? pod->why : "Error";
        plan_say_end(self, pod);
        planner_phase(
            self, DIJOB_PHASE_FAILED, "DIJobFailed", "Warning", "DIJob %s failed because coordinator failed", name);
        break;
    default:
        break;
    }
}

static void s_create(planner_t *self)
{
    char *name = tt_sprintf("%s-coordinator", self->job->meta.name);
    planner_create(
        self, &(dijob_pod_want_t){.role = DIJOB_COORDINATOR, .name = name, .task = -1, .rank = -1, .task_rank = -1});
    free(name);
}

/*  Seconds between a coordinator's failure and the next one. */
static int64_t s_backoff(const planner_t *self, const dijob_pod_t *pod)
{
    const int64_t restarts = planner_int(self, "restarts");
    if (pod->disrupted)
        return 0;
    if (plan_ended_s(pod) - pod->created_s >= PLAN_RESET_S || restarts < 1)
        return 1;
    return restarts < 6 ? (int64_t)1 << restarts : PLAN_BACKOFF_MAX_S;
}

/*  A failed coordinator of a job of ours makes room for the next, whose name is the same. */
static void s_restart(planner_t *self, size_t pod)
{
    const dijob_pod_t *old = self->view->pods[pod];
    const int64_t wait_s = plan_wait_s(old, s_backoff(self, old), self->view->now_s);
    if (wait_s > 0)
        planner_again(self, wait_s);
    else
        planner_delete(self, pod, -1);
}

/* ---- services ------------------------------------------------------------------------------------------------------------ */

/*  One a pod, from when the pod is there till it is gone. */
static void s_services(planner_t *self)
{
    const dijob_view_t *view = self->view;
    for (size_t i = 0; i < view->pod_count; i++)
        if (planner_stays(self, i) && !planner_has_service(self, view->pods[i]->meta.name) &&
            planner_may_serve(view->pods[i]->meta.name))
            planner_service(self, DIJOB_DO_CREATE_SERVICE, view->pods[i]->meta.name);
    for (size_t i = 0; i < view->service_count; i++) {
        const dijob_service_t *service = view->services[i];
        if (!service->deleting && planner_find(self, service->meta.name) == view->pod_count)
            planner_service(self, DIJOB_DO_DELETE_SERVICE, service->meta.name);
    }
}

/* ---- the whole ------------------------------------------------------------------------------------------------------------ */

/*  The spec had tasks before. */
static void s_remove_tasks(planner_t *self)
{
    for (size_t i = 0; i < self->view->pod_count; i++)
        if (self->view->pods[i]->role == DIJOB_TASK)
            planner_delete(self, i, -1);
}

static void s_pods(planner_t *self, size_t at)
{
    const dijob_pod_t *coordinator = at < self->view->pod_count ? self->view->pods[at] : NULL;
    if (!planner_curve(self))
        return;
    const bool failed = coordinator && dijob_pod_counts(coordinator) == 'f';
    if (!coordinator && !planner_refused(self, DIJOB_COORDINATOR, -1))
        s_create(self);
    else if (failed)
        s_restart(self, at);
    const bool may_create = coordinator && !coordinator->deleting && !failed;
    for (dijob_role_t role = DIJOB_COLLECTOR; role <= DIJOB_AGGREGATOR; role++)
        plan_replicas(self, role, may_create && !planner_refused(self, role, -1));
    plan_ddp(self, may_create && !planner_refused(self, DIJOB_DDP_LEARNER, -1));
    s_remove_tasks(self);
}

size_t plan_coordinator(planner_t *self)
{
    const size_t coordinator = s_find(self);
    if (coordinator < self->view->pod_count) {
        s_fence(self, self->view->pods[coordinator]);
        s_decide(self, self->view->pods[coordinator]);
    }
    return coordinator;
}

void plan_roles(planner_t *self)
{
    s_created(self);
    const size_t coordinator = plan_coordinator(self);
    if (dijob_phase_final(self->phase) || plan_final(self))
        return; /* cleaned once the phase is written: a lost answer must not make the job run again */
    s_pods(self, coordinator);
    s_services(self);
}
