/*  backend: who may ask for replicas, what is made, replaced and removed for it, and what is answered. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/k8s/json.h"
#include "tests/k8s/operator/operator_bench.h"

#define JOBS     JOBS_PATH "/namespaces/n/dijobs"
#define REPLICAS "/v1alpha1/replicas"
#define OURS     "'namespace':'n','coordinator':'j-coordinator'"

/* ---- a job and its pods ---------------------------------------------------------------------------------------------- */

static bool s_has_job(void *ctx)
{
    return bench_job(ctx) != NULL;
}

static void s_make_job(bench_t *bench, const char *more)
{
#define ROLE(name) "'" name "':{'template':{'spec':{'containers':[{'name':'di-container','image':'x:1'}]}}"
    char *text = tt_sprintf("{'apiVersion':'" DIJOB_GROUP "/v1alpha1','kind':'DIJob','metadata':{'name':'j'},"
                            "'spec':{" ROLE("coordinator") "}," ROLE("collector") "%s}}}",
        more);
    bench_make(bench, JOBS, text);
    free(text);
    bench_until(bench, s_has_job, bench->op);
}

typedef struct {
    const char *name, *role, *more; /* more: of the metadata */
    const char *phase, *ip;
    int age; /* made in that second */
} pod_t;

static bool s_has_pod(void *ctx)
{
    void *const *both = ctx;
    return cache_pod(bench_kind(both[0]), "n", both[1]) != NULL;
}

static void s_make_pod(bench_t *bench, const pod_t *pod)
{
    char name[64];
    char *text = tt_sprintf("{'metadata':{'name':'%s','creationTimestamp':'2026-11-21T10:00:%02dZ','labels':{"
                            "'controller-name':'di-operator','dijob-name':'j','replica-type':'%s'},"
                            "'ownerReferences':[{'kind':'DIJob','name':'j','uid':'%s','controller':true}]%s},"
                            "'spec':{'nodeName':'host'},'status':{'phase':'%s','podIP':'%s'}}",
        pod->name, pod->age, pod->role, bench_job(bench->op)->meta.uid, pod->more ? pod->more : "",
        pod->phase ? pod->phase : "Running", pod->ip ? pod->ip : "10.0.0.9");
    bench_make(bench, PODS, text);
    free(text);
    snprintf(name, sizeof name, "%s", pod->name);
    void *both[] = {bench->op, name};
    bench_until(bench, s_has_pod, both);
}

static const pod_t s_coordinator = {.name = "j-coordinator", .role = "coordinator"};

/*  The clock stands: nobody's patience ends, however slow the machine is. */
static int s_setup(void **state)
{
    bench_setup_server(state);
    bench_t *bench = *state;
    bench->clock = tt_clock_fake(BENCH_DAY_S * 1000000000);
    bench_open_operator(bench, "127.0.0.1:0", "");
    bench_sync(bench);
    bench->op->opts.open_api = true;
    return 0;
}

/*  A job that has a coordinator, and collectors but no learners of its own. */
static int s_setup_job(void **state)
{
    s_setup(state);
    s_make_job(*state, "");
    s_make_pod(*state, &s_coordinator);
    return 0;
}

/* ---- asking ---------------------------------------------------------------------------------------------------------- */

typedef struct {
    int code;
    char message[300];
    char collectors[300], learners[300]; /* names of the pods, with spaces between; "null" */
    json_t *data;
} got_t;

/*  "x.n:22270" -> "x" */
static void s_names(char out[300], const json_t *list)
{
    size_t i;
    json_t *url;
    snprintf(out, 300, "%s", json_is_array(list) ? "" : "null");
    json_array_foreach((json_t *)(uintptr_t)list, i, url)
    {
        const char *text = json_string_value(url);
        snprintf(out + strlen(out), 300 - strlen(out), "%s%.*s", i ? " " : "", (int)strcspn(text, "."), text);
    }
}

