/*  What becomes of a TFJob: who decides, restarts, clean-up, times, conditions and counts. */
#include "tests/k8s/tfjob/world.h"

static bool s_happened(const world_t *w, const char *event)
{
    return strstr(w->events, event) != NULL;
}

static void s_run_all(world_t *w)
{
    for (size_t i = 0; i < w->pod_count; i++) {
        const char *phase = json_string_value(json_object_get(json_object_get(w->pods[i], "status"), "phase"));
        if (!phase)
            world_run(w, json_string_value(json_object_get(json_object_get(w->pods[i], "metadata"), "name")));
    }
}

/*  Made, running, at rest. */
static void s_start(world_t *w, const char *spec)
{
    world_init(w, spec);
    assert_true(world_round(w));
    s_run_all(w);
    world_settle(w, 20);
    assert_string_equal(world_last(w), "Running");
}

#define PS_WORKERS "{'tfReplicaSpecs':{'PS':{'template':T},'Worker':{'replicas':2,'template':T}}}"

static void test_from_created_to_succeeded(void **state)
{
    (void)state;
    world_t w;
    world_init(&w, PS_WORKERS);
    assert_true(world_round(&w));
    assert_int_equal(w.pod_count, 3);
    assert_int_equal(w.service_count, 3);
    assert_non_null(world_service(&w, "mnist-worker-1"));
    assert_string_equal(world_last(&w), "Created");
    assert_string_equal(world_condition(&w, "Created", "reason"), "TFJobCreated");
    assert_string_equal(world_condition(&w, "Created", "message"), "TFJob mnist is created.");
    assert_string_equal(world_text(&w, "startTime"), "2027-01-15T08:00:00Z");
    assert_true(world_round(&w)); /* who decides is known by now */
    assert_string_equal(world_text(&w, "chiefUID"), "u5");
    assert_false(world_round(&w));
    s_run_all(&w);
    w.now_s += 5;
    world_settle(&w, 20);
    assert_string_equal(world_last(&w), "Running");
    assert_string_equal(world_condition(&w, "Running", "message"), "TFJob ns/mnist is running.");
    assert_int_equal(world_count(&w, "Worker", "active"), 2);
    assert_int_equal(world_count(&w, "PS", "active"), 1);
    world_end(&w, "mnist-worker-1", 0); /* its part is done, the job's is not */
    world_settle(&w, 20);
    assert_string_equal(world_last(&w), "Running");
    assert_int_equal(world_count(&w, "Worker", "succeeded"), 1);
    world_end(&w, "mnist-worker-0", 0);
    world_settle(&w, 20);
    assert_string_equal(world_last(&w), "Succeeded");
    assert_string_equal(world_condition(&w, "Succeeded", "message"), "TFJob ns/mnist successfully completed.");
    assert_string_equal(world_condition(&w, "Running", "status"), "False");
    assert_string_equal(world_text(&w, "completionTime"), "2027-01-15T08:00:05Z");
    assert_null(world_pod(&w, "mnist-ps-0")); /* the parameter server is not left running */
    assert_non_null(world_pod(&w, "mnist-worker-0"));
    assert_int_equal(w.service_count, 0);
    assert_int_equal(world_count(&w, "PS", "succeeded"), 1); /* who was active succeeded with it */
    assert_int_equal(world_count(&w, "Worker", "succeeded"), 2);
    assert_int_equal(world_count(&w, "PS", "active"), 0);
    assert_true(s_happened(&w, "Normal TFJobCreated TFJob mnist is created.\n"));
    assert_true(s_happened(&w, "Normal TFJobRunning TFJob ns/mnist is running.\n"));
    assert_true(s_happened(&w, "Normal TFJobSucceeded "));
    world_free(&w);
}

static void s_decides(const char *spec, const char *const *ends, const char *last)
{
    world_t w;
    s_start(&w, spec);
    for (; *ends; ends++)
        world_end(&w, *ends, 0);
    world_settle(&w, 20);
    assert_string_equal(world_last(&w), last);
    world_free(&w);
}

