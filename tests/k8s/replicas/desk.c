#include "tests/k8s/replicas/desk.h"
#include <stdio.h>
#include "common/base/mem.h"

static uint64_t s_random(void *ctx)
{
    return ++((desk_t *)ctx)->random;
}

static char *s_url(const void *ctx, const dijob_pod_t *pod, int gpu)
{
    (void)ctx;
    return tt_sprintf("%s:%d", pod->meta.name, pod->port + gpu);
}

static void s_declared(void *ctx, const dijob_t *job, dijob_role_t role)
{
    desk_t *self = ctx;
    assert_ptr_equal(job, &self->job);
    assert_true(job->replicas[role] >= 0);
    self->declared++;
}

dijob_pod_t *desk_pod(desk_t *self, const char *name, dijob_role_t role)
{
    const size_t at = self->view.pod_count++;
    assert_true(at < DESK_PODS);
    dijob_pod_t *pod = &self->pods[at];
    snprintf(self->names[at], DESK_NAME, "%s", name);
    *pod = (dijob_pod_t){.meta = {.namespace_ = self->job.meta.namespace_, .name = self->names[at]},
        .role = (uint8_t)role,
        .phase = POD_RUNNING,
        .scheduled = true,
        .ready = true,
        .port = 1,
        .rank = -1,
        .created_s = (int64_t)at};
    snprintf(pod->meta.uid, sizeof pod->meta.uid, "uid-of-%.29s", name);
    self->seen[at] = pod;
    return pod;
}

void desk_open(desk_t *self)
{
    static char name[] = "j", namespace_[] = "n", coordinator[] = "j-coordinator";
    *self = (desk_t){.job.meta = {.namespace_ = namespace_, .name = name}};
    for (int role = 0; role < DIJOB_ROLES; role++)
        self->job.replicas[role] = -1;
    self->job.has[DIJOB_COLLECTOR] = self->job.has[DIJOB_LEARNER] = true;
    self->view = (replicas_view_t){
        .job = &self->job, .pods = self->seen, .random = s_random, .url = s_url, .declared = s_declared, .ctx = self};
    self->request = (replicas_request_t){.verb = REPLICAS_CREATE, .namespace_ = namespace_, .coordinator = coordinator};
    desk_pod(self, coordinator, DIJOB_COORDINATOR);
}
