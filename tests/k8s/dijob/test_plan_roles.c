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
    front_plan_t plan;
    cluster_plan(c, &plan);
    assert_true(plan.count >= 2);
    assert_int_equal(plan.actions[0].what, FRONT_CREATE_POD);
    assert_int_equal(plan.actions[plan.count - 1].what, FRONT_EVENT);
    front_plan_clear(&plan);
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

/* ---- the end is the end ----------------------------------------------------------------------------------------------------- */

/*  Cleaned up wholly, the operator started again, the spec edited: nothing runs again. */
static void test_a_final_phase_is_final(void **state)
{
    cluster_t *c = *state;
    c->job.clean = TT_CLEAN_ALL;
    pod_end(c, s_running(c), 0);
    cluster_settle(c, 10);
    assert_int_equal(c->pod_count, 0);
    c->job.generation++;
    c->job.replicas[DIJOB_COLLECTOR] = 5;
    cluster_settle(c, 10);
    assert_int_equal(c->pod_count, 0);
    assert_string_equal(cluster_phase(c), "Succeeded");
    assert_string_equal(cluster_status(c, "observedGeneration"), "2");
    c->job.phase = DIJOB_PHASE_RUNNING; /* somebody edits the phase: the conditions know better */
    free(c->job.status);
    c->job.status = tt_strdup("{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Succeeded\",\"status\":\"True\"}]}");
    cluster_settle(c, 10);
    assert_int_equal(c->pod_count, 0);
    assert_string_equal(cluster_phase(c), "Succeeded");
}

static void test_nothing_goes_before_the_final_phase_is_written(void **state)
{
    cluster_t *c = *state;
    front_plan_t plan;
    c->job.clean = TT_CLEAN_ALL;
    pod_end(c, s_running(c), 0);
    c->job.replicas[DIJOB_COLLECTOR] = 3;
    cluster_add(c, DIJOB_COLLECTOR, "qbert-collector-aaaaa");
    cluster_plan(c, &plan);
    assert_non_null(plan.status);
    for (size_t i = 0; i < plan.count; i++)
        assert_int_equal(plan.actions[i].what, FRONT_EVENT);
    front_plan_clear(&plan);
}

static void test_who_comes_late_to_an_ended_job_goes(void **state)
{
    cluster_t *c = *state;
    pod_end(c, s_running(c), 1);
    cluster_settle(c, 10);
    cluster_add(c, DIJOB_COLLECTOR, "qbert-collector-late0");
    cluster_settle(c, 10);
    assert_null(cluster_get(c, "qbert-collector-late0"));
    assert_non_null(cluster_get(c, "qbert-coordinator"));
    assert_string_equal(cluster_status(c, "replicaStatus.Collector"), "{}");
}

static void test_a_crash_loop_and_a_sidecar_stay_where_running_is_cleaned(void **state)
{
    cluster_t *c = *state;
    dijob_pod_t *coordinator = s_running(c);
    dijob_pod_t *loop = cluster_add(c, DIJOB_COLLECTOR, "qbert-collector-loop0");
    dijob_pod_t *pending = cluster_add(c, DIJOB_COLLECTOR, "qbert-collector-pend0");
    pod_run(c, loop);
    loop->stuck = true;
    coordinator->main = MAIN_COMPLETED; /* its sidecar runs on */
    coordinator->stuck = true;
    assert_int_equal(pending->phase, POD_PENDING);
    cluster_settle(c, 10);
    assert_string_equal(cluster_phase(c), "Succeeded");
    assert_int_equal(c->pod_count, 2);
}

static void test_a_job_that_is_deleted_is_left_to_the_garbage_collector(void **state)
{
    cluster_t *c = *state;
    s_running(c);
    c->job.deleting = true;
    cluster_remove(c, cluster_get(c, "qbert-coordinator"));
    assert_false(cluster_round(c));
}

static void test_an_invalid_job_fails_and_says_why(void **state)
{
    cluster_t *c = *state;
    c->job.invalid = (char *)"spec.learner.replicas: expected a number from 0 to 256";
    cluster_settle(c, 10);
    assert_string_equal(cluster_condition(c, "Failed"),
        "True DIJobFailed DIJob qbert failed because spec.learner.replicas: expected a number from 0 to 256");
    assert_int_equal(c->pod_count, 0);
    assert_non_null(strstr(c->events, "Warning DIJobFailed DIJob qbert failed because spec.learner"));
}

