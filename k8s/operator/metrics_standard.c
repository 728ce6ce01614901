/*  metrics_standard - workqueue_* and rest_client_* as client-go's programs have them, process_* as Prometheus' own libraries. */
#include <inttypes.h>
#include <stdio.h>
#include "common/http/exposition.h"
#include "k8s/operator/metrics.h"

#define QUEUE "dijob" /* the name of the one queue, which holds jobs of all kinds */

static void s_head(tt_buf_t *out, const char *name, const char *type, const char *help)
{
    (void)tt_exposition_head(out, "", name, type, help);
}

/* ---- the queue ------------------------------------------------------------------------------------------------------ */

static void s_of_queue(tt_buf_t *out, const char *name, const char *type, const char *help, double value)
{
    s_head(out, name, type, help);
    (void)tt_buf_printf(out, "%s{name=\"" QUEUE "\"} %.15g\n", name, value);
}

static void s_queue(tt_buf_t *out, const tt_queue_t *queue)
{
    static const char name[] = "name=\"" QUEUE "\"";
    const tt_queue_stats_t *stats = tt_queue_stats(queue);
    s_of_queue(out, "workqueue_depth", "gauge", "Keys that wait for a look.", (double)tt_queue_depth(queue));
    s_of_queue(out, "workqueue_adds_total", "counter", "Keys that were added.", (double)stats->adds);
    s_of_queue(out, "workqueue_retries_total", "counter", "Looks that did not end well.", (double)stats->retries);
    s_head(out, "workqueue_queue_duration_seconds", "histogram", "Seconds from a key's adding to its look.");
    (void)tt_histogram_write(&stats->wait, &tt_buckets_queue, out, "workqueue_queue_duration_seconds", name);
    s_head(out, "workqueue_work_duration_seconds", "histogram", "Seconds that a look takes, with its requests.");
    (void)tt_histogram_write(&stats->work, &tt_buckets_queue, out, "workqueue_work_duration_seconds", name);
}

/* ---- the client ------------------------------------------------------------------------------------------------------ */

static void s_durations(tt_buf_t *out, const kube_client_stats_t *stats, const char *host)
{
    s_head(out, "rest_client_request_duration_seconds", "histogram",
        "Seconds from asking to the answer, with the wait for a place. Watches are left out.");
    for (size_t i = 0; i < KUBE_STATS_VERBS && *stats->durations[i].verb; i++) {
        char labels[320];
        snprintf(labels, sizeof labels, "host=\"%s\",verb=\"%s\"", host, stats->durations[i].verb);
        (void)tt_histogram_write(
            &stats->durations[i].seconds, &tt_buckets_request, out, "rest_client_request_duration_seconds", labels);
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

void metrics_standard(tt_buf_t *out, const operator_t *op)
{
    s_queue(out, op->queue);
    s_client(out, op->client);
    (void)tt_exposition_process(out, op->started_s);
}
