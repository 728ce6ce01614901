/*  What a DIJob has in common with batch/v1's Job: activeDeadlineSeconds, ttlSecondsAfterFinished, suspend. */
#include <stdlib.h>
#include <string.h>
#include "tests/k8s/dijob/cluster.h"

enum { ROUNDS = 50 };

static void s_run_all(cluster_t *c)
{
    for (size_t i = 0; i < c->pod_count; i++)
        if (dijob_pod_alive(c->pods[i]))
            pod_run(c, c->pods[i]);
}

/*  What there is to do now; the clock stands still. Returns when it is to be looked at again, -1 = never. */
static int64_t s_rounds(cluster_t *c)
{
    for (int i = 0; i < ROUNDS; i++) {
        front_plan_t plan;
        cluster_plan(c, &plan);
        const bool nothing = plan.count == 0 && !plan.status;
        const int64_t again_s = plan.again_s;
        cluster_do(c, &plan);
        front_plan_clear(&plan);
        if (nothing || c->gone)
            return again_s;
    }
    fail_msg("no rest: %s", c->job.status);
    return -1;
}

/*  A job of either shape that runs, since now. */
static void s_begin(cluster_t *c, bool tasks)
{
    if (tasks)
        cluster_tasks(c, "x", "collector:2 learner:1");
    else
        cluster_roles(c, "x");
    c->job.replicas[DIJOB_COLLECTOR] = tasks ? -1 : 2;
}

static void s_start(cluster_t *c)
{
    s_rounds(c);
    s_run_all(c);
    s_rounds(c);
    s_run_all(c);
    s_rounds(c);
    assert_string_equal(cluster_phase(c), "Running");
}

static void s_remove_going(cluster_t *c)
{
    for (size_t i = c->pod_count; i-- > 0;)
        if (c->pods[i]->deleting)
            cluster_remove(c, c->pods[i]);
}

/* ---- deadline -------------------------------------------------------------------------------------------------------------- */

static void s_late(bool tasks, tt_clean_t clean)
{
    cluster_t c;
    s_begin(&c, tasks);
    c.job.deadline_s = 60;
    c.job.clean = clean;
    c.now_s += 500; /* who waits for its pods is not late */
    s_start(&c);
    assert_int_equal(s_rounds(&c), 60);
    c.now_s += 59;
    assert_int_equal(s_rounds(&c), 1);
    assert_string_equal(cluster_phase(&c), "Running");
    c.now_s += 1;
    front_plan_t plan; /* the phase is written before anybody goes */
    cluster_plan(&c, &plan);
    for (size_t i = 0; i < plan.count; i++)
        assert_int_equal(plan.actions[i].what, FRONT_EVENT);
    cluster_do(&c, &plan);
    front_plan_clear(&plan);
    assert_string_equal(cluster_phase(&c), "Failed");
    assert_string_equal(cluster_status(&c, "reason"), "DeadlineExceeded");
    assert_string_equal(
        cluster_condition(&c, "Failed"), "True DeadlineExceeded DIJob x was active longer than its deadline of 60 s");
    assert_non_null(strstr(c.events, "Warning DeadlineExceeded DIJob x was active longer"));
    cluster_plan(&c, &plan); /* their own time to end, and whatever is kept of others */
    size_t going = 0;
    for (size_t i = 0; i < plan.count; i++)
        if (plan.actions[i].what == FRONT_DELETE_POD) {
            going++;
            assert_int_equal(plan.actions[i].grace_s, -1);
        }
    assert_int_equal(going, 3);
    front_plan_clear(&plan);
    s_rounds(&c);
    s_remove_going(&c);
    assert_int_equal(s_rounds(&c), -1);
    assert_int_equal(c.pod_count, 0);
    assert_string_equal(cluster_status(&c, "restarts"), tasks ? "0" : "");
    cluster_free(&c);
}

static void test_a_job_that_runs_longer_than_its_deadline_fails(void **state)
{
    (void)state;
    s_late(false, TT_CLEAN_RUNNING);
    s_late(false, TT_CLEAN_NONE);
    s_late(true, TT_CLEAN_RUNNING);
    s_late(true, TT_CLEAN_ALL);
}

