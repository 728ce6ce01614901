/*  How many pods there are of a role: by number, as they are, replaced, drained, kept; victims; ddp learners. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/k8s/dijob/cluster.h"

/*  A job whose coordinator runs. */
static int s_setup(void **state)
{
    static cluster_t cluster;
    cluster_roles(&cluster, "qbert");
    cluster_settle(&cluster, 10);
    pod_run(&cluster, cluster_get(&cluster, "qbert-coordinator"));
    cluster_settle(&cluster, 10);
    *state = &cluster;
    return 0;
}

static void s_want(cluster_t *c, dijob_role_t role, int64_t replicas)
{
    c->job.replicas[role] = replicas;
    c->job.generation++;
    for (int i = 0; i < 3; i++)
        cluster_round(c);
}

/*  The newest pod of a role that has not ended. */
static dijob_pod_t *s_alive(const cluster_t *c, dijob_role_t role)
{
    dijob_pod_t *found = NULL;
    for (size_t i = 0; i < c->pod_count; i++)
        if (c->pods[i]->role == role && dijob_pod_alive(c->pods[i]))
            found = c->pods[i];
    return found;
}

/* ---- by number ------------------------------------------------------------------------------------------------------------ */

static void test_a_number_is_reached_upwards_and_downwards(void **state)
{
    cluster_t *c = *state;
    s_want(c, DIJOB_COLLECTOR, 4);
    assert_int_equal(cluster_alive(c, DIJOB_COLLECTOR), 4);
    assert_int_equal(c->service_count, 5);
    assert_string_equal(cluster_status(c, "collectorReplicas"), "4");
    cluster_run_all(c, 10);
    s_want(c, DIJOB_COLLECTOR, 2);
    assert_int_equal(cluster_alive(c, DIJOB_COLLECTOR), 2);
    assert_int_equal(cluster_count(c, DIJOB_COLLECTOR), 4); /* two are on their way, with their services */
    assert_int_equal(c->service_count, 5);
    assert_string_equal(cluster_status(c, "collectorReplicas"), "2");
    assert_string_equal(cluster_status(c, "replicaStatus.Collector"), "{\"active\":2}");
    for (size_t i = c->pod_count; i-- > 0;)
        if (c->pods[i]->deleting)
            cluster_remove(c, c->pods[i]);
    cluster_settle(c, 10);
    assert_int_equal(c->service_count, 3);
    s_want(c, DIJOB_COLLECTOR, 0);
    assert_int_equal(cluster_alive(c, DIJOB_COLLECTOR), 0);
}

static void test_a_number_that_is_taken_away_keeps_the_pods(void **state)
{
    cluster_t *c = *state;
    s_want(c, DIJOB_COLLECTOR, 3);
    cluster_run_all(c, 10);
    s_want(c, DIJOB_COLLECTOR, -1);
    assert_int_equal(cluster_alive(c, DIJOB_COLLECTOR), 3);
    cluster_remove(c, s_alive(c, DIJOB_COLLECTOR));
    cluster_settle(c, 10);
    assert_int_equal(cluster_alive(c, DIJOB_COLLECTOR), 2);
}

static void test_nothing_is_made_without_a_coordinator(void **state)
{
    cluster_t *c = *state;
    dijob_pod_t *coordinator = cluster_get(c, "qbert-coordinator");
    coordinator->deleting = true;
    s_want(c, DIJOB_COLLECTOR, 2);
    assert_int_equal(cluster_count(c, DIJOB_COLLECTOR), 0);
    cluster_remove(c, coordinator);
    cluster_settle(c, 10); /* made anew, pending is enough */
    assert_string_equal(cluster_phase(c), "Running");
    assert_int_equal(cluster_count(c, DIJOB_COLLECTOR), 2);
    assert_string_equal(cluster_status(c, "restarts"), "1");
}

static void test_a_role_without_a_template_gets_no_pods(void **state)
{
    cluster_t *c = *state;
    c->job.has[DIJOB_COLLECTOR] = false;
    s_want(c, DIJOB_COLLECTOR, 2);
    assert_int_equal(cluster_count(c, DIJOB_COLLECTOR), 0);
}

static void test_at_most_500_pods_a_round(void **state)
{
    cluster_t *c = *state;
    front_plan_t plan;
    c->job.replicas[DIJOB_COLLECTOR] = 600;
    cluster_plan(c, &plan);
    assert_int_equal(plan.count, 500);
    assert_int_equal(plan.again_s, 0);
    front_plan_clear(&plan);
}

