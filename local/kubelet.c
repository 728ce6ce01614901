#include "local/kubelet.h"
#include "common/base/words.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "controller/process.h"
#include "k8s/api/dump.h"
#include "local/box.h"
#include "local/start.h"
#include "local/volumes.h"
#define TT_LOG_COMPONENT "kubelet"
#include "common/base/log.h"

enum { LEAVE_MS = 3000 };
enum { EVENTS = 64, GRACE_S = 30 };

struct kubelet {
    place_t *place;
    const front_t *front;
    tt_substrate_t *substrate;
    bool tutti, ending;
    pod_t **pods;
    size_t count;
    uint64_t version;
    char broken[512]; /* why a pod that leads cannot be started */
    const tt_clock_t *clock;
};

static int64_t s_now_s(void)
{
    return tt_steady_ns() / 1000000000;
}

/* ---- status ----------------------------------------------------------------------------------------------------------------- */

static void s_forget(pod_t *pod)
{
    tt_pool_free(pod->seen);
    pod->seen = NULL;
}

/*  What the API server would show, and what our plans see of it. */
static void s_publish(kubelet_t *self, pod_t *pod)
{
    json_t *metadata = json_object_get(pod->object, "metadata");
    json_object_set_new(pod->object, "status", pod_status(pod));
    json_object_set_new(metadata, "resourceVersion", json_sprintf("%llu", (unsigned long long)++self->version));
    if (pod->deleting && !json_object_get(metadata, "deletionTimestamp"))
        json_object_set_new(metadata, "deletionTimestamp", parts_time_text(s_now_s()));
    char *text = kube_dump(pod->object);
    s_forget(pod);
    const tt_status_t read = self->front->pod_decode(&pod->seen, text, strlen(text));
    TT_CHECK(read == TT_OK);                                /* we have built it */
    ((front_pod_t *)pod->seen)->port = (uint16_t)pod->port; /* the one that it has here */
    free(text);
}

/* ---- containers -------------------------------------------------------------------------------------------------------------- */

typedef struct {
    kubelet_t *kubelet;
    pod_t *pod;
} start_ctx_t;

static tt_status_t s_start(void *ctx, size_t index, tt_replica_id_t *id)
{
    kubelet_t *self = ((start_ctx_t *)ctx)->kubelet;
    pod_t *pod = ((start_ctx_t *)ctx)->pod;
    box_t *box = &pod->boxes[index];
    const start_t start = {.place = self->place,
        .substrate = self->substrate,
        .pod = pod->object,
        .container = box->spec,
        .ip = pod->ip,
        .tutti = self->tutti};
    box->started_s = s_now_s();
    const tt_status_t status = start_container(&start, id);
    if (status == TT_OK)
        return status;
    place_say(self->place, "%s, container %s: %s", pod_name(pod), parts_text(box->spec, "name", ""), tt_err_text());
    if (self->front->local->seen(pod->seen).leads)
        snprintf(self->broken, sizeof self->broken, "%s: %s", pod_name(pod), tt_err_text());
    snprintf(box->reason, sizeof box->reason, "StartError");
    snprintf(box->message, sizeof box->message, "%s", tt_err_text());
    box->finished_s = s_now_s();
    log_debug("%s/%s: %s", pod_name(pod), box->log, box->message);
    return status;
}

/*  Its last line says nothing of why it was killed. */
static void s_say_killed(box_t *box, const tt_replica_event_t *event, bool memory)
{
    const char *line = box->message;
    char *text = tt_sprintf("%s%s%s%s", event->reason,
        memory ? ": out of memory, it had come to its limit" : event->why, *line ? "; its last line: " : "", line);
    tt_words(box->message, sizeof box->message, text);
    free(text);
}

static void s_ended(kubelet_t *self, pod_t *pod, box_t *box, const tt_replica_event_t *event)
{
    const bool memory = self->place->limits && limits_remove(self->place->limits, box->log);
    box->finished_s = s_now_s();
    snprintf(box->reason, sizeof box->reason, "%s",
        event->exit_code == 0                ? "Completed"
        : memory && event->signal == SIGKILL ? "OOMKilled"
                                             : "Error");
    box->message[0] = '\0';
    if (event->exit_code != 0)
        box_read_last_line(box, self->place->run_dir);
    if (event->signal == SIGKILL && (memory || event->why[0]))
        s_say_killed(box, event, memory);
    s_publish(self, pod);
}

static bool s_step(kubelet_t *self, pod_t *pod)
{
    const bool changed = tt_containers_step(&pod->containers, s_start, &(start_ctx_t){self, pod});
    if (changed)
        s_publish(self, pod);
    return changed;
}

/* ---- pods -------------------------------------------------------------------------------------------------------------------- */

