/*  round: looks at a job until there is nothing to do; and what a server that fails or refuses does to that. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/k8s/operator/rounds.h"

static int s_setup(void **state)
{
    return rounds_setup_by(bench_setup, state);
}

static int s_setup_clock(void **state)
{
    return rounds_setup_by(bench_setup_clock, state);
}

static const dijob_t *s_job(const operator_t *op)
{
    return bench_dijob(op);
}

static bool s_is_over(void *ctx)
{
    const operator_t *op = ctx;
    return dijob_phase_final(s_job(op)->phase) && kube_store_count(bench_pods(op)) == 0 && rounds_rest(ctx);
}

static bool s_is_refused(void *ctx)
{
    const char *status = s_job(ctx)->status;
    return status && strstr(status, "\"reason\":\"TemplateRefused\"");
}

static uint64_t s_requests(const operator_t *op)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < CODES; i++)
        sum += op->counters.requests[i].count;
    return sum;
}

static void test_a_job_gets_its_coordinator_and_is_left_alone_then(void **state)
{
    bench_t *bench = *state;
    rounds_run(bench, rounds_rest);
    assert_int_equal(kube_store_count(bench_pods(bench->op)), 1);
    assert_true(bench_has(bench, PODS, "j-coordinator"));
    assert_int_not_equal(s_job(bench->op)->phase, DIJOB_PHASE_NONE);
    assert_int_equal(bench->op->counters.failures, 0);
    const uint64_t requests = s_requests(bench->op), rounds = bench->op->counters.rounds;
    tt_queue_add(bench->op->queue, "dijob/n/j"); /* a look without a change */
    bench_until(bench, rounds_rest, bench->op);
    assert_true(bench->op->counters.rounds > rounds);
    assert_int_equal(s_requests(bench->op), requests);
}

static void test_a_status_that_was_not_taken_is_written_again(void **state)
{
    bench_t *bench = *state;
    bench_fault(bench, "status", "500");
    rounds_run(bench, rounds_rest);
    assert_int_equal(bench->op->counters.failures, 1);
    assert_int_equal(kube_store_count(bench_pods(bench->op)), 1);
}

/*  403: told in the status, and not asked for again before a minute is over. */
static void test_a_pod_that_is_refused_is_told_of_and_not_asked_for_again(void **state)
{
    bench_t *bench = *state;
    bench_fault(bench, "write", "403");
    rounds_run(bench, rounds_rest);
    const job_t *job = bench_job(bench->op);
    assert_int_equal(job->notes.refused.count, 1);
    assert_string_equal(job->notes.refused.list[0].words, "told to");
    assert_non_null(strstr(bench_dijob(bench->op)->status, "PodForbidden"));
    assert_int_equal(kube_store_count(bench_pods(bench->op)), 0);
    tt_queue_add(bench->op->queue, "dijob/n/j");
    bench_until(bench, rounds_rest, bench->op);
    assert_false(bench_has(bench, PODS, "j-coordinator"));
}

static bool s_has_refused(void *ctx)
{
    const operator_t *op = ctx;
    return bench_job(op)->notes.refused.count == 1 && rounds_rest(ctx);
}

static bool s_has_coordinator_and_collector(void *ctx)
{
    const operator_t *op = ctx;
    return kube_store_count(bench_pods(op)) == 2 && bench_job(op)->notes.refused.count == 0;
}

/*  A coordinator that is deleted comes back while no time passes, though the collectors have a minute to wait. */
static void test_a_role_that_is_refused_holds_no_other(void **state)
{
    bench_t *bench = *state;
    rounds_run(bench, rounds_rest);
    bench_fault_of(bench, "-collector-", "403");
    assert_ok(world_call(&bench->world, "PATCH", JOBS "/j",
        "{'spec':{'collector':{'replicas':1,'template':{'spec':{'containers':[{'name':'di-container','image':'x'}]}}}}"
        "}",
        NULL));
    bench_until(bench, s_has_refused, bench->op);
    assert_int_equal(bench_job(bench->op)->notes.refused.list[0].group, dijob_group(DIJOB_COLLECTOR, -1));
    rounds_pod_t first = rounds_coordinator(bench->op);
    assert_ok(world_call(&bench->world, "DELETE", PODS "/j-coordinator", NULL, NULL));
    bench_until(bench, rounds_have_another, &first);
    assert_int_equal(bench_job(bench->op)->notes.refused.count, 1);
    tt_clock_turn(&bench->clock, INT64_C(60000000000));
    bench_until(bench, s_has_coordinator_and_collector, bench->op);
    free(first.uid);
}

