/*  The plan for jobs of tasks: the state machine, ranks, restarts, scaling, numbers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/k8s/dijob/cluster.h"

static int s_setup(void **state)
{
    static cluster_t cluster;
    cluster_tasks(&cluster, "atari", "collector:2 learner:1");
    *state = &cluster;
    return 0;
}

static void s_running(cluster_t *c)
{
    cluster_settle(c, 10);
    cluster_run_all(c, 20);
    assert_string_equal(cluster_phase(c), "Running");
}

static void s_rank_is(const cluster_t *c, const char *pod, int rank)
{
    assert_non_null(cluster_get(c, pod));
    assert_int_equal(cluster_get(c, pod)->rank, rank);
}

static void test_from_pending_to_succeeded(void **state)
{
    cluster_t *c = *state;
    cluster_round(c);
    assert_string_equal(cluster_phase(c), "Pending");
    assert_int_equal(c->pod_count, 3);
    s_rank_is(c, "atari-collector-0", 0);
    s_rank_is(c, "atari-collector-1", 1);
    s_rank_is(c, "atari-learner-0", 2);
    assert_int_equal(c->service_count, 1);
    assert_string_equal(c->services[0]->meta.name, "di-atari");
    cluster_settle(c, 10);
    assert_string_equal(cluster_phase(c), "Starting");
    assert_string_equal(cluster_status(c, "taskStatus"), "{\"collector\":{\"Pending\":2},\"learner\":{\"Pending\":1}}");
    assert_string_equal(cluster_status(c, "replicas"), "3");
    cluster_run_all(c, 20);
    assert_string_equal(cluster_condition(c, "Running"), "True JobRunning job is running since all pods are ready.");
    assert_string_equal(
        cluster_condition(c, "Starting"), "False JobStarting job is starting since all pods are created.");
    assert_string_equal(cluster_status(c, "readyReplicas"), "3");
    for (size_t i = 0; i < 3; i++)
        pod_end(c, c->pods[i], 0);
    cluster_settle(c, 10);
    assert_string_equal(
        cluster_condition(c, "Succeeded"), "True JobSucceeded job succeeded since all the replicas are succeeded.");
    assert_string_equal(cluster_condition(c, "Running"), "False JobRunning job is running since all pods are ready.");
    assert_string_equal(
        cluster_status(c, "taskStatus"), "{\"collector\":{\"Succeeded\":2},\"learner\":{\"Succeeded\":1}}");
    assert_true(*cluster_status(c, "completionTimestamp") != 0);
    assert_int_equal(c->service_count, 0);
    assert_int_equal(c->pod_count, 3);
    assert_string_equal(c->events, "Normal JobPending job is pending since it was created.\n"
                                   "Normal JobStarting job is starting since all pods are created.\n"
                                   "Normal JobRunning job is running since all pods are ready.\n"
                                   "Normal JobSucceeded job succeeded since all the replicas are succeeded.\n");
}

static void test_failures_up_to_the_limit(void **state)
{
    cluster_t *c = *state;
    s_running(c);
    for (int i = 1; i <= 3; i++) {
        c->now_s += 30;
        pod_end(c, cluster_get(c, "atari-collector-1"), 1);
        cluster_round(c);
        assert_string_equal(cluster_phase(c), "Restarting");
        assert_string_equal(
            cluster_condition(c, "Restarting"), "True JobRestarting job is restarting since 1 pods failed");
        assert_int_equal(atoi(cluster_status(c, "restarts")), i);
        cluster_settle(c, 20);
        assert_string_equal(cluster_phase(c), "Starting");
        assert_int_equal(cluster_get(c, "atari-collector-1")->phase, POD_PENDING);
        s_rank_is(c, "atari-collector-1", 1);
        cluster_run_all(c, 20);
        assert_string_equal(cluster_phase(c), "Running");
    }
    pod_end(c, cluster_get(c, "atari-collector-1"), 1);
    cluster_settle(c, 20);
    assert_string_equal(
        cluster_condition(c, "Failed"), "True JobFailed job failed since 1 pods failed and exceed backoff limit");
    assert_string_equal(cluster_status(c, "restarts"), "3");
    assert_int_equal(c->pod_count, 1); /* the failed one; the others ran */
    assert_non_null(strstr(c->events, "Warning JobRestarting"));
    assert_non_null(strstr(c->events, "Warning JobFailed"));
}

