/*  Names, services, the split over GPUs, the key, and pods of tasks. */
#include <stdio.h>
#include <unistd.h>
#include "common/net/net.h"
#include "k8s/dijob/build.h"
#include "tests/k8s/dijob/labels.h"
#include "tests/k8s/json.h"

static dijob_t s_job = {.meta = {.namespace_ = "rl", .name = "j", .uid = "job-uid"}};

#define OWNER(more)                                                                                                    \
    "{'apiVersion':'diengine.opendilab.org/v1alpha1','kind':'DIJob','name':'j','uid':'job-uid','controller':true" more \
    "}"

static void test_a_headless_service(void **state)
{
    (void)state;
    json_t *service = NULL;
    const dijob_pod_t pod = {.meta = {.namespace_ = "rl", .name = "j-learner-x"}, .role = DIJOB_LEARNER, .port = 22271};
#define LABELS                                                                                                         \
    "{'group-name':'diengine.opendilab.org','dijob-name':'j','controller-name':'di-operator','replica-type':'learner'" \
    ","                                                                                                                \
    "'pod-name':'j-learner-x'"
    assert_ok(dijob_build_service(&service, &s_job, &pod));
    assert_json(service,
        "{'apiVersion':'v1','kind':'Service','metadata':{'name':'j-learner-x','namespace':'rl','labels':" LABELS
        "," RECOMMENDED("j", "learner") "},'ownerReferences':[" OWNER(
            "") "]},'spec':{'clusterIP':'None','publishNotReadyAddresses':true,"
                "'selector':" LABELS "},'ports':[{'name':'di-port','port':22271}]}}");
}

/*  (type, GPUs) -> ports, as upstream's own test has it. */
static void test_ports_of_ddp_services(void **state)
{
    (void)state;
    static const struct {
        bool master;
        int gpus;
        size_t ports;
    } cases[] = {{true, 4, 5}, {false, 6, 6}, {true, 1, 2}, {true, 0, 2}, {false, 0, 1}};
    for (size_t i = 0; i < TT_COUNT(cases); i++) {
        json_t *service = NULL;
        const int more = cases[i].gpus > 1 ? cases[i].gpus - 1 : 0;
        const dijob_pod_t pod = {.meta = {.name = "d", .namespace_ = ""},
            .role = DIJOB_DDP_LEARNER,
            .port = 22271,
            .gpu_ports = (uint16_t)more,
            .ddp_master = cases[i].master};
        assert_ok(dijob_build_service(&service, &s_job, &pod));
        const json_t *ports = json_object_get(json_object_get(service, "spec"), "ports");
        assert_int_equal(json_array_size(ports), cases[i].ports);
        if (more)
            assert_int_equal(
                json_integer_value(json_object_get(json_array_get(ports, (size_t)more), "port")), 22271 + more);
        if (cases[i].master)
            assert_json(json_incref(json_array_get(ports, cases[i].ports - 1)), "{'name':'master-port','port':10314}");
        json_decref(service);
    }
}

static void test_the_service_of_tasks(void **state)
{
    (void)state;
    json_t *service = NULL;
    assert_ok(dijob_build_job_service(&service, &s_job));
    assert_json(service,
        "{'apiVersion':'v1','kind':'Service','metadata':{'name':'di-j','namespace':'rl','labels':{'diengine/job':"
        "'j','diengine/operator':'di-operator','controller-name':'di-operator'," RECOMMENDED_OF_JOB(
            "j") "},'ownerReferences':[" OWNER(",'blockOwnerDeletion':true") "]},'spec':{'clusterIP':'None','"
                                                                             "publishNotReadyAddresses':true,'selector'"
                                                                             ":{'"
                                                                             "diengine/job':'j',"
                                                                             "'diengine/"
                                                                             "operator':'di-operator'},'ports':[{'name'"
                                                                             ":'di-port','port':22270}]}}");
    const dijob_pod_t pod = {.meta = {.name = "t"}, .role = DIJOB_TASK};
    assert_int_equal(dijob_build_service(&service, &s_job, &pod), TT_INVALID);
}

/*  What is in the Secret is what `--key FILE` reads. */
static void test_the_key_can_be_read(void **state)
{
    (void)state;
    char path[] = "/tmp/tutti-curve-XXXXXX";
    json_t *secret = NULL;
    tt_keys_t keys;
    assert_ok(dijob_build_curve(&secret, &s_job));
    const char *text = json_string_value(json_object_get(json_object_get(secret, "stringData"), "curve.key"));
    FILE *file = fdopen(mkstemp(path), "w");
    fputs(text, file);
    fclose(file);
    assert_ok(tt_keys_read(&keys, path));
    unlink(path);
    assert_int_equal(strlen(keys.secret_key), 40);
    json_object_del(secret, "stringData");
    assert_json(secret,
        "{'apiVersion':'v1','kind':'Secret','metadata':{'name':'j-curve-job-uid','namespace':'rl','labels':{'group-"
        "name':"
        "'diengine.opendilab.org','dijob-name':'j','controller-name':'di-operator'},'ownerReferences':[" OWNER(
            "") "]},'type':'Opaque','immutable':true}");
}