static void test_a_new_job_with_a_bad_name_fails(void **state)
{
    cluster_t *c = *state;
    c->job.misnamed = (char *)"Invalid name Qbert";
    cluster_settle(c, 10);
    assert_string_equal(
        cluster_condition(c, "Failed"), "True DIJobFailed DIJob qbert failed because Invalid name Qbert");
    assert_int_equal(c->pod_count, 0);
}

/*  Another operator let it in under a name that we would not have taken. */
static void test_a_job_that_runs_goes_on_whatever_its_name(void **state)
{
    cluster_t *c = *state;
    c->job.misnamed = (char *)"Invalid name 2048-dqn";
    pod_run(c, cluster_add(c, DIJOB_COORDINATOR, "2048-dqn-coordinator"));
    pod_run(c, cluster_add(c, DIJOB_COLLECTOR, "2048-dqn-collector-bcdfg"));
    cluster_settle(c, 10);
    assert_string_equal(cluster_phase(c), "Running");
    assert_int_equal(c->pod_count, 2);
    assert_int_equal(c->service_count, 0); /* the name of a service begins with a letter */
    assert_string_equal(cluster_condition(c, "SpecRefused"), "True InvalidName Invalid name 2048-dqn");
    assert_non_null(strstr(c->events, "Warning InvalidName Invalid name 2048-dqn; the job runs and goes on\n"));
    pod_end(c, cluster_get(c, "2048-dqn-collector-bcdfg"), 1);
    cluster_settle(c, 20);
    assert_int_equal(cluster_alive(c, DIJOB_COLLECTOR), 1); /* and is looked after */
    pod_end(c, cluster_get(c, "2048-dqn-coordinator"), 0);
    cluster_settle(c, 10);
    assert_string_equal(cluster_phase(c), "Succeeded");
}

/*  Another operator's, between two lives of its pods: it is that one's, or its user's, to go on. */
static void test_a_job_that_has_begun_is_left_alone_without_pods(void **state)
{
    for (dijob_phase_t phase = DIJOB_PHASE_CREATED; phase <= DIJOB_PHASE_RESCHEDULING; phase++)
        for (int tasks = 0; tasks < 2; tasks++) {
            cluster_t *c = *state;
            c->job.status = tt_sprintf("{\"phase\":\"%s\"}", dijob_phase_name(phase));
            c->job.phase = phase;
            c->job.tasks_shape = tasks;
            c->job.invalid = (char *)"spec.tasks[0].type: expected learner, collector, evaluator or none";
            cluster_settle(c, 10);
            assert_string_equal(cluster_phase(c), dijob_phase_name(phase));
            assert_int_equal(c->pod_count + c->service_count, 0);
            assert_non_null(strstr(cluster_condition(c, "SpecRefused"), "True InvalidSpec spec.tasks[0].type"));
            assert_non_null(strstr(c->events, "Warning InvalidSpec spec.tasks[0].type"));
            if (phase >= DIJOB_PHASE_RESTARTING) { /* what failed, and is about to be made anew */
                pod_end(c, cluster_add(c, tasks ? DIJOB_TASK : DIJOB_COLLECTOR, "qbert-collector-0"), 1);
                cluster_settle(c, 10);
                assert_string_equal(cluster_phase(c), dijob_phase_name(phase));
                assert_int_equal(c->pod_count, 1);
            }
            cluster_teardown(state);
            s_setup(state);
        }
}

static void test_a_job_that_runs_outlives_a_bad_spec(void **state)
{
    cluster_t *c = *state;
    dijob_pod_t *coordinator = s_running(c);
    pod_run(c, cluster_add(c, DIJOB_LEARNER, "qbert-learner-bcdfg"));
    cluster_settle(c, 10);
    c->job.invalid = (char *)"spec.learner.replicas: expected a number from 0 to 256";
    cluster_settle(c, 10);
    assert_string_equal(cluster_phase(c), "Running");
    assert_int_equal(c->pod_count, 2);
    assert_int_equal(c->service_count, 2);
    assert_string_equal(
        cluster_condition(c, "SpecRefused"), "True InvalidSpec spec.learner.replicas: expected a number from 0 to 256");
    pod_end(c, coordinator, 0);
    cluster_settle(c, 10);
    assert_string_equal(cluster_phase(c), "Succeeded");
}

