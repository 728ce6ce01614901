/*  fetch: where templates, an AggregatorConfig and the number of GPUs come from, and what is said where they do not. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/k8s/operator/operator_bench.h"

#define JOBS         JOBS_PATH "/namespaces/n/dijobs"
#define OWN_CONFIGS  JOBS_PATH "/namespaces/n/aggregatorconfigs"
#define USUAL_CONFIG JOBS_PATH "/namespaces/di-system/aggregatorconfigs"
#define NODES        "/api/v1/nodes"

typedef struct {
    int calls;
    tt_status_t status;
    char words[200];
    json_t *job, *agconfig; /* owned */
    int gpus;
} got_t;

static void s_on_done(void *ctx, tt_status_t status, const fetched_t *fetched)
{
    got_t *got = ctx;
    got->calls++;
    got->status = status;
    if (status != TT_OK)
        snprintf(got->words, sizeof got->words, "%s", tt_err_text());
    got->job = json_incref(fetched->job);
    got->agconfig = json_incref(fetched->config);
    got->gpus = dijob_gpus_per_node(fetched->gpus, fetched->gpu_count);
}

static void s_clear(got_t *got)
{
    json_decref(got->job);
    json_decref(got->agconfig);
    *got = (got_t){0};
}

static bool s_is_done(void *ctx)
{
    return ((const got_t *)ctx)->calls > 0;
}

static got_t s_fetch(bench_t *bench, int what)
{
    got_t got = {0};
    fetch_begin(bench->op, bench_kind(bench->op), "n", "j", what, s_on_done, &got);
    bench_until(bench, s_is_done, &got);
    assert_int_equal(got.calls, 1);
    assert_null(bench->op->fetches);
    return got;
}

static bool s_has_job(void *ctx)
{
    return bench_job(ctx) != NULL;
}

static void s_make_job(bench_t *bench)
{
    bench_make(bench, JOBS,
        "{'apiVersion':'" DIJOB_GROUP "/v1alpha1','kind':'DIJob','metadata':{'name':'j'},'spec':{'coordinator':"
        "{'template':{'spec':{'containers':[{'name':'di-container','image':'x:1'}]}}}}}");
    bench_until(bench, s_has_job, bench->op);
}

static const char *s_image(const json_t *job)
{
    const char *image = NULL;
    assert_int_equal(json_unpack((json_t *)(uintptr_t)job, "{s:{s:{s:{s:{s:[{s:s}]}}}}}", "spec", "coordinator",
                         "template", "spec", "containers", "image", &image),
        0);
    return image;
}

static uint64_t s_requests(const bench_t *bench)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < CODES; i++)
        sum += bench->op->counters.requests[i].count;
    return sum;
}

static void s_assert_word(const char *text, const char *words)
{
    if (!strstr(text, words))
        fail_msg("'%s' is not in '%s'", words, text);
}

/* ---- the job --------------------------------------------------------------------------------------------------------- */

static void test_templates_come_from_the_cache_and_else_from_the_server(void **state)
{
    bench_t *bench = *state;
    s_make_job(bench);
    got_t got = {0};
    fetch_begin(bench->op, bench_kind(bench->op), "n", "j", FRONT_NEEDS_JOB, s_on_done, &got);
    assert_int_equal(got.calls, 1); /* at once, and nobody was asked */
    assert_int_equal(got.status, TT_OK);
    assert_string_equal(s_image(got.job), "x:1");
    assert_int_equal(s_requests(bench), 0);
    s_clear(&got);

    cache_forget_text(bench_job(bench->op));
    got = s_fetch(bench, FRONT_NEEDS_JOB);
    assert_int_equal(got.status, TT_OK);
    assert_string_equal(s_image(got.job), "x:1");
    assert_int_equal(s_requests(bench), 1);
    s_clear(&got);
}

static void test_a_job_that_is_gone(void **state)
{
    bench_t *bench = *state;
    got_t got = s_fetch(bench, FRONT_NEEDS_JOB | FRONT_NEEDS_CONFIG);
    assert_int_equal(got.status, TT_NOT_FOUND);
    s_assert_word(got.words, "DIJob n/j is gone");
    s_clear(&got);
}

/* ---- AggregatorConfig ------------------------------------------------------------------------------------------------ */

static const char *s_note(const json_t *config)
{
    return json_string_value(json_object_get(json_object_get(config, "spec"), "note"));
}

