/*  A task as objects of a Kubernetes, and what is read of them again. */
#include <stdlib.h>
#include <string.h>
#include "elasticdl/objects.h"
#include "k8s/front/gang.h"
#include "tests/test.h"

static const edl_objects_t s_objects = {
    .namespace_ = "lab", .agent_image = "tutti:1", .program = "train.py", .grace_s = 10};
static const edl_task_limits_t s_limits = {.ready_ms = 1000, .step_ms = 1000, .silent_ms = 1000, .end_ms = 1000};

static edl_task_t *s_task(const char *name)
{
    elasticdl_request_t request = {.strategy = ELASTICDL_PARAMETER_SERVER, .ps = 1, .workers = 3, .image = "mnist:2"};
    edl_task_t *task;
    snprintf(request.name, sizeof request.name, "%s", name);
    edl_task_new(&task, 7, &request, &s_limits, 0);
    return task;
}

/*  The value behind a path of members and numbers: "spec.template.spec.containers.0.image". */
static const json_t *s_at(const json_t *object, const char *path)
{
    char *copy = strdup(path), *rest = copy;
    for (char *word; (word = strsep(&rest, ".")) != NULL;)
        object = json_is_array(object) ? json_array_get(object, (size_t)atoi(word)) : json_object_get(object, word);
    free(copy);
    return object;
}

static void s_says(const json_t *object, const char *path, const char *expected)
{
    assert_string_equal(json_string_value(s_at(object, path)), expected);
}

static void s_counts(const json_t *object, const char *path, int expected)
{
    assert_true(json_is_integer(s_at(object, path)));
    assert_int_equal(json_integer_value(s_at(object, path)), expected);
}

static void test_a_set(void **state)
{
    (void)state;
    edl_task_t *task = s_task("job");
    json_t *set = edl_set(&s_objects, task, ELASTICDL_WORKER);
    s_says(set, "metadata.name", "job-worker-7");
    s_says(set, "metadata.namespace", "lab");
    s_says(set, "metadata.labels.app", "job-7");
    s_says(set, "metadata.labels.type", "worker");
    static const char *const recommended[][2] = {{"name", "elasticdl"}, {"instance", "job-7"}, {"component", "worker"},
        {"version", TT_VERSION}, {"part-of", "tutti"}, {"managed-by", "tutti-master"}};
    for (size_t i = 0; i < TT_COUNT(recommended); i++) {
        char key[64];
        snprintf(key, sizeof key, "app.kubernetes.io/%s", recommended[i][0]);
        const json_t *label = json_object_get(s_at(set, "metadata.labels"), key);
        assert_string_equal(json_string_value(label), recommended[i][1]);
    }
    s_counts(set, "spec.replicas", 3);
    s_says(set, "spec.serviceName", "job-worker-7");
    s_says(set, "spec.podManagementPolicy", "Parallel");
    assert_true(json_equal(s_at(set, "spec.template.metadata.labels"), s_at(set, "metadata.labels")));
    const json_t *pod = s_at(set, "spec.template.spec");
    s_says(pod, "containers.0.image", "mnist:2");
    s_says(pod, "containers.0.command.0", "/tutti/ld.so");
    s_says(pod, "containers.0.readinessProbe.httpGet.path", "/healthz");
    s_counts(pod, "containers.0.ports.0.containerPort", 7896);
    s_says(pod, "initContainers.0.image", "tutti:1");
    assert_true(json_is_false(s_at(pod, "automountServiceAccountToken")));
    s_says(pod, "volumes.1.secret.secretName", "tutti-master");
    s_counts(pod, "terminationGracePeriodSeconds", 15); /* longer than the program's own */
    json_decref(set);
    set = edl_set(&s_objects, task, ELASTICDL_PS);
    s_says(set, "metadata.name", "job-ps-7");
    s_counts(set, "spec.replicas", 1);
    json_decref(set);
    edl_task_destroy(&task);
}

/*  An image that has its agent itself, as the original's derived ones. */
static void test_an_image_with_an_agent(void **state)
{
    (void)state;
    edl_objects_t objects = s_objects;
    edl_task_t *task = s_task("job");
    objects.agent_image = NULL;
    json_t *set = edl_set(&objects, task, ELASTICDL_WORKER);
    s_says(set, "spec.template.spec.containers.0.command.0", "tutti");
    assert_null(s_at(set, "spec.template.spec.initContainers"));
    json_decref(set);
    edl_task_destroy(&task);
}