/*  It ended while no operator looked. */
static void test_who_is_done_is_not_late(void **state)
{
    (void)state;
    for (int tasks = 0; tasks < 2; tasks++) {
        cluster_t c;
        s_begin(&c, tasks);
        c.job.deadline_s = 60;
        s_start(&c);
        for (size_t i = 0; i < c.pod_count; i++)
            if (tasks || c.pods[i]->role == DIJOB_COORDINATOR)
                pod_end(&c, c.pods[i], 0);
        c.now_s += 1000;
        s_rounds(&c);
        assert_string_equal(cluster_phase(&c), "Succeeded");
        cluster_free(&c);
    }
}

/*  A status that another operator wrote has no start: it counts from when it was seen. */
static void test_a_deadline_counts_for_a_job_that_was_taken_over(void **state)
{
    (void)state;
    cluster_t c;
    s_begin(&c, false);
    s_start(&c);
    json_t *status = json_loads(c.job.status, 0, NULL);
    json_object_del(status, "startTimestamp");
    free(c.job.status);
    c.job.status = kube_dump(status);
    json_decref(status);
    c.job.deadline_s = 60;
    s_rounds(&c);
    assert_int_equal(s_rounds(&c), 60);
    c.now_s += 60;
    s_rounds(&c);
    assert_string_equal(cluster_status(&c, "reason"), "DeadlineExceeded");
    cluster_free(&c);
}

/* ---- time to live ---------------------------------------------------------------------------------------------------------- */

static void s_expires(bool well)
{
    cluster_t c;
    s_begin(&c, false);
    c.job.ttl_s = 30;
    s_start(&c);
    assert_int_equal(s_rounds(&c), -1); /* as long as it runs */
    pod_end(&c, cluster_get(&c, "x-coordinator"), !well);
    assert_int_equal(s_rounds(&c), 30);
    assert_string_equal(cluster_phase(&c), well ? "Succeeded" : "Failed");
    c.now_s += 29;
    assert_int_equal(s_rounds(&c), 1);
    assert_false(c.gone);
    c.now_s += 1;
    s_rounds(&c);
    assert_true(c.gone);
    cluster_free(&c);
}

static void test_a_job_that_ended_is_deleted_after_its_time(void **state)
{
    (void)state;
    s_expires(true);
    s_expires(false);
}

static void test_a_time_that_is_given_after_the_end_counts_from_it(void **state)
{
    (void)state;
    cluster_t c;
    s_begin(&c, true);
    s_start(&c);
    for (size_t i = 0; i < c.pod_count; i++)
        pod_end(&c, c.pods[i], 0);
    s_rounds(&c);
    assert_string_equal(cluster_phase(&c), "Succeeded");
    c.now_s += 1000;
    assert_int_equal(s_rounds(&c), -1);
    c.job.ttl_s = 1001;
    assert_int_equal(s_rounds(&c), 1);
    json_t *status = json_loads(c.job.status, 0, NULL); /* another operator's: the condition tells */
    json_object_del(status, "completionTimestamp");
    free(c.job.status);
    c.job.status = kube_dump(status);
    json_decref(status);
    assert_int_equal(s_rounds(&c), 1);
    c.job.ttl_s = 0;
    s_rounds(&c);
    assert_true(c.gone);
    cluster_free(&c);
}

/* ---- suspension -------------------------------------------------------------------------------------------------------------- */

static void s_suspends(bool tasks, bool tutti)
{
    cluster_t c;
    s_begin(&c, tasks);
    c.job.tutti = tutti;
    c.job.deadline_s = 60;
    s_start(&c);
    c.now_s += 50;
    c.job.suspend = true;
    assert_int_equal(s_rounds(&c), -1);
    assert_string_equal(cluster_phase(&c), "Suspended");
    assert_string_equal(cluster_condition(&c, "Suspended"), "True JobSuspended DIJob x is suspended");
    assert_memory_equal(cluster_condition(&c, "Running"), "False ", 6);
    assert_string_equal(cluster_status(&c, "startTimestamp"), "");
    assert_string_equal(cluster_status(&c, "reason"), "");
    assert_non_null(strstr(c.events, "Normal JobSuspended DIJob x is suspended"));
    for (size_t i = 0; i < c.pod_count; i++) {
        assert_true(c.pods[i]->deleting);
        pod_end(&c, c.pods[i], 143); /* told to leave */
    }
    s_rounds(&c);
    s_remove_going(&c);
    c.now_s += 1000;
    assert_int_equal(s_rounds(&c), -1); /* the deadline stands still */
    assert_int_equal(c.pod_count, 0);
    assert_int_equal(c.service_count, tasks ? 1 : 0);
    c.job.suspend = false;
    c.event_size = 0;
    s_rounds(&c);
    assert_string_equal(cluster_condition(&c, "Suspended"), "False JobResumed DIJob x goes on");
    assert_non_null(strstr(c.events, "Normal JobResumed DIJob x goes on"));
    assert_null(strstr(c.events, "DIJobCreated"));
    s_start(&c);
    assert_int_equal(c.pod_count, 3);
    assert_int_equal(atoi(cluster_status(&c, "restarts")), 0);
    assert_int_equal(atoi(cluster_status(&c, "reschedules")), 0);
    if (!tasks)
        assert_string_equal(cluster_status(&c, "replicaStatus.Collector.failed"), "");
    assert_int_equal(s_rounds(&c), 60);
    cluster_free(&c);
}

