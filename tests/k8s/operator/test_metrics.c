/*  metrics: the whole page as Prometheus reads it; names, labels and buckets as dashboards for controllers ask for them. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "tests/k8s/operator/operator_bench.h"
#include "tests/k8s/operator/prometheus.h"

#define JOBS JOBS_PATH "/namespaces/n/dijobs"
#define Q    "name=\"dijob\""

static void s_read(bench_t *bench, prom_t *prom)
{
    char *text = NULL;
    assert_int_equal(bench_ask(bench, bench->op->probes.server, "GET", "/metrics", NULL, &text), 200);
    prom_read(prom, text);
    free(text);
}

static void s_make(bench_t *bench, const char *name, const char *spec)
{
    char *text =
        tt_sprintf("{'apiVersion':'" DIJOB_GROUP "/v1alpha1','kind':'DIJob','metadata':{'name':'%s'},'spec':{%s"
                   "'coordinator':{'template':{'spec':{'containers':[{'name':'di-container','image':'x'}]}}}}}",
            name, spec);
    bench_make(bench, JOBS, text);
    free(text);
}

static bool s_have_phases(void *ctx)
{
    const operator_t *op = ctx;
    const void *at = NULL;
    const job_t *job;
    size_t count = 0;
    while ((job = kube_store_each(bench_kind(op)->jobs, &at)) != NULL)
        count += ((const dijob_t *)job->own)->phase != DIJOB_PHASE_NONE;
    return count == 3 && !op->rounds && tt_queue_depth(op->queue) == 0 && kube_client_pending(op->client) == 0;
}

static void s_open(bench_t *bench)
{
    bench_open_operator(bench, "", "127.0.0.1:0");
    bench_sync(bench);
}

/*  Three jobs: two that begin, one that cannot. */
static void s_work(bench_t *bench)
{
    s_make(bench, "a", "");
    s_make(bench, "b", "");
    s_make(bench, "c", "'suspend':'yes',"); /* this server has no schema */
    tt_queue_pause(bench->op->queue, false);
    bench_until(bench, s_have_phases, bench->op);
}

static void test_jobs_by_phase_and_outcome(void **state)
{
    bench_t *bench = *state;
    prom_t *prom = tt_new0(sizeof *prom);
    s_open(bench);
    s_read(bench, prom);
    assert_true(prom_get(prom, "tutti_operator_jobs_by_phase", "kind=\"dijob\",phase=\"Running\"") == 0);
    assert_int_equal(prom_count(prom, "tutti_operator_jobs_by_phase"), DIJOB_PHASES);
    s_work(bench);
    s_read(bench, prom);
    assert_true(prom_get(prom, "tutti_operator_jobs_by_phase", "kind=\"dijob\",phase=\"Created\"") == 2);
    assert_true(prom_get(prom, "tutti_operator_jobs_by_phase", "kind=\"dijob\",phase=\"Failed\"") == 1);
    assert_true(prom_sum(prom, "tutti_operator_jobs_by_phase") == 3);
    assert_true(prom_get(prom, "tutti_operator_jobs", "") == 3);
    assert_true(prom_get(prom, "tutti_operator_jobs_finished_total",
                    "kind=\"dijob\",reason=\"InvalidSpec\",result=\"failed\"") == 1);
    assert_true(prom_sum(prom, "tutti_operator_jobs_finished_total") == 1);
    free(prom);
}

static void s_assert_bounds(const prom_t *prom, const char *name, const char *const *bounds, size_t count)
{
    size_t at = 0;
    for (size_t i = 0; i < prom->count && at < count; i++)
        if (strcmp(prom->samples[i].name, name) == 0)
            assert_string_equal(prom->samples[i].values[prom->samples[i].label_count - 1], bounds[at++]);
    assert_int_equal(at, count);
}

/*  The texts that a program in Go prints of the same numbers. */
static void test_the_queue_as_client_go_tells_of_it(void **state)
{
    static const char *const bounds[] = {"1e-08", "1e-07", "1e-06", "9.999999999999999e-06", "9.999999999999999e-05",
        "0.001", "0.01", "0.1", "1", "10", "+Inf"};
    bench_t *bench = *state;
    prom_t *prom = tt_new0(sizeof *prom);
    s_open(bench);
    s_work(bench);
    s_read(bench, prom);
    const double looks = (double)bench->op->counters.rounds;
    assert_true(looks >= 3);
    assert_true(prom_get(prom, "workqueue_depth", Q) == 0);
    assert_true(prom_get(prom, "workqueue_retries_total", Q) == 0);
    assert_true(prom_get(prom, "workqueue_adds_total", Q) == looks);
    assert_true(prom_get(prom, "workqueue_queue_duration_seconds_count", Q) == looks);
    assert_true(prom_get(prom, "workqueue_work_duration_seconds_count", Q) == looks);
    assert_true(prom_get(prom, "workqueue_work_duration_seconds_sum", Q) > 0);
    assert_int_equal(prom_count(prom, "workqueue_queue_duration_seconds_bucket"), TT_COUNT(bounds));
    s_assert_bounds(prom, "workqueue_queue_duration_seconds_bucket", bounds, TT_COUNT(bounds));
    s_assert_bounds(prom, "workqueue_work_duration_seconds_bucket", bounds, TT_COUNT(bounds));
    tt_queue_pause(bench->op->queue, true);
    tt_queue_add(bench->op->queue, "dijob/n/a");
    s_read(bench, prom);
    assert_true(prom_get(prom, "workqueue_depth", Q) == 1);
    free(prom);
}

