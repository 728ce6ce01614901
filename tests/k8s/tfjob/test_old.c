/*  TFJobs of v1alpha1: what is read of them, TF_CONFIG and the command of parameter servers without a template byte for byte, who
 *  decides, and what is said of them. */
#include "k8s/front/object.h"
#include "tests/k8s/tfjob/world.h"

#define OLD(more) \
    "{'RuntimeId':'rtid','replicaSpecs':[{'template':T},{'tfReplicaType':'WORKER','replicas':2,'template':T}" more "}"

static tfjob_t *s_decode_named(const char *name, const char *spec)
{
    char *meta = tt_sprintf("{'name':'%s','namespace':'NS','uid':'u'}", name);
    tfjob_t *job = world_decode("v1alpha1", meta, spec);
    free(meta);
    return job;
}

static tfjob_t *s_decode(const char *spec)
{
    return s_decode_named("J", spec);
}

/* ---- reading ------------------------------------------------------------------------------------------------------------------ */

static void test_what_is_not_said_is_the_default(void **state)
{
    (void)state;
    tfjob_t *job = s_decode_named("j", "{'replicaSpecs':[{'template':T}]}");
    assert_null(job->invalid);
    assert_true(job->old.there && job->types[TFJOB_MASTER].there);
    assert_false(job->old.default_ps || job->old.board || job->types[TFJOB_PS].there);
    assert_int_equal(job->types[TFJOB_MASTER].replicas, 1);
    assert_int_equal(job->types[TFJOB_MASTER].port, 2222);
    assert_int_equal(job->types[TFJOB_MASTER].restart, TFJOB_ALWAYS); /* Kubernetes' default */
    assert_int_equal(tfjob_decider(job), TFJOB_MASTER);
    assert_int_equal(job->old.chief_index, 0);
    assert_int_equal(job->clean, TT_CLEAN_ALL);
    assert_int_equal(job->deadline_s & job->ttl_s & job->backoff_limit, -1);
    assert_int_equal(strlen(job->old.runtime_id), 4);
    tfjob_t *again = s_decode_named("j", "{'replicaSpecs':[{'template':T}]}");
    assert_string_equal(job->old.runtime_id, again->old.runtime_id); /* the same at every look */
    tfjob_destroy(&again);
    tfjob_destroy(&job);
}

static void test_every_field(void **state)
{
    (void)state;
    tfjob_t *job = s_decode_named("j",
        "{'RuntimeId':'ab12','tfImage':'tf:1','schedulerName':'s','tensorboard':{'logDir':'/l'},"
        "'terminationPolicy':{'chief':{'replicaName':'WORKER','replicaIndex':2}},'replicaSpecs':[{'tfReplicaType':'PS',"
        "'IsDefaultPS':true},{'tfReplicaType':'WORKER','replicas':3,'tfPort':99,'template':{'spec':{'restartPolicy':"
        "'OnFailure','containers':[{'name':'tensorflow','image':'x'}]}}}]}");
    assert_null(job->invalid);
    assert_true(job->old.default_ps && job->old.board);
    assert_string_equal(job->old.runtime_id, "ab12");
    assert_int_equal(tfjob_decider(job), TFJOB_WORKER);
    assert_int_equal(job->old.chief_index, 2);
    assert_int_equal(job->types[TFJOB_WORKER].port, 99);
    assert_int_equal(job->types[TFJOB_WORKER].restart, TFJOB_ON_FAILURE);
    assert_int_equal(job->types[TFJOB_PS].restart, TFJOB_ON_FAILURE);
    assert_false(job->types[TFJOB_WORKER].overruled);
    tfjob_destroy(&job);
}

static void s_invalid(const char *spec, const char *words)
{
    assert_invalid(s_decode_named("j", spec), words);
}

