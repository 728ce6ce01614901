/*  deadline, time to live and suspension: what the operator does at a server, by a clock that is turned. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/k8s/operator/operator_bench.h"

#define JOBS  JOBS_PATH "/namespaces/n/dijobs"
#define J     "dijob/n/j"
#define IMAGE "{'template':{'spec':{'containers':[{'name':'di-container','image':'x:1'}]}}}"
#define ENDED                                                                                                          \
    "{'status':{'phase':'Succeeded','containerStatuses':[{'name':'di-container','state':{'terminated':{'exitCode':0}}" \
    "}]}}"

static const dijob_t *s_job(const operator_t *op)
{
    return bench_dijob(op);
}

static bool s_is_known(void *ctx)
{
    return s_job(ctx) != NULL;
}

/*  Looked at, and nothing is under way but events. */
static bool s_rests(void *ctx)
{
    const operator_t *op = ctx;
    return !op->rounds && tt_queue_depth(op->queue) == 0 && kube_client_pending(op->client) == 0;
}

static void s_make(bench_t *bench, const char *spec)
{
    char *text =
        tt_sprintf("{'apiVersion':'" DIJOB_GROUP "/v1alpha1','kind':'DIJob','metadata':{'name':'j'},'spec':{%s,"
                   "'coordinator':" IMAGE ",'collector':" IMAGE "}}",
            spec);
    bench_make(bench, JOBS, text);
    free(text);
    bench_until(bench, s_is_known, bench->op);
    tt_queue_pause(bench->op->queue, false);
}

typedef struct {
    bench_t *bench;
    dijob_phase_t phase;
    size_t pods;
} want_t;

static bool s_is_so(void *ctx)
{
    const want_t *want = ctx;
    const dijob_t *job = s_job(want->bench->op);
    return job && job->phase == want->phase && kube_store_count(bench_pods(want->bench->op)) == want->pods &&
           s_rests(want->bench->op);
}

static void s_until(bench_t *bench, dijob_phase_t phase, size_t pods)
{
    want_t want = {bench, phase, pods};
    bench_until(bench, s_is_so, &want);
}

static void s_start(bench_t *bench)
{
    assert_ok(world_call(&bench->world, "PATCH", PODS "/j-coordinator",
        "{'status':{'phase':'Running','containerStatuses':[{'name':'di-container','state':{'running':{}}}]}}", NULL));
}

/*  The hands go on; what is due then is done. */
static void s_turn(bench_t *bench, int64_t seconds)
{
    tt_clock_turn(&bench->clock, seconds * 1000000000);
    for (int i = 0; i < 10; i++)
        assert_ok(tt_reactor_poll(bench->op->loop, 20));
}

static void s_assert_metric(bench_t *bench, const char *line)
{
    char *text = NULL;
    assert_int_equal(bench_ask(bench, bench->op->probes.server, "GET", "/metrics", NULL, &text), 200);
    if (!strstr(text, line))
        fail_msg("'%s' is not in '%s'", line, text);
    free(text);
}

static bool s_is_gone(void *ctx)
{
    return !s_job(ctx) && s_rests(ctx);
}

/*  Nobody has to look: the clock alone ends it. */
static void test_a_job_fails_at_its_deadline(void **state)
{
    bench_t *bench = *state;
    s_make(bench, "'activeDeadlineSeconds':60,'cleanPodPolicy':'None'");
    s_until(bench, DIJOB_PHASE_CREATED, 1);
    s_start(bench);
    s_until(bench, DIJOB_PHASE_RUNNING, 1);
    s_turn(bench, 59);
    s_until(bench, DIJOB_PHASE_RUNNING, 1);
    s_turn(bench, 1);
    s_until(bench, DIJOB_PHASE_FAILED, 0);
    assert_non_null(strstr(s_job(bench->op)->status, "\"reason\":\"DeadlineExceeded\""));
    assert_non_null(strstr(s_job(bench->op)->status, "\"completionTimestamp\":\"2027-01-15T08:01:00Z\""));
    s_assert_metric(bench,
        "\ntutti_operator_jobs_finished_total{kind=\"dijob\",result=\"failed\",reason=\"DeadlineExceeded\"} 1\n");
}

static void test_a_job_is_deleted_when_its_time_after_the_end_is_over(void **state)
{
    bench_t *bench = *state;
    s_make(bench, "'ttlSecondsAfterFinished':30,'cleanPodPolicy':'None'");
    s_until(bench, DIJOB_PHASE_CREATED, 1);
    assert_ok(world_call(&bench->world, "PATCH", PODS "/j-coordinator", ENDED, NULL));
    s_until(bench, DIJOB_PHASE_SUCCEEDED, 1);
    s_turn(bench, 29);
    assert_true(bench_has(bench, JOBS, "j"));
    s_turn(bench, 1);
    bench_until(bench, s_is_gone, bench->op);
    assert_false(bench_has(bench, JOBS, "j"));
    s_assert_metric(bench, "\ntutti_operator_jobs_expired_total 1\n");
    s_assert_metric(bench, "\ntutti_operator_jobs_finished_total{kind=\"dijob\",result=\"succeeded\",reason=\"\"} 1\n");
    char *asked = world_ctl(&bench->world, "{'do':'asked'}");
    assert_non_null(strstr(asked, "DELETE " JOBS "/j "));
    free(asked);
}

