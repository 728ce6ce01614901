/*  A job as a Job of a Kubernetes: whole, with a card, of a queue, as root; and what is asked of --requests and --limits. */
#include "task/job_object.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/k8s/json.h"
#include "tests/test.h"

static char *s_command[] = {"/bin/sh", "-c", "true", NULL};
static tt_env_var_t s_env[] = {{"TT_TASK", "x"}};
static const tt_template_t s_template = {
    .command = s_command, .working_dir = "/volume/x/job_configId_0", .env = s_env, .env_count = 1};

static json_t *s_make(const cluster_rules_t *rules, const char *task, bool gpu, uid_t user)
{
    job_object_rules_t self = {.claim = "volume",
        .registry = "abc",
        .queue = rules->queue,
        .deadline_s = 60,
        .ttl_s = 90,
        .user = user,
        .group = 7};
    const cluster_job_t job = {
        .job = 3, .attempt = 1, .task = task, .image = "python:3", .template_ = &s_template, .gpu = gpu};
    assert_ok(job_object_resources(&self.requests, &self.limits, rules));
    json_t *out = job_object(&self, &job, "tutti-abc-3-1");
    json_decref(self.requests);
    json_decref(self.limits);
    return out;
}

#define LABELS                                                                                                      \
    "'tutti-tasks':'abc','tutti-job':'3','app.kubernetes.io/name':'task','app.kubernetes.io/instance':'user.me.x'," \
    "'app.kubernetes.io/component':'job','app.kubernetes.io/version':'" TT_VERSION                                  \
    "','app.kubernetes.io/part-of':'tutti','app.kubernetes.io/"                                                     \
    "managed-by':'tutti-task'"

static void test_a_job(void **state)
{
    (void)state;
    assert_json(s_make(&(cluster_rules_t){0}, "user.me.x", false, 1000),
        "{'apiVersion':'batch/v1','kind':'Job','metadata':{'name':'tutti-abc-3-1','labels':{" LABELS "},'annotations':{"
        "'tutti-task':'user.me.x'}},'spec':{'backoffLimit':0,'podReplacementPolicy':'Failed','podFailurePolicy':{'"
        "rules':[{'action':'Ignore','onPodConditions':[{'type':'DisruptionTarget','status':'True'}]}]},'"
        "activeDeadlineSeconds':60,'ttlSecondsAfterFinished':90,"
        "'template':{'metadata':{'labels':{" LABELS "}},'spec':{'restartPolicy':'Never','automountServiceAccountToken':"
        "false,'terminationGracePeriodSeconds':5,'securityContext':{'runAsUser':1000,'runAsGroup':7,'runAsNonRoot':"
        "true,"
        "'seccompProfile':{'type':'RuntimeDefault'}},'containers':[{'name':'job','image':'python:3','command':['/bin/"
        "sh',"
        "'-c','true'],'env':[{'name':'TT_TASK','value':'x'}],'workingDir':'/volume/x/job_configId_0','volumeMounts':[{"
        "'name':'volume','mountPath':'/volume'}],'resources':{'requests':{'cpu':'1'},'limits':{}},'securityContext':{"
        "'allowPrivilegeEscalation':false,'capabilities':{'drop':['ALL']}}}],'volumes':[{'name':'volume',"
        "'persistentVolumeClaim':{'claimName':'volume'}}]}}}}");
}

static json_t *s_spec(json_t *job)
{
    return json_object_get(job, "spec");
}

static json_t *s_pod(json_t *job)
{
    return json_object_get(json_object_get(s_spec(job), "template"), "spec");
}

static json_t *s_container(json_t *job)
{
    return json_array_get(json_object_get(s_pod(job), "containers"), 0);
}

static void test_root_keeps_what_root_has(void **state)
{
    (void)state;
    json_t *job = s_make(&(cluster_rules_t){0}, "user.me.x", false, 0);
    assert_json(
        json_incref(json_object_get(s_container(job), "securityContext")), "{'allowPrivilegeEscalation':false}");
    assert_true(json_is_false(json_object_get(json_object_get(s_pod(job), "securityContext"), "runAsNonRoot")));
    json_decref(job);
}

static void check_resources(const cluster_rules_t *rules, bool gpu, const char *expected)
{
    json_t *job = s_make(rules, "user.me.x", gpu, 1000);
    assert_json(json_incref(json_object_get(s_container(job), "resources")), expected);
    json_decref(job);
}

