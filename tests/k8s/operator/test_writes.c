/*  writes: what each answer of the API server to a write of ours means, and what the store then holds. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "tests/k8s/operator/operator_bench.h"

#define OURS  "uid-of-the-job"
#define OTHER "uid-of-another"

typedef struct {
    int calls;
    writes_t *batch; /* NULL after the end of a test */
} ended_t;

static void s_on_done(void *ctx, writes_t *batch)
{
    ended_t *ended = ctx;
    assert_ptr_equal(ended->batch, batch);
    assert_int_equal(batch->pending, 0);
    ended->calls++;
}

static bool s_is_done(void *ctx)
{
    return ((const ended_t *)ctx)->calls > 0;
}

static writes_t *s_batch(bench_t *bench, ended_t *ended)
{
    char namespace_[] = "n", name[] = "j";
    const job_t job = {
        .meta = {.namespace_ = namespace_, .name = name, .uid = OURS, .version = 5}, .kind = bench_kind(bench->op)};
    *ended = (ended_t){.batch = writes_new(bench->op, &job, s_on_done, ended)};
    return ended->batch;
}

static void s_wait(bench_t *bench, ended_t *ended)
{
    assert_int_equal(ended->calls, 0); /* never from within a call */
    bench_until(bench, s_is_done, ended);
    assert_int_equal(ended->calls, 1);
    assert_int_equal(bench->op->writing, 0);
}

static json_t *s_object(const char *kind, const char *name, const char *job_uid)
{
    json_t *object = json_pack("{s:s, s:s, s:{s:s, s:s, s:{s:s, s:s, s:s}, s:[{s:s, s:s, s:s, s:s, s:b}]}}",
        "apiVersion", "v1", "kind", kind, "metadata", "name", name, "namespace", "n", "labels", "controller-name",
        "di-operator", "dijob-name", "j", "replica-type", "collector", "ownerReferences", "apiVersion",
        DIJOB_GROUP "/v1alpha1", "kind", "DIJob", "name", "j", "uid", job_uid, "controller", 1);
    assert_non_null(object);
    return object;
}

/*  One pod is asked for; how that ended. The batch is the caller's. */
static const writes_one_t *s_create_pod(bench_t *bench, ended_t *ended, const char *name)
{
    json_t *pod = s_object("Pod", name, OURS);
    const writes_one_t *write = writes_create(s_batch(bench, ended), &writes_pod, pod);
    json_decref(pod);
    s_wait(bench, ended);
    return write;
}

/*  A pod that is there before us. */
static void s_there(bench_t *bench, const char *name, const char *job_uid, bool going)
{
    json_t *pod = s_object("Pod", name, job_uid);
    if (going)
        json_object_set_new(json_object_get(pod, "metadata"), "deletionTimestamp", json_string("2026-11-21T10:00:00Z"));
    char *text = json_dumps(pod, 0);
    bench_make(bench, PODS, text);
    free(text);
    json_decref(pod);
}

static void s_assert_word(const char *text, const char *words)
{
    if (!text || !strstr(text, words))
        fail_msg("'%s' is not in '%s'", words, text ? text : "(nothing)");
}

/* ---- making ---------------------------------------------------------------------------------------------------------- */

static void test_what_was_made_is_in_the_store_when_its_batch_ends(void **state)
{
    bench_t *bench = *state;
    ended_t ended;
    json_t *pod = s_object("Pod", "p", OURS), *service = s_object("Service", "s", OURS);
    writes_t *batch = s_batch(bench, &ended);
    const writes_one_t *writes[] = {
        writes_create(batch, &writes_pod, pod), writes_create(batch, &writes_service, service)};
    assert_int_equal(bench->op->writing, 2);
    s_wait(bench, &ended);
    for (size_t i = 0; i < TT_COUNT(writes); i++) {
        assert_int_equal(writes[i]->status, TT_OK);
        assert_int_equal(writes[i]->code, 201);
        assert_null(writes[i]->text);
    }
    const dijob_pod_t *kept = kube_store_get(bench_pods(bench->op), "n", "p");
    assert_non_null(kept);
    assert_string_equal(kept->job_uid, OURS);
    assert_non_null(kube_store_get(bench_services(bench->op), "n", "s"));
    assert_true(bench_has(bench, PODS, "p"));
    assert_true(bench_has(bench, SERVICES, "s"));
    json_decref(pod);
    json_decref(service);
    writes_destroy(&ended.batch);
}

