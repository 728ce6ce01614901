/*  TFJobs of any spec in a cluster where anything happens at any time, from seeds: pods fail, are evicted, restarted, deleted;
 *  services vanish; numbers change; answers are lost. What must hold holds after every step, once it is quiet nothing is left to
 *  do, and when those that decide end well the job has succeeded. */
#include <stdio.h>
#include "k8s/front/object.h"
#include "tests/draws.h"
#include "tests/k8s/tfjob/world.h"

#ifdef __SANITIZE_ADDRESS__ /* slower by far */
enum { SEEDS = 30, STEPS = 60 };
#else
enum { SEEDS = 200, STEPS = 60 };
#endif

typedef struct {
    world_t w;
    draws_t draws;
    char final[16]; /* "" = not yet */
    int workers, chief, all, policy, old;
} sim_t;

static uint32_t s_below(sim_t *self, uint32_t n)
{
    return draws_below(&self->draws, n);
}

/*  Of v1alpha1; worker 1 decides where there is no master. */
static void s_edit_old(sim_t *self)
{
    static const char master[] = "{'template':T},";
    self->workers = self->workers < 2 ? 2 : self->workers;
    char *spec = tt_sprintf("{'RuntimeId':'x','terminationPolicy':{'chief':{'replicaName':'%s','replicaIndex':%d}},"
                            "'replicaSpecs':[%s{'tfReplicaType':'PS'},{'tfReplicaType':'WORKER','replicas':%d,"
                            "'template':T}]}",
        self->chief ? "MASTER" : "WORKER", self->chief ? 0 : 1, self->chief ? master : "", self->workers);
    world_edit(&self->w, spec);
    free(spec);
}

static void s_edit(sim_t *self, bool suspend)
{
    if (self->old) {
        s_edit_old(self);
        return;
    }
    static const char *const policies[] = {"Never", "OnFailure", "Always", "ExitCode"};
    const char *policy = policies[self->policy];
    char *chief = self->chief ? tt_sprintf("'Chief':{'restartPolicy':'%s','template':T},", policy) : tt_strdup("");
    char *spec = tt_sprintf(
        "{'runPolicy':{'backoffLimit':%d,'cleanPodPolicy':'Running','suspend':%s}%s,'tfReplicaSpecs':{%s"
        "'PS':{'restartPolicy':'OnFailure','template':T},'Worker':{'replicas':%d,'restartPolicy':'%s',"
        "'template':T}}}",
        10, suspend ? "true" : "false", self->all ? ",'successPolicy':'AllWorkers'" : "", chief, self->workers, policy);
    world_edit(&self->w, spec);
    free(spec);
    free(chief);
}

static const char *s_name(const json_t *pod)
{
    return parts_text(json_object_get(pod, "metadata"), "name", "");
}

static bool s_alive(const json_t *pod)
{
    const char *phase = parts_text(json_object_get(pod, "status"), "phase", "");
    return strcmp(phase, "Succeeded") != 0 && strcmp(phase, "Failed") != 0;
}

static bool s_runs(const json_t *pod)
{
    return strcmp(parts_text(json_object_get(pod, "status"), "phase", ""), "Running") == 0;
}

static void s_pod_event(sim_t *self)
{
    world_t *w = &self->w;
    if (w->pod_count == 0)
        return;
    json_t *pod = w->pods[s_below(self, (uint32_t)w->pod_count)];
    const uint32_t what = s_below(self, 100);
    if (what < 50 && s_alive(pod) && !s_runs(pod))
        world_run(w, s_name(pod));
    else if (what < 58 && s_runs(pod))
        world_end(w, s_name(pod), (const int[]){0, 1, 137, 143}[s_below(self, 4)]);
    else if (what < 62 && s_runs(pod))
        world_again(w, s_name(pod), 1);
    else if (what < 66 && s_alive(pod))
        json_object_set_new(pod, "status",
            json_of(
                "{'phase':'Failed','reason':'Evicted','conditions':[{'type':'DisruptionTarget','status':'True'}]}"));
    else if (what < 70 || json_object_get(json_object_get(pod, "metadata"), "deletionTimestamp"))
        world_remove(w, pod);
}

static void s_other_event(sim_t *self)
{
    const uint32_t what = s_below(self, 6);
    if (what < 2)
        self->w.now_s += s_below(self, 20);
    else if (what == 2)
        self->workers = 1 + (int)s_below(self, 4);
    else if (what == 3 && self->w.service_count > 0)
        world_remove_service(&self->w, s_below(self, (uint32_t)self->w.service_count));
    s_edit(self, what == 4 && s_below(self, 3) == 0);
}