static void test_a_spec_that_was_mended_is_kept_again(void **state)
{
    cluster_t *c = *state;
    s_running(c);
    c->job.invalid = (char *)"spec.volumes: expected a list";
    cluster_settle(c, 10);
    c->job.invalid = NULL;
    cluster_settle(c, 10);
    assert_string_equal(cluster_condition(c, "SpecRefused"), "False Accepted ");
}

/* ---- trouble --------------------------------------------------------------------------------------------------------------- */

/*  A program of ours that says that it can never do better. */
static void test_an_end_that_is_final_fails_the_job(void **state)
{
    static const dijob_role_t roles[] = {DIJOB_COORDINATOR, DIJOB_COLLECTOR, DIJOB_LEARNER};
    for (size_t i = 0; i < TT_COUNT(roles); i++) {
        cluster_t *c = *state;
        c->job.tutti = true;
        c->job.replicas[DIJOB_COLLECTOR] = c->job.replicas[DIJOB_LEARNER] = 1;
        s_running(c);
        dijob_pod_t *pod = cluster_nth(c, roles[i], 0);
        pod->words = tt_strdup("job.yaml:3:1: unknown key");
        char *failed = tt_sprintf("DIJob qbert failed because pod %s ended with exit code 78 (bad configuration): "
                                  "job.yaml:3:1: unknown key",
            pod->meta.name);
        char *condition = tt_sprintf("True DIJobFailed %s", failed),
             *event = tt_sprintf("Warning DIJobFailed %s", failed);
        pod_end(c, pod, 78);
        cluster_settle(c, 10);
        assert_string_equal(cluster_condition(c, "Failed"), condition);
        assert_string_equal(cluster_status(c, "reason"), "BadConfiguration");
        assert_non_null(strstr(c->events, event));
        free(failed);
        free(condition);
        free(event);
        cluster_teardown(state);
        s_setup(state);
    }
}

/*  A line that an event has no room for: who ended, and how, stays, and what to do about it. */
static void test_the_remedy_of_a_long_line_is_told(void **state)
{
    cluster_t *c = *state;
    c->job.tutti = true;
    s_running(c);
    dijob_pod_t *pod = cluster_nth(c, DIJOB_COORDINATOR, 0);
    pod->words = tt_sprintf("job.yaml:3:1: %1500s; run: pip install it", "");
    pod_end(c, pod, 78);
    cluster_settle(c, 10);
    const char *words = cluster_condition(c, "Failed"), *end = "; run: pip install it";
    assert_non_null(strstr(words, "pod qbert-coordinator ended with exit code 78 (bad configuration): job.yaml:3:1: "));
    assert_string_equal(words + strlen(words) - strlen(end), end);
    assert_int_equal(strlen(words), strlen("True DIJobFailed ") + 1024);
    assert_non_null(strstr(c->events, words + strlen("True DIJobFailed ")));
}

/*  A peer that is not there yet, a disk that was full: started again. And DI-engine's codes are not ours. */
static void test_other_ends_do_not_fail_the_job(void **state)
{
    static const struct {
        bool tutti, disrupted;
        int code;
    } all[] = {{true, false, 75}, {true, false, 1}, {true, false, 139}, {true, true, 78}, {false, false, 78}};
    for (size_t i = 0; i < TT_COUNT(all); i++) {
        cluster_t *c = *state;
        c->job.tutti = all[i].tutti;
        c->job.replicas[DIJOB_COLLECTOR] = 1;
        s_running(c);
        dijob_pod_t *pod = cluster_nth(c, DIJOB_COLLECTOR, 0);
        pod->disrupted = all[i].disrupted;
        pod_end(c, pod, all[i].code);
        cluster_settle(c, 10);
        assert_string_equal(cluster_phase(c), "Running");
        assert_int_equal(cluster_alive(c, DIJOB_COLLECTOR), 1);
        cluster_teardown(state);
        s_setup(state);
    }
}