static void test_what_is_wrong_is_said(void **state)
{
    (void)state;
    s_invalid("{'replicaSpecs':[]}", "spec.replicaSpecs: expected a list of replicas");
    s_invalid("{'replicaSpecs':{}}", "spec.replicaSpecs: expected a list of replicas");
    s_invalid("{'replicaSpecs':[7]}", "spec.replicaSpecs[0]: expected a mapping");
    s_invalid("{'replicaSpecs':[{}]}", "expected spec.replicaSpecs[0].template: only a PS has one");
    s_invalid("{'replicaSpecs':[{'template':T},{'tfReplicaType':'PS','template':7}]}", "spec.replicaSpecs[1].template");
    s_invalid("{'replicaSpecs':[{'replicas':2,'template':T}]}", "replicas: expected a number from 1 to 1");
    s_invalid("{'replicaSpecs':[{'template':T},{'template':T}]}", "there are two of tfReplicaType MASTER");
    s_invalid("{'replicaSpecs':[{'tfReplicaType':'CHIEF','template':T}]}", "'CHIEF' is none of MASTER, PS, WORKER");
    s_invalid("{'replicaSpecs':[{'tfPort':65536,'template':T}]}", "tfPort: expected a number from 1 to 65535");
    s_invalid("{'replicaSpecs':[{'tfReplicaType':'WORKER','template':T}]}", "there is no Master 0");
    s_invalid(OLD("],'terminationPolicy':{'chief':{'replicaName':'WORKER','replicaIndex':2}}"), "there is no Worker 2");
    s_invalid(OLD("],'terminationPolicy':{'chief':{'replicaIndex':-1}}"), "chief.replicaIndex: expected a number");
    s_invalid("{'RuntimeId':'A','replicaSpecs':[{'template':T}]}", "spec.RuntimeId: 'A' is not made of");
    s_invalid("{'RuntimeId':'0123456789abc','replicaSpecs':[{'template':T}]}", "spec.RuntimeId");
    s_invalid(OLD("],'tensorboard':{}"), "spec.tensorboard.logDir: expected a folder");
    s_invalid(OLD("],'tensorboard':{'logDir':'/l','serviceType':'X'}"), "serviceType: 'X' is none of ClusterIP");
    s_invalid(OLD("],'tfReplicaSpecs':{}"), "expected one of them");
    tfjob_t *job = s_decode_named("a-name-that-is-longer-than-what-a-label-of-kubernetes-may-have-0", OLD("]"));
    assert_non_null(strstr(job->invalid, "is to be a label"));
    tfjob_destroy(&job);
}

/* ---- texts -------------------------------------------------------------------------------------------------------------------- */

static void s_config(const tfjob_t *job, tfjob_type_t type, int index, const char *want)
{
    char *text = tfjob_tf_config(job, &(tfjob_place_t){.type = type, .index = index}, "ignored.domain");
    assert_string_equal(text, want);
    free(text);
}

static void test_tf_config_byte_for_byte(void **state)
{
    (void)state;
    tfjob_t *job = s_decode(OLD(",{'tfReplicaType':'PS','tfPort':2223}]"));
    s_config(job, TFJOB_WORKER, 1,
        "{\"cluster\":{\"master\":[\"J-master-rtid-0:2222\"],\"ps\":[\"J-ps-rtid-0:2223\"],"
        "\"worker\":[\"J-worker-rtid-0:2222\",\"J-worker-rtid-1:2222\"]},"
        "\"task\":{\"type\":\"worker\",\"index\":1},\"environment\":\"cloud\"}");
    tfjob_destroy(&job);
    job = s_decode("{'RuntimeId':'z','replicaSpecs':[{'template':T}]}"); /* alone: it gets one all the same */
    s_config(job, TFJOB_MASTER, 0,
        "{\"cluster\":{\"master\":[\"J-master-z-0:2222\"]},\"task\":{\"type\":\"master\",\"index\":0},"
        "\"environment\":\"cloud\"}");
    tfjob_destroy(&job);
}