/*  ' for " in the body. */
static got_t s_ask(bench_t *bench, const char *method, const char *path, const char *body)
{
    char *text = NULL, *json = json_quote(tt_strdup(body));
    got_t got = {.code = bench_ask(bench, bench->op->api.server, method, path, json, &text)};
    json_t *answer = json_loads(text, 0, NULL);
    const char *message = json_string_value(json_object_get(answer, "message"));
    assert_non_null(message);
    snprintf(got.message, sizeof got.message, "%s", message);
    got.data = json_incref(json_object_get(answer, "data"));
    s_names(got.collectors, json_object_get(got.data, "collectors"));
    s_names(got.learners, json_object_get(got.data, "learners"));
    assert_int_equal(json_is_true(json_object_get(answer, "success")), got.code == 200);
    json_decref(answer);
    free(json);
    free(text);
    return got;
}

static void s_assert_said(const got_t *got, int code, const char *words)
{
    if (got->code != code || !strstr(got->message, words))
        fail_msg("not %d '%s' but %d '%s'", code, words, got->code, got->message);
}

/*  A request whose lists do not matter. */
static void s_assert_answer(
    bench_t *bench, const char *method, const char *path, const char *body, int code, const char *words)
{
    got_t got = s_ask(bench, method, path, body);
    s_assert_said(&got, code, words);
    json_decref(got.data);
}

/*  A request that ends well, and the names in its answer. */
static void s_assert_lists(bench_t *bench, const char *method, const char *path, const char *body,
    const char *collectors, const char *learners)
{
    got_t got = s_ask(bench, method, path, body);
    s_assert_said(&got, 200, "success");
    assert_string_equal(got.collectors, collectors);
    assert_string_equal(got.learners, learners);
    json_decref(got.data);
}

/*  That are not on their way out: an answer may come before the watch has shown how one went. */
static size_t s_pods(const bench_t *bench)
{
    size_t count = 0;
    const void *at = NULL;
    const dijob_pod_t *pod;
    while ((pod = kube_store_each(bench_pods(bench->op), &at)) != NULL)
        count += !pod->deleting;
    return count;
}

/* ---- reading --------------------------------------------------------------------------------------------------------- */

static void test_a_list_has_those_that_live(void **state)
{
    bench_t *bench = *state;
    static const pod_t pods[] = {{.name = "c1", .role = "collector", .age = 1},
        {.name = "c2", .role = "collector", .age = 2}, {.name = "c3", .role = "collector", .phase = "Succeeded"},
        {.name = "c4", .role = "collector", .more = ",'deletionTimestamp':'2026-11-21T11:00:00Z'"},
        {.name = "l1", .role = "learner"}, {.name = "a1", .role = "aggregator", .age = 9},
        {.name = "d1", .role = "ddp-learner", .more = ",'annotations':{'tutti/aggregator':'a1'}"},
        {.name = "d2", .role = "ddp-learner", .more = ",'annotations':{'tutti/aggregator':'another'}"}};
    for (size_t i = 0; i < TT_COUNT(pods); i++)
        s_make_pod(bench, &pods[i]);
    s_assert_lists(bench, "GET", REPLICAS "?namespace=n&coordinator=j-coordinator", NULL, "c1 c2", "l1 a1");
    s_assert_lists(bench, "GET", REPLICAS "?namespace=n&aggregator=a1", NULL, "null", "d1");
    got_t all = s_ask(bench, "GET", REPLICAS, NULL);
    assert_int_equal(json_array_size(all.data), 1);
    json_decref(all.data);
    all = s_ask(bench, "GET", REPLICAS "?namespace=elsewhere", NULL);
    assert_int_equal(json_array_size(all.data), 0);
    json_decref(all.data);
    s_assert_answer(bench, "GET", REPLICAS "?namespace=n&coordinator=c1", NULL, 404, "pod: n/c1 not exists in cache");
}