static void test_names(void **state)
{
    (void)state;
    uint64_t random = 7, again = 7;
    char *first = dijob_pod_name("job", DIJOB_COLLECTOR, &random),
         *second = dijob_pod_name("job", DIJOB_COLLECTOR, &random);
    char *same = dijob_pod_name("job", DIJOB_COLLECTOR, &again),
         *coordinator = dijob_pod_name("job", DIJOB_COORDINATOR, &random);
    assert_int_equal(strlen(first), strlen("job-collector-12345"));
    assert_int_equal(strncmp(first, "job-collector-", 14), 0);
    assert_int_equal(strspn(first + 14, "bcdfghjklmnpqrstvwxz2456789"), 5);
    assert_string_not_equal(first, second);
    assert_string_equal(first, same);
    assert_string_equal(coordinator, "job-coordinator");
    free(first);
    free(second);
    free(same);
    free(coordinator);
}

static void s_assert_split(int gpus, int per_node, const char *want)
{
    char text[64] = "";
    int parts[4] = {0};
    const size_t count = dijob_ddp_split(gpus, per_node, parts, TT_COUNT(parts));
    for (size_t i = 0; i < count && i < TT_COUNT(parts); i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d", i ? " " : "", parts[i]);
    assert_string_equal(text, want);
    assert_int_equal(dijob_ddp_split(gpus, per_node, NULL, 0), count);
}

static void test_gpus_are_split(void **state)
{
    (void)state;
    s_assert_split(10, 8, "8 2");
    s_assert_split(8, 8, "8");
    s_assert_split(16, 8, "8 8");
    s_assert_split(3, 0, "3");
    s_assert_split(0, 8, "1");
    assert_int_equal(dijob_ddp_split(100, 1, NULL, 0), 100);
}

static void test_the_usual_node(void **state)
{
    (void)state;
    assert_int_equal(dijob_gpus_per_node((int[]){8, 8, 0, 4}, 4), 8);
    assert_int_equal(dijob_gpus_per_node((int[]){4, 8}, 2), 8);
    assert_int_equal(dijob_gpus_per_node((int[]){0, 0, 2}, 3), 2);
    assert_int_equal(dijob_gpus_per_node(NULL, 0), 0);
}

static void test_a_pod_of_a_task(void **state)
{
    (void)state;
    json_t *pod = NULL;
    json_t *job = json_of(
        "{'apiVersion':'diengine.opendilab.org/v2alpha1','kind':'DIJob','metadata':{'name':'j','namespace':'rl',"
        "'uid':'job-uid'},'spec':{'volumes':[{'name':'v'}],'tasks':[{'type':'learner','template':{'spec':{"
        "'containers':[{'name':'a'}]}}},{'type':'none','name':'my-task','replicas':2,'template':{'metadata':{"
        "'labels':{'l':'1'}},'spec':{'restartPolicy':'Always','containers':[{'name':'b'}]}}}]}}");
    const dijob_pod_want_t want = {
        .role = DIJOB_TASK, .name = "j-my-task-1", .server_url = "http://s", .task = 1, .rank = 2, .task_rank = 1};
    assert_ok(dijob_build_pod(&pod, job, &want));
#define NODE(name) "j-" name ".di-j.rl.svc.cluster.local"
    assert_json(pod,
        "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'j-my-task-1','namespace':'rl','labels':{'l':'"
        "1','"
        "diengine/job':'j',"
        "'diengine/operator':'di-operator','controller-name':'di-operator','diengine/"
        "pod':'j-my-task-1','diengine/"
        "task-type':'none','diengine/"
        "task-name':"
        "'my-task'," RECOMMENDED("j", "my-task") "},'annotations':{'diengine/replicas':'3','diengine/"
                                                 "rank':'2','diengine/task-rank':'1','diengine/"
                                                 "node':''},"
                                                 "'ownerReferences':[{'apiVersion':'diengine.opendilab."
                                                 "org/"
                                                 "v2alpha1','kind':'DIJob','name':'j','uid':'job-uid',"
                                                 "'controller':true,'blockOwnerDeletion':true}]},'spec':{'"
                                                 "restartPolicy':'Never','hostname':'j-my-task-1','"
                                                 "subdomain':"
                                                 "'di-j','volumes':[{'name':'v'}],'containers':[{'"
                                                 "terminationMessagePolicy':'FallbackToLogsOnError','name'"
                                                 ":'b','"
                                                 "env':[{'name':'DI_JOB_ID','value':'rl/j'},"
                                                 "{'name':'DI_SERVER_URL','value':'http://"
                                                 "s'},{'name':'DI_RANK','value':'2'},{'name':'DI_NODES','"
                                                 "value':'" NODE("learner-0") "," NODE("my-task-0") "," NODE(
                                                     "my-task-1") "'},{'name':'DI_MY_TASK_NODES','value':"
                                                                  "'" NODE("my-task-0") "," NODE("my-task-"
                                                                                                 "1") "'}]"
                                                                                                      "}]}"
                                                                                                      "}");
    const dijob_pod_want_t none = {.role = DIJOB_TASK, .name = "x", .task = 2};
    assert_int_equal(dijob_build_pod(&pod, job, &none), TT_NOT_FOUND);
    json_decref(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_headless_service),
        cmocka_unit_test(test_ports_of_ddp_services),
        cmocka_unit_test(test_the_service_of_tasks),
        cmocka_unit_test(test_the_key_can_be_read),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_gpus_are_split),
        cmocka_unit_test(test_the_usual_node),
        cmocka_unit_test(test_a_pod_of_a_task),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
