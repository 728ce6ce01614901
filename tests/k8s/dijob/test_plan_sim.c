/*  Jobs in a cluster where anything happens at any time, from seeds: pods fail, are disrupted, deleted, deleted by force;
 *  specs and statuses are edited; answers are lost. What must hold holds after every step, and once it is quiet the job is
 *  as its spec says and nothing is left to do. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/draws.h"
#include "tests/k8s/dijob/cluster.h"

#ifdef __SANITIZE_ADDRESS__ /* slower by far */
enum { SEEDS = 12, STEPS = 150 };
#else
enum { SEEDS = 40, STEPS = 150 };
#endif

typedef struct {
    cluster_t c;
    draws_t draws;
    bool lossless;
    dijob_phase_t final; /* NONE: not yet */
} sim_t;

static uint32_t s_below(sim_t *self, uint32_t n)
{
    return draws_below(&self->draws, n);
}

static dijob_pod_t *s_any(sim_t *self)
{
    return self->c.pod_count ? self->c.pods[s_below(self, (uint32_t)self->c.pod_count)] : NULL;
}

static void s_delete(sim_t *self, dijob_pod_t *pod)
{
    if (!pod->scheduled || pod->phase == POD_FAILED || pod->phase == POD_SUCCEEDED)
        cluster_remove(&self->c, pod);
    else
        pod->deleting = true;
}

static bool s_ended(const dijob_pod_t *pod)
{
    return pod->phase == POD_SUCCEEDED || pod->phase == POD_FAILED;
}

/*  What may befall a pod. */
static void s_pod_event(sim_t *self)
{
    dijob_pod_t *pod = s_any(self);
    if (!pod)
        return;
    const uint32_t what = s_below(self, 100);
    if (what < 40 && !s_ended(pod) && !pod->deleting)
        pod_run(&self->c, pod);
    else if (what < 45 && !s_ended(pod))
        pod->ready = false;
    else if (what < 55 && pod->phase == POD_RUNNING && pod->role != DIJOB_COORDINATOR)
        pod_end(&self->c, pod, (const int[]){0, 1, 143}[s_below(self, 3)]);
    else if (what < 57 && pod->phase == POD_RUNNING)
        pod_end(&self->c, pod, (int)s_below(self, 3));
    else if (what < 62 && !s_ended(pod)) {
        pod->disrupted = true;
        s_delete(self, pod);
    } else if (what < 64 && !s_ended(pod)) {
        pod_end(&self->c, pod, 137);
        pod->disrupted = true;
    } else if (what < 66 && pod->phase == POD_PENDING) {
        pod_end(&self->c, pod, 1);
        pod->refused = true;
        pod->main = MAIN_NONE;
        pod->finished_s = 0;
    } else if (what < 72)
        s_delete(self, pod);
    else if (what < 76)
        cluster_remove(&self->c, pod);
    else if (what < 90 && pod->deleting)
        cluster_remove(&self->c, pod);
}

static void s_edit_roles(sim_t *self)
{
    dijob_t *job = &self->c.job;
    const dijob_role_t role = (dijob_role_t[]){DIJOB_COLLECTOR, DIJOB_LEARNER}[s_below(self, 2)];
    job->replicas[role] = (int64_t)s_below(self, 8) - 1;
    job->generation++;
}

static void s_edit_tasks(sim_t *self)
{
    char tasks[64];
    const unsigned a = 1 + s_below(self, 4), b = 1 + s_below(self, 3);
    if (s_below(self, 4) == 0)
        snprintf(tasks, sizeof tasks, "learner:%u", a);
    else
        snprintf(tasks, sizeof tasks, "collector:%u learner:%u", a, b);
    cluster_set_tasks(&self->c, tasks);
    self->c.job.generation++;
}

/*  Somebody asks for a learner of several GPUs over HTTP. */
static void s_add_ddp(sim_t *self)
{
    char name[64], aggregator[64];
    snprintf(aggregator, sizeof aggregator, "x-aggregator-%05u", (unsigned)self->draws.count);
    cluster_add(&self->c, DIJOB_AGGREGATOR, aggregator);
    for (unsigned i = 0, n = 1 + s_below(self, 3); i < n; i++) {
        snprintf(name, sizeof name, "x-ddp-learner-%05u-%u", (unsigned)self->draws.count, i);
        dijob_pod_t *pod = cluster_add(&self->c, DIJOB_DDP_LEARNER, name);
        pod->owner_pod = tt_strdup(aggregator);
        pod->ddp_master = n > 1 && i == 0;
        pod->gpu_ports = 1;
    }
}