/* ---- back-off ------------------------------------------------------------------------------------------------------------- */

static void test_failed_replicas_come_back_later_and_later(void **state)
{
    static const int64_t delays[] = {1, 2, 4, 8, 16, 32, 60, 60};
    cluster_t *c = *state;
    s_want(c, DIJOB_LEARNER, 1);
    for (size_t i = 0; i < TT_COUNT(delays); i++) {
        front_plan_t plan;
        pod_run(c, s_alive(c, DIJOB_LEARNER));
        c->now_s += 5;
        pod_end(c, s_alive(c, DIJOB_LEARNER), 1);
        cluster_round(c);
        assert_int_equal(cluster_alive(c, DIJOB_LEARNER), 0);
        cluster_plan(c, &plan);
        assert_int_equal(plan.again_s, delays[i]);
        front_plan_clear(&plan);
        c->now_s += delays[i] - 1;
        cluster_round(c);
        assert_int_equal(cluster_alive(c, DIJOB_LEARNER), 0);
        c->now_s += 1;
        cluster_round(c);
        cluster_round(c);
        assert_int_equal(cluster_alive(c, DIJOB_LEARNER), 1);
        assert_int_equal(s_alive(c, DIJOB_LEARNER)->backoff_s, delays[i]);
        assert_non_null(s_alive(c, DIJOB_LEARNER)->replaces);
        assert_true(cluster_count(c, DIJOB_LEARNER) <= 4); /* three failed ones are kept */
    }
    pod_run(c, s_alive(c, DIJOB_LEARNER));
    c->now_s += 600; /* has done well for ten minutes: all is forgotten */
    pod_end(c, s_alive(c, DIJOB_LEARNER), 1);
    c->now_s += 1;
    cluster_round(c);
    assert_int_equal(s_alive(c, DIJOB_LEARNER)->backoff_s, 1);
}

/* ---- backoffLimit ----------------------------------------------------------------------------------------------------------- */

/*  The newest of a role fails five seconds after it came, and the next one comes. */
static void s_crash(cluster_t *c, dijob_role_t role)
{
    pod_run(c, s_alive(c, role));
    c->now_s += 5;
    pod_end(c, s_alive(c, role), 3);
    cluster_settle(c, 10);
}

static void test_a_role_that_crashes_again_and_again_fails_the_job(void **state)
{
    cluster_t *c = *state;
    c->job.backoff_limit = 2;
    s_want(c, DIJOB_LEARNER, 1);
    s_crash(c, DIJOB_LEARNER);
    s_crash(c, DIJOB_LEARNER);
    assert_string_equal(cluster_phase(c), "Running");
    assert_int_equal(s_alive(c, DIJOB_LEARNER)->failures, 2);
    char *last = tt_strdup(s_alive(c, DIJOB_LEARNER)->meta.name);
    s_crash(c, DIJOB_LEARNER);
    char *words =
        tt_sprintf("True DIJobFailed DIJob qbert failed because learner failed 3 times in a row and backoffLimit is 2; "
                   "the last, pod %s ended with exit code 3 (Error)",
            last);
    assert_string_equal(cluster_phase(c), "Failed");
    assert_string_equal(cluster_status(c, "reason"), "BackoffLimitExceeded");
    assert_string_equal(cluster_condition(c, "Failed"), words);
    assert_non_null(
        strstr(c->events, "Warning DIJobFailed DIJob qbert failed because learner failed 3 times in a row"));
    assert_null(cluster_get(c, "qbert-coordinator")); /* it ran, and cleanPodPolicy is Running */
    assert_non_null(cluster_get(c, last));            /* to be read */
    free(words);
    free(last);
}

static void test_collectors_that_work_keep_the_job_of_one_that_does_not(void **state)
{
    cluster_t *c = *state;
    c->job.backoff_limit = 2;
    s_want(c, DIJOB_COLLECTOR, 3);
    cluster_run_all(c, 10);
    for (int i = 0; i < 8; i++)
        s_crash(c, DIJOB_COLLECTOR);
    assert_string_equal(cluster_phase(c), "Running");
    assert_int_equal(s_alive(c, DIJOB_COLLECTOR)->failures, 8);
}