static void test_a_long_name_is_cut(void **state)
{
    (void)state;
    tfjob_t *job = s_decode_named("a23456789b23456789c23456789d23456789e234567", OLD("]"));
    char *name = tfjob_place_name(job, TFJOB_WORKER, 1);
    assert_null(job->invalid);
    assert_string_equal(name, "a23456789b23456789c23456789d23456789e234-worker-rtid-1");
    free(name);
    tfjob_destroy(&job);
}

static json_t *s_build(const char *spec, tfjob_type_t type, int index)
{
    world_t world;
    tfjob_t *job = NULL;
    json_t *pod = NULL;
    world_init(&world, spec);
    assert_ok(tfjob_from_json(&job, world.job));
    assert_ok(tfjob_build_pod(&pod, job, world.job, &(tfjob_place_t){.type = type, .index = index}, NULL));
    tfjob_destroy(&job);
    world_free(&world);
    return pod;
}

static void test_a_parameter_server_without_a_template(void **state)
{
    (void)state;
    json_t *pod = s_build("{'RuntimeId':'rtid','schedulerName':'other','replicaSpecs':[{'template':T},{'tfReplicaType':"
                          "'PS','replicas':2}]}",
        TFJOB_PS, 1);
    assert_json(json_incref(json_object_get(json_object_get(pod, "metadata"), "labels")),
        "{'group-name':'kubeflow.org','job-name':'mnist','replica-type':'ps','replica-index':'1','kubeflow.org':'',"
        "'job_type':'PS','runtime_id':'rtid','tf_job_name':'mnist','task_index':'1','app.kubernetes.io/name':'tfjob',"
        "'app.kubernetes.io/instance':'mnist','app.kubernetes.io/component':'ps','app.kubernetes.io/"
        "version':'" TT_VERSION "','app.kubernetes.io/part-of':'tutti',"
        "'app.kubernetes.io/managed-by':'tutti-operator'}");
    assert_json(json_incref(json_object_get(pod, "spec")),
        "{'restartPolicy':'OnFailure','schedulerName':'other','volumes':[{'name':'ps-config-volume','configMap':{'name'"
        ":'cm-ps-rtid-job-uid'}}],'containers':[{'name':'tensorflow','image':'tensorflow/"
        "tensorflow:1.3.0','command':['python',"
        "'/ps-server/grpc_tensorflow_server.py','--cluster_spec','master|mnist-master-rtid-0:2222,"
        "ps|mnist-ps-rtid-0:2222;mnist-ps-rtid-1:2222','--job_name','ps','--task_id','1'],'volumeMounts':[{'name':"
        "'ps-config-volume','mountPath':'/ps-server'}],'terminationMessagePolicy':'FallbackToLogsOnError','env':[{"
        "'name':'TF_CONFIG','value':'{\\'cluster\\':{\\'master\\':[\\'mnist-master-rtid-0:2222\\'],\\'ps\\':["
        "\\'mnist-ps-rtid-0:2222\\',\\'mnist-ps-rtid-1:2222\\']},\\'task\\':{\\'type\\':\\'ps\\',\\'index\\':1},"
        "\\'environment\\':\\'cloud\\'}'}]}]}");
    json_decref(pod);
}

static void test_a_template_keeps_its_policy_and_its_scheduler(void **state)
{
    (void)state;
    json_t *pod = s_build("{'schedulerName':'other','replicaSpecs':[{'template':{'spec':{'restartPolicy':'Never',"
                          "'schedulerName':'own','containers':[{'name':'tensorflow','image':'x'}]}}}]}",
        TFJOB_MASTER, 0);
    const json_t *spec = json_object_get(pod, "spec");
    assert_string_equal(parts_text(spec, "restartPolicy", ""), "Never");
    assert_string_equal(parts_text(spec, "schedulerName", ""), "own");
    assert_string_equal(parts_text(parts_labels(pod), "job-role", ""), "master");
    assert_string_equal(
        parts_text(json_object_get(json_object_get(pod, "metadata"), "annotations"), "tutti/v1alpha1", ""), "chief");
    json_decref(pod);
}