static void test_ranks_of_tasks(void **state)
{
    bench_t *bench = *state;
    static const pod_t pods[] = {
        {.name = "t2", .role = "task", .ip = "10.0.0.2", .more = ",'annotations':{'diengine/rank':'2'}"},
        {.name = "t0", .role = "task", .ip = "", .more = ",'annotations':{'diengine/rank':'0'}"},
        {.name = "t1", .ip = "10.0.0.1", .more = ",'annotations':{'diengine/rank':'1'}", .phase = "Failed"},
        {.name = "t9", .ip = "10.0.0.9", .more = ",'annotations':{'diengine/rank':'2'}", .phase = "Failed"}};
    got_t got = s_ask(bench, "GET", "/v2alpha1/job/n.j/replicas", NULL);
    s_assert_said(&got, 200, "success");
    assert_true(json_is_null(got.data));
    json_decref(got.data);
    for (size_t i = 0; i < TT_COUNT(pods); i++) { /* a task's pod is known by other labels */
        char *text =
            tt_sprintf("{'metadata':{'name':'%s','labels':{'diengine/operator':'di-operator','diengine/job':'j'},"
                       "'ownerReferences':[{'uid':'%s','controller':true}]%s},'status':{'podIP':'%s','phase':'%s'}}",
                pods[i].name, bench_job(bench->op)->meta.uid, pods[i].more, pods[i].ip,
                pods[i].phase ? pods[i].phase : "Running");
        void *both[] = {bench->op, (void *)(uintptr_t)pods[i].name};
        bench_make(bench, PODS, text);
        free(text);
        bench_until(bench, s_has_pod, both);
    }
    got = s_ask(bench, "GET", "/v2alpha1/job/n.j/replicas", NULL);
    assert_int_equal(json_array_size(got.data), 3);
    assert_string_equal(json_string_value(json_array_get(got.data, 0)), "");
    assert_string_equal(json_string_value(json_array_get(got.data, 1)), "");
    assert_non_null(strstr(json_string_value(json_array_get(got.data, 2)), "10.0.0.2:"));
    json_decref(got.data);
    s_assert_answer(bench, "GET", "/v2alpha1/job/n.zz/replicas", NULL, 404, "dijob: n/zz not exists in cache");
}

/* ---- who asks -------------------------------------------------------------------------------------------------------- */

static void test_nobody_is_answered_before_all_is_known(void **state)
{
    bench_t *bench = *state;
    free(world_ctl(&bench->world, "{'do':'faults','faults':[{'at':'list','what':'500','times':1000000}]}"));
    bench_open_operator(bench, "127.0.0.1:0", "");
    s_assert_answer(bench, "GET", REPLICAS, NULL, 503, "still being listed");
    s_assert_answer(bench, "POST", REPLICAS, "{" OURS ",'collectors':{'replicas':1}}", 503, "still being listed");
}

static void test_a_stranger_is_refused(void **state)
{
    bench_t *bench = *state;
    bench->op->opts.open_api = false;
    s_make_job(bench, "");
    s_make_pod(bench, &s_coordinator);
    s_assert_answer(
        bench, "GET", REPLICAS "?namespace=n&coordinator=j-coordinator", NULL, 403, "127.0.0.1 is no pod of DIJob n/j");
    s_assert_answer(bench, "POST", REPLICAS, "{" OURS ",'collectors':{'replicas':1}}", 403, "is no pod");
    assert_int_equal(s_pods(bench), 1);
    static const pod_t dead[] = {{.name = "c8", .role = "collector", .phase = "Succeeded", .ip = "127.0.0.1"},
        {.name = "c9", .role = "collector", .phase = "Failed", .ip = "127.0.0.1"}};
    for (size_t i = 0; i < TT_COUNT(dead); i++) /* an address of theirs is somebody else's by now */
        s_make_pod(bench, &dead[i]);
    s_assert_answer(
        bench, "GET", REPLICAS "?namespace=n&coordinator=j-coordinator", NULL, 403, "127.0.0.1 is no pod of DIJob n/j");
    s_make_pod(bench, &(pod_t){.name = "c1", .role = "collector", .ip = "127.0.0.1"}); /* any pod of the job may */
    s_assert_lists(bench, "GET", REPLICAS "?namespace=n&coordinator=j-coordinator", NULL, "c1", "");
}

/*  A caller of the operator's server whom the operator's own loop serves. */
typedef struct {
    bench_t *bench;
    char *url;
    kube_config_t config;
    kube_client_t *client;
    int code; /* of the answer, 0 = none yet */
} early_t;

