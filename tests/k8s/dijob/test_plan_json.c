/*  Plan, build and decode together: what the plan asks for is built, and what is built is read as what the plan meant. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/k8s/dijob/cluster.h"

#define TEMPLATE "{\"template\":{\"spec\":{\"containers\":[{\"name\":\"di-container\",\"image\":\"x\"}]}}"
#define JOB(spec)                                                                                              \
    "{\"apiVersion\":\"diengine.opendilab.org/v1alpha1\",\"kind\":\"DIJob\",\"metadata\":{\"name\":\"qbert\"," \
    "\"namespace\":\"default\",\"uid\":\"job-uid\",\"resourceVersion\":\"1\",\"generation\":1},\"spec\":" spec "}"

enum { ROOM = 32 };

typedef struct {
    json_t *object;
    dijob_t *job;
    dijob_pod_t *pods[ROOM];
    dijob_service_t *services[ROOM];
    size_t pod_count, service_count;
} world_t;

static void s_reread(world_t *self)
{
    dijob_destroy(&self->job);
    assert_ok(dijob_from_json(&self->job, self->object));
    assert_null(self->job->invalid);
}

static void s_begin(world_t *self, const char *text)
{
    *self = (world_t){.object = json_loads(text, 0, NULL)};
    assert_non_null(self->object);
    s_reread(self);
}

static void s_end(world_t *self)
{
    for (size_t i = 0; i < self->pod_count; i++)
        tt_pool_free(self->pods[i]);
    for (size_t i = 0; i < self->service_count; i++)
        tt_pool_free(self->services[i]);
    dijob_destroy(&self->job);
    json_decref(self->object);
}

/*  As the API server stores it. */
static char *s_stored(json_t *object, const char *status)
{
    char uid[37];
    static unsigned count;
    json_t *metadata = json_object_get(object, "metadata");
    snprintf(uid, sizeof uid, "uid-%u", ++count);
    json_object_set_new(metadata, "uid", json_string(uid));
    json_object_set_new(metadata, "resourceVersion", json_string("7"));
    json_object_set_new(metadata, "creationTimestamp", json_string("2027-01-15T08:00:00Z"));
    json_object_set_new(object, "status", json_loads(status, 0, NULL));
    char *text = kube_dump(object);
    json_decref(object);
    return text;
}

static void s_create_pod(world_t *self, const dijob_pod_want_t *want, const char *status)
{
    json_t *object = NULL;
    assert_true(self->pod_count < ROOM);
    assert_ok(dijob_build_pod(&object, self->object, want));
    char *text = s_stored(object, status);
    assert_ok(dijob_pod_decode(&self->pods[self->pod_count++], text, strlen(text)));
    const dijob_pod_t *pod = self->pods[self->pod_count - 1];
    assert_string_equal(pod->meta.name, want->name);
    assert_string_equal(pod->job_uid, self->job->meta.uid);
    assert_int_equal(pod->role, want->role);
    assert_int_equal(pod->backoff_s, want->backoff_s);
    assert_int_equal(pod->ddp_master, want->split && want->master);
    assert_string_equal(pod->replaces ? pod->replaces : "", want->replaces ? want->replaces : "");
    if (want->role == DIJOB_TASK) {
        assert_int_equal(pod->rank, want->rank);
        assert_int_equal(pod->task_rank, want->task_rank);
        assert_int_equal(pod->reschedules, want->reschedules);
        assert_string_equal(pod->owner_pod, self->job->tasks[want->task].name);
    } else
        assert_string_equal(pod->owner_pod ? pod->owner_pod : "", want->aggregator ? want->aggregator : "");
    free(text);
}

static void s_create_service(world_t *self, const char *name)
{
    json_t *object = NULL;
    const dijob_pod_t *pod = NULL;
    for (size_t i = 0; i < self->pod_count && name; i++)
        if (strcmp(self->pods[i]->meta.name, name) == 0)
            pod = self->pods[i];
    assert_true(!name || pod);
    assert_ok(name ? dijob_build_service(&object, self->job, pod) : dijob_build_job_service(&object, self->job));
    char *text = s_stored(object, "{}");
    assert_ok(dijob_service_decode(&self->services[self->service_count++], text, strlen(text)));
    free(text);
}

static void s_plan(const world_t *self, front_plan_t *plan)
{
    const front_view_t view = {.job = self->job,
        .pods = (const void *const *)self->pods,
        .pod_count = self->pod_count,
        .services = (const void *const *)self->services,
        .service_count = self->service_count,
        .made = 1u << DIJOB_CURVE,
        .now_s = 1800000100,
        .random = 3};
    assert_ok(dijob_plan(plan, &view));
}

