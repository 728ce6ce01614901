#include "k8s/local/kubelet.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "controller/process.h"
#include "k8s/api/dump.h"
#include "k8s/local/box.h"
#include "k8s/local/start.h"
#include "k8s/local/volumes.h"
#define TT_LOG_COMPONENT "kubelet"
#include "common/base/log.h"

enum { LEAVE_MS = 3000 };
enum { EVENTS = 64, GRACE_S = 30 };

/*  Of a container, in ms. */
static const tt_backoff_rule_t s_restarts = {.at_once = 1, .first = 1000, .most = 60000, .steady = 60000};

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

static const char *s_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static int64_t s_now_s(void)
{
    return tt_wall_ns() / 1000000000;
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
        json_object_set_new(metadata, "deletionTimestamp", pod_time(s_now_s()));
    char *text = kube_dump(pod->object);
    s_forget(pod);
    const tt_status_t read = self->front->pod_decode(&pod->seen, text, strlen(text));
    TT_CHECK(read == TT_OK); /* we have built it */
    self->front->local->set_port(pod->seen, (uint16_t)pod->port);
    free(text);
}

/* ---- containers -------------------------------------------------------------------------------------------------------------- */

static void s_start(kubelet_t *self, pod_t *pod, box_t *box)
{
    const start_t start = {.place = self->place,
        .substrate = self->substrate,
        .pod = pod->object,
        .container = box->spec,
        .ip = pod->ip,
        .tutti = self->tutti};
    box->started_s = s_now_s();
    tt_backoff_begin(&box->backoff, tt_now_ms(self->clock));
    if (start_container(&start, &box->id) == TT_OK) {
        box->state = BOX_RUNNING;
        return;
    }
    place_say(self->place, "%s, container %s: %s", pod_name(pod), s_text(box->spec, "name"), tt_err_text());
    if (self->front->local->seen(pod->seen).leads)
        snprintf(self->broken, sizeof self->broken, "%s", tt_err_text());
    snprintf(box->reason, sizeof box->reason, "StartError");
    snprintf(box->message, sizeof box->message, "%s", tt_err_text());
    box->state = BOX_ENDED; /* on one machine it does not get better by waiting, as in a cluster another node might */
    box->exit_code = 128;
    box->finished_s = s_now_s();
    log_debug("%s/%s: %s", pod_name(pod), box->log, box->message);
}

static bool s_again(const pod_t *pod, const box_t *box)
{
    if (pod->deleting || strcmp(box->reason, "StartError") == 0)
        return false;
    return box->restart == RESTART_ALWAYS || (box->restart == RESTART_ON_FAILURE && box->exit_code != 0);
}

static void s_back_off(kubelet_t *self, box_t *box)
{
    box->due_ms = tt_backoff_fail(&box->backoff, &s_restarts, tt_now_ms(self->clock));
    box->restarts++;
    box->state = BOX_WAITING;
}

static void s_ended(kubelet_t *self, pod_t *pod, box_t *box, const tt_replica_event_t *event)
{
    const bool memory = self->place->limits && limits_remove(self->place->limits, box->log);
    box->exit_code = event->exit_code;
    box->finished_s = s_now_s();
    box->state = BOX_ENDED;
    box->id = 0;
    snprintf(box->reason, sizeof box->reason, "%s",
        event->exit_code == 0                     ? "Completed"
        : memory && event->signal == 9 /* KILL */ ? "OOMKilled"
                                                  : "Error");
    box->message[0] = '\0';
    if (box->exit_code != 0)
        box_read_last_line(box, self->place->run_dir);
    if (s_again(pod, box))
        s_back_off(self, box);
    s_publish(self, pod);
}

/*  May box i begin? Init containers wait for those before them, the others for all of them. */
static bool s_its_turn(const pod_t *pod, size_t i)
{
    for (size_t k = 0; k < i && pod->boxes[k].init; k++) {
        const box_t *before = &pod->boxes[k];
        const bool stands = box_is_sidecar(before) && before->state != BOX_NEW;
        if (!stands && (before->state != BOX_ENDED || before->exit_code != 0))
            return false;
    }
    return true;
}

static bool s_main_over(const pod_t *pod)
{
    for (size_t i = 0; i < pod->count; i++)
        if (!pod->boxes[i].init && pod->boxes[i].state != BOX_ENDED)
            return false;
    return true;
}

/*  Sidecars among the init containers go when the others are through. */
static void s_dismiss(kubelet_t *self, pod_t *pod)
{
    for (size_t i = 0; i < pod->count; i++) {
        box_t *box = &pod->boxes[i];
        if (!box_is_sidecar(box) || box->state == BOX_ENDED)
            continue;
        box->restart = RESTART_NEVER;
        if (box->state == BOX_RUNNING)
            self->substrate->ops->stop(self->substrate, box->id, GRACE_S * 1000);
        else
            box->state = BOX_ENDED;
    }
}

static void s_ask_to_end(kubelet_t *self, pod_t *pod)
{
    pod->leave_ms = 0;
    for (size_t i = 0; i < pod->count; i++)
        if (pod->boxes[i].state == BOX_RUNNING)
            self->substrate->ops->stop(self->substrate, pod->boxes[i].id, pod->grace_s * 1000);
}

