/*  cache: several kinds of jobs side by side, and one that the cluster does not have. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/k8s/operator/operator_bench.h"

#define DIJOBS JOBS_PATH "/namespaces/n/dijobs"
#define OTHERS "/apis/other.example/v1/namespaces/n/others"

/*  A second kind, as DIJobs in all but its names and labels. */
static front_t s_other(void)
{
    front_t other = dijob_front;
    other.name = "other";
    other.kind = "Other";
    other.group = "other.example";
    other.version = "v1";
    other.plural = "others";
    other.shapes[0] = (front_shape_t){.selector = "other-operator=true",
        .job_label = "dijob-name",
        .own_label = "other-operator",
        .prefix = "other_"};
    other.shapes[1] = (front_shape_t){0};
    return other;
}

typedef struct {
    world_t world;
    front_t other;
    const front_t *fronts[2];
    cache_t *cache;
    char last[ROUND_KEY]; /* the key of what changed last */
    int synced;
} two_t;

static void s_on_changed(void *ctx, const kind_t *kind, const char *namespace_, const char *job)
{
    round_key(((two_t *)ctx)->last, kind, namespace_, job);
}

static void s_on_synced(void *ctx)
{
    ((two_t *)ctx)->synced++;
}

static int s_setup(void **state)
{
    two_t *self = tt_new0(sizeof *self);
    *state = self;
    world_open(&self->world);
    self->other = s_other();
    self->fronts[0] = &dijob_front;
    self->fronts[1] = &self->other;
    return 0;
}

static int s_teardown(void **state)
{
    two_t *self = *state;
    cache_destroy(&self->cache);
    world_close(&self->world);
    free(self);
    return 0;
}

static void s_open(two_t *self)
{
    const cache_opts_t opts = {.namespace_ = "n",
        .fronts = self->fronts,
        .front_count = TT_COUNT(self->fronts),
        .changed = s_on_changed,
        .synced = s_on_synced,
        .ctx = self};
    assert_ok(cache_new(&self->cache, self->world.client, &opts));
}

static bool s_is_synced(void *ctx)
{
    return cache_synced(((two_t *)ctx)->cache);
}

static bool s_is_told(void *ctx)
{
    return ((two_t *)ctx)->synced > 0;
}

static bool s_have_both(void *ctx)
{
    const cache_t *cache = ((two_t *)ctx)->cache;
    return cache_job(&cache->kinds[0], "n", "j") && cache_job(&cache->kinds[1], "n", "j");
}

static void s_make(two_t *self, const char *path)
{
    assert_ok(world_call(&self->world, "POST", path,
        "{'apiVersion':'" DIJOB_GROUP "/v1alpha1','kind':'DIJob','metadata':{'name':'j'},'spec':{'coordinator':"
        "{'template':{'spec':{'containers':[{'name':'di-container','image':'x:1'}]}}}}}",
        NULL));
}

static void s_make_pod(two_t *self, const char *label)
{
    char *text = tt_sprintf("{'metadata':{'name':'%s','labels':{'%s':'%s','dijob-name':'j','replica-type':'collector'},"
                            "'ownerReferences':[{'uid':'u','controller':true}]}}",
        label, label, strcmp(label, "controller-name") == 0 ? "di-operator" : "true");
    assert_ok(world_call(&self->world, "POST", PODS, text, NULL));
    free(text);
}

static bool s_have_pods(void *ctx)
{
    return cache_count(((two_t *)ctx)->cache).pods == 2;
}

static void test_jobs_of_one_name_and_two_kinds_are_two(void **state)
{
    two_t *self = *state;
    s_open(self);
    world_until(&self->world, s_is_synced, self, 1);
    s_make(self, DIJOBS);
    s_make(self, OTHERS);
    world_until(&self->world, s_have_both, self, 1);
    assert_int_equal(cache_count(self->cache).jobs, 2);
    assert_string_not_equal(
        cache_job(&self->cache->kinds[0], "n", "j")->meta.uid, cache_job(&self->cache->kinds[1], "n", "j")->meta.uid);
    assert_ptr_equal(cache_kind_named(self->cache, "other/n/j", 5), &self->cache->kinds[1]);
    assert_null(cache_kind_named(self->cache, "others", 6));
}