static void test_a_suspended_job_has_no_pods_and_goes_on_without_a_failure(void **state)
{
    (void)state;
    s_suspends(false, false);
    s_suspends(false, true);
    s_suspends(true, false);
}

/*  As a queue makes them, which lets them go later. */
static void test_a_job_may_be_made_suspended(void **state)
{
    (void)state;
    for (int tasks = 0; tasks < 2; tasks++) {
        cluster_t c;
        s_begin(&c, tasks);
        c.job.tutti = true;
        c.job.suspend = true;
        c.curve = false;
        s_rounds(&c);
        assert_string_equal(cluster_phase(&c), "Suspended");
        assert_int_equal(c.pod_count + c.service_count, 0);
        assert_false(c.curve);
        c.job.suspend = false;
        s_start(&c);
        assert_int_equal(c.pod_count, 3);
        cluster_free(&c);
    }
}

static void test_who_is_done_when_it_is_suspended_has_succeeded(void **state)
{
    (void)state;
    cluster_t c;
    s_begin(&c, false);
    s_start(&c);
    pod_end(&c, cluster_get(&c, "x-coordinator"), 0);
    c.job.suspend = true;
    s_rounds(&c);
    assert_string_equal(cluster_phase(&c), "Succeeded");
    assert_string_equal(cluster_condition(&c, "Suspended"), "");
    cluster_free(&c);
}

/* ---- queues ------------------------------------------------------------------------------------------------------------------ */

static const front_share_t s_shares[] = {{"coordinator", 1}, {"collector", 2}, {"learner", 1}};

static void s_let_go(cluster_t *c, bool admitted)
{
    c->admission = (front_admission_t){.queue = "q", .admitted = admitted, .words = "no quota"};
    if (admitted) {
        c->admission.shares = s_shares;
        c->admission.share_count = TT_COUNT(s_shares);
    }
}

/*  As one that is suspended, and it is told for what; evicted it waits anew, and nothing was a failure. */
static void s_waits(bool tasks)
{
    cluster_t c;
    s_begin(&c, tasks);
    s_let_go(&c, false);
    s_rounds(&c);
    assert_string_equal(cluster_phase(&c), "Suspended");
    assert_string_equal(cluster_status(&c, "reason"), "AwaitingAdmission");
    assert_string_equal(cluster_condition(&c, "AwaitingAdmission"),
        "True AwaitingAdmission DIJob x waits for admission in queue q: no quota");
    assert_non_null(strstr(c.events, "Normal AwaitingAdmission DIJob x waits for admission in queue q: no quota"));
    assert_int_equal(c.pod_count + c.service_count, 0);
    s_let_go(&c, true);
    s_start(&c);
    assert_string_equal(cluster_condition(&c, "AwaitingAdmission"), "False Admitted DIJob x is admitted in queue q");
    assert_string_equal(cluster_status(&c, "reason"), "");
    assert_int_equal(c.pod_count, 3);
    s_let_go(&c, false);
    s_rounds(&c);
    for (size_t i = 0; i < c.pod_count; i++)
        pod_end(&c, c.pods[i], 143);
    s_remove_going(&c);
    s_rounds(&c);
    assert_int_equal(c.pod_count, 0);
    assert_string_equal(cluster_phase(&c), "Suspended");
    s_let_go(&c, true);
    s_start(&c);
    assert_int_equal(atoi(cluster_status(&c, "restarts")), 0);
    cluster_free(&c);
}

