#define TT_LOG_COMPONENT "learner"
#include "learner/learner.h"
#include <stdio.h>
#include <stdlib.h>
#include "common/base/log.h"
#include "common/base/mem.h"
#include "learner/core.h"

enum {
    BYTES_MAX = TT_FRAME_MAX + TT_FRAME_SLACK,
    WEIGHTS_HWM = 4, /* versions that may wait for a collector that stands still: it fetches those that it missed */
    DATA_HWM = 64    /* credits and answers for one peer; what a full queue refuses is said again              */
};

/* ---- set up and take down ---------------------------------------------------------------------------------------- */

static tt_status_t s_bind(core_t *self)
{
    const tt_keys_t *keys = tt_location_keys(self->location);
    const tt_sock_opts_t data = {.name = "data", .hwm = DATA_HWM, .max_bytes = BYTES_MAX, .keys = keys};
    const tt_sock_opts_t weights = {.name = "weights", .hwm = WEIGHTS_HWM, .max_bytes = BYTES_MAX, .keys = keys};
    TT_TRY(tt_sock_new(&self->socks.data, TT_ROUTER, &data));
    TT_TRY(tt_sock_new(&self->socks.weights, TT_PUB, &weights));
    TT_TRY(tt_location_bind(self->location, self->socks.data, "data", self->socks.data_ipc, self->socks.data_tcp));
    TT_TRY(tt_location_bind(
        self->location, self->socks.weights, "weights", self->socks.weights_ipc, self->socks.weights_tcp));
    tt_loop_sock(self->loop, self->socks.data, feed_on_packet, self);
    return TT_OK;
}

/*  Where there is none, or nobody could read it, sums are sent. */
static void s_make_memory(core_t *self)
{
    self->socks.memory.fd = -1;
    if (self->location->dir[0] && tt_memfd_make(&self->socks.memory, EXCHANGE_NAME) != TT_OK)
        log_info("partial sums are sent, and not shared: %s", tt_err_text());
}

static const char *s_or_null(const char *endpoint)
{
    return endpoint[0] ? endpoint : NULL;
}

static tt_status_t s_connect(core_t *self)
{
    tt_link_opts_t opts = tt_location_link(self->location);
    opts.data_ipc = s_or_null(self->socks.data_ipc);
    opts.data_tcp = s_or_null(self->socks.data_tcp);
    opts.weights_ipc = s_or_null(self->socks.weights_ipc);
    opts.weights_tcp = s_or_null(self->socks.weights_tcp);
    opts.memory = (uint32_t)(self->socks.memory.fd + 1);
    TT_TRY(tt_link_start(&self->link, &opts));
    tt_loop_fd(self->loop, tt_link_fd(self->link), control_on_link, self);
    if (self->signals_fd >= 0)
        tt_loop_fd(self->loop, self->signals_fd, control_on_signal, self);
    return TT_OK;
}

static tt_status_t s_start(core_t *self)
{
    TT_TRY(tt_loop_new(&self->loop, self->clock));
    TT_TRY(s_bind(self));
    s_make_memory(self);
    return s_connect(self);
}

/*  Everything may be NULL: we get here from wherever the start failed, too. */
static void s_stop(core_t *self)
{
    if (self->link)
        tt_link_destroy(&self->link);
    keeping_close(&self->keeping);
    boundary_drop(&self->boundary);
    checkpoint_end(&self->checkpoint);
    warm_close(&self->warm);
    data_close(&self->data);
    tt_memfd_drop(&self->socks.memory);
    tt_sock_destroy(&self->socks.data);
    tt_sock_destroy(&self->socks.weights);
    tt_location_leave(self->socks.data_ipc);
    tt_location_leave(self->socks.weights_ipc);
    compose_close(&self->compose);
    tt_loop_destroy(&self->loop);
    evaluate_destroy(&self->evaluate);
    statistics_close(&self->statistics);
    model_close(&self->model);
    control_end(self);
    feed_close(&self->feed);
    fetch_close(&self->fetch);
}

/* ---- the life of a learner --------------------------------------------------------------------------------------- */

static tt_status_t s_get_in(core_t *self)
{
    if (!self->control.welcome)
        return core_wait(self, "idle: waiting for the coordinator's WELCOME");
    if (self->view.era == 0)
        return core_wait(self, "idle: waiting for a ROSTER");
    if (!self->view.member)
        return join_outside(self);
    return join_turn(self);
}

static tt_status_t s_turn(core_t *self)
{
    if (self->control.welcome && self->view.era && self->view.member && self->at.holds)
        return update_turn(self);
    const tt_status_t status = s_get_in(self);
    core_lap(self, CORE_other);
    core_tell_laps(self);
    return status;
}

/*  What a run cannot go on with is told before the process ends; and that it ends, so that nobody waits for a lease. */
static void s_report_failure(core_t *self, tt_status_t status)
{
    if (status == TT_OK || status == TT_DENIED || !self->link)
        return;
    char text[1024];
    snprintf(text, sizeof text, "%s", tt_err_text());
    /* of a device that is lost in the middle the run is told, and goes on: the others have the weights, or a snapshot has */
    const bool lost = status == TT_DEVICE && self->at.holds;
    const tt_msg_EVENT_t event = TT_MSG(EVENT, .kind = (char *)(uintptr_t)(lost ? "warning" : "failed"), .text = text,
        .update = self->at.update, .code = (uint32_t)tt_status_exit_code(status), .time_ns = tt_now_ns(self->clock));
    const tt_msg_DRAINED_t drained = TT_MSG(DRAINED, .reason = (char *)(uintptr_t) "failed");
    const bool ours = status != TT_UNAVAILABLE; /* else: we cannot reach someone; the run goes on without us */
    if ((ours && tt_link_send(self->link, &event) != TT_OK) || tt_link_send(self->link, &drained) != TT_OK)
        log_warn("the failure could not be reported: %s", tt_err_text());
    tt_err(status, "%s", text);
}

/*  All learners hold the same weights: here anybody can see it. */
static void s_say_weights(core_t *self)
{
    version_t *newest = self->at.holds ? publish_newest(self->data.publish) : NULL;
    if (!newest)
        return;
    char sha[65];
    tt_weights_sha256(version_params(newest), self->model.params, sha);
    log_info("this learner's weights: %s, version %llu", sha, (unsigned long long)newest->version);
}

/*  Refused after we took part: silent for too long, our weights are behind. That is no reason to end the run, as refusing
 *  a stranger is: another process of ours may join, so the exit code must be one after which it is started again. */
static tt_status_t s_fenced(const core_t *self, tt_status_t status)
{
    return status == TT_DENIED && self->control.welcome ? tt_err_wrap(TT_UNAVAILABLE, "taken out of the run") : status;
}

tt_status_t learner_run(const tt_location_t *location, int signals_fd, evaluate_play_fn play)
{
    core_t *self = tt_new0(sizeof *self);
    self->location = location;
    self->clock = location->clock;
    self->signals_fd = signals_fd;
    self->play = play;
    core_start_laps(self);
    tt_status_t status = s_start(self);
    while (status == TT_OK && !self->ending.leave)
        status = s_turn(self);
    s_report_failure(self, status);
    status = s_fenced(self, status);
    s_say_weights(self);
    s_stop(self);
    free(self);
    return status;
}
