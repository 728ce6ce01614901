/*  A TFJob's JSON: both places of what is about runs, keys in any case, defaults, and what is wrong with it in words. */
#include "tests/k8s/tfjob/world.h"

#define WORKERS(more) "{'tfReplicaSpecs':{'Worker':{'replicas':2,'template':T}}" more "}"

static tfjob_t *s_decode(const char *spec)
{
    return world_decode("v1", "{'name':'mnist','namespace':'ns','uid':'u'}", spec);
}

static void s_invalid(const char *spec, const char *words)
{
    assert_invalid(s_decode(spec), words);
}

static void test_what_is_not_said_is_the_default(void **state)
{
    (void)state;
    tfjob_t *job = s_decode("{'tfReplicaSpecs':{'Worker':{'template':T}}}");
    assert_null(job->invalid);
    assert_true(job->types[TFJOB_WORKER].there);
    assert_false(job->types[TFJOB_PS].there);
    assert_int_equal(job->types[TFJOB_WORKER].replicas, 1);
    assert_int_equal(job->types[TFJOB_WORKER].restart, TFJOB_NEVER);
    assert_int_equal(job->types[TFJOB_WORKER].port, 2222);
    assert_int_equal(job->clean, TT_CLEAN_RUNNING);
    assert_int_equal(job->deadline_s, -1);
    assert_int_equal(job->ttl_s, -1);
    assert_int_equal(job->backoff_limit, -1);
    assert_false(job->suspend || job->dynamic || job->all_workers || job->deleting);
    tfjob_destroy(&job);
}

static void test_keys_come_in_any_case(void **state)
{
    (void)state;
    tfjob_t *job =
        s_decode("{'tfReplicaSpecs':{'ps':{'replicas':3,'template':T},'WORKER':{'template':T},"
                 "'chief':{'restartPolicy':'ExitCode','template':T},'evaluator':{'replicas':0,'template':T}}}");
    assert_null(job->invalid);
    assert_int_equal(job->types[TFJOB_PS].replicas, 3);
    assert_int_equal(job->types[TFJOB_CHIEF].restart, TFJOB_EXIT_CODE);
    assert_int_equal(job->types[TFJOB_EVALUATOR].replicas, 0);
    assert_int_equal(tfjob_decider(job), TFJOB_CHIEF);
    assert_int_equal(tfjob_replicas(job), 5);
    tfjob_destroy(&job);
}

static void test_run_policy_wins_over_the_old_place(void **state)
{
    (void)state;
    tfjob_t *job = s_decode(WORKERS(",'cleanPodPolicy':'All','ttlSecondsAfterFinished':10,'activeDeadlineSeconds':20,"
                                    "'backoffLimit':3,'runPolicy':{'cleanPodPolicy':'None','backoffLimit':4,"
                                    "'suspend':true},'successPolicy':'AllWorkers','enableDynamicWorker':true"));
    assert_null(job->invalid);
    assert_int_equal(job->clean, TT_CLEAN_NONE);
    assert_int_equal(job->backoff_limit, 4);
    assert_int_equal(job->ttl_s, 10);
    assert_int_equal(job->deadline_s, 20);
    assert_true(job->suspend && job->dynamic && job->all_workers);
    tfjob_destroy(&job);
}

static void check_elsewhere(const char *policy, bool elsewhere)
{
    char *spec = tt_sprintf(WORKERS(",'runPolicy':%s"), policy);
    tfjob_t *job = s_decode(spec);
    assert_null(job->invalid);
    assert_int_equal(tfjob_front.job(job).embedded, elsewhere);
    tfjob_destroy(&job);
    free(spec);
}

static void test_who_looks_after_it(void **state)
{
    (void)state;
    check_elsewhere("{}", false);
    check_elsewhere("{'managedBy':'kubeflow.org/training-operator'}", false);
    check_elsewhere("{'managedBy':'kueue.x-k8s.io/multikueue'}", true);
}

static void test_a_port_and_a_policy_of_the_template(void **state)
{
    (void)state;
    static const char *const policies[] = {"Always", "OnFailure", "Never", "ExitCode"};
    for (size_t i = 0; i < TT_COUNT(policies); i++) {
        char *spec =
            tt_sprintf("{'tfReplicaSpecs':{'Worker':{'restartPolicy':'%s','template':{'spec':{"
                       "'restartPolicy':'Never','containers':[{'name':'side','image':'x'},{'name':'tensorflow',"
                       "'image':'x','ports':[{'name':'tfjob-port','containerPort':4000}]}]}}}}}",
                policies[i]);
        tfjob_t *job = s_decode(spec);
        assert_null(job->invalid);
        assert_int_equal(job->types[TFJOB_WORKER].port, 4000);
        assert_int_equal(job->types[TFJOB_WORKER].restart, i);
        assert_int_equal(job->types[TFJOB_WORKER].overruled, i != TFJOB_NEVER);
        tfjob_destroy(&job);
        free(spec);
    }
}