static void test_what_is_refused_is_not_what_failed(void **state)
{
    static const struct {
        const char *fault;
        int code;
        tt_status_t status;
    } table[] = {{"403", 403, TT_INVALID}, {"500", 500, TT_UNAVAILABLE}};
    bench_t *bench = *state;
    for (size_t i = 0; i < TT_COUNT(table); i++) {
        ended_t ended;
        bench_fault(bench, "write", table[i].fault);
        const writes_one_t *write = s_create_pod(bench, &ended, "p");
        assert_int_equal(write->status, table[i].status);
        assert_int_equal(write->code, table[i].code);
        s_assert_word(write->text, "told to");
        assert_null(kube_store_get(bench_pods(bench->op), "n", "p"));
        writes_destroy(&ended.batch);
    }
}

/*  Done, but the answer was lost: asking for the same name once more ends well, and there is one pod. */
static void test_a_name_that_is_asked_for_twice_is_the_same_pod(void **state)
{
    bench_t *bench = *state;
    ended_t ended;
    bench_fault(bench, "write", "lost");
    const tt_status_t first = s_create_pod(bench, &ended, "p")->status; /* libcurl may have asked again by itself */
    assert_true(first == TT_OK || first == TT_UNAVAILABLE);
    writes_destroy(&ended.batch);
    const writes_one_t *write = s_create_pod(bench, &ended, "p");
    assert_int_equal(write->status, TT_OK);
    assert_int_equal(write->code, 409);
    assert_int_equal(kube_store_count(bench_pods(bench->op)), 1);
    writes_destroy(&ended.batch);
}

static void test_a_name_that_is_somebody_elses(void **state)
{
    bench_t *bench = *state;
    ended_t ended;
    s_there(bench, "p", OTHER, false);
    s_there(bench, "q", OTHER, true);
    const writes_one_t *write = s_create_pod(bench, &ended, "p");
    assert_int_equal(write->status, TT_EXISTS);
    s_assert_word(write->text, "pod p is there already and does not belong to this job");
    writes_destroy(&ended.batch);
    write = s_create_pod(bench, &ended, "q");
    assert_int_equal(write->status, TT_AGAIN); /* not for long */
    s_assert_word(write->text, "on its way out");
    writes_destroy(&ended.batch);
}

/* ---- removing -------------------------------------------------------------------------------------------------------- */

static void test_what_is_removed_and_what_was_gone_before(void **state)
{
    bench_t *bench = *state;
    ended_t ended;
    s_create_pod(bench, &ended, "p");
    writes_destroy(&ended.batch);
    const kube_meta_t *meta = kube_store_get(bench_pods(bench->op), "n", "p");
    const writes_one_t *write = writes_delete(s_batch(bench, &ended), &writes_pod, meta, 0);
    assert_true(write->deletes);
    assert_string_equal(write->uid, meta->uid);
    s_wait(bench, &ended);
    assert_int_equal(write->status, TT_OK);
    assert_int_equal(write->code, 200);
    assert_false(bench_has(bench, PODS, "p"));
    writes_destroy(&ended.batch);

    char namespace_[] = "n", name[] = "never-there";
    const kube_meta_t gone = {.namespace_ = namespace_, .name = name, .uid = "uid", .version = 3};
    write = writes_delete(s_batch(bench, &ended), &writes_pod, &gone, -1);
    s_wait(bench, &ended);
    assert_int_equal(write->status, TT_OK); /* it is as we want it */
    assert_int_equal(write->code, 404);
    writes_destroy(&ended.batch);
}

