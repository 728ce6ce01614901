/*  status_old - how a job of v1alpha1 is, in the words of that time, beside the conditions by which it is remembered: phase (None,
 *  Creating, Running, CleanUp, Done; Failed where the spec was), state (that of the chief) and a list of replicas. */
#include <string.h>
#include "common/base/mem.h"
#include "k8s/front/object.h"
#include "k8s/tfjob/plan.h"

static bool s_has_failed(const planner_t *self)
{
    return self->phase == TFJOB_PHASE_FAILED;
}

static const char *s_phase(const planner_t *self)
{
    const json_t *failed = draft_condition(&self->draft, "Failed");
    if (s_has_failed(self) && parts_is(failed, "reason", "InvalidTFJobSpec"))
        return "Failed";
    if (s_has_failed(self) || self->phase == TFJOB_PHASE_SUCCEEDED)
        return self->view->pod_count + self->view->service_count > 0 ? "CleanUp" : "Done";
    return self->phase == TFJOB_PHASE_RUNNING || self->phase == TFJOB_PHASE_RESTARTING ? "Running" : "Creating";
}

static const char *s_state(const planner_t *self)
{
    if (s_has_failed(self) || self->phase == TFJOB_PHASE_SUCCEEDED)
        return tfjob_phases[self->phase];
    return self->phase == TFJOB_PHASE_RUNNING || self->phase == TFJOB_PHASE_RESTARTING ? "Running" : "Unknown";
}

static const char *s_reason(const planner_t *self)
{
    const json_t *failed = draft_condition(&self->draft, "Failed");
    return s_has_failed(self) ? parts_text(failed, "message", "") : "";
}

/* ---- replicas ------------------------------------------------------------------------------------------------------------- */

enum { UNKNOWN, RUNNING, SUCCEEDED, FAILED, STATES };
static const char *const s_states[STATES] = {"Unknown", "Running", "Succeeded", "Failed"};

static int s_pod_state(const tfjob_pod_t *pod)
{
    return pod->phase == POD_RUNNING     ? RUNNING
           : pod->phase == POD_SUCCEEDED ? SUCCEEDED
           : pod->phase == POD_FAILED    ? FAILED
                                         : UNKNOWN;
}

/*  Of a type: the worst of them. */
static const char *s_type_state(const int64_t counts[STATES], int32_t wanted)
{
    const int64_t seen = counts[UNKNOWN] + counts[RUNNING] + counts[SUCCEEDED] + counts[FAILED];
    if (counts[FAILED] > 0)
        return s_states[FAILED];
    if (counts[UNKNOWN] > 0 || seen < wanted)
        return s_states[UNKNOWN];
    return s_states[counts[SUCCEEDED] == seen ? SUCCEEDED : RUNNING];
}

static json_t *s_replicas(const planner_t *self, tfjob_type_t type)
{
    static const char *const words[TFJOB_TYPES] = {
        [TFJOB_MASTER] = "MASTER", [TFJOB_PS] = "PS", [TFJOB_WORKER] = "WORKER"};
    int64_t counts[STATES] = {0};
    json_t *states = json_object();
    for (size_t i = 0; i < self->view->pod_count; i++)
        if (self->pods[i]->type == type && !self->pods[i]->deleting)
            counts[s_pod_state(self->pods[i])]++;
    for (int state = 0; state < STATES; state++)
        if (counts[state] > 0)
            json_object_set_new(states, s_states[state], json_integer(counts[state]));
    return json_pack("{s:s, s:s, s:o}", "tf_replica_type", words[type], "state",
        s_type_state(counts, self->job->types[type].replicas), "ReplicasStates", states);
}

void tfjob_status_old(planner_t *self, bool ended)
{
    static const tfjob_type_t types[] = {TFJOB_MASTER, TFJOB_PS, TFJOB_WORKER};
    json_t *list = json_array();
    json_object_set_new(self->draft.status, "phase", json_string(s_phase(self)));
    json_object_set_new(self->draft.status, "state", json_string(s_state(self)));
    json_object_set_new(self->draft.status, "reason", json_string(s_reason(self)));
    for (size_t i = 0; i < TT_COUNT(types); i++)
        if (self->job->types[types[i]].there)
            json_array_append_new(list, s_replicas(self, types[i]));
    if (ended && json_is_array(json_object_get(self->draft.status, "replicaStatuses")))
        json_decref(list); /* how they ended stays to be read when they are gone */
    else
        json_object_set_new(self->draft.status, "replicaStatuses", list);
}
