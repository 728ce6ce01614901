/*  recorder: what stands on the server after events that come once, again, too often, in too many words, and to a server
 *  that fails. */
#include "k8s/api/recorder.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/k8s/api/watch_server.h"
#include "tests/test.h"

#define EVENTS "/api/v1/namespaces/ns/events"

/*  The linker sends every look at the wall clock here (CMakeLists.txt): each takes a second. */
int64_t __wrap_tt_wall_ns(void);

int64_t __wrap_tt_wall_ns(void)
{
    static int64_t seconds = INT64_C(1800000000);
    return ++seconds * 1000000000;
}

typedef struct {
    world_t world;
    kube_recorder_t *recorder;
} bench_t;

static const kube_ref_t s_job = {.api_version = "diengine.opendilab.org/v1alpha1",
    .kind = "DIJob",
    .namespace_ = "ns",
    .name = "job",
    .uid = "uid-1",
    .version = 77};

static void s_open(bench_t *self)
{
    world_open(&self->world);
    assert_ok(kube_recorder_new(&self->recorder, self->world.client, "di-orchestrator"));
}

static void s_close(bench_t *self)
{
    kube_recorder_destroy(&self->recorder);
    world_close(&self->world);
}

static bool s_idle(void *ctx)
{
    return kube_client_pending(ctx) == 0;
}

static json_t *s_list(bench_t *self, const char *path)
{
    char *answer = NULL;
    world_until(&self->world, s_idle, self->world.client, 0);
    assert_ok(world_call(&self->world, "GET", path, NULL, &answer));
    json_t *list = json_loads(answer, 0, NULL), *items = json_incref(json_object_get(list, "items"));
    json_decref(list);
    free(answer);
    return items;
}

static const char *s_text(const json_t *event, const char *key)
{
    const char *text = json_string_value(json_object_get(event, key));
    return text ? text : "";
}

/*  The event with this message; NULL. */
static const json_t *s_find(const json_t *events, const char *message)
{
    size_t i;
    json_t *event;
    json_array_foreach(events, i, event) if (strcmp(s_text(event, "message"), message) == 0) return event;
    return NULL;
}

static int s_count(const json_t *event)
{
    return (int)json_integer_value(json_object_get(event, "count"));
}

static void test_one_and_again(void **state)
{
    (void)state;
    bench_t bench;
    s_open(&bench);
    kube_recorder_event(bench.recorder, &s_job, "Normal", "DIJobCreated", "job %s is created", "job");
    json_t *events = s_list(&bench, EVENTS "?limit=0");
    assert_int_equal(json_array_size(events), 1);
    const json_t *event = json_array_get(events, 0), *about = json_object_get(event, "involvedObject");
    assert_string_equal(s_text(event, "message"), "job job is created");
    assert_string_equal(s_text(event, "reason"), "DIJobCreated");
    assert_string_equal(s_text(event, "type"), "Normal");
    assert_int_equal(strlen(s_text(event, "firstTimestamp")), strlen("2026-11-21T10:00:00Z"));
    assert_string_equal(s_text(event, "firstTimestamp"), s_text(event, "lastTimestamp"));
    assert_string_equal(s_text(json_object_get(event, "source"), "component"), "di-orchestrator");
    assert_string_equal(s_text(about, "kind"), "DIJob");
    assert_string_equal(s_text(about, "namespace"), "ns");
    assert_string_equal(s_text(about, "uid"), "uid-1");
    assert_string_equal(s_text(about, "resourceVersion"), "77");
    assert_true(strncmp(s_text(json_object_get(event, "metadata"), "name"), "job.", 4) == 0);
    assert_int_equal(s_count(event), 1);
    json_decref(events);
    for (int i = 0; i < 5; i++)
        kube_recorder_event(bench.recorder, &s_job, "Normal", "DIJobCreated", "job job is created");
    world_until(&bench.world, s_idle, bench.world.client, 0);
    world_turn(&bench.world, 599000);
    kube_recorder_event(bench.recorder, &s_job, "Normal", "DIJobCreated", "job job is created");
    events = s_list(&bench, EVENTS "?limit=0");
    assert_int_equal(json_array_size(events), 1);
    assert_int_equal(s_count(json_array_get(events, 0)), 7);
    json_decref(events);
    world_turn(&bench.world, 601000); /* another one by now */
    kube_recorder_event(bench.recorder, &s_job, "Normal", "DIJobCreated", "job job is created");
    events = s_list(&bench, EVENTS "?limit=0");
    assert_int_equal(json_array_size(events), 2);
    json_decref(events);
    s_close(&bench);
}

