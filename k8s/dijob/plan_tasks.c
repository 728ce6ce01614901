/*  plan_tasks - a job of tasks (v2alpha1's shape): a state machine, one step a round, each written before it is acted on,
 *  so that what it counts (restarts, reschedules) is counted once. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "k8s/dijob/planner.h"

enum { EXIT_TERMINATED = 143, RESCHEDULES_MAX = 9999999 };

/*  The wanted pods are a row of slots, task by task and rank by rank; each is empty or has one pod. */
typedef struct {
    planner_t *planner;
    size_t replicas; /* slots                                              */
    size_t *slots;   /* [replicas] index of a pod; pod_count = empty       */
    bool *surplus;   /* [pod_count] has no slot                            */
    size_t here;     /* pods that count: not going, not lost               */
    size_t filled, ready, succeeded, failed;
    size_t first_failed; /* index of a pod, where one failed */
    bool changed;        /* this round makes or removes pods, or waits for one */
} tasks_t;

/*  Ended, and nobody's fault: its node refused it, or a preemptible job was told to leave. It goes without being counted. */
static bool s_is_lost(const dijob_t *job, const dijob_pod_t *pod)
{
    return pod->phase == POD_FAILED && (pod->refused || (job->preemptible && pod->exit_code == EXIT_TERMINATED));
}

static bool s_is_failed(const dijob_t *job, const dijob_pod_t *pod)
{
    return (pod->phase == POD_FAILED || pod->phase == POD_UNKNOWN) && !s_is_lost(job, pod);
}

/*  The slot of a pod; replicas = none. */
static size_t s_slot(const dijob_t *job, const dijob_pod_t *pod, size_t replicas)
{
    size_t slot = 0;
    for (size_t t = 0; t < job->task_count; slot += job->tasks[t++].replicas)
        if (pod->owner_pod && strcmp(job->tasks[t].name, pod->owner_pod) == 0)
            return pod->task_rank >= 0 && (uint32_t)pod->task_rank < job->tasks[t].replicas
                       ? slot + (size_t)pod->task_rank
                       : replicas;
    return replicas;
}

static bool s_older(const tasks_t *self, size_t left, size_t right)
{
    const dijob_pod_t *a = self->planner->view->pods[left], *b = self->planner->view->pods[right];
    return a->created_s != b->created_s ? a->created_s < b->created_s : strcmp(a->meta.name, b->meta.name) < 0;
}

/*  Of two in one place the older one stays. */
static void s_place(tasks_t *self, size_t slot, size_t at)
{
    const size_t there = self->slots[slot];
    if (there == self->planner->view->pod_count) {
        self->slots[slot] = at;
        self->filled++;
        return;
    }
    const bool older = s_older(self, at, there);
    self->surplus[older ? there : at] = true;
    self->slots[slot] = older ? at : there;
}

/*  The slot of the younger of two becomes empty. Returns the other. */
static size_t s_evict(tasks_t *self, size_t left, size_t right)
{
    const bool older = s_older(self, self->slots[left], self->slots[right]);
    const size_t loser = older ? right : left;
    self->surplus[self->slots[loser]] = true;
    self->slots[loser] = self->planner->view->pod_count;
    self->filled--;
    return older ? left : right;
}

/*  Of two with one global rank (an answer was lost, and the spec edited meanwhile) the older one stays too. */
static void s_tell_apart(tasks_t *self)
{
    const dijob_view_t *view = self->planner->view;
    const size_t room = view->pod_count + self->replicas;
    size_t *owners = tt_array0(room, sizeof *owners); /* of a rank: slot + 1 */
    for (size_t slot = 0; slot < self->replicas; slot++) {
        const size_t at = self->slots[slot];
        const int32_t rank = at < view->pod_count ? view->pods[at]->rank : -1;
        if (rank >= 0 && (size_t)rank < room)
            owners[rank] = 1 + (owners[rank] ? s_evict(self, owners[rank] - 1, slot) : slot);
    }
    free(owners);
}