/* ---- what becomes of it ----------------------------------------------------------------------------------------------------------- */

static void s_run_all(world_t *w)
{
    for (size_t i = 0; i < w->pod_count; i++)
        if (!json_object_get(w->pods[i], "status"))
            world_run(w, json_string_value(json_object_get(json_object_get(w->pods[i], "metadata"), "name")));
}

static void s_start(world_t *w, const char *spec)
{
    world_init(w, spec);
    world_settle(w, 20);
    s_run_all(w);
    world_settle(w, 20);
    assert_string_equal(world_last(w), "Running");
    assert_string_equal(world_text(w, "phase"), "Running");
    assert_string_equal(world_text(w, "state"), "Running");
}

static const char *s_member(const json_t *object, const char *path, const char *key)
{
    char name[32];
    for (; *path; path += strcspn(path, ".") + (path[strcspn(path, ".")] == '.')) {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(path, "."), path);
        object = json_is_array(object) ? json_array_get(object, (size_t)atoi(name)) : json_object_get(object, name);
    }
    return parts_text(object, key, "");
}

#define SERVERS "{'RuntimeId':'r','replicaSpecs':[{'template':T},{'tfReplicaType':'PS'}],'tensorboard':{'logDir':'/l'}}"

static void test_what_pods_mount_is_there_before_them(void **state)
{
    (void)state;
    world_t w;
    world_init(&w, SERVERS);
    assert_true(world_round(&w));
    assert_int_equal(w.pod_count, 0);
    assert_string_equal(world_text(&w, "phase"), "Creating");
    assert_string_equal(world_text(&w, "state"), "Unknown");
    assert_string_equal(s_member(w.objects[TFJOB_OLD_SCRIPT], "metadata", "name"), "cm-ps-r-job-uid");
    assert_non_null(
        strstr(s_member(w.objects[TFJOB_OLD_SCRIPT], "data", "grpc_tensorflow_server.py"), "tf.train.Server"));
    assert_string_equal(s_member(w.objects[TFJOB_OLD_SCRIPT], "metadata.ownerReferences.0", "name"), "mnist");
    assert_string_equal(s_member(w.objects[TFJOB_OLD_BOARD], "metadata", "name"), "mnist-tensorboard-r");
    assert_string_equal(s_member(w.objects[TFJOB_OLD_BOARD_SERVICE], "spec", "type"), "ClusterIP");
    assert_true(world_round(&w));
    assert_int_equal(w.pod_count, 2);
    w.made = 0; /* another operator: the same again, and no pod of those that are there goes */
    s_run_all(&w);
    world_settle(&w, 20);
    assert_int_equal(w.pod_count, 2);
    assert_string_equal(world_last(&w), "Running");
    world_free(&w);
}

static void test_the_masters_end_is_the_jobs(void **state)
{
    (void)state;
    world_t w;
    s_start(&w, SERVERS);
    world_end(&w, "mnist-master-r-0", 0);
    world_round(&w);
    assert_string_equal(world_text(&w, "state"), "Succeeded");
    assert_string_equal(world_text(&w, "phase"), "CleanUp");
    w.made = 0; /* another operator ends it */
    world_settle(&w, 20);
    assert_int_equal(w.pod_count + w.service_count, 0);
    assert_string_equal(world_text(&w, "phase"), "Done");
    const json_t *list = json_object_get(json_object_get(w.job, "status"), "replicaStatuses");
    assert_json(json_incref((json_t *)(uintptr_t)list),
        "[{'tf_replica_type':'MASTER','state':'Succeeded','ReplicasStates':{'Succeeded':1}},"
        "{'tf_replica_type':'PS','state':'Running','ReplicasStates':{'Running':1}}]");
    world_free(&w);
}

#define BY_WORKER OLD("],'terminationPolicy':{'chief':{'replicaName':'WORKER','replicaIndex':1}}")