/*  restartPolicy Always, which is Kubernetes' own: the kubelet starts the container again and again in one pod. */
static void test_a_container_that_is_started_again_and_again_fails_the_job(void **state)
{
    cluster_t *c = *state;
    c->job.backoff_limit = 2;
    s_want(c, DIJOB_LEARNER, 1);
    cluster_run_all(c, 10);
    dijob_pod_t *pod = s_alive(c, DIJOB_LEARNER);
    for (uint16_t restarts = 0; restarts <= 2; restarts++) {
        assert_string_equal(cluster_phase(c), "Running");
        pod->own_restarts = restarts;
        pod->main = MAIN_WAITING;
        pod->last_exit = 3;
        pod->ready = false;
        c->now_s += 20;
        cluster_settle(c, 10);
    }
    assert_string_equal(cluster_phase(c), "Failed");
    assert_string_equal(cluster_status(c, "reason"), "BackoffLimitExceeded");
    assert_non_null(strstr(cluster_condition(c, "Failed"), "failed because learner failed 3 times in a row"));
}

/*  One that was asked for over HTTP, and one that its node evicted or would not take. */
static void test_who_is_replaced_without_a_number_counts_too(void **state)
{
    cluster_t *c = *state;
    c->job.backoff_limit = 2;
    cluster_add(c, DIJOB_COLLECTOR, "qbert-collector-aaaaa");
    s_crash(c, DIJOB_COLLECTOR);
    s_crash(c, DIJOB_COLLECTOR);
    for (int i = 0; i < 6; i++) {
        dijob_pod_t *pod = s_alive(c, DIJOB_COLLECTOR);
        pod->disrupted = i % 2 == 0;
        pod->refused = !pod->disrupted;
        s_crash(c, DIJOB_COLLECTOR);
        assert_string_equal(cluster_phase(c), "Running");
        assert_int_equal(s_alive(c, DIJOB_COLLECTOR)->failures, 2);
    }
    s_crash(c, DIJOB_COLLECTOR);
    assert_string_equal(cluster_status(c, "reason"), "BackoffLimitExceeded");
}

/* ---- podFailurePolicy ------------------------------------------------------------------------------------------------------- */

/*  Of a learner, by its pod's end or by its container's, of the coordinator that its kubelet starts again, of a learner of several GPUs. */
static void test_a_code_of_the_policy_fails_the_job(void **state)
{
    static const struct {
        dijob_role_t role;
        bool waits;
    } all[] = {{DIJOB_LEARNER, false}, {DIJOB_LEARNER, true}, {DIJOB_COORDINATOR, true}};
    for (size_t i = 0; i < TT_COUNT(all); i++) {
        cluster_t *c = *state;
        c->job.policy = true;
        tt_code_set_put(&c->job.fatal, 2, true);
        s_want(c, DIJOB_LEARNER, 2);
        cluster_run_all(c, 10);
        dijob_pod_t *pod = s_alive(c, all[i].role);
        char *words = tt_sprintf("True DIJobFailed DIJob qbert failed because pod %s ended with exit code 2 (Error): "
                                 "unrecognized arguments: --lrate",
            pod->meta.name);
        pod->words = tt_strdup("unrecognized arguments: --lrate");
        if (all[i].waits) {
            pod->main = MAIN_WAITING;
            pod->last_exit = 2;
            pod->ready = false;
        } else
            pod_end(c, pod, 2);
        cluster_settle(c, 10);
        assert_string_equal(cluster_phase(c), "Failed");
        assert_string_equal(cluster_status(c, "reason"), "PodFailurePolicy");
        assert_string_equal(cluster_condition(c, "Failed"), words);
        assert_non_null(strstr(c->events, strchr(words, 'D')));
        free(words);
        cluster_teardown(state);
        s_setup(state);
    }
}

/*  Another code, one whose node went away, one that its node would not take, and one that has a successor. */
static void test_other_ends_go_on_with_a_policy(void **state)
{
    cluster_t *c = *state;
    c->job.policy = true;
    s_want(c, DIJOB_COLLECTOR, 1);
    for (int i = 0; i < 3; i++) {
        pod_run(c, s_alive(c, DIJOB_COLLECTOR));
        dijob_pod_t *pod = s_alive(c, DIJOB_COLLECTOR);
        tt_code_set_put(&c->job.fatal, 2, i > 0);
        pod->disrupted = i == 1;
        pod->refused = i == 2;
        pod_end(c, pod, 2);
        cluster_settle(c, 10);
        assert_string_equal(cluster_phase(c), "Running");
        assert_int_equal(cluster_alive(c, DIJOB_COLLECTOR), 1);
    }
}

