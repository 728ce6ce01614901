#define TT_LOG_COMPONENT "learner"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/signals.h"
#include "learner/core.h"

enum { DRAIN_MS = 5000, POD_DRAIN_MS = 20000, FAREWELL_MS = 60000, SILENCE_MS = 3000 };

/* ---- leaving ----------------------------------------------------------------------------------------------------- */

tt_status_t control_leave(core_t *self, const char *reason)
{
    const tt_msg_DRAINED_t message = TT_MSG(DRAINED, .reason = (char *)reason);
    return ending_leave(&self->ending) ? tt_link_send(self->link, &message) : TT_OK;
}

/*  The roster without us, or DRAIN, answers. */
static tt_status_t s_ask_to_leave(core_t *self)
{
    const tt_msg_DRAINED_t message = TT_MSG(DRAINED, .reason = (char *)"signal", .asks = true);
    return tt_link_send(self->link, &message);
}

/*  Nobody waits for us for ever: who sent the signal kills us in the end, 'tutti run' after a minute. A pod has 30 seconds;
 *  a coordinator that has gone silent (it got the same signal) will not answer any more. */
static int64_t s_patience_ms(const core_t *self)
{
    if (self->location->pod[0])
        return tt_link_silence_ms(self->link) < SILENCE_MS ? POD_DRAIN_MS : DRAIN_MS;
    return self->ending.farewell ? FAREWELL_MS : DRAIN_MS; /* nobody is asked, and it may take long to write */
}

tt_status_t control_check_draining(core_t *self)
{
    const int64_t waited_ms = (tt_now_ns(self->clock) - self->ending.draining_ns) / 1000000;
    if (self->ending.leave || waited_ms < s_patience_ms(self))
        return TT_OK;
    log_warn("leaving without the coordinator's word, after %lld ms", (long long)waited_ms);
    return control_leave(self, "signal");
}

/* ---- WELCOME: the job -------------------------------------------------------------------------------------------- */

static data_net_t s_net(core_t *self)
{
    return (data_net_t){.loop = self->loop,
        .keys = tt_location_keys(self->location),
        .index = tt_link_index(self->link),
        .instance = tt_link_instance(self->link),
        .clock = self->clock,
        .memory = &self->socks.memory,
        .dir = self->location->dir};
}

/*  A restarted coordinator welcomes us again: nothing to do then. */
static tt_status_t s_on_welcome(core_t *self, const tt_msg_WELCOME_t *welcome)
{
    if (self->control.welcome) {
        self->control.again = true;
        return self->ending.draining ? s_ask_to_leave(self) : TT_OK;
    }
    TT_TRY(model_open(&self->model, welcome->config, welcome->index));
    self->control.run_dir = tt_strdup(welcome->run_dir ? welcome->run_dir : "");
    self->control.start_ns = welcome->start_ns;
    if (tt_link_remote(self->link) && welcome->now_ns) /* in our own clock */
        self->control.start_ns = tt_now_ns(self->clock) - (welcome->now_ns - welcome->start_ns);
    tt_log_init("learner", (int)tt_link_index(self->link));
    const data_net_t net = s_net(self);
    const model_t *model = &self->model;
    log_info("job '%s': %zu parameters, %u shards, %u threads, %s", model->train.name, model->params,
        model->train.learner.shards, model->threads, tt_device_name(model->device));
    TT_TRY(data_open(&self->data, model, &net));
    statistics_open(&self->statistics, model);
    TT_TRY(evaluation_open(self));
    self->control.welcome = true;
    core_progress(self);
    return TT_OK;
}

/* ---- ROSTER ------------------------------------------------------------------------------------------------------ */

static void s_take_roster(core_t *self, tt_packet_t *packet)
{
    const tt_msg_ROSTER_t *roster = &packet->msg.ROSTER;
    const tt_msg_ROSTER_t *newest = self->control.roster_new ? &self->control.roster.msg.ROSTER : NULL;
    const uint64_t epoch = newest ? newest->epoch : self->view.epoch;
    if (roster->epoch <= epoch)
        return;
    tt_packet_clear(&self->control.roster);
    self->control.roster = *packet;
    self->control.roster_new = true;
    memset(packet, 0, sizeof *packet);
}

/*  The rank 0 before us may have died with it unsaid. A coordinator that was restarted may have lost its journal, and our
 *  snapshots with it. */
