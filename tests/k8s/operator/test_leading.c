/*  who leads: what is under way when the lease ends, and what another has changed meanwhile. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "k8s/api/call.h"
#include "k8s/front/kueue.h"
#include "tests/k8s/operator/rounds.h"

/* ---- the lease ------------------------------------------------------------------------------------------------------- */

#define LEASES "/apis/coordination.k8s.io/v1/namespaces/n/leases"

static bool s_leads(void *ctx)
{
    return operator_leads(ctx);
}

static int s_open_leader(void **state)
{
    bench_setup_server(state);
    bench_t *bench = *state;
    bench->clock = tt_clock_fake(BENCH_DAY_S * 1000000000);
    bench->elect = true;
    bench_open_operator(bench, "", "");
    bench_until(bench, s_leads, bench->op);
    bench_sync(bench);
    return 0;
}

static int s_setup_leader(void **state)
{
    return rounds_setup_by(s_open_leader, state);
}

/*  A POST that libcurl has, and of which nothing was sent. */
static bool s_has_begun(void *ctx)
{
    const kube_client_t *client = ((const operator_t *)ctx)->client;
    for (size_t i = 0; i < client->calls.count; i++) {
        const kube_call_t *call = client->calls.all[i].thing;
        if (call && call->state == CALL_ON_WIRE && strcmp(call->method, "POST") == 0 &&
            tt_request_waits(&call->request))
            return true;
    }
    return false;
}

static bool s_is_waiting(void *ctx)
{
    return ((const operator_t *)ctx)->client->lists[KUBE_PODS].first != NULL;
}

static bool s_has_no_rounds(void *ctx)
{
    return !((const operator_t *)ctx)->rounds;
}

static bool s_follows(void *ctx)
{
    const operator_t *op = ctx;
    return !operator_leads(op) && !op->rounds && kube_client_pending(op->client) == 0;
}

/*  It was stopped when its lease ended, and another has that. */
static void s_lose_the_lease(bench_t *bench)
{
    assert_ok(
        world_call(&bench->world, "PATCH", LEASES "/tutti-operator", "{'spec':{'holderIdentity':'other'}}", NULL));
    tt_clock_turn(&bench->clock, INT64_C(5000000000));
}

static void test_what_a_stopped_leader_had_begun_is_not_sent(void **state)
{
    bench_t *bench = *state;
    rounds_run(bench, s_has_begun);
    s_lose_the_lease(bench);
    bench_until(bench, s_follows, bench->op);
    assert_false(bench_has(bench, PODS, "j-coordinator"));
    assert_int_equal(bench->op->counters.failures, 0); /* nor is it one */
}

/*  What waits for its turn does not wait for that to hear that it may not go: another's request may take minutes. */
static void test_what_waits_ends_with_the_lease(void **state)
{
    bench_t *bench = *state;
    bench->op->client->max_in_flight = 0; /* nobody's turn comes */
    rounds_run(bench, s_is_waiting);
    s_lose_the_lease(bench);
    bench_until(bench, s_has_no_rounds, bench->op);
    assert_false(operator_leads(bench->op));
    assert_int_equal(bench->op->counters.failures, 0);
}

/* ---- the reign of another -------------------------------------------------------------------------------------------- */

/*  Another leads, writes this, and ends: we lead again. */
static void s_reign_of_another(bench_t *bench, const char *method, const char *path, const char *body)
{
    s_lose_the_lease(bench);
    bench_until(bench, s_follows, bench->op);
    assert_ok(world_call(&bench->world, method, path, body, NULL));
    assert_ok(world_call(&bench->world, "PATCH", LEASES "/tutti-operator", "{'spec':{'holderIdentity':''}}", NULL));
    tt_clock_turn(&bench->clock, INT64_C(2000000000));
    bench_until(bench, s_leads, bench->op);
}

static int s_setup_object_leader(void **state)
{
    return rounds_setup_object_by(s_setup_leader, state);
}

static bool s_has_key(void *ctx)
{
    return bench_has(ctx, SECRETS, "j-key");
}

static void test_an_object_that_another_leader_removed_is_made_again(void **state)
{
    bench_t *bench = *state;
    rounds_run(bench, rounds_made_object);
    s_reign_of_another(bench, "DELETE", SECRETS "/j-key", NULL);
    tt_queue_add(bench->op->queue, "dijob/n/j");
    bench_until(bench, s_has_key, bench);
}

static int s_setup_gang_leader(void **state)
{
    return rounds_setup_gang_by(s_setup_leader, state);
}

/*  It is as we wrote it last, and not as it is. */
static void test_a_group_that_another_leader_changed_is_written_again(void **state)
{
    bench_t *bench = *state;
    rounds_run(bench, rounds_have_coordinator);
    rounds_pod_t first = rounds_coordinator(bench->op);
    char *group = NULL;
    s_reign_of_another(bench, "PATCH", GROUPS "/j", "{'spec':{'minMember':4}}");
    assert_ok(world_call(&bench->world, "DELETE", PODS "/j-coordinator", NULL, NULL));
    bench_until(bench, rounds_have_another, &first);
    assert_ok(world_call(&bench->world, "GET", GROUPS "/j", NULL, &group));
    assert_non_null(strstr(group, "\"minMember\": 1"));
    free(group);
    free(first.uid);
}

static int s_setup_queue_leader(void **state)
{
    return rounds_setup_queue_by(s_open_leader, state);
}

typedef struct {
    bench_t *bench;
    const char *path;
} workload_t;

static bool s_is_of_its_queue(void *ctx)
{
    const workload_t *self = ctx;
    char *text = NULL;
    assert_ok(world_call(&self->bench->world, "GET", self->path, NULL, &text));
    const bool is = strstr(text, "\"queueName\": \"q\"") != NULL;
    free(text);
    return is;
}

static void test_a_workload_that_another_leader_changed_is_written_again(void **state)
{
    bench_t *bench = *state;
    assert_ok(admission_new(&bench->op->admission, bench->op));
    rounds_run(bench, rounds_made_workload);
    char *name = kueue_name(&dijob_front, bench_job(bench->op)->own), *path = tt_sprintf(WORKLOADS "/%s", name);
    workload_t workload = {bench, path};
    assert_true(s_is_of_its_queue(&workload));
    s_reign_of_another(bench, "PATCH", path, "{'spec':{'queueName':'another'}}");
    bench_until(bench, s_is_of_its_queue, &workload);
    free(path);
    free(name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_what_a_stopped_leader_had_begun_is_not_sent, s_setup_leader, bench_teardown),
        cmocka_unit_test_setup_teardown(test_what_waits_ends_with_the_lease, s_setup_leader, bench_teardown),
        cmocka_unit_test_setup_teardown(
            test_an_object_that_another_leader_removed_is_made_again, s_setup_object_leader, bench_teardown),
        cmocka_unit_test_setup_teardown(
            test_a_workload_that_another_leader_changed_is_written_again, s_setup_queue_leader, bench_teardown),
        cmocka_unit_test_setup_teardown(
            test_a_group_that_another_leader_changed_is_written_again, s_setup_gang_leader, bench_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, world_end);
}