/*  It was looked after by an operator that knew no such rule, and has recovered. */
static void test_an_end_that_was_survived_is_history(void **state)
{
    cluster_t *c = *state;
    c->job.tutti = true;
    c->job.replicas[DIJOB_COLLECTOR] = 1;
    s_running(c);
    pod_end(c, cluster_nth(c, DIJOB_COLLECTOR, 0), 1);
    cluster_settle(c, 10);
    pod_run(c, cluster_nth(c, DIJOB_COLLECTOR, 1));
    cluster_nth(c, DIJOB_COLLECTOR, 0)->last_exit = 70;
    cluster_settle(c, 10);
    assert_string_equal(cluster_phase(c), "Running");
}

static void test_why_a_coordinator_failed_is_told(void **state)
{
    cluster_t *c = *state;
    dijob_pod_t *pod = s_running(c);
    pod->why = tt_strdup("OOMKilled");
    pod->words = tt_strdup("step 7");
    pod_end(c, pod, 137);
    cluster_settle(c, 10);
    assert_string_equal(
        cluster_condition(c, "Failed"), "True DIJobFailed DIJob qbert failed because coordinator failed");
    assert_string_equal(cluster_status(c, "reason"), "OOMKilled");
    assert_non_null(
        strstr(c->events, "Warning PodFailed pod qbert-coordinator ended with exit code 137 (OOMKilled): step 7\n"));
}

static void test_what_keeps_a_pod_from_running_is_told_once(void **state)
{
    cluster_t *c = *state;
    cluster_settle(c, 10);
    dijob_pod_t *pod = cluster_get(c, "qbert-coordinator");
    pod->why = tt_strdup("ImagePullFailed");
    pod->words = tt_strdup("no such image");
    cluster_settle(c, 10);
    assert_string_equal(cluster_phase(c), "Created");
    assert_string_equal(cluster_status(c, "reason"), "ImagePullFailed");
    assert_string_equal(cluster_condition(c, "PodTrouble"),
        "True ImagePullFailed pod qbert-coordinator: ImagePullFailed: no such image");
    const size_t events = c->event_size;
    free(pod->words);
    pod->words = tt_strdup("back-off 10s"); /* a kubelet's words change, the trouble does not */
    cluster_settle(c, 10);
    assert_int_equal(c->event_size, events);
    free(pod->why);
    pod->why = NULL;
    pod_run(c, pod);
    cluster_settle(c, 10);
    assert_string_equal(cluster_status(c, "reason"), "");
    assert_string_equal(cluster_condition(c, "PodTrouble"), "False NoTrouble ");
}

/*  One failure is none; the third in a row is, until one has lived for two minutes. */
static void test_a_replica_that_fails_again_and_again_is_told(void **state)
{
    cluster_t *c = *state;
    c->job.replicas[DIJOB_COLLECTOR] = 1;
    s_running(c);
    for (int i = 0; i < 4; i++) {
        for (size_t k = 0; k < c->pod_count; k++)
            if (c->pods[k]->role == DIJOB_COLLECTOR && c->pods[k]->phase == POD_PENDING)
                pod_run(c, c->pods[k]);
        for (size_t k = 0; k < c->pod_count; k++)
            if (c->pods[k]->role == DIJOB_COLLECTOR && c->pods[k]->phase == POD_RUNNING) {
                pod_end(c, c->pods[k], 139);
                break;
            }
        cluster_round(c);
        assert_string_equal(cluster_status(c, "reason"), i < 3 ? "" : "CrashLoop");
        for (int k = 0; k < 70 && cluster_alive(c, DIJOB_COLLECTOR) == 0; k++, c->now_s++)
            cluster_round(c);
    }
    cluster_round(c);
    assert_string_equal(cluster_status(c, "reason"), "CrashLoop");
    assert_non_null(strstr(cluster_condition(c, "PodTrouble"), "ended with exit code 139 (Error)"));
    for (size_t k = 0; k < c->pod_count; k++)
        if (c->pods[k]->phase == POD_PENDING)
            pod_run(c, c->pods[k]);
    cluster_settle(c, 20);
    assert_string_equal(cluster_status(c, "reason"), "");
}