static void test_who_decides(void **state)
{
    (void)state;
    static const char chief[] = "{'tfReplicaSpecs':{'Chief':{'template':T},'Worker':{'replicas':2,'template':T}}}";
    static const char master[] = "{'tfReplicaSpecs':{'master':{'template':T},'Worker':{'template':T}}}";
    static const char all[] = "{'successPolicy':'AllWorkers','tfReplicaSpecs':{'Worker':{'replicas':2,'template':T},"
                              "'Evaluator':{'template':T}}}";
    s_decides(chief, (const char *[]){"mnist-worker-0", "mnist-worker-1", NULL}, "Running");
    s_decides(chief, (const char *[]){"mnist-chief-0", NULL}, "Succeeded");
    s_decides(master, (const char *[]){"mnist-worker-0", NULL}, "Running");
    s_decides(master, (const char *[]){"mnist-master-0", NULL}, "Succeeded");
    s_decides(PS_WORKERS, (const char *[]){"mnist-worker-1", NULL}, "Running");
    s_decides(PS_WORKERS, (const char *[]){"mnist-worker-0", NULL}, "Succeeded");
    s_decides(all, (const char *[]){"mnist-worker-0", NULL}, "Running");
    s_decides(all, (const char *[]){"mnist-worker-0", "mnist-worker-1", NULL}, "Succeeded");
}

/*  Who helps and ended well has done its part: no other comes in its place, however long the job goes on. */
static void test_who_ended_well_stays(void **state)
{
    (void)state;
    world_t w;
    s_start(&w,
        "{'tfReplicaSpecs':{'Chief':{'template':T},'Worker':{'replicas':2,'restartPolicy':'OnFailure','template':T}}}");
    world_end(&w, "mnist-worker-1", 0);
    w.now_s += 3600;
    world_settle(&w, 20);
    assert_non_null(world_pod(&w, "mnist-worker-1"));
    assert_int_equal(world_count(&w, "Worker", "succeeded"), 1);
    assert_string_equal(world_last(&w), "Running");
    world_free(&w);
}

/*  Never: whoever fails has failed the job; the chief's success is final all the same. */
static void test_a_failure_is_the_jobs(void **state)
{
    (void)state;
    world_t w;
    s_start(&w, PS_WORKERS);
    world_end(&w, "mnist-ps-0", 3);
    world_settle(&w, 20);
    assert_string_equal(world_last(&w), "Failed");
    assert_string_equal(world_condition(&w, "Failed", "reason"), "TFJobFailed");
    assert_string_equal(world_condition(&w, "Failed", "message"),
        "TFJob mnist has failed because 1 PS replica(s) failed: mnist-ps-0 exited with code 3 (Error)");
    assert_int_equal(world_count(&w, "PS", "failed"), 1);
    assert_null(world_pod(&w, "mnist-worker-0"));
    assert_non_null(world_pod(&w, "mnist-ps-0"));
    assert_true(s_happened(&w, "Warning TFJobFailed "));
    world_free(&w);
    s_start(&w, "{'tfReplicaSpecs':{'Chief':{'template':T},'Worker':{'template':T}}}");
    world_end(&w, "mnist-chief-0", 0);
    world_end(&w, "mnist-worker-0", 1);
    world_settle(&w, 20);
    assert_string_equal(world_last(&w), "Succeeded");
    world_free(&w);
}

#define BY_CODE "{'tfReplicaSpecs':{'Worker':{'replicas':3,'restartPolicy':'ExitCode','template':T}}}"