static void test_the_three_newest_failed_pods_are_kept(void **state)
{
    cluster_t *c = *state;
    char name[32];
    s_want(c, DIJOB_COLLECTOR, 1);
    for (int i = 0; i < 6; i++) {
        snprintf(name, sizeof name, "qbert-collector-old%02d", i);
        dijob_pod_t *pod = cluster_add(c, DIJOB_COLLECTOR, name);
        pod->created_s -= 100;
        pod_end(c, pod, 1);
        pod->finished_s = c->now_s - 50 + i;
    }
    cluster_settle(c, 10);
    assert_null(cluster_get(c, "qbert-collector-old02"));
    for (int i = 3; i < 6; i++) {
        snprintf(name, sizeof name, "qbert-collector-old%02d", i);
        assert_non_null(cluster_get(c, name));
    }
    assert_string_equal(cluster_status(c, "replicaStatus.Collector"), "{\"failed\":6}"); /* all of them */
}

static void test_a_higher_number_does_not_wait_for_the_failed(void **state)
{
    cluster_t *c = *state;
    s_want(c, DIJOB_COLLECTOR, 2);
    cluster_run_all(c, 10);
    dijob_pod_t *pod = s_alive(c, DIJOB_COLLECTOR);
    pod->backoff_s = 30;
    pod_end(c, pod, 1);
    s_want(c, DIJOB_COLLECTOR, 4);
    assert_int_equal(cluster_alive(c, DIJOB_COLLECTOR), 3); /* one of them is to wait for a minute */
    cluster_settle(c, 20);
    assert_int_equal(cluster_alive(c, DIJOB_COLLECTOR), 4);
}

/*  Collectors end with 0 a moment before their coordinator does: that is no reason to make new ones. */
static void test_who_ended_well_is_replaced_after_a_while_and_goes(void **state)
{
    cluster_t *c = *state;
    s_want(c, DIJOB_COLLECTOR, 1);
    cluster_run_all(c, 10);
    pod_end(c, s_alive(c, DIJOB_COLLECTOR), 0);
    for (int i = 0; i < 9; i++, c->now_s++)
        cluster_round(c);
    assert_int_equal(cluster_count(c, DIJOB_COLLECTOR), 1);
    assert_string_equal(cluster_status(c, "replicaStatus.Collector"), "{\"succeeded\":1}");
    c->now_s++;
    cluster_settle(c, 10);
    assert_int_equal(cluster_count(c, DIJOB_COLLECTOR), 1);
    assert_int_equal(cluster_alive(c, DIJOB_COLLECTOR), 1);
    assert_int_equal(s_alive(c, DIJOB_COLLECTOR)->backoff_s, 10);
}

static void test_who_drained_goes_when_fewer_are_wanted(void **state)
{
    cluster_t *c = *state;
    s_want(c, DIJOB_COLLECTOR, 2);
    cluster_run_all(c, 10);
    pod_end(c, s_alive(c, DIJOB_COLLECTOR), 0);
    s_want(c, DIJOB_COLLECTOR, 1);
    cluster_settle(c, 10);
    assert_int_equal(cluster_count(c, DIJOB_COLLECTOR), 1);
}

static void test_a_failed_pod_whose_sidecar_runs_on_makes_room(void **state)
{
    cluster_t *c = *state;
    s_want(c, DIJOB_LEARNER, 1);
    cluster_run_all(c, 10);
    dijob_pod_t *pod = s_alive(c, DIJOB_LEARNER);
    pod->main = MAIN_ERROR; /* phase stays Running */
    pod->finished_s = c->now_s;
    cluster_round(c);
    assert_string_equal(cluster_status(c, "replicaStatus.Learner"), "{\"failed\":1}");
    assert_int_equal(cluster_count(c, DIJOB_LEARNER), 1);
    c->now_s += 1;
    cluster_round(c);
    assert_true(cluster_nth(c, DIJOB_LEARNER, 0)->deleting);
    assert_int_equal(cluster_alive(c, DIJOB_LEARNER), 1);
}

/* ---- as they are ---------------------------------------------------------------------------------------------------------- */

static dijob_pod_t *s_asked_for(cluster_t *c, const char *name)
{
    dijob_pod_t *pod = cluster_add(c, DIJOB_COLLECTOR, name);
    pod_run(c, pod);
    cluster_settle(c, 10);
    return pod;
}