static void test_what_is_wrong_is_said(void **state)
{
    (void)state;
    s_invalid("{}", "expected spec.tfReplicaSpecs");
    s_invalid("{'tfReplicaSpecs':[]}", "expected spec.tfReplicaSpecs");
    s_invalid("{'tfReplicaSpecs':{'Worker':{}}}", "expected spec.tfReplicaSpecs.Worker.template");
    s_invalid("{'tfReplicaSpecs':{'Worker':7}}", "expected a mapping");
    s_invalid("{'tfReplicaSpecs':{'Worker':{'template':{'spec':{'containers':[]}}}}}", "template.spec.containers");
    s_invalid("{'tfReplicaSpecs':{'Worker':{'template':{'spec':{'containers':[{'name':'main','image':'x'}]}}}}}",
        "no container named tensorflow");
    s_invalid("{'tfReplicaSpecs':{'Worker':{'template':{'spec':{'containers':[{'name':'tensorflow'}]}}}}}",
        "containers[0]: expected a name and an image");
    s_invalid("{'tfReplicaSpecs':{'Boss':{'template':T}}}", "not one of Chief, Evaluator");
    s_invalid("{'tfReplicaSpecs':{'Worker':{'template':T},'worker':{'template':T}}}", "two of this type");
    s_invalid(
        "{'tfReplicaSpecs':{'Chief':{'template':T},'Master':{'template':T}}}", "more than one of Chief and Master");
    s_invalid(
        "{'tfReplicaSpecs':{'Chief':{'replicas':2,'template':T}}}", "Chief.replicas: expected a number from 1 to 1");
    s_invalid("{'tfReplicaSpecs':{'PS':{'template':T}}}", "nobody says when the job is done");
    s_invalid(
        "{'tfReplicaSpecs':{'Worker':{'replicas':0,'template':T}}}", "replicas: expected a number from 1 to 4096");
    s_invalid("{'tfReplicaSpecs':{'Worker':{'replicas':'2','template':T}}}", "replicas: expected a number");
    s_invalid("{'tfReplicaSpecs':{'Worker':{'restartPolicy':'Sometimes','template':T}}}",
        "'Sometimes' is none of Always, OnFailure, Never, ExitCode");
    s_invalid("{'tfReplicaSpecs':{'Worker':{'restartPolicy':3,'template':T}}}", "restartPolicy: expected text");
    s_invalid(WORKERS(",'runPolicy':[]"), "spec.runPolicy: expected a mapping");
    s_invalid(WORKERS(",'runPolicy':{'cleanPodPolicy':'Some'}"), "spec.runPolicy.cleanPodPolicy: 'Some' is none of");
    s_invalid(WORKERS(",'cleanPodPolicy':'all'"), "'all' is none of Running, All, ALL, None; did you mean 'All'?");
    s_invalid(WORKERS(",'cleanPodPolicy':'Some'"), "spec.cleanPodPolicy: 'Some' is none of Running, All");
    s_invalid(WORKERS(",'runPolicy':{'backoffLimit':-1}"), "spec.runPolicy.backoffLimit: expected a number from 0");
    s_invalid(WORKERS(",'runPolicy':{'suspend':1}"), "spec.runPolicy.suspend: expected true or false");
    s_invalid(WORKERS(",'successPolicy':'Most'"), "spec.successPolicy: 'Most' is none of AllWorkers");
    s_invalid(
        "{'tfReplicaSpecs':{'Worker':{'template':{'spec':{'containers':[{'name':'tensorflow','image':'x','ports':["
        "{'name':'tfjob-port','containerPort':70000}]}]}}}}}",
        "port tfjob-port.containerPort: expected a number from 1 to 65535");
}

static void test_names_are_those_of_services(void **state)
{
    (void)state;
    const char *spec = "{'tfReplicaSpecs':{'Worker':{'replicas':11,'template':T}}}";
    tfjob_t *job = world_decode("v1", "{'name':'a23456789012345678901234567890123456789012345678901234'}", spec);
    assert_non_null(strstr(job->invalid, "-worker-10' would be a service's name"));
    tfjob_destroy(&job);
    job = world_decode("v1", "{'name':'a2345678901234567890123456789012345678901234567890123'}", spec);
    assert_null(job->invalid);
    tfjob_destroy(&job);
    job = world_decode("v1", "{'name':'7up'}", spec);
    assert_non_null(strstr(job->invalid, "a letter first"));
    tfjob_destroy(&job);
}

