/*  operator - the parts put together, run, and taken apart again. */
#define TT_LOG_COMPONENT "operator"
#include "k8s/operator/operator.h"
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/process.h"
#include "k8s/front/accelerators.h"
#include "k8s/front/kueue.h"
#include "k8s/operator/parts.h"
#include "k8s/replicas/replicas.h"

enum { POLL_MS = 1000, END_MS = 20000, TIDY_MS = 10000, WRITING_MAX = 256 };

uint64_t operator_random(operator_t *self)
{
    return self->random += 0x9e3779b97f4a7c15u; /* odd: every number once */
}

static void s_count(operator_code_t codes[CODES], int code)
{
    size_t i = 0;
    while (i < CODES - 1 && codes[i].count && codes[i].code != code)
        i++;
    codes[i].code = code;
    codes[i].count++;
}

void operator_count(operator_t *self, int code)
{
    s_count(self->counters.requests, code);
}

void operator_count_served(operator_t *self, int code)
{
    s_count(self->counters.served, code);
}

static bool s_is_end(const operator_end_t *end, const char *kind, const char *result, const char *reason)
{
    return strcmp(end->kind, kind) == 0 && strcmp(end->result, result) == 0 && strcmp(end->reason, reason) == 0;
}

void operator_count_end(operator_t *self, const front_t *front, const char *status)
{
    json_t *object = json_loads(status, 0, NULL);
    const front_end_t end = front->end(object);
    const char *result = end.well ? "succeeded" : "failed", *reason = end.reason ? end.reason : "";
    operator_end_t *ends = self->counters.ends;
    size_t i = 0;
    while (i < CODES - 1 && ends[i].count && !s_is_end(&ends[i], front->name, result, reason))
        i++;
    if (end.ended) {
        const bool full = i == CODES - 1;
        ends[i].kind = full ? "any" : front->name;
        snprintf(ends[i].result, sizeof ends[i].result, "%s", full ? "any" : result);
        snprintf(ends[i].reason, sizeof ends[i].reason, "%s", full ? "other" : reason);
        ends[i].count++;
    }
    json_decref(object);
}

int64_t operator_now_s(const operator_t *self)
{
    return (self->opts.clock ? tt_now_ns(self->opts.clock) : tt_wall_ns()) / 1000000000;
}

bool operator_leads(const operator_t *self)
{
    return !self->lease || kube_lease_held(self->lease);
}

bool operator_may(const void *ctx)
{
    return operator_leads(ctx);
}

/* ---- what sets it to work ------------------------------------------------------------------------------------------ */

static void s_pause(operator_t *self)
{
    const bool stopping = atomic_load(&self->stop);
    tt_queue_pause(
        self->queue, stopping || self->busy || !operator_leads(self) || !self->cache || !cache_synced(self->cache));
}

void operator_writing(operator_t *self, int change)
{
    self->writing += change;
    if (self->busy ? self->writing > WRITING_MAX / 2 : self->writing < WRITING_MAX)
        return;
    self->busy = !self->busy;
    s_pause(self);
}

static void s_on_lease(void *ctx, bool held)
{
    operator_t *self = ctx;
    log_info("%s", held ? "this replica looks after the jobs now" : "another replica looks after the jobs");
    self->reign += held;
    s_pause(self);
    if (!held) { /* what is about to be written is another's to decide now */
        kube_client_recheck(self->client);
        for (size_t i = 0; i < self->cache->kind_count; i++)
            kube_recorder_forget(self->cache->kinds[i].recorder);
    }
}

static void s_on_synced(void *ctx)
{
    operator_t *self = ctx;
    const cache_counts_t known = cache_count(self->cache);
    log_info("synced: %zu jobs, %zu pods, %zu services, %lld ms after the start", known.jobs, known.pods,
        known.services, (long long)(tt_now_ms(tt_reactor_clock(self->loop)) - self->started_ms));
    if (self->opts.own_pod && !cache_own(self->cache)) {
        log_error("pod %s/%s is not known as the coordinator of DIJob %s: it needs the labels dijob-name=%s, "
                  "replica-type=coordinator and controller-name=di-operator",
            self->opts.namespace_, self->opts.own_pod, self->opts.only_job, self->opts.only_job);
        operator_stop(self);
        return;
    }
    if (self->opts.manifest && cache_take_manifest(self->cache) != TT_OK) {
        log_error("%s", tt_err_text());
        operator_stop(self);
        return;
    }
    s_pause(self);
}

/* ---- ports --------------------------------------------------------------------------------------------------------- */

static void s_serve(operator_port_t *port);

static void s_on_port(void *ctx, int fd)
{
    (void)fd;
    s_serve(ctx);
}

static void s_on_port_timer(void *ctx)
{
    operator_port_t *port = ctx;
    port->timer = 0;
    s_serve(port);
}

