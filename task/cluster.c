#include "task/cluster.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "k8s/api/client.h"
#include "k8s/front/object.h"
#include "k8s/front/spec.h"
#include "task/job_object.h"
#define TT_LOG_COMPONENT "cluster"
#include "common/base/log.h"
#include "common/http/query.h"

enum { TIMEOUT_MS = 10000, LOOK_MS = 1000, ASK_MS = 5000, QUEUE_MAX = 63 };

typedef struct {
    tt_replica_id_t id;
    char name[128];
    char *manifest; /* owned; NULL = the API server has it */
    bool seen;      /* in the list of this look            */
    bool made;      /* its pod is there                    */
    bool suspended; /* it is to have none                  */
    bool doomed;    /* it is to go: to be deleted wherever it is seen */
    bool ended;
    char waits[64]; /* why its pod did not begin, as was said last */
    tt_replica_event_t event;
} pod_job_t;

typedef struct {
    tt_substrate_t base;
    kube_config_t *config;
    tt_reactor_t *loop;
    kube_client_t *client;
    job_object_rules_t rules;
    char *claim, *registry, *queue;            /* of the rules; queue: NULL = none */
    char *jobs, *our_jobs, *our_pods, *events; /* paths of the namespace */
    tt_replica_id_t next_id;
    pod_job_t *pods;
    size_t count, room;
    int64_t looked_ms, asked_ms; /* at Jobs, at pods */
    bool silent;                 /* the API server; said once */
    int64_t mute_until_ms;       /* it let us wait: it is not asked before that */
    size_t ask_from;             /* whose turn is first, so that none is always behind one that has no answer */
    bool put_off;                /* a Job that was asked for, since the last look */
    char put_off_words[512];     /* why, as was said last; "" = none is           */
    bool stays_said;             /* a Job that is to go */
} cluster_t;

static tt_status_t s_send(cluster_t *self, const char *method, const char *path, const char *body, char **answer)
{
    const kube_request_t request = {.method = method, .path = path, .body = body, .timeout_ms = TIMEOUT_MS};
    return kube_client_call(self->client, &request, answer);
}

/*  A server that let one wait in vain would let the next wait, too, and all of them for minutes, in which nobody hears a
 *  signal. TT_AGAIN: so it was not asked. */
static tt_status_t s_call(cluster_t *self, const char *method, const char *path, const char *body, char **answer)
{
    const int64_t begun = tt_now_ms(tt_clock_real());
    if (begun < self->mute_until_ms)
        return tt_err(TT_AGAIN, "%s %s: the API server has let another request wait", method, path);
    const tt_status_t status = s_send(self, method, path, body, answer);
    const int64_t now = tt_now_ms(tt_clock_real());
    if (status == TT_UNAVAILABLE && now >= begun + TIMEOUT_MS / 2)
        self->mute_until_ms = now + LOOK_MS;
    return status;
}

/* ---- a Job ------------------------------------------------------------------------------------------------------------- */

static char *s_manifest(const cluster_t *self, const cluster_job_t *job, const char *name)
{
    json_t *object = job_object(&self->rules, job, name);
    char *text = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    return text;
}

static void s_end(pod_job_t *pod, tt_replica_phase_t phase, const char *reason)
{
    pod->ended = true;
    pod->event = (tt_replica_event_t){.id = pod->id, .phase = phase, .exit_code = phase == TT_PHASE_SUCCEEDED ? 0 : -1};
    snprintf(pod->event.reason, sizeof pod->event.reason, "%s", reason);
}

/*  Said once; of a server that answers nothing at all that was said. */
static void s_put_off(cluster_t *self, tt_status_t status)
{
    char words[sizeof self->put_off_words];
    tt_text_copy(words, sizeof words, tt_err_text());
    self->put_off = true;
    if (self->silent || status == TT_AGAIN || strcmp(self->put_off_words, words) == 0)
        return;
    memcpy(self->put_off_words, words, sizeof words);
    log_warn("%s; trying on", self->put_off_words);
}

