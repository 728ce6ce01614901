#include "controller/controller.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/backoff.h"
#include "common/base/mem.h"
#define TT_LOG_COMPONENT "controller"
#include "common/base/log.h"

enum { EVENTS_AT_ONCE = 32, REASON = 640 };

/*  In ms. Once may be a person's kill or a crash by chance: the run waits for it, so it comes back at once. */
static const tt_backoff_rule_t s_restarts = {.at_once = 1, .first = 100, .most = 10000, .steady = 30000};

/*  One replica number of a role, whether it runs or not. */
typedef struct {
    tt_replica_id_t id; /* 0 = not running                                     */
    tt_backoff_t backoff;
    uint32_t in_vain;    /* ends in a row while the job got no further          */
    uint64_t made;       /* of the controller, when it was started              */
    int64_t start_at_ms; /* not started before                                  */
    int64_t stop_at_ms;  /* over the desired number: stopped then; 0 = wanted   */
    bool waits;          /* its end is clean, and decided on when we know why   */
    tt_replica_event_t end;
} slot_t;

typedef struct {
    const tt_role_t *role;
    uint32_t desired;
    slot_t *slots;
    size_t slot_count;
} group_t;

struct tt_controller {
    const tt_job_t *job;
    tt_substrate_t *substrate;
    const tt_clock_t *clock;
    tt_observer_t observer;
    group_t *groups;
    size_t group_count;
    bool winding_down; /* only roles that decide the job are started again */
    bool stopping;     /* nothing is                                       */
    uint64_t made;     /* tt_controller_progress */
    tt_job_phase_t phase;
    int exit_code;
    char reason[REASON];
};

tt_status_t tt_controller_new(tt_controller_t **self_p, const tt_job_t *job, tt_substrate_t *substrate,
    const tt_clock_t *clock, const tt_observer_t *observer)
{
    TT_TRY(tt_job_check(job));
    tt_controller_t *self = tt_new0(sizeof *self);
    self->job = job;
    self->substrate = substrate;
    self->clock = clock;
    self->observer = *observer;
    self->phase = TT_JOB_RUNNING;
    self->group_count = job->role_count;
    self->groups = tt_array0(job->role_count, sizeof *self->groups);
    for (size_t i = 0; i < job->role_count; i++) {
        self->groups[i].role = &job->roles[i];
        self->groups[i].desired = job->roles[i].replicas;
    }
    *self_p = self;
    return TT_OK;
}

void tt_controller_destroy(tt_controller_t **self_p)
{
    if (!*self_p)
        return;
    for (size_t i = 0; i < (*self_p)->group_count; i++)
        free((*self_p)->groups[i].slots);
    free((*self_p)->groups);
    free(*self_p);
    *self_p = NULL;
}

static group_t *s_group(const tt_controller_t *self, const char *role)
{
    for (size_t i = 0; i < self->group_count; i++)
        if (strcmp(self->groups[i].role->name, role) == 0)
            return &self->groups[i];
    return NULL;
}

/* ---- ends -------------------------------------------------------------------------------------------------------- */

static void s_finish(tt_controller_t *self, tt_job_phase_t phase, int exit_code, const char *reason)
{
    if (self->phase != TT_JOB_RUNNING)
        return;
    self->phase = phase;
    self->exit_code = exit_code;
    snprintf(self->reason, sizeof self->reason, "%s", reason);
}

static void s_fail(
    tt_controller_t *self, const group_t *group, uint32_t index, const tt_replica_event_t *event, const char *why)
{
    char reason[REASON];
    snprintf(reason, sizeof reason, "%s/%u: %s%s%s", group->role->name, index, event->reason, event->why, why);
    s_finish(self, TT_JOB_FAILED, event->exit_code ? event->exit_code : 70, reason);
}

/*  It will be started again, in a while. How often it may is another question than how soon: what ends time and again while the job goes
 *  on without it is no reason to end the job, and none to start it all the time. */