static void s_other_event(sim_t *self)
{
    cluster_t *c = &self->c;
    char name[32];
    switch (s_below(self, 9)) {
    case 0:
        c->now_s += s_below(self, 30);
        break;
    case 1:
        if (c->job.tasks_shape)
            s_edit_tasks(self);
        else
            s_edit_roles(self);
        break;
    case 2:
        if (c->service_count > 0) {
            dijob_service_t *service = c->services[s_below(self, (uint32_t)c->service_count)];
            service->deleting = true;
        }
        break;
    case 3: /* somebody asks for a collector over HTTP */
        snprintf(name, sizeof name, "x-collector-%05u", (unsigned)self->draws.count);
        if (!c->job.tasks_shape)
            cluster_add(c, DIJOB_COLLECTOR, name);
        break;
    case 5:
        if (!c->job.tasks_shape && c->pod_count < 100)
            s_add_ddp(self);
        break;
    case 4: /* somebody edits the status */
        c->job.phase = s_below(self, 4) == 0 ? DIJOB_PHASE_RUNNING : c->job.phase;
        break;
    case 7:
        c->job.suspend = s_below(self, 6) == 0;
        break;
    case 8:
        c->job.deadline_s = s_below(self, 3) == 0 ? 1 + (int64_t)s_below(self, 100) : -1;
        break;
    default:
        c->refused = s_below(self, 8) == 0 ? "spec.containers[0].image: Required value" : NULL;
        c->refused_role = c->job.tasks_shape ? DIJOB_TASK : (dijob_role_t)s_below(self, DIJOB_TASK);
        break;
    }
}

/* ---- what must hold -------------------------------------------------------------------------------------------------------- */

static void s_check_twice(const sim_t *self)
{
    front_plan_t a, b;
    cluster_plan(&self->c, &a);
    cluster_plan(&self->c, &b);
    assert_int_equal(a.count, b.count);
    assert_int_equal(a.again_s, b.again_s);
    for (size_t i = 0; i < a.count; i++) {
        assert_int_equal(a.actions[i].what, b.actions[i].what);
        if (a.actions[i].name)
            assert_string_equal(a.actions[i].name, b.actions[i].name);
    }
    assert_true(!a.status == !b.status);
    if (a.status)
        assert_string_equal(a.status, b.status);
    front_plan_clear(&a);
    front_plan_clear(&b);
}

static void s_check_ranks(const cluster_t *c)
{
    for (size_t i = 0; i < c->pod_count; i++)
        for (size_t k = 0; k < i && !c->pods[i]->deleting; k++)
            if (!c->pods[k]->deleting)
                assert_int_not_equal(c->pods[i]->rank, c->pods[k]->rank);
}

static size_t s_alive(const cluster_t *c)
{
    size_t count = 0;
    for (size_t i = 0; i < c->pod_count; i++)
        count += dijob_pod_alive(c->pods[i]);
    return count;
}

static void s_check_step(sim_t *self)
{
    const cluster_t *c = &self->c;
    size_t coordinators = 0;
    for (size_t i = 0; i < c->pod_count; i++)
        coordinators += c->pods[i]->role == DIJOB_COORDINATOR;
    assert_true(coordinators <= 1);
    if (self->final != DIJOB_PHASE_NONE && c->job.status && c->lose == 0)
        assert_string_equal(cluster_status(c, "phase"), dijob_phase_name(self->final));
    if (self->final == DIJOB_PHASE_NONE && dijob_phase_final(c->job.phase))
        self->final = c->job.phase;
    if (self->lossless && self->final == DIJOB_PHASE_NONE && !c->job.tasks_shape)
        for (int role = DIJOB_COLLECTOR; role <= DIJOB_LEARNER; role++)
            if (c->job.replicas[role] >= 0)
                assert_true(cluster_alive(c, (dijob_role_t)role) <= (size_t)c->job.replicas[role]);
    if (c->job.tasks_shape && self->lossless)
        s_check_ranks(c);
    if (c->job.suspend && self->lossless && self->final == DIJOB_PHASE_NONE) {
        assert_string_equal(cluster_status(c, "phase"), "Suspended");
        assert_int_equal(s_alive(c), 0);
    }
    assert_false(c->gone);
}

static bool s_replaced(const cluster_t *c, const dijob_pod_t *pod)
{
    for (size_t i = 0; i < c->pod_count; i++)
        if (c->pods[i]->replaces && strcmp(c->pods[i]->replaces, pod->meta.name) == 0)
            return true;
    return false;
}

