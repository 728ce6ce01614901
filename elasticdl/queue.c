#include "elasticdl/queue.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#define TT_LOG_COMPONENT "master"
#include "common/base/log.h"
#include "common/http/query.h"
#include "k8s/front/kueue.h"
#include "k8s/front/object.h"

enum { TIMEOUT_MS = 10000, AGAIN_MS = 1000, LOOK_MS = 2000 };

/*  What it can be asking for. */
typedef enum { ASK_CLASS, ASK_CREATE, ASK_LOOK, ASK_FLAVOR, ASK_RENEW, ASK_TELL } ask_t;

void edl_queue_new(edl_queue_t **self_p, kube_client_t *client, const tt_clock_t *clock, const edl_objects_t *objects,
    const edl_task_t *task, bool adopted)
{
    edl_queue_t *self = tt_new0(sizeof *self);
    self->client = client;
    self->clock = clock;
    self->task = task->id;
    self->made = self->tried = adopted;
    self->known = self->current = !adopted;
    self->object = edl_workload(objects, task);
    edl_task_new(&self->like, task->id, &task->request, task->limits, 0);
    edl_task_together(self->like, task->gang);
    char *space = tt_query_escape(objects->namespace_);
    self->path = tt_sprintf(KUEUE_PATH "/namespaces/%s/workloads", space);
    free(space);
    *self_p = self;
}

static void s_forget_admission(edl_queue_t *self)
{
    json_decref(self->updates);
    json_decref(self->found);
    json_decref(self->names);
    json_decref(self->flavors);
    self->updates = self->found = self->names = self->flavors = NULL;
    self->admitted = false;
}

void edl_queue_destroy(edl_queue_t **self_p)
{
    edl_queue_t *self = *self_p;
    if (!self)
        return;
    kube_client_cancel(self->client, self->request);
    s_forget_admission(self);
    json_decref(self->object);
    edl_task_destroy(&self->like);
    free(self->path);
    free(self);
    *self_p = NULL;
}

/* ---- questions ------------------------------------------------------------------------------------------------------------ */

static void s_on_answer(void *ctx, const kube_reply_t *reply);

/*  Takes path and body. */
static void s_ask(edl_queue_t *self, ask_t step, const char *method, char *path, char *body)
{
    const kube_request_t request = {.method = method, .path = path, .body = body, .timeout_ms = TIMEOUT_MS};
    self->step = (int)step;
    self->request = kube_client_send(self->client, &request, s_on_answer, self);
    free(path);
    free(body);
}

static char *s_text(const json_t *object)
{
    char *text = json_dumps(object, JSON_COMPACT);
    TT_CHECK(text != NULL);
    return text;
}

static void s_later(edl_queue_t *self, int64_t ms)
{
    self->again_ms = tt_now_ms(self->clock) + ms;
}

static void s_create(edl_queue_t *self)
{
    char *class_ = self->ranked ? NULL : kueue_class_path(self->object, NULL);
    if (class_) {
        s_ask(self, ASK_CLASS, "GET", class_, NULL);
        return;
    }
    s_ask(self, ASK_CREATE, "POST", tt_strdup(self->path), s_text(self->object));
}

static void s_look(edl_queue_t *self)
{
    s_ask(self, ASK_LOOK, "GET", tt_sprintf("%s/%s", self->path, self->name), NULL);
}

/*  Takes what is to be there. Who was told that just now, and has it otherwise, is told again when it was looked at. */
static void s_tell(edl_queue_t *self, json_t *workload)
{
    if (self->step == ASK_TELL)
        s_later(self, AGAIN_MS);
    else
        s_ask(self, ASK_TELL, "PUT", tt_sprintf("%s/%s/status", self->path, self->name), s_text(workload));
    json_decref(workload);
}

/*  One of a master before this one is of its template; with quota it stays as it is. Takes the Workload. */
static void s_renew(edl_queue_t *self, json_t *workload)
{
    const json_t *own = json_object_get(self->object, "spec");
    json_object_set(json_object_get(workload, "spec"), "podSets", json_object_get(own, "podSets"));
    s_ask(self, ASK_RENEW, "PUT", tt_sprintf("%s/%s", self->path, self->name), s_text(workload));
    json_decref(workload);
}

static void s_next_flavor(edl_queue_t *self)
{
    const char *name = json_string_value(json_array_get(self->names, 0));
    if (name) {
        char *escaped = tt_query_escape(name);
        s_ask(self, ASK_FLAVOR, "GET", tt_sprintf(KUEUE_PATH "/resourceflavors/%s", escaped), NULL);
        free(escaped);
        return;
    }
    self->updates = kueue_updates(self->found, self->flavors);
    self->admitted = self->known = true;
    self->words[0] = '\0';
    log_info("Workload %s is admitted", self->name);
}

/* ---- answers -------------------------------------------------------------------------------------------------------------- */

static void s_wait(edl_queue_t *self, const char *words)
{
    self->known = true;
    tt_text_copy(self->words, sizeof self->words, words);
    s_later(self, LOOK_MS);
}

/*  It may go: with the nodes that it was admitted to. Takes the Workload. */
static void s_admitted(edl_queue_t *self, json_t *workload)
{
    if (self->admitted) {
        json_decref(workload);
        s_later(self, LOOK_MS);
        return;
    }
    s_forget_admission(self);
    self->found = workload;
    self->names = kueue_flavors(workload);
    self->flavors = json_object();
    s_next_flavor(self);
}