static void test_a_service(void **state)
{
    (void)state;
    edl_task_t *task = s_task("job");
    json_t *service = edl_service(&s_objects, task, ELASTICDL_PS), *set = edl_set(&s_objects, task, ELASTICDL_PS);
    s_says(service, "metadata.name", "job-ps-7");
    s_says(service, "spec.clusterIP", "None");
    assert_true(json_is_true(s_at(service, "spec.publishNotReadyAddresses")));
    assert_true(json_equal(s_at(service, "spec.selector"), s_at(set, "spec.selector.matchLabels")));
    json_decref(service);
    json_decref(set);
    edl_task_destroy(&task);
}

static void test_names_and_addresses(void **state)
{
    (void)state;
    char name[EDL_SET_NAME], address[ELASTICDL_ADDRESS];
    static const char longest[] = "a234567890123456789012345678901234567890"; /* 40, as a task's may be */
    edl_set_address(address, &s_objects, "job-worker-7", 2);
    assert_string_equal(address, "job-worker-7-2.job-worker-7.lab.svc:1234");
    assert_int_equal(edl_set_name(name, longest, ELASTICDL_WORKER, 9999), TT_OK);
    assert_int_equal(strlen(name), EDL_SET_NAME - 1);
    assert_int_equal(edl_set_name(name, longest, ELASTICDL_WORKER, 10000), TT_INVALID);
}

/*  What the API server adds. */
static void s_make(json_t *set)
{
    json_object_set_new(json_object_get(set, "metadata"), "creationTimestamp", json_string("2026-01-31T12:00:00Z"));
}

static const gang_t *s_gang(const char *name)
{
    const gang_t *gang;
    assert_int_equal(gang_pick(&gang, name), TT_OK);
    return gang;
}

/*  A group of all members, with what they ask for; their pods say that they are of it, and the set for the next master by whom. */
static void test_a_group(void **state)
{
    (void)state;
    static const char text[] =
        "apiVersion: v1\nkind: PodTemplate\nmetadata: {name: worker}\ntemplate:\n"
        "  metadata: {annotations: {scheduling.volcano.sh/queue-name: rl}}\n"
        "  spec: {priorityClassName: high, containers: [{name: agent, resources: {limits: {cpu: 2}}}]}\n";
    edl_objects_t objects = s_objects;
    edl_found_t found;
    assert_int_equal(edl_templates_parse(&objects.templates, text, strlen(text), "t"), TT_OK);
    edl_task_t *task = s_task("job");
    edl_task_together(task, s_gang("volcano"));
    json_t *group = edl_group(&objects, task), *set = edl_set(&objects, task, ELASTICDL_WORKER);
    s_says(group, "metadata.name", "job-7");
    s_says(group, "metadata.namespace", "lab");
    s_says(group, "metadata.labels." EDL_LABEL, "7");
    json_t *spec = json_pack("{s:i, s:{s:s}, s:s, s:s}", "minMember", 4, "minResources", "cpu", "6", "queue", "rl",
        "priorityClassName", "high");
    assert_true(json_equal(s_at(group, "spec"), spec));
    const json_t *pods = s_at(set, "spec.template");
    s_says(pods, "spec.schedulerName", "volcano");
    assert_string_equal(
        json_string_value(json_object_get(s_at(pods, "metadata.annotations"), "scheduling.k8s.io/group-name")),
        "job-7");
    s_make(set);
    assert_int_equal(edl_set_read(&found, set), TT_OK);
    assert_ptr_equal(found.gang, task->gang);
    json_object_set_new((json_t *)s_at(set, "metadata.annotations"), EDL_NOTE_GANG, json_string("slurm"));
    assert_int_equal(edl_set_read(&found, set), TT_DATA);
    json_decref(spec);
    json_decref(group);
    json_decref(set);
    edl_task_destroy(&task);
    edl_templates_clear(&objects.templates);
}

static edl_task_t *s_queued_task(void)
{
    edl_task_t *task = s_task("job");
    snprintf(task->request.queue, sizeof task->request.queue, "team");
    return task;
}

