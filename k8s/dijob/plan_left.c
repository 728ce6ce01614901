/*  plan_left - a job with pods whose spec says nothing that we could keep: another operator's, or broken since. Its pods are
 *  somebody's work: they stay, and the phase tells how they are. */
#include "k8s/dijob/planner.h"

/*  Once nobody works any more, without a coordinator whose word would count. */
static void s_all_over(planner_t *self, size_t failed)
{
    const bool tasks = self->job->tasks_shape;
    const char *name = self->job->meta.name;
    if (failed > 0)
        planner_phase(self, DIJOB_PHASE_FAILED, tasks ? "JobFailed" : "DIJobFailed", "Warning",
            "DIJob %s failed because %zu of its pods failed and none is left", name, failed);
    else
        planner_phase(self, DIJOB_PHASE_SUCCEEDED, tasks ? "JobSucceeded" : "DIJobSucceeded", "Normal",
            "DIJob %s succeeded because all of its pods succeeded", name);
}

void plan_left(planner_t *self)
{
    const dijob_view_t *view = self->view;
    size_t going_on = 0, failed = 0;
    if (plan_coordinator(self) < view->pod_count)
        return;
    for (size_t i = 0; i < view->pod_count; i++) {
        const char counts = dijob_pod_counts(view->pods[i]);
        going_on += counts == 'a' || counts == 0; /* pending, unknown, on its way out */
        failed += counts == 'f';
    }
    if (going_on == 0)
        s_all_over(self, failed);
}