static void test_a_failed_pod_is_replaced_once(void **state)
{
    cluster_t *c = *state;
    dijob_pod_t *pod = s_asked_for(c, "qbert-collector-aaaaa");
    s_asked_for(c, "qbert-collector-bbbbb");
    c->now_s += 5;
    pod_end(c, pod, 1);
    cluster_round(c);
    assert_int_equal(cluster_count(c, DIJOB_COLLECTOR), 2); /* to be read for a second */
    c->now_s += 1;
    cluster_round(c);
    assert_int_equal(cluster_count(c, DIJOB_COLLECTOR), 3);
    assert_string_equal(s_alive(c, DIJOB_COLLECTOR)->replaces, "qbert-collector-aaaaa");
    cluster_settle(c, 10);
    assert_null(cluster_get(c, "qbert-collector-aaaaa"));
    assert_int_equal(cluster_count(c, DIJOB_COLLECTOR), 2);
    cluster_remove(c, s_alive(c, DIJOB_COLLECTOR)); /* deleted, by whoever: not replaced */
    cluster_settle(c, 10);
    assert_int_equal(cluster_count(c, DIJOB_COLLECTOR), 1);
}

static void test_the_same_name_when_the_answer_was_lost(void **state)
{
    cluster_t *c = *state;
    front_plan_t first, second;
    pod_end(c, s_asked_for(c, "qbert-collector-aaaaa"), 1);
    c->now_s += 1;
    cluster_plan(c, &first);
    c->random++;
    cluster_plan(c, &second);
    assert_int_equal(first.actions[0].what, FRONT_CREATE_POD);
    assert_string_equal(first.actions[0].name, second.actions[0].name);
    front_plan_clear(&first);
    front_plan_clear(&second);
}

static void test_who_takes_a_place_gets_what_was_asked_for(void **state)
{
    static const struct {
        const char *asked, *cpus, *memory, *gpus;
    } rows[] = {{"2/4Gi/1", "2", "4Gi", "1"}, {"//2", NULL, NULL, "2"}, {"1", NULL, NULL, NULL},
        {"a/b/c/d", NULL, NULL, NULL}, {NULL, NULL, NULL, NULL}};
    cluster_t *c = *state;
    dijob_pod_t *pod = s_asked_for(c, "qbert-collector-aaaaa");
    pod_end(c, pod, 1);
    c->now_s += 1;
    for (size_t i = 0; i < TT_COUNT(rows); i++) {
        front_plan_t plan;
        free(pod->asked);
        pod->asked = tt_strdup(rows[i].asked);
        cluster_plan(c, &plan);
        const dijob_resources_t *got = &((const dijob_pod_want_t *)plan.actions[0].own)->resources;
        assert_int_equal(plan.actions[0].what, FRONT_CREATE_POD);
        assert_string_equal(got->cpus ? got->cpus : "", rows[i].cpus ? rows[i].cpus : "");
        assert_string_equal(got->memory ? got->memory : "", rows[i].memory ? rows[i].memory : "");
        assert_string_equal(got->gpus ? got->gpus : "", rows[i].gpus ? rows[i].gpus : "");
        front_plan_clear(&plan);
    }
}

static void test_a_disrupted_pod_is_replaced_while_it_goes(void **state)
{
    cluster_t *c = *state;
    dijob_pod_t *pod = s_asked_for(c, "qbert-collector-aaaaa");
    pod->disrupted = true;
    cluster_settle(c, 10);
    assert_int_equal(cluster_count(c, DIJOB_COLLECTOR), 1); /* it still works */
    pod->deleting = true;
    cluster_settle(c, 10);
    assert_int_equal(cluster_alive(c, DIJOB_COLLECTOR), 1);
    cluster_remove(c, pod);
    cluster_settle(c, 10);
    assert_int_equal(cluster_count(c, DIJOB_COLLECTOR), 1);
}

static void test_a_deleted_pod_is_not_replaced(void **state)
{
    cluster_t *c = *state;
    dijob_pod_t *pod = s_asked_for(c, "qbert-collector-aaaaa");
    pod->deleting = true;
    cluster_settle(c, 10);
    pod_end(c, pod, 143); /* as a pod does that is told to go */
    cluster_settle(c, 10);
    assert_int_equal(cluster_count(c, DIJOB_COLLECTOR), 1);
    cluster_remove(c, pod);
    cluster_settle(c, 10);
    assert_int_equal(cluster_count(c, DIJOB_COLLECTOR), 0);
}

