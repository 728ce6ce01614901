/*  backend_remove - replicas that are wanted no longer: with their own grace period, idle and young ones first. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "k8s/operator/backend.h"

static void s_on_removed(void *ctx, writes_t *batch)
{
    task_t *self = ctx;
    for (size_t i = 0; i < batch->count; i++)
        if (batch->writes[i]->status != TT_OK) {
            task_end(self, tt_err(TT_INTERNAL, "delete pod %s: %s", batch->writes[i]->name, batch->writes[i]->text));
            return;
        }
    task_end(self, TT_OK);
}

/*  The ddp learners of an aggregator have no work without it. */
static void s_remove_ddp(task_t *self, const dijob_pod_t *const *pods, size_t count, const char *aggregator)
{
    for (size_t i = 0; i < count; i++)
        if (pods[i]->role == DIJOB_DDP_LEARNER && pods[i]->owner_pod && !pods[i]->deleting &&
            strcmp(pods[i]->owner_pod, aggregator) == 0)
            writes_delete(self->batch, &writes_pod, &pods[i]->meta, -1);
}

/*  Returns how many go. */
static size_t s_remove(task_t *self, dijob_role_t role, int n, json_t *list)
{
    const dijob_pod_t **pods = NULL;
    const size_t count = backend_pods(self->op, self->job_uid, &pods);
    const dijob_pod_t **victims = tt_array0(count + 1, sizeof *victims);
    const size_t going = dijob_victims(pods, count, role, (size_t)n, victims);
    for (size_t i = 0; i < going; i++) {
        task_list(list, victims[i]);
        writes_delete(self->batch, &writes_pod, &victims[i]->meta, -1);
        if (role == DIJOB_AGGREGATOR)
            s_remove_ddp(self, pods, count, victims[i]->meta.name);
    }
    free(victims);
    free(pods);
    return going;
}

void task_remove(task_t *self)
{
    const job_t *job = task_job(self);
    const int collectors = self->request->collectors.replicas, learners = self->request->learners.replicas;
    self->batch = writes_new(self->op, job, s_on_removed, self);
    if (collectors > 0 && !task_declared(self, DIJOB_COLLECTOR))
        s_remove(self, DIJOB_COLLECTOR, collectors, self->collectors);
    if (learners > 0 && !task_declared(self, DIJOB_LEARNER) &&
        s_remove(self, DIJOB_LEARNER, learners, self->learners) == 0)
        s_remove(self, DIJOB_AGGREGATOR, learners, self->learners);
    if (self->batch->count == 0)
        task_end(self, TT_OK);
}
