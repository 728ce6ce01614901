/*  probes: what a kubelet and Prometheus are told, over HTTP. */
#include <stdlib.h>
#include <string.h>
#include "tests/k8s/operator/operator_bench.h"

#define PROBES "127.0.0.1:0"

static void s_assert_answer(bench_t *bench, const char *method, const char *path, int code, const char *words)
{
    char *text = NULL;
    assert_int_equal(bench_ask(bench, bench->op->probes.server, method, path, NULL, &text), code);
    if (!strstr(text, words))
        fail_msg("'%s' is not in '%s'", words, text);
    free(text);
}

static void test_ready_when_everything_is_known_and_alive_before(void **state)
{
    bench_t *bench = *state;
    free(world_ctl(&bench->world, "{'do':'faults','faults':[{'at':'list','what':'500','times':1000000}]}"));
    bench_open_operator(bench, "", PROBES);
    s_assert_answer(bench, "GET", "/healthz", 200, "ok\n");
    s_assert_answer(bench, "GET", "/readyz", 503, "still being listed");
    s_assert_answer(bench, "GET", "/metrics", 200, "\ntutti_operator_synced 0\n");
    free(world_ctl(&bench->world, "{'do':'calm'}"));
    bench_sync(bench);
    s_assert_answer(bench, "GET", "/readyz", 200, "ok\n");
    s_assert_answer(bench, "GET", "/metrics", 200, "\ntutti_operator_synced 1\n");
}

static void test_other_paths_and_methods(void **state)
{
    bench_t *bench = *state;
    bench_open_operator(bench, "", PROBES);
    bench_sync(bench);
    s_assert_answer(bench, "GET", "/", 404, "there are /healthz, /readyz and /metrics");
    s_assert_answer(bench, "DELETE", "/healthz", 405, "GET");
}

static bool s_has_pod(void *ctx)
{
    return kube_store_count(bench_pods(ctx)) == 1;
}

static void test_metrics_count_what_is_there(void **state)
{
    bench_t *bench = *state;
    bench_open_operator(bench, "", PROBES);
    bench_sync(bench);
    bench_make(bench, PODS,
        "{'metadata':{'name':'p','labels':{'controller-name':'di-operator','dijob-name':'j','replica-type':'learner'}}"
        "}");
    bench_until(bench, s_has_pod, bench->op);
    for (int i = 0; i < 3; i++)
        operator_count(bench->op, i < 2 ? 201 : 409);
    operator_count_served(bench->op, 404);
    s_assert_answer(bench, "GET", "/metrics", 200, "\ntutti_operator_pods 1\n");
    s_assert_answer(bench, "GET", "/metrics", 200, "\ntutti_operator_jobs 0\n");
    s_assert_answer(bench, "GET", "/metrics", 200, "\ntutti_operator_leader 1\n"); /* without election */
    s_assert_answer(bench, "GET", "/metrics", 200, "\ntutti_operator_requests_total{code=\"201\"} 2\n");
    s_assert_answer(bench, "GET", "/metrics", 200, "\ntutti_operator_requests_total{code=\"409\"} 1\n");
    s_assert_answer(bench, "GET", "/metrics", 200, "\ntutti_operator_served_total{code=\"404\"} 1\n");
    s_assert_answer(
        bench, "GET", "/metrics", 200, "\ntutti_operator_watch_total{resource=\"pods\",what=\"lists\"} 1\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_ready_when_everything_is_known_and_alive_before, bench_setup_server, bench_teardown),
        cmocka_unit_test_setup_teardown(test_other_paths_and_methods, bench_setup_server, bench_teardown),
        cmocka_unit_test_setup_teardown(test_metrics_count_what_is_there, bench_setup_server, bench_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, world_end);
}
