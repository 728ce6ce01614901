#include "learner/core.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { TICK_MS = 100, GLANCE_NS = 250000 };

tt_status_t core_serve(core_t *self, int64_t timeout_ms)
{
    tt_status_t status = tt_loop_poll(self->loop, pieces_wait_ms(self, timeout_ms));
    if (status == TT_AGAIN)
        status = TT_OK;
    if (status == TT_OK)
        status = control_enter(self);
    if (status == TT_OK)
        pieces_turn(self);
    return status == TT_OK && self->ending.draining ? control_check_draining(self) : status;
}

tt_status_t core_glance(core_t *self)
{
    pace_t *pace = &self->pace;
    if (pace->laps.lap_ns - pace->served_ns < GLANCE_NS)
        return TT_OK;
    TT_TRY(core_serve(self, 0));
    core_lap(self, CORE_serve);
    pace->served_ns = pace->laps.lap_ns;
    return TT_OK;
}

void core_progress(core_t *self)
{
    self->pace.progress_ns = tt_now_ns(self->clock);
    tt_link_progress(self->link, ++self->pace.progress);
}

static void s_on_progress(void *ctx)
{
    core_progress(ctx);
}

tt_progress_t core_gets_on(core_t *self)
{
    return (tt_progress_t){s_on_progress, self};
}

/*  In a pod, whether there is anybody to play or to sum with is for the operator to see to. */
static bool s_waits_for_members(const core_t *self)
{
    return self->location->pod[0] &&
           (self->view.collectors == 0 || (self->view.learners > 1 && self->view.aggregators == 0));
}

/*  Collectors may take long over a batch, and another learner over a snapshot or an evaluation: only the coordinator hears that they get on. */
static bool s_is_watched(const core_t *self)
{
    const bool others = strstr(self->pace.waiting, CORE_OTHERS) || (self->evaluate && self->view.rank > 0);
    return others && tt_link_silence_ms(self->link) <= (int64_t)self->model.train.net.lease_ms;
}

/*  The coordinator ends a run that is stuck; this is for the case that it cannot. */
static tt_status_t s_check_deadline(core_t *self)
{
    if (s_waits_for_members(self) || s_is_watched(self))
        self->pace.progress_ns = tt_now_ns(self->clock);
    if (!self->control.welcome || !self->view.member || self->ending.reason)
        return TT_OK;
    const int64_t waited_s = (tt_now_ns(self->clock) - self->pace.progress_ns) / 1000000000;
    if (waited_s <= 2 * (int64_t)self->model.train.net.stall_s)
        return TT_OK;
    return tt_err(
        TT_TIMEOUT, "nothing moved for %lld s (twice net.stall_s); last: %s", (long long)waited_s, self->pace.waiting);
}

tt_status_t core_wait(core_t *self, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(self->pace.waiting, sizeof self->pace.waiting, fmt, ap);
    va_end(ap);
    tt_link_state(self->link, "%s", self->pace.waiting);
    TT_TRY(core_serve(self, TICK_MS));
    return s_check_deadline(self);
}

const char *const core_phase_names[CORE_PHASE_COUNT] = {
#define X(name) #name,
    CORE_PHASES(X)
#undef X
};

void core_start_laps(core_t *self)
{
    self->pace.laps.lap_ns = tt_now_ns(self->clock);
}

void core_lap(core_t *self, core_phase_t phase)
{
    tt_lap(&self->pace.laps, phase, tt_now_ns(self->clock));
}

void core_tell_laps(core_t *self)
{
    tt_link_spent(self->link, core_phase_names, self->pace.laps.spent_ns, CORE_PHASE_COUNT);
}

int64_t core_spent_ns(core_t *self, core_phase_t phase)
{
    pace_t *pace = &self->pace;
    const int64_t spent_ns = pace->laps.spent_ns[phase] - pace->told_ns[phase];
    pace->told_ns[phase] = pace->laps.spent_ns[phase];
    return spent_ns;
}

bool core_leads(const core_t *self)
{
    return self->view.member && self->view.rank == 0 && self->at.holds;
}