/* ---- the coordinator ------------------------------------------------------------------------------------------------------------ */

static void test_a_deleted_coordinator_comes_back_and_the_phase_stays(void **state)
{
    cluster_t *c = *state;
    dijob_pod_t *pod = s_running(c);
    char uid[37];
    snprintf(uid, sizeof uid, "%s", cluster_status(c, "coordinatorUID"));
    assert_string_equal(uid, pod->meta.uid);
    pod->deleting = true;
    cluster_settle(c, 10);
    assert_int_equal(c->pod_count, 1); /* the name is still taken */
    pod_end(c, pod, 143);
    cluster_settle(c, 10);
    assert_string_equal(cluster_phase(c), "Running"); /* it did not fail: it was told to go */
    cluster_remove(c, pod);
    cluster_settle(c, 10);
    assert_int_equal(c->pod_count, 1);
    assert_string_equal(cluster_phase(c), "Running");
    assert_string_not_equal(cluster_status(c, "coordinatorUID"), uid);
    assert_string_equal(cluster_status(c, "restarts"), "1");
}

static void test_a_coordinator_of_ours_is_made_anew(void **state)
{
    cluster_t *c = *state;
    front_plan_t plan;
    c->job.tutti = true;
    for (int i = 0; i < 3; i++) {
        pod_run(c, cluster_nth(c, DIJOB_COORDINATOR, 0) ? cluster_nth(c, DIJOB_COORDINATOR, 0) : s_running(c));
        cluster_settle(c, 10);
        c->now_s += 5;
        pod_end(c, cluster_get(c, "qbert-coordinator"), 1);
        cluster_round(c);
        cluster_plan(c, &plan);
        assert_int_equal(plan.again_s, 1 << i); /* 1, 2, 4 s */
        front_plan_clear(&plan);
        cluster_settle(c, 10);
        assert_string_equal(cluster_phase(c), "Running");
        assert_int_equal(cluster_get(c, "qbert-coordinator")->phase, POD_PENDING);
    }
    pod_run(c, cluster_get(c, "qbert-coordinator"));
    cluster_settle(c, 10);
    dijob_pod_t *pod = cluster_get(c, "qbert-coordinator");
    pod_end(c, pod, 137);
    pod->disrupted = true; /* nobody's fault: at once */
    const int64_t now_s = c->now_s;
    cluster_settle(c, 10);
    assert_int_equal(c->now_s, now_s);
    assert_int_equal(cluster_get(c, "qbert-coordinator")->phase, POD_PENDING);
    assert_string_equal(cluster_status(c, "restarts"), "4");
}

static void test_a_twin_has_no_say(void **state)
{
    cluster_t *c = *state;
    dijob_pod_t *pod = s_running(c), *twin = cluster_add(c, DIJOB_COORDINATOR, "a-twin");
    twin->created_s -= 100;
    pod_end(c, twin, 1);
    cluster_settle(c, 10);
    assert_string_equal(cluster_phase(c), "Running");
    assert_string_equal(cluster_status(c, "coordinatorUID"), pod->meta.uid);
    assert_string_equal(cluster_condition(c, "CoordinatorTwins"),
        "True TooManyCoordinators 2 coordinator pods: qbert-coordinator coordinates, the others have no say");
    assert_non_null(strstr(c->events, "Warning TooManyCoordinators"));
    cluster_remove(c, twin);
    cluster_settle(c, 10);
    assert_string_equal(cluster_condition(c, "CoordinatorTwins"), "False OneCoordinator ");
}

/*  Who coordinates is who did so far, whatever its name and age. */
static void test_the_uid_tells_who_coordinates(void **state)
{
    cluster_t *c = *state;
    cluster_settle(c, 10);
    cluster_remove(c, c->pods[0]);
    dijob_pod_t *pod = cluster_add(c, DIJOB_COORDINATOR, "of-another-name");
    pod_run(c, pod);
    cluster_settle(c, 10);
    assert_string_equal(cluster_status(c, "coordinatorUID"), pod->meta.uid);
    pod_end(c, cluster_add(c, DIJOB_COORDINATOR, "qbert-coordinator"), 1);
    cluster_settle(c, 10);
    assert_string_equal(cluster_phase(c), "Running");
    assert_string_equal(cluster_status(c, "coordinatorUID"), pod->meta.uid);
}