static void test_other_objects_are_none(void **state)
{
    (void)state;
    static const char *const none[] = {"[]", "{", "{\"kind\":\"DIJob\",\"metadata\":{\"name\":\"x\"}}",
        "{\"apiVersion\":\"kubeflow.organic/v1\",\"kind\":\"TFJob\",\"metadata\":{\"name\":\"x\"}}",
        "{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"TFJob\",\"metadata\":{}}"};
    for (size_t i = 0; i < TT_COUNT(none); i++) {
        tfjob_t *job = NULL;
        assert_int_equal(tfjob_decode(&job, none[i], strlen(none[i])), TT_DATA);
        assert_null(job);
    }
}

static void test_the_phase_is_of_the_conditions(void **state)
{
    (void)state;
    static const struct {
        const char *conditions;
        tfjob_phase_t phase;
    } cases[] = {{"[]", TFJOB_PHASE_NONE}, {"[{'type':'Created','status':'True'}]", TFJOB_PHASE_CREATED},
        {"[{'type':'Created','status':'True'},{'type':'Running','status':'True'}]", TFJOB_PHASE_RUNNING},
        {"[{'type':'Running','status':'False'},{'type':'Succeeded','status':'True'}]", TFJOB_PHASE_SUCCEEDED},
        {"[{'type':'Failed','status':'True'},{'type':'Running','status':'True'}]", TFJOB_PHASE_FAILED},
        {"[7,{'type':'Restarting','status':'True'}]", TFJOB_PHASE_RESTARTING}};
    for (size_t i = 0; i < TT_COUNT(cases); i++) {
        tfjob_t *job = NULL;
        char *text =
            tt_sprintf("{'kind':'TFJob','metadata':{'name':'x'},'status':{'conditions':%s}}", cases[i].conditions);
        json_t *object = json_of(text);
        assert_ok(tfjob_from_json(&job, object));
        assert_int_equal(job->phase, cases[i].phase);
        tfjob_destroy(&job);
        json_decref(object);
        free(text);
    }
}

static void test_a_pod_says_how_it_is(void **state)
{
    (void)state;
    json_t *object = json_of(
        "{'metadata':{'name':'mnist-ps-1','namespace':'ns','uid':'p','resourceVersion':'7','creationTimestamp':"
        "'2027-01-15T08:00:00Z','deletionTimestamp':'2027-01-15T09:00:00Z','labels':{'group-name':'kubeflow.org','job-"
        "name':"
        "'mnist','replica-type':'ps','replica-index':'1'},'annotations':{'tutti/"
        "restarts':'3'},'ownerReferences':[{'uid':"
        "'job','controller':true}]},'spec':{'nodeName':'n','containers':[{'name':'tensorflow','ports':[{'name':'tfjob-"
        "port',"
        "'containerPort':9}]}]},'status':{'phase':'Failed','podIP':'10.1.2.3','conditions':[{'type':'DisruptionTarget',"
        "'status':'True'}],'containerStatuses':[{'name':'side','restartCount':4},{'name':'tensorflow','restartCount':2,"
        "'state':{'terminated':{'exitCode':137,'reason':'OOMKilled','message':'gone','finishedAt':"
        "'2027-01-15T08:30:00Z'}}}]}}");
    char *text = kube_dump(object);
    tfjob_pod_t *pod = NULL;
    assert_ok(tfjob_pod_decode(&pod, text, strlen(text)));
    assert_string_equal(pod->job, "mnist");
    assert_string_equal(pod->job_uid, "job");
    assert_string_equal(pod->ip, "10.1.2.3");
    assert_int_equal(pod->type, TFJOB_PS);
    assert_int_equal(pod->index, 1);
    assert_int_equal(pod->phase, POD_FAILED);
    assert_int_equal(pod->exit_code, 137);
    assert_int_equal(pod->own_restarts, 6);
    assert_int_equal(pod->restarts, 3);
    assert_int_equal(pod->port, 9);
    assert_true(pod->deleting && pod->scheduled && pod->disrupted && !pod->ready && !pod->refused);
    assert_int_equal(pod->finished_s - pod->created_s, 1800);
    assert_string_equal(pod->why, "OOMKilled");
    assert_string_equal(pod->words, "gone");
    tt_pool_free(pod);
    json_object_set_new(json_object_get(json_object_get(object, "metadata"), "labels"), "group-name", json_string("x"));
    free(text);
    text = kube_dump(object);
    assert_int_equal(tfjob_pod_decode(&pod, text, strlen(text)), TT_DATA);
    free(text);
    json_decref(object);
}

