#include "k8s/dijob/build.h"
#include "tests/k8s/json.h"

static dijob_pod_t *s_pod(const char *role, const char *more_meta, const char *spec, const char *status)
{
    dijob_pod_t *pod = NULL;
    char *text =
        tt_sprintf("{\"metadata\":{\"name\":\"job-%s\",\"namespace\":\"rl\",\"uid\":\"u\",\"resourceVersion\":\"9\","
                   "\"creationTimestamp\":\"2026-11-21T10:00:00Z\",\"labels\":{\"dijob-name\":\"job\","
                   "\"replica-type\":\"%s\"},\"ownerReferences\":[{\"kind\":\"DIJob\",\"uid\":\"job-uid\","
                   "\"controller\":true}]%s},\"spec\":%s,\"status\":%s}",
            role, role, more_meta, spec, status);
    assert_ok(dijob_pod_decode(&pod, json_quote(text), strlen(text)));
    free(text);
    return pod;
}

static void test_a_running_pod(void **state)
{
    (void)state;
    dijob_pod_t *pod = s_pod("collector", ",'annotations':{'tutti/replaces':'job-collector-b'}",
        "{'nodeName':'n','containers':[{'name':'shell'},{'name':'di-container','ports':[{'name':'di-port','"
        "containerPort':80}]}]}",
        "{'phase':'Running','podIP':'10.0.0.3','conditions':[{'type':'Ready','status':'True'}],'containerStatuses':["
        "{'name':'shell','ready':true,'state':{'running':{}}},{'name':'di-container','ready':false,'state':{'running':{"
        "}}}]}");
    assert_string_equal(pod->meta.name, "job-collector");
    assert_string_equal(pod->job, "job");
    assert_string_equal(pod->job_uid, "job-uid");
    assert_string_equal(pod->ip, "10.0.0.3");
    assert_string_equal(pod->replaces, "job-collector-b");
    assert_int_equal(pod->role, DIJOB_COLLECTOR);
    assert_int_equal(pod->phase, POD_RUNNING);
    assert_int_equal(pod->main, MAIN_RUNNING);
    assert_true(pod->scheduled && pod->ready);
    assert_false(pod->deleting || pod->disrupted || pod->stuck || pod->refused);
    assert_int_equal(pod->containers, 2);
    assert_int_equal(pod->ready_containers, 1);
    assert_int_equal(pod->port, 80);
    assert_int_equal(pod->exit_code, -1);
    assert_int_equal(pod->rank, -1);
    assert_int_equal(pod->created_s, 1795255200);
    tt_pool_free(pod);
}

#define ENDED(code)                                                            \
    "'containerStatuses':[{'name':'c','state':{'terminated':{'exitCode':" code \
    ",'finishedAt':'2026-11-21T10:00:05Z'}}}]"

static void s_assert_main(const char *spec, const char *status, dijob_main_t want, int exit_code)
{
    dijob_pod_t *pod = s_pod("coordinator", "", spec, status);
    assert_int_equal(pod->main, want);
    assert_int_equal(pod->exit_code, exit_code);
    tt_pool_free(pod);
}

/*  A failure counts only when nobody will start the container again. */
static void test_how_the_main_container_ended(void **state)
{
    (void)state;
    const char *never = "{'restartPolicy':'Never','containers':[{'name':'c'}]}";
    const char *on_failure = "{'restartPolicy':'OnFailure','containers':[{'name':'c'}]}";
    s_assert_main(never, "{'phase':'Running'," ENDED("0") "}", MAIN_COMPLETED, 0);
    s_assert_main(never, "{'phase':'Running'," ENDED("3") "}", MAIN_ERROR, 3);
    s_assert_main(on_failure, "{'phase':'Running'," ENDED("3") "}", MAIN_WAITING, 3);
    s_assert_main(on_failure, "{'phase':'Failed'," ENDED("137") "}", MAIN_ERROR, 137);
    s_assert_main(
        never, "{'phase':'Pending','containerStatuses':[{'name':'c','state':{'waiting':{}}}]}", MAIN_WAITING, -1);
    s_assert_main(never, "{}", MAIN_NONE, -1);
    s_assert_main("{'containers':[{'name':'a'},{'name':'b'}]}", "{'phase':'Running'," ENDED("0") "}", MAIN_NONE, -1);
}