static void test_the_key_comes_before_the_first_pod_of_ours(void **state)
{
    cluster_t *c = *state;
    front_plan_t plan;
    c->job.tutti = true;
    c->curve = false;
    cluster_plan(c, &plan);
    assert_int_equal(plan.actions[0].what, FRONT_CREATE_OBJECT);
    assert_int_equal(plan.actions[1].what, FRONT_EVENT);
    assert_int_equal(plan.count, 2);
    assert_int_equal(plan.again_s, 0);
    front_plan_clear(&plan);
    cluster_settle(c, 10);
    assert_int_equal(c->pod_count, 1);
}

/* ---- behind our back -------------------------------------------------------------------------------------------------------------- */

static void test_services_follow_pods(void **state)
{
    cluster_t *c = *state;
    dijob_pod_t *pod = s_running(c);
    cluster_remove_service(c, 0);
    cluster_settle(c, 10);
    assert_int_equal(c->service_count, 1);
    cluster_add_service(c, "qbert-collector-gone0");
    cluster_settle(c, 10);
    assert_int_equal(c->service_count, 1);
    pod->deleting = true;
    cluster_settle(c, 10);
    assert_int_equal(c->service_count, 1); /* till the pod is gone */
    cluster_remove_service(c, 0);
    cluster_settle(c, 10);
    assert_int_equal(c->service_count, 0); /* no new one for a pod that goes */
}

static void test_a_status_that_was_edited_is_mended(void **state)
{
    static const char *const statuses[] = {"{}", "[]", "null",
        "{\"conditions\":7,\"replicaStatus\":[],\"restarts\":\"x\"}",
        "{\"phase\":\"Nonsense\",\"conditions\":[1,null,{\"type\":4},{}],\"coordinatorUID\":{}}",
        "{\"phase\":\"Created\"}", "{\"phase\":\"Running\",\"conditions\":[]}"};
    cluster_t *c = *state;
    s_running(c);
    for (size_t i = 0; i < TT_COUNT(statuses); i++) {
        free(c->job.status);
        c->job.status = tt_strdup(statuses[i]);
        c->job.phase = strstr(statuses[i], "Created")   ? DIJOB_PHASE_CREATED
                       : strstr(statuses[i], "Running") ? DIJOB_PHASE_RUNNING
                       : strstr(statuses[i], "phase")   ? DIJOB_PHASE_UNKNOWN
                                                        : DIJOB_PHASE_NONE;
        cluster_settle(c, 10);
        assert_string_equal(cluster_phase(c), "Running");
        assert_string_equal(cluster_status(c, "replicaStatus.Coordinator"), "{\"active\":1}");
        assert_string_equal(
            cluster_condition(c, "Running"), "True DIJobRunning coordinator and aggregator of DIJob qbert are running");
    }
}

static void test_a_refused_template_is_told_once(void **state)
{
    cluster_t *c = *state;
    cluster_round(c);
    cluster_remove(c, c->pods[0]);
    c->refused = "spec.containers[0].imagee: unknown field \xff";
    cluster_settle(c, 10);
    assert_int_equal(c->pod_count, 0);
    assert_string_equal(cluster_phase(c), "Created");
    assert_string_equal(
        cluster_condition(c, "TemplateRefused"), "True Invalid spec.containers[0].imagee: unknown field ?");
    assert_non_null(strstr(c->events, "Warning FailedCreate spec.containers[0].imagee: unknown field ?\n"));
    const size_t size = c->event_size;
    c->refused = NULL; /* the operator was started again, and tries once */
    cluster_round(c);
    cluster_remove(c, c->pods[0]);
    c->refused = "spec.containers[0].imagee: unknown field \xff";
    cluster_settle(c, 10);
    assert_int_equal(c->event_size, size);
    c->refused = NULL; /* the spec was mended */
    cluster_settle(c, 10);
    assert_string_equal(cluster_condition(c, "TemplateRefused"), "False Accepted ");
}