static void s_count_pod(tasks_t *self, size_t at)
{
    const planner_t *planner = self->planner;
    const dijob_pod_t *pod = planner->view->pods[at];
    const size_t slot = s_slot(planner->job, pod, self->replicas);
    if (slot == self->replicas)
        self->surplus[at] = true;
    else
        s_place(self, slot, at);
    self->here++;
    self->ready += pod->ready && pod->phase == POD_RUNNING;
    self->succeeded += pod->phase == POD_SUCCEEDED;
    if (s_is_failed(planner->job, pod) && self->failed++ == 0)
        self->first_failed = at;
}

static void s_count(tasks_t *self)
{
    const planner_t *planner = self->planner;
    const size_t pod_count = planner->view->pod_count;
    for (size_t i = 0; i < planner->job->task_count; i++)
        self->replicas += planner->job->tasks[i].replicas;
    self->slots = tt_array0(self->replicas, sizeof *self->slots);
    self->surplus = tt_array0(pod_count, sizeof *self->surplus);
    for (size_t i = 0; i < self->replicas; i++)
        self->slots[i] = pod_count;
    for (size_t i = 0; i < pod_count; i++)
        if (planner_stays(planner, i) && !s_is_lost(planner->job, planner->view->pods[i]))
            s_count_pod(self, i);
    s_tell_apart(self);
}

/*  As many as asked for, and those. */
static bool s_complete(const tasks_t *self)
{
    return self->filled == self->replicas && self->here == self->replicas;
}

static void s_delete(tasks_t *self, size_t pod)
{
    planner_delete(self->planner, pod, -1);
    self->changed = true;
}

/*  Once it is time; till then it stays for reading. */
static void s_delete_after(tasks_t *self, size_t pod, int64_t delay_s)
{
    const int64_t wait_s = plan_wait_s(self->planner->view->pods[pod], delay_s, self->planner->view->now_s);
    self->changed = true;
    if (wait_s > 0)
        planner_again(self->planner, wait_s);
    else
        s_delete(self, pod);
}

/* ---- numbers -------------------------------------------------------------------------------------------------------------- */

/*  Ranks that are not asked for any more, and pods of tasks that are no more. */
static void s_trim(tasks_t *self)
{
    for (size_t i = 0; i < self->planner->view->pod_count; i++)
        if (self->surplus[i] && planner_stays(self->planner, i))
            s_delete(self, i);
}

/*  Global ranks in use; the lowest free one is next. */
typedef struct {
    bool *used;
    size_t room, next;
} ranks_t;

static void s_ranks_init(ranks_t *self, const tasks_t *tasks)
{
    const planner_t *planner = tasks->planner;
    self->room = planner->view->pod_count + tasks->replicas + 1;
    self->used = tt_array0(self->room, sizeof *self->used);
    self->next = 0;
    for (size_t i = 0; i < planner->view->pod_count; i++) {
        const int32_t rank = planner->view->pods[i]->rank;
        if (planner_stays(planner, i) && rank >= 0 && (size_t)rank < self->room)
            self->used[rank] = true;
    }
}

static int s_ranks_take(ranks_t *self)
{
    while (self->next + 1 < self->room && self->used[self->next])
        self->next++;
    self->used[self->next] = true;
    return (int)self->next;
}

/*  What the annotation tutti/reschedules can hold. */
static int32_t s_reschedules(const planner_t *self)
{
    const int64_t count = planner_int(self, "reschedules");
    return count < RESCHEDULES_MAX ? (int32_t)count : RESCHEDULES_MAX;
}

static bool s_has_old_service(const planner_t *self)
{
    char *name = tt_sprintf("di-%s", self->job->meta.name);
    const bool old = planner_has_service(self, self->job->meta.name) && !planner_has_service(self, name);
    free(name);
    return old;
}

