/*  status - how a pod counts, conditions, times. */
#include <string.h>
#include <time.h>
#include "common/base/mem.h"
#include "k8s/dijob/planner.h"

char dijob_pod_counts(const dijob_pod_t *pod)
{
    if (pod->deleting)
        return 0;
    switch ((pod_phase_t)pod->phase) {
    case POD_RUNNING: /* a sidecar keeps the pod, the main container says how it is */
        return pod->main == MAIN_ERROR ? 'f' : pod->main == MAIN_COMPLETED ? 's' : 'a';
    case POD_SUCCEEDED:
        return 's';
    case POD_FAILED:
        return 'f';
    case POD_PENDING:
    case POD_UNKNOWN:
        break;
    }
    return 0;
}

bool dijob_pod_alive(const dijob_pod_t *pod)
{
    const char counts = dijob_pod_counts(pod);
    return !pod->deleting && counts != 's' && counts != 'f';
}

int64_t plan_ended_s(const dijob_pod_t *pod)
{
    return pod->finished_s > 0 ? pod->finished_s : pod->created_s;
}

/*  Others tell of something that may last from one phase to the next. */
static bool s_is_phase(const json_t *condition)
{
    for (int i = DIJOB_PHASE_NONE + 1; i < DIJOB_PHASES; i++)
        if (parts_is(condition, "type", dijob_phase_name((dijob_phase_t)i)))
            return true;
    return false;
}

/*  What others turn when this one comes. */
static void s_turn_others(json_t *conditions, bool tasks_shape, const char *type, int64_t now_s)
{
    const bool rests = strcmp(type, "Succeeded") == 0 || strcmp(type, "Failed") == 0 || strcmp(type, "Suspended") == 0;
    size_t i;
    json_t *item;
    json_array_foreach(conditions, i, item)
    {
        if (json_is_object(item) && !parts_is(item, "type", type) &&
            (tasks_shape ? s_is_phase(item) : rests && parts_is(item, "type", "Running")))
            parts_condition_off(item, now_s);
    }
}

void dijob_condition_set(
    json_t *conditions, bool tasks_shape, const char *type, const char *reason, const char *message, int64_t now_s)
{
    const json_t *old = parts_condition(conditions, type);
    s_turn_others(conditions, tasks_shape, type, now_s);
    const bool was_true = parts_is(old, "status", "True");
    if (was_true && parts_is(old, "reason", reason))
        return;
    json_t *since = was_true ? json_incref(json_object_get(old, "lastTransitionTime")) : NULL;
    parts_condition_on(conditions, type, reason, message, since, now_s);
}