static void test_a_code_of_the_policy_ends_it_before_the_limit(void **state)
{
    cluster_t *c = *state;
    c->job.policy = true;
    tt_code_set_put(&c->job.fatal, 2, true);
    s_running(c);
    pod_end(c, cluster_get(c, "atari-collector-1"), 1);
    cluster_settle(c, 20);
    cluster_run_all(c, 20);
    assert_string_equal(cluster_phase(c), "Running");
    pod_end(c, cluster_get(c, "atari-collector-1"), 2);
    cluster_settle(c, 20);
    assert_string_equal(cluster_condition(c, "Failed"),
        "True JobFailed DIJob atari failed because pod atari-collector-1 ended with exit code 2 (Error)");
    assert_string_equal(cluster_status(c, "reason"), "PodFailurePolicy");
    assert_string_equal(cluster_status(c, "restarts"), "1");
}

static void test_without_a_limit_it_goes_on(void **state)
{
    cluster_t *c = *state;
    c->job.backoff_limit = -1;
    s_running(c);
    for (int i = 0; i < 12; i++) {
        pod_end(c, cluster_get(c, "atari-learner-0"), 1);
        cluster_settle(c, 20);
        cluster_run_all(c, 20);
        assert_string_equal(cluster_phase(c), "Running");
    }
    assert_string_equal(cluster_status(c, "restarts"), "12");
}

/*  [T] of upstream: who is there keeps its rank, who comes gets free task ranks and global ranks above. */
static void test_scaling_keeps_ranks(void **state)
{
    cluster_t *c = *state;
    s_running(c);
    cluster_set_tasks(c, "collector:4 learner:2");
    cluster_round(c);
    assert_string_equal(cluster_phase(c), "Rescheduling");
    assert_string_equal(cluster_status(c, "reschedules"), "1");
    cluster_settle(c, 20);
    s_rank_is(c, "atari-collector-1", 1);
    s_rank_is(c, "atari-learner-0", 2);
    s_rank_is(c, "atari-collector-2", 3);
    s_rank_is(c, "atari-collector-3", 4);
    s_rank_is(c, "atari-learner-1", 5);
    cluster_run_all(c, 20);
    cluster_set_tasks(c, "collector:1 learner:2");
    cluster_settle(c, 20);
    assert_false(cluster_get(c, "atari-collector-0")->deleting);
    for (int i = 1; i < 4; i++) {
        char name[32];
        snprintf(name, sizeof name, "atari-collector-%d", i);
        assert_true(cluster_get(c, name)->deleting);
        cluster_remove(c, cluster_get(c, name));
    }
    cluster_settle(c, 20);
    assert_string_equal(cluster_phase(c), "Running");
    assert_string_equal(cluster_status(c, "reschedules"), "2");
    assert_non_null(strstr(c->events, "Warning JobRescheduling"));
}

/*  The sum is right and the tasks are not. */
static void test_tasks_are_counted_by_name(void **state)
{
    cluster_t *c = *state;
    s_running(c);
    cluster_set_tasks(c, "collector:1 evaluator:1 learner:1");
    cluster_settle(c, 20);
    assert_true(cluster_get(c, "atari-collector-1")->deleting);
    assert_non_null(cluster_get(c, "atari-evaluator-0"));
    cluster_set_tasks(c, "evaluator:1 learner:1");
    cluster_settle(c, 20);
    assert_true(cluster_get(c, "atari-collector-0")->deleting);
}