/*  Takes the Workload. */
static void s_read(edl_queue_t *self, const kueue_t *seen, json_t *workload)
{
    const int64_t now_s = tt_wall_ns() / 1000000000;
    if (self->over && !seen->finished && !seen->deleting) {
        kueue_finish(workload, self->well, self->well ? "the task succeeded" : "the task has ended", now_s);
        s_tell(self, workload);
        return;
    }
    self->told = self->over;
    self->back &= self->pods;
    if (kueue_goes(seen) && !self->back) {
        s_admitted(self, workload);
        return;
    }
    s_forget_admission(self);
    self->back = self->pods;
    s_wait(self, kueue_goes(seen) ? "it is admitted, and the pods that it had before are still to go" : seen->words);
    if (seen->reserved && seen->evicted && !self->pods && !seen->deleting) {
        kueue_release(workload, now_s);
        s_tell(self, workload);
    } else if (!self->current && !seen->reserved && !seen->finished && !seen->deleting) {
        s_renew(self, workload);
    } else {
        json_decref(workload);
    }
}

/*  What answers is no Workload. Takes it. */
static void s_unread(edl_queue_t *self, json_t *workload)
{
    json_decref(workload);
    s_later(self, LOOK_MS);
}

static void s_looked(edl_queue_t *self, const kube_reply_t *reply)
{
    kueue_t *seen = NULL;
    json_t *workload = json_loadb(reply->body, reply->size, 0, NULL);
    if (workload && kueue_decode(&seen, reply->body, reply->size) == TT_OK)
        s_read(self, seen, workload);
    else
        s_unread(self, workload);
    kueue_destroy(&seen);
}

/*  Somebody deleted it: without one there are no members, and there is another when the last has gone. */
static void s_gone(edl_queue_t *self)
{
    s_forget_admission(self);
    self->made = self->tried = self->ranked = false;
    self->current = true;
    self->back = self->pods;
    self->told = self->over;
    self->orphaned = !self->over;
    self->owner[0] = self->name[0] = '\0';
    s_wait(self, "its Workload was deleted, and is made again when its pods have gone");
}

static void s_refused(edl_queue_t *self, const kube_reply_t *reply)
{
    snprintf(self->lost, sizeof self->lost, "the API server refuses Workload %s: %.280s", self->name, reply->text);
}

/*  Who is silent, or answers what may pass. */
static void s_late(edl_queue_t *self, const kube_reply_t *reply)
{
    self->tried |= self->step == ASK_CREATE; /* it may have been made */
    const char *what = self->step == ASK_CLASS    ? "its priority class"
                       : self->step == ASK_FLAVOR ? "a flavour that its Workload was admitted with"
                       : self->known              ? NULL
                                                  : "its Workload cannot be read";
    if (what)
        snprintf(self->words, sizeof self->words, "%s: %.300s", what, reply->text);
    if (!self->silent)
        log_warn("Workload %s: %s; trying on", self->name, reply->text);
    self->silent = true;
    s_later(self, AGAIN_MS);
}

static void s_on_class(edl_queue_t *self, const kube_reply_t *reply)
{
    json_t *class_ = json_loadb(reply->body, reply->size, 0, NULL);
    self->ranked = class_ && kueue_rank(self->object, class_) == TT_OK;
    json_decref(class_);
    if (!self->ranked)
        snprintf(self->lost, sizeof self->lost, "Workload %s: its priority class: %.200s", self->name, tt_err_text());
}

static void s_on_flavor(edl_queue_t *self, const kube_reply_t *reply)
{
    const char *name = json_string_value(json_array_get(self->names, 0));
    json_object_set_new(self->flavors, name, json_loadb(reply->body, reply->size, 0, NULL));
    json_array_remove(self->names, 0);
    s_next_flavor(self);
}

static void s_well(edl_queue_t *self, const kube_reply_t *reply)
{
    self->silent = false;
    if (self->step == ASK_CLASS)
        s_on_class(self, reply);
    else if (self->step == ASK_CREATE)
        self->made = true;
    else if (self->step == ASK_FLAVOR)
        s_on_flavor(self, reply);
    else {
        self->current |= self->step == ASK_RENEW;
        s_looked(self, reply); /* what is told of one is answered with it, too */
    }
}

static void s_on_answer(void *ctx, const kube_reply_t *reply)
{
    edl_queue_t *self = ctx;
    const bool ours = self->step == ASK_CREATE && reply->code == 409 && self->tried;
    self->request = 0;
    if (reply->code / 100 == 2)
        s_well(self, reply);
    else if (ours)
        self->made = true;
    else if (reply->code == 404 && (self->step == ASK_LOOK || self->step >= ASK_RENEW))
        s_gone(self);
    else if (self->step == ASK_CREATE && reply->code && reply->code != 429 && reply->code < 500)
        s_refused(self, reply);
    else
        s_late(self, reply);
}

/* ---- its turn -------------------------------------------------------------------------------------------------------------- */

/*  Something is to be asked for, now or later. */
static bool s_waits(const edl_queue_t *self)
{
    if (self->request || self->lost[0] || self->told)
        return false;
    if (self->over)
        return !self->pods;
    return self->name[0] && (self->made || !self->pods);
}

/*  Its name is its owner's, so it can neither be made nor be looked for before. */
static void s_own(edl_queue_t *self)
{
    edl_workload_own(self->object, self->like, self->owner);
    snprintf(self->name, sizeof self->name, "%s", parts_job_name(self->object));
}

void edl_queue_turn(edl_queue_t *self)
{
    if (self->owner[0] && !self->name[0])
        s_own(self);
    if (self->over && !self->made && !self->tried && !self->request)
        self->told = true;
    if (!s_waits(self) || tt_now_ms(self->clock) < self->again_ms)
        return;
    if (self->made || self->over)
        s_look(self);
    else
        s_create(self);
}

int64_t edl_queue_due_ms(const edl_queue_t *self)
{
    const int64_t now = tt_now_ms(self->clock);
    if (!s_waits(self))
        return -1;
    return self->again_ms > now ? self->again_ms - now : 0;
}