static void test_by_exit_code(void **state)
{
    (void)state;
    world_t w;
    s_start(&w, BY_CODE);
    world_end(&w, "mnist-worker-2", 137);
    assert_true(world_round(&w));
    assert_string_equal(world_last(&w), "Restarting");
    assert_string_equal(world_condition(&w, "Running", "type"), ""); /* each takes the other's place */
    assert_string_equal(world_condition(&w, "Restarting", "message"),
        "TFJob mnist is restarting because 1 Worker replica(s) failed: mnist-worker-2 exited with code 137 (Error)");
    world_settle(&w, 20);
    assert_non_null(world_pod(&w, "mnist-worker-2"));
    assert_non_null(world_service(&w, "mnist-worker-2"));
    assert_string_equal(world_last(&w), "Restarting"); /* till it runs */
    assert_true(s_happened(&w, "Normal ExitedWithCode Pod: ns.mnist-worker-2 exited with code 137\n"));
    s_run_all(&w);
    world_settle(&w, 20);
    assert_string_equal(world_last(&w), "Running");
    assert_string_equal(world_condition(&w, "Restarting", "type"), "");
    world_end(&w, "mnist-worker-1", 139);
    world_settle(&w, 20);
    assert_string_equal(world_last(&w), "Failed");
    assert_non_null(strstr(world_condition(&w, "Failed", "message"), "exited with code 139"));
    world_free(&w);
}

static void test_a_restart_of_the_one_that_decides_is_counted_once(void **state)
{
    (void)state;
    world_t w;
    s_start(&w, "{'runPolicy':{'backoffLimit':1},'tfReplicaSpecs':{'Chief':{'restartPolicy':'ExitCode','template':T},"
                "'Worker':{'restartPolicy':'OnFailure','template':T}}}");
    world_end(&w, "mnist-chief-0", 143);
    world_settle(&w, 20);
    s_run_all(&w);
    world_settle(&w, 20);
    assert_string_equal(world_last(&w), "Running");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(w.job, "status"), "restarts")), 1);
    world_end(&w, "mnist-chief-0", 143);
    world_settle(&w, 20);
    assert_string_equal(world_last(&w), "Failed");
    assert_non_null(strstr(world_condition(&w, "Failed", "message"), "it has reached the specified backoff limit (1)"));
    world_free(&w);
}

static void test_the_kubelets_restarts_count_too(void **state)
{
    (void)state;
    world_t w;
    s_start(
        &w, "{'backoffLimit':3,'tfReplicaSpecs':{'Worker':{'replicas':2,'restartPolicy':'OnFailure','template':T}}}");
    world_again(&w, "mnist-worker-0", 2);
    world_settle(&w, 20);
    assert_string_equal(world_last(&w), "Running");
    world_again(&w, "mnist-worker-1", 1);
    world_settle(&w, 20);
    assert_string_equal(world_last(&w), "Failed");
    assert_int_equal(w.pod_count, 0);
    world_free(&w);
}

static void s_cleaned(const char *policy, size_t pods, size_t services)
{
    world_t w;
    char *spec = tt_sprintf("{'runPolicy':{'cleanPodPolicy':'%s'},'tfReplicaSpecs':{'PS':{'template':T},'Worker':{"
                            "'template':T}}}",
        policy);
    s_start(&w, spec);
    world_end(&w, "mnist-worker-0", 0);
    world_settle(&w, 20);
    assert_string_equal(world_last(&w), "Succeeded");
    assert_int_equal(w.pod_count, pods);
    assert_int_equal(w.service_count, services);
    free(spec);
    world_free(&w);
}

static void test_every_clean_pod_policy(void **state)
{
    (void)state;
    s_cleaned("All", 0, 0);
    s_cleaned("Running", 1, 0);
    s_cleaned("", 1, 0);
    s_cleaned("None", 2, 2); /* those that are left find each other still */
}

static void test_deadline_and_time_to_live(void **state)
{
    (void)state;
    world_t w;
    world_init(&w, "{'runPolicy':{'activeDeadlineSeconds':60,'ttlSecondsAfterFinished':100,'cleanPodPolicy':'All'},"
                   "'tfReplicaSpecs':{'Worker':{'template':T}}}");
    world_round(&w);
    assert_int_equal(world_again_s(&w), 60); /* from when it was first looked at: waiting for room counts */
    w.now_s += 60;
    assert_true(world_round(&w));
    assert_string_equal(world_last(&w), "Failed");
    assert_string_equal(world_condition(&w, "Failed", "message"),
        "TFJob mnist has failed because it was active longer than specified deadline (60 s)");
    const front_end_t end = tfjob_front.end(json_object_get(w.job, "status"));
    assert_true(end.ended && !end.well);
    assert_string_equal(end.reason, "DeadlineExceeded"); /* for metrics, and the exit code of tutti run */
    world_round(&w);
    assert_int_equal(w.pod_count, 0);
    assert_int_equal(world_again_s(&w), 100);
    w.now_s += 100;
    world_round(&w);
    assert_true(w.gone);
    world_free(&w);
}