static void test_one_rank_is_one_pod(void **state)
{
    cluster_t *c = *state;
    s_running(c);
    c->now_s += 10;
    cluster_get(c, "atari-collector-1")->rank = 2; /* as the learner's */
    cluster_get(c, "atari-collector-1")->created_s = c->now_s;
    cluster_settle(c, 20);
    assert_true(cluster_get(c, "atari-collector-1")->deleting);
    cluster_remove(c, cluster_get(c, "atari-collector-1"));
    cluster_settle(c, 20);
    s_rank_is(c, "atari-collector-1", 1);
    s_rank_is(c, "atari-learner-0", 2);
}

static void test_a_job_may_change_its_shape(void **state)
{
    cluster_t *c = *state;
    s_running(c);
    c->job.tasks_shape = false;
    c->job.has[DIJOB_COORDINATOR] = true;
    cluster_settle(c, 20);
    for (size_t i = c->pod_count; i-- > 0;)
        if (c->pods[i]->deleting)
            cluster_remove(c, c->pods[i]);
    cluster_settle(c, 20);
    assert_int_equal(c->pod_count, 1);
    assert_int_equal(c->pods[0]->role, DIJOB_COORDINATOR);
    assert_int_equal(c->service_count, 1);
    c->job.tasks_shape = true;
    cluster_settle(c, 20);
    cluster_run_all(c, 20);
    assert_int_equal(c->pod_count, 3);
    assert_string_equal(cluster_phase(c), "Running");
    assert_string_equal(c->services[0]->meta.name, "di-atari");
}

/*  Labels and annotations were edited: a place has one pod, and a pod without a place goes. */
static void test_who_has_no_place_goes(void **state)
{
    cluster_t *c = *state;
    s_running(c);
    for (int i = 0; i < 3; i++) {
        dijob_pod_t *pod = cluster_add(c, DIJOB_TASK, (const char *[]){"same-rank", "no-rank", "no-task"}[i]);
        pod->owner_pod = i < 2 ? tt_strdup("collector") : NULL;
        pod->task_rank = i == 1 ? -1 : 0;
        pod->rank = 9 + i;
        pod_run(c, pod);
    }
    cluster_settle(c, 20);
    assert_string_equal(cluster_status(c, "reschedules"), "1");
    assert_true(cluster_get(c, "same-rank")->deleting);
    assert_true(cluster_get(c, "no-rank")->deleting);
    assert_true(cluster_get(c, "no-task")->deleting);
    assert_false(cluster_get(c, "atari-collector-0")->deleting);
}

static void test_a_gap_is_filled(void **state)
{
    cluster_t *c = *state;
    s_running(c);
    cluster_remove(c, cluster_get(c, "atari-collector-0")); /* deleted: rescheduled, not restarted */
    cluster_settle(c, 20);
    s_rank_is(c, "atari-collector-0", 0);
    assert_string_equal(cluster_status(c, "restarts"), "0");
    assert_string_equal(cluster_status(c, "reschedules"), "1");
}

static void test_a_name_that_is_still_going_is_waited_for(void **state)
{
    cluster_t *c = *state;
    s_running(c);
    dijob_pod_t *pod = cluster_get(c, "atari-collector-0");
    pod->deleting = true;
    cluster_settle(c, 20);
    assert_string_equal(cluster_phase(c), "Rescheduling");
    assert_int_equal(c->pod_count, 3);
    cluster_remove(c, pod);
    cluster_settle(c, 20);
    assert_string_equal(cluster_phase(c), "Starting");
    assert_int_equal(c->pod_count, 3);
}

static void test_who_is_no_failure(void **state)
{
    cluster_t *c = *state;
    s_running(c);
    dijob_pod_t *pod = cluster_get(c, "atari-collector-0");
    pod_end(c, pod, 1);
    pod->refused = true; /* Outofcpu, UnexpectedAdmissionError */
    const int64_t now_s = c->now_s;
    cluster_settle(c, 20);
    assert_int_equal(c->now_s, now_s + 5);
    assert_string_equal(cluster_status(c, "restarts"), "0");
    assert_int_equal(cluster_get(c, "atari-collector-0")->phase, POD_PENDING);
    cluster_run_all(c, 20);
    pod_end(c, cluster_get(c, "atari-collector-0"), 143);
    cluster_settle(c, 20);
    assert_string_equal(cluster_status(c, "restarts"), "1"); /* not preemptible */
    cluster_run_all(c, 20);
    cluster_get(c, "atari-collector-0")->phase = POD_UNKNOWN;
    cluster_settle(c, 20);
    assert_string_equal(cluster_status(c, "restarts"), "2");
}