static void s_serve(operator_port_t *port)
{
    tt_reactor_t *loop = port->op->loop;
    tt_server_serve(port->server);
    tt_reactor_forget_timer(loop, port->timer);
    const int64_t due = tt_server_due_ms(port->server);
    port->timer = due >= 0 ? tt_reactor_timer(loop, due, s_on_port_timer, port) : 0;
}

static tt_status_t s_open(
    operator_t *self, operator_port_t *port, const char *address, const char *what, tt_server_fn fn)
{
    port->op = self;
    if (!*address)
        return TT_OK;
    const tt_server_opts_t opts = {.address = address,
        .on_request = fn,
        .ctx = port,
        .healthz = fn == backend_request ? REPLICAS_HEALTHZ : NULL,
        .answer_ms = API_ANSWER_MS,
        .clock = tt_reactor_clock(self->loop)};
    const tt_status_t status = tt_server_start(&port->server, &opts);
    if (status != TT_OK)
        return tt_err_wrap(status, "%s", what);
    tt_reactor_fd(self->loop, tt_server_fd(port->server), s_on_port, port);
    log_info("%s at port %d", what, tt_server_port(port->server));
    return TT_OK;
}

static void s_close(operator_port_t *port)
{
    if (!port->server)
        return;
    tt_reactor_forget_fd(port->op->loop, tt_server_fd(port->server));
    tt_reactor_forget_timer(port->op->loop, port->timer);
    tt_server_stop(&port->server);
}

/* ---- life ---------------------------------------------------------------------------------------------------------- */

static const char *s_or(const char *text, const char *otherwise)
{
    return text ? text : otherwise;
}

static const char *s_env(const char *name, const char *otherwise)
{
    const char *text = getenv(name);
    return text && *text ? text : otherwise;
}

static void s_defaults(operator_t *self, const operator_opts_t *opts)
{
    operator_opts_t *o = &self->opts;
    *o = *opts;
    o->lease_name = s_or(o->lease_name, "tutti-operator");
    o->lease_namespace = s_or(o->lease_namespace, s_env("POD_NAMESPACE", "di-system"));
    o->listen = s_or(o->listen, ":8080");
    o->probes = s_or(o->probes, ":8081");
    o->server_url = s_or(o->server_url, "http://di-server.di-system:8080");
    o->agconfig_namespace = s_or(o->agconfig_namespace, "di-system");
    o->agconfig_name = s_or(o->agconfig_name, "aggregator-config");
    self->server_url = o->server_url;
}

/*  The pod's UID; outside one something nobody else has. */
static char *s_holder(operator_t *self)
{
    char host[HOST_NAME_MAX + 1] = "host";
    gethostname(host, sizeof host - 1);
    const char *uid = s_env("POD_UID", NULL);
    return uid ? tt_strdup(uid)
               : tt_sprintf("%s_%d_%08x", host, (int)getpid(), (unsigned)(operator_random(self) >> 32));
}

static tt_status_t s_client(operator_t *self)
{
    static const kube_client_opts_t opts = {.agent = "tutti-operator/" TT_VERSION};
    TT_TRY(kube_config_load(&self->config, &self->opts.kube));
    TT_TRY(tt_reactor_new(&self->loop, self->opts.clock));
    self->started_ms = tt_now_ms(tt_reactor_clock(self->loop));
    self->started_s = tt_process_started_s();
    return kube_client_new(&self->client, self->loop, self->config, &opts);
}

static tt_status_t s_work(operator_t *self)
{
    const tt_queue_opts_t queue = {.workers = self->opts.workers};
    const cache_opts_t cache = {.namespace_ = self->opts.namespace_,
        .only_job = self->opts.only_job,
        .manifest = self->opts.manifest,
        .own_pod = self->opts.own_pod,
        .fronts = self->fronts,
        .front_count = self->front_count,
        .changed = round_soon,
        .synced = s_on_synced,
        .ctx = self};
    const kube_lease_opts_t lease = {.namespace_ = self->opts.lease_namespace,
        .name = self->opts.lease_name,
        .holder = self->holder,
        .changed = s_on_lease,
        .ctx = self};
    TT_TRY(tt_queue_new(&self->queue, self->loop, &queue, round_begin, self));
    tt_queue_pause(self->queue, true);
    TT_TRY(cache_new(&self->cache, self->client, &cache));
    if (self->queues)
        TT_TRY(admission_new(&self->admission, self));
    return self->opts.elect ? kube_lease_new(&self->lease, self->client, &lease) : TT_OK;
}

static void s_on_stop_fd(void *ctx, int fd)
{
    operator_t *self = ctx;
    log_info("stopping");
    tt_reactor_forget_fd(self->loop, fd);
    operator_stop(self);
}