/*  Ask for it; that it is there already is as good. Only what the server finds wrong with the Job itself is an end. Where nobody answers, or
 *  credentials, a quota or the namespace are in the way, others would fare no better: the manifest stays for another time. */
static tt_status_t s_ask(cluster_t *self, pod_job_t *pod)
{
    const tt_status_t status = s_call(self, "POST", self->jobs, pod->manifest, NULL);
    if (status != TT_OK && status != TT_EXISTS && status != TT_INVALID) {
        s_put_off(self, status);
        return TT_OK;
    }
    free(pod->manifest);
    pod->manifest = NULL;
    return status == TT_EXISTS ? TT_OK : status;
}

/*  Each that the API server has not got yet. When none is put off any more, the next one is said again. */
static void s_ask_again(cluster_t *self)
{
    self->put_off = false;
    self->ask_from++;
    for (size_t i = 0; i < self->count; i++) {
        pod_job_t *pod = &self->pods[(self->ask_from + i) % self->count];
        if (pod->manifest && s_ask(self, pod) != TT_OK)
            s_end(pod, TT_PHASE_FAILED, tt_err_text());
    }
    if (!self->put_off)
        self->put_off_words[0] = '\0';
}

static void s_drop(cluster_t *self, size_t i)
{
    free(self->pods[i].manifest);
    self->pods[i] = self->pods[--self->count];
}

static pod_job_t s_new(cluster_t *self, int64_t job, uint32_t attempt)
{
    pod_job_t pod = {.id = ++self->next_id};
    snprintf(pod.name, sizeof pod.name, "tutti-%s-%lld-%u", self->registry, (long long)job, attempt);
    return pod;
}

static void s_add(cluster_t *self, const pod_job_t *pod, tt_replica_id_t *out)
{
    if (self->count == self->room) {
        self->room = self->room ? 2 * self->room : 16;
        self->pods = tt_realloc(self->pods, tt_mul(self->room, sizeof *self->pods));
    }
    self->pods[self->count++] = *pod;
    *out = pod->id;
}

tt_status_t cluster_start(tt_substrate_t *base, const cluster_job_t *job, tt_replica_id_t *out)
{
    cluster_t *self = (cluster_t *)base;
    pod_job_t pod = s_new(self, job->job, job->attempt);
    pod.manifest = s_manifest(self, job, pod.name);
    const tt_status_t status = s_ask(self, &pod);
    if (status != TT_OK)
        return tt_err_wrap(TT_INVALID, "Job %s", pod.name);
    s_add(self, &pod, out);
    return TT_OK;
}

void cluster_adopt(tt_substrate_t *base, int64_t job, uint32_t attempt, tt_replica_id_t *out)
{
    cluster_t *self = (cluster_t *)base;
    const pod_job_t pod = s_new(self, job, attempt);
    s_add(self, &pod, out);
}

static tt_status_t s_start(tt_substrate_t *base, const tt_replica_spec_t *spec, tt_replica_id_t *out)
{
    (void)base;
    (void)spec;
    (void)out;
    return tt_err(TT_UNSUPPORTED, "a replica without an image cannot run on a cluster");
}

/* ---- deleted ----------------------------------------------------------------------------------------------------------- */

/*  Is it gone? If not, its time to live will end. */
static bool s_delete(cluster_t *self, const char *name)
{
    char *path = tt_sprintf("%s/%s?propagationPolicy=Background", self->jobs, name);
    const tt_status_t status = s_call(self, "DELETE", path, NULL, NULL);
    if (status != TT_OK)
        log_debug("Job %s: %s", name, tt_err_text());
    free(path);
    return status == TT_OK || status == TT_NOT_FOUND;
}