/*  However late the server is told of it. */
static void test_times_are_those_of_its_coming(void **state)
{
    (void)state;
    bench_t bench;
    s_open(&bench);
    free(world_ctl(&bench.world, "{'do':'faults','faults':[{'at':'write','what':'500'}]}"));
    kube_recorder_event(bench.recorder, &s_job, "Normal", "A", "once");
    world_until(&bench.world, s_idle, bench.world.client, 0);
    world_turn(&bench.world, 2100);
    json_t *events = s_list(&bench, EVENTS "?limit=0");
    const json_t *event = s_find(events, "once");
    assert_string_equal(s_text(event, "firstTimestamp"), s_text(event, "lastTimestamp"));
    json_decref(events);
    kube_recorder_event(bench.recorder, &s_job, "Normal", "A", "once");
    events = s_list(&bench, EVENTS "?limit=0");
    event = s_find(events, "once");
    assert_true(strcmp(s_text(event, "firstTimestamp"), s_text(event, "lastTimestamp")) < 0);
    json_decref(events);
    s_close(&bench);
}

static void test_combined(void **state)
{
    (void)state;
    bench_t bench;
    s_open(&bench);
    for (int i = 0; i < 15; i++)
        kube_recorder_event(bench.recorder, &s_job, "Warning", "FailedCreate", "pod %d", i);
    kube_recorder_event(bench.recorder, &s_job, "Warning", "FailedCreate", "pod 3"); /* known before */
    kube_recorder_event(bench.recorder, &s_job, "Warning", "Other", "pod 99");
    json_t *events = s_list(&bench, EVENTS "?limit=0");
    assert_int_equal(json_array_size(events), 12);
    const json_t *combined = s_find(events, "(combined from similar events): pod 14");
    assert_non_null(combined);
    assert_int_equal(s_count(combined), 5);
    assert_int_equal(s_count(s_find(events, "pod 3")), 2);
    json_decref(events);
    s_close(&bench);
}

static void test_spending(void **state)
{
    (void)state;
    bench_t bench;
    s_open(&bench);
    kube_ref_t other = s_job;
    other.uid = "uid-2";
    other.name = "other";
    for (int i = 0; i < 40; i++)
        kube_recorder_event(bench.recorder, &s_job, "Normal", "Loud", "again");
    kube_recorder_event(bench.recorder, &other, "Normal", "Quiet", "word");
    json_t *events = s_list(&bench, EVENTS "?limit=0");
    assert_int_equal(json_array_size(events), 2);
    assert_int_equal(s_count(s_find(events, "again")), 25);
    json_decref(events);
    world_turn(&bench.world, 301000);
    for (int i = 0; i < 5; i++)
        kube_recorder_event(bench.recorder, &s_job, "Normal", "Loud", "again");
    events = s_list(&bench, EVENTS "?limit=0");
    assert_int_equal(s_count(s_find(events, "again")), 26);
    json_decref(events);
    s_close(&bench);
}