static void test_a_job_of_a_queue_waits_as_a_suspended_one(void **state)
{
    (void)state;
    s_waits(false);
    s_waits(true);
}

/*  More are wanted: as many as were admitted run, undisturbed, and it is told. Fewer are fewer. */
static void s_limited(bool tasks)
{
    cluster_t c;
    s_begin(&c, tasks);
    s_let_go(&c, true);
    s_start(&c);
    if (tasks)
        cluster_set_tasks(&c, "collector:5 learner:1");
    else
        c.job.replicas[DIJOB_COLLECTOR] = 5;
    s_rounds(&c);
    assert_int_equal(c.pod_count, 3);
    assert_string_equal(cluster_phase(&c), "Running");
    assert_non_null(strstr(cluster_condition(&c, "AdmissionExceeded"),
        "True MoreThanAdmitted collector: 5 replicas are wanted, and queue q has admitted 2"));
    assert_non_null(strstr(c.events, "Warning MoreThanAdmitted collector: 5"));
    if (tasks)
        cluster_set_tasks(&c, "collector:2 learner:1");
    else
        c.job.replicas[DIJOB_COLLECTOR] = 1;
    s_rounds(&c);
    assert_memory_equal(cluster_condition(&c, "AdmissionExceeded"), "False ", 6);
    assert_int_equal(cluster_alive(&c, DIJOB_COLLECTOR), tasks ? 0 : 1);
    cluster_free(&c);
}

static void test_no_more_run_than_were_admitted(void **state)
{
    (void)state;
    s_limited(false);
    s_limited(true);
}

/*  With a minReplicas that those make up: as many run, and it is told, as what was asked for. */
static void test_fewer_were_admitted_and_are_enough(void **state)
{
    (void)state;
    cluster_t c;
    s_begin(&c, false);
    s_let_go(&c, true);
    c.job.replicas[DIJOB_COLLECTOR] = 5;
    c.job.least[DIJOB_COLLECTOR] = 2;
    s_start(&c);
    assert_int_equal(cluster_alive(&c, DIJOB_COLLECTOR), 2);
    assert_string_equal(cluster_phase(&c), "Running");
    assert_string_equal(cluster_condition(&c, "AdmissionExceeded"),
        "True PartlyAdmitted collector: queue q has admitted 2 of 5 replicas, and minReplicas is 2; to ask for all of "
        "them again, let the job wait anew: spec.suspend true for a moment");
    assert_non_null(strstr(c.events, "Normal PartlyAdmitted collector: queue q"));
    c.job.least[DIJOB_COLLECTOR] = 3;
    s_rounds(&c);
    assert_non_null(strstr(cluster_condition(&c, "AdmissionExceeded"), "True MoreThanAdmitted collector: 5"));
    cluster_free(&c);
}

/*  What its user says stands above the queue. */
static void test_a_suspended_job_of_a_queue_is_suspended(void **state)
{
    (void)state;
    cluster_t c;
    s_begin(&c, false);
    s_let_go(&c, true);
    s_start(&c);
    c.job.suspend = true;
    s_let_go(&c, false);
    s_rounds(&c);
    assert_string_equal(cluster_condition(&c, "Suspended"), "True JobSuspended DIJob x is suspended");
    assert_string_equal(cluster_condition(&c, "AwaitingAdmission"), "");
    cluster_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_job_that_runs_longer_than_its_deadline_fails),
        cmocka_unit_test(test_who_is_done_is_not_late),
        cmocka_unit_test(test_a_deadline_counts_for_a_job_that_was_taken_over),
        cmocka_unit_test(test_a_job_that_ended_is_deleted_after_its_time),
        cmocka_unit_test(test_a_time_that_is_given_after_the_end_counts_from_it),
        cmocka_unit_test(test_a_suspended_job_has_no_pods_and_goes_on_without_a_failure),
        cmocka_unit_test(test_a_job_may_be_made_suspended),
        cmocka_unit_test(test_who_is_done_when_it_is_suspended_has_succeeded),
        cmocka_unit_test(test_a_job_of_a_queue_waits_as_a_suspended_one),
        cmocka_unit_test(test_no_more_run_than_were_admitted),
        cmocka_unit_test(test_fewer_were_admitted_and_are_enough),
        cmocka_unit_test(test_a_suspended_job_of_a_queue_is_suspended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
