/*  TF_CONFIG byte for byte, the pods and the services, as the text of Kubeflow's interface has them. */
#include "k8s/front/object.h"
#include "tests/k8s/tfjob/world.h"

static tfjob_t *s_job_of(const char *annotations, const char *spec)
{
    char *meta = tt_sprintf("{'name':'J','namespace':'NS','uid':'u','annotations':%s}", annotations);
    tfjob_t *job = world_decode(NULL, meta, spec);
    free(meta);
    return job;
}

static void s_is(const tfjob_t *job, tfjob_type_t type, int index, const char *domain, const char *want)
{
    char *text = tfjob_tf_config(job, &(tfjob_place_t){.type = type, .index = index}, domain);
    if (want)
        assert_string_equal(text, want);
    else
        assert_null(text);
    free(text);
}

static void test_dense_knows_everybody(void **state)
{
    (void)state;
    tfjob_t *job = s_job_of("{}", "{'tfReplicaSpecs':{'Worker':{'template':T},'PS':{'template':T}}}");
    s_is(job, TFJOB_WORKER, 0, NULL,
        "{\"cluster\":{\"ps\":[\"J-ps-0.NS.svc:2222\"],\"worker\":[\"J-worker-0.NS.svc:2222\"]},"
        "\"task\":{\"type\":\"worker\",\"index\":0},\"environment\":\"cloud\"}");
    s_is(job, TFJOB_PS, 0, "d",
        "{\"cluster\":{\"ps\":[\"J-ps-0.NS.svc.d:2222\"],\"worker\":[\"J-worker-0.NS.svc.d:2222\"]},"
        "\"task\":{\"type\":\"ps\",\"index\":0},\"environment\":\"cloud\"}");
    tfjob_destroy(&job);
    job = s_job_of("{}",
        "{'tfReplicaSpecs':{'Worker':{'replicas':2,'template':T},'Evaluator':{'template':T},'Chief':"
        "{'template':{'spec':{'containers':[{'name':'tensorflow','image':'x','ports':[{'name':'tfjob-port',"
        "'containerPort':3333}]}]}}}}}");
    s_is(job, TFJOB_WORKER, 1, "",
        "{\"cluster\":{\"chief\":[\"J-chief-0.NS.svc:3333\"],\"evaluator\":[\"J-evaluator-0.NS.svc:2222\"],"
        "\"worker\":[\"J-worker-0.NS.svc:2222\",\"J-worker-1.NS.svc:2222\"]},"
        "\"task\":{\"type\":\"worker\",\"index\":1},\"environment\":\"cloud\"}");
    tfjob_destroy(&job);
}

#define DYNAMIC                                                                                                        \
    "{'enableDynamicWorker':true,'tfReplicaSpecs':{'Worker':{'replicas':3,'template':T},'PS':{'replicas':2,'template'" \
    ":T},"                                                                                                             \
    "'Evaluator':{'template':T}}}"

static void test_sparse_knows_who_is_needed(void **state)
{
    (void)state;
    tfjob_t *job = s_job_of("{}", DYNAMIC);
    s_is(job, TFJOB_WORKER, 2, NULL,
        "{\"cluster\":{\"worker\":{\"2\":\"J-worker-2.NS.svc:2222\"},\"ps\":[\"J-ps-0.NS.svc:2222\","
        "\"J-ps-1.NS.svc:2222\"]},\"task\":{\"type\":\"worker\",\"index\":2}}");
    s_is(job, TFJOB_PS, 1, NULL,
        "{\"cluster\":{\"worker\":{},\"ps\":[\"J-ps-1.NS.svc:2222\"]},\"task\":{\"type\":\"ps\",\"index\":1}}");
    s_is(job, TFJOB_EVALUATOR, 0, NULL,
        "{\"cluster\":{\"worker\":{},\"ps\":[]},\"task\":{\"type\":\"evaluator\",\"index\":0}}");
    tfjob_destroy(&job);
    job = s_job_of("{'tutti/sparse-cluster-key':'sparseCluster'}", DYNAMIC);
    s_is(job, TFJOB_PS, 0, NULL,
        "{\"sparseCluster\":{\"worker\":{},\"ps\":[\"J-ps-0.NS.svc:2222\"]},\"task\":{\"type\":\"ps\",\"index\":0}}");
    tfjob_destroy(&job);
}

static void test_who_is_alone_gets_none(void **state)
{
    (void)state;
    tfjob_t *job = s_job_of("{}", "{'tfReplicaSpecs':{'Worker':{'template':T}}}");
    s_is(job, TFJOB_WORKER, 0, NULL, NULL);
    tfjob_destroy(&job);
    job = s_job_of("{}", "{'tfReplicaSpecs':{'Worker':{'template':T},'Evaluator':{'replicas':0,'template':T}}}");
    s_is(job, TFJOB_WORKER, 0, NULL, NULL);
    tfjob_destroy(&job);
}