#define RUNNING                                                                                                   \
    "{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"},{\"type\":\"PodScheduled\"," \
    "\"status\":\"True\"}],\"containerStatuses\":[{\"name\":\"di-container\",\"ready\":true,\"state\":{"          \
    "\"running\":{}}}]}"
#define FAILED                                                                                            \
    "{\"phase\":\"Failed\",\"containerStatuses\":[{\"name\":\"di-container\",\"ready\":false,\"state\":{" \
    "\"terminated\":{\"exitCode\":1,\"reason\":\"Error\",\"finishedAt\":\"2027-01-15T08:00:30Z\"}}}]}"

/*  Pods run as soon as they are made. Deletes are not part of this. */
static bool s_round(world_t *self)
{
    front_plan_t plan;
    s_plan(self, &plan);
    const bool something = plan.count > 0 || plan.status;
    for (size_t i = 0; i < plan.count; i++) {
        const front_action_t *action = &plan.actions[i];
        assert_true(action->what != FRONT_DELETE_POD && action->what != FRONT_DELETE_SERVICE);
        if (action->what == FRONT_CREATE_POD)
            s_create_pod(self, action->own, RUNNING);
        else if (action->what == FRONT_CREATE_SERVICE)
            s_create_service(self, action->name);
    }
    if (plan.status) {
        json_object_set_new(self->object, "status", json_loads(plan.status, 0, NULL));
        s_reread(self);
    }
    front_plan_clear(&plan);
    return something;
}

static void s_settle(world_t *self)
{
    for (int i = 0; i < 10; i++)
        if (!s_round(self))
            return;
    fail_msg("not at rest");
}

static void test_a_job_of_roles_comes_to_rest(void **state)
{
    world_t world;
    (void)state;
    s_begin(&world, JOB("{\"engine\":\"tutti\",\"coordinator\":" TEMPLATE "},\"collector\":" TEMPLATE
                        ",\"replicas\":3},\"learner\":" TEMPLATE ",\"replicas\":2}}"));
    s_settle(&world);
    assert_int_equal(world.job->phase, DIJOB_PHASE_RUNNING);
    assert_int_equal(world.pod_count, 7); /* and an aggregator for the two learners */
    assert_int_equal(world.service_count, 7);
    s_end(&world);
}

static void test_a_job_of_tasks_comes_to_rest(void **state)
{
    world_t world;
    (void)state;
    s_begin(&world, JOB("{\"tasks\":[{\"type\":\"collector\",\"replicas\":2," /**/
                        "\"template\":{\"spec\":{\"containers\":[{\"name\":\"di-container\"}]}}},"
                        "{\"type\":\"none\",\"name\":\"tail\","
                        "\"template\":{\"spec\":{\"containers\":[{\"name\":\"di-container\"}]}}}]}"));
    s_settle(&world);
    assert_int_equal(world.job->phase, DIJOB_PHASE_RUNNING);
    assert_int_equal(world.pod_count, 3);
    assert_int_equal(world.service_count, 1);
    s_end(&world);
}

static void test_a_replacement_is_what_the_plan_meant(void **state)
{
    world_t world;
    front_plan_t plan;
    (void)state;
    s_begin(&world, JOB("{\"coordinator\":" TEMPLATE "},\"learner\":" TEMPLATE "}}"));
    s_settle(&world);
    s_create_pod(&world,
        &(dijob_pod_want_t){.role = DIJOB_LEARNER,
            .name = "qbert-learner-aaaaa",
            .backoff_s = 8,
            .replaces = "qbert-learner-bbbbb",
            .resources = {.cpus = "2", .gpus = "1"}},
        FAILED);
    s_plan(&world, &plan);
    assert_int_equal(plan.actions[0].what, FRONT_CREATE_POD);
    const dijob_pod_want_t *want = plan.actions[0].own;
    assert_string_equal(want->replaces, "qbert-learner-aaaaa");
    assert_int_equal(want->backoff_s, 16);
    assert_string_equal(want->resources.cpus, "2");
    assert_null(want->resources.memory);
    assert_string_equal(want->resources.gpus, "1");
    s_create_pod(&world, want, RUNNING);
    front_plan_clear(&plan);
    s_end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_job_of_roles_comes_to_rest),
        cmocka_unit_test(test_a_job_of_tasks_comes_to_rest),
        cmocka_unit_test(test_a_replacement_is_what_the_plan_meant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