static void test_who_ended_well_stays_where_nobody_counts(void **state)
{
    cluster_t *c = *state;
    pod_end(c, s_asked_for(c, "qbert-collector-aaaaa"), 0);
    c->now_s += 1000;
    cluster_settle(c, 10);
    assert_int_equal(cluster_count(c, DIJOB_COLLECTOR), 1);
}

/* ---- counters --------------------------------------------------------------------------------------------------------------- */

/*  However its pod goes, a failure has happened; and it is one, however often it is looked at. */
static void test_a_failure_stays_counted(void **state)
{
    cluster_t *c = *state;
    static const int64_t wants[] = {-1, 2};
    for (size_t i = 0; i < TT_COUNT(wants); i++) {
        c->job.replicas[DIJOB_COLLECTOR] = wants[i];
        for (int k = 0; k < 2 && wants[i] < 0; k++)
            pod_run(c, cluster_add(c, DIJOB_COLLECTOR, k ? "qbert-collector-a" : "qbert-collector-b"));
        cluster_settle(c, 10);
        for (int failures = 1; failures <= 6; failures++) {
            for (size_t k = 0; k < c->pod_count; k++)
                if (c->pods[k]->role == DIJOB_COLLECTOR && c->pods[k]->phase == POD_PENDING)
                    pod_run(c, c->pods[k]);
            cluster_settle(c, 20);
            for (size_t k = 0; k < c->pod_count; k++)
                if (c->pods[k]->role == DIJOB_COLLECTOR && c->pods[k]->phase == POD_RUNNING) {
                    pod_end(c, c->pods[k], 1);
                    break;
                }
            cluster_settle(c, 20);
            char number[16];
            snprintf(number, sizeof number, "%d", failures);
            assert_string_equal(cluster_status(c, "replicaStatus.Collector.failed"), number);
        }
        cluster_teardown(state);
        s_setup(state);
    }
}

/*  An operator that counted what is there: those are not counted again. */
static void test_failures_of_another_operator_are_counted_once(void **state)
{
    cluster_t *c = *state;
    c->job.clean = TT_CLEAN_NONE;
    pod_end(c, cluster_add(c, DIJOB_LEARNER, "qbert-learner-a"), 1);
    free(c->job.status);
    c->job.status = tt_strdup("{\"phase\":\"Running\",\"replicaStatus\":{\"Learner\":{\"failed\":1}}}");
    cluster_settle(c, 20);
    assert_string_equal(cluster_status(c, "replicaStatus.Learner.failed"), "1");
}

/* ---- aggregators and ddp learners ------------------------------------------------------------------------------------------- */

static void test_more_than_one_learner_of_ours_gets_an_aggregator(void **state)
{
    cluster_t *c = *state;
    c->job.tutti = true;
    s_want(c, DIJOB_LEARNER, 1);
    assert_int_equal(cluster_count(c, DIJOB_AGGREGATOR), 0);
    s_want(c, DIJOB_LEARNER, 2);
    assert_int_equal(cluster_count(c, DIJOB_AGGREGATOR), 1);
    cluster_run_all(c, 10);
    s_want(c, DIJOB_LEARNER, 1);
    assert_int_equal(cluster_alive(c, DIJOB_AGGREGATOR), 0);
    s_want(c, DIJOB_LEARNER, 2);
    s_want(c, DIJOB_AGGREGATOR, 3);
    assert_int_equal(cluster_alive(c, DIJOB_AGGREGATOR), 3);
    c->job.tutti = false;
    s_want(c, DIJOB_AGGREGATOR, -1);
    assert_int_equal(cluster_alive(c, DIJOB_AGGREGATOR), 3);
}

/*  What the replicas API makes for a learner of ten GPUs on nodes of eight. */
static dijob_pod_t *s_ddp(cluster_t *c)
{
    dijob_pod_t *aggregator = cluster_add(c, DIJOB_AGGREGATOR, "qbert-aggregator-aaaaa");
    pod_run(c, aggregator);
    for (int i = 0; i < 2; i++) {
        dijob_pod_t *pod =
            cluster_add(c, DIJOB_DDP_LEARNER, i ? "qbert-ddp-learner-worker" : "qbert-ddp-learner-master");
        pod->owner_pod = tt_strdup("qbert-aggregator-aaaaa");
        pod->gpu_ports = i ? 1 : 7;
        pod->ddp_master = !i;
        pod_run(c, pod);
    }
    cluster_settle(c, 10);
    return aggregator;
}