/*  Its services go with the end, and with a suspension; what the watch has to say of that would be a reason to look again. */
static bool s_is_alone(void *ctx)
{
    return kube_store_count(bench_services(ctx)) == 0 && s_rests(ctx);
}

/*  A server that fails is asked again; the job is not forgotten meanwhile. */
static void test_a_deletion_that_fails_is_asked_for_again(void **state)
{
    bench_t *bench = *state;
    s_make(bench, "'ttlSecondsAfterFinished':30,'cleanPodPolicy':'None'");
    s_until(bench, DIJOB_PHASE_CREATED, 1);
    assert_ok(world_call(&bench->world, "PATCH", PODS "/j-coordinator", ENDED, NULL));
    s_until(bench, DIJOB_PHASE_SUCCEEDED, 1);
    bench_until(bench, s_is_alone, bench->op);
    bench_fault_of(bench, "j", "500");
    s_turn(bench, 30);
    bench_until(bench, s_rests, bench->op);
    assert_int_equal(bench->op->counters.failures, 1);
    assert_true(bench_has(bench, JOBS, "j"));
    s_turn(bench, 5); /* more than the first back-off */
    bench_until(bench, s_is_gone, bench->op);
}

/*  Somebody gave it more time, and we have not seen that yet: what is deleted is what was looked at. */
static void test_a_job_that_was_given_more_time_stays(void **state)
{
    bench_t *bench = *state;
    s_make(bench, "'ttlSecondsAfterFinished':30,'cleanPodPolicy':'None'");
    s_until(bench, DIJOB_PHASE_CREATED, 1);
    assert_ok(world_call(&bench->world, "PATCH", PODS "/j-coordinator", ENDED, NULL));
    s_until(bench, DIJOB_PHASE_SUCCEEDED, 1);
    tt_queue_pause(bench->op->queue, true);
    tt_clock_turn(&bench->clock, INT64_C(30000000000));
    assert_ok(world_call(&bench->world, "PATCH", JOBS "/j", "{'spec':{'ttlSecondsAfterFinished':100}}", NULL));
    tt_queue_pause(bench->op->queue, false); /* by what is known here its time is over */
    tt_queue_add(bench->op->queue, J);
    s_turn(bench, 0);
    s_until(bench, DIJOB_PHASE_SUCCEEDED, 1);
    assert_true(bench_has(bench, JOBS, "j"));
    s_assert_metric(bench, "\ntutti_operator_jobs_expired_total 0\n");
    s_turn(bench, 70);
    bench_until(bench, s_is_gone, bench->op);
}

static void test_a_suspended_job_has_no_pods_and_comes_back(void **state)
{
    bench_t *bench = *state;
    s_make(bench, "'suspend':true");
    s_until(bench, DIJOB_PHASE_SUSPENDED, 0);
    assert_ok(world_call(&bench->world, "PATCH", JOBS "/j", "{'spec':{'suspend':false}}", NULL));
    s_until(bench, DIJOB_PHASE_CREATED, 1);
    s_start(bench);
    s_until(bench, DIJOB_PHASE_RUNNING, 1);
    assert_ok(world_call(&bench->world, "PATCH", JOBS "/j", "{'spec':{'suspend':true}}", NULL));
    s_until(bench, DIJOB_PHASE_SUSPENDED, 0);
    assert_null(strstr(s_job(bench->op)->status, "startTimestamp"));
    bench_until(bench, s_is_alone, bench->op);
    const uint64_t rounds = bench->op->counters.rounds;
    s_turn(bench, 100);
    assert_int_equal(bench->op->counters.rounds, rounds); /* nothing to wait for */
    assert_ok(world_call(&bench->world, "PATCH", JOBS "/j", "{'spec':{'suspend':null}}", NULL));
    s_until(bench, DIJOB_PHASE_CREATED, 1);
    assert_null(strstr(s_job(bench->op)->status, "\"restarts\":1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_job_fails_at_its_deadline, bench_setup_clock, bench_teardown),
        cmocka_unit_test_setup_teardown(
            test_a_job_is_deleted_when_its_time_after_the_end_is_over, bench_setup_clock, bench_teardown),
        cmocka_unit_test_setup_teardown(
            test_a_deletion_that_fails_is_asked_for_again, bench_setup_clock, bench_teardown),
        cmocka_unit_test_setup_teardown(test_a_job_that_was_given_more_time_stays, bench_setup_clock, bench_teardown),
        cmocka_unit_test_setup_teardown(
            test_a_suspended_job_has_no_pods_and_comes_back, bench_setup_clock, bench_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, world_end);
}