static void test_words(void **state)
{
    (void)state;
    bench_t bench;
    s_open(&bench);
    char text[2000];
    for (size_t i = 0; i + 2 < sizeof text; i += 2)
        memcpy(text + i, "\xc3\xa4", 2); /* two bytes each */
    text[sizeof text - 2] = '\0';
    kube_recorder_event(bench.recorder, &s_job, "Normal", "A", "%s", text);
    kube_recorder_event(bench.recorder, &s_job, "Normal", "B", "x%s", text);
    kube_recorder_event(bench.recorder, &s_job, "Normal", "C", "\"quoted\" %%s \n and so on");
    kube_recorder_event(bench.recorder, &s_job, "Normal", "D", "\xff no text");
    kube_ref_t cluster = {.api_version = "v1", .kind = "Node", .name = "n", .uid = "u"};
    kube_recorder_event(bench.recorder, &cluster, "Normal", "E", "no namespace");
    json_t *events = s_list(&bench, EVENTS "?limit=0");
    assert_int_equal(json_array_size(events), 4);
    for (size_t i = 0; i < 4; i++) {
        const json_t *event = json_array_get(events, i);
        const size_t size = strlen(s_text(event, "message"));
        const char *reason = s_text(event, "reason");
        if (*reason == 'C')
            assert_string_equal(s_text(event, "message"), "\"quoted\" %s \n and so on");
        else if (*reason == 'D')
            assert_string_equal(s_text(event, "message"), "? no text");
        else
            assert_int_equal(size, *reason == 'A' ? 1023 : 1024);
    }
    json_decref(events);
    events = s_list(&bench, "/api/v1/namespaces/default/events?limit=0");
    assert_int_equal(json_array_size(events), 1);
    json_decref(events);
    s_close(&bench);
}

static void test_failures(void **state)
{
    (void)state;
    bench_t bench;
    s_open(&bench);
    free(world_ctl(&bench.world, "{'do':'faults','faults':[{'at':'write','what':'500','times':2}]}"));
    kube_recorder_event(bench.recorder, &s_job, "Normal", "A", "third time lucky");
    json_t *events = s_list(&bench, EVENTS "?limit=0");
    assert_int_equal(json_array_size(events), 0);
    json_decref(events);
    kube_recorder_event(bench.recorder, &s_job, "Normal", "A", "third time lucky"); /* goes with the next try */
    for (int i = 0; i < 2; i++) {
        world_turn(&bench.world, 2100);
        world_until(&bench.world, s_idle, bench.world.client, 0);
    }
    events = s_list(&bench, EVENTS "?limit=0");
    assert_int_equal(s_count(s_find(events, "third time lucky")), 2);
    json_decref(events);

    free(world_ctl(&bench.world, "{'do':'faults','faults':[{'at':'write','what':'403'}]}"));
    kube_recorder_event(bench.recorder, &s_job, "Normal", "B", "not allowed");
    world_until(&bench.world, s_idle, bench.world.client, 0);
    world_turn(&bench.world, 10000);
    world_until(&bench.world, s_idle, bench.world.client, 0);
    kube_recorder_event(bench.recorder, &s_job, "Normal", "B", "not allowed"); /* a new chance */
    events = s_list(&bench, EVENTS "?limit=0");
    assert_non_null(s_find(events, "not allowed"));
    const json_t *meta = json_object_get(s_find(events, "not allowed"), "metadata");
    char *path = tt_sprintf(EVENTS "/%s", s_text(meta, "name"));
    json_decref(events);

    assert_ok(world_call(&bench.world, "DELETE", path, NULL, NULL)); /* removed behind our back */
    free(path);
    kube_recorder_event(bench.recorder, &s_job, "Normal", "B", "not allowed");
    world_until(&bench.world, s_idle, bench.world.client, 0);
    kube_recorder_event(bench.recorder, &s_job, "Normal", "B", "not allowed");
    events = s_list(&bench, EVENTS "?limit=0");
    assert_int_equal(s_count(s_find(events, "not allowed")), 1);
    json_decref(events);
    s_close(&bench);
}

/*  Memory is bounded, whatever comes; destroying with requests under way is fine. */
static void test_many(void **state)
{
    (void)state;
    bench_t bench;
    s_open(&bench);
    for (int i = 0; i < 6000; i++) {
        char name[20];
        sprintf(name, "job-%d", i);
        kube_ref_t about = s_job;
        about.name = about.uid = name;
        kube_recorder_event(bench.recorder, &about, "Normal", "A", "%d", i);
    }
    assert_int_equal(kube_client_pending(bench.world.client), 32); /* the others stand in line */
    s_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_and_again),
        cmocka_unit_test(test_times_are_those_of_its_coming), cmocka_unit_test(test_combined),
        cmocka_unit_test(test_spending), cmocka_unit_test(test_words), cmocka_unit_test(test_failures),
        cmocka_unit_test(test_many)};
    return cmocka_run_group_tests(tests, NULL, world_end);
}
