#include "controller/containers.h"
#include <stdlib.h>
#include "common/base/mem.h"

enum { SIDECAR_GRACE_MS = 30000, POLL_MS = 100, CANNOT_START = 128 };

/*  In ms. */
static const tt_backoff_rule_t s_restarts = {.at_once = 1, .first = 1000, .most = 60000, .steady = 60000};

void tt_containers_init(tt_containers_t *self, size_t count, tt_substrate_t *substrate, const tt_clock_t *clock)
{
    *self = (tt_containers_t){.count = count, .substrate = substrate, .clock = clock};
    self->list = tt_array0(count, sizeof *self->list);
}

void tt_containers_clear(tt_containers_t *self)
{
    free(self->list);
    *self = (tt_containers_t){0};
}

/*  An init container that stays beside the others. */
static bool s_is_sidecar(const tt_container_t *self)
{
    return self->init && self->restart == TT_RESTART_ALWAYS;
}

/* ---- starts ------------------------------------------------------------------------------------------------------ */

/*  Init containers wait for those before them, the others for all of them. */
static bool s_its_turn(const tt_containers_t *self, size_t index)
{
    for (size_t i = 0; i < index && self->list[i].init; i++) {
        const tt_container_t *before = &self->list[i];
        const bool stands = s_is_sidecar(before) && before->state != TT_CONTAINER_NEW;
        if (!stands && (before->state != TT_CONTAINER_ENDED || before->exit_code != 0))
            return false;
    }
    return true;
}

static bool s_is_due(const tt_containers_t *self, size_t index, int64_t now)
{
    const tt_container_t *one = &self->list[index];
    if (one->state == TT_CONTAINER_NEW)
        return s_its_turn(self, index);
    return one->state == TT_CONTAINER_WAITING && now >= one->due_ms;
}

static void s_start(tt_containers_t *self, size_t index, tt_container_start_fn start, void *ctx)
{
    tt_container_t *one = &self->list[index];
    tt_backoff_begin(&one->backoff, tt_now_ms(self->clock));
    one->state = TT_CONTAINER_RUNNING;
    if (start(ctx, index, &one->id) == TT_OK)
        return;
    one->state = TT_CONTAINER_ENDED; /* on one machine it does not get better by waiting */
    one->exit_code = CANNOT_START;
}

/* ---- ends -------------------------------------------------------------------------------------------------------- */

static bool s_comes_again(const tt_containers_t *self, const tt_container_t *one)
{
    if (self->stopping || one->dismissed)
        return false;
    return one->restart == TT_RESTART_ALWAYS || (one->restart == TT_RESTART_ON_FAILURE && one->exit_code != 0);
}

size_t tt_containers_ended(tt_containers_t *self, const tt_replica_event_t *event)
{
    size_t i = 0;
    while (i < self->count && (self->list[i].state != TT_CONTAINER_RUNNING || self->list[i].id != event->id))
        i++;
    if (i == self->count)
        return i;
    tt_container_t *one = &self->list[i];
    one->exit_code = event->exit_code;
    one->state = TT_CONTAINER_ENDED;
    one->id = 0;
    if (s_comes_again(self, one)) {
        one->due_ms = tt_backoff_fail(&one->backoff, &s_restarts, tt_now_ms(self->clock));
        one->restarts++;
        one->state = TT_CONTAINER_WAITING;
    }
    return i;
}

static bool s_main_over(const tt_containers_t *self)
{
    for (size_t i = 0; i < self->count; i++)
        if (!self->list[i].init && self->list[i].state != TT_CONTAINER_ENDED)
            return false;
    return true;
}

static void s_ask(tt_containers_t *self, const tt_container_t *one, int grace_ms)
{
    self->substrate->ops->stop(self->substrate, one->id, grace_ms);
}

static void s_dismiss_sidecars(tt_containers_t *self)
{
    for (size_t i = 0; i < self->count; i++) {
        tt_container_t *one = &self->list[i];
        if (!s_is_sidecar(one) || one->dismissed)
            continue;
        one->dismissed = true;
        if (one->state == TT_CONTAINER_RUNNING)
            s_ask(self, one, SIDECAR_GRACE_MS);
        else
            one->state = TT_CONTAINER_ENDED;
    }
}

static void s_ask_all(tt_containers_t *self)
{
    self->stop_at_ms = 0;
    for (size_t i = 0; i < self->count; i++)
        if (self->list[i].state == TT_CONTAINER_RUNNING)
            s_ask(self, &self->list[i], self->grace_ms);
}

void tt_containers_stop(tt_containers_t *self, int64_t after_ms, int grace_ms)
{
    self->stopping = true;
    self->grace_ms = grace_ms;
    self->stop_at_ms = tt_now_ms(self->clock) + after_ms;
    if (after_ms <= 0)
        s_ask_all(self);
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

bool tt_containers_step(tt_containers_t *self, tt_container_start_fn start, void *ctx)
{
    bool changed = false;
    const int64_t now = tt_now_ms(self->clock);
    if (self->stop_at_ms && now >= self->stop_at_ms)
        s_ask_all(self);
    for (size_t i = 0; i < self->count && !self->stopping; i++)
        if (s_is_due(self, i, now)) {
            s_start(self, i, start, ctx);
            changed = true;
        }
    if (s_main_over(self))
        s_dismiss_sidecars(self);
    return changed;
}

int64_t tt_containers_due_ms(const tt_containers_t *self)
{
    const int64_t now = tt_now_ms(self->clock);
    int64_t due = -1;
    if (self->stopping)
        return POLL_MS; /* the substrate kills what outlives its grace when it is polled */
    for (size_t i = 0; i < self->count; i++) {
        const int64_t left = self->list[i].due_ms > now ? self->list[i].due_ms - now : 0;
        if (self->list[i].state == TT_CONTAINER_WAITING && (due < 0 || left < due))
            due = left;
    }
    return due;
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

size_t tt_containers_running(const tt_containers_t *self)
{
    size_t count = 0;
    for (size_t i = 0; i < self->count; i++)
        count += self->list[i].state == TT_CONTAINER_RUNNING;
    return count;
}

bool tt_containers_ready(const tt_containers_t *self)
{
    for (size_t i = 0; i < self->count; i++)
        if (!self->list[i].init && self->list[i].state != TT_CONTAINER_RUNNING)
            return false;
    return true;
}

tt_job_phase_t tt_containers_phase(const tt_containers_t *self)
{
    bool begun = false, over = true, failed = false;
    for (size_t i = 0; i < self->count; i++) {
        const tt_container_t *one = &self->list[i];
        const bool lost = one->state == TT_CONTAINER_ENDED && one->exit_code != 0;
        if (one->init && lost && !s_is_sidecar(one))
            return TT_JOB_FAILED;
        if (one->init)
            continue;
        begun |= one->state != TT_CONTAINER_NEW;
        over &= one->state == TT_CONTAINER_ENDED;
        failed |= lost;
    }
    if (over)
        return failed ? TT_JOB_FAILED : TT_JOB_SUCCEEDED;
    return begun ? TT_JOB_RUNNING : TT_JOB_PENDING;
}