static void s_back_off(tt_controller_t *self, slot_t *slot)
{
    slot->start_at_ms = tt_backoff_fail(&slot->backoff, &s_restarts, tt_now_ms(self->clock));
    if (slot->made != self->made)
        slot->in_vain = 0;
    else
        slot->in_vain = slot->backoff.failures == 1 ? 1 : slot->in_vain + 1;
}

/*  A wanted replica has ended: the job ends with it, or it comes back. */
static void s_decide(tt_controller_t *self, group_t *group, uint32_t index, const tt_replica_event_t *event)
{
    slot_t *slot = &group->slots[index];
    const tt_role_t *role = group->role;
    const bool failed = event->exit_code != 0;
    if (!failed && role->decides_job) {
        s_finish(self, TT_JOB_SUCCEEDED, 0, "");
        return;
    }
    const bool last_word = self->winding_down && role->decides_job && !event->signal; /* it said so, and then went */
    if (failed && (role->restart == TT_RESTART_NEVER || tt_exit_is_final(event->exit_code) || last_word)) {
        s_fail(self, group, index, event, "");
        return;
    }
    if (!failed && role->restart != TT_RESTART_ALWAYS) {
        slot->start_at_ms = INT64_MAX; /* done */
        return;
    }
    if (self->stopping) {
        log_info(
            "%s/%u: %s%s; not started again: everything is told to end", role->name, index, event->reason, event->why);
        return;
    }
    s_back_off(self, slot);
    if (slot->in_vain > role->backoff_limit) {
        s_fail(self, group, index, event, ", and so every time it was started again; given up");
        return;
    }
    log_warn("%s/%u: %s%s; starting it again", role->name, index, event->reason, event->why);
}

/*  Nobody needs another one: the job is over for it, because another replica has decided, or will have. */
static bool s_over(const tt_controller_t *self, const group_t *group)
{
    return self->phase != TT_JOB_RUNNING || ((self->stopping || self->winding_down) && !group->role->decides_job);
}

static void s_ended(tt_controller_t *self, group_t *group, uint32_t index, const tt_replica_event_t *event)
{
    slot_t *slot = &group->slots[index];
    slot->id = 0;
    if (self->observer.ended)
        self->observer.ended(self->observer.ctx, group->role->name, index, event);
    if (index >= group->desired) {
        *slot = (slot_t){0}; /* drained: forget its history */
        return;
    }
    slot->stop_at_ms = 0;
    const bool clean = event->exit_code == 0 && !group->role->decides_job && group->role->restart == TT_RESTART_ALWAYS;
    if (clean) {
        slot->waits = true;
        slot->end = *event;
    } else if (!s_over(self, group)) {
        s_decide(self, group, index, event);
    }
}

static void s_take_event(tt_controller_t *self, const tt_replica_event_t *event)
{
    if (event->phase == TT_PHASE_RUNNING)
        return;
    for (size_t g = 0; g < self->group_count; g++)
        for (size_t i = 0; i < self->groups[g].slot_count; i++)
            if (self->groups[g].slots[i].id == event->id) {
                s_ended(self, &self->groups[g], (uint32_t)i, event);
                return;
            }
}

static tt_status_t s_take_events(tt_controller_t *self)
{
    size_t count;
    do {
        tt_replica_event_t events[EVENTS_AT_ONCE];
        count = EVENTS_AT_ONCE;
        TT_TRY(self->substrate->ops->poll(self->substrate, events, &count));
        for (size_t i = 0; i < count; i++)
            s_take_event(self, &events[i]);
    } while (count == EVENTS_AT_ONCE);
    return TT_OK;
}

/* ---- starts ------------------------------------------------------------------------------------------------------ */

static void s_reserve(group_t *group)
{
    if (group->slot_count >= group->desired)
        return;
    group->slots = tt_realloc(group->slots, tt_mul(group->desired, sizeof *group->slots));
    memset(group->slots + group->slot_count, 0, (group->desired - group->slot_count) * sizeof *group->slots);
    group->slot_count = group->desired;
}