static void test_a_removal_that_failed_leaves_the_store_as_it_is(void **state)
{
    bench_t *bench = *state;
    ended_t ended;
    s_create_pod(bench, &ended, "p");
    writes_destroy(&ended.batch);
    bench_fault(bench, "write", "500");
    const kube_meta_t *meta = kube_store_get(bench_pods(bench->op), "n", "p");
    const writes_one_t *write = writes_delete(s_batch(bench, &ended), &writes_pod, meta, -1);
    s_wait(bench, &ended);
    assert_int_equal(write->status, TT_UNAVAILABLE);
    assert_non_null(kube_store_get(bench_pods(bench->op), "n", "p"));
    assert_true(bench_has(bench, PODS, "p"));
    writes_destroy(&ended.batch);
}

/*  What is under way when the operator ends: nobody is called, nothing leaks. */
static void test_an_end_in_the_middle(void **state)
{
    bench_t *bench = *state;
    ended_t ended;
    json_t *pod = s_object("Pod", "p", OURS);
    writes_create(s_batch(bench, &ended), &writes_pod, pod);
    json_decref(pod);
    assert_int_equal(ended.calls, 0);
}

/* ---- leading --------------------------------------------------------------------------------------------------------- */

static bool s_has_p(void *ctx)
{
    return kube_store_get(bench_pods(ctx), "n", "p") != NULL;
}

static void s_assert_no_events(bench_t *bench)
{
    char *body = NULL;
    assert_ok(world_call(&bench->world, "GET", "/api/v1/namespaces/n/events?limit=9", NULL, &body));
    s_assert_word(body, "\"items\": []");
    free(body);
}

/*  The lease is another's: a round's writes are not sent, are no failures that anybody is told of, and come again. A write
 *  that somebody asked for over HTTP is everybody's. The clock stands: nobody renews the other's lease. */
static void test_who_does_not_lead_writes_nothing_for_itself(void **state)
{
    bench_t *bench = *state;
    ended_t ended;
    const kube_lease_opts_t opts = {.namespace_ = "n", .name = "l", .holder = "us"};
    bench_make(bench, "/apis/coordination.k8s.io/v1/namespaces/n/leases",
        "{'metadata':{'name':'l'},'spec':{'holderIdentity':'other','leaseDurationSeconds':3600}}");
    assert_ok(kube_lease_new(&bench->op->lease, bench->op->client, &opts));
    s_there(bench, "p", OURS, false);
    bench_until(bench, s_has_p, bench->op);
    json_t *pod = s_object("Pod", "q", OURS);
    writes_t *batch = s_batch(bench, &ended);
    batch->lead = true;
    const writes_one_t *writes[] = {writes_create(batch, &writes_pod, pod),
        writes_delete(batch, &writes_pod, kube_store_get(bench_pods(bench->op), "n", "p"), -1)};
    s_wait(bench, &ended);
    for (size_t i = 0; i < TT_COUNT(writes); i++)
        assert_true(writes[i]->status == TT_AGAIN && writes[i]->code == 0 && !writes[i]->text);
    assert_true(bench_has(bench, PODS, "p") && !bench_has(bench, PODS, "q"));
    s_assert_no_events(bench);
    writes_destroy(&ended.batch);
    batch = s_batch(bench, &ended);
    writes_create(batch, &writes_pod, pod);
    s_wait(bench, &ended);
    assert_true(bench_has(bench, PODS, "q"));
    writes_destroy(&ended.batch);
    json_decref(pod);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_what_was_made_is_in_the_store_when_its_batch_ends, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_what_is_refused_is_not_what_failed, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(
            test_a_name_that_is_asked_for_twice_is_the_same_pod, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_a_name_that_is_somebody_elses, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_what_is_removed_and_what_was_gone_before, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(
            test_a_removal_that_failed_leaves_the_store_as_it_is, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(
            test_who_does_not_lead_writes_nothing_for_itself, bench_setup_clock, bench_teardown),
        cmocka_unit_test_setup_teardown(test_an_end_in_the_middle, bench_setup, bench_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, world_end);
}