static void test_what_a_slot_reserves(void **state)
{
    (void)state;
    check_resources(&(cluster_rules_t){0}, true, "{'requests':{'cpu':'1'},'limits':{'nvidia.com/gpu':'1'}}");
    check_resources(&(cluster_rules_t){.requests = "cpu=500m,memory=4Gi"}, false,
        "{'requests':{'cpu':'500m','memory':'4Gi'},'limits':{}}");
    check_resources(&(cluster_rules_t){.requests = ""}, false, "{'requests':{},'limits':{}}");
    check_resources(&(cluster_rules_t){.limits = "cpu=2,nvidia.com/gpu=2"}, true,
        "{'requests':{},'limits':{'cpu':'2','nvidia.com/gpu':'2'}}");
    check_resources(&(cluster_rules_t){.limits = "example.com/bytes=1k,notkubernetes.io/x=2000m"}, false,
        "{'requests':{'cpu':'1'},'limits':{'example.com/bytes':'1k','notkubernetes.io/x':'2000m'}}");
}

static void test_of_a_queue_it_is_suspended(void **state)
{
    (void)state;
    json_t *job = s_make(&(cluster_rules_t){.queue = "team"}, "user.me.x", false, 1000);
    const json_t *labels = json_object_get(json_object_get(job, "metadata"), "labels");
    assert_true(json_is_true(json_object_get(s_spec(job), "suspend")));
    assert_string_equal(json_string_value(json_object_get(labels, "kueue.x-k8s.io/queue-name")), "team");
    json_decref(job);
}

/*  The API server would refuse a Job for its label. */
static void test_a_name_that_is_no_label(void **state)
{
    (void)state;
    static const char *const names[] = {
        "user.me.x.", "user.me.a-name-of-more-than-sixty-three-characters-which-a-task-may-have-all-the-same"};
    for (size_t i = 0; i < TT_COUNT(names); i++) {
        json_t *job = s_make(&(cluster_rules_t){0}, names[i], false, 1000);
        const json_t *metadata = json_object_get(job, "metadata");
        assert_null(json_object_get(json_object_get(metadata, "labels"), "app.kubernetes.io/instance"));
        assert_string_equal(
            json_string_value(json_object_get(json_object_get(metadata, "annotations"), "tutti-task")), names[i]);
        json_decref(job);
    }
}

static void check_refused(const char *requests, const char *limits, const char *words)
{
    json_t *asked, *most;
    const cluster_rules_t rules = {.requests = requests, .limits = limits};
    assert_int_equal(job_object_resources(&asked, &most, &rules), TT_USAGE);
    if (!strstr(tt_err_text(), words))
        fail_msg("'%s' and not '%s'", tt_err_text(), words);
}

static void test_what_is_refused(void **state)
{
    (void)state;
    check_refused(
        "cpu", NULL, "--requests: 'cpu': expected cpu=N, memory=N or ephemeral-storage=N; cards are --limits");
    check_refused("cpu=1,", NULL, "--requests: '': expected");
    check_refused("nvidia.com/gpu=1", NULL, "cards are --limits");
    check_refused(NULL, "gpu=1", "--limits: 'gpu=1': expected cpu=N");
    check_refused(NULL, "/gpu=1", "--limits: '/gpu=1': expected cpu=N");
    check_refused(NULL, "nvidia.com/gpu=500m", "--limits: 'nvidia.com/gpu=500m': expected a whole number");
    check_refused(NULL, "nvidia.com/gpu=1.5", "expected a whole number");
    check_refused(NULL, "nvidia.com/gpu=0", "expected an amount");
    check_refused(NULL, "kubernetes.io/gpu=1", "--limits: 'kubernetes.io/gpu=1': the domain is Kubernetes' own");
    check_refused(NULL, "node.kubernetes.io/gpu=1", "the domain is Kubernetes' own");
    check_refused("cpu=x", NULL, "--requests: 'cpu=x': expected an amount such as 1, 500m or 4Gi");
    check_refused("cpu=0", NULL, "expected an amount");
    check_refused("cpu=-1", NULL, "expected an amount");
    check_refused("cpu=1,cpu=2", NULL, "--requests: cpu is there twice");
    check_refused("memory=4Gi", "memory=1Gi", "--requests: memory=4Gi is more than --limits allows, 1Gi");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_job),
        cmocka_unit_test(test_root_keeps_what_root_has),
        cmocka_unit_test(test_what_a_slot_reserves),
        cmocka_unit_test(test_of_a_queue_it_is_suspended),
        cmocka_unit_test(test_a_name_that_is_no_label),
        cmocka_unit_test(test_what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