/*  A series of the client's own, with the host that it speaks to. */
static double s_of_client(const bench_t *bench, const prom_t *prom, const char *name, const char *labels)
{
    char *all = tt_sprintf("%s,host=\"%s\"", labels, strstr(bench->op->config->server, "://") + 3);
    const double value = prom_get(prom, name, all);
    free(all);
    return value;
}

static void test_the_client_as_client_go_tells_of_it(void **state)
{
    static const char *const bounds[] = {
        "0.005", "0.025", "0.1", "0.25", "0.5", "1", "2", "4", "8", "15", "30", "60", "+Inf"};
    bench_t *bench = *state;
    prom_t *prom = tt_new0(sizeof *prom);
    s_open(bench);
    bench_fault(bench, "status", "500");
    s_work(bench);
    s_read(bench, prom);
    assert_true(s_of_client(bench, prom, "rest_client_requests_total", "code=\"201\",method=\"POST\"") >= 2);
    assert_true(s_of_client(bench, prom, "rest_client_requests_total", "code=\"200\",method=\"PATCH\"") >= 3);
    assert_true(s_of_client(bench, prom, "rest_client_requests_total", "code=\"500\",method=\"PATCH\"") == 1);
    assert_true(s_of_client(bench, prom, "rest_client_requests_total", "code=\"200\",method=\"GET\"") >= 5); /* lists */
    assert_true(prom_get(prom, "workqueue_retries_total", Q) == 1);
    const double seconds = s_of_client(bench, prom, "rest_client_request_duration_seconds_sum", "verb=\"PATCH\"");
    const double count = s_of_client(bench, prom, "rest_client_request_duration_seconds_count", "verb=\"PATCH\"");
    assert_true(seconds > 0 && seconds < 60);
    assert_true(count == s_of_client(bench, prom, "rest_client_requests_total", "code=\"200\",method=\"PATCH\"") + 1);
    s_assert_bounds(prom, "rest_client_request_duration_seconds_bucket", bounds, TT_COUNT(bounds));
    free(prom);
}

/*  What the kernel says of this process, which is the operator's here. */
static void test_the_process(void **state)
{
    bench_t *bench = *state;
    prom_t *prom = tt_new0(sizeof *prom);
    s_open(bench);
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    s_read(bench, prom);
    const double cpu = prom_get(prom, "process_cpu_seconds_total", ""), open = prom_get(prom, "process_open_fds", "");
    const double started = prom_get(prom, "process_start_time_seconds", "");
    assert_true(cpu > 0 && open > 3 && open < 1000);
    assert_true(prom_get(prom, "process_max_fds", "") == (double)limit.rlim_cur);
    assert_in_range((uint64_t)prom_get(prom, "process_resident_memory_bytes", ""), 1 << 20, 1 << 30);
    assert_true(
        prom_get(prom, "process_virtual_memory_bytes", "") > prom_get(prom, "process_resident_memory_bytes", ""));
    const double now = (double)tt_wall_ns() / 1e9;
    assert_true(started <= now + 2 && started > now - 600);
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    s_read(bench, prom);
    assert_true(prom_get(prom, "process_open_fds", "") >= open + 1); /* two more, and perhaps a connection less */
    assert_true(prom_get(prom, "process_start_time_seconds", "") == started);
    assert_true(prom_get(prom, "process_cpu_seconds_total", "") >= cpu);
    close(pipes[0]);
    close(pipes[1]);
    free(prom);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_jobs_by_phase_and_outcome, bench_setup_server, bench_teardown),
        cmocka_unit_test_setup_teardown(test_the_queue_as_client_go_tells_of_it, bench_setup_server, bench_teardown),
        cmocka_unit_test_setup_teardown(test_the_client_as_client_go_tells_of_it, bench_setup_server, bench_teardown),
        cmocka_unit_test_setup_teardown(test_the_process, bench_setup_server, bench_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, world_end);
}