static void s_say_again(core_t *self, uint64_t leader)
{
    if (self->control.again || leader != tt_link_instance(self->link))
        report_solved_again(self);
    if (self->control.again)
        checkpoint_hurry(self);
    self->control.again = false;
}

tt_status_t control_enter(core_t *self)
{
    if (!self->control.roster_new)
        return TT_OK;
    self->control.roster_new = false;
    if (!self->control.welcome)
        return tt_err(TT_PROTOCOL, "a ROSTER came before WELCOME");
    const uint64_t leader = self->view.learners ? self->view.learner[0].instance : 0;
    tt_link_roster(self->link, &self->control.roster.msg.ROSTER);
    view_take(&self->view, &self->control.roster.msg.ROSTER, tt_link_instance(self->link), self->location);
    tt_packet_clear(&self->control.roster);
    const view_t *view = &self->view;
    log_info("roster: era %u, epoch %llu, generation %llu: %s%u of %u learners, %u collectors, %u aggregators",
        view->era, (unsigned long long)view->epoch, (unsigned long long)view->generation,
        view->member ? "rank " : "not among the ", view->member ? view->rank : view->learners, view->learners,
        view->collectors, view->aggregators);
    if (view->member && view->learners > self->model.train.learner.shards)
        return tt_err(
            TT_PROTOCOL, "the roster has %u learners for %u shards", view->learners, self->model.train.learner.shards);
    if (view->era != self->at.held_era)
        join_reset(self);
    core_progress(self);
    if (leader && view->learners && view->learner[0].instance != leader && leader != tt_link_instance(self->link))
        keeping_inherit(self, leader);
    TT_TRY(compose_on_roster(self, leader));
    TT_TRY(allreduce_enter(self->data.allreduce, view));
    tt_link_holds(self->link, self->at.holds, self->at.update, view->era, view->generation);
    if (self->ending.draining && !view->member)
        TT_TRY(control_leave(self, "signal"));
    if (core_leads(self)) { /* collectors may have missed it, and a new rank 0 speaks on another socket */
        TT_TRY(publish_send(publish_newest(self->data.publish), self->socks.weights, view->era, view->generation));
        s_say_again(self, leader);
    }
    feed_on_roster(self);
    fetch_retry(self);
    return TT_OK;
}

void control_end(core_t *self)
{
    tt_packet_clear(&self->control.roster);
    view_clear(&self->view);
    free(self->control.run_dir);
}

/* ---- ends -------------------------------------------------------------------------------------------------------- */

static void s_on_stop(core_t *self, const tt_msg_STOP_t *stop)
{
    ending_ask(&self->ending, stop->reason, stop->finish);
    log_info("asked to %s: %s", stop->finish ? "finish" : "end", self->ending.asked);
}

static tt_status_t s_on_message(void *ctx, tt_packet_t *packet)
{
    core_t *self = ctx;
    switch (packet->msg.type) {
    case TT_MSG_WELCOME:
        return s_on_welcome(self, &packet->msg.WELCOME);
    case TT_MSG_ROSTER:
        s_take_roster(self, packet);
        return TT_OK;
    case TT_MSG_STOP:
        s_on_stop(self, &packet->msg.STOP);
        return TT_OK;
    case TT_MSG_DRAIN:
        log_info("asked to leave: %s", packet->msg.DRAIN.reason ? packet->msg.DRAIN.reason : "");
        return control_leave(self, "asked to");
    default:
        log_debug("%s from the coordinator ignored", tt_msg_name(packet->msg.type));
        return TT_OK;
    }
}

tt_status_t control_on_link(void *ctx, int fd)
{
    (void)fd;
    return tt_link_each(((core_t *)ctx)->link, s_on_message, ctx);
}

/*  SIGTERM, SIGINT: ask to be let go; as long as nobody else holds the weights we stay and train. The last learner leaves
 *  a checkpoint first: perhaps nobody comes to take them over. A second signal ends at once. */
tt_status_t control_on_signal(void *ctx, int fd)
{
    core_t *self = ctx;
    const int signal = tt_signals_next(fd);
    if (signal == 0)
        return TT_OK;
    log_info("signal %d: leaving", signal);
    if (self->ending.draining || !self->view.member || !self->at.holds)
        return control_leave(self, "signal");
    const bool alone = self->view.learners == 1; /* then: at the next version, see update.c */
    ending_drain(&self->ending, tt_now_ns(self->clock), alone);
    return self->ending.farewell && !self->location->pod[0] ? TT_OK : s_ask_to_leave(self);
}