/*  The labels of one generation of Kubeflow's operators or of another's, or of several; those of its other kinds are none. */
static void check_labels(const char *labels, bool taken, tfjob_labels_t by)
{
    tfjob_pod_t *pod = NULL;
    tfjob_service_t *service = NULL;
    char *object =
        tt_sprintf("{'metadata':{'name':'n','namespace':'ns','uid':'u','resourceVersion':'1','labels':%s}}", labels);
    json_t *tree = json_of(object);
    char *text = kube_dump(tree);
    const tt_status_t status = tfjob_pod_decode(&pod, text, strlen(text));
    assert_int_equal(tfjob_service_decode(&service, text, strlen(text)), status);
    assert_int_equal(status, taken ? TT_OK : TT_DATA);
    if (taken) {
        assert_string_equal(pod->job, "mnist");
        assert_string_equal(service->job, "mnist");
        assert_int_equal(pod->type, TFJOB_WORKER);
        assert_int_equal(service->type, TFJOB_WORKER);
        assert_int_equal(pod->index, 3);
        assert_int_equal(service->index, 3);
        assert_int_equal(pod->labels, by);
        assert_int_equal(service->labels, by);
    }
    tt_pool_free(pod);
    tt_pool_free(service);
    free(text);
    json_decref(tree);
    free(object);
}

#define OF_OLD "'group-name':'kubeflow.org','job-name':'mnist','replica-type':'worker','replica-index':'3'"
#define OF_BETWEEN                                                                                          \
    "'group-name':'kubeflow.org','controller-name':'tf-operator','job-name':'mnist','tf-job-name':'mnist'," \
    "'tf-replica-type':'worker','tf-replica-index':'3'"
#define OF_TODAY(controller)                                                                           \
    "'training.kubeflow.org/operator-name':'" controller "','training.kubeflow.org/job-name':'mnist'," \
    "'training.kubeflow.org/replica-type':'worker','training.kubeflow.org/replica-index':'3'"

static void test_labels_of_either_generation(void **state)
{
    (void)state;
    check_labels("{" OF_OLD "}", true, TFJOB_LABELS_OLD);
    check_labels("{" OF_BETWEEN "}", true, TFJOB_LABELS_BETWEEN);
    check_labels("{" OF_TODAY("tfjob-controller") "}", true, TFJOB_LABELS_TODAY);
    check_labels("{" OF_OLD "," OF_TODAY("tfjob-controller") "}", true, TFJOB_LABELS_OLD);
    check_labels("{" OF_OLD "," OF_BETWEEN "," OF_TODAY("tfjob-controller") "}", true, TFJOB_LABELS_BETWEEN);
    check_labels("{'group-name':'mine','job-name':'no'," OF_TODAY("tfjob-controller") "}", true, TFJOB_LABELS_TODAY);
    check_labels("{" OF_TODAY("pytorchjob-controller") "}", false, 0);
    check_labels("{'training.kubeflow.org/operator-name':'tfjob-controller'}", false, 0);
    check_labels("{'training.kubeflow.org/job-name':'mnist'}", false, 0);
    check_labels("{'group-name':'kubeflow.org','tf-job-name':'mnist','tf-replica-type':'worker'}", false, 0);
}

/*  Of a type that we do not know, or without a number: nobody's place. */
static void test_labels_that_name_no_place(void **state)
{
    (void)state;
    static const char *const places[] = {"", ",'replica-type':'boss','replica-index':'0'", ",'replica-type':'worker'",
        ",'replica-type':'worker','replica-index':'first'", ",'tf-replica-type':'worker'"};
    for (size_t i = 0; i < TT_COUNT(places); i++) {
        tfjob_pod_t *pod = NULL;
        tfjob_service_t *service = NULL;
        char *object = tt_sprintf("{'metadata':{'name':'n','namespace':'ns','uid':'u','resourceVersion':'1','labels':{"
                                  "'group-name':'kubeflow.org','job-name':'mnist'%s}}}",
            places[i]);
        json_t *tree = json_of(object);
        char *text = kube_dump(tree);
        assert_ok(tfjob_pod_decode(&pod, text, strlen(text)));
        assert_ok(tfjob_service_decode(&service, text, strlen(text)));
        assert_int_equal(pod->type, TFJOB_TYPES);
        assert_int_equal(service->type, TFJOB_TYPES);
        tt_pool_free(pod);
        tt_pool_free(service);
        free(text);
        json_decref(tree);
        free(object);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_not_said_is_the_default),
        cmocka_unit_test(test_keys_come_in_any_case),
        cmocka_unit_test(test_run_policy_wins_over_the_old_place),
        cmocka_unit_test(test_who_looks_after_it),
        cmocka_unit_test(test_a_port_and_a_policy_of_the_template),
        cmocka_unit_test(test_what_is_wrong_is_said),
        cmocka_unit_test(test_names_are_those_of_services),
        cmocka_unit_test(test_other_objects_are_none),
        cmocka_unit_test(test_the_phase_is_of_the_conditions),
        cmocka_unit_test(test_a_pod_says_how_it_is),
        cmocka_unit_test(test_labels_of_either_generation),
        cmocka_unit_test(test_labels_that_name_no_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