static void s_early_open(early_t *self, bench_t *bench)
{
    static char namespace_[] = "n";
    *self = (early_t){.bench = bench, .url = tt_sprintf("http://127.0.0.1:%d", tt_server_port(bench->op->api.server))};
    self->config = (kube_config_t){.server = self->url, .namespace_ = namespace_};
    assert_ok(kube_client_new(&self->client, bench->op->loop, &self->config, NULL));
}

static void s_early_close(early_t *self)
{
    kube_client_destroy(&self->client);
    free(self->url);
}

static void s_on_early(void *ctx, const kube_reply_t *reply)
{
    ((early_t *)ctx)->code = reply->code;
}

static bool s_waits(void *ctx)
{
    return backend_waiting(((early_t *)ctx)->bench->op) == 1;
}

static bool s_is_answered(void *ctx)
{
    return ((early_t *)ctx)->code != 0;
}

static bool s_has_address(void *ctx)
{
    const dijob_pod_t *pod = cache_pod(bench_kind(ctx), "n", "j-coordinator");
    return pod && *pod->ip;
}

/*  Its program runs before its address stands in its status. */
static void test_a_pod_without_an_address_yet_is_waited_for(void **state)
{
    bench_t *bench = *state;
    bench->op->opts.open_api = false;
    s_make_job(bench, "");
    s_make_pod(bench, &(pod_t){.name = "j-coordinator", .role = "coordinator", .ip = ""});
    early_t early;
    s_early_open(&early, bench);
    kube_client_send(early.client,
        &(kube_request_t){.method = "GET", .path = REPLICAS "?namespace=n&coordinator=j-coordinator"}, s_on_early,
        &early);
    bench_until(bench, s_waits, &early);
    assert_ok(world_call(&bench->world, "PATCH", PODS "/j-coordinator", "{'status':{'podIP':'127.0.0.1'}}", NULL));
    bench_until(bench, s_has_address, bench->op);
    assert_int_equal(early.code, 0);
    tt_clock_turn(&bench->clock, INT64_C(100000000)); /* it is looked for ten times a second */
    bench_until(bench, s_is_answered, &early);
    assert_int_equal(early.code, 200);
    assert_int_equal(backend_waiting(bench->op), 0);
    s_early_close(&early);
}

/* ---- making ---------------------------------------------------------------------------------------------------------- */

static void test_replicas_are_there_when_they_are_answered(void **state)
{
    bench_t *bench = *state;
    got_t got = s_ask(bench, "POST", REPLICAS, "{" OURS ",'collectors':{'replicas':2,'memory':'1Gi'}}");
    s_assert_said(&got, 200, "successfully create replicas");
    assert_int_equal(json_array_size(json_object_get(got.data, "collectors")), 2);
    assert_string_equal(got.learners, "");
    assert_int_equal(s_pods(bench), 3);
    char *first = tt_sprintf("%.*s", (int)strcspn(got.collectors, " "), got.collectors);
    const dijob_pod_t *pod = kube_store_get(bench_pods(bench->op), "n", first);
    assert_non_null(pod);
    assert_int_equal(pod->role, DIJOB_COLLECTOR);
    assert_non_null(strstr(pod->asked, "1Gi"));
    assert_true(bench_has(bench, PODS, first));
    assert_null(bench->op->tasks);
    free(first);
    json_decref(got.data);
}

static void test_what_cannot_be_made(void **state)
{
    bench_t *bench = *state;
    s_assert_answer(bench, "POST", REPLICAS, "{" OURS ",'collectors':{'replicas':1},'learners':{'replicas':1}}", 400,
        "DIJob j has no spec.learner.template");
    bench_fault(bench, "write", "403");
    s_assert_answer(bench, "POST", REPLICAS, "{" OURS ",'collectors':{'replicas':1}}", 400, "told to");
    assert_int_equal(s_pods(bench), 1);
    bench_fault(bench, "write", "500"); /* of one: the other one is there, and is told of */
    got_t got = s_ask(bench, "POST", REPLICAS, "{" OURS ",'collectors':{'replicas':2}}");
    s_assert_said(&got, 500, "create pod j-collector-");
    assert_int_equal(json_array_size(json_object_get(got.data, "collectors")), 1);
    assert_int_equal(s_pods(bench), 2);
    json_decref(got.data);
    s_assert_answer(bench, "POST", REPLICAS, "{'namespace':'n','coordinator':'zz','collectors':{'replicas':1}}", 404,
        "pod: n/zz not exists in cache");
    assert_null(bench->op->tasks);
}