/*  It is not begun any more; nor is it gone before a list shows that it is, for the server may have taken what it did not answer. */
static void s_doom(cluster_t *self, pod_job_t *pod)
{
    free(pod->manifest);
    pod->manifest = NULL;
    pod->doomed = true;
    (void)s_delete(self, pod->name);
}

static tt_status_t s_stop(tt_substrate_t *base, tt_replica_id_t id, int grace_ms)
{
    cluster_t *self = (cluster_t *)base;
    (void)grace_ms; /* is the pod's */
    for (size_t i = 0; i < self->count; i++)
        if (self->pods[i].id == id)
            s_doom(self, &self->pods[i]);
    return TT_OK;
}

/* ---- looked at --------------------------------------------------------------------------------------------------------- */

static pod_job_t *s_find(cluster_t *self, const char *name)
{
    for (size_t i = 0; name && i < self->count; i++)
        if (strcmp(self->pods[i].name, name) == 0)
            return &self->pods[i];
    return NULL;
}

/*  Why the Job has failed, where it says so: "Job was active longer than specified deadline". */
static const char *s_failure(const json_t *status)
{
    const json_t *failed = parts_condition(json_object_get(status, "conditions"), "Failed");
    return parts_is(failed, "status", "True") ? parts_text(failed, "message", "its Job has failed") : NULL;
}

static void s_look_at(cluster_t *self, const json_t *item)
{
    pod_job_t *pod = s_find(self, parts_text(json_object_get(item, "metadata"), "name", NULL));
    const json_t *status = json_object_get(item, "status");
    if (!pod)
        return;
    pod->seen = true;
    pod->suspended = json_is_true(json_object_get(json_object_get(item, "spec"), "suspend"));
    if (json_integer_value(json_object_get(status, "succeeded")) > 0)
        s_end(pod, TT_PHASE_SUCCEEDED, "its Job has succeeded");
    else if (s_failure(status))
        s_end(pod, TT_PHASE_FAILED, s_failure(status));
    else if (json_integer_value(json_object_get(status, "failed")) > 0)
        s_end(pod, TT_PHASE_FAILED, "its pod has failed");
}

static void s_compare(cluster_t *self, const json_t *items)
{
    size_t i;
    json_t *item;
    for (i = 0; i < self->count; i++)
        self->pods[i].seen = false;
    json_array_foreach(items, i, item) s_look_at(self, item);
    for (i = 0; i < self->count; i++)
        if (!self->pods[i].seen && !self->pods[i].manifest && !self->pods[i].ended)
            s_end(&self->pods[i], TT_PHASE_LOST, "its Job was deleted");
}

static tt_status_t s_list(cluster_t *self, const char *path, void (*fn)(cluster_t *self, const json_t *items))
{
    char *answer = NULL;
    tt_status_t status = s_call(self, "GET", path, NULL, &answer);
    json_t *list = status == TT_OK ? json_loads(answer, 0, NULL) : NULL;
    if (parts_array(list, "items"))
        fn(self, parts_array(list, "items"));
    else if (status == TT_OK)
        status = tt_err(TT_PROTOCOL, "the API server's list %s is none", path);
    json_decref(list);
    free(answer);
    return status;
}

/*  What is seen and was to go: that order was lost. */
static void s_delete_again(cluster_t *self)
{
    bool stays = false;
    for (size_t i = 0; i < self->count; i++) {
        if (!self->pods[i].doomed || !self->pods[i].seen || self->pods[i].ended || s_delete(self, self->pods[i].name))
            continue;
        if (!stays && !self->stays_said)
            log_warn("%s; trying on", tt_err_text());
        stays = true;
    }
    self->stays_said = stays;
}

/*  Without an answer nothing is known, and nothing is concluded: pods go on. */
static void s_look(cluster_t *self)
{
    const bool silent = s_list(self, self->our_jobs, s_compare) != TT_OK;
    if (silent && !self->silent)
        log_warn("%s; trying on", tt_err_text());
    self->silent = silent;
    if (!silent)
        s_delete_again(self);
}