static void s_start(tt_controller_t *self, group_t *group, uint32_t index)
{
    slot_t *slot = &group->slots[index];
    const tt_replica_spec_t spec = {
        .job = self->job->name, .role = group->role->name, .index = index, .template_ = &group->role->template_};
    tt_backoff_begin(&slot->backoff, tt_now_ms(self->clock));
    slot->made = self->made;
    const tt_status_t status = self->substrate->ops->start(self->substrate, &spec, &slot->id);
    if (status == TT_OK) {
        if (self->observer.started)
            self->observer.started(self->observer.ctx, group->role->name, index, slot->id);
        return;
    }
    tt_replica_event_t event = {
        .phase = TT_PHASE_FAILED, .exit_code = status == TT_NOT_FOUND ? 66 : tt_status_exit_code(TT_OS)};
    snprintf(event.reason, sizeof event.reason, "%.383s", tt_err_text());
    s_decide(self, group, index, &event);
}

/*  Roles that this one depends on have all their replicas running. */
static bool s_may_start(const tt_controller_t *self, const group_t *group)
{
    for (char **name = group->role->depends_on; name && *name; name++) {
        const group_t *first = s_group(self, *name);
        if (first && tt_controller_running(self, *name) < first->desired)
            return false;
    }
    return true;
}

/*  It is wanted, is not there, and what became of it is known. */
static bool s_is_missing(const group_t *group, size_t index)
{
    const slot_t *slot = &group->slots[index];
    return index < group->desired && !slot->id && !slot->waits;
}

static void s_start_missing(tt_controller_t *self)
{
    const int64_t now = tt_now_ms(self->clock);
    for (size_t g = 0; g < self->group_count; g++) {
        group_t *group = &self->groups[g];
        s_reserve(group);
        if (!s_may_start(self, group) || (self->winding_down && !group->role->decides_job))
            continue;
        for (uint32_t i = 0; i < group->desired; i++)
            if (s_is_missing(group, i) && now >= group->slots[i].start_at_ms && self->phase == TT_JOB_RUNNING)
                s_start(self, group, i);
    }
}

static void s_stop_surplus(tt_controller_t *self)
{
    const int64_t now = tt_now_ms(self->clock);
    for (size_t g = 0; g < self->group_count; g++)
        for (size_t i = 0; i < self->groups[g].slot_count; i++) {
            slot_t *slot = &self->groups[g].slots[i];
            if (slot->id && slot->stop_at_ms && now >= slot->stop_at_ms) {
                slot->stop_at_ms = INT64_MAX;
                self->substrate->ops->stop(self->substrate, slot->id, self->groups[g].role->template_.grace_s * 1000);
            }
        }
}

tt_status_t tt_controller_tick(tt_controller_t *self)
{
    TT_TRY(s_take_events(self));
    if (!self->stopping && self->phase == TT_JOB_RUNNING)
        s_start_missing(self);
    s_stop_surplus(self);
    return TT_OK;
}

int64_t tt_controller_due_ms(const tt_controller_t *self)
{
    const int64_t now = tt_now_ms(self->clock);
    int64_t due = INT64_MAX;
    for (size_t g = 0; g < self->group_count; g++)
        for (size_t i = 0; i < self->groups[g].slot_count; i++) {
            const slot_t *slot = &self->groups[g].slots[i];
            int64_t at = INT64_MAX;
            if (slot->id && slot->stop_at_ms)
                at = slot->stop_at_ms;
            else if (s_is_missing(&self->groups[g], i) && !self->stopping && self->phase == TT_JOB_RUNNING &&
                     (!self->winding_down || self->groups[g].role->decides_job))
                at = slot->start_at_ms;
            if (at < due)
                due = at;
        }
    if (due == INT64_MAX)
        return self->stopping && tt_controller_running(self, NULL) ? 100 : -1; /* the substrate's kill after grace */
    return due > now ? due - now : 0;
}