static void test_a_job_that_is_over_or_suspended_gets_nothing(void **state)
{
    bench_t *bench = *state;
    bench_dijob(bench->op)->phase = DIJOB_PHASE_SUCCEEDED;
    s_assert_answer(bench, "POST", REPLICAS, "{" OURS ",'collectors':{'replicas':1}}", 409, "DIJob n/j is over");
    bench_dijob(bench->op)->phase = DIJOB_PHASE_RUNNING;
    bench_dijob(bench->op)->suspend = true;
    s_assert_answer(bench, "POST", REPLICAS, "{" OURS ",'collectors':{'replicas':1}}", 409, "DIJob n/j is suspended");
    s_assert_lists(bench, "GET", REPLICAS "?namespace=n&coordinator=j-coordinator", NULL, "", "");
}

static bool s_is_admitted(void *ctx)
{
    front_admission_t admission;
    return admission_see(&admission, ctx, bench_job(ctx)) && admission.admitted;
}

/*  Nobody is asked for who was not admitted. */
static void test_a_job_of_a_queue_gets_what_its_spec_declares(void **state)
{
    bench_t *bench = *state;
    bench_dijob(bench->op)->queue = tt_strdup("q");
    assert_ok(admission_new(&bench->op->admission, bench->op));
    s_assert_answer(bench, "POST", REPLICAS, "{" OURS ",'collectors':{'replicas':1}}", 409,
        "DIJob n/j waits for admission in its queue");
    char *text = tt_sprintf("{'metadata':{'name':'w','labels':{'app.kubernetes.io/managed-by':'tutti-operator'},"
                            "'ownerReferences':[{'kind':'DIJob','name':'j','uid':'%s','controller':true}]},'status':{"
                            "'conditions':[{'type':'Admitted','status':'True'}]}}",
        bench_job(bench->op)->meta.uid);
    bench_make(bench, "/apis/kueue.x-k8s.io/v1beta2/namespaces/n/workloads", text);
    free(text);
    bench_until(bench, s_is_admitted, bench->op);
    s_assert_answer(bench, "POST", REPLICAS, "{" OURS ",'collectors':{'replicas':1}}", 409,
        "DIJob n/j is of queue q, which admits what the spec declares: spec.collector.replicas is not given");
    s_assert_answer(bench, "POST", REPLICAS, "{" OURS ",'learners':{'replicas':1}}", 409,
        "DIJob n/j is of queue q, which admits what the spec declares: spec.learner.replicas is not given");
}

static bool s_has_one_pod(void *ctx)
{
    return kube_store_count(bench_pods(ctx)) == 1;
}

/*  More GPUs than a node has: an aggregator, and behind it a pod a node. */
static void test_many_gpus_are_ddp_learners(void **state)
{
    bench_t *bench = *state;
    s_make_job(bench, "}," ROLE("learner"));
    s_make_pod(bench, &s_coordinator);
    bench->op->opts.gpus_per_node = 2;
    got_t got = s_ask(bench, "POST", REPLICAS, "{" OURS ",'learners':{'replicas':1,'gpus':'4'}}");
    s_assert_said(&got, 200, "success");
    assert_int_equal(s_pods(bench), 4);
    const dijob_pod_t *aggregator = kube_store_get(bench_pods(bench->op), "n", got.learners);
    assert_non_null(aggregator);
    assert_int_equal(aggregator->role, DIJOB_AGGREGATOR);
    char *path = tt_sprintf(REPLICAS "?namespace=n&aggregator=%s", got.learners);
    json_decref(got.data);
    got = s_ask(bench, "GET", path, NULL);
    assert_int_equal(json_array_size(json_object_get(got.data, "learners")), 4); /* a port a GPU */
    json_decref(got.data);
    free(path);
    s_assert_answer(
        bench, "POST", REPLICAS, "{" OURS ",'learners':{'replicas':1,'gpus':'5000'}}", 400, "more than 4096");

    got = s_ask(bench, "DELETE", REPLICAS, "{" OURS ",'learners':{'replicas':1}}"); /* and all of it goes */
    s_assert_said(&got, 200, "success");
    assert_int_equal(json_array_size(json_object_get(got.data, "learners")), 1);
    json_decref(got.data);
    bench_until(bench, s_has_one_pod, bench->op);
}

