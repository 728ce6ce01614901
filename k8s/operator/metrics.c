/*  metrics - what Prometheus reads of an operator: its own numbers first (tutti_operator_*), the standard ones behind them. */
#include "common/base/process.h"
#include "common/http/exposition.h"
#include "k8s/operator/metrics.h"

#define PREFIX "tutti_operator_"

static void s_gauge(tt_buf_t *out, const char *name, const char *type, const char *help, double value)
{
    (void)tt_exposition_one(out, PREFIX, name, type, help, value);
}

static void s_codes(tt_buf_t *out, const char *name, const char *help, const operator_code_t codes[CODES])
{
    (void)tt_exposition_head(out, PREFIX, name, "counter", help);
    for (size_t i = 0; i < CODES && codes[i].count; i++)
        (void)tt_buf_printf(
            out, PREFIX "%s{code=\"%d\"} %llu\n", name, codes[i].code, (unsigned long long)codes[i].count);
}

/*  Of every phase, also of those that none has: what is not there cannot be watched. */
static void s_phases_of(tt_buf_t *out, const kind_t *kind)
{
    const front_t *front = kind->front;
    size_t counts[FRONT_PHASES] = {0};
    const void *at = NULL;
    const job_t *job;
    while ((job = kube_store_each(kind->jobs, &at)) != NULL)
        counts[job_info(job).phase]++;
    for (size_t i = 0; i < FRONT_PHASES && front->phases[i]; i++)
        (void)tt_buf_printf(out, PREFIX "jobs_by_phase{kind=\"%s\",phase=\"%s\"} %zu\n", front->name,
            *front->phases[i] ? front->phases[i] : "None", counts[i]);
}

static void s_phases(tt_buf_t *out, const cache_t *cache)
{
    (void)tt_exposition_head(out, PREFIX, "jobs_by_phase", "gauge", "jobs known, by status.phase");
    for (size_t i = 0; i < cache->kind_count; i++)
        s_phases_of(out, &cache->kinds[i]);
}

static void s_ends(tt_buf_t *out, const operator_end_t ends[CODES])
{
    (void)tt_exposition_head(out, PREFIX, "jobs_finished_total", "counter", "jobs whose end this replica wrote down");
    for (size_t i = 0; i < CODES && ends[i].count; i++) {
        (void)tt_buf_printf(
            out, PREFIX "jobs_finished_total{kind=\"%s\",result=\"%s\",reason=\"", ends[i].kind, ends[i].result);
        (void)tt_exposition_label(out, ends[i].reason);
        (void)tt_buf_printf(out, "\"} %llu\n", (unsigned long long)ends[i].count);
    }
}

static void s_watch(tt_buf_t *out, const kube_reflector_t *watch, const char *prefix, const char *resource)
{
    static const char *const kinds[] = {"lists", "watches", "events", "bookmarks", "errors"};
    if (!watch)
        return;
    const kube_reflector_stats_t s = kube_reflector_stats(watch);
    const uint64_t values[] = {s.lists, s.watches, s.events, s.bookmarks, s.errors};
    for (size_t i = 0; i < TT_COUNT(values); i++)
        (void)tt_buf_printf(out, PREFIX "watch_total{resource=\"%s%s\",what=\"%s\"} %llu\n", prefix, resource, kinds[i],
            (unsigned long long)values[i]);
}

static void s_watches(tt_buf_t *out, const cache_t *cache)
{
    (void)tt_exposition_head(out, PREFIX, "watch_total", "counter", "what came of lists and watches");
    for (size_t i = 0; i < cache->kind_count; i++) {
        const kind_t *kind = &cache->kinds[i];
        s_watch(out, kind->watch, "", kind->front->plural);
        for (size_t k = 0; k < kind->shape_count; k++) {
            s_watch(out, kind->shapes[k].watches[WATCH_PODS], kind->front->shapes[k].prefix, "pods");
            s_watch(out, kind->shapes[k].watches[WATCH_SERVICES], kind->front->shapes[k].prefix, "services");
        }
    }
}

void metrics_write(tt_buf_t *out, const operator_t *op)
{
    const cache_counts_t known = cache_count(op->cache);
    s_gauge(out, "leader", "gauge", "1 where this replica looks after the jobs", operator_leads(op));
    s_gauge(out, "synced", "gauge", "1 when everything is known", cache_synced(op->cache));
    s_gauge(out, "jobs", "gauge", "jobs known", (double)known.jobs);
    s_gauge(out, "pods", "gauge", "pods known", (double)known.pods);
    s_gauge(out, "services", "gauge", "services known", (double)known.services);
    s_gauge(out, "template_bytes", "gauge", "bytes of jobs kept whole", (double)op->cache->texts);
    s_phases(out, op->cache);
    s_ends(out, op->counters.ends);
    s_gauge(out, "jobs_expired_total", "counter", "jobs deleted as their ttlSecondsAfterFinished was over",
        (double)op->counters.expired);
    s_gauge(out, "reconcile_total", "counter", "looks at a job", (double)op->counters.rounds);
    s_gauge(out, "reconcile_errors_total", "counter", "looks that did not end well", (double)op->counters.failures);
    s_gauge(out, "queue_depth", "gauge", "jobs that wait for a look", (double)tt_queue_depth(op->queue));
    s_gauge(out, "requests_pending", "gauge", "requests to the API server under way or waiting",
        (double)kube_client_pending(op->client));
    s_codes(out, "requests_total", "answers of the API server to requests (0: none came)", op->counters.requests);
    s_gauge(out, "replicas_waiting", "gauge", "requests of the replicas API from callers that are not known yet",
        (double)backend_waiting(op));
    s_codes(out, "served_total", "answers of the replicas API", op->counters.served);
    s_watches(out, op->cache);
    s_gauge(out, "resident_bytes", "gauge", "memory of this process", (double)tt_process_memory().resident);
    s_gauge(out, "uptime_seconds", "gauge", "since the start",
        (double)(tt_now_ms(tt_reactor_clock(op->loop)) - op->started_ms) / 1000);
    metrics_standard(out, op);
}