/*  One replica of a task; one of that name that is still going is waited for. */
static void s_create(tasks_t *self, size_t task, int task_rank, int rank)
{
    planner_t *planner = self->planner;
    char *name = tt_sprintf("%s-%s-%d", planner->job->meta.name, planner->job->tasks[task].name, task_rank);
    self->changed = true;
    if (planner_find(planner, name) == planner->view->pod_count && !planner_refused(planner, DIJOB_TASK, (int)task))
        planner_create(planner, &(dijob_pod_want_t){.role = DIJOB_TASK,
                                    .name = name,
                                    .task = (int)task,
                                    .rank = rank,
                                    .task_rank = task_rank,
                                    .reschedules = s_reschedules(planner),
                                    .old_service = s_has_old_service(planner)});
    free(name);
}

/*  What is missing, lowest ranks first. */
static void s_fill(tasks_t *self)
{
    const dijob_t *job = self->planner->job;
    ranks_t ranks;
    s_ranks_init(&ranks, self);
    for (size_t task = 0, slot = 0; task < job->task_count; task++)
        for (uint32_t rank = 0; rank < job->tasks[task].replicas; rank++, slot++) {
            const size_t pod = self->slots[slot];
            if (pod == self->planner->view->pod_count || !planner_stays(self->planner, pod))
                s_create(self, task, (int)rank, s_ranks_take(&ranks));
        }
    free(ranks.used);
}

static void s_remove_lost(tasks_t *self)
{
    planner_t *planner = self->planner;
    for (size_t i = 0; i < planner->view->pod_count; i++) {
        const dijob_pod_t *pod = planner->view->pods[i];
        if (planner_stays(planner, i) && s_is_lost(planner->job, pod))
            s_delete_after(self, i, pod->refused ? PLAN_REFUSED_S : 0);
    }
}

/*  Towards the numbers of the spec. True: they are reached. */
static bool s_settle(tasks_t *self)
{
    s_remove_lost(self);
    s_trim(self);
    s_fill(self);
    return !self->changed;
}

/* ---- states --------------------------------------------------------------------------------------------------------------- */

static void s_pending(tasks_t *self)
{
    if (s_settle(self))
        planner_phase(self->planner, DIJOB_PHASE_STARTING, "JobStarting", "Normal",
            "job is starting since all pods are created.");
}

static void s_failed(tasks_t *self)
{
    planner_t *planner = self->planner;
    const int64_t restarts = planner_int(planner, "restarts"), limit = planner->job->backoff_limit;
    if (plan_final(planner))
        return;
    plan_say_end(planner, planner->view->pods[self->first_failed]);
    if (limit >= 0 && restarts >= limit) {
        planner->reason = "BackoffLimitExceeded";
        planner_phase(planner, DIJOB_PHASE_FAILED, "JobFailed", "Warning",
            "job failed since %zu pods failed and exceed backoff limit", self->failed);
        return;
    }
    planner_set(planner, "restarts", json_integer(restarts + 1));
    planner_phase(planner, DIJOB_PHASE_RESTARTING, "JobRestarting", "Warning",
        "job is restarting since %zu pods failed", self->failed);
}

static void s_reschedule(tasks_t *self)
{
    planner_t *planner = self->planner;
    planner_set(planner, "reschedules", json_integer(planner_int(planner, "reschedules") + 1));
    planner_phase(planner, DIJOB_PHASE_RESCHEDULING, "JobRescheduling", "Warning",
        "job is rescheduling since replicas changed, replicas: %zu, pods: %zu", self->replicas, self->here);
}

static void s_working(tasks_t *self)
{
    if (self->here > 0 && self->succeeded == self->here && s_complete(self))
        planner_phase(self->planner, DIJOB_PHASE_SUCCEEDED, "JobSucceeded", "Normal",
            "job succeeded since all the replicas are succeeded.");
    else if (self->failed > 0)
        s_failed(self);
    else if (!s_complete(self))
        s_reschedule(self);
    else if (self->ready + self->succeeded == self->replicas)
        planner_phase(
            self->planner, DIJOB_PHASE_RUNNING, "JobRunning", "Normal", "job is running since all pods are ready.");
}