/*  An end is for good, its condition the only True one of how the job is; Running and Restarting are never both on. */
static void s_check(sim_t *self)
{
    const world_t *w = &self->w;
    const bool succeeded = strcmp(world_condition(w, "Succeeded", "status"), "True") == 0;
    const bool failed = strcmp(world_condition(w, "Failed", "status"), "True") == 0;
    const bool running = strcmp(world_condition(w, "Running", "status"), "True") == 0;
    const bool restarting = strcmp(world_condition(w, "Restarting", "status"), "True") == 0;
    assert_true(succeeded + failed + running + restarting <= 1);
    if (*self->final)
        assert_string_equal(world_condition(w, self->final, "status"), "True");
    else if (succeeded || failed)
        snprintf(self->final, sizeof self->final, "%s", succeeded ? "Succeeded" : "Failed");
}

static void s_check_quiet(const sim_t *self)
{
    const world_t *w = &self->w;
    if (*self->final) {
        for (size_t i = 0; i < w->pod_count; i++)
            assert_false(s_alive(w->pods[i]));
        assert_int_equal(w->service_count, 0);
        return;
    }
    assert_int_equal(w->pod_count, 1 + self->chief + self->workers);
    assert_int_equal(w->service_count, w->pod_count);
    assert_string_equal(world_last(w), "Running");
}

static void s_run_pods(world_t *w)
{
    for (size_t i = 0; i < w->pod_count; i++)
        if (s_alive(w->pods[i]) && !s_runs(w->pods[i]))
            world_run(w, s_name(w->pods[i]));
}

static void s_quiet(sim_t *self)
{
    self->w.lose = 0;
    self->w.made = 0; /* another operator, who remembers nothing */
    s_edit(self, false);
    for (int i = 0; i < 10; i++) {
        world_settle(&self->w, 200);
        s_run_pods(&self->w);
    }
    world_settle(&self->w, 200);
    s_check(self);
    s_check_quiet(self);
}

static void s_end_well(sim_t *self)
{
    world_t *w = &self->w;
    const char *prefix = !self->chief ? "mnist-worker-" : self->old ? "mnist-master-" : "mnist-chief-";
    w->made = 0;
    for (size_t i = 0; i < w->pod_count && !*self->final; i++)
        if (strncmp(s_name(w->pods[i]), prefix, strlen(prefix)) == 0)
            world_end(w, s_name(w->pods[i]), 0);
    world_settle(w, 200);
    s_check(self);
    assert_true(*self->final);
    s_check_quiet(self);
}

static void s_run(uint64_t seed, unsigned lose, unsigned *succeeded)
{
    sim_t sim = {.draws.seed = seed};
    sim.workers = 1 + (int)s_below(&sim, 3);
    sim.chief = (int)s_below(&sim, 2);
    sim.all = (int)s_below(&sim, 2);
    sim.policy = (int)s_below(&sim, 4);
    sim.old = s_below(&sim, 4) == 0;
    world_init(&sim.w, "{}");
    s_edit(&sim, false);
    sim.w.lose = lose;
    sim.w.draw = draws_word;
    sim.w.ctx = &sim.draws;
    for (int i = 0; i < STEPS; i++) {
        if (s_below(&sim, 5) == 0)
            s_other_event(&sim);
        else
            s_pod_event(&sim);
        world_round(&sim.w);
        s_check(&sim);
    }
    s_quiet(&sim);
    s_end_well(&sim);
    *succeeded += strcmp(sim.final, "Succeeded") == 0;
    world_free(&sim.w);
}

static void s_run_all(uint64_t seed, unsigned lose)
{
    unsigned succeeded = 0;
    for (uint64_t i = 0; i < SEEDS; i++)
        s_run(seed + i, lose, &succeeded);
    assert_true(succeeded > SEEDS / 20 && succeeded < SEEDS); /* both ends were seen */
}

static void test_when_no_answer_is_lost(void **state)
{
    (void)state;
    s_run_all(0, 0);
}

static void test_when_answers_are_lost(void **state)
{
    (void)state;
    s_run_all(10000, 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_when_no_answer_is_lost),
        cmocka_unit_test(test_when_answers_are_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