/*  Collectors that a quota refuses: the coordinator that is deleted comes back, and the learner is made. */
static void test_a_refused_role_holds_no_other(void **state)
{
    cluster_t *c = *state;
    c->job.replicas[DIJOB_COLLECTOR] = 2;
    c->refused = "pods \"x\" is forbidden: exceeded quota: few, requested: pods=1, used: pods=9, limited: pods=9";
    c->refused_reason = "Forbidden";
    c->refused_role = DIJOB_COLLECTOR;
    s_running(c);
    cluster_remove(c, cluster_get(c, "qbert-coordinator"));
    c->job.replicas[DIJOB_LEARNER] = 1;
    s_running(c);
    assert_int_equal(cluster_alive(c, DIJOB_LEARNER), 1);
    assert_int_equal(cluster_count(c, DIJOB_COLLECTOR), 0);
    assert_string_equal(cluster_condition(c, "TemplateRefused"), ""); /* that is for templates */
    assert_non_null(
        strstr(cluster_condition(c, "QuotaExceeded"), "True Forbidden pods \"x\" is forbidden: exceeded quota"));
    assert_string_equal(cluster_status(c, "reason"), "QuotaExceeded");
    c->refused = "violates PodSecurity";
    cluster_settle(c, 10);
    assert_string_equal(cluster_condition(c, "PodForbidden"), "True Forbidden violates PodSecurity");
    assert_string_equal(cluster_condition(c, "QuotaExceeded"), "False Accepted ");
    c->refused_role = DIJOB_COORDINATOR; /* and what there is of it changes nothing for the others */
    cluster_settle(c, 10);
    assert_int_equal(cluster_alive(c, DIJOB_COLLECTOR), 2);
    c->refused_role = 0;
}

static void test_a_job_in_its_wanted_state_costs_nothing(void **state)
{
    cluster_t *c = *state;
    s_running(c);
    const size_t writes = c->writes;
    c->now_s += 100000;
    assert_false(cluster_round(c));
    assert_int_equal(c->writes, writes);
    assert_true(writes <= 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, s_setup, cluster_teardown)
        T(test_a_new_job_gets_its_coordinator_and_says_so),
        T(test_the_coordinator_alone_decides_the_phase),
        T(test_a_failed_coordinator_fails_a_foreign_job),
        cmocka_unit_test(test_cleanup_by_policy),
        T(test_a_final_phase_is_final),
        T(test_nothing_goes_before_the_final_phase_is_written),
        T(test_who_comes_late_to_an_ended_job_goes),
        T(test_a_crash_loop_and_a_sidecar_stay_where_running_is_cleaned),
        T(test_a_job_that_is_deleted_is_left_to_the_garbage_collector),
        T(test_an_invalid_job_fails_and_says_why),
        T(test_an_end_that_is_final_fails_the_job),
        T(test_the_remedy_of_a_long_line_is_told),
        T(test_other_ends_do_not_fail_the_job),
        T(test_an_end_that_was_survived_is_history),
        T(test_why_a_coordinator_failed_is_told),
        T(test_what_keeps_a_pod_from_running_is_told_once),
        T(test_a_replica_that_fails_again_and_again_is_told),
        T(test_a_new_job_with_a_bad_name_fails),
        T(test_a_job_that_runs_goes_on_whatever_its_name),
        T(test_a_job_that_has_begun_is_left_alone_without_pods),
        T(test_a_job_that_runs_outlives_a_bad_spec),
        T(test_a_spec_that_was_mended_is_kept_again),
        T(test_a_deleted_coordinator_comes_back_and_the_phase_stays),
        T(test_a_coordinator_of_ours_is_made_anew),
        T(test_a_twin_has_no_say),
        T(test_the_uid_tells_who_coordinates),
        T(test_the_key_comes_before_the_first_pod_of_ours),
        T(test_services_follow_pods),
        T(test_a_status_that_was_edited_is_mended),
        T(test_a_refused_template_is_told_once),
        T(test_a_refused_role_holds_no_other),
        T(test_a_job_in_its_wanted_state_costs_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
