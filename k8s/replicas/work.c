#include "k8s/replicas/work.h"
#include <stdio.h>
#include <stdlib.h>
#include "common/base/mem.h"

static void s_list(replicas_work_t *self, replicas_view_t *view)
{
    self->on->list(self->ctx, view);
}

static void s_close(replicas_view_t *view)
{
    free((void *)(uintptr_t)view->pods);
    view->pods = NULL;
}

/* ---- what went wrong ----------------------------------------------------------------------------------------------- */

void replicas_work_fault(replicas_work_t *self, tt_status_t status)
{
    if (self->fault)
        return;
    self->status = status;
    self->fault = tt_strdup(tt_err_text());
}

static void s_finish(replicas_work_t *self)
{
    self->on->done(self->ctx, self->fault ? tt_err(self->status, "%s", self->fault) : TT_OK);
}

/* ---- pods ---------------------------------------------------------------------------------------------------------- */

static void s_create(replicas_work_t *self, int order, const dijob_pod_want_t *want)
{
    const tt_status_t status = self->on->create(self->ctx, order, want);
    if (status != TT_OK)
        replicas_work_fault(self, status == TT_NOT_FOUND ? tt_err_wrap(TT_INVALID, "create replicas") : status);
}

static void s_make(replicas_work_t *self, const replicas_view_t *view)
{
    for (size_t i = 0; i < self->orders.count; i++) {
        const replicas_order_t *order = &self->orders.orders[i];
        dijob_pod_want_t want;
        if (order->only_delete)
            continue;
        const tt_status_t status = replicas_want(order, view, &want);
        if (status == TT_OK)
            s_create(self, (int)i, &want);
        else
            replicas_work_fault(self, status);
    }
}

void replicas_work_made(replicas_work_t *self, int order)
{
    if (order >= 0 && (size_t)order < self->orders.count)
        self->orders.orders[order].made = true;
}

/*  Addresses of what has been made stand in the answer in the order of asking. */
static void s_replace(replicas_work_t *self, const replicas_view_t *view)
{
    for (size_t i = 0; i < self->orders.count; i++) {
        const replicas_order_t *order = &self->orders.orders[i];
        if (order->made)
            replicas_made(&self->orders, i, view);
        const char *old = order->only_delete || order->made ? order->want.replaces : NULL;
        const dijob_pod_t *pod = old ? replicas_find(view, old) : NULL;
        if (pod && !pod->deleting)
            self->on->remove(self->ctx, pod);
    }
}

/* ---- ddp learners, once their aggregators are there ------------------------------------------------------------------- */

static bool s_has_ddp(const replicas_work_t *self)
{
    for (size_t i = 0; i < self->orders.count; i++)
        if (self->orders.orders[i].made && self->orders.orders[i].gpus > 1)
            return true;
    return false;
}

static void s_ddp_pod(void *ctx, const dijob_pod_want_t *want)
{
    s_create(ctx, REPLICAS_NO_ORDER, want);
}

static void s_ddp(replicas_work_t *self, const replicas_view_t *view)
{
    const int per_node = self->on->gpus_per_node(self->ctx);
    for (size_t i = 0; i < self->orders.count; i++) {
        const replicas_order_t *order = &self->orders.orders[i];
        if (!order->made || order->gpus < 2)
            continue;
        if (replicas_find(view, order->want.name))
            replicas_ddp(order, self->request, view, per_node, s_ddp_pod, self);
        else
            replicas_work_fault(
                self, tt_err(TT_INTERNAL, "aggregator %s is gone before its learners came", order->want.name));
    }
}

/* ---- one stage after the other ------------------------------------------------------------------------------------- */

static int s_needs(const replicas_work_t *self, const replicas_view_t *view)
{
    for (size_t i = 0; i < self->orders.count; i++)
        if (self->orders.orders[i].want.role == DIJOB_AGGREGATOR && !view->job->has[DIJOB_AGGREGATOR])
            return REPLICAS_NEEDS_CONFIG;
    return 0;
}

static void s_remove(replicas_work_t *self)
{
    for (size_t i = 0; i < self->orders.going_count; i++)
        self->on->remove(self->ctx, self->orders.going[i]);
    self->orders.going_count = 0; /* what it points to is the view's */
}

void replicas_work_begin(replicas_work_t *self, const replicas_substrate_t *on, void *ctx,
    const replicas_request_t *request, dijob_role_t by)
{
    replicas_view_t view;
    *self = (replicas_work_t){.on = on, .ctx = ctx, .request = request};
    s_list(self, &view);
    snprintf(self->job, sizeof self->job, "%s", view.job->meta.name);
    const tt_status_t status = replicas_orders(&self->orders, &view, request, by);
    const bool removes = status == TT_OK && self->orders.going_count > 0, makes = self->orders.count > 0;
    const int needs = s_needs(self, &view);
    if (removes)
        s_remove(self);
    s_close(&view);
    self->stage = makes ? REPLICAS_MAKES : REPLICAS_ENDS;
    if (status != TT_OK || (!makes && !removes))
        on->done(ctx, status);
    else if (makes)
        on->prepare(ctx, needs);
    else
        on->commit(ctx);
}

/*  The stage, on the job as it is now; it may be gone. */
static tt_status_t s_stage(replicas_work_t *self)
{
    static void (*const stages[])(replicas_work_t * work, const replicas_view_t *view) = {
        [REPLICAS_MAKES] = s_make, [REPLICAS_REPLACES] = s_replace, [REPLICAS_DDP] = s_ddp};
    replicas_view_t view;
    s_list(self, &view);
    const tt_status_t status = view.job ? TT_OK : tt_err(TT_NOT_FOUND, "DIJob %s is gone", self->job);
    if (status == TT_OK)
        stages[self->stage++](self, &view);
    s_close(&view);
    return status;
}

void replicas_work_go(replicas_work_t *self, tt_status_t status)
{
    if (status == TT_OK && self->stage == REPLICAS_DDP && !s_has_ddp(self))
        self->stage = REPLICAS_ENDS;
    if (status == TT_OK && self->stage == REPLICAS_ENDS) {
        s_finish(self);
        return;
    }
    if (status == TT_OK && self->stage == REPLICAS_DDP && !self->prepared) {
        self->prepared = true;
        self->on->prepare(self->ctx, REPLICAS_NEEDS_GPUS);
        return;
    }
    if (status == TT_OK)
        status = s_stage(self);
    if (status == TT_OK)
        self->on->commit(self->ctx);
    else
        self->on->done(self->ctx, status);
}

void replicas_work_clear(replicas_work_t *self)
{
    replicas_orders_clear(&self->orders);
    free(self->fault);
    self->fault = NULL;
}