/*  The spec says how many: what is there is answered, and nothing changes. */
static void test_declared_replicas_stay_as_they_are(void **state)
{
    bench_t *bench = *state;
    s_make_job(bench, ",'replicas':2");
    s_make_pod(bench, &s_coordinator);
    s_make_pod(bench, &(pod_t){.name = "c1", .role = "collector", .age = 1});
    s_make_pod(bench, &(pod_t){.name = "c2", .role = "collector", .age = 2});
    s_assert_lists(bench, "POST", REPLICAS, "{" OURS ",'collectors':{'replicas':1}}", "c1", "");
    s_assert_lists(bench, "POST", REPLICAS, "{" OURS ",'collectors':{'replicas':9}}", "c1 c2", "");
    s_assert_lists(bench, "DELETE", REPLICAS, "{" OURS ",'collectors':{'replicas':1}}", "", "");
    assert_int_equal(s_pods(bench), 3);
    s_assert_lists(bench, "POST", REPLICAS "/failed", "{" OURS ",'collectors':['c1']}", "null", "null");
    assert_false(bench_has(bench, PODS, "c1")); /* it goes; the plan makes another one */
    assert_true(bench_has(bench, PODS, "c2"));
}

/* ---- in the place of failed ones, and removing ----------------------------------------------------------------------- */

static void test_a_failed_one_is_replaced_once(void **state)
{
    bench_t *bench = *state;
    s_make_pod(bench, &(pod_t){.name = "c1", .role = "collector"});
    got_t got = s_ask(bench, "POST", REPLICAS "/failed", "{" OURS ",'collectors':['c1']}");
    s_assert_said(&got, 200, "successfully recreate replicas");
    assert_string_equal(got.learners, "null");
    const dijob_pod_t *pod = kube_store_get(bench_pods(bench->op), "n", got.collectors);
    assert_non_null(pod);
    assert_string_equal(pod->replaces, "c1");
    assert_false(bench_has(bench, PODS, "c1"));
    char *successor = tt_strdup(got.collectors);
    json_decref(got.data);
    s_assert_lists(bench, "POST", REPLICAS "/failed", "{" OURS ",'collectors':['c1']}", successor, "null");
    free(successor);
    s_assert_answer(bench, "POST", REPLICAS "/failed", "{" OURS ",'collectors':['zz']}", 404, "pod: n/zz not exists");
    s_assert_answer(bench, "POST", REPLICAS "/failed", "{" OURS ",'collectors':['j-coordinator']}", 400,
        "j-coordinator is a coordinator: not one of the replicas");
}

/*  A job with two aggregators and their learners, of one GPU each. */
static void s_make_ddp(bench_t *bench)
{
    static const pod_t pods[] = {{.name = "a1", .role = "aggregator", .age = 1},
        {.name = "a2", .role = "aggregator", .age = 2}, {.name = "c1", .role = "collector"},
        {.name = "d1", .role = "ddp-learner", .age = 3, .more = ",'annotations':{'tutti/aggregator':'a1'}"},
        {.name = "d2", .role = "ddp-learner", .age = 4, .more = ",'annotations':{'tutti/aggregator':'a2'}"}};
    s_make_job(bench, "}," ROLE("learner"));
    s_make_pod(bench, &s_coordinator);
    for (size_t i = 0; i < TT_COUNT(pods); i++)
        s_make_pod(bench, &pods[i]);
}