static void test_an_invalid_job_says_why(void **state)
{
    (void)state;
    world_t w;
    world_init(&w, "{'tfReplicaSpecs':{'Worker':{'template':{'spec':{'containers':[{'name':'x','image':'x'}]}}}}}");
    world_settle(&w, 20);
    assert_string_equal(world_last(&w), "Failed");
    assert_string_equal(world_condition(&w, "Failed", "reason"), "InvalidTFJobSpec");
    assert_string_equal(world_condition(&w, "Failed", "message"),
        "TFJob mnist has failed because the spec is invalid: spec.tfReplicaSpecs.Worker.template has no container "
        "named "
        "tensorflow");
    assert_int_equal(w.pod_count + w.service_count, 0);
    assert_int_equal(w.writes, 1);
    world_free(&w);
}

/*  As another operator may have begun it: nothing of it is failed or ended for a rule of ours, and when it is mended it goes on. */
static void test_an_invalid_job_that_runs_is_left_alone(void **state)
{
    (void)state;
    world_t w;
    s_start(&w, "{'tfReplicaSpecs':{'Worker':{'replicas':2,'template':T}}}");
    world_edit(&w, "{'tfReplicaSpecs':{'Worker':{'replicas':2,'template':T},'Boss':{'template':T}}}");
    world_settle(&w, 20);
    assert_int_equal(w.pod_count, 2);
    assert_int_equal(w.service_count, 2);
    assert_string_equal(world_last(&w), "SpecRefused");
    assert_string_equal(world_condition(&w, "Running", "status"), "True");
    assert_non_null(strstr(w.events, "Warning InvalidTFJobSpec spec.tfReplicaSpecs.Boss: not one of Chief"));
    world_end(&w, "mnist-worker-1", 1);
    world_settle(&w, 20);
    assert_int_equal(w.pod_count, 2);
    assert_string_equal(world_condition(&w, "Failed", "status"), "");
    world_remove(&w, world_pod(&w, "mnist-worker-0"));
    world_remove(&w, world_pod(&w, "mnist-worker-1"));
    world_settle(&w, 20); /* no pod at this moment */
    assert_string_equal(world_condition(&w, "Failed", "status"), "");
    assert_int_equal(w.pod_count, 0);
    world_edit(&w, "{'tfReplicaSpecs':{'Worker':{'replicas':2,'template':T}}}");
    world_settle(&w, 20);
    assert_string_equal(world_condition(&w, "SpecRefused", "status"), "");
    assert_int_equal(w.pod_count, 2);
    assert_string_equal(world_condition(&w, "Running", "status"), "True");
    world_free(&w);
}

static void test_fewer_and_more_workers(void **state)
{
    (void)state;
    world_t w;
    s_start(&w, "{'tfReplicaSpecs':{'Worker':{'replicas':3,'template':T}}}");
    world_edit(&w, "{'tfReplicaSpecs':{'Worker':{'replicas':1,'template':T}}}");
    world_settle(&w, 20);
    assert_int_equal(w.pod_count, 1);
    assert_int_equal(w.service_count, 1);
    world_edit(&w, "{'tfReplicaSpecs':{'Worker':{'replicas':2,'template':T}}}");
    world_settle(&w, 20);
    assert_non_null(world_pod(&w, "mnist-worker-1"));
    assert_int_equal(w.service_count, 2);
    world_free(&w);
}

