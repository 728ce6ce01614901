/*  Pods as the specification has them (DIJob of DI-orchestrator v0.2.2), and what ours adds. */
#include "k8s/dijob/parts.h"
#include "tests/k8s/dijob/labels.h"
#include "tests/k8s/json.h"

#define SAYS "'terminationMessagePolicy':'FallbackToLogsOnError',"
#define JOB(engine, roles)                                                                                            \
    "{'apiVersion':'diengine.opendilab.org/v1alpha1','kind':'DIJob','metadata':{'name':'qbert-dqn','namespace':'rl'," \
    "'uid':'job-uid'},'spec':{" engine                                                                                \
    "'priorityClassName':'high','volumes':[{'name':'work-dir','hostPath':{'path':'/d'}},"                             \
    "{'name':'cache','emptyDir':{}}]," roles "}}"

/*  Built from the job's text; caller frees. */
static json_t *s_build(const char *job_text, const dijob_pod_want_t *want)
{
    json_t *pod = NULL, *job = json_of(job_text), *before = json_deep_copy(job);
    assert_ok(dijob_build_pod(&pod, job, want));
    assert_true(json_equal(job, before)); /* the job is only read */
    json_decref(before);
    json_decref(job);
    return pod;
}

#define LABELS(name, role)                                                                                           \
    "'group-name':'diengine.opendilab.org','dijob-name':'qbert-dqn','controller-name':'di-operator','replica-type':" \
    "'" role "','pod-name':'" name "'," RECOMMENDED("qbert-dqn", role)
#define OWNER                                \
    "{'apiVersion':'diengine.opendilab.org/" \
    "v1alpha1','kind':'DIJob','name':'qbert-dqn','uid':'job-uid','controller':true}"
#define VOLUMES "{'name':'work-dir','hostPath':{'path':'/d'}},{'name':'cache','emptyDir':{}}"

#define COORDINATOR                                                                                                    \
    "'coordinator':{'template':{'metadata':{'name':'not-this','namespace':'nor-this','labels':{'app':'x'},"            \
    "'annotations':{'note':'n'}},'spec':{'containers':[{'name':'shell','image':'busybox'},"                            \
    "{'name':'di-container','image':'ding','newInTheNextRelease':{'a':[1,0.1]},'env':[{'name':'PYTHONUNBUFFERED',"     \
    "'value':'1'},{'name':'KUBERNETES_POD_NAME','value':'mine'}],'ports':[{'name':'di-port','containerPort':22280}]}]" \
    ","                                                                                                                \
    "'initContainers':[{'name':'prepare','image':'busybox'}],'schedulingGates':[{'name':'later'}]}}}"

#define ENV(name, own)                                                                                   \
    own ",{'name':'KUBERNETES_POD_NAMESPACE','value':'rl'},{'name':'KUBERNETES_POD_NAME','value':'" name \
        "'},{'name':'KUBERNETES_SERVER_URL','value':'http://di-server.di-system:8080'}"
#define COORDINATOR_ENV                                                         \
    ENV("qbert-dqn-coordinator", "{'name':'COORDINATOR_PORT','value':'22280'}") \
    ",{'name':'KUBERNETES_COORDINATOR_URL','value':'qbert-dqn-coordinator.rl:22280'}"

static const dijob_pod_want_t s_coordinator = {
    .role = DIJOB_COORDINATOR, .name = "qbert-dqn-coordinator", .server_url = "http://di-server.di-system:8080"};

static void test_the_coordinator(void **state)
{
    (void)state;
    assert_json(s_build(JOB("", COORDINATOR), &s_coordinator),
        "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'qbert-dqn-coordinator','namespace':'rl','labels':{'app':'"
        "x'," LABELS("qbert-dqn-coordinator",
            "coordinator") "},'annotations':{'note':'n'},'ownerReferences':[" OWNER "]},"
                           "'spec':{'restartPolicy':'Never','priorityClassName':'high','volumes':[" VOLUMES
                           "],'containers':["
                           "{" SAYS "'name':'shell','image':'busybox','env':[" COORDINATOR_ENV "]},"
                           "{" SAYS
                           "'name':'di-container','image':'ding','newInTheNextRelease':{'a':[1,0.1]},'env':[{'name':'"
                           "PYTHONUNBUFFERED',"
                           "'value':'1'}," COORDINATOR_ENV "],'ports':[{'name':'di-port','containerPort':22280}]}],"
                           "'initContainers':[{" SAYS "'name':'prepare','image':'busybox','env':[" COORDINATOR_ENV
                           "]}],"
                           "'schedulingGates':[{'name':'later'}]}}");
}