static void test_a_preemptible_job_starts_anew_as_a_whole(void **state)
{
    cluster_t *c = *state;
    c->job.preemptible = true;
    s_running(c);
    c->now_s += 100;
    pod_end(c, cluster_get(c, "atari-learner-0"), 143);
    cluster_settle(c, 20);
    assert_string_equal(cluster_phase(c), "Rescheduling");
    for (size_t i = c->pod_count; i-- > 0;) {
        assert_true(c->pods[i]->deleting);
        cluster_remove(c, c->pods[i]);
    }
    cluster_settle(c, 20);
    assert_string_equal(cluster_phase(c), "Starting");
    assert_int_equal(c->pod_count, 3);
    assert_string_equal(cluster_status(c, "restarts"), "0");
    cluster_run_all(c, 20);
    assert_string_equal(cluster_phase(c), "Running");
}

static void test_those_of_the_same_second_move_too(void **state)
{
    cluster_t *c = *state;
    c->job.preemptible = true;
    s_running(c);
    c->job.tasks[0].replicas++; /* and no time has passed */
    cluster_settle(c, 20);
    assert_string_equal(cluster_phase(c), "Rescheduling");
    while (c->pod_count > 0) {
        assert_true(c->pods[0]->deleting);
        cluster_remove(c, c->pods[0]);
    }
    cluster_settle(c, 20);
    assert_string_equal(cluster_phase(c), "Starting");
    assert_int_equal(c->pod_count, 4);
    for (size_t i = 0; i < c->pod_count; i++)
        assert_int_equal(c->pods[i]->reschedules, 1);
}

static void test_some_may_end_before_the_others_run(void **state)
{
    cluster_t *c = *state;
    cluster_settle(c, 10);
    pod_end(c, cluster_get(c, "atari-learner-0"), 0);
    cluster_run_all(c, 20);
    assert_string_equal(cluster_phase(c), "Running"); /* by pods, and not by ready containers */
    assert_string_equal(cluster_status(c, "readyReplicas"), "2");
}

static void test_an_invalid_job_fails(void **state)
{
    cluster_t *c = *state;
    c->job.invalid = (char *)"spec.tasks has type learner twice";
    cluster_settle(c, 10);
    assert_string_equal(cluster_phase(c), "Failed");
    assert_string_equal(
        cluster_condition(c, "Failed"), "True JobFailed DIJob atari failed because spec.tasks has type learner twice");
    assert_int_equal(c->pod_count, 0);
}

/* ---- another operator's ------------------------------------------------------------------------------------------------------- */

/*  As DI-orchestrator leaves it: pods without a label or annotation of ours. */
static void s_adopt(cluster_t *c, const char *phase)
{
    static const char *const names[] = {"atari-collector-0", "atari-collector-1", "atari-learner-0"};
    for (int i = 0; i < 3; i++) {
        dijob_pod_t *pod = cluster_add(c, DIJOB_TASK, names[i]);
        pod->owner_pod = tt_strdup(i < 2 ? "collector" : "learner");
        pod->rank = i;
        pod->task_rank = i % 2;
        pod_run(c, pod);
    }
    c->job.status = tt_sprintf("{\"phase\":\"%s\",\"restarts\":1,\"reschedules\":2,\"replicas\":3}", phase);
    for (int i = 0; i < DIJOB_PHASES; i++)
        if (strcmp(phase, dijob_phase_name((dijob_phase_t)i)) == 0)
            c->job.phase = (dijob_phase_t)i;
}