/* ---- why a pod does not begin -------------------------------------------------------------------------------------------- */

/*  Said once: it may still come to begin, so nothing is done about it. */
static void s_warn(pod_job_t *pod, const char *why, const char *words)
{
    if (!*why || strcmp(pod->waits, why) == 0)
        return;
    snprintf(pod->waits, sizeof pod->waits, "%s", why);
    log_warn("the pod of Job %s does not begin: %s%s%.400s", pod->name, why, *words ? ": " : "", words);
}

static void s_on_pods(cluster_t *self, const json_t *items)
{
    size_t i;
    json_t *item;
    for (i = 0; i < self->count; i++)
        self->pods[i].made = false;
    json_array_foreach(items, i, item)
    {
        const json_t *labels = json_object_get(json_object_get(item, "metadata"), "labels");
        const json_t *status = json_object_get(item, "status");
        pod_job_t *pod = s_find(self, parts_text(labels, "batch.kubernetes.io/job-name", NULL));
        parts_trouble_t trouble;
        if (!pod)
            continue;
        pod->made = true;
        parts_trouble(
            &trouble, status, parts_named(json_object_get(status, "containerStatuses"), "name", JOB_OBJECT_CONTAINER));
        if (parts_is(status, "phase", "Pending"))
            s_warn(pod, trouble.why, trouble.words);
    }
}

/*  A quota, pod security, an account that there is none of: such a pod is never made, and its Job waits for it. */
static void s_on_events(cluster_t *self, const json_t *items)
{
    size_t i;
    json_t *item;
    json_array_foreach(items, i, item)
    {
        const char *words;
        pod_job_t *pod = s_find(self, parts_without_pod(item, "Job", &words));
        if (pod && !pod->made)
            s_warn(pod, "FailedCreate", words);
    }
}

static void s_warn_of_queue(const cluster_t *self, pod_job_t *pod)
{
    char words[QUEUE_MAX + 64];
    snprintf(words, sizeof words, "its Job is suspended%s%s", self->queue ? ", and waits in queue " : "",
        self->queue ? self->queue : "");
    s_warn(pod, self->queue ? "AwaitingAdmission" : "Suspended", words);
}

/*  Who may not list pods, or events, is not told. */
static void s_ask_why(cluster_t *self)
{
    bool missing = false;
    tt_status_t status = s_list(self, self->our_pods, s_on_pods);
    for (size_t i = 0; i < self->count; i++)
        if (self->pods[i].suspended && !self->pods[i].ended)
            s_warn_of_queue(self, &self->pods[i]);
        else
            missing |= !self->pods[i].made && !self->pods[i].manifest && !self->pods[i].ended;
    if (status == TT_OK && missing)
        status = s_list(self, self->events, s_on_events);
    if (status != TT_OK)
        log_debug("%s", tt_err_text());
}

static tt_status_t s_poll(tt_substrate_t *base, tt_replica_event_t *events, size_t *count)
{
    cluster_t *self = (cluster_t *)base;
    const size_t room = *count;
    const int64_t now = tt_now_ms(tt_clock_real());
    const bool look = self->count && now >= self->looked_ms + LOOK_MS && now >= self->mute_until_ms;
    *count = 0;
    if (look) {
        s_look(self);
        self->looked_ms = now;
    }
    if (self->count && !self->silent && now >= self->asked_ms + ASK_MS) {
        s_ask_why(self);
        self->asked_ms = now;
    }
    for (size_t i = 0; i < self->count && *count < room;) {
        if (!self->pods[i].ended) {
            i++;
            continue;
        }
        events[(*count)++] = self->pods[i].event;
        if (self->pods[i].event.phase != TT_PHASE_LOST)
            (void)s_delete(self, self->pods[i].name); /* its log and its exit code are on the volume */
        s_drop(self, i);
    }
    if (look) /* last: one that has no answer keeps back no other request of this look */
        s_ask_again(self);
    return TT_OK;
}