static bool s_step(kubelet_t *self, pod_t *pod)
{
    bool changed = false;
    const int64_t now = tt_now_ms(self->clock);
    if (pod->leave_ms && now >= pod->leave_ms)
        s_ask_to_end(self, pod);
    for (size_t i = 0; i < pod->count && !pod->deleting; i++) {
        box_t *box = &pod->boxes[i];
        const bool due = box->state == BOX_NEW ? s_its_turn(pod, i) : box->state == BOX_WAITING && now >= box->due_ms;
        if (due) {
            s_start(self, pod, box);
            changed = true;
        }
    }
    if (s_main_over(pod))
        s_dismiss(self, pod);
    if (changed)
        s_publish(self, pod);
    return changed;
}

/* ---- pods -------------------------------------------------------------------------------------------------------------------- */

static restart_t s_restart(const json_t *object, restart_t otherwise)
{
    const char *text = s_text(object, "restartPolicy");
    if (strcmp(text, "Never") == 0)
        return RESTART_NEVER;
    if (strcmp(text, "OnFailure") == 0)
        return RESTART_ON_FAILURE;
    return strcmp(text, "Always") == 0 ? RESTART_ALWAYS : otherwise;
}

static void s_boxes(kubelet_t *self, pod_t *pod)
{
    const json_t *spec = json_object_get(pod->object, "spec");
    const json_t *init = json_object_get(spec, "initContainers"), *main_ = json_object_get(spec, "containers");
    const restart_t policy = s_restart(spec, RESTART_ALWAYS);
    pod->count = json_array_size(init) + json_array_size(main_);
    pod->boxes = tt_array0(pod->count, sizeof *pod->boxes);
    for (size_t i = 0; i < pod->count; i++) {
        const bool is_init = i < json_array_size(init);
        const json_t *container = is_init ? json_array_get(init, i) : json_array_get(main_, i - json_array_size(init));
        const restart_t once = policy == RESTART_ALWAYS ? RESTART_ON_FAILURE : policy; /* of an init container */
        pod->boxes[i] = (box_t){.spec = container,
            .init = is_init,
            .restart = is_init ? s_restart(container, once) : policy,
            .log = start_name(self->place, pod->object, container)};
    }
}

static void s_free(pod_t *pod)
{
    for (size_t i = 0; i < pod->count; i++)
        free(pod->boxes[i].log);
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
    json_object_set_new(metadata, "creationTimestamp", pod_time(s_now_s()));
    json_object_set_new(json_object_get(object, "spec"), "nodeName", json_string(host));
}

tt_status_t kubelet_create(kubelet_t *self, json_t *object, const char *ip, int port)
{
    const json_t *spec = json_object_get(object, "spec");
    const char *name = s_text(json_object_get(object, "metadata"), "name");
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

static bool s_any_running(const pod_t *pod)
{
    for (size_t i = 0; i < pod->count; i++)
        if (pod->boxes[i].state == BOX_RUNNING)
            return true;
    return false;
}

/*  A container's first process ignores SIGTERM unless it handles it, so DI-engine's workers live out their grace period in a
 *  cluster, while their coordinator sees them go and takes leave of them; cut off, it loses a thread. A process here would
 *  end at once: workers of jobs that are not ours have a moment between going and SIGTERM. */
static int64_t s_leave_ms(const kubelet_t *self, const pod_t *pod)
{
    const bool worker = !self->front->local->seen(pod->seen).tells;
    const int64_t most = (int64_t)pod->grace_s * 500;
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
    pod->grace_s = grace_s > 86400 ? 86400 : grace_s < 0 ? 0 : grace_s;
    const int64_t wait_ms = pod->deleting ? 0 : s_leave_ms(self, pod);
    pod->deleting = true;
    pod->leave_ms = wait_ms ? tt_now_ms(self->clock) + wait_ms : 0;
    if (!wait_ms)
        s_ask_to_end(self, pod);
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
        if (!pod->deleting || s_any_running(pod)) {
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
    for (size_t i = 0; i < self->count; i++)
        for (size_t k = 0; k < self->pods[i]->count; k++)
            if (self->pods[i]->boxes[k].state == BOX_RUNNING && self->pods[i]->boxes[k].id == event->id) {
                s_ended(self, self->pods[i], &self->pods[i]->boxes[k], event);
                return;
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
    const int64_t now = tt_now_ms(self->clock);
    int64_t due = -1;
    for (size_t i = 0; i < self->count; i++) {
        const pod_t *pod = self->pods[i];
        if (pod->deleting && (due < 0 || due > 100))
            due = 100; /* the substrate kills what outlives its grace when it is polled */
        for (size_t k = 0; k < pod->count; k++) {
            const int64_t left = pod->boxes[k].due_ms > now ? pod->boxes[k].due_ms - now : 0;
            if (pod->boxes[k].state == BOX_WAITING && !pod->deleting && (due < 0 || left < due))
                due = left;
        }
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
        for (size_t k = 0; k < self->pods[i]->count; k++)
            count += self->pods[i]->boxes[k].state == BOX_RUNNING;
    return count;
}