static void test_what_keeps_a_pod_from_cleaning(void **state)
{
    (void)state;
    dijob_pod_t *pod = s_pod("learner", "", "{'containers':[{'name':'learner'},{'name':'x'}]}",
        "{'phase':'Running','containerStatuses':[{'name':'x','state':{'waiting':{'reason':'CrashLoopBackOff'}}}]}");
    assert_true(pod->stuck);
    tt_pool_free(pod);
    pod = s_pod("learner", "", "{'restartPolicy':'Never','containers':[{'name':'learner'},{'name':'x'}]}",
        "{'phase':'Failed','reason':'OutOfcpu','conditions':[{'type':'DisruptionTarget','status':'True'}],"
        "'containerStatuses':[{'name':'learner','state':{'terminated':{'exitCode':1,'finishedAt':'2026-11-21T10:00:05Z'"
        "}}}]}");
    assert_true(pod->stuck && pod->disrupted && pod->refused);
    assert_int_equal(pod->finished_s, 1795255205);
    tt_pool_free(pod);
    pod =
        s_pod("learner", ",'deletionTimestamp':'2026-11-21T10:00:05Z'", "{}", "{'phase':'Failed','reason':'Outofcpu'}");
    assert_true(pod->refused && pod->deleting);
    assert_int_equal(pod->port, 22271);
    tt_pool_free(pod);
}

static void test_a_ddp_learner(void **state)
{
    (void)state;
    dijob_pod_t *pod = NULL;
    const char *text =
        "{\"metadata\":{\"name\":\"d\",\"labels\":{\"dijob-name\":\"job\",\"replica-type\":\"ddp-learner\","
        "\"ddp-learner-type\":\"ddp-learner-master\"},\"ownerReferences\":[{\"kind\":\"DIJob\",\"uid\":\"u\","
        "\"controller\":true},{\"kind\":\"Pod\",\"name\":\"job-aggregator-x\",\"uid\":\"v\"}]},\"spec\":{"
        "\"containers\":[{\"name\":\"learner\",\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"4\"}}}]}}";
    assert_ok(dijob_pod_decode(&pod, text, strlen(text)));
    assert_int_equal(pod->role, DIJOB_DDP_LEARNER);
    assert_true(pod->ddp_master);
    assert_int_equal(pod->gpu_ports, 3);
    assert_string_equal(pod->owner_pod, "job-aggregator-x");
    char *url = dijob_pod_url(pod, 2);
    assert_string_equal(url, "d.default:22273");
    free(url);
    tt_pool_free(pod);
}

/*  The collector of garbage takes the reference to an aggregator that is gone out of it; whose it was is still known. */
static void test_a_ddp_learner_whose_aggregator_is_gone(void **state)
{
    (void)state;
    dijob_pod_t *pod = NULL;
    const char *text =
        "{\"metadata\":{\"name\":\"d\",\"labels\":{\"dijob-name\":\"job\",\"replica-type\":\"ddp-learner\"},"
        "\"annotations\":{\"tutti/aggregator\":\"job-aggregator-x\"},\"ownerReferences\":[{\"kind\":\"DIJob\","
        "\"uid\":\"u\",\"controller\":true}]}}";
    assert_ok(dijob_pod_decode(&pod, text, strlen(text)));
    assert_string_equal(pod->owner_pod, "job-aggregator-x");
    tt_pool_free(pod);
}

static void test_a_pod_of_a_task(void **state)
{
    (void)state;
    dijob_pod_t *pod = NULL;
    const char *text =
        "{\"metadata\":{\"name\":\"j-actor-2\",\"labels\":{\"diengine/job\":\"j\",\"diengine/task-name\":"
        "\"actor\"},\"annotations\":{\"diengine/rank\":\"5\",\"diengine/task-rank\":\"2\"}},\"status\":{"
        "\"phase\":\"Succeeded\"}}";
    assert_ok(dijob_pod_decode(&pod, text, strlen(text)));
    assert_int_equal(pod->role, DIJOB_TASK);
    assert_int_equal(pod->rank, 5);
    assert_int_equal(pod->task_rank, 2);
    assert_string_equal(pod->owner_pod, "actor");
    assert_int_equal(pod->port, 22270);
    tt_pool_free(pod);
}

