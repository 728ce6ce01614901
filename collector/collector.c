#include "collector/collector.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "collector/batches.h"
#include "collector/guard.h"
#include "collector/patience.h"
#include "collector/registry.h"
#include "common/base/mem.h"
#include "common/base/signals.h"
#define TT_LOG_COMPONENT "collector"
#include "common/base/log.h"

enum { POLL_MAX_MS = 1000 };

typedef struct {
    const tt_location_t *location;
    const tt_clock_t *clock;
    int signals;
    tt_loop_t *loop;
    tt_link_t *link;
    tt_train_cfg_t cfg;
    batches_t *batches; /* NULL before WELCOME */
} collector_t;

/*  Other threads. */
static void s_on_patience(void *ctx, const char *doing)
{
    collector_t *self = ctx;
    char text[sizeof self->cfg.env + 160];
    snprintf(text, sizeof text, "collectors wait for the environment %s to start: %s", self->cfg.env, doing);
    tt_link_send(
        self->link, &TT_MSG(EVENT, .kind = (char *)"waiting", .text = text, .time_ns = tt_now_ns(self->clock)));
}

/* ---- what the coordinator says ----------------------------------------------------------------------------------- */

static tt_status_t s_on_welcome(collector_t *self, const tt_msg_WELCOME_t *welcome)
{
    const tt_env_ops_t *env;
    if (self->batches)
        return TT_OK; /* the coordinator was restarted; the job is the same */
    TT_TRY(tt_train_parse(&self->cfg, welcome->config, strlen(welcome->config)));
    tt_link_state(self->link, "loading env %s", self->cfg.env);
    patience_also(s_on_patience, self);
    TT_TRY(tt_env_of(&env, &self->cfg));
    log_info("in as collector/%u: %s", welcome->index, env->id);
    const batches_opts_t opts = {.location = self->location,
        .cfg = &self->cfg,
        .env = env,
        .loop = self->loop,
        .link = self->link,
        .lease_ms = welcome->lease_ms ? welcome->lease_ms : self->cfg.net.lease_ms};
    return batches_new(&self->batches, &opts);
}

static tt_status_t s_leave(collector_t *self, const char *reason)
{
    log_info("leaving after %" PRIu64 " env steps: %s", self->batches ? batches_env_steps(self->batches) : 0,
        reason && *reason ? reason : "told to");
    return TT_STOPPED;
}

static tt_status_t s_drained(collector_t *self, const char *reason)
{
    tt_link_send(self->link, &TT_MSG(DRAINED, .reason = (char *)reason));
    return s_leave(self, reason);
}

static tt_status_t s_on_control(void *ctx, tt_packet_t *packet)
{
    collector_t *self = ctx;
    switch (packet->msg.type) {
    case TT_MSG_WELCOME:
        return s_on_welcome(self, &packet->msg.WELCOME);
    case TT_MSG_ROSTER:
        if (!self->batches)
            return tt_err(TT_PROTOCOL, "ROSTER before WELCOME");
        batches_roster(self->batches, packet);
        return TT_OK;
    case TT_MSG_STOP:
        return s_leave(self, packet->msg.STOP.reason);
    case TT_MSG_DRAIN:
        return s_drained(self, "drained");
    default:
        return TT_OK;
    }
}

static tt_status_t s_on_link(void *ctx, int fd)
{
    (void)fd;
    return tt_link_each(((collector_t *)ctx)->link, s_on_control, ctx);
}

static tt_status_t s_on_signal(void *ctx, int fd)
{
    return tt_signals_next(fd) == 0 ? TT_OK : s_drained(ctx, "SIGTERM");
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static tt_status_t s_start(collector_t *self)
{
    const tt_link_opts_t link = tt_location_link(self->location);
    TT_TRY(tt_loop_new(&self->loop, self->clock));
    TT_TRY(tt_link_start(&self->link, &link));
    tt_link_state(self->link, "idle: waiting for WELCOME");
    tt_loop_fd(self->loop, tt_link_fd(self->link), s_on_link, self);
    if (self->signals >= 0)
        tt_loop_fd(self->loop, self->signals, s_on_signal, self);
    return TT_OK;
}

/*  Look at the sockets, then do what can be done; wait only when nothing can. */
static tt_status_t s_serve(collector_t *self)
{
    int64_t wait_ms = POLL_MAX_MS;
    for (;;) {
        const tt_status_t status = tt_loop_poll(self->loop, wait_ms < POLL_MAX_MS ? wait_ms : POLL_MAX_MS);
        if (status != TT_OK && status != TT_AGAIN)
            return status;
        wait_ms = POLL_MAX_MS;
        if (self->batches)
            TT_TRY(batches_advance(self->batches, &wait_ms));
    }
}

/*  Tell the run why it fails. Being refused or left alone is not the run's failure; nor is a device that is lost in the middle: whoever
 *  gets our envs plays on from what the learners have. */
static void s_tell(collector_t *self, tt_status_t status)
{
    if (!self->link || status == TT_DENIED || status == TT_UNAVAILABLE || status == TT_TIMEOUT)
        return;
    char text[2048];
    snprintf(text, sizeof text, "%s", tt_err_text());
    const bool lost = status == TT_DEVICE && self->batches;
    tt_link_send(self->link, &TT_MSG(EVENT, .kind = (char *)(uintptr_t)(lost ? "warning" : "failed"), .text = text,
                                 .update = self->batches ? batches_next(self->batches) : 0,
                                 .code = (uint32_t)tt_status_exit_code(status), .time_ns = tt_now_ns(self->clock)));
    tt_link_send(self->link, &TT_MSG(DRAINED, .reason = (char *)(uintptr_t) "failed")); /* nobody waits for a lease */
    tt_err(status, "%s", text);
}

static void s_end(collector_t *self)
{
    batches_destroy(&self->batches);
    patience_also(NULL, NULL);
    tt_link_destroy(&self->link);
    tt_loop_destroy(&self->loop);
}

tt_status_t collector_run(const tt_location_t *location, int signals_fd)
{
    collector_t self = {.location = location, .clock = location->clock, .signals = signals_fd};
    guard_arm();
    tt_status_t status = s_start(&self);
    if (status == TT_OK)
        status = s_serve(&self);
    if (status == TT_STOPPED)
        status = TT_OK;
    else
        s_tell(&self, status);
    s_end(&self);
    return status;
}