#define LEARNER                                                                                                    \
    "'learner':{'template':{'spec':{'restartPolicy':'OnFailure','volumes':[{'name':'cache','emptyDir':{'medium':'" \
    "Memory'}}],"                                                                                                  \
    "'containers':[{'name':'di-container','resources':{'limits':{'cpu':2,'memory':'1Gi'}}}]}}}"
#define LEARNER_ENV(name) ENV(name, "{'name':'LEARNER_PORT','value':'22271'}")

static void test_a_learner_with_resources_asked_for(void **state)
{
    (void)state;
    const dijob_pod_want_t want = {.role = DIJOB_LEARNER,
        .name = "qbert-dqn-learner-x",
        .server_url = "http://di-server.di-system:8080",
        .resources = {.cpus = "4", .memory = "0", .gpus = "1"},
        .replaces = "qbert-dqn-learner-w",
        .backoff_s = 4,
        .failures = 2};
    assert_json(s_build(JOB("", COORDINATOR "," LEARNER), &want),
        "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'qbert-dqn-learner-x','namespace':'rl','labels':{" LABELS(
            "qbert-dqn-learner-x",
            "learner") "},'annotations':{'tutti/replaces':'qbert-dqn-learner-w','tutti/backoff':'4','tutti/"
                       "failures':'2','tutti/"
                       "resources':'4//1'},"
                       "'ownerReferences':[" OWNER
                       "]},'spec':{'restartPolicy':'OnFailure','volumes':[{'name':'cache','emptyDir':{'medium':"
                       "'Memory'}},{'name':'work-dir','hostPath':{'path':'/"
                       "d'}}],'containers':[{" SAYS "'name':'di-container','resources':{"
                       "'limits':{'cpu':'4','memory':'1Gi','nvidia.com/gpu':'1'},'requests':{'cpu':'4','nvidia.com/"
                       "gpu':'1'}},"
                       "'env':[" LEARNER_ENV(
                           "qbert-dqn-learner-x") "],'ports':[{'name':'di-port','containerPort':22271}]}]}}");
}

/*  Containers named as the role: nothing is added to their ports; variables and services say the role's usual port. */
static void test_a_container_named_as_the_role(void **state)
{
    (void)state;
    const dijob_pod_want_t want = {
        .role = DIJOB_COLLECTOR, .name = "c", .server_url = "s", .resources = {.cpus = "500m"}};
    json_t *pod =
        s_build(JOB("", "'collector':{'template':{'spec':{'containers':[{'name':'side'},{'name':'collector','ports':"
                        "[{'name':'collector','containerPort':99}]}]}}}"),
            &want);
    json_t *containers = json_object_get(json_object_get(pod, "spec"), "containers"),
           *main_ = json_array_get(containers, 1);
    assert_json(json_incref(json_object_get(main_, "ports")), "[{'name':'collector','containerPort':99}]");
    assert_json(
        json_incref(json_array_get(json_object_get(main_, "env"), 0)), "{'name':'COLLECTOR_PORT','value':'22270'}");
    assert_json(
        json_incref(json_object_get(main_, "resources")), "{'limits':{'cpu':'500m'},'requests':{'cpu':'500m'}}");
    assert_null(json_object_get(json_array_get(containers, 0), "resources"));
    assert_null(json_object_get(json_object_get(pod, "spec"), "restartPolicy"));
    assert_null(json_object_get(json_object_get(pod, "spec"), "priorityClassName"));
    json_decref(pod);
}

/*  Every pod of a tutti job knows its coordinator and has the job's key. */
static void test_a_tutti_job(void **state)
{
    (void)state;
    const dijob_pod_want_t want = {.role = DIJOB_LEARNER, .name = "l", .server_url = "http://di-server.di-system:8080"};
    json_t *pod = s_build(JOB("'engine':'tutti',", COORDINATOR "," LEARNER), &want),
           *spec = json_object_get(pod, "spec");
    json_t *container = json_array_get(json_object_get(spec, "containers"), 0);
    assert_json(json_incref(json_object_get(container, "env")),
        "[" LEARNER_ENV("l") ",{'name':'KUBERNETES_COORDINATOR_URL','value':'qbert-dqn-coordinator.rl:22280'}]");
    assert_json(json_incref(json_object_get(container, "volumeMounts")),
        "[{'name':'tutti-curve','mountPath':'/etc/tutti/curve','readOnly':true}]");
    assert_json(json_incref(json_array_get(json_object_get(spec, "volumes"), 2)),
        "{'name':'tutti-curve','secret':{'secretName':'qbert-dqn-curve-job-uid','defaultMode':288}}");
    assert_json(json_incref(json_object_get(json_object_get(pod, "metadata"), "annotations")),
        "{'tutti/curve':'qbert-dqn-curve-job-uid'}");
    json_decref(pod);
}