static void s_assert_trouble(const char *status, const char *why, const char *words)
{
    dijob_pod_t *pod = s_pod("learner", "", "{'restartPolicy':'Never','containers':[{'name':'learner'}]}", status);
    assert_string_equal(pod->why ? pod->why : "", why);
    assert_string_equal(pod->words ? pod->words : "", words);
    tt_pool_free(pod);
}

#define MAIN(state)   "'containerStatuses':[{'name':'learner'," state "}]"
#define WAITS(reason) MAIN("'state':{'waiting':{'reason':'" reason "','message':'cannot'}}")
#define ENDS(code)    "'terminated':{'exitCode':" code ",'reason':'Error','message':'one\\ntwo: no such key\\n\\n'}"

static void test_why_it_does_not_run(void **state)
{
    (void)state;
    s_assert_trouble("{'phase':'Running'," MAIN("'state':{'running':{}}") "}", "", "");
    s_assert_trouble("{'phase':'Pending'," WAITS("ContainerCreating") "}", "", "");
    s_assert_trouble("{'phase':'Pending'," WAITS("ErrImagePull") "}", "ImagePullFailed", "cannot");
    s_assert_trouble("{'phase':'Pending'," WAITS("ImagePullBackOff") "}", "ImagePullFailed", "cannot");
    s_assert_trouble("{'phase':'Pending'," WAITS("CreateContainerConfigError") "}", "ContainerRefused", "cannot");
    s_assert_trouble(
        "{'phase':'Running'," MAIN("'state':{'waiting':{'reason':'CrashLoopBackOff','message':'back-off'}},"
                                   "'lastState':{" ENDS("1") "}") "}",
        "CrashLoop", "two: no such key");
    s_assert_trouble("{'phase':'Failed'," MAIN("'state':{" ENDS("1") "}") "}", "Error", "two: no such key");
    s_assert_trouble("{'phase':'Succeeded'," MAIN("'state':{" ENDS("0") "}") "}", "", "");
    s_assert_trouble("{'phase':'Failed','reason':'Evicted','message':'out of memory'}", "Evicted", "out of memory");
    s_assert_trouble(
        "{'phase':'Pending','conditions':[{'type':'PodScheduled','status':'False','reason':'Unschedulable',"
        "'message':'0/3 nodes'}]}",
        "Unschedulable", "0/3 nodes");
    s_assert_trouble("{'phase':'Pending','initContainerStatuses':[{'name':'i','state':{'waiting':{'reason':"
                     "'ImagePullBackOff','message':'no i'}}}]}",
        "ImagePullFailed", "no i");
    s_assert_trouble("{'phase':'Failed','reason':'<b>','message':'a\\u001b[31mb'}", "Error", "a [31mb");
}

/*  As much as a kubelet takes of a log; of more the beginning and the end. */
static void test_last_words_that_are_long(void **state)
{
    (void)state;
    char words[3000], *status;
    for (size_t i = 0; i + 1 < sizeof words; i += 2)
        memcpy(words + i, "\xc3\xa4", 2);
    words[sizeof words - 1] = words[sizeof words - 2] = 0;
    for (int shift = 0; shift < 2; shift++) {
        status = tt_sprintf("{'phase':'Failed','reason':'Evicted','message':'%s%s'}", shift ? "x" : "", words);
        dijob_pod_t *pod = s_pod("learner", "", "{}", status);
        assert_true(strlen(pod->words) >= 2044 && strlen(pod->words) <= 2048);
        assert_non_null(strstr(pod->words, "\xc3\xa4 ... \xc3\xa4"));
        json_t *probe = json_string(pod->words);
        assert_non_null(probe);
        json_decref(probe);
        tt_pool_free(pod);
        free(status);
    }
}

static void s_assert_last_exit(const char *status, int last_exit)
{
    dijob_pod_t *pod = s_pod("learner", "", "{'containers':[{'name':'learner'}]}", status);
    assert_int_equal(pod->last_exit, last_exit);
    tt_pool_free(pod);
}

static void test_the_last_exit_code(void **state)
{
    (void)state;
    s_assert_last_exit("{'phase':'Running'," MAIN("'state':{'running':{}},'lastState':{" ENDS("78") "}") "}", -1);
    s_assert_last_exit("{'phase':'Running'," MAIN("'state':{'waiting':{}},'lastState':{" ENDS("78") "}") "}", 78);
    s_assert_last_exit("{'phase':'Running'," MAIN("'state':{" ENDS("77") "},'lastState':{" ENDS("78") "}") "}", 77);
}

