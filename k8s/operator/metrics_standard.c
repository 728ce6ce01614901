/*  metrics_standard - workqueue_* and rest_client_* as client-go's programs have them, process_* as Prometheus' own libraries. */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include "common/base/process.h"
#include "common/http/exposition.h"
#include "k8s/operator/metrics.h"

#define QUEUE "dijob" /* the name of the one queue, which holds jobs of all kinds */

static void s_head(tt_buf_t *out, const char *name, const char *type, const char *help)
{
    (void)tt_exposition_head(out, "", name, type, help);
}

/* ---- histograms ----------------------------------------------------------------------------------------------------- */

/*  labels: "name=\"x\"". */
static void s_histogram(tt_buf_t *out, const char *name, const char *labels, const kube_histogram_t *histogram,
    const kube_buckets_t *buckets)
{
    uint64_t below = 0;
    for (size_t i = 0; i < buckets->count; i++) {
        char bound[32];
        tt_exposition_number(bound, buckets->bounds[i]);
        below += histogram->counts[i];
        (void)tt_buf_printf(out, "%s_bucket{%s,le=\"%s\"} %" PRIu64 "\n", name, labels, bound, below);
    }
    (void)tt_buf_printf(out, "%s_bucket{%s,le=\"+Inf\"} %" PRIu64 "\n", name, labels, histogram->count);
    (void)tt_buf_printf(out, "%s_sum{%s} %.15g\n%s_count{%s} %" PRIu64 "\n", name, labels, histogram->sum, name, labels,
        histogram->count);
}

/* ---- the queue ------------------------------------------------------------------------------------------------------ */

static void s_of_queue(tt_buf_t *out, const char *name, const char *type, const char *help, double value)
{
    s_head(out, name, type, help);
    (void)tt_buf_printf(out, "%s{name=\"" QUEUE "\"} %.15g\n", name, value);
}

static void s_queue(tt_buf_t *out, const kube_queue_t *queue)
{
    static const char name[] = "name=\"" QUEUE "\"";
    const kube_queue_stats_t *stats = kube_queue_stats(queue);
    s_of_queue(out, "workqueue_depth", "gauge", "Keys that wait for a look.", (double)kube_queue_depth(queue));
    s_of_queue(out, "workqueue_adds_total", "counter", "Keys that were added.", (double)stats->adds);
    s_of_queue(out, "workqueue_retries_total", "counter", "Looks that did not end well.", (double)stats->retries);
    s_head(out, "workqueue_queue_duration_seconds", "histogram", "Seconds from a key's adding to its look.");
    s_histogram(out, "workqueue_queue_duration_seconds", name, &stats->wait, &kube_buckets_queue);
    s_head(out, "workqueue_work_duration_seconds", "histogram", "Seconds that a look takes, with its requests.");
    s_histogram(out, "workqueue_work_duration_seconds", name, &stats->work, &kube_buckets_queue);
}

/* ---- the client ------------------------------------------------------------------------------------------------------ */

static void s_durations(tt_buf_t *out, const kube_client_stats_t *stats, const char *host)
{
    s_head(out, "rest_client_request_duration_seconds", "histogram",
        "Seconds from asking to the answer, with the wait for a place. Watches are left out.");
    for (size_t i = 0; i < KUBE_STATS_VERBS && *stats->durations[i].verb; i++) {
        char labels[320];
        snprintf(labels, sizeof labels, "host=\"%s\",verb=\"%s\"", host, stats->durations[i].verb);
        s_histogram(
            out, "rest_client_request_duration_seconds", labels, &stats->durations[i].seconds, &kube_buckets_request);
    }
}

static void s_answers(tt_buf_t *out, const kube_client_stats_t *stats, const char *host)
{
    s_head(out, "rest_client_requests_total", "counter", "Requests, each attempt; of watches those that have ended.");
    for (size_t i = 0; i < KUBE_STATS_ANSWERS && *stats->answers[i].method; i++) {
        char code[16] = "<error>";
        if (stats->answers[i].code)
            snprintf(code, sizeof code, "%d", stats->answers[i].code);
        (void)tt_buf_printf(out, "rest_client_requests_total{code=\"%s\",host=\"%s\",method=\"%s\"} %" PRIu64 "\n",
            code, host, stats->answers[i].method, stats->answers[i].count);
    }
}

static void s_client(tt_buf_t *out, const kube_client_t *client)
{
    tt_buf_t host;
    size_t size;
    const char *raw = kube_client_host(client, &size);
    char text[256];
    snprintf(text, sizeof text, "%.*s", (int)(size < 200 ? size : 200), raw);
    tt_buf_init(&host, 1024);
    (void)tt_exposition_label(&host, text);
    s_durations(out, kube_client_stats(client), tt_buf_text(&host));
    s_answers(out, kube_client_stats(client), tt_buf_text(&host));
    tt_buf_free(&host);
}

/* ---- the process ------------------------------------------------------------------------------------------------------- */

static double s_open_fds(void)
{
    DIR *folder = opendir("/proc/self/fd");
    double count = 0;
    if (!folder)
        return 0;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count - 1; /* without the folder's own */
}

static double s_max_fds(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? (double)limit.rlim_cur : 0;
}

static void s_one(tt_buf_t *out, const char *name, const char *type, const char *help, double value)
{
    (void)tt_exposition_one(out, "process_", name, type, help, value);
}

static void s_process(tt_buf_t *out, double started_s)
{
    const tt_process_memory_t memory = tt_process_memory();
    s_one(out, "cpu_seconds_total", "counter", "Processor time, of user and system.", tt_process_cpu_s());
    s_one(out, "open_fds", "gauge", "File descriptors that are open.", s_open_fds());
    s_one(out, "max_fds", "gauge", "File descriptors that may be open.", s_max_fds());
    s_one(out, "resident_memory_bytes", "gauge", "Memory that is there.", (double)memory.resident);
    s_one(out, "virtual_memory_bytes", "gauge", "Memory that has addresses.", (double)memory.addressed);
    s_one(out, "start_time_seconds", "gauge", "Start of the process, since 1970.", started_s);
}

void metrics_standard(tt_buf_t *out, const operator_t *op)
{
    s_queue(out, op->queue);
    s_client(out, op->client);
    s_process(out, op->started_s);
}