static void test_the_jobs_own_aggregatorconfig_wins_over_the_usual_one(void **state)
{
    bench_t *bench = *state;
    got_t got = s_fetch(bench, FRONT_NEEDS_CONFIG);
    assert_int_equal(got.status, TT_OK); /* there is none: the built-in one */
    assert_null(got.agconfig);
    s_clear(&got);
    bench_make(bench, USUAL_CONFIG, "{'metadata':{'name':'aggregator-config'},'spec':{'note':'usual'}}");
    got = s_fetch(bench, FRONT_NEEDS_CONFIG);
    assert_int_equal(got.status, TT_OK);
    assert_string_equal(s_note(got.agconfig), "usual");
    s_clear(&got);
    bench_make(bench, OWN_CONFIGS, "{'metadata':{'name':'aggregator-config'},'spec':{'note':'own'}}");
    got = s_fetch(bench, FRONT_NEEDS_CONFIG);
    assert_int_equal(got.status, TT_OK);
    assert_string_equal(s_note(got.agconfig), "own");
    s_clear(&got);
}

/* ---- GPUs ------------------------------------------------------------------------------------------------------------ */

static void s_make_nodes(bench_t *bench, int count, const char *name, const char *gpus)
{
    for (int i = 0; i < count; i++) {
        char *text = tt_sprintf("{'metadata':{'name':'%s-%d'},'status':{'allocatable':{'cpu':'8'%s%s%s}}}", name, i,
            *gpus ? ",'nvidia.com/gpu':'" : "", gpus, *gpus ? "'" : "");
        bench_make(bench, NODES, text);
        free(text);
    }
}

static void test_gpus_are_those_of_most_nodes_over_all_pages(void **state)
{
    bench_t *bench = *state;
    s_make_nodes(bench, 70, "a", "8");
    s_make_nodes(bench, 60, "b", "no number");
    s_make_nodes(bench, 90, "c", "4"); /* over the end of the second page */
    got_t got = s_fetch(bench, FETCH_GPUS);
    assert_int_equal(got.status, TT_OK);
    assert_int_equal(got.gpus, 4);
    s_clear(&got);
    assert_int_equal(s_requests(bench), 3);
    bench->op->opts.gpus_per_node = 2; /* said: nobody is asked */
    got = s_fetch(bench, FETCH_GPUS);
    assert_int_equal(got.gpus, 2);
    assert_int_equal(s_requests(bench), 3);
    s_clear(&got);
}

static void test_nodes_that_may_not_be_read(void **state)
{
    static const char *const faults[] = {"403", "garbage"};
    bench_t *bench = *state;
    s_make_nodes(bench, 1, "a", "8");
    for (size_t i = 0; i < TT_COUNT(faults); i++) {
        bench_fault(bench, "list", faults[i]);
        got_t got = s_fetch(bench, FETCH_GPUS);
        assert_int_equal(got.status, TT_UNAVAILABLE);
        s_assert_word(got.words, "the nodes' GPUs");
        s_clear(&got);
    }
    got_t got = s_fetch(bench, FETCH_GPUS);
    assert_int_equal(got.gpus, 8);
    s_clear(&got);
}

/* ---- together, and dropped ------------------------------------------------------------------------------------------- */

static void test_all_three_at_once(void **state)
{
    bench_t *bench = *state;
    s_make_job(bench);
    s_make_nodes(bench, 2, "a", "8");
    bench_make(bench, USUAL_CONFIG, "{'metadata':{'name':'aggregator-config'},'spec':{'note':'usual'}}");
    got_t got = s_fetch(bench, FRONT_NEEDS_JOB | FRONT_NEEDS_CONFIG | FETCH_GPUS);
    assert_int_equal(got.status, TT_OK);
    assert_string_equal(s_image(got.job), "x:1");
    assert_string_equal(s_note(got.agconfig), "usual");
    assert_int_equal(got.gpus, 8);
    s_clear(&got);
}

static void test_one_that_is_dropped_calls_nothing(void **state)
{
    bench_t *bench = *state;
    got_t dropped = {0};
    fetch_begin(bench->op, bench_kind(bench->op), "n", "j", FRONT_NEEDS_JOB, s_on_done, &dropped);
    fetch_begin(bench->op, bench_kind(bench->op), "n", "j", FETCH_GPUS, s_on_done, &dropped);
    fetch_drop_all(bench->op);
    assert_null(bench->op->fetches);
    got_t got = s_fetch(bench, FETCH_GPUS); /* behind them */
    assert_int_equal(got.status, TT_OK);
    assert_int_equal(dropped.calls, 0);
    s_clear(&got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_templates_come_from_the_cache_and_else_from_the_server, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_a_job_that_is_gone, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(
            test_the_jobs_own_aggregatorconfig_wins_over_the_usual_one, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_gpus_are_those_of_most_nodes_over_all_pages, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_nodes_that_may_not_be_read, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_all_three_at_once, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_one_that_is_dropped_calls_nothing, bench_setup, bench_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, world_end);
}