static void test_ddp_learners_go_with_their_aggregator(void **state)
{
    cluster_t *c = *state;
    dijob_pod_t *aggregator = s_ddp(c);
    assert_int_equal(c->service_count, 4);
    assert_string_equal(cluster_status(c, "replicaStatus.Aggregator"), "{\"active\":1}");
    aggregator->deleting = true;
    cluster_settle(c, 10);
    assert_int_equal(cluster_alive(c, DIJOB_DDP_LEARNER), 0);
}

static void test_ddp_learners_follow_a_new_aggregator(void **state)
{
    cluster_t *c = *state;
    front_plan_t plan;
    pod_end(c, s_ddp(c), 1);
    c->now_s += 1;
    cluster_round(c); /* the aggregator first: its UID is needed */
    assert_int_equal(cluster_alive(c, DIJOB_AGGREGATOR), 1);
    assert_int_equal(cluster_alive(c, DIJOB_DDP_LEARNER), 2);
    const dijob_pod_t *aggregator = s_alive(c, DIJOB_AGGREGATOR);
    cluster_plan(c, &plan);
    const dijob_pod_want_t *master = NULL, *worker = NULL;
    for (size_t i = 0; i < plan.count; i++)
        if (plan.actions[i].what == FRONT_CREATE_POD) {
            const dijob_pod_want_t *want = plan.actions[i].own;
            *(want->master ? &master : &worker) = want;
        }
    assert_non_null(master);
    assert_non_null(worker);
    assert_string_equal(master->aggregator, aggregator->meta.name);
    assert_string_equal(master->aggregator_uid, aggregator->meta.uid);
    assert_true(master->split && worker->split);
    assert_int_equal(master->world_size, 10);
    assert_int_equal(master->gpus, 8);
    assert_int_equal(worker->local_world_size, 2);
    assert_int_equal(worker->start_rank, 8);
    assert_string_equal(worker->master_name, master->name);
    assert_string_equal(worker->replaces, "qbert-ddp-learner-worker");
    front_plan_clear(&plan);
    cluster_settle(c, 10);
    assert_null(cluster_get(c, "qbert-aggregator-aaaaa"));
    assert_int_equal(cluster_alive(c, DIJOB_DDP_LEARNER), 2);
    assert_true(cluster_get(c, "qbert-ddp-learner-master")->deleting);
}

static void test_a_ddp_worker_is_replaced_alone_a_master_with_all(void **state)
{
    cluster_t *c = *state;
    s_ddp(c);
    pod_end(c, cluster_get(c, "qbert-ddp-learner-worker"), 1);
    cluster_settle(c, 10);
    assert_int_equal(cluster_alive(c, DIJOB_DDP_LEARNER), 2);
    assert_non_null(cluster_get(c, "qbert-ddp-learner-master"));
    assert_null(cluster_get(c, "qbert-ddp-learner-worker"));
    cluster_run_all(c, 10);
    pod_end(c, cluster_get(c, "qbert-ddp-learner-master"), 1);
    cluster_settle(c, 10);
    assert_int_equal(cluster_alive(c, DIJOB_DDP_LEARNER), 2);
    assert_int_equal(cluster_count(c, DIJOB_DDP_LEARNER), 3); /* the worker is on its way out */
}

static void test_what_a_ddp_learner_is_that_was_reported(void **state)
{
    cluster_t *c = *state;
    dijob_pod_want_t want = {.role = DIJOB_COLLECTOR};
    s_ddp(c);
    dijob_pod_t *worker = cluster_get(c, "qbert-ddp-learner-worker");
    worker->deleting = true; /* it may be going already */
    const dijob_pod_t *const *pods = (const dijob_pod_t *const *)c->pods;
    assert_true(dijob_ddp_want(&want, pods, c->pod_count, worker, "new"));
    assert_int_equal(want.role, DIJOB_DDP_LEARNER);
    assert_string_equal(want.name, "new");
    assert_string_equal(want.replaces, "qbert-ddp-learner-worker");
    assert_string_equal(want.aggregator, "qbert-aggregator-aaaaa");
    assert_string_equal(want.master_name, "qbert-ddp-learner-master");
    assert_int_equal(want.world_size, 10);
    assert_int_equal(want.start_rank, 8);
    assert_int_equal(want.gpus, 2);
    assert_true(want.split && !want.master);
    worker->deleting = false;
    assert_true(dijob_ddp_want(&want, pods, c->pod_count, cluster_get(c, "qbert-ddp-learner-master"), "new"));
    assert_true(want.master);
    assert_string_equal(want.master_name, "new");
    cluster_remove(c, cluster_get(c, "qbert-aggregator-aaaaa"));
    assert_false(dijob_ddp_want(&want, pods, c->pod_count, worker, "new"));
}

