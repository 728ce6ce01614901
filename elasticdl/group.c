#include "elasticdl/group.h"
#include <stdio.h>
#include <stdlib.h>
#include "common/base/mem.h"
#include "common/base/text.h"
#define TT_LOG_COMPONENT "master"
#include "common/base/log.h"
#include "common/http/query.h"
#include "k8s/front/gang.h"

enum { TIMEOUT_MS = 10000, AGAIN_MS = 1000 };

void edl_group_new(edl_group_t **self_p, kube_client_t *client, const tt_clock_t *clock, const edl_objects_t *objects,
    const edl_task_t *task, bool adopted)
{
    edl_group_t *self = tt_new0(sizeof *self);
    self->client = client;
    self->clock = clock;
    self->task = task->id;
    self->adopted = adopted;
    edl_task_folder(task, self->name);
    char *space = tt_query_escape(objects->namespace_);
    self->path = gang_path(task->gang, space, "");
    free(space);
    json_t *object = edl_group(objects, task);
    self->body = json_dumps(object, JSON_COMPACT);
    TT_CHECK(self->body != NULL);
    json_decref(object);
    *self_p = self;
}

void edl_group_destroy(edl_group_t **self_p)
{
    edl_group_t *self = *self_p;
    if (!self)
        return;
    kube_client_cancel(self->client, self->request);
    free(self->body);
    free(self->path);
    free(self);
    *self_p = NULL;
}

/* ---- answers -------------------------------------------------------------------------------------------------------------- */

static void s_asked(edl_group_t *self)
{
    self->there = true;
    self->silent = false;
}

/*  Of a task that another master began the group was there, whatever is said of it now. */
static void s_refused(edl_group_t *self, const kube_reply_t *reply)
{
    const bool ours = self->adopted || (self->tried && reply->code == 409);
    if (!ours) {
        self->foreign = reply->code == 409 || !self->tried;
        snprintf(self->lost, sizeof self->lost, "the API server refuses PodGroup %s: %.300s", self->name, reply->text);
    } else if (reply->code != 409) {
        log_warn("the API server refuses PodGroup %s once more: %s", self->name, reply->text);
    }
    s_asked(self);
}

static void s_late(edl_group_t *self, const kube_reply_t *reply)
{
    self->tried |= self->asks; /* it may have been made */
    if (!self->silent)
        log_warn(
            "PodGroup %s is %s: %s; trying on", self->name, self->asks ? "asked for" : "to be deleted", reply->text);
    self->silent = true;
    self->again_ms = tt_now_ms(self->clock) + AGAIN_MS;
}

static void s_on_answer(void *ctx, const kube_reply_t *reply)
{
    edl_group_t *self = ctx;
    const bool well = reply->code / 100 == 2;
    self->request = 0;
    if (reply->code == 0 || reply->code == 429 || reply->code >= 500) {
        s_late(self, reply);
    } else if (!self->asks) {
        if (!well && reply->code != 404)
            log_warn("PodGroup %s stays, as the API server refuses to delete it: %s", self->name, reply->text);
        self->gone = true;
    } else if (well) {
        s_asked(self);
    } else {
        s_refused(self, reply);
    }
}

/* ---- questions ------------------------------------------------------------------------------------------------------------ */

/*  It was asked for, so one of its name is ours to delete. */
static bool s_may_be_there(const edl_group_t *self)
{
    return !self->foreign && (self->adopted || self->tried || self->there);
}

bool edl_group_waits(const edl_group_t *self)
{
    return !self->request && (self->over ? !self->gone : self->wanted && !self->there);
}

/*  Its task had to wait meanwhile: the next is another one, and nobody has asked for it yet. */
static void s_anew(edl_group_t *self)
{
    self->gone = self->there = self->adopted = self->tried = false;
}

void edl_group_turn(edl_group_t *self)
{
    if (self->wanted && self->gone)
        s_anew(self);
    if (!edl_group_waits(self) || tt_now_ms(self->clock) < self->again_ms)
        return;
    self->asks = !self->over;
    if (!self->asks && !s_may_be_there(self)) {
        self->gone = true;
        return;
    }
    char *path = self->asks ? tt_strdup(self->path) : tt_sprintf("%s/%s", self->path, self->name);
    const kube_request_t request = {.method = self->asks ? "POST" : "DELETE",
        .path = path,
        .body = self->asks ? self->body : NULL,
        .timeout_ms = TIMEOUT_MS};
    self->request = kube_client_send(self->client, &request, s_on_answer, self);
    free(path);
}