/*  DI-engine's aggregator says its own name where a coordinator's stands. */
static void test_an_aggregator_reports_its_learners(void **state)
{
    bench_t *bench = *state;
    s_make_ddp(bench);
    const char *path = REPLICAS "/failed";
    got_t got = s_ask(bench, "POST", path, "{'namespace':'n','coordinator':'a1','collectors':[],'learners':['d1']}");
    s_assert_said(&got, 200, "successfully recreate replicas");
    assert_string_equal(got.collectors, "null");
    assert_string_equal(json_string_value(json_object_get(got.data, "coordinator")), "a1");
    const dijob_pod_t *pod = kube_store_get(bench_pods(bench->op), "n", got.learners);
    assert_non_null(pod);
    assert_int_equal(pod->role, DIJOB_DDP_LEARNER);
    assert_string_equal(pod->replaces, "d1");
    assert_string_equal(pod->owner_pod, "a1");
    assert_false(bench_has(bench, PODS, "d1"));
    char *successor = tt_strdup(got.learners);
    json_decref(got.data);
    s_assert_lists(bench, "GET", REPLICAS "?namespace=n&aggregator=a1", NULL, "null", successor);
    free(successor);
    /* of its own learners only, and nothing but that */
    s_assert_answer(bench, "POST", path, "{'namespace':'n','coordinator':'a1','learners':['d2']}", 400,
        "pod d2 is no learner of a1");
    s_assert_answer(bench, "POST", path, "{'namespace':'n','coordinator':'a1','collectors':['c1']}", 400,
        "pod c1 is no learner of a1");
    s_assert_answer(bench, "POST", REPLICAS, "{'namespace':'n','coordinator':'a1','collectors':{'replicas':1}}", 404,
        "pod: n/a1 not exists in cache");
    s_assert_answer(bench, "DELETE", REPLICAS, "{'namespace':'n','coordinator':'a1','learners':{'replicas':1}}", 404,
        "pod: n/a1 not exists in cache");
    assert_true(bench_has(bench, PODS, "d2") && bench_has(bench, PODS, "c1"));
}

static bool s_has_three_pods(void *ctx)
{
    return kube_store_count(bench_pods(ctx)) == 3;
}

/*  Of several that failed one has its successor and the other's was not taken: the first one is gone with the answer, and asking
 *  once more does the rest, without a third. */
static void test_an_answer_stands_for_all_that_was_written(void **state)
{
    bench_t *bench = *state;
    s_make_pod(bench, &(pod_t){.name = "old-1", .role = "collector", .age = 1});
    s_make_pod(bench, &(pod_t){.name = "old-2", .role = "collector", .age = 2});
    bench_fault_of(bench, "j-collector-", "500");
    got_t got = s_ask(bench, "POST", REPLICAS "/failed", "{" OURS ",'collectors':['old-1','old-2']}");
    s_assert_said(&got, 500, "create pod j-collector-");
    assert_int_equal(json_array_size(json_object_get(got.data, "collectors")), 1);
    bench_until(bench, s_has_three_pods, bench->op); /* the coordinator, one as it was, one new */
    json_decref(got.data);
    bench_fault_of(bench, "old-", "500"); /* and a removal that was not taken is tried again */
    got = s_ask(bench, "POST", REPLICAS "/failed", "{" OURS ",'collectors':['old-1','old-2']}");
    s_assert_said(&got, 500, "delete pod old-");
    json_decref(got.data);
    got = s_ask(bench, "POST", REPLICAS "/failed", "{" OURS ",'collectors':['old-1','old-2']}");
    s_assert_said(&got, 200, "success");
    assert_int_equal(json_array_size(json_object_get(got.data, "collectors")), 2);
    json_decref(got.data);
    assert_false(bench_has(bench, PODS, "old-1") || bench_has(bench, PODS, "old-2"));
    bench_until(bench, s_has_three_pods, bench->op);
}

/*  Learners that could not be made are not told of as if they were there. */
static void test_ddp_learners_that_cannot_be_made(void **state)
{
    bench_t *bench = *state;
    s_make_job(bench, "}," ROLE("learner"));
    s_make_pod(bench, &s_coordinator);
    bench->op->opts.gpus_per_node = 2;
    bench_fault_of(bench, "j-ddp-learner-", "500");
    s_assert_answer(
        bench, "POST", REPLICAS, "{" OURS ",'learners':{'replicas':1,'gpus':'4'}}", 500, "create pod j-ddp-learner-");
}