/*  Somebody ended with a code by which the job is to fail: it has been decided, if only that it is. Tasks ask while they are at work. */
static void s_check_policy(const sim_t *self)
{
    const cluster_t *c = &self->c;
    front_plan_t plan;
    if (!c->job.policy || c->job.tasks_shape || c->job.suspend || !c->job.status || dijob_phase_final(c->job.phase) ||
        self->final != DIJOB_PHASE_NONE)
        return;
    cluster_plan(c, &plan);
    for (size_t i = 0; i < c->pod_count; i++) {
        const dijob_pod_t *pod = c->pods[i];
        if (pod->phase == POD_FAILED && pod->exit_code == 2 && !pod->deleting && !pod->disrupted && !pod->refused &&
            !s_replaced(c, pod))
            assert_true(strstr(plan.status ? plan.status : "", "\"phase\":\"Failed\"") ||
                        strstr(plan.status ? plan.status : "", "\"phase\":\"Succeeded\""));
    }
    front_plan_clear(&plan);
}

static void s_step(sim_t *self)
{
    if (s_below(self, 4) == 0)
        s_other_event(self);
    else
        s_pod_event(self);
    if (s_below(self, 2) == 0)
        cluster_watch(&self->c);
    for (size_t i = self->c.service_count; i-- > 0;) /* services go at once */
        if (self->c.services[i]->deleting)
            cluster_remove_service(&self->c, i);
    s_check_twice(self);
    s_check_policy(self);
    cluster_round(&self->c);
    s_check_step(self);
}

/* ---- quiet ------------------------------------------------------------------------------------------------------------------ */

/*  Every pod gets what it waits for. */
static bool s_kubelet(cluster_t *c)
{
    bool changed = false;
    for (size_t i = c->pod_count; i-- > 0;) {
        dijob_pod_t *pod = c->pods[i];
        if (pod->deleting) {
            cluster_remove(c, pod);
            changed = true;
        } else if (pod->phase == POD_PENDING || (pod->phase == POD_RUNNING && !pod->ready)) {
            pod_run(c, pod);
            changed = true;
        }
    }
    return changed;
}

static void s_quiet(sim_t *self)
{
    cluster_t *c = &self->c;
    c->lose = c->repeat = 0;
    c->refused = NULL;
    c->job.deadline_s = -1;
    c->job.generation++;
    for (int rounds = 0; rounds < 2000; rounds++) {
        front_plan_t plan;
        cluster_watch(c);
        const bool kubelet = s_kubelet(c);
        cluster_plan(c, &plan);
        const bool nothing = plan.count == 0 && !plan.status;
        const int64_t again_s = plan.again_s;
        cluster_do(c, &plan);
        front_plan_clear(&plan);
        s_check_step(self);
        if (nothing && !kubelet && again_s < 0)
            return;
        if (nothing && again_s > 0)
            c->now_s += again_s;
    }
    fail_msg("seed %llu does not come to rest: %s", (unsigned long long)self->draws.seed, c->job.status);
}

static void s_check_services(const cluster_t *c)
{
    if (c->job.tasks_shape) {
        assert_int_equal(c->service_count, 1);
        return;
    }
    assert_int_equal(c->service_count, c->pod_count);
    for (size_t i = 0; i < c->service_count; i++)
        assert_non_null(cluster_get(c, c->services[i]->meta.name));
}

static void s_check_counters(const cluster_t *c)
{
    static const dijob_role_t roles[] = {DIJOB_COORDINATOR, DIJOB_COLLECTOR, DIJOB_LEARNER, DIJOB_AGGREGATOR};
    for (size_t r = 0; r < TT_COUNT(roles); r++) {
        char path[64];
        size_t active = 0, failed = 0;
        for (size_t i = 0; i < c->pod_count; i++) {
            active += c->pods[i]->role == roles[r] && dijob_pod_counts(c->pods[i]) == 'a';
            failed += c->pods[i]->role == roles[r] && dijob_pod_counts(c->pods[i]) == 'f';
        }
        snprintf(path, sizeof path, "replicaStatus.%s.active", dijob_role_title(roles[r]));
        assert_int_equal(atoi(cluster_status(c, path)), active);
        snprintf(path, sizeof path, "replicaStatus.%s.failed", dijob_role_title(roles[r]));
        assert_true((size_t)atoi(cluster_status(c, path)) >= failed); /* and those that are gone */
    }
    assert_int_equal(atoi(cluster_status(c, "collectorReplicas")), cluster_alive(c, DIJOB_COLLECTOR));
}