/*  A job of namespace ns, name mnist. */
static json_t *s_pod(const char *spec, tfjob_type_t type, int index, const char *domain)
{
    world_t world;
    tfjob_t *job = NULL;
    json_t *pod = NULL;
    world_init(&world, spec);
    assert_ok(tfjob_from_json(&job, world.job));
    assert_ok(
        tfjob_build_pod(&pod, job, world.job, &(tfjob_place_t){.type = type, .index = index, .restarts = 2}, domain));
    tfjob_destroy(&job);
    world_free(&world);
    return pod;
}

static void test_a_pod_is_its_template_and_its_place(void **state)
{
    (void)state;
    json_t *pod =
        s_pod("{'tfReplicaSpecs':{'ps':{'template':T},'worker':{'replicas':1,'restartPolicy':'ExitCode','template':{"
              "'metadata':{'labels':{'mine':'yes','job-name':'no'},'annotations':{'a':'b'}},'spec':{'restartPolicy':"
              "'Always','nodeSelector':{'gpu':'yes'},'containers':[{'name':'tensorflow','image':'tf','env':[{'name':"
              "'TF_CONFIG','value':'old'},{'name':'X','value':'1'}],'ports':[{'name':'web','containerPort':80}]},"
              "{'name':'side','image':'s'}]}}}}}",
            TFJOB_WORKER, 0, NULL);
    assert_json(pod,
        "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'mnist-worker-0','namespace':'ns','labels':{'mine':'yes',"
        "'group-name':'kubeflow.org','job-name':'mnist','replica-type':'worker','replica-index':'0','job-role':'master'"
        ","
        "'training.kubeflow.org/operator-name':'tfjob-controller','training.kubeflow.org/job-name':'mnist',"
        "'training.kubeflow.org/replica-type':'worker','training.kubeflow.org/replica-index':'0',"
        "'training.kubeflow.org/job-role':'master'"
        ","
        "'app.kubernetes.io/name':'tfjob','app.kubernetes.io/instance':'mnist','app.kubernetes.io/component':'worker',"
        "'app.kubernetes.io/version':'" TT_VERSION
        "','app.kubernetes.io/part-of':'tutti','app.kubernetes.io/managed-by':'tutti-operator'},'annotations':{'a':'b',"
        "'tutti/restarts':'2'},'ownerReferences':[{'apiVersion':'kubeflow.org/v1','kind':'TFJob','name':'mnist','uid':"
        "'job-uid','controller':true,'blockOwnerDeletion':true}]},'spec':{'restartPolicy':'Never','nodeSelector':{'gpu'"
        ":"
        "'yes'},'containers':[{'name':'tensorflow','image':'tf','terminationMessagePolicy':'FallbackToLogsOnError','"
        "env':[{"
        "'name':'X','value':'1'},{'name':'TF_CONFIG','value':'{\\'cluster\\':{\\'ps\\':[\\'mnist-ps-0.ns.svc:2222\\'],"
        "\\'worker\\':[\\'mnist-worker-0.ns.svc:2222\\']},\\'task\\':{\\'type\\':\\'worker\\',\\'index\\':0},"
        "\\'environment\\':\\'cloud\\'}'}],'ports':[{'name':'web','containerPort':80},{'name':'tfjob-port','"
        "containerPort':"
        "2222}]},{'name':'side','image':'s','terminationMessagePolicy':'FallbackToLogsOnError'}]}}");
}

static const char *s_policy(const char *policy)
{
    static char out[16];
    char *spec = tt_sprintf("{'tfReplicaSpecs':{'Worker':{'replicas':2,'restartPolicy':'%s','template':T}}}", policy);
    json_t *pod = s_pod(spec, TFJOB_WORKER, 1, NULL);
    snprintf(out, sizeof out, "%s", parts_text(json_object_get(pod, "spec"), "restartPolicy", ""));
    assert_null(json_object_get(parts_labels(pod), "job-role")); /* that is worker 0's */
    json_decref(pod);
    free(spec);
    return out;
}

static void test_restart_policies(void **state)
{
    (void)state;
    assert_string_equal(s_policy("Always"), "Always");
    assert_string_equal(s_policy("OnFailure"), "OnFailure");
    assert_string_equal(s_policy("Never"), "Never");
    assert_string_equal(s_policy("ExitCode"), "Never");
}