static tt_status_t s_start(operator_t *self)
{
    TT_TRY(front_pick(self->opts.also, self->fronts, &self->front_count));
    TT_TRY(gang_pick(&self->gang, self->opts.gang));
    TT_TRY(kueue_pick(&self->queues, self->opts.queue));
    if (self->opts.controller_config)
        TT_TRY(accelerators_read(&self->accelerators, self->opts.controller_config));
    if (getrandom(&self->random, sizeof self->random, 0) != sizeof self->random)
        return tt_err_errno(TT_OS, "getrandom");
    self->holder = s_holder(self);
    TT_TRY(s_client(self));
    log_info("API server %s, context %s, %s%s", self->config->server, self->config->context,
        self->opts.namespace_ ? "namespace " : "all namespaces", s_or(self->opts.namespace_, ""));
    if (self->accelerators)
        log_info("%s: %zu resources come with more than themselves", self->opts.controller_config,
            json_object_size(self->accelerators));
    if (self->opts.stop_fd > 0)
        tt_reactor_fd(self->loop, self->opts.stop_fd, s_on_stop_fd, self);
    TT_TRY(s_work(self));
    TT_TRY(s_open(self, &self->api, self->opts.listen, "replicas API", backend_request));
    return s_open(self, &self->probes, self->opts.probes, "probes", probes_request);
}

tt_status_t operator_new(operator_t **self_p, const operator_opts_t *opts)
{
    operator_t *self = tt_new0(sizeof *self);
    s_defaults(self, opts);
    const tt_status_t status = s_start(self);
    if (status == TT_OK)
        *self_p = self;
    else
        operator_destroy(&self);
    return status;
}

/*  What is to be written about the end. */
static void s_begin_end(operator_t *self)
{
    self->end_by_ms = tt_now_ms(tt_reactor_clock(self->loop)) + END_MS;
    self->cache->own_end = (char)atomic_load(&self->ended);
    round_soon(self, &self->cache->kinds[0], self->opts.namespace_, self->opts.only_job);
}

static bool s_is_over(operator_t *self)
{
    if (atomic_load(&self->ended) && !self->end_by_ms && self->opts.only_job)
        s_begin_end(self);
    const bool done = tt_queue_depth(self->queue) == 0 && tt_queue_failing(self->queue) == 0;
    const bool idle =
        self->end_by_ms && done && !self->rounds && !self->batches && kube_client_pending(self->client) == 0;
    return idle || (self->end_by_ms && tt_now_ms(tt_reactor_clock(self->loop)) >= self->end_by_ms);
}

/*  A thousand jobs at once leave holes behind in the heap; when all is quiet again they are given back. */
static void s_tidy(operator_t *self)
{
    const int64_t now_ms = tt_now_ms(tt_reactor_clock(self->loop));
    const bool idle = !self->rounds && !self->tasks && kube_client_pending(self->client) == 0;
    if (!idle || self->counters.rounds == self->tidied_rounds || now_ms < self->tidied_ms + TIDY_MS)
        return;
    self->tidied_rounds = self->counters.rounds;
    self->tidied_ms = now_ms;
    malloc_trim(0);
}

/*  Asked to stop, and who asked for replicas is answered: one who heard nothing would ask another replica of ours, and get
 *  double. */
static bool s_is_stopped(operator_t *self)
{
    const int64_t now_ms = tt_now_ms(tt_reactor_clock(self->loop));
    if (!atomic_load(&self->stop))
        return false;
    if (!self->stop_by_ms) {
        self->stop_by_ms = now_ms + END_MS;
        s_pause(self);
    }
    const bool answered =
        !self->tasks && (!self->api.server || tt_server_pending(self->api.server) == backend_waiting(self));
    return answered || now_ms >= self->stop_by_ms;
}

tt_status_t operator_run(operator_t *self)
{
    tt_status_t status = TT_OK;
    while (status == TT_OK && !s_is_stopped(self) && !s_is_over(self)) {
        status = tt_reactor_poll(self->loop, POLL_MS);
        s_tidy(self);
    }
    return status;
}

void operator_end(operator_t *self, bool well)
{
    atomic_store(&self->ended, well ? 's' : 'f');
    tt_reactor_wake(self->loop);
}

void operator_stop(operator_t *self)
{
    atomic_store(&self->stop, true);
    tt_reactor_wake(self->loop);
}

void operator_destroy(operator_t **self_p)
{
    operator_t *self = *self_p;
    if (!self)
        return;
    if (self->queue)
        tt_queue_pause(self->queue, true);
    kube_lease_destroy(&self->lease); /* while the client can still say so */
    if (self->client) {
        backend_drop_all(self);
        fetch_drop_all(self);
        round_drop_all(self);
    }
    s_close(&self->api);
    s_close(&self->probes);
    admission_destroy(&self->admission);
    cache_destroy(&self->cache);
    tt_queue_destroy(&self->queue);
    kube_client_destroy(&self->client);
    while (self->batches) {
        writes_t *batch = self->batches;
        writes_destroy(&batch);
    }
    tt_reactor_destroy(&self->loop);
    kube_config_destroy(&self->config);
    json_decref(self->accelerators);
    free(self->holder);
    free(self);
    *self_p = NULL;
}
