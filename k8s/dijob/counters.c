/*  counters - the numbers of a job's status, counted anew from the pods each time; but for failures, which stay. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "k8s/dijob/planner.h"

static const dijob_role_t s_counted[] = {DIJOB_COORDINATOR, DIJOB_COLLECTOR, DIJOB_LEARNER, DIJOB_AGGREGATOR};

typedef struct {
    int64_t active, succeeded, failed, alive;
} count_t;

static void s_count(const planner_t *self, count_t counts[DIJOB_ROLES])
{
    memset(counts, 0, DIJOB_ROLES * sizeof *counts);
    for (size_t i = 0; i < self->view->pod_count; i++) {
        const dijob_pod_t *pod = self->pods[i];
        count_t *count = &counts[pod->role];
        if (!planner_stays(self, i))
            continue;
        const char how = dijob_pod_counts(pod);
        count->active += how == 'a';
        count->succeeded += how == 's';
        count->alive += dijob_pod_alive(pod);
    }
}

/* ---- failures ------------------------------------------------------------------------------------------------------------- */

enum { ID_ROOM = 13 };

/*  Short, for thousands may have failed at once. */
static void s_id(char out[ID_ROOM], const dijob_pod_t *pod)
{
    snprintf(out, ID_ROOM, "%012" PRIx64, dijob_name_seed(pod->meta.uid) & UINT64_C(0xffffffffffff));
}

/*  Those that the status has counted already, as {"<id>": true}. A new reference. */
static json_t *s_counted_failures(const planner_t *self)
{
    json_t *set = json_object(), *item;
    size_t i;
    json_array_foreach(json_object_get(self->draft.status, "failedPods"), i, item)
    {
        if (json_is_string(item))
            json_object_set_new(set, json_string_value(item), json_true());
    }
    return set;
}

/*  Every failure counts once and for good, though its pod goes when another is in its place: which of the pods that are
 *  there have been counted stands in the status. A status that does not say so is another operator's: it counted those
 *  that are there. */
static void s_count_failures(planner_t *self, count_t counts[DIJOB_ROLES])
{
    const bool known = json_object_get(self->draft.status, "failedPods") != NULL;
    json_t *before = s_counted_failures(self), *now = json_array();
    bool any = false;
    for (size_t i = 0; i < self->view->pod_count; i++) {
        const dijob_pod_t *pod = self->pods[i];
        char id[ID_ROOM];
        if (pod->deleting || dijob_pod_counts(pod) != 'f')
            continue;
        s_id(id, pod);
        counts[pod->role].failed += !json_object_get(before, id);
        json_array_append_new(now, json_string(id));
    }
    for (size_t i = 0; i < TT_COUNT(s_counted); i++) {
        count_t *count = &counts[s_counted[i]];
        const json_t *entry =
            json_object_get(json_object_get(self->draft.status, "replicaStatus"), dijob_role_title(s_counted[i]));
        const json_int_t old = json_integer_value(json_object_get(entry, "failed"));
        const int64_t there = old < 0 ? 0 : old < INT32_MAX / 2 ? old : INT32_MAX / 2;
        count->failed = known ? there + count->failed : there > count->failed ? there : count->failed;
        any |= count->failed > 0;
    }
    json_decref(before);
    planner_set(self, "failedPods", any ? now : NULL);
    if (!any)
        json_decref(now);
}

/* ---- roles ---------------------------------------------------------------------------------------------------------------- */

static void s_number(json_t *object, const char *key, int64_t value)
{
    if (value != 0)
        json_object_set_new(object, key, json_integer(value));
}

static json_t *s_numbers(const count_t *count)
{
    json_t *object = json_object();
    s_number(object, "active", count->active);
    s_number(object, "succeeded", count->succeeded);
    s_number(object, "failed", count->failed);
    return object;
}

static void s_replica_status(planner_t *self, const count_t counts[DIJOB_ROLES])
{
    json_t *object = json_object();
    for (size_t i = 0; i < TT_COUNT(s_counted); i++)
        json_object_set_new(object, dijob_role_title(s_counted[i]), s_numbers(&counts[s_counted[i]]));
    planner_set(self, "replicaStatus", object);
}

/*  What was active when the job succeeded has succeeded with it. */
static void s_fold(planner_t *self)
{
    for (size_t i = 0; i < TT_COUNT(s_counted); i++) {
        json_t *entry =
            json_object_get(json_object_get(self->draft.status, "replicaStatus"), dijob_role_title(s_counted[i]));
        const int32_t active = (int32_t)json_integer_value(json_object_get(entry, "active"));
        const int32_t succeeded = (int32_t)json_integer_value(json_object_get(entry, "succeeded"));
        if (active == 0)
            continue;
        json_object_set_new(entry, "succeeded", json_integer((json_int_t)succeeded + active));
        json_object_del(entry, "active");
    }
}

void plan_count_roles(planner_t *self)
{
    count_t counts[DIJOB_ROLES];
    s_count(self, counts);
    if (!self->ended) { /* of an ended job they stay as they were */
        s_count_failures(self, counts);
        s_replica_status(self, counts);
    }
    if (self->phase == DIJOB_PHASE_SUCCEEDED)
        s_fold(self);
    planner_set(self, "collectorReplicas", json_integer(counts[DIJOB_COLLECTOR].alive));
    planner_set(self, "learnerReplicas", json_integer(counts[DIJOB_LEARNER].alive));
    planner_set(self, "aggregatorReplicas", json_integer(counts[DIJOB_AGGREGATOR].alive));
    char *selector = tt_sprintf("dijob-name=%s,replica-type=collector", self->job->meta.name);
    planner_set(self, "collectorSelector", json_string(selector));
    free(selector);
}

/* ---- tasks ---------------------------------------------------------------------------------------------------------------- */

static void s_task_pod(json_t *tasks, const dijob_pod_t *pod)
{
    json_t *entry = pod->owner_pod ? json_object_get(tasks, pod->owner_pod) : NULL;
    const char *phase = entry_phase(&pod->as_pod);
    if (entry)
        json_object_set_new(entry, phase, json_integer(json_integer_value(json_object_get(entry, phase)) + 1));
}

void plan_count_tasks(planner_t *self)
{
    const dijob_t *job = self->job;
    int64_t replicas = 0, ready = 0;
    if (self->ended)
        return;
    json_t *tasks = json_object();
    for (size_t i = 0; i < job->task_count; i++) {
        replicas += job->tasks[i].replicas;
        if (job->tasks[i].name)
            json_object_set_new(tasks, job->tasks[i].name, json_object());
    }
    for (size_t i = 0; i < self->view->pod_count; i++) {
        const dijob_pod_t *pod = self->pods[i];
        if (!planner_stays(self, i))
            continue;
        ready += pod->ready && pod->phase == POD_RUNNING;
        s_task_pod(tasks, pod);
    }
    planner_set(self, "taskStatus", tasks);
    planner_set(self, "replicas", json_integer(replicas));
    planner_set(self, "readyReplicas", json_integer(ready));
    planner_set(self, "restarts", json_integer(draft_count(&self->draft, "restarts")));
    planner_set(self, "reschedules", json_integer(draft_count(&self->draft, "reschedules")));
}