static void test_the_youngest_go_first(void **state)
{
    bench_t *bench = *state;
    static const pod_t pods[] = {{.name = "c1", .role = "collector", .age = 1},
        {.name = "c2", .role = "collector", .age = 2}, {.name = "c3", .role = "collector", .age = 3}};
    for (size_t i = 0; i < TT_COUNT(pods); i++)
        s_make_pod(bench, &pods[i]);
    s_assert_lists(bench, "DELETE", REPLICAS, "{" OURS ",'collectors':{'replicas':1}}", "c3", "");
    assert_false(bench_has(bench, PODS, "c3"));
    bench_fault(bench, "write", "500");
    s_assert_answer(bench, "DELETE", REPLICAS, "{" OURS ",'collectors':{'replicas':1}}", 500, "delete pod c2: told to");
    assert_true(bench_has(bench, PODS, "c2"));
}

/* ---- the end --------------------------------------------------------------------------------------------------------- */

static bool s_has_task(void *ctx)
{
    return ((operator_t *)ctx)->tasks != NULL;
}

/*  What is under way when the operator ends: nothing leaks, and nobody is called. */
static void test_an_end_in_the_middle(void **state)
{
    bench_t *bench = *state;
    early_t early;
    s_early_open(&early, bench);
    kube_client_send(early.client,
        &(kube_request_t){.method = "POST",
            .path = REPLICAS,
            .body = "{\"namespace\":\"n\",\"coordinator\":\"j-coordinator\",\"collectors\":{\"replicas\":3}}"},
        s_on_early, &early);
    bench_until(bench, s_has_task, bench->op);
    s_early_close(&early);
    assert_int_equal(early.code, 0);
}

/*  Who is asked to stop answers first, and takes nothing more. */
static void test_a_stop_waits_for_the_answer(void **state)
{
    bench_t *bench = *state;
    early_t early, late;
    s_early_open(&early, bench);
    s_early_open(&late, bench);
    const kube_request_t request = {.method = "POST",
        .path = REPLICAS,
        .body = "{\"namespace\":\"n\",\"coordinator\":\"j-coordinator\",\"collectors\":{\"replicas\":3}}"};
    kube_client_send(early.client, &request, s_on_early, &early);
    bench_until(bench, s_has_task, bench->op);
    operator_stop(bench->op);
    kube_client_send(late.client, &request, s_on_early, &late);
    assert_ok(operator_run(bench->op));
    assert_int_equal(s_pods(bench), 4);
    bench_until(bench, s_is_answered, &early);
    assert_int_equal(early.code, 200);
    bench_until(bench, s_is_answered, &late);
    assert_int_equal(late.code, 503);
    assert_int_equal(s_pods(bench), 4);
    s_early_close(&early);
    s_early_close(&late);
}

int main(void)
{
#define WITH(fn, setup) cmocka_unit_test_setup_teardown(fn, setup, bench_teardown)
    const struct CMUnitTest tests[] = {
        WITH(test_a_list_has_those_that_live, s_setup_job),
        WITH(test_ranks_of_tasks, s_setup_job),
        WITH(test_nobody_is_answered_before_all_is_known, bench_setup_server),
        WITH(test_a_stranger_is_refused, s_setup),
        WITH(test_a_pod_without_an_address_yet_is_waited_for, s_setup),
        WITH(test_replicas_are_there_when_they_are_answered, s_setup_job),
        WITH(test_what_cannot_be_made, s_setup_job),
        WITH(test_a_job_that_is_over_or_suspended_gets_nothing, s_setup_job),
        WITH(test_a_job_of_a_queue_gets_what_its_spec_declares, s_setup_job),
        WITH(test_many_gpus_are_ddp_learners, s_setup),
        WITH(test_declared_replicas_stay_as_they_are, s_setup),
        WITH(test_a_failed_one_is_replaced_once, s_setup_job),
        WITH(test_an_aggregator_reports_its_learners, s_setup),
        WITH(test_an_answer_stands_for_all_that_was_written, s_setup_job),
        WITH(test_ddp_learners_that_cannot_be_made, s_setup),
        WITH(test_the_youngest_go_first, s_setup_job),
        WITH(test_an_end_in_the_middle, s_setup_job),
        WITH(test_a_stop_waits_for_the_answer, s_setup_job),
    };
    return cmocka_run_group_tests(tests, NULL, world_end);
}