static void test_suspended_and_resumed(void **state)
{
    (void)state;
    world_t w;
    world_init(&w, "{'runPolicy':{'suspend':true},'tfReplicaSpecs':{'Worker':{'replicas':2,'template':T}}}");
    world_settle(&w, 20);
    assert_string_equal(world_last(&w), "Suspended");
    assert_int_equal(w.pod_count, 0);
    assert_string_equal(world_text(&w, "startTime"), "");
    world_edit(&w, "{'runPolicy':{'suspend':false},'tfReplicaSpecs':{'Worker':{'replicas':2,'template':T}}}");
    world_round(&w);
    s_run_all(&w);
    world_settle(&w, 20);
    assert_string_equal(world_last(&w), "Running");
    assert_int_equal(w.pod_count, 2);
    assert_string_not_equal(world_text(&w, "startTime"), "");
    assert_true(s_happened(&w, "Normal TFJobResumed "));
    world_edit(&w, "{'runPolicy':{'suspend':true},'tfReplicaSpecs':{'Worker':{'replicas':2,'template':T}}}");
    world_settle(&w, 20);
    assert_string_equal(world_last(&w), "Suspended");
    assert_string_equal(world_condition(&w, "Running", "status"), "False");
    assert_int_equal(w.pod_count, 0);
    world_free(&w);
}

static void test_a_refused_template_is_a_condition(void **state)
{
    (void)state;
    world_t w;
    world_init(&w, PS_WORKERS);
    w.refusal = (front_refusal_t){.group = TFJOB_WORKER, .words = "image: required", .reason = "Invalid"};
    world_settle(&w, 20);
    assert_string_equal(world_last(&w), "TemplateRefused");
    assert_string_equal(world_condition(&w, "TemplateRefused", "message"), "image: required");
    assert_int_equal(w.pod_count, 1); /* the others are made */
    assert_true(s_happened(&w, "Warning TemplateRefused Worker: image: required\n"));
    w.refusal = (front_refusal_t){0};
    world_settle(&w, 20);
    assert_string_equal(world_last(&w), "Created");
    assert_int_equal(w.pod_count, 3);
    world_free(&w);
}

static void test_a_policy_of_the_template_is_overruled_aloud(void **state)
{
    (void)state;
    world_t w;
    world_init(&w, "{'tfReplicaSpecs':{'Worker':{'template':{'spec':{'restartPolicy':'Always','containers':[{'name':"
                   "'tensorflow','image':'x'}]}}}}}");
    world_settle(&w, 20);
    assert_true(s_happened(&w, "Warning SettedPodTemplateRestartPolicy Restart policy in the pod template of Worker"));
    world_free(&w);
}

/*  A node that goes away is nobody's fault: with a policy that restarts, the place is taken again. */
static void test_a_lost_node(void **state)
{
    (void)state;
    world_t w;
    s_start(&w, "{'runPolicy':{'backoffLimit':0},'tfReplicaSpecs':{'Worker':{'replicas':2,'restartPolicy':'OnFailure',"
                "'template':T}}}");
    json_object_set_new(world_pod(&w, "mnist-worker-1"), "status",
        json_of("{'phase':'Failed','reason':'Evicted','conditions':[{'type':'DisruptionTarget','status':'True'}]}"));
    world_settle(&w, 20);
    assert_string_equal(world_last(&w), "Restarting");
    s_run_all(&w);
    world_settle(&w, 20);
    assert_string_equal(world_last(&w), "Running");
    world_free(&w);
}

/*  Nobody knows how it is: nothing follows, but the operator goes on. */
static void test_a_pod_of_which_nothing_is_known(void **state)
{
    (void)state;
    world_t w;
    s_start(&w, PS_WORKERS);
    json_object_set_new(world_pod(&w, "mnist-worker-1"), "status", json_of("{'phase':'Unknown'}"));
    world_settle(&w, 20);
    assert_string_equal(world_last(&w), "Running");
    assert_int_equal(w.pod_count, 3);
    assert_int_equal(world_count(&w, "Worker", "active"), 1);
    world_free(&w);
}

/*  In place of ours what Kubeflow's training operator labels pods by, and no note of ours. */
static void s_as_kubeflows(const json_t *object)
{
    static const char *const keys[] = {"job-name", "replica-type", "replica-index"};
    json_t *metadata = json_object_get(object, "metadata"), *old = json_object_get(metadata, "labels");
    json_t *labels = json_pack("{s:s}", "training.kubeflow.org/operator-name", "tfjob-controller");
    for (size_t i = 0; i < TT_COUNT(keys); i++) {
        char *key = tt_sprintf("training.kubeflow.org/%s", keys[i]);
        json_object_set(labels, key, json_object_get(old, keys[i]));
        free(key);
    }
    json_object_set_new(metadata, "labels", labels);
    json_object_del(metadata, "annotations");
}

