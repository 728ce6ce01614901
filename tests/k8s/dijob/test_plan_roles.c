/*  The plan for jobs with a coordinator: phases, counters, conditions, events, services, cleanup. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/k8s/dijob/cluster.h"

static cluster_t s_cluster;

static int s_setup(void **state)
{
    cluster_roles(&s_cluster, "qbert");
    *state = &s_cluster;
    return 0;
}

static int s_teardown(void **state)
{
    cluster_free(*state);
    return 0;
}

/*  A job whose coordinator runs. */
static dijob_pod_t *s_running(cluster_t *c)
{
    cluster_settle(c, 10);
    dijob_pod_t *pod = cluster_get(c, "qbert-coordinator");
    assert_non_null(pod);
    pod_run(c, pod);
    cluster_settle(c, 10);
    assert_string_equal(cluster_phase(c), "Running");
    return pod;
}

static void test_a_new_job_gets_its_coordinator_and_says_so(void **state)
{
    cluster_t *c = *state;
    dijob_plan_t plan;
    cluster_plan(c, &plan);
    assert_true(plan.count >= 2);
    assert_int_equal(plan.actions[0].what, DIJOB_DO_CREATE_POD);
    assert_int_equal(plan.actions[plan.count - 1].what, DIJOB_DO_EVENT);
    dijob_plan_clear(&plan);
    assert_true(cluster_round(c));
    assert_string_equal(cluster_phase(c), "Created");
    assert_string_equal(cluster_condition(c, "Created"), "True DIJobCreated DIJob qbert created");
    assert_string_equal(c->events, "Normal DIJobCreated DIJob qbert created\n");
    assert_int_equal(c->pod_count, 1);
    assert_int_equal(c->service_count, 0); /* once the pod is there */
    cluster_settle(c, 10);
    assert_int_equal(c->service_count, 1);
    assert_string_equal(c->services[0]->meta.name, "qbert-coordinator");
    assert_string_equal(
        cluster_status(c, "replicaStatus"), "{\"Aggregator\":{},\"Collector\":{},\"Coordinator\":{},\"Learner\":{}}");
    assert_string_equal(cluster_status(c, "observedGeneration"), "1");
    assert_string_equal(cluster_status(c, "collectorSelector"), "dijob-name=qbert,replica-type=collector");
}

static void test_the_coordinator_alone_decides_the_phase(void **state)
{
    cluster_t *c = *state;
    dijob_pod_t *coordinator = s_running(c), *collector = cluster_add(c, DIJOB_COLLECTOR, "qbert-collector-aaaaa");
    pod_run(c, collector);
    cluster_settle(c, 10);
    assert_string_equal(
        cluster_condition(c, "Running"), "True DIJobRunning coordinator and aggregator of DIJob qbert are running");
    assert_string_equal(cluster_status(c, "replicaStatus.Collector"), "{\"active\":1}");
    assert_string_equal(cluster_status(c, "collectorReplicas"), "1");
    assert_string_equal(cluster_status(c, "startTimestamp"), "2027-01-15T08:00:00Z");
    pod_end(c, collector, 0);
    cluster_settle(c, 10);
    assert_string_equal(cluster_phase(c), "Running");
    assert_string_equal(cluster_status(c, "replicaStatus.Collector"), "{\"succeeded\":1}");
    c->now_s += 60;
    pod_end(c, coordinator, 0);
    cluster_settle(c, 10);
    assert_string_equal(cluster_phase(c), "Succeeded");
    assert_string_equal(
        cluster_condition(c, "Succeeded"), "True DIJobSucceeded DIJob qbert succeeded because coordinator succeeded");
    assert_string_equal(
        cluster_condition(c, "Running"), "False DIJobRunning coordinator and aggregator of DIJob qbert are running");
    assert_string_equal(cluster_condition(c, "Created"), "True DIJobCreated DIJob qbert created");
    assert_string_equal(cluster_status(c, "completionTimestamp"), "2027-01-15T08:01:00Z");
    assert_string_equal(c->events, "Normal DIJobCreated DIJob qbert created\n"
                                   "Normal DIJobSucceeded DIJob qbert succeeded because coordinator succeeded\n");
}

static void test_a_failed_coordinator_fails_a_foreign_job(void **state)
{
    cluster_t *c = *state;
    pod_end(c, s_running(c), 1);
    cluster_settle(c, 10);
    assert_string_equal(cluster_phase(c), "Failed");
    assert_string_equal(
        cluster_condition(c, "Failed"), "True DIJobFailed DIJob qbert failed because coordinator failed");
    assert_string_equal(cluster_status(c, "replicaStatus.Coordinator"), "{\"failed\":1}");
    assert_non_null(strstr(c->events, "Warning DIJobFailed DIJob qbert failed because coordinator failed\n"));
}

/*  [T] of upstream's clean-up test, as one view: what was active when the coordinator succeeded. */
static void s_upstream_case(tt_clean_t clean, size_t pods_left)
{
    cluster_t c;
    cluster_roles(&c, "qbert");
    c.job.clean = clean;
    pod_end(&c, s_running(&c), 0);
    pod_run(&c, cluster_add(&c, DIJOB_COLLECTOR, "qbert-collector-aaaaa"));
    pod_end(&c, cluster_add(&c, DIJOB_COLLECTOR, "qbert-collector-bbbbb"), 1);
    pod_end(&c, cluster_add(&c, DIJOB_LEARNER, "qbert-learner-ccccc"), 0);
    pod_run(&c, cluster_add(&c, DIJOB_LEARNER, "qbert-learner-ddddd"));
    cluster_settle(&c, 10);
    assert_string_equal(cluster_phase(&c), "Succeeded");
    assert_int_equal(c.pod_count, pods_left);
    assert_int_equal(c.service_count, 0);
    assert_string_equal(cluster_status(&c, "replicaStatus.Collector"), "{\"failed\":1,\"succeeded\":1}");
    assert_string_equal(cluster_status(&c, "replicaStatus.Learner"), "{\"succeeded\":2}");
    assert_string_equal(cluster_status(&c, "replicaStatus.Coordinator"), "{\"succeeded\":1}");
    cluster_free(&c);
}

static void test_cleanup_by_policy(void **state)
{
    (void)state;
    s_upstream_case(TT_CLEAN_ALL, 0);
    s_upstream_case(TT_CLEAN_NONE, 5);
    s_upstream_case(TT_CLEAN_RUNNING, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, s_setup, s_teardown)
        T(test_a_new_job_gets_its_coordinator_and_says_so),
        T(test_the_coordinator_alone_decides_the_phase),
        T(test_a_failed_coordinator_fails_a_foreign_job),
        cmocka_unit_test(test_cleanup_by_policy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