/* ---- victims ---------------------------------------------------------------------------------------------------------------- */

static void test_victims_are_those_who_have_done_least(void **state)
{
    (void)state;
    dijob_pod_t pods[] = {
        {.meta.name = (char *)"old-ready", .phase = POD_RUNNING, .scheduled = true, .ready = true, .created_s = 10},
        {.meta.name = (char *)"new-ready", .phase = POD_RUNNING, .scheduled = true, .ready = true, .created_s = 20},
        {.meta.name = (char *)"not-ready", .phase = POD_RUNNING, .scheduled = true, .created_s = 5},
        {.meta.name = (char *)"unscheduled-b", .phase = POD_PENDING, .created_s = 5},
        {.meta.name = (char *)"unscheduled-a", .phase = POD_PENDING, .created_s = 5},
        {.meta.name = (char *)"going", .phase = POD_PENDING, .deleting = true},
        {.meta.name = (char *)"ended", .phase = POD_FAILED},
        {.meta.name = (char *)"other", .phase = POD_PENDING, .role = DIJOB_LEARNER},
    };
    static const char *const order[] = {"unscheduled-a", "unscheduled-b", "not-ready", "new-ready", "old-ready"};
    const dijob_pod_t *all[TT_COUNT(pods)], *out[TT_COUNT(pods)];
    for (size_t i = 0; i < TT_COUNT(pods); i++) {
        pods[i].role = pods[i].role ? pods[i].role : DIJOB_COLLECTOR;
        all[i] = &pods[i];
    }
    assert_int_equal(dijob_victims(all, TT_COUNT(pods), DIJOB_COLLECTOR, 99, out), TT_COUNT(order));
    for (size_t i = 0; i < TT_COUNT(order); i++)
        assert_string_equal(out[i]->meta.name, order[i]);
    assert_int_equal(dijob_victims(all, TT_COUNT(pods), DIJOB_COLLECTOR, 2, out), 2);
    assert_int_equal(dijob_victims(all, TT_COUNT(pods), DIJOB_COLLECTOR, 0, out), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, s_setup, cluster_teardown)
        T(test_a_number_is_reached_upwards_and_downwards),
        T(test_a_number_that_is_taken_away_keeps_the_pods),
        T(test_nothing_is_made_without_a_coordinator),
        T(test_a_role_without_a_template_gets_no_pods),
        T(test_at_most_500_pods_a_round),
        T(test_failed_replicas_come_back_later_and_later),
        T(test_a_role_that_crashes_again_and_again_fails_the_job),
        T(test_collectors_that_work_keep_the_job_of_one_that_does_not),
        T(test_a_container_that_is_started_again_and_again_fails_the_job),
        T(test_who_is_replaced_without_a_number_counts_too),
        T(test_a_code_of_the_policy_fails_the_job),
        T(test_other_ends_go_on_with_a_policy),
        T(test_the_three_newest_failed_pods_are_kept),
        T(test_a_higher_number_does_not_wait_for_the_failed),
        T(test_who_ended_well_is_replaced_after_a_while_and_goes),
        T(test_who_drained_goes_when_fewer_are_wanted),
        T(test_a_failed_pod_whose_sidecar_runs_on_makes_room),
        T(test_a_failed_pod_is_replaced_once),
        T(test_the_same_name_when_the_answer_was_lost),
        T(test_who_takes_a_place_gets_what_was_asked_for),
        T(test_a_disrupted_pod_is_replaced_while_it_goes),
        T(test_a_deleted_pod_is_not_replaced),
        T(test_who_ended_well_stays_where_nobody_counts),
        T(test_more_than_one_learner_of_ours_gets_an_aggregator),
        T(test_ddp_learners_go_with_their_aggregator),
        T(test_ddp_learners_follow_a_new_aggregator),
        T(test_a_ddp_worker_is_replaced_alone_a_master_with_all),
        T(test_what_a_ddp_learner_is_that_was_reported),
        T(test_a_failure_stays_counted),
        T(test_failures_of_another_operator_are_counted_once),
        cmocka_unit_test(test_victims_are_those_who_have_done_least),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