static tt_restart_t s_restart(const json_t *object, tt_restart_t otherwise)
{
    const char *text = parts_text(object, "restartPolicy", "");
    if (strcmp(text, "Never") == 0)
        return TT_RESTART_NEVER;
    if (strcmp(text, "OnFailure") == 0)
        return TT_RESTART_ON_FAILURE;
    return strcmp(text, "Always") == 0 ? TT_RESTART_ALWAYS : otherwise;
}

static void s_boxes(kubelet_t *self, pod_t *pod)
{
    const json_t *spec = json_object_get(pod->object, "spec");
    const json_t *init = json_object_get(spec, "initContainers"), *main_ = json_object_get(spec, "containers");
    const tt_restart_t policy = s_restart(spec, TT_RESTART_ALWAYS);
    const tt_restart_t once = policy == TT_RESTART_ALWAYS ? TT_RESTART_ON_FAILURE : policy; /* of an init container */
    const size_t inits = json_array_size(init), count = inits + json_array_size(main_);
    tt_containers_init(&pod->containers, count, self->substrate, self->clock);
    pod->boxes = tt_array0(count, sizeof *pod->boxes);
    for (size_t i = 0; i < count; i++) {
        const bool is_init = i < inits;
        const json_t *container = is_init ? json_array_get(init, i) : json_array_get(main_, i - inits);
        pod->containers.list[i].init = is_init;
        pod->containers.list[i].restart = is_init ? s_restart(container, once) : policy;
        pod->boxes[i] = (box_t){.spec = container, .log = start_name(self->place, pod->object, container)};
    }
}

static void s_free(pod_t *pod)
{
    for (size_t i = 0; i < pod->containers.count; i++)
        free(pod->boxes[i].log);
    tt_containers_clear(&pod->containers);
    free(pod->boxes);
    s_forget(pod);
    json_decref(pod->object);
    free(pod);
}

static void s_stamp(json_t *object)
{
    unsigned char b[16] = {0};
    char host[256] = "localhost";
    json_t *metadata = json_object_get(object, "metadata");
    if (getrandom(b, sizeof b, 0) != (ssize_t)sizeof b)
        log_debug("no random numbers: a uid of zeros");
    gethostname(host, sizeof host - 1);
    json_object_set_new(metadata, "uid",
        json_sprintf("%02x%02x%02x%02x-%02x%02x-4%x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2], b[3],
            b[4], b[5], b[6] & 15, b[7], (b[8] & 63) | 128, b[9], b[10], b[11], b[12], b[13], b[14], b[15]));
    json_object_set_new(metadata, "creationTimestamp", parts_time_text(s_now_s()));
    json_object_set_new(json_object_get(object, "spec"), "nodeName", json_string(host));
}

tt_status_t kubelet_create(kubelet_t *self, json_t *object, const char *ip, int port)
{
    const json_t *spec = json_object_get(object, "spec");
    const char *name = parts_text(json_object_get(object, "metadata"), "name", "");
    if (kubelet_find(self, name) < self->count || json_array_size(json_object_get(spec, "containers")) == 0) {
        const bool empty = kubelet_find(self, name) == self->count;
        const tt_status_t status =
            tt_err(empty ? TT_INVALID : TT_EXISTS, "pod %s %s", name, empty ? "has no containers" : "is there already");
        json_decref(object);
        return status;
    }
    pod_t *pod = tt_new0(sizeof *pod);
    pod->object = object;
    pod->port = port;
    snprintf(pod->ip, sizeof pod->ip, "%s", ip);
    s_stamp(object);
    s_boxes(self, pod);
    place_host(self->place, pod_name(pod), ip, json_string_value(json_object_get(spec, "subdomain")));
    self->pods = tt_realloc(self->pods, tt_mul(self->count + 1, sizeof(pod_t *)));
    self->pods[self->count++] = pod;
    s_publish(self, pod);
    return TT_OK;
}

/*  A container's first process ignores SIGTERM unless it handles it, so DI-engine's workers live out their grace period in a
 *  cluster, while their coordinator sees them go and takes leave of them; cut off, it loses a thread. A process here would
 *  end at once: workers of jobs that are not ours have a moment between going and SIGTERM. */
static int64_t s_leave_ms(const kubelet_t *self, const pod_t *pod, int grace_s)
{
    const bool worker = !self->front->local->seen(pod->seen).tells;
    const int64_t most = (int64_t)grace_s * 500;
    return self->tutti || self->ending || !worker ? 0 : most < LEAVE_MS ? most : LEAVE_MS;
}

void kubelet_delete(kubelet_t *self, const char *name, int grace_s)
{
    const size_t at = kubelet_find(self, name);
    if (at == self->count)
        return;
    pod_t *pod = self->pods[at];
    const json_t *own = json_object_get(json_object_get(pod->object, "spec"), "terminationGracePeriodSeconds");
    if (grace_s < 0)
        grace_s = json_is_integer(own) ? (int)json_integer_value(own) : GRACE_S;
    grace_s = grace_s > 86400 ? 86400 : grace_s < 0 ? 0 : grace_s;
    const int64_t leave_ms = pod->deleting ? 0 : s_leave_ms(self, pod, grace_s);
    pod->deleting = true;
    tt_containers_stop(&pod->containers, leave_ms, grace_s * 1000);
    s_publish(self, pod);
}

