/*  plan_replicas - the pods of one role, kept in number.
 *
 *  With `replicas` in the spec the number decides. Without, whoever asks over HTTP does, and only a pod that failed or was
 *  disrupted is replaced, once. Every replacement names the pod that it stands for and the seconds that were waited, so the
 *  back-off (1 s doubling to 60 s) is read from the pods and survives a restart of the operator. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "k8s/dijob/planner.h"

/*  A pod that ended, or is about to without having been asked to. */
typedef struct {
    size_t pod;
    int64_t ended_s, delay_s, wait_s; /* wait_s: till its place may be taken */
} ended_t;

typedef struct {
    planner_t *planner;
    dijob_role_t role;
    int64_t want; /* -1 = as they are */
    size_t alive;
    ended_t *ended; /* newest first */
    size_t ended_count;
    size_t waiting; /* of ended: not replaced, and too early for it */
} role_t;

int64_t plan_want(const dijob_t *job, dijob_role_t role)
{
    const int64_t want = job->replicas[role], learners = job->replicas[DIJOB_LEARNER];
    if (role == DIJOB_AGGREGATOR && want < 0 && job->tutti && learners >= 0)
        return learners > 1 ? 1 : 0; /* gradients of one learner need no adding up */
    return want;
}

/*  In both ways of counting: failed, or disrupted and on its way out. With a number also one that ended well. */
static bool s_is_ended(const role_t *self, const dijob_pod_t *pod)
{
    const char counts = dijob_pod_counts(pod);
    if (pod->deleting)
        return self->want < 0 && pod->disrupted && pod->phase != POD_SUCCEEDED;
    return counts == 'f' || (counts == 's' && self->want >= 0);
}

static int s_newest_first(const void *left, const void *right)
{
    const ended_t *a = left, *b = right;
    if (a->ended_s != b->ended_s)
        return a->ended_s > b->ended_s ? -1 : 1;
    return a->pod < b->pod ? -1 : a->pod > b->pod;
}

static void s_look(role_t *self)
{
    const planner_t *planner = self->planner;
    const dijob_view_t *view = planner->view;
    for (size_t i = 0; i < view->pod_count; i++) {
        const dijob_pod_t *pod = view->pods[i];
        if (pod->role != self->role || planner->going[i])
            continue;
        self->alive += dijob_pod_alive(pod);
        if (!s_is_ended(self, pod))
            continue;
        ended_t *ended = &self->ended[self->ended_count++];
        *ended = (ended_t){i, plan_ended_s(pod), plan_delay_s(pod), 0};
        ended->wait_s = plan_wait_s(pod, ended->delay_s, view->now_s);
        self->waiting += !planner->replaced[i] && ended->wait_s > 0;
    }
    qsort(self->ended, self->ended_count, sizeof *self->ended, s_newest_first);
}

/*  The next that is due, from *at on. NULL: none. */
static const ended_t *s_due(const role_t *self, size_t *at)
{
    for (; *at < self->ended_count; (*at)++)
        if (!self->planner->replaced[self->ended[*at].pod] && self->ended[*at].wait_s <= 0)
            return &self->ended[(*at)++];
    return NULL;
}

static bool s_create(role_t *self, const ended_t *old)
{
    planner_t *planner = self->planner;
    char *name =
        old ? planner_name_for(planner, self->role, planner->view->pods[old->pod]) : planner_name(planner, self->role);
    dijob_pod_want_t want = {.role = self->role, .name = name, .task = -1, .rank = -1, .task_rank = -1};
    if (old) {
        want.replaces = planner->view->pods[old->pod]->meta.name;
        want.backoff_s = (int)old->delay_s;
    }
    const bool made = planner_create(planner, &want);
    if (made && old)
        planner->replaced[old->pod] = true;
    free(name);
    return made;
}

/*  The earliest time that somebody's place may be taken. */
static void s_wait(const role_t *self)
{
    for (size_t i = 0; i < self->ended_count; i++)
        if (!self->planner->replaced[self->ended[i].pod] && self->ended[i].wait_s > 0)
            planner_again(self->planner, self->ended[i].wait_s);
}

static bool s_has_template(const role_t *self)
{
    return self->role == DIJOB_AGGREGATOR || self->planner->job->has[self->role];
}

/* ---- by number ------------------------------------------------------------------------------------------------------------ */

static void s_surplus(role_t *self, size_t n)
{
    planner_t *planner = self->planner;
    const dijob_pod_t **victims = tt_array0(n, sizeof *victims);
    const size_t count = dijob_victims(planner->view->pods, planner->view->pod_count, self->role, n, victims);
    for (size_t i = 0; i < count; i++)
        planner_delete(planner, planner_find(planner, victims[i]->meta.name), -1);
    free(victims);
}

/*  Failed ones are kept for reading, three of them; what else has ended goes, unless it still holds its back-off. */
static void s_tidy(role_t *self, bool missing)
{
    planner_t *planner = self->planner;
    size_t kept = 0;
    for (size_t i = 0; i < self->ended_count; i++) {
        const size_t pod = self->ended[i].pod;
        const dijob_pod_t *ended = planner->view->pods[pod];
        const bool holds = missing && !planner->replaced[pod];
        const bool readable = dijob_pod_counts(ended) == 'f' && ended->phase == POD_FAILED;
        if (holds || (readable && kept < PLAN_FAILED_KEPT))
            kept += readable;
        else
            planner_delete(planner, pod, -1);
    }
}

static void s_by_number(role_t *self, bool may_create)
{
    const size_t want = (size_t)self->want;
    const size_t missing = want > self->alive ? want - self->alive : 0;
    size_t at = 0;
    if (self->alive > want)
        s_surplus(self, self->alive - want);
    if (may_create && s_has_template(self)) {
        for (size_t n = missing > self->waiting ? missing - self->waiting : 0; n > 0; n--)
            if (!s_create(self, s_due(self, &at)))
                break;
        if (missing > 0)
            s_wait(self);
    }
    s_tidy(self, missing > 0);
}

/* ---- as they are ---------------------------------------------------------------------------------------------------------- */

/*  Has a successor, and is itself nobody's whose end would have to be seen anew without it. */
static bool s_is_done_with(const planner_t *planner, size_t pod)
{
    const char *before = planner->view->pods[pod]->replaces;
    return planner->replaced[pod] && (!before || planner_find(planner, before) == planner->view->pod_count);
}

/*  A failed pod goes when the one in its place is there: were it kept, that one's deletion would look like its own
 *  failure once more. */
static void s_as_they_are(role_t *self, bool may_create)
{
    planner_t *planner = self->planner;
    size_t at = 0;
    for (size_t i = 0; i < self->ended_count; i++)
        if (s_is_done_with(planner, self->ended[i].pod))
            planner_delete(planner, self->ended[i].pod, -1);
    if (!may_create || !s_has_template(self))
        return;
    for (const ended_t *old = s_due(self, &at); old; old = s_due(self, &at))
        if (!s_create(self, old))
            break;
    s_wait(self);
}

void plan_replicas(planner_t *self, dijob_role_t role, bool may_create)
{
    role_t role_ = {.planner = self, .role = role, .want = plan_want(self->job, role)};
    role_.ended = tt_array0(self->view->pod_count, sizeof *role_.ended);
    s_look(&role_);
    if (role_.want >= 0)
        s_by_number(&role_, may_create);
    else
        s_as_they_are(&role_, may_create);
    free(role_.ended);
}