/*  A job that runs in such pods is as whole as one in ours; a service made for one of them selects by the labels that it has. */
static void test_pods_of_the_training_operator(void **state)
{
    (void)state;
    world_t w;
    s_start(&w, "{'tfReplicaSpecs':{'Worker':{'replicas':2,'restartPolicy':'ExitCode','template':T}}}");
    for (size_t i = 0; i < w.pod_count; i++)
        s_as_kubeflows(w.pods[i]);
    for (size_t i = 0; i < w.service_count; i++)
        s_as_kubeflows(w.services[i]);
    assert_false(world_round(&w));
    assert_int_equal(world_count(&w, "Worker", "active"), 2);
    world_remove_service(&w, 0);
    world_remove_service(&w, 0);
    world_end(&w, "mnist-worker-1", 137); /* and the other's goes on */
    world_settle(&w, 20);
    assert_json(json_incref(json_object_get(json_object_get(world_service(&w, "mnist-worker-0"), "spec"), "selector")),
        "{'training.kubeflow.org/operator-name':'tfjob-controller','training.kubeflow.org/job-name':'mnist',"
        "'training.kubeflow.org/replica-type':'worker','training.kubeflow.org/replica-index':'0'}");
    w.now_s += 5;
    world_settle(&w, 20);
    s_run_all(&w);
    world_settle(&w, 20);
    assert_string_equal(world_last(&w), "Running");
    assert_int_equal(w.pod_count, 2);
    world_end(&w, "mnist-worker-0", 0);
    world_settle(&w, 20);
    assert_string_equal(world_last(&w), "Succeeded");
    world_free(&w);
}

/*  As tf-operator labelled them till version 1.0.0. */
static void s_as_tf_operators(const json_t *object)
{
    json_t *metadata = json_object_get(object, "metadata"), *old = json_object_get(metadata, "labels");
    json_t *labels = json_pack("{s:s, s:s, s:s, s:s, s:O, s:O}", "group-name", "kubeflow.org", "controller-name",
        "tf-operator", "job-name", "mnist", "tf-job-name", "mnist", "tf-replica-type",
        json_object_get(old, "replica-type"), "tf-replica-index", json_object_get(old, "replica-index"));
    json_object_set_new(metadata, "labels", labels);
    json_object_del(metadata, "annotations");
}

static json_t *s_labels_of(const json_t *object)
{
    return json_object_get(json_object_get(object, "metadata"), "labels");
}

static json_t *s_selector_of(const json_t *service)
{
    return json_object_get(json_object_get(service, "spec"), "selector");
}

static void s_found_by(const json_t *pod, const json_t *selector)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)selector, key, value)
        assert_true(json_equal(value, json_object_get(s_labels_of(pod), key)));
}

/*  They go on; whoever comes in the place of one is found by the service that is there, which selects by all of its labels, and a
 *  service made for one of them finds it and whoever comes after it. */