/*  Each kind sees its own, and its job is looked at. */
static void test_pods_belong_to_the_kind_whose_labels_they_have(void **state)
{
    two_t *self = *state;
    const void **pods = NULL;
    s_open(self);
    world_until(&self->world, s_is_synced, self, 1);
    s_make_pod(self, "controller-name");
    s_make_pod(self, "other-operator");
    world_until(&self->world, s_have_pods, self, 1);
    assert_non_null(cache_pod(&self->cache->kinds[0], "n", "controller-name"));
    assert_null(cache_pod(&self->cache->kinds[0], "n", "other-operator"));
    assert_non_null(cache_pod(&self->cache->kinds[1], "n", "other-operator"));
    assert_int_equal(cache_pods(&self->cache->kinds[1], "u", &pods), 1);
    assert_ptr_equal(pods[0], cache_pod(&self->cache->kinds[1], "n", "other-operator"));
    free(pods);
    assert_true(strcmp(self->last, "other/n/j") == 0 || strcmp(self->last, "dijob/n/j") == 0);
}

/*  Was anything asked for by the label of the other kind? */
static bool s_has_asked_for_pods_of_others(two_t *self)
{
    char *asked = world_ctl(&self->world, "{'do':'asked'}");
    const bool found = strstr(asked, "other-operator") != NULL;
    free(asked);
    return found;
}

static void s_assert_left_out(two_t *self, const char *code)
{
    char *command = tt_sprintf("{'do':'faults','faults':[{'at':'list','of':'/others','what':'%s','times':2}]}", code);
    free(world_ctl(&self->world, command));
    free(command);
    s_open(self);
    world_until(&self->world, s_is_told, self, 0); /* time stands: it is not looked for again meanwhile */
    assert_true(cache_synced(self->cache));
    assert_true(self->cache->kinds[1].missing);
    assert_false(s_has_asked_for_pods_of_others(self));
    s_make_pod(self, "other-operator");
    s_make(self, DIJOBS);
    s_make(self, OTHERS);
    world_until(&self->world, s_have_both, self, 1); /* it is looked for again */
    assert_false(self->cache->kinds[1].missing);
    self->last[0] = '\0';
    world_until(&self->world, s_is_synced, self, 1);
    assert_true(s_has_asked_for_pods_of_others(self));
    assert_true(cache_kind_synced(&self->cache->kinds[1]) && self->synced > 1);
    assert_non_null(cache_pod(&self->cache->kinds[1], "n", "other-operator"));
    assert_string_equal(self->last, "other/n/j"); /* what was passed over is looked at now */
}

static void test_a_kind_that_the_cluster_has_not_is_left_out_till_it_comes(void **state)
{
    s_assert_left_out(*state, "404");
}

static void test_a_kind_that_may_not_be_seen_is_left_out_till_it_may(void **state)
{
    s_assert_left_out(*state, "403");
}

static bool s_are_missing(void *ctx)
{
    const cache_t *cache = ((two_t *)ctx)->cache;
    return cache->kinds[0].missing && cache->kinds[1].missing;
}

static void test_without_any_kind_nothing_is_known(void **state)
{
    two_t *self = *state;
    free(world_ctl(&self->world, "{'do':'faults','faults':[{'at':'list','of':'/dijobs','what':'404'},"
                                 "{'at':'list','of':'/others','what':'404'}]}"));
    s_open(self);
    world_until(&self->world, s_are_missing, self, 0);
    assert_int_equal(self->synced, 0);
    assert_false(cache_synced(self->cache));
    world_until(&self->world, s_is_synced, self, 1);
    assert_true(self->synced > 0);
}

/*  A server that is out of order is no cluster without them. */
static void test_a_kind_that_cannot_be_listed_is_waited_for(void **state)
{
    two_t *self = *state;
    free(world_ctl(&self->world, "{'do':'faults','faults':[{'at':'list','of':'/others','what':'500','times':2}]}"));
    s_open(self);
    world_until(&self->world, s_is_told, self, 1);
    assert_false(self->cache->kinds[1].missing);
    assert_int_equal(self->synced, 1);
    assert_int_equal(kube_reflector_stats(self->cache->kinds[1].watch).errors, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_jobs_of_one_name_and_two_kinds_are_two, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_pods_belong_to_the_kind_whose_labels_they_have, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(
            test_a_kind_that_the_cluster_has_not_is_left_out_till_it_comes, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_kind_that_may_not_be_seen_is_left_out_till_it_may, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_without_any_kind_nothing_is_known, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_kind_that_cannot_be_listed_is_waited_for, s_setup, s_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, world_end);
}