/*  Which pods know, and what a user makes by hand. */
static void test_a_key_of_the_old_name(void **state)
{
    (void)state;
    static const char *const heads[] = {"'engine':'tutti',", "'engine':'tutti','managedBy':'coordinator',"};
    for (size_t i = 0; i < TT_COUNT(heads); i++) {
        const dijob_pod_want_t want = {.role = DIJOB_LEARNER, .name = "l", .old_curve = i == 0};
        char *text = tt_sprintf("{'apiVersion':'diengine.opendilab.org/v1alpha1','kind':'DIJob','metadata':{'name':'j',"
                                "'uid':'u-1'},'spec':{%s" COORDINATOR "," LEARNER "}}",
            heads[i]);
        json_t *pod = s_build(text, &want);
        assert_json(
            json_incref(parts_named(json_object_get(json_object_get(pod, "spec"), "volumes"), "name", "tutti-curve")),
            "{'name':'tutti-curve','secret':{'secretName':'j-curve','defaultMode':288}}");
        assert_null(json_object_get(json_object_get(json_object_get(pod, "metadata"), "annotations"), "tutti/curve"));
        json_decref(pod);
        free(text);
    }
}

/*  The first coordinator is told nothing, the one after the second that there were two before it. */
static void test_a_coordinator_made_anew(void **state)
{
    (void)state;
    static const char *const statuses[] = {"{}", "{'coordinatorUID':'a'}", "{'coordinatorUID':'b','restarts':1}"};
    static const char *const want[] = {NULL, "1", "2"};
    for (size_t i = 0; i < TT_COUNT(statuses); i++) {
        json_t *job = json_of(JOB("'engine':'tutti',", COORDINATOR)), *pod = NULL;
        json_object_set_new(job, "status", json_of(statuses[i]));
        assert_ok(dijob_build_pod(&pod, job, &s_coordinator));
        const json_t *containers = json_object_get(json_object_get(pod, "spec"), "containers");
        const json_t *env = json_object_get(json_array_get(containers, 0), "env");
        const json_t *last = json_array_get(env, json_array_size(env) - 1);
        const char *name = json_string_value(json_object_get(last, "name"));
        assert_int_equal(strcmp(name, "KUBERNETES_COORDINATOR_RESTARTS") == 0, want[i] != NULL);
        if (want[i])
            assert_string_equal(json_string_value(json_object_get(last, "value")), want[i]);
        json_decref(pod);
        json_decref(job);
    }
}

static void test_an_aggregator_of_a_config(void **state)
{
    (void)state;
    json_t *agconfig =
        json_of("{'kind':'AggregatorConfig','spec':{'aggregator':{'template':{'spec':{'containers':[{'name':"
                "'di-container','image':'agg','ports':[{'name':'di-port','containerPort':22270}]}]}}}}}");
    const dijob_pod_want_t want = {
        .role = DIJOB_AGGREGATOR, .name = "a", .server_url = "http://di-server.di-system:8080", .agconfig = agconfig};
    assert_json(s_build(JOB("", COORDINATOR "," LEARNER), &want),
        "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'a','namespace':'rl','labels':{" LABELS(
            "a", "aggregator") "},"
                               "'annotations':{},'ownerReferences':[" OWNER "]},'spec':{'containers':[{" SAYS
                               "'name':'di-container','image':'agg','ports':["
                               "{'name':'di-port','containerPort':22270}],'env':[" ENV(
                                   "a", "{'name':'AGGREGATOR_PORT','value':'22270'}") "]}]}}");
    json_decref(agconfig);
}

static void test_an_aggregator_made_of_the_learner(void **state)
{
    (void)state;
    const dijob_pod_want_t want = {
        .role = DIJOB_AGGREGATOR, .name = "a", .server_url = "http://di-server.di-system:8080"};
    const char *learner =
        "'learner':{'template':{'metadata':{'labels':{'team':'rl'}},'spec':{'imagePullSecrets':[{'name':'s'}],"
        "'containers':[{'name':'side'},{'name':'learner','image':'ding:1','command':['sh'],'args':['-c','x'],"
        "'livenessProbe':{},'ports':[{'name':'di-port','containerPort':22271}],'resources':{'limits':{"
        "'nvidia.com/gpu':4}},'volumeMounts':[{'name':'work-dir','mountPath':'/w'}]}]}}}";
    char *text = tt_sprintf(JOB("", "%s"), learner);
    assert_json(s_build(text, &want),
        "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'a','namespace':'rl','labels':{'team':'rl'," LABELS("a",
            "aggregator") "},'annotations':{},'ownerReferences':[" OWNER "]},'spec':{'imagePullSecrets':[{'name':'s'}],"
                          "'volumes':[" VOLUMES "],'containers':[{" SAYS
                          "'name':'di-container','image':'ding:1','command':['ding','-m','dist',"
                          "'--module','learner_aggregator'],'volumeMounts':[{'name':'work-dir','mountPath':'/w'}],"
                          "'ports':[{'name':'di-port','containerPort':22272}],'env':[" ENV(
                              "a", "{'name':'AGGREGATOR_PORT','value':'22272'}") "]}]}}");
    free(text);
}