static void test_pods_of_tf_operator(void **state)
{
    (void)state;
    world_t w;
    s_start(&w, "{'tfReplicaSpecs':{'Worker':{'replicas':2,'restartPolicy':'ExitCode','template':T}}}");
    for (size_t i = 0; i < w.pod_count; i++)
        s_as_tf_operators(w.pods[i]);
    for (size_t i = 0; i < w.service_count; i++) {
        s_as_tf_operators(w.services[i]);
        json_object_set(json_object_get(w.services[i], "spec"), "selector", s_labels_of(w.services[i]));
    }
    assert_false(world_round(&w));
    assert_int_equal(world_count(&w, "Worker", "active"), 2);
    world_end(&w, "mnist-worker-1", 137);
    world_settle(&w, 20);
    s_found_by(world_pod(&w, "mnist-worker-1"), s_selector_of(world_service(&w, "mnist-worker-1")));
    s_run_all(&w);
    world_settle(&w, 20);
    world_remove_service(&w, 0);
    world_remove_service(&w, 0);
    world_settle(&w, 20);
    for (int life = 0; life < 3; life++) {
        s_found_by(world_pod(&w, "mnist-worker-0"), s_selector_of(world_service(&w, "mnist-worker-0")));
        s_found_by(world_pod(&w, "mnist-worker-1"), s_selector_of(world_service(&w, "mnist-worker-1")));
        world_end(&w, "mnist-worker-0", 137);
        world_settle(&w, 20);
        s_run_all(&w);
        world_settle(&w, 20);
    }
    world_end(&w, "mnist-worker-0", 0);
    world_settle(&w, 20);
    assert_string_equal(world_last(&w), "Succeeded");
    world_free(&w);
}

/*  Labels of a release that we do not know: whatever becomes of the job, they stay as they are, and nobody takes their names. */
static void s_is_left(const char *edit, const char *last, size_t services)
{
    world_t w;
    s_start(&w, PS_WORKERS);
    json_object_set_new(s_labels_of(world_pod(&w, "mnist-ps-0")), "replica-type", json_string("boss"));
    json_object_set_new(s_labels_of(world_service(&w, "mnist-ps-0")), "replica-type", json_string("boss"));
    json_object_del(s_labels_of(world_pod(&w, "mnist-worker-1")), "replica-type");
    json_object_del(s_labels_of(world_service(&w, "mnist-worker-1")), "replica-type");
    world_settle(&w, 20);
    assert_int_equal(w.pod_count, 3);
    assert_string_equal(world_last(&w), "Running");
    world_edit(&w, edit);
    world_settle(&w, 20);
    assert_string_equal(world_last(&w), last);
    assert_int_equal(w.pod_count, 2);
    assert_int_equal(w.service_count, services);
    for (int i = 0; i < 2; i++) {
        const json_t *pod = world_pod(&w, i ? "mnist-worker-1" : "mnist-ps-0");
        assert_non_null(pod);
        assert_null(json_object_get(json_object_get(pod, "metadata"), "deletionTimestamp"));
    }
    world_free(&w);
}

static void test_labels_that_nobody_knows_are_left_alone(void **state)
{
    (void)state;
    s_is_left(
        "{'runPolicy':{'suspend':true},'tfReplicaSpecs':{'PS':{'template':T},'Worker':{'replicas':2,'template':T}}}",
        "Suspended", 3);
    s_is_left("{'runPolicy':{'cleanPodPolicy':'All','activeDeadlineSeconds':0},'tfReplicaSpecs':{'PS':{'template':T},"
              "'Worker':{'replicas':2,'template':T}}}",
        "Failed", 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_from_created_to_succeeded),
        cmocka_unit_test(test_who_decides),
        cmocka_unit_test(test_who_ended_well_stays),
        cmocka_unit_test(test_a_failure_is_the_jobs),
        cmocka_unit_test(test_by_exit_code),
        cmocka_unit_test(test_a_restart_of_the_one_that_decides_is_counted_once),
        cmocka_unit_test(test_the_kubelets_restarts_count_too),
        cmocka_unit_test(test_every_clean_pod_policy),
        cmocka_unit_test(test_deadline_and_time_to_live),
        cmocka_unit_test(test_an_invalid_job_says_why),
        cmocka_unit_test(test_an_invalid_job_that_runs_is_left_alone),
        cmocka_unit_test(test_fewer_and_more_workers),
        cmocka_unit_test(test_suspended_and_resumed),
        cmocka_unit_test(test_a_refused_template_is_a_condition),
        cmocka_unit_test(test_a_policy_of_the_template_is_overruled_aloud),
        cmocka_unit_test(test_a_lost_node),
        cmocka_unit_test(test_pods_of_tf_operator),
        cmocka_unit_test(test_labels_that_nobody_knows_are_left_alone),
        cmocka_unit_test(test_a_pod_of_which_nothing_is_known),
        cmocka_unit_test(test_pods_of_the_training_operator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