/*  All of its members or none, owned by the workers' set, and named after it: the next task's is another one. */
static void test_a_workload(void **state)
{
    (void)state;
    edl_task_t *task = s_queued_task();
    json_t *workload = edl_workload(&s_objects, task);
    edl_workload_own(workload, task, "0123456789");
    s_says(workload, "kind", "Workload");
    s_says(workload, "metadata.name", "elasticdl-job-7-01234");
    s_says(workload, "metadata.namespace", "lab");
    s_says(workload, "metadata.labels." EDL_LABEL, "7");
    s_says(workload, "metadata.ownerReferences.0.kind", "StatefulSet");
    s_says(workload, "metadata.ownerReferences.0.name", "job-worker-7");
    s_says(workload, "metadata.ownerReferences.0.uid", "0123456789");
    s_says(workload, "spec.queueName", "team");
    for (int type = 0; type < EDL_TYPES; type++) {
        json_t *set = edl_set(&s_objects, task, (elasticdl_type_t)type);
        const json_t *pods = json_array_get(s_at(workload, "spec.podSets"), (size_t)type);
        s_says(pods, "name", elasticdl_type_name((elasticdl_type_t)type));
        s_counts(pods, "count", type == ELASTICDL_PS ? 1 : 3);
        assert_null(json_object_get(pods, "minCount"));
        assert_true(json_equal(s_at(pods, "template"), s_at(set, "spec.template")));
        json_decref(set);
    }
    json_decref(workload);
    edl_task_destroy(&task);
}

/*  In a queue a set has no pods at first, and is read so again. Admitted it has all of them, where Kueue wants them. */
static void test_a_set_in_a_queue(void **state)
{
    (void)state;
    edl_task_t *task = s_queued_task();
    json_t *set = edl_set(&s_objects, task, ELASTICDL_WORKER);
    json_t *updates = json_pack("{s:{s:{s:s}, s:{s:s}}, s:{s:{s:s}}}", "worker", "nodeSelector", "card", "fast",
        "labels", "app", "theirs", "ps", "nodeSelector", "card", "none");
    s_counts(set, "spec.replicas", 0);
    s_make(set);
    json_object_set_new((json_t *)s_at(set, "metadata"), "uid", json_string("0123"));
    edl_found_t found;
    assert_int_equal(edl_set_read(&found, set), TT_OK);
    assert_false(found.raised);
    assert_string_equal(found.uid, "0123");
    assert_string_equal(found.request.queue, "team");
    json_object_set_new((json_t *)s_at(set, "spec"), "replicas", json_integer(3));
    assert_int_equal(edl_set_read(&found, set), TT_OK);
    assert_true(found.raised);
    json_t *raise = edl_set_raise(&s_objects, task, ELASTICDL_WORKER, updates), *lower = edl_set_lower();
    s_says(raise, "0.path", "/spec/replicas");
    s_counts(raise, "0.value", 3);
    s_says(raise, "1.path", "/spec/template");
    s_says(raise, "1.value.spec.nodeSelector.card", "fast");
    s_says(raise, "1.value.metadata.labels.app", "job-7"); /* by it the set knows its pods */
    s_says(raise, "1.value.spec.containers.0.image", "mnist:2");
    s_counts(lower, "spec.replicas", 0);
    json_decref(set);
    json_decref(raise);
    json_decref(lower);
    json_decref(updates);
    edl_task_destroy(&task);
}

/*  What a master made another one reads. */
static void test_a_set_is_read(void **state)
{
    (void)state;
    edl_task_t *task = s_task("job");
    json_t *set = edl_set(&s_objects, task, ELASTICDL_PS);
    edl_found_t found;
    assert_int_equal(edl_set_read(&found, set), TT_DATA);
    s_make(set);
    assert_int_equal(edl_set_read(&found, set), TT_OK);
    assert_int_equal(found.id, 7);
    assert_int_equal(found.made_s, 1769860800);
    assert_int_equal(found.type, ELASTICDL_PS);
    assert_memory_equal(&found.request, &task->request, sizeof found.request);
    assert_null(found.end);
    json_object_set_new(json_object_get(set, "metadata"), "name", json_string("job-ps-8"));
    assert_int_equal(edl_set_read(&found, set), TT_DATA);
    json_object_set_new((json_t *)s_at(set, "metadata.annotations"), EDL_NOTE_REQUEST, json_string("n_worker=many"));
    assert_int_equal(edl_set_read(&found, set), TT_DATA);
    json_decref(set);
    assert_int_equal(edl_set_read(&found, NULL), TT_DATA);
    edl_task_destroy(&task);
}