/*  What selects is ours; what only groups is the template's to say. A name that is too long for a label is left out. */
static void test_recommended_labels_give_way(void **state)
{
    (void)state;
    const dijob_pod_want_t want = {.role = DIJOB_LEARNER, .name = "l"};
    json_t *pod = s_build(JOB("", "'learner':{'template':{'metadata':{'labels':{'app.kubernetes.io/part-of':'lab',"
                                  "'dijob-name':'mine'}},'spec':{'containers':[{'name':'a'}]}}}"),
        &want);
    const json_t *labels = json_object_get(json_object_get(pod, "metadata"), "labels");
    assert_string_equal(parts_text(labels, "app.kubernetes.io/part-of", ""), "lab");
    assert_string_equal(parts_text(labels, "app.kubernetes.io/instance", ""), "qbert-dqn");
    assert_string_equal(parts_text(labels, "dijob-name", ""), "qbert-dqn");
    json_decref(pod);
    json_t *some = json_object();
    parts_recommend(some, "dijob", "a-job-of-another-operator-whose-schema-lets-names-of-any-length-in", "");
    assert_json(some, "{'app.kubernetes.io/name':'dijob','app.kubernetes.io/version':'" TT_VERSION
                      "','app.kubernetes.io/part-of':'tutti',"
                      "'app.kubernetes.io/managed-by':'tutti-operator'}");
}

/*  The end of its log is the message of one that fails, unless the user wants it otherwise. */
static void test_last_words_are_as_the_template_says(void **state)
{
    (void)state;
    const dijob_pod_want_t want = {.role = DIJOB_LEARNER, .name = "l"};
    json_t *pod = s_build(JOB("", "'learner':{'template':{'spec':{'containers':[{'name':'a','terminationMessagePolicy':"
                                  "'File'},{'name':'b'},7],'initContainers':[{'name':'c'}]}}}"),
        &want);
    json_t *spec = json_object_get(pod, "spec"), *containers = json_object_get(spec, "containers");
    const char *key = "terminationMessagePolicy", *from_log = "FallbackToLogsOnError";
    assert_string_equal(parts_text(json_array_get(containers, 0), key, ""), "File");
    assert_string_equal(parts_text(json_array_get(containers, 1), key, ""), from_log);
    assert_string_equal(parts_text(json_array_get(json_object_get(spec, "initContainers"), 0), key, ""), from_log);
    json_decref(pod);
}

static void test_a_ddp_learner(void **state)
{
    (void)state;
    const dijob_pod_want_t want = {.role = DIJOB_DDP_LEARNER,
        .name = "d",
        .server_url = "http://di-server.di-system:8080",
        .aggregator = "a",
        .aggregator_uid = "a-uid",
        .world_size = 10,
        .local_world_size = 2,
        .start_rank = 8,
        .gpus = 2,
        .split = true,
        .master_name = "m"};
    assert_json(
        s_build(
            JOB("", COORDINATOR ",'learner':{'template':{'spec':{'containers':[{'name':'di-container'}]}}}"), &want),
        "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'d','namespace':'rl','labels':{" LABELS("d",
            "ddp-learner") ",'ddp-learner-type':'ddp-learner-worker'},'annotations':{'tutti/"
                           "aggregator':'a'},'ownerReferences':[" OWNER ",{'apiVersion':'v1','kind':'Pod',"
                           "'name':'a','uid':'a-uid'}]},'spec':{'volumes':[" VOLUMES "],'containers':[{" SAYS
                           "'name':'di-container','ports':["
                           "{'name':'di-port','containerPort':22271},{'name':'gpu-port-1','containerPort':22272}],'"
                           "resources':{'limits':{"
                           "'nvidia.com/gpu':'2'},'requests':{'nvidia.com/gpu':'2'}},'env':[" LEARNER_ENV(
                               "d") ",{'name':'WORLD_SIZE','value':'10'},{'name':'LOCAL_WORLD_SIZE','value':'2'},{'"
                                    "name':'START_RANK','value':'8'},"
                                    "{'name':'MASTER_ADDR','value':'m'},{'name':'MASTER_PORT','value':'10314'}]}]}}");
}