static void test_the_pods_of_another_operator_are_adopted(void **state)
{
    static const char *const phases[] = {"Pending", "Starting", "Running", "Restarting", "Rescheduling"};
    for (size_t i = 0; i < TT_COUNT(phases); i++) {
        cluster_t *c = *state;
        c->job.misnamed = (char *)"Invalid name atari";
        s_adopt(c, phases[i]);
        cluster_add_service(c, "di-atari");
        cluster_settle(c, 10);
        assert_string_equal(cluster_phase(c), "Running");
        assert_string_equal(cluster_status(c, "restarts"), "1");
        assert_string_equal(cluster_status(c, "reschedules"), "2");
        assert_int_equal(c->uids, 3); /* none was made */
        assert_int_equal(c->pod_count, 3);
        assert_int_equal(c->service_count, 1);
        cluster_teardown(state);
        s_setup(state);
    }
}

static void test_the_service_of_an_older_operator_stays(void **state)
{
    cluster_t *c = *state;
    front_plan_t plan;
    s_adopt(c, "Running");
    cluster_add_service(c, "atari");
    cluster_settle(c, 10);
    assert_int_equal(c->service_count, 1);
    assert_string_equal(c->services[0]->meta.name, "atari");
    cluster_remove(c, cluster_get(c, "atari-learner-0"));
    cluster_round(c);
    cluster_plan(c, &plan);
    assert_int_equal(plan.count, 1);
    assert_true(
        plan.actions[0].what == FRONT_CREATE_POD && ((const dijob_pod_want_t *)plan.actions[0].own)->old_service);
    front_plan_clear(&plan);
}

/*  v1.0.0's `template` is not known to us, and was taken out of the spec. */
static void test_a_job_that_runs_outlives_a_bad_spec(void **state)
{
    cluster_t *c = *state;
    s_adopt(c, "Running");
    c->job.invalid = (char *)"expected spec.coordinator, or spec.tasks";
    c->job.tasks_shape = false;
    cluster_settle(c, 10);
    assert_string_equal(cluster_phase(c), "Running");
    assert_int_equal(c->pod_count, 3);
    pod_end(c, c->pods[0], 1);
    cluster_settle(c, 10);
    assert_string_equal(cluster_phase(c), "Running");
    pod_end(c, c->pods[1], 0);
    pod_end(c, c->pods[2], 0);
    cluster_settle(c, 10);
    assert_string_equal(cluster_condition(c, "Failed"),
        "True DIJobFailed DIJob atari failed because 1 of its pods failed and none is left");
    assert_int_equal(c->pod_count, 3);
}

static void test_members_of_the_status_that_are_not_ours_stay(void **state)
{
    cluster_t *c = *state;
    c->job.status = tt_strdup("{\"allocation\":[\"n1\"],\"profilings\":{}}");
    cluster_settle(c, 10);
    assert_string_equal(cluster_status(c, "allocation"), "[\"n1\"]");
    assert_string_equal(cluster_status(c, "profilings"), "{}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, s_setup, cluster_teardown)
        T(test_from_pending_to_succeeded),
        T(test_failures_up_to_the_limit),
        T(test_a_code_of_the_policy_ends_it_before_the_limit),
        T(test_without_a_limit_it_goes_on),
        T(test_scaling_keeps_ranks),
        T(test_tasks_are_counted_by_name),
        T(test_one_rank_is_one_pod),
        T(test_a_job_may_change_its_shape),
        T(test_who_has_no_place_goes),
        T(test_a_gap_is_filled),
        T(test_a_name_that_is_still_going_is_waited_for),
        T(test_who_is_no_failure),
        T(test_a_preemptible_job_starts_anew_as_a_whole),
        T(test_those_of_the_same_second_move_too),
        T(test_some_may_end_before_the_others_run),
        T(test_an_invalid_job_fails),
        T(test_the_pods_of_another_operator_are_adopted),
        T(test_the_service_of_an_older_operator_stays),
        T(test_a_job_that_runs_outlives_a_bad_spec),
        T(test_members_of_the_status_that_are_not_ours_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