static bool s_has_all_roles(void *ctx)
{
    const operator_t *op = ctx;
    const void *at = NULL;
    const dijob_pod_t *pod;
    unsigned roles = 0;
    while ((pod = kube_store_each(bench_pods(op), &at)) != NULL)
        roles |= 1u << pod->role;
    return roles == (1u << DIJOB_COORDINATOR | 1u << DIJOB_COLLECTOR | 1u << DIJOB_AGGREGATOR);
}

static bool s_has_collector(void *ctx)
{
    const operator_t *op = ctx;
    return kube_store_count(bench_pods(op)) == 2 && op->counters.failures == 1;
}

/*  What aggregators are made of cannot be read: the collectors are made, and the aggregator when it can. */
static void test_a_template_that_cannot_be_read_holds_no_other_role(void **state)
{
    bench_t *bench = *state;
    rounds_run(bench, rounds_rest);
    free(world_ctl(
        &bench->world, "{'do':'faults','faults':[{'at':'read','of':'aggregator-config','what':'500','times':2}]}"));
    assert_ok(world_call(&bench->world, "PATCH", JOBS "/j",
        "{'spec':{'collector':{'replicas':1,'template':{'spec':{'containers':[{'name':'di-container','image':'x'}]}}},"
        "'learner':{'template':{'spec':{'containers':[{'name':'di-container','image':'x'}]}}},"
        "'aggregator':{'replicas':1}}}",
        NULL));
    bench_until(bench, s_has_collector, bench->op);
    bench_until(bench, s_has_all_roles, bench->op);
}

static void test_what_has_ended_is_written_down_and_cleaned_up(void **state)
{
    bench_t *bench = *state;
    rounds_run(bench, rounds_rest);
    assert_ok(world_call(&bench->world, "PATCH", PODS "/j-coordinator",
        "{'status':{'phase':'Succeeded','containerStatuses':[{'name':'di-container','state':{'terminated':{"
        "'exitCode':0}}}]}}",
        NULL));
    bench_until(bench, s_is_over, bench->op);
    assert_int_equal(s_job(bench->op)->phase, DIJOB_PHASE_SUCCEEDED);
    assert_false(bench_has(bench, PODS, "j-coordinator"));
}

/*  The phase is written before it is acted on: as long as it cannot be, nothing goes. */
static void test_nothing_is_removed_before_its_reason_is_written_down(void **state)
{
    bench_t *bench = *state;
    rounds_run(bench, rounds_rest);
    const uint64_t failures = bench->op->counters.failures;
    free(world_ctl(&bench->world, "{'do':'faults','faults':[{'at':'status','what':'500','times':2}]}"));
    assert_ok(world_call(&bench->world, "PATCH", PODS "/j-coordinator", "{'status':{'phase':'Succeeded'}}", NULL));
    while (bench->op->counters.failures < failures + 2) {
        assert_true(bench_has(bench, PODS, "j-coordinator"));
        assert_ok(tt_reactor_poll(bench->op->loop, 1000));
    }
    bench_until(bench, s_is_over, bench->op);
    assert_int_equal(bench->op->counters.failures, failures + 2);
}

/*  An aggregator that is made of nothing: there is no learner to make it of. Told once, and not looked at again and again. */
static void test_a_pod_that_cannot_be_built_is_no_work_for_ever(void **state)
{
    bench_t *bench = *state;
    rounds_run(bench, rounds_rest);
    assert_ok(world_call(&bench->world, "PATCH", JOBS "/j", "{'spec':{'aggregator':{'replicas':1}}}", NULL));
    assert_ok(world_call(&bench->world, "PATCH", PODS "/j-coordinator",
        "{'status':{'phase':'Running','containerStatuses':[{'name':'di-container','state':{'running':{}}}]}}", NULL));
    bench_until(bench, s_is_refused, bench->op);
    uint64_t rounds = UINT64_MAX; /* a few more, as the watch comes to tell of what was written */
    for (int looks = 0; rounds != bench->op->counters.rounds; looks++) {
        assert_true(looks < 10);
        bench_until(bench, rounds_rest, bench->op);
        rounds = bench->op->counters.rounds;
        for (int i = 0; i < 20; i++) /* a loop that has work does not wait */
            assert_ok(tt_reactor_poll(bench->op->loop, 20));
    }
    assert_non_null(strstr(s_job(bench->op)->status, "an aggregator is made of"));
}

/* ---- objects beside pods and services ------------------------------------------------------------------------------ */

static int s_setup_object(void **state)
{
    return rounds_setup_object_by(s_setup, state);
}

static bool s_is_removed(void *ctx)
{
    const operator_t *op = ctx;
    return rounds_job(op)->notes.removed == 1 && !op->rounds && tt_queue_depth(op->queue) == 0;
}