/*  Every ddp learner belongs to an aggregator that is there, or has ended well. */
static void s_check_ddp(const cluster_t *c)
{
    for (size_t i = 0; i < c->pod_count; i++) {
        const dijob_pod_t *pod = c->pods[i];
        if (pod->role != DIJOB_DDP_LEARNER)
            continue;
        const dijob_pod_t *aggregator = cluster_get(c, pod->owner_pod);
        assert_non_null(aggregator);
        assert_true(dijob_pod_alive(aggregator) || dijob_pod_counts(aggregator) == 's');
    }
}

static void s_check_roles(const cluster_t *c)
{
    assert_string_equal(cluster_status(c, "phase"), "Running");
    assert_int_equal(cluster_alive(c, DIJOB_COORDINATOR), 1);
    for (int role = DIJOB_COLLECTOR; role <= DIJOB_LEARNER; role++) {
        const size_t all = cluster_count(c, (dijob_role_t)role), alive = cluster_alive(c, (dijob_role_t)role);
        if (c->job.replicas[role] < 0)
            continue;
        assert_int_equal(alive, c->job.replicas[role]);
        assert_true(all - alive <= 3); /* failed ones, kept for reading */
    }
    s_check_counters(c);
    s_check_ddp(c);
}

static void s_check_tasks(const cluster_t *c)
{
    size_t replicas = 0;
    for (size_t t = 0; t < c->job.task_count; t++) {
        replicas += c->job.tasks[t].replicas;
        for (uint32_t rank = 0; rank < c->job.tasks[t].replicas; rank++) {
            char *name = tt_sprintf("%s-%s-%u", c->job.meta.name, c->job.tasks[t].name, rank);
            assert_non_null(cluster_get(c, name));
            free(name);
        }
    }
    assert_int_equal(c->pod_count, replicas);
    assert_string_equal(cluster_status(c, "phase"), "Running");
    assert_int_equal(atoi(cluster_status(c, "replicas")), replicas);
    s_check_ranks(c);
}

static void s_check_ended(const cluster_t *c)
{
    assert_int_equal(c->service_count, 0);
    if (c->job.clean == TT_CLEAN_ALL)
        assert_int_equal(c->pod_count, 0);
    for (size_t i = 0; i < c->pod_count && c->job.clean == TT_CLEAN_RUNNING; i++)
        assert_true(s_ended(c->pods[i]));
    assert_true(*cluster_status(c, "completionTimestamp") != 0);
}

static void s_check_quiet(const sim_t *self)
{
    const cluster_t *c = &self->c;
    if (dijob_phase_final(c->job.phase)) {
        s_check_ended(c);
        return;
    }
    s_check_services(c);
    if (c->job.tasks_shape)
        s_check_tasks(c);
    else
        s_check_roles(c);
}

/*  Suspended nobody is left but who ended well; afterwards it goes on, and nothing was counted. */
static void s_rest(sim_t *self)
{
    cluster_t *c = &self->c;
    c->job.suspend = true;
    s_quiet(self);
    if (dijob_phase_final(c->job.phase))
        return;
    const int restarts = atoi(cluster_status(c, "restarts"));
    const int failed = atoi(cluster_status(c, "replicaStatus.Collector.failed"));
    assert_string_equal(cluster_phase(c), "Suspended");
    for (size_t i = 0; i < c->pod_count; i++)
        assert_int_equal(dijob_pod_counts(c->pods[i]), 's');
    c->job.suspend = false;
    s_quiet(self);
    assert_int_equal(atoi(cluster_status(c, "restarts")), restarts);
    assert_int_equal(atoi(cluster_status(c, "replicaStatus.Collector.failed")), failed);
}

/*  The object goes when its time is over, and not before. */
static void s_expire(sim_t *self)
{
    cluster_t *c = &self->c;
    if (!dijob_phase_final(c->job.phase))
        return;
    const int64_t before_s = c->now_s;
    c->job.ttl_s = 86400;
    cluster_settle(c, 100);
    assert_true(c->gone);
    assert_in_range(c->now_s, before_s + 1, before_s + c->job.ttl_s);
}

/*  Whether the job ended. */
static bool s_run(uint64_t seed, bool tasks, bool lossless)
{
    sim_t sim = {.draws.seed = seed, .lossless = lossless};
    if (tasks)
        cluster_tasks(&sim.c, "x", "collector:2 learner:1");
    else
        cluster_roles(&sim.c, "x");
    sim.c.draw = draws_word;
    sim.c.ctx = &sim.draws;
    sim.c.lose = sim.c.repeat = lossless ? 0 : 15;
    sim.c.job.tutti = s_below(&sim, 2) == 0;
    sim.c.curve = false;
    sim.c.job.clean = (const tt_clean_t[]){TT_CLEAN_ALL, TT_CLEAN_NONE, TT_CLEAN_RUNNING}[s_below(&sim, 3)];
    sim.c.job.preemptible = tasks && s_below(&sim, 3) == 0;
    sim.c.job.backoff_limit = s_below(&sim, 2) == 0 ? -1 : 3;
    sim.c.job.policy = s_below(&sim, 4) == 0;
    tt_code_set_put(&sim.c.job.fatal, 2, true);
    for (int i = 0; i < STEPS; i++)
        s_step(&sim);
    s_rest(&sim);
    s_quiet(&sim);
    s_check_quiet(&sim);
    s_expire(&sim);
    const bool ended = dijob_phase_final(sim.c.job.phase);
    cluster_free(&sim.c);
    return ended;
}