/* ---- orders ------------------------------------------------------------------------------------------------------ */

tt_status_t tt_controller_scale(tt_controller_t *self, const char *role, uint32_t replicas, int grace_ms)
{
    group_t *group = s_group(self, role);
    if (!group)
        return tt_err(TT_NOT_FOUND, "job %s has no role '%s'", self->job->name, role);
    const int64_t now = tt_now_ms(self->clock);
    group->desired = replicas;
    s_reserve(group);
    for (uint32_t i = 0; i < group->slot_count; i++) {
        slot_t *slot = &group->slots[i];
        if (i < replicas)
            slot->stop_at_ms = 0;
        else if (slot->id && !slot->stop_at_ms)
            slot->stop_at_ms = now + grace_ms;
    }
    return TT_OK;
}

void tt_controller_wind_down(tt_controller_t *self)
{
    self->winding_down = true;
}

void tt_controller_stop(tt_controller_t *self, int grace_ms)
{
    self->stopping = true;
    const bool all = grace_ms == 0 || self->phase == TT_JOB_FAILED; /* nobody else tells the deciding role of that */
    for (size_t g = 0; g < self->group_count; g++)
        for (size_t i = 0; i < self->groups[g].slot_count; i++)
            if (self->groups[g].slots[i].id && (all || !self->groups[g].role->decides_job))
                self->substrate->ops->stop(self->substrate, self->groups[g].slots[i].id, grace_ms);
}

tt_replica_id_t tt_controller_replica(const tt_controller_t *self, const char *role, uint32_t index)
{
    const group_t *group = s_group(self, role);
    return group && index < group->slot_count ? group->slots[index].id : 0;
}

void tt_controller_kill(tt_controller_t *self, const char *role, uint32_t index)
{
    const tt_replica_id_t id = tt_controller_replica(self, role, index);
    if (id)
        self->substrate->ops->stop(self->substrate, id, 0);
}

void tt_controller_missed(tt_controller_t *self, const char *role, uint32_t index, int pid)
{
    group_t *group = s_group(self, role);
    slot_t *slot = group && index < group->slot_count ? &group->slots[index] : NULL;
    if (!slot || !slot->waits || slot->end.pid != pid)
        return;
    slot->waits = false;
    if (index >= group->desired)
        *slot = (slot_t){0};
    else if (!s_over(self, group))
        s_decide(self, group, index, &slot->end);
}

void tt_controller_progress(tt_controller_t *self)
{
    self->made++;
}

static void s_retell(const tt_controller_t *self, const group_t *group, uint32_t index)
{
    const slot_t *slot = &group->slots[index];
    if (slot->id && self->observer.started)
        self->observer.started(self->observer.ctx, group->role->name, index, slot->id);
    if (slot->waits && self->observer.ended)
        self->observer.ended(self->observer.ctx, group->role->name, index, &slot->end);
}

void tt_controller_retell(const tt_controller_t *self)
{
    for (size_t g = 0; g < self->group_count; g++)
        for (size_t i = 0; i < self->groups[g].slot_count; i++)
            s_retell(self, &self->groups[g], (uint32_t)i);
}

uint32_t tt_controller_running(const tt_controller_t *self, const char *role)
{
    uint32_t count = 0;
    for (size_t g = 0; g < self->group_count; g++)
        if (!role || strcmp(self->groups[g].role->name, role) == 0)
            for (size_t i = 0; i < self->groups[g].slot_count; i++)
                count += self->groups[g].slots[i].id != 0;
    return count;
}

tt_job_phase_t tt_controller_phase(const tt_controller_t *self, int *exit_code, const char **reason)
{
    if (exit_code)
        *exit_code = self->exit_code;
    if (reason)
        *reason = self->reason;
    return self->phase;
}