/*  Where nobody writes conditions the containers' own word counts. */
static void test_ready_without_a_condition(void **state)
{
    (void)state;
    static const struct {
        const char *status;
        bool ready;
    } all[] = {
        {"{'phase':'Running'," MAIN("'ready':true") "}", true},
        {"{'phase':'Running'," MAIN("'ready':false") "}", false},
        {"{'phase':'Pending'," MAIN("'ready':true") "}", false},
        {"{'phase':'Running','conditions':[{'type':'Ready','status':'False'}]," MAIN("'ready':true") "}", false},
        {"{'phase':'Running'}", false},
    };
    for (size_t i = 0; i < TT_COUNT(all); i++) {
        dijob_pod_t *pod = s_pod("learner", "", "{'containers':[{'name':'learner'}]}", all[i].status);
        assert_int_equal(pod->ready, all[i].ready);
        tt_pool_free(pod);
    }
}

/*  DI-orchestrator 1.1.0: the task's name is in the pod's alone. */
static void test_a_pod_of_a_task_without_a_label(void **state)
{
    (void)state;
    static const struct {
        const char *name, *task;
    } all[] = {{"j.v1-my-actor-2", "my-actor"}, {"j.v1-0", NULL}, {"j.v1--0", NULL}, {"other-actor-2", NULL}};
    for (size_t i = 0; i < TT_COUNT(all); i++) {
        dijob_pod_t *pod = NULL;
        char *text = tt_sprintf("{\"metadata\":{\"name\":\"%s\",\"labels\":{\"diengine/job\":\"j.v1\"},"
                                "\"annotations\":{\"diengine/rank\":\"5\",\"diengine/task-rank\":\"2\"}}}",
            all[i].name);
        assert_ok(dijob_pod_decode(&pod, text, strlen(text)));
        assert_string_equal(pod->owner_pod ? pod->owner_pod : "", all[i].task ? all[i].task : "");
        tt_pool_free(pod);
        free(text);
    }
}

static void test_strangers(void **state)
{
    (void)state;
    static const char *const texts[] = {"{}", "[]", "{", "{\"metadata\":{\"name\":\"x\",\"labels\":{\"app\":\"web\"}}}",
        "{\"metadata\":{\"name\":\"x\",\"labels\":{\"dijob-name\":\"j\",\"replica-type\":\"task\"}}}",
        "{\"metadata\":{\"name\":[],\"labels\":{\"dijob-name\":\"j\",\"replica-type\":\"learner\"}}}"};
    for (size_t i = 0; i < TT_COUNT(texts); i++) {
        dijob_pod_t *pod = NULL;
        assert_int_equal(dijob_pod_decode(&pod, texts[i], strlen(texts[i])), TT_DATA);
        assert_null(pod);
    }
}

static void test_services(void **state)
{
    (void)state;
    dijob_service_t *service = NULL;
    const char *text =
        "{\"metadata\":{\"name\":\"s\",\"labels\":{\"diengine/job\":\"j\"},\"ownerReferences\":[{\"uid\":\"u\","
        "\"controller\":true}]}}";
    assert_ok(dijob_service_decode(&service, text, strlen(text)));
    assert_string_equal(service->job, "j");
    assert_string_equal(service->job_uid, "u");
    assert_false(service->deleting);
    tt_pool_free(service);
    assert_int_equal(dijob_service_decode(&service, "{\"metadata\":{}}", 15), TT_DATA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_running_pod),
        cmocka_unit_test(test_how_the_main_container_ended),
        cmocka_unit_test(test_what_keeps_a_pod_from_cleaning),
        cmocka_unit_test(test_a_ddp_learner),
        cmocka_unit_test(test_a_ddp_learner_whose_aggregator_is_gone),
        cmocka_unit_test(test_a_pod_of_a_task),
        cmocka_unit_test(test_a_pod_of_a_task_without_a_label),
        cmocka_unit_test(test_why_it_does_not_run),
        cmocka_unit_test(test_last_words_that_are_long),
        cmocka_unit_test(test_the_last_exit_code),
        cmocka_unit_test(test_ready_without_a_condition),
        cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_services),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