static tt_status_t s_logs(tt_substrate_t *base, tt_replica_id_t id, int fd)
{
    (void)base;
    (void)id;
    (void)fd;
    return tt_err(TT_UNSUPPORTED, "a job's log is on the volume");
}

/* ---- life -------------------------------------------------------------------------------------------------------------- */

static void s_destroy(tt_substrate_t **self_p)
{
    cluster_t *self = (cluster_t *)*self_p;
    if (!self)
        return;
    while (self->count)
        s_drop(self, self->count - 1);
    kube_client_destroy(&self->client);
    tt_reactor_destroy(&self->loop);
    kube_config_destroy(&self->config);
    free(self->pods);
    json_decref(self->rules.requests);
    json_decref(self->rules.limits);
    free(self->claim);
    free(self->registry);
    free(self->queue);
    free(self->jobs);
    free(self->our_jobs);
    free(self->our_pods);
    free(self->events);
    free(self);
    *self_p = NULL;
}

static const tt_substrate_ops_t s_ops = {
    .start = s_start,
    .stop = s_stop,
    .poll = s_poll,
    .logs = s_logs,
    .destroy = s_destroy,
};

static tt_status_t s_rules(cluster_t *self, const cluster_rules_t *rules)
{
    if (rules->queue && !spec_is_label(rules->queue, QUEUE_MAX, false))
        return tt_err(
            TT_USAGE, "--queue: '%.100s' is no queue's name: at most %d of a-z, 0-9 and -", rules->queue, QUEUE_MAX);
    self->rules = (job_object_rules_t){.claim = self->claim,
        .registry = self->registry,
        .queue = self->queue,
        .deadline_s = rules->deadline_s,
        .ttl_s = rules->ttl_s,
        .user = geteuid(),
        .group = getegid()};
    return job_object_resources(&self->rules.requests, &self->rules.limits, rules);
}

static tt_status_t s_open(cluster_t *self, const cluster_opts_t *opts)
{
    TT_TRY(s_rules(self, &opts->rules));
    TT_TRY(kube_config_load(&self->config, &opts->kube));
    TT_TRY(tt_reactor_new(&self->loop, NULL));
    TT_TRY(kube_client_new(
        &self->client, self->loop, self->config, &(kube_client_opts_t){.agent = "tutti-task/" TT_VERSION}));
    char *space = tt_query_escape(self->config->namespace_), *name = tt_query_escape(opts->claim);
    char *claim = tt_sprintf("/api/v1/namespaces/%s/persistentvolumeclaims/%s", space, name);
    self->jobs = tt_sprintf("/apis/batch/v1/namespaces/%s/jobs", space);
    self->our_jobs = tt_sprintf("%s?labelSelector=" JOB_OBJECT_REGISTRY "%%3D%s", self->jobs, self->registry);
    self->our_pods =
        tt_sprintf("/api/v1/namespaces/%s/pods?labelSelector=" JOB_OBJECT_REGISTRY "%%3D%s", space, self->registry);
    self->events = tt_sprintf(
        "/api/v1/namespaces/%s/events?fieldSelector=involvedObject.kind%%3DJob%%2Creason%%3DFailedCreate", space);
    const tt_status_t status = s_send(self, "GET", claim, NULL, NULL);
    free(space);
    free(name);
    free(claim);
    return status;
}

tt_status_t cluster_new(tt_substrate_t **self_p, const cluster_opts_t *opts)
{
    cluster_t *self = tt_new0(sizeof *self);
    tt_substrate_t *base = &self->base;
    self->base.ops = &s_ops;
    self->claim = tt_strdup(opts->claim);
    self->registry = tt_strdup(opts->registry);
    self->queue = tt_strdup(opts->rules.queue);
    self->looked_ms = -LOOK_MS;
    const tt_status_t status = s_open(self, opts);
    if (status != TT_OK)
        s_destroy(&base);
    else
        *self_p = base;
    return status;
}