/*  Of that many jobs some end and some do not. */
static void s_run_all(uint64_t seed, bool tasks, bool lossless)
{
    int ended = 0;
    for (uint64_t i = 0; i < SEEDS; i++)
        ended += s_run(seed + i, tasks, lossless);
    assert_in_range(ended, 1, SEEDS - 1);
}

static void test_roles_when_no_answer_is_lost(void **state)
{
    (void)state;
    s_run_all(0, false, true);
}

static void test_roles_when_answers_are_lost(void **state)
{
    (void)state;
    s_run_all(1000, false, false);
}

static void test_tasks_when_no_answer_is_lost(void **state)
{
    (void)state;
    s_run_all(2000, true, true);
}

static void test_tasks_when_answers_are_lost(void **state)
{
    (void)state;
    s_run_all(3000, true, false);
}

/* ---- without numbers ---------------------------------------------------------------------------------------------------------- */

/*  The pods of a role that are there, or will be there again. */
static size_t s_expected(const cluster_t *c)
{
    size_t count = 0;
    for (size_t i = 0; i < c->pod_count; i++) {
        const dijob_pod_t *pod = c->pods[i];
        bool replaced = false;
        for (size_t k = 0; k < c->pod_count; k++)
            replaced |= c->pods[k]->replaces && strcmp(c->pods[k]->replaces, pod->meta.name) == 0;
        count += pod->role == DIJOB_COLLECTOR && !replaced &&
                 (dijob_pod_alive(pod) || dijob_pod_counts(pod) == 'f' || (pod->deleting && pod->disrupted));
    }
    return count;
}

/*  One thing happens; how much it changes the number that is to be there. */
static int s_happen(sim_t *self)
{
    char name[32];
    dijob_pod_t *pod = s_any(self);
    const uint32_t what = s_below(self, 6);
    const bool alive = pod->role == DIJOB_COLLECTOR && dijob_pod_alive(pod);
    const bool stands_in = pod->replaces && cluster_get(&self->c, pod->replaces);
    if (what == 0) {
        snprintf(name, sizeof name, "x-collector-%05u", (unsigned)self->draws.count);
        pod_run(&self->c, cluster_add(&self->c, DIJOB_COLLECTOR, name));
        return 1;
    }
    if (pod->role == DIJOB_COLLECTOR && pod->deleting)
        cluster_remove(&self->c, pod);
    if (!alive)
        return 0;
    pod_run(&self->c, pod);
    if (what <= 2)
        pod_end(&self->c, pod, 1);
    if (what <= 2 || stands_in) /* were it gone now, nothing would tell that the other one has been replaced */
        return 0;
    if (what == 5)
        cluster_remove(&self->c, pod);
    else
        pod->deleting = true;
    if (what == 3)
        pod->disrupted = true;
    return what == 3 ? 0 : -1;
}

static void test_without_numbers_only_what_failed_comes_back(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        sim_t sim = {.draws.seed = 4000 + seed};
        size_t expected = 0;
        cluster_roles(&sim.c, "x");
        cluster_settle(&sim.c, 10);
        pod_run(&sim.c, sim.c.pods[0]);
        for (int i = 0; i < STEPS; i++) {
            const int change = s_happen(&sim);
            expected = (size_t)((int)expected + change);
            cluster_round(&sim.c);
            cluster_round(&sim.c);
            sim.c.now_s += s_below(&sim, 3);
            assert_int_equal(s_expected(&sim.c), expected);
        }
        cluster_settle(&sim.c, 1000);
        assert_int_equal(cluster_alive(&sim.c, DIJOB_COLLECTOR), expected);
        cluster_free(&sim.c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_roles_when_no_answer_is_lost),
        cmocka_unit_test(test_roles_when_answers_are_lost),
        cmocka_unit_test(test_tasks_when_no_answer_is_lost),
        cmocka_unit_test(test_tasks_when_answers_are_lost),
        cmocka_unit_test(test_without_numbers_only_what_failed_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