static void test_a_service_has_the_name_and_the_labels_of_its_pod(void **state)
{
    (void)state;
    tfjob_t *job = s_job_of("{}", "{'tfReplicaSpecs':{'Master':{'template':T},'Worker':{'template':T}}}");
    assert_json(tfjob_build_service(job, &(tfjob_place_t){.type = TFJOB_MASTER, .index = 0}),
        "{'apiVersion':'v1','kind':'Service','metadata':{'name':'J-master-0','namespace':'NS','labels':{'group-name':"
        "'kubeflow.org','job-name':'J','replica-type':'master','replica-index':'0','job-role':'master',"
        "'training.kubeflow.org/operator-name':'tfjob-controller','training.kubeflow.org/job-name':'J',"
        "'training.kubeflow.org/replica-type':'master','training.kubeflow.org/replica-index':'0',"
        "'training.kubeflow.org/job-role':'master'"
        ","
        "'app.kubernetes.io/name':'tfjob','app.kubernetes.io/instance':'J','app.kubernetes.io/component':'master',"
        "'app.kubernetes.io/version':'" TT_VERSION
        "','app.kubernetes.io/part-of':'tutti','app.kubernetes.io/managed-by':'tutti-operator'},'ownerReferences':[{"
        "'apiVersion':'kubeflow.org/"
        "v1','kind':'TFJob','name':'J','uid':'u','controller':true,'blockOwnerDeletion':true}]},"
        "'spec':{'clusterIP':'None','publishNotReadyAddresses':true,'selector':{'group-name':'kubeflow.org','job-name':"
        "'J',"
        "'replica-type':'master','replica-index':'0'},'ports':[{'name':'tfjob-port','port':2222}]}}");
    tfjob_destroy(&job);
}

/*  Of container tensorflow, and of no other; the pod is as it would be without but for that. */
static void test_what_comes_with_a_resource(void **state)
{
    (void)state;
    world_t world;
    tfjob_t *job = NULL;
    json_t *pod = NULL,
           *accelerators = json_of("{'gpu':{'volumes':[{'name':'lib','hostPath':'/h','mountPath':'/m'}],'envVars':[{"
                                   "'name':'A','value':'1'}]}}");
    world_init(&world, "{'tfReplicaSpecs':{'Worker':{'replicas':2,'template':{'spec':{'containers':[{'name':'side',"
                       "'image':'s','resources':{'limits':{'gpu':1}}},{'name':'tensorflow','image':'t','resources':{"
                       "'limits':{'gpu':1}}}]}}}}}");
    assert_ok(tfjob_from_json(&job, world.job));
    const tfjob_place_t place = {.type = TFJOB_WORKER};
    assert_ok(tfjob_front.build(&pod, &(front_action_t){.what = FRONT_CREATE_POD, .own = &place},
        &(front_parts_t){.job = job, .whole = world.job, .accelerators = accelerators}));
    const json_t *spec = json_object_get(pod, "spec"), *containers = json_object_get(spec, "containers");
    assert_json(json_incref(json_object_get(spec, "volumes")), "[{'name':'lib','hostPath':{'path':'/h'}}]");
    const json_t *side = json_array_get(containers, 0), *main_ = json_array_get(containers, 1);
    assert_null(json_object_get(side, "volumeMounts"));
    assert_null(json_object_get(side, "env"));
    assert_json(json_incref(json_object_get(main_, "volumeMounts")), "[{'name':'lib','mountPath':'/m'}]");
    assert_non_null(parts_named(json_object_get(main_, "env"), "name", "TF_CONFIG"));
    assert_true(parts_is(parts_named(json_object_get(main_, "env"), "name", "A"), "value", "1"));
    json_decref(pod);
    json_decref(accelerators);
    tfjob_destroy(&job);
    world_free(&world);
}

/*  Linux takes 128 KiB as one variable: more is refused before it is asked for, and sparse there is room. */
static void test_too_many_for_one_variable(void **state)
{
    (void)state;
    world_t world;
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        tfjob_t *job = NULL;
        json_t *pod = NULL;
        char *spec = tt_sprintf("{'enableDynamicWorker':%s,'tfReplicaSpecs':{'Worker':{'replicas':4096,'template':T},"
                                "'Evaluator':{'replicas':4096,'template':T}}}",
            dynamic ? "true" : "false");
        world_init(&world, spec);
        assert_ok(tfjob_from_json(&job, world.job));
        const tt_status_t status =
            tfjob_build_pod(&pod, job, world.job, &(tfjob_place_t){.type = TFJOB_WORKER, .index = 0}, NULL);
        assert_int_equal(status, dynamic ? TT_OK : TT_INVALID);
        if (!dynamic)
            assert_non_null(strstr(tt_err_text(), "TF_CONFIG of 8192 replicas has"));
        json_decref(pod);
        tfjob_destroy(&job);
        world_free(&world);
        free(spec);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dense_knows_everybody),
        cmocka_unit_test(test_sparse_knows_who_is_needed),
        cmocka_unit_test(test_who_is_alone_gets_none),
        cmocka_unit_test(test_a_pod_is_its_template_and_its_place),
        cmocka_unit_test(test_restart_policies),
        cmocka_unit_test(test_a_service_has_the_name_and_the_labels_of_its_pod),
        cmocka_unit_test(test_what_comes_with_a_resource),
        cmocka_unit_test(test_too_many_for_one_variable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
