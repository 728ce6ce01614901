/*  A TFJob, its pods and services from any bytes, one JSON value a line: the first is the job, the others pods or services. Decoding,
 *  planning and building never crash, a plan says the same twice, and once its status is written there is no other to write. */
#include <stdlib.h>
#include <string.h>
#include "k8s/front/front.h"
#include "k8s/tfjob/tfjob.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROOM = 16 };

typedef struct {
    json_t *whole;
    void *job, *pods[ROOM], *services[ROOM];
    size_t pod_count, service_count;
} world_t;

static void s_line(world_t *self, const char *line, size_t size)
{
    if (!self->job) {
        self->whole = json_loadb(line, size, 0, NULL);
        if (!self->whole || tfjob_front.job_decode(&self->job, line, size) != TT_OK) {
            json_decref(self->whole);
            self->whole = NULL;
        }
        return;
    }
    if (self->pod_count < ROOM && tfjob_front.pod_decode(&self->pods[self->pod_count], line, size) == TT_OK)
        self->pod_count++;
    if (self->service_count < ROOM &&
        tfjob_front.service_decode(&self->services[self->service_count], line, size) == TT_OK)
        self->service_count++;
}

static void s_plan(const world_t *self, uint32_t made, front_plan_t *plan)
{
    const front_view_t view = {.job = self->job,
        .pods = (const void *const *)self->pods,
        .pod_count = self->pod_count,
        .services = (const void *const *)self->services,
        .service_count = self->service_count,
        .made = made,
        .now_s = 1800000000};
    if (tfjob_front.plan(plan, &view) != TT_OK)
        abort();
}

static void s_build(const world_t *self, const front_plan_t *plan)
{
    for (size_t i = 0; i < plan->count && i < ROOM; i++) {
        json_t *object = NULL;
        const front_do_t what = plan->actions[i].what;
        if ((what == FRONT_CREATE_POD || what == FRONT_CREATE_SERVICE || what == FRONT_CREATE_OBJECT) &&
            tfjob_front.build(&object, &plan->actions[i], &(front_parts_t){.job = self->job, .whole = self->whole}) ==
                TT_OK)
            json_decref(object);
    }
}

/*  As the API server would give it back. */
static void s_write(world_t *self, const char *status)
{
    json_object_set_new(self->whole, "status", json_loads(status, 0, NULL));
    char *text = kube_dump(self->whole);
    void *job = NULL;
    if (!json_object_get(self->whole, "status") || tfjob_front.job_decode(&job, text, strlen(text)) != TT_OK)
        abort();
    tfjob_front.job_destroy(self->job);
    self->job = job;
    free(text);
}

static void s_check(world_t *self)
{
    front_plan_t first, again;
    s_plan(self, 0, &first);
    s_plan(self, 0, &again);
    if (first.count != again.count || !first.status != !again.status ||
        (first.status && strcmp(first.status, again.status) != 0))
        abort();
    front_plan_clear(&again);
    s_build(self, &first);
    s_plan(self, UINT32_MAX, &again); /* and the pods that wait for objects */
    s_build(self, &again);
    front_plan_clear(&again);
    for (int i = 0; first.status; i++) {
        if (i > 8)
            abort();
        s_write(self, first.status);
        front_plan_clear(&first);
        s_plan(self, 0, &first);
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
    if (world.job) {
        s_check(&world);
        tfjob_front.job_destroy(world.job);
    }
    for (size_t i = 0; i < world.pod_count; i++)
        tt_pool_free(world.pods[i]);
    for (size_t i = 0; i < world.service_count; i++)
        tt_pool_free(world.services[i]);
    json_decref(world.whole);
    return 0;
}