void kubelet_end(kubelet_t *self, int grace_s)
{
    self->ending = true;
    for (size_t i = 0; i < self->count; i++) {
        char *name = tt_strdup(pod_name(self->pods[i]));
        kubelet_delete(self, name, grace_s);
        free(name);
    }
}

/*  Those asked to go whose containers are through. */
static bool s_sweep(kubelet_t *self)
{
    bool changed = false;
    for (size_t i = 0; i < self->count;) {
        pod_t *pod = self->pods[i];
        if (!pod->deleting || tt_containers_running(&pod->containers) > 0) {
            i++;
            continue;
        }
        place_forget(self->place, pod_name(pod));
        volumes_remove(self->place, pod_name(pod));
        s_free(pod);
        memmove(&self->pods[i], &self->pods[i + 1], (self->count - i - 1) * sizeof(pod_t *));
        self->count--;
        changed = true;
    }
    return changed;
}

/* ---- time -------------------------------------------------------------------------------------------------------------------- */

static void s_event(kubelet_t *self, const tt_replica_event_t *event)
{
    for (size_t i = 0; i < self->count; i++) {
        pod_t *pod = self->pods[i];
        const size_t at = tt_containers_ended(&pod->containers, event);
        if (at < pod->containers.count) {
            s_ended(self, pod, &pod->boxes[at], event);
            return;
        }
    }
}

bool kubelet_poll(kubelet_t *self)
{
    tt_replica_event_t events[EVENTS];
    bool changed = false;
    size_t count;
    do {
        count = EVENTS;
        if (self->substrate->ops->poll(self->substrate, events, &count) != TT_OK)
            count = 0;
        for (size_t i = 0; i < count; i++)
            s_event(self, &events[i]);
        changed |= count > 0;
    } while (count == EVENTS);
    for (size_t i = 0; i < self->count; i++)
        changed |= s_step(self, self->pods[i]);
    return s_sweep(self) || changed;
}

int64_t kubelet_due_ms(const kubelet_t *self)
{
    int64_t due = -1;
    for (size_t i = 0; i < self->count; i++) {
        const int64_t next = tt_containers_due_ms(&self->pods[i]->containers);
        if (next >= 0 && (due < 0 || next < due))
            due = next;
    }
    return due;
}

/* ---- life -------------------------------------------------------------------------------------------------------------------- */

tt_status_t kubelet_new(kubelet_t **self_p, place_t *place, const front_t *front, bool tutti, const tt_clock_t *clock)
{
    kubelet_t *self = tt_new0(sizeof *self);
    self->place = place;
    self->front = front;
    self->tutti = tutti;
    self->clock = clock;
    const tt_status_t status = tt_process_substrate_new(&self->substrate, place->run_dir, clock);
    if (status == TT_OK)
        *self_p = self;
    else
        free(self);
    return status;
}

void kubelet_destroy(kubelet_t **self_p)
{
    kubelet_t *self = *self_p;
    if (!self)
        return;
    self->substrate->ops->destroy(&self->substrate);
    for (size_t i = 0; i < self->count; i++)
        s_free(self->pods[i]); /* their volumes stay to be read: as pods that nobody deletes have theirs */
    free(self->pods);
    free(self);
    *self_p = NULL;
}

size_t kubelet_count(const kubelet_t *self)
{
    return self->count;
}

const void *kubelet_pod(const kubelet_t *self, size_t index)
{
    return self->pods[index]->seen;
}

const char *kubelet_name(const kubelet_t *self, size_t index)
{
    return pod_name(self->pods[index]);
}

const front_pod_t *kubelet_info(const kubelet_t *self, size_t index)
{
    return self->pods[index]->seen;
}

front_seen_t kubelet_seen(const kubelet_t *self, size_t index)
{
    return self->front->local->seen(self->pods[index]->seen);
}

const json_t *kubelet_object(const kubelet_t *self, size_t index)
{
    return self->pods[index]->object;
}

size_t kubelet_find(const kubelet_t *self, const char *name)
{
    size_t i = 0;
    while (i < self->count && strcmp(pod_name(self->pods[i]), name) != 0)
        i++;
    return i;
}

const char *kubelet_broken(const kubelet_t *self)
{
    return self->broken;
}

size_t kubelet_running(const kubelet_t *self)
{
    size_t count = 0;
    for (size_t i = 0; i < self->count; i++)
        count += tt_containers_running(&self->pods[i]->containers);
    return count;
}