static void test_whom_the_policy_names_decides(void **state)
{
    (void)state;
    world_t w;
    s_start(&w, BY_WORKER);
    world_end(&w, "mnist-worker-rtid-0", 0);
    world_end(&w, "mnist-master-rtid-0", 0);
    world_settle(&w, 20);
    assert_string_equal(world_text(&w, "state"), "Running");
    world_end(&w, "mnist-worker-rtid-1", 0);
    world_settle(&w, 20);
    assert_string_equal(world_text(&w, "state"), "Succeeded");
    world_free(&w);
}

static void test_only_the_chiefs_own_mistake_fails_the_job(void **state)
{
    (void)state;
    world_t w;
    s_start(&w, BY_WORKER);
    world_end(&w, "mnist-worker-rtid-0", 1);
    world_end(&w, "mnist-worker-rtid-1", 139); /* a signal: it comes again */
    world_settle(&w, 20);
    assert_string_equal(world_text(&w, "state"), "Running");
    s_run_all(&w);
    world_settle(&w, 20);
    assert_string_equal(world_last(&w), "Running");
    assert_int_equal(w.pod_count, 3);
    world_end(&w, "mnist-worker-rtid-1", 127);
    world_settle(&w, 20);
    assert_string_equal(world_text(&w, "state"), "Failed");
    assert_non_null(strstr(world_text(&w, "reason"), "mnist-worker-rtid-1 exited with code 127"));
    assert_int_equal(w.pod_count, 0);
    world_free(&w);
}

/*  Its container runs again by its template's policy, and how it ended before counts. */
static void s_ended_before(const char *last, const char *want)
{
    world_t w;
    s_start(&w, BY_WORKER);
    char *text = tt_sprintf("{'phase':'Running','containerStatuses':[{'name':'tensorflow','restartCount':1,'state':{"
                            "'running':{}},'lastState':{'terminated':%s}}]}",
        last);
    json_object_set_new(world_pod(&w, "mnist-worker-rtid-1"), "status", json_of(text));
    json_object_set_new(world_pod(&w, "mnist-worker-rtid-0"), "status", json_of(text)); /* it has no say */
    world_settle(&w, 20);
    assert_string_equal(world_text(&w, "state"), want);
    free(text);
    world_free(&w);
}

static void test_the_chiefs_last_end_counts(void **state)
{
    (void)state;
    s_ended_before("{'exitCode':0,'reason':'Completed'}", "Succeeded");
    s_ended_before("{'exitCode':1,'reason':'Error'}", "Failed");
    s_ended_before("{'exitCode':137,'reason':'OOMKilled'}", "Failed");
    s_ended_before("{'exitCode':137,'reason':'Error'}", "Running");
}

static void test_an_invalid_job_says_why(void **state)
{
    (void)state;
    world_t w;
    world_init(&w, "{'replicaSpecs':[{}]}");
    world_settle(&w, 20);
    assert_string_equal(world_text(&w, "phase"), "Failed");
    assert_string_equal(world_text(&w, "state"), "Failed");
    assert_non_null(strstr(world_text(&w, "reason"), "the spec is invalid: expected spec.replicaSpecs[0].template"));
    world_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_not_said_is_the_default),
        cmocka_unit_test(test_every_field),
        cmocka_unit_test(test_what_is_wrong_is_said),
        cmocka_unit_test(test_tf_config_byte_for_byte),
        cmocka_unit_test(test_a_long_name_is_cut),
        cmocka_unit_test(test_a_parameter_server_without_a_template),
        cmocka_unit_test(test_a_template_keeps_its_policy_and_its_scheduler),
        cmocka_unit_test(test_what_pods_mount_is_there_before_them),
        cmocka_unit_test(test_the_masters_end_is_the_jobs),
        cmocka_unit_test(test_whom_the_policy_names_decides),
        cmocka_unit_test(test_only_the_chiefs_own_mistake_fails_the_job),
        cmocka_unit_test(test_the_chiefs_last_end_counts),
        cmocka_unit_test(test_an_invalid_job_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
