/*  client_stats - how many requests went, what came of them, how long they took. */
#include <stdio.h>
#include <string.h>
#include "k8s/api/call.h"

void kube_stats_attempt(kube_call_t *call, int code)
{
    kube_client_stats_t *stats = &call->client->stats;
    const char *method = call->method;
    size_t i = 0;
    while (i < KUBE_STATS_ANSWERS - 1 && *stats->answers[i].method &&
           (stats->answers[i].code != code || strcmp(stats->answers[i].method, method) != 0))
        i++;
    const bool full = i == KUBE_STATS_ANSWERS - 1;
    snprintf(stats->answers[i].method, sizeof stats->answers[i].method, "%s", full ? "other" : method);
    stats->answers[i].code = full ? 0 : code;
    stats->answers[i].count++;
}

/*  A watch lasts as long as it lasts. */
static bool s_is_watch(const kube_call_t *call)
{
    return call->data && strstr(call->path, "watch=true");
}

void kube_stats_call(kube_call_t *call)
{
    kube_client_stats_t *stats = &call->client->stats;
    const int64_t ns = tt_now_ns(tt_reactor_clock(call->client->loop)) - call->asked_ns;
    size_t i = 0;
    if (s_is_watch(call))
        return;
    while (i < KUBE_STATS_VERBS - 1 && *stats->durations[i].verb && strcmp(stats->durations[i].verb, call->method) != 0)
        i++;
    snprintf(stats->durations[i].verb, sizeof stats->durations[i].verb, "%s",
        i < KUBE_STATS_VERBS - 1 ? call->method : "other");
    tt_histogram_observe(&stats->durations[i].seconds, &tt_buckets_request, (double)ns / 1e9);
}

const kube_client_stats_t *kube_client_stats(const kube_client_t *self)
{
    return &self->stats;
}

const char *kube_client_host(const kube_client_t *self, size_t *size)
{
    const char *scheme = strstr(self->config->server, "://"), *host = scheme ? scheme + 3 : self->config->server;
    *size = strcspn(host, "/");
    return host;
}