static void s_started(tasks_t *self)
{
    planner_phase(self->planner, DIJOB_PHASE_STARTING, "JobStarting", "Normal",
        "job is starting since the created pods %zu are matched replicas %zu.", self->here, self->replicas);
}

/*  Failed pods go, others come in their place: at once the first time, after 1 s doubling to 60 s from the second on. */
static void s_restarting(tasks_t *self)
{
    planner_t *planner = self->planner;
    const int64_t restarts = planner_int(planner, "restarts");
    const int64_t delay = restarts < 2 ? 0 : restarts < 8 ? (int64_t)1 << (restarts - 2) : PLAN_BACKOFF_MAX_S;
    for (size_t i = 0; i < planner->view->pod_count; i++) {
        const dijob_pod_t *pod = planner->view->pods[i];
        const bool old = plan_ended_s(pod) - pod->created_s >= PLAN_RESET_S;
        if (planner_stays(planner, i) && s_is_failed(planner->job, pod))
            s_delete_after(self, i, old ? 0 : delay);
    }
    if (s_settle(self))
        s_started(self);
}

/*  Preemptible: who was there before this began goes, all of them, before anybody comes. Told by numbers: times of creation
 *  are whole seconds of another clock. */
static bool s_all_gone(tasks_t *self)
{
    planner_t *planner = self->planner;
    const int32_t now = s_reschedules(planner);
    bool gone = true;
    for (size_t i = 0; i < planner->view->pod_count; i++)
        if (planner->view->pods[i]->reschedules != now) {
            s_delete(self, i);
            gone = false;
        }
    return gone;
}

static void s_rescheduling(tasks_t *self)
{
    if (self->planner->job->preemptible && !s_all_gone(self))
        return;
    if (s_settle(self))
        s_started(self);
}

static void s_step(tasks_t *self)
{
    switch (self->planner->phase) {
    case DIJOB_PHASE_PENDING:
        s_pending(self);
        break;
    case DIJOB_PHASE_STARTING:
    case DIJOB_PHASE_RUNNING:
        s_working(self);
        break;
    case DIJOB_PHASE_RESTARTING:
        s_restarting(self);
        break;
    case DIJOB_PHASE_RESCHEDULING:
        s_rescheduling(self);
        break;
    default: /* new, or a phase that this shape does not know */
        planner_phase(
            self->planner, DIJOB_PHASE_PENDING, "JobPending", "Normal", "job is pending since it was created.");
        s_settle(self);
        break;
    }
}

/*  One for the job: its pods are found below it. DI-orchestrator up to 1.1.1 named it as the job; that one stays, and new
 *  pods are found below it too, for those that run know no other names. */
static void s_service(planner_t *self)
{
    char *name = tt_sprintf("di-%s", self->job->meta.name);
    if (!planner_has_service(self, name) && !s_has_old_service(self) && planner_may_serve(name))
        planner_service(self, DIJOB_DO_CREATE_SERVICE, NULL);
    for (size_t i = 0; i < self->view->service_count; i++) {
        const dijob_service_t *service = self->view->services[i];
        if (!service->deleting && strcmp(service->meta.name, name) != 0 &&
            strcmp(service->meta.name, self->job->meta.name) != 0)
            planner_service(self, DIJOB_DO_DELETE_SERVICE, service->meta.name);
    }
    free(name);
}

void plan_tasks(planner_t *self)
{
    tasks_t tasks = {.planner = self};
    if (!planner_curve(self))
        return;
    s_count(&tasks);
    s_step(&tasks);
    free(tasks.slots);
    free(tasks.surplus);
    if (!dijob_phase_final(self->phase))
        s_service(self);
}