static void s_suspend(bench_t *bench)
{
    assert_ok(world_call(&bench->world, "PATCH", JOBS "/j", "{'spec':{'suspend':true}}", NULL));
}

static void test_an_object_is_made_removed_and_remembered(void **state)
{
    bench_t *bench = *state;
    rounds_run(bench, rounds_made_object);
    assert_true(bench_has(bench, SECRETS, "j-key"));
    bench_fault_of(bench, "j-key", "500"); /* it is asked for again */
    s_suspend(bench);
    bench_until(bench, s_is_removed, bench->op);
    assert_false(bench_has(bench, SECRETS, "j-key"));
    assert_int_equal(rounds_job(bench->op)->notes.made, 0);
    assert_int_equal(bench->op->counters.failures, 1);
    tt_queue_add(bench->op->queue, "dijob/n/j"); /* what the next plan is told */
    bench_until(bench, s_is_removed, bench->op);
    assert_true(rounds_planned.job && rounds_planned.made == 0 && rounds_planned.removed == 1);
}

static bool s_is_suspended(void *ctx)
{
    return ((const dijob_t *)rounds_job(ctx)->own)->suspend;
}

/*  Made by an operator before us, or never. */
static void test_an_object_that_is_gone_is_removed(void **state)
{
    bench_t *bench = *state;
    s_suspend(bench);
    bench_until(bench, s_is_suspended, bench->op); /* else it would be made first */
    rounds_run(bench, s_is_removed);
    assert_int_equal(bench->op->counters.failures, 0);
}

/* ---- a PodGroup ---------------------------------------------------------------------------------------------------- */

static int s_setup_gang(void **state)
{
    return rounds_setup_gang_by(s_setup, state);
}

static bool s_is_grouped(const operator_t *op)
{
    const front_pod_t *pod = kube_store_get(bench_pods(op), "n", "j-coordinator");
    assert_non_null(pod);
    return pod->grouped;
}

/*  Where in what was asked for stands the first that has this in it? */
static size_t s_asked_at(bench_t *bench, const char *what)
{
    char *asked = world_ctl(&bench->world, "{'do':'asked'}");
    const char *at = strstr(asked, what);
    assert_non_null(at);
    const size_t place = (size_t)(at - asked);
    free(asked);
    return place;
}

/*  It fails at first: no pod is made before it is there. Then it is written once, whatever is looked at. */
static void test_no_pod_before_its_group(void **state)
{
    bench_t *bench = *state;
    bench_fault(bench, "write", "500");
    rounds_run(bench, rounds_have_coordinator);
    assert_int_equal(bench->op->counters.failures, 1);
    assert_true(bench_has(bench, GROUPS, "j"));
    assert_true(s_is_grouped(bench->op));
    assert_true(s_asked_at(bench, "PATCH " GROUPS) < s_asked_at(bench, "POST " PODS));
    const uint64_t requests = s_requests(bench->op);
    tt_queue_add(bench->op->queue, "dijob/n/j");
    bench_until(bench, rounds_have_coordinator, bench->op);
    assert_int_equal(s_requests(bench->op), requests);
}

static void test_without_pod_groups_pods_are_made_all_the_same(void **state)
{
    bench_t *bench = *state;
    bench_fault(bench, "write", "404");
    rounds_run(bench, rounds_have_coordinator);
    assert_true(bench_job(bench->op)->notes.gangless);
    assert_int_equal(bench->op->counters.failures, 0);
    assert_false(s_is_grouped(bench->op));
    assert_false(bench_has(bench, GROUPS, "j"));
}

/*  With its job's end; another's of that name stays. */
static void test_a_group_goes_with_its_job_and_no_other_does(void **state)
{
    bench_t *bench = *state;
    rounds_run(bench, rounds_have_coordinator);
    assert_ok(world_call(&bench->world, "PATCH", PODS "/j-coordinator", "{'status':{'phase':'Succeeded'}}", NULL));
    bench_until(bench, s_is_over, bench->op);
    assert_false(bench_has(bench, GROUPS, "j"));
    assert_true(bench_job(bench->op)->notes.ungrouped);
}

static void test_a_group_of_another_stays(void **state)
{
    bench_t *bench = *state;
    bench_make(bench, GROUPS,
        "{'metadata':{'name':'j','ownerReferences':[{'uid':'another','controller':true}]},'spec':{'minMember':7}}");
    s_suspend(bench);
    bench_until(bench, s_is_suspended, bench->op); /* it is not looked at before */
    rounds_run(bench, rounds_rest);
    assert_true(bench_job(bench->op)->notes.ungrouped);
    assert_true(bench_has(bench, GROUPS, "j"));
}