/*  How a task ended goes round: the patch of one master, the list of the next. */
static void test_an_end_is_read(void **state)
{
    (void)state;
    edl_task_t *task = s_task("job"), *other = s_task("job");
    task->members[1].exit_code = 3;
    edl_task_fail(task, "worker-0: exit code 3", 5);
    task->failed_code = 3;
    json_t *patch = edl_set_end(edl_task_record(task));
    s_counts(patch, "spec.replicas", 0);
    json_t *set = edl_set(&s_objects, task, ELASTICDL_WORKER);
    s_make(set);
    json_object_update((json_t *)s_at(set, "metadata.annotations"), (json_t *)s_at(patch, "metadata.annotations"));
    edl_found_t found;
    assert_int_equal(edl_set_read(&found, set), TT_OK);
    json_t *record = json_loads(found.end, 0, NULL);
    assert_int_equal(edl_task_restore(other, record, 9), TT_OK);
    int member;
    assert_int_equal(edl_task_next(other, &member, 9), EDL_TASK_NOTHING);
    assert_string_equal(edl_task_state(other), "failed");
    assert_string_equal(other->reason, "worker-0: exit code 3");
    assert_int_equal(other->failed_code, 3);
    assert_int_equal(other->members[1].exit_code, 3);
    assert_int_equal(other->members[2].exit_code, -1);
    json_decref(record);
    record = json_loads("{\"outcome\": \"splendid\"}", 0, NULL);
    edl_task_destroy(&other);
    other = s_task("job");
    assert_int_equal(edl_task_restore(other, record, 9), TT_DATA);
    json_decref(record);
    json_decref(set);
    json_decref(patch);
    edl_task_destroy(&task);
    edl_task_destroy(&other);
}

static edl_pod_t s_pod(const char *text)
{
    edl_pod_t pod;
    json_t *object = json_loads(text, 0, NULL);
    assert_non_null(object);
    assert_int_equal(edl_pod_read(&pod, object), TT_OK);
    json_decref(object);
    return pod;
}

static void test_pods(void **state)
{
    (void)state;
    edl_pod_t pod = s_pod("{\"metadata\": {\"name\": \"job-worker-7-12\", \"uid\": \"u-1\"}, \"status\": {\"podIP\": "
                          "\"10.0.0.7\", \"conditions\": [{\"type\": \"Ready\", \"status\": \"True\"}], "
                          "\"containerStatuses\": [{\"name\": \"agent\", \"restartCount\": 0}]}}");
    assert_string_equal(pod.set, "job-worker-7");
    assert_int_equal(pod.ordinal, 12);
    assert_string_equal(pod.ip, "10.0.0.7");
    assert_true(pod.ready && !pod.restarted && !pod.leaving);
    assert_string_equal(pod.trouble, "");
    pod = s_pod("{\"metadata\": {\"name\": \"job-ps-7-0\"}, \"status\": {\"conditions\": [{\"type\": \"PodScheduled\", "
                "\"status\": \"False\", \"reason\": \"Unschedulable\", \"message\": \"0/1 nodes\"}]}}");
    assert_string_equal(pod.trouble, "Unschedulable: 0/1 nodes");
    assert_false(pod.ready);
    pod =
        s_pod("{\"metadata\": {\"name\": \"job-ps-7-0\"}, \"status\": {\"containerStatuses\": [{\"name\": \"agent\", "
              "\"restartCount\": 1, \"state\": {\"waiting\": {\"reason\": \"ErrImagePull\", \"message\": \"no\"}}}]}}");
    assert_string_equal(pod.trouble, "ImagePullFailed: no");
    assert_true(pod.restarted);
    json_t *other = json_loads("{\"metadata\": {\"name\": \"job-worker-7-x\"}}", 0, NULL);
    assert_int_equal(edl_pod_read(&pod, other), TT_DATA);
    json_decref(other);
    assert_int_equal(edl_pod_read(&pod, NULL), TT_DATA);
}

static void test_events(void **state)
{
    (void)state;
    char set[EDL_SET_NAME], why[EDL_TASK_WAITS];
    json_t *event = json_loads("{\"reason\": \"FailedCreate\", \"message\": \"exceeded quota\", \"involvedObject\": "
                               "{\"kind\": \"StatefulSet\", \"name\": \"job-ps-7\"}}",
        0, NULL);
    assert_int_equal(edl_event_read(set, why, event), TT_OK);
    assert_string_equal(set, "job-ps-7");
    assert_string_equal(why, "FailedCreate: exceeded quota");
    json_object_set_new(json_object_get(event, "involvedObject"), "kind", json_string("Job"));
    assert_int_equal(edl_event_read(set, why, event), TT_DATA);
    json_decref(event);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_set),
        cmocka_unit_test(test_an_image_with_an_agent),
        cmocka_unit_test(test_a_service),
        cmocka_unit_test(test_names_and_addresses),
        cmocka_unit_test(test_a_group),
        cmocka_unit_test(test_a_workload),
        cmocka_unit_test(test_a_set_in_a_queue),
        cmocka_unit_test(test_a_set_is_read),
        cmocka_unit_test(test_an_end_is_read),
        cmocka_unit_test(test_pods),
        cmocka_unit_test(test_events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