static void test_the_first_ddp_learner(void **state)
{
    (void)state;
    const dijob_pod_want_t want = {.role = DIJOB_DDP_LEARNER,
        .name = "m",
        .server_url = "s",
        .aggregator = "a",
        .aggregator_uid = "u",
        .world_size = 9,
        .local_world_size = 1,
        .gpus = 1,
        .split = true,
        .master = true};
    json_t *pod = s_build(JOB("", "'learner':{'template':{'spec':{'containers':[{'name':'di-container'}]}}}"), &want);
    json_t *container = json_array_get(json_object_get(json_object_get(pod, "spec"), "containers"), 0);
    assert_json(json_incref(json_object_get(container, "ports")),
        "[{'name':'di-port','containerPort':22271},{'name':'master-port','containerPort':10314}]");
    assert_json(json_incref(json_array_get(json_object_get(container, "env"), 7)),
        "{'name':'MASTER_ADDR','value':'localhost'}");
    json_decref(pod);
}

static void test_a_role_without_template(void **state)
{
    (void)state;
    json_t *pod = NULL, *job = json_of(JOB("", COORDINATOR));
    for (int role = DIJOB_COLLECTOR; role < DIJOB_ROLES; role++) {
        const dijob_pod_want_t want = {.role = (dijob_role_t)role, .name = "x", .server_url = "s"};
        assert_int_equal(dijob_build_pod(&pod, job, &want), TT_NOT_FOUND);
        assert_null(pod);
    }
    json_decref(job);
}

/*  What the API server will refuse is passed to it as it is, and nothing of it is written over. */
static void test_strange_templates(void **state)
{
    (void)state;
    const dijob_pod_want_t want = {
        .role = DIJOB_COORDINATOR, .name = "x", .server_url = "s", .resources = {.cpus = "1"}};
    json_t *pod = s_build(
        JOB("'engine':'tutti',", "'coordinator':{'template':{'metadata':7,'spec':{'volumes':'v','containers':[3,"
                                 "{'name':'di-container','env':'e','ports':{},'volumeMounts':1,'resources':[]}]}}}"),
        &want);
    json_t *spec = json_object_get(pod, "spec"), *container = json_array_get(json_object_get(spec, "containers"), 1);
    assert_string_equal(json_string_value(json_object_get(spec, "volumes")), "v");
    assert_string_equal(json_string_value(json_object_get(container, "env")), "e");
    assert_true(json_is_object(json_object_get(container, "ports")));
    assert_int_equal(json_integer_value(json_object_get(container, "volumeMounts")), 1);
    json_decref(pod);
}

/*  A job that is a file: its pods get its owner. */
static void test_pods_of_a_file(void **state)
{
    (void)state;
    const dijob_pod_want_t want = {.role = DIJOB_COORDINATOR, .name = "x", .server_url = "s"};
    json_t *pod =
        s_build("{'metadata':{'name':'j','ownerReferences':[{'apiVersion':'v1','kind':'Pod','name':'p','uid':'u',"
                "'controller':true}]},'spec':{'coordinator':{'template':{'spec':{}}}}}",
            &want);
    assert_json(json_incref(json_object_get(json_object_get(pod, "metadata"), "ownerReferences")),
        "[{'apiVersion':'v1','kind':'Pod','name':'p','uid':'u','controller':true}]");
    assert_string_equal(json_string_value(json_object_get(json_object_get(pod, "metadata"), "namespace")), "default");
    json_decref(pod);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_coordinator),
        cmocka_unit_test(test_a_learner_with_resources_asked_for),
        cmocka_unit_test(test_a_container_named_as_the_role),
        cmocka_unit_test(test_a_tutti_job),
        cmocka_unit_test(test_a_key_of_the_old_name),
        cmocka_unit_test(test_a_coordinator_made_anew),
        cmocka_unit_test(test_an_aggregator_of_a_config),
        cmocka_unit_test(test_an_aggregator_made_of_the_learner),
        cmocka_unit_test(test_a_ddp_learner),
        cmocka_unit_test(test_recommended_labels_give_way),
        cmocka_unit_test(test_last_words_are_as_the_template_says),
        cmocka_unit_test(test_the_first_ddp_learner),
        cmocka_unit_test(test_a_role_without_template),
        cmocka_unit_test(test_strange_templates),
        cmocka_unit_test(test_pods_of_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
