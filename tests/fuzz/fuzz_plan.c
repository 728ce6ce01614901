/*  A job, its pods and services from any bytes, one JSON value a line: the first is the job, the others pods or services.
 *  Planning never crashes, says the same twice, and once its status is written it has no other one to write. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "k8s/dijob/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROOM = 16 };

typedef struct {
    dijob_t *job;
    dijob_pod_t *pods[ROOM];
    dijob_service_t *services[ROOM];
    size_t pod_count, service_count;
} world_t;

static void s_line(world_t *self, const char *line, size_t size)
{
    dijob_service_t *service = NULL;
    if (!self->job) {
        if (dijob_decode(&self->job, line, size) != TT_OK)
            self->job = NULL;
    } else if (self->pod_count < ROOM && dijob_pod_decode(&self->pods[self->pod_count], line, size) == TT_OK)
        self->pod_count++;
    else if (self->service_count < ROOM && dijob_service_decode(&service, line, size) == TT_OK)
        self->services[self->service_count++] = service;
}

static void s_plan(const world_t *self, front_plan_t *plan)
{
    const front_view_t view = {.job = self->job,
        .pods = (const void *const *)self->pods,
        .pod_count = self->pod_count,
        .services = (const void *const *)self->services,
        .service_count = self->service_count,
        .now_s = 1800000000,
        .made = 1u << DIJOB_CURVE,
        .random = 1};
    if (dijob_plan(plan, &view) != TT_OK)
        abort();
}

/*  As the API server would give it back. */
static void s_write(dijob_t *job, const char *status)
{
    json_t *object = json_loads(status, 0, NULL);
    const char *phase = json_string_value(json_object_get(object, "phase"));
    if (!json_is_object(object))
        abort();
    free(job->status);
    job->status = tt_strdup(status);
    for (int i = 0; i < DIJOB_PHASES && phase; i++)
        if (strcmp(phase, dijob_phase_name((dijob_phase_t)i)) == 0)
            job->phase = (dijob_phase_t)i;
    json_decref(object);
}

static void s_check(world_t *self)
{
    front_plan_t first, again;
    s_plan(self, &first);
    s_plan(self, &again);
    if (first.count != again.count || !first.status != !again.status ||
        (first.status && strcmp(first.status, again.status) != 0))
        abort();
    front_plan_clear(&again);
    for (int i = 0; first.status; i++) { /* the states of a job of tasks come one by one */
        if (i > 8)
            abort();
        s_write(self->job, first.status);
        front_plan_clear(&first);
        s_plan(self, &first);
    }
    front_plan_clear(&first);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    world_t world = {0};
    const char *at = (const char *)data, *end = at + size;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        s_line(&world, at, (size_t)((stop ? stop : end) - at));
        at = stop ? stop + 1 : end;
    }
    if (world.job)
        s_check(&world);
    for (size_t i = 0; i < world.pod_count; i++)
        tt_pool_free(world.pods[i]);
    for (size_t i = 0; i < world.service_count; i++)
        tt_pool_free(world.services[i]);
    dijob_destroy(&world.job);
    return 0;
}