/* ---- what was sent for a job that has changed since ------------------------------------------------------------------ */

static bool s_is_held(void *ctx)
{
    return world_met(&((bench_t *)ctx)->world);
}

static bool s_is_second(void *ctx)
{
    return job_info(bench_job(ctx)).generation == 2;
}

/*  While the one fault holds `what` back the job is changed, and the operator has seen it. */
static void s_change_meanwhile(bench_t *bench, const char *what)
{
    tt_queue_pause(bench->op->queue, false);
    bench_until(bench, s_is_held, bench);
    (void)s_asked_at(bench, what);
    assert_ok(world_call(&bench->world, "PATCH", JOBS "/j", "{'metadata':{'generation':2}}", NULL));
    bench_until(bench, s_is_second, bench->op);
    free(world_ctl(&bench->world, "{'do':'let'}"));
}

/*  What was refused was made of the template of before. */
static void test_a_refusal_that_comes_late_is_not_of_the_mended_job(void **state)
{
    bench_t *bench = *state;
    bench_fault(bench, "write", "held403");
    s_change_meanwhile(bench, "POST " PODS);
    bench_until(bench, rounds_rest, bench->op);
    assert_true(bench_has(bench, PODS, "j-coordinator"));
    assert_int_equal(bench_job(bench->op)->notes.refused.count, 0);
}

/* ---- queues -------------------------------------------------------------------------------------------------------- */

static int s_setup_queue(void **state)
{
    return rounds_setup_queue_by(bench_setup, state);
}

static bool s_has_words(void *ctx)
{
    const job_t *job = bench_job(ctx);
    const char *status = bench_dijob(ctx)->status;
    return job->notes.unqueued && status && strstr(status, job->notes.unqueued);
}

/*  Refused, the job waits and says so; then it is there, and nothing more is written of it. */
static void test_a_job_of_a_queue_has_a_workload_and_no_pod(void **state)
{
    bench_t *bench = *state;
    assert_ok(admission_new(&bench->op->admission, bench->op));
    bench_fault_of(bench, "dijob-j-", "403");
    rounds_run(bench, s_has_words);
    bench_until(bench, rounds_made_workload, bench->op);
    assert_null(bench_job(bench->op)->notes.unqueued);
    char *asked = world_ctl(&bench->world, "{'do':'asked'}");
    assert_non_null(strstr(asked, "PATCH " WORKLOADS "/dijob-j-"));
    assert_null(strstr(asked, "POST " PODS));
    free(asked);
    const uint64_t requests = s_requests(bench->op);
    tt_queue_add(bench->op->queue, "dijob/n/j");
    bench_until(bench, rounds_made_workload, bench->op);
    assert_int_equal(s_requests(bench->op), requests);
}

static bool s_has_second_workload(void *ctx)
{
    const job_t *job = bench_job(ctx);
    return job->notes.workload && strcmp(job->notes.workload, "2/q") == 0 && rounds_rest(ctx);
}

/*  It is written again: what was written is of the job as it was. */
static void test_a_workload_of_before_is_written_again(void **state)
{
    bench_t *bench = *state;
    assert_ok(admission_new(&bench->op->admission, bench->op));
    bench_fault_of(bench, "dijob-j-", "held");
    s_change_meanwhile(bench, "PATCH " WORKLOADS);
    bench_until(bench, s_has_second_workload, bench->op);
    char *asked = world_ctl(&bench->world, "{'do':'asked'}");
    const char *first = strstr(asked, "PATCH " WORKLOADS);
    assert_non_null(strstr(first + 1, "PATCH " WORKLOADS));
    free(asked);
}

/*  Another job, without pods. */
static bool s_k_says_why(void *ctx)
{
    const operator_t *op = ctx;
    const job_t *job = cache_job(bench_kind(op), "n", "k");
    const char *status = job ? ((const dijob_t *)job->own)->status : NULL;
    return status && strstr(status, "no Workloads of kueue.x-k8s.io/v1beta2") && rounds_rest(ctx);
}

/*  403 or 404: who has no pods waits, and says why. Who has some may have been admitted, and is left alone. */
static void test_without_workloads_jobs_wait_and_what_runs_is_left_alone(void **state)
{
    bench_t *bench = *state;
    rounds_run(bench, rounds_have_coordinator); /* of no queue, before there was one */
    char *before = tt_strdup(s_job(bench->op)->status);
    free(world_ctl(
        &bench->world, "{'do':'faults','faults':[{'at':'list','of':'/workloads','what':'403','times':1000000}]}"));
    assert_ok(admission_new(&bench->op->admission, bench->op));
    bench_make(bench, JOBS,
        "{'apiVersion':'" DIJOB_GROUP
        "/v1alpha1','kind':'DIJob','metadata':{'name':'k','labels':{'kueue.x-k8s.io/queue-"
        "name':'q'}},'spec':{'coordinator':{'template':{'spec':{'containers':[{'name':'di-container','image':'x:1'}]}}}"
        "}}");
    bench_until(bench, s_k_says_why, bench->op);
    tt_queue_add(bench->op->queue, "dijob/n/j");
    bench_until(bench, rounds_rest, bench->op);
    assert_string_equal(s_job(bench->op)->status, before);
    assert_int_equal(kube_store_count(bench_pods(bench->op)), 1);
    free(before);
}

/* ---- in a coordinator ---------------------------------------------------------------------------------------------- */

/*  The operator of one job, in the pod that coordinates it. */
static int s_setup_embedded(void **state)
{
    bench_setup_server(state);
    bench_t *bench = *state;
    const operator_opts_t opts = {.kube = {.path = bench->file},
        .namespace_ = "n",
        .only_job = "j",
        .own_pod = "j-coordinator",
        .listen = "",
        .probes = ""};
    bench_make(bench, JOBS,
        "{'apiVersion':'" DIJOB_GROUP
        "/v1alpha1','kind':'DIJob','metadata':{'name':'j'},'spec':{'managedBy':'coordinator',"
        "'coordinator':{'template':{'spec':{'containers':[{'name':'di-container','image':'x:1'}]}}}}}");
    bench_make(bench, PODS,
        "{'metadata':{'name':'j-coordinator','labels':{'controller-name':'di-operator','dijob-name':'j',"
        "'replica-type':'coordinator'}},'spec':{'containers':[{'name':'di-container','image':'x:1'}]}}");
    assert_ok(operator_new(&bench->op, &opts));
    return 0;
}

static bool s_is_known(void *ctx)
{
    return cache_synced(((operator_t *)ctx)->cache) && rounds_rest(ctx);
}

static void test_last_words_that_were_not_taken_are_said_again(void **state)
{
    bench_t *bench = *state;
    bench_until(bench, s_is_known, bench->op);
    bench_fault(bench, "status", "500");
    operator_end(bench->op, true);
    assert_ok(operator_run(bench->op));
    assert_int_equal(bench->op->counters.failures, 1);
    assert_int_equal(s_job(bench->op)->phase, DIJOB_PHASE_SUCCEEDED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_a_job_gets_its_coordinator_and_is_left_alone_then, s_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_a_status_that_was_not_taken_is_written_again, s_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(
            test_a_pod_that_is_refused_is_told_of_and_not_asked_for_again, s_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_a_role_that_is_refused_holds_no_other, s_setup_clock, bench_teardown),
        cmocka_unit_test_setup_teardown(
            test_a_template_that_cannot_be_read_holds_no_other_role, s_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_what_has_ended_is_written_down_and_cleaned_up, s_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(
            test_nothing_is_removed_before_its_reason_is_written_down, s_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_a_pod_that_cannot_be_built_is_no_work_for_ever, s_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_an_object_is_made_removed_and_remembered, s_setup_object, bench_teardown),
        cmocka_unit_test_setup_teardown(test_an_object_that_is_gone_is_removed, s_setup_object, bench_teardown),
        cmocka_unit_test_setup_teardown(
            test_a_refusal_that_comes_late_is_not_of_the_mended_job, s_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_a_workload_of_before_is_written_again, s_setup_queue, bench_teardown),
        cmocka_unit_test_setup_teardown(test_no_pod_before_its_group, s_setup_gang, bench_teardown),
        cmocka_unit_test_setup_teardown(
            test_without_pod_groups_pods_are_made_all_the_same, s_setup_gang, bench_teardown),
        cmocka_unit_test_setup_teardown(test_a_group_goes_with_its_job_and_no_other_does, s_setup_gang, bench_teardown),
        cmocka_unit_test_setup_teardown(test_a_group_of_another_stays, s_setup_gang, bench_teardown),
        cmocka_unit_test_setup_teardown(test_a_job_of_a_queue_has_a_workload_and_no_pod, s_setup_queue, bench_teardown),
        cmocka_unit_test_setup_teardown(
            test_without_workloads_jobs_wait_and_what_runs_is_left_alone, s_setup_queue, bench_teardown),
        cmocka_unit_test_setup_teardown(
            test_last_words_that_were_not_taken_are_said_again, s_setup_embedded, bench_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, world_end);
}
