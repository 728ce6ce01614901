#include "elasticdl/task.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/text.h"

static const char *const s_steps[] = {
    [EDL_TASK_QUEUED] = "waiting in its queue",
    [EDL_TASK_PS] = "making parameter servers",
    [EDL_TASK_WORKERS] = "making workers",
    [EDL_TASK_CONFIG] = "configuring",
    [EDL_TASK_RUN_PS] = "starting parameter servers",
    [EDL_TASK_RUN] = "starting workers",
    [EDL_TASK_RUNNING] = "running",
    [EDL_TASK_BACK] = "giving its places back",
    [EDL_TASK_ENDING] = "ending",
    [EDL_TASK_OVER] = "over",
};
static const char *const s_members[] = {
    [MEMBER_NONE] = "none",
    [MEMBER_MADE] = "made",
    [MEMBER_FOUND] = "made",
    [MEMBER_READY] = "ready",
    [MEMBER_CONFIGURED] = "configured",
    [MEMBER_RUNNING] = "running",
    [MEMBER_ENDED] = "ended",
};

static const char *s_step(const edl_task_t *self)
{
    return self->gang && self->step == EDL_TASK_WORKERS ? "making members" : s_steps[self->step];
}

/* ---- life -------------------------------------------------------------------------------------------------------------- */

/*  The step that makes the first members, or before which it waits for them. */
static edl_task_step_t s_first(const edl_task_t *self)
{
    if (self->request.queue[0] && !self->admitted)
        return EDL_TASK_QUEUED;
    return self->request.ps > 0 && !self->gang ? EDL_TASK_PS : EDL_TASK_WORKERS;
}

void edl_task_new(
    edl_task_t **self_p, int id, const elasticdl_request_t *request, const edl_task_limits_t *limits, int64_t now_ms)
{
    edl_task_t *self = tt_new0(sizeof *self);
    self->id = id;
    self->request = *request;
    self->limits = limits;
    self->step = s_first(self);
    self->begun_ms = self->since_ms = now_ms;
    self->count = request->ps + request->workers;
    self->members = tt_array0((size_t)self->count, sizeof *self->members);
    self->addresses = tt_array0((size_t)self->count, sizeof *self->addresses);
    for (int i = 0; i < self->count; i++)
        self->members[i].exit_code = -1;
    *self_p = self;
}

void edl_task_together(edl_task_t *self, const gang_t *gang)
{
    self->gang = gang;
    self->step = s_first(self);
}

void edl_task_destroy(edl_task_t **self_p)
{
    edl_task_t *self = *self_p;
    if (!self)
        return;
    free(self->members);
    free(self->addresses);
    free(self);
    *self_p = NULL;
}

/* ---- steps --------------------------------------------------------------------------------------------------------------- */

static void s_enter(edl_task_t *self, edl_task_step_t step, int64_t now_ms)
{
    self->step = step;
    self->since_ms = now_ms;
    for (int i = 0; i < self->count; i++)
        self->members[i].again_ms = now_ms;
}

static void s_end(edl_task_t *self, edl_task_outcome_t outcome, const char *reason, int64_t now_ms)
{
    if (self->outcome != EDL_TASK_UNDECIDED)
        return;
    self->outcome = outcome;
    tt_text_copy(self->reason, sizeof self->reason, reason);
    s_enter(self, EDL_TASK_ENDING, now_ms);
    for (int i = 0; i < self->count; i++)
        self->members[i].asked = false;
}

/*  The members that a step is about, [*from, *to), and the state that ends it. */
static member_state_t s_aim(const edl_task_t *self, int *from, int *to)
{
    const int ps = self->request.ps;
    *from = 0;
    *to = self->count;
    switch (self->step) {
    case EDL_TASK_PS:
        *to = ps;
        return MEMBER_READY;
    case EDL_TASK_WORKERS:
        *from = self->gang ? 0 : ps;
        return MEMBER_READY;
    case EDL_TASK_CONFIG:
        return MEMBER_CONFIGURED;
    case EDL_TASK_RUN_PS:
        *to = ps;
        return MEMBER_RUNNING;
    case EDL_TASK_RUN:
        *from = ps;
        return MEMBER_RUNNING;
    default:
        *from = ps; /* the parameter servers never end by themselves */
        return MEMBER_ENDED;
    }
}

/*  A member that the step waits for; -1 = it is done. */
static int s_waits_for(const edl_task_t *self)
{
    int from, to;
    const member_state_t aim = s_aim(self, &from, &to);
    for (int i = from; i < to; i++)
        if (self->members[i].state < aim)
            return i;
    return -1;
}

static bool s_all_gone(const edl_task_t *self)
{
    for (int i = 0; i < self->count; i++)
        if (self->members[i].present)
            return false;
    return true;
}

static int s_limit_ms(const edl_task_t *self)
{
    if (self->step == EDL_TASK_PS || self->step == EDL_TASK_WORKERS)
        return self->limits->ready_ms;
    return self->step == EDL_TASK_ENDING ? self->limits->end_ms : self->limits->step_ms;
}

static void s_late(edl_task_t *self, int64_t now_ms)
{
    const int who = s_waits_for(self);
    const char *why = self->members[who].reason;
    char name[16], text[600];
    edl_task_member_name(self, who, name);
    snprintf(text, sizeof text, "%s: %s for %d s, and it is not done%s%.400s", name, s_step(self),
        s_limit_ms(self) / 1000, why[0] ? ": " : "", why);
    edl_task_fail(self, text, now_ms);
}

static void s_silent(edl_task_t *self, int64_t now_ms)
{
    for (int i = 0; i < self->count; i++) {
        const edl_task_member_t *member = &self->members[i];
        char text[128];
        if (member->state != MEMBER_RUNNING || now_ms - member->heard_ms < self->limits->silent_ms)
            continue;
        snprintf(text, sizeof text, "its agent has not answered for %d s", self->limits->silent_ms / 1000);
        edl_task_lost(self, i, text, now_ms);
        return;
    }
}

/*  When its request has it that it has failed. */
static int64_t s_deadline_ms(const edl_task_t *self)
{
    const int deadline_s = self->request.deadline_s;
    return deadline_s ? self->begun_ms + 1000 * (int64_t)deadline_s : INT64_MAX;
}

static void s_overdue(edl_task_t *self, int64_t now_ms)
{
    char text[96];
    snprintf(text, sizeof text, "it has not ended %d s after it was asked for, its deadline", self->request.deadline_s);
    edl_task_fail(self, text, now_ms);
}

/*  Of a task that was adopted: before programs are started all are configured, so who has no config any more has lost its program, too. */
static void s_find_anew(edl_task_t *self, int64_t now_ms)
{
    int fresh = -1;
    bool begun = false;
    for (int i = 0; i < self->count; i++) {
        begun |= self->members[i].state >= MEMBER_RUNNING;
        if (self->members[i].state == MEMBER_READY)
            fresh = i;
    }
    if (begun && fresh >= 0)
        edl_task_lost(self, fresh, "its agent was started anew: its program is gone", now_ms);
}

void edl_task_admit(edl_task_t *self, bool admitted, const char *words)
{
    self->admitted = admitted;
    tt_text_copy(self->waits, sizeof self->waits, admitted ? "" : words);
}

/*  Nobody of its members is there. */
static void s_requeue(edl_task_t *self, int64_t now_ms)
{
    memset(self->members, 0, (size_t)self->count * sizeof *self->members);
    memset(self->addresses, 0, (size_t)self->count * sizeof *self->addresses);
    for (int i = 0; i < self->count; i++)
        self->members[i].exit_code = -1;
    self->adopted = false;
    s_enter(self, s_first(self), now_ms);
}

/*  It begins, or gives back what it has: what its queue decides. False: that decides nothing now. */
static bool s_queued(edl_task_t *self, int64_t now_ms)
{
    const bool has = self->step > EDL_TASK_QUEUED && self->step <= EDL_TASK_RUNNING;
    if (self->step == EDL_TASK_QUEUED && self->admitted)
        s_enter(self, s_first(self), now_ms);
    else if (self->step == EDL_TASK_BACK && s_all_gone(self))
        s_requeue(self, now_ms);
    else if (has && self->request.queue[0] && !self->admitted)
        s_enter(self, EDL_TASK_BACK, now_ms);
    else
        return false;
    for (int i = 0; i < self->count; i++)
        self->members[i].asked = false;
    return true;
}

/*  Is the step done, or late? */
static void s_advance(edl_task_t *self, int64_t now_ms)
{
    const bool late = now_ms - self->since_ms >= s_limit_ms(self);
    const bool rests = self->step == EDL_TASK_QUEUED || self->step == EDL_TASK_BACK;
    if (self->step == EDL_TASK_OVER)
        return;
    if (self->step == EDL_TASK_ENDING) {
        if (s_all_gone(self) || late)
            s_enter(self, EDL_TASK_OVER, now_ms);
    } else if (!rests && s_waits_for(self) < 0) {
        if (self->step == EDL_TASK_RUNNING)
            s_end(self, EDL_TASK_SUCCEEDED, "", now_ms);
        else
            s_enter(self, self->step + 1, now_ms);
        if (self->step == EDL_TASK_CONFIG && self->adopted)
            s_find_anew(self, now_ms);
    } else if (now_ms >= s_deadline_ms(self)) {
        s_overdue(self, now_ms);
    } else if (s_queued(self, now_ms) || rests) {
        return;
    } else if (self->step == EDL_TASK_RUNNING) {
        s_silent(self, now_ms);
    } else if (late) {
        s_late(self, now_ms);
    }
}

/* ---- what is to be done ----------------------------------------------------------------------------------------------------- */

static edl_task_act_t s_wants(const edl_task_member_t *member)
{
    static const edl_task_act_t acts[] = {
        [MEMBER_NONE] = EDL_TASK_MAKE,
        [MEMBER_MADE] = EDL_TASK_FIND,
        [MEMBER_FOUND] = EDL_TASK_ASK_READY,
        [MEMBER_READY] = EDL_TASK_SEND_CONFIG,
        [MEMBER_CONFIGURED] = EDL_TASK_SEND_RUN,
        [MEMBER_RUNNING] = EDL_TASK_WATCH,
        [MEMBER_ENDED] = EDL_TASK_NOTHING,
    };
    return acts[member->state];
}

/*  Members are asked up to the state that the step aims at; those that run are watched in any step. */
static edl_task_act_t s_act(edl_task_t *self, int i, int from, int to, member_state_t aim, int64_t now_ms)
{
    edl_task_member_t *member = &self->members[i];
    const bool here = i >= from && i < to && member->state < aim;
    if (member->asked || now_ms < member->again_ms || (!here && member->state != MEMBER_RUNNING))
        return EDL_TASK_NOTHING;
    member->asked = true;
    return s_wants(member);
}

static edl_task_act_t s_act_ending(edl_task_member_t *member)
{
    if (!member->present || member->asked)
        return EDL_TASK_NOTHING;
    member->asked = true;
    return EDL_TASK_END;
}

edl_task_act_t edl_task_next(edl_task_t *self, int *member, int64_t now_ms)
{
    for (edl_task_step_t before = EDL_TASK_OVER; before != self->step;) { /* a step may be done as soon as it begins */
        before = self->step;
        s_advance(self, now_ms);
    }
    int from, to;
    const member_state_t aim = s_aim(self, &from, &to);
    for (int i = 0; i < self->count && self->step != EDL_TASK_OVER && self->step != EDL_TASK_QUEUED; i++) {
        const bool ends = self->step == EDL_TASK_ENDING || self->step == EDL_TASK_BACK;
        const edl_task_act_t act = ends ? s_act_ending(&self->members[i]) : s_act(self, i, from, to, aim, now_ms);
        *member = i;
        if (act != EDL_TASK_NOTHING)
            return act;
    }
    return EDL_TASK_NOTHING;
}

int64_t edl_task_due_ms(const edl_task_t *self, int64_t now_ms)
{
    if (self->step == EDL_TASK_OVER)
        return -1;
    const bool rests = self->step == EDL_TASK_QUEUED || self->step == EDL_TASK_BACK;
    int64_t due = self->step == EDL_TASK_RUNNING || rests ? INT64_MAX : self->since_ms + s_limit_ms(self);
    if (self->step < EDL_TASK_ENDING && s_deadline_ms(self) < due)
        due = s_deadline_ms(self);
    for (int i = 0; i < self->count && self->step != EDL_TASK_ENDING && !rests; i++) {
        const edl_task_member_t *member = &self->members[i];
        if (!member->asked && member->again_ms > now_ms && member->again_ms < due)
            due = member->again_ms;
        if (self->step == EDL_TASK_RUNNING && member->state == MEMBER_RUNNING &&
            member->heard_ms + self->limits->silent_ms < due)
            due = member->heard_ms + self->limits->silent_ms;
    }
    return due == INT64_MAX ? -1 : due > now_ms ? due - now_ms : 0;
}

/* ---- what came of it ----------------------------------------------------------------------------------------------------------- */

void edl_task_made(edl_task_t *self, int i, uint64_t place)
{
    edl_task_member_t *member = &self->members[i];
    member->asked = false;
    member->present = true;
    member->place = place;
    member->state = MEMBER_MADE;
}

void edl_task_found(edl_task_t *self, int i, const char *url, const char *address, int64_t now_ms)
{
    edl_task_member_t *member = &self->members[i];
    member->asked = false;
    member->again_ms = now_ms + (url ? 0 : self->limits->poll_ms);
    if (!url)
        return;
    member->reason[0] = '\0';
    snprintf(member->url, sizeof member->url, "%s", url);
    snprintf(self->addresses[i], sizeof self->addresses[i], "%s", address);
    member->state = MEMBER_FOUND;
}

void edl_task_waits(edl_task_t *self, int i, const char *why)
{
    if (self->members[i].state == MEMBER_MADE)
        tt_text_copy(self->members[i].reason, sizeof self->members[i].reason, why);
}

void edl_task_fail(edl_task_t *self, const char *reason, int64_t now_ms)
{
    s_end(self, EDL_TASK_FAILED, reason, now_ms);
}

void edl_task_delete(edl_task_t *self, int64_t now_ms)
{
    s_end(self, EDL_TASK_DELETED, "", now_ms);
}

static void s_fail_member(edl_task_t *self, int i, const char *reason, int64_t now_ms)
{
    char name[16], text[640];
    edl_task_member_name(self, i, name);
    snprintf(text, sizeof text, "%s: %.600s", name, reason);
    edl_task_fail(self, text, now_ms);
}

void edl_task_lost(edl_task_t *self, int i, const char *reason, int64_t now_ms)
{
    edl_task_member_t *member = &self->members[i];
    const bool ended = member->state == MEMBER_ENDED;
    member->present = false;
    member->asked = false;
    member->state = MEMBER_ENDED;
    if (self->step >= EDL_TASK_BACK || ended) {
        if (!ended)
            tt_text_copy(member->reason, sizeof member->reason, "ended with its task");
        return;
    }
    tt_text_copy(member->reason, sizeof member->reason, reason);
    s_fail_member(self, i, member->reason, now_ms);
}

/*  "exit code 3: ValueError: no such file": the last line that is not empty. Who was killed had no last word about it. */
static void s_say_end(edl_task_member_t *member, const char *reason, const char *log)
{
    char line[320] = "";
    char *copy = tt_strdup(log), *rest = copy;
    for (char *next; (next = strsep(&rest, "\n")) != NULL;)
        if (next[strspn(next, " \t\r")])
            tt_text_copy(line, sizeof line, next);
    free(copy);
    snprintf(member->reason, sizeof member->reason, "%.240s%s%.240s", reason,
        !line[0]                             ? ""
        : member->exit_code == 128 + SIGKILL ? "; its last line: "
                                             : ": ",
        line);
}

/*  /status of a program that has ended. */
static void s_ended(edl_task_t *self, int i, const json_t *status, int64_t now_ms)
{
    edl_task_member_t *member = &self->members[i];
    const char *reason = json_string_value(json_object_get(status, "reason"));
    const char *log = json_string_value(json_object_get(status, "log"));
    member->state = MEMBER_ENDED;
    member->exit_code = (int)json_integer_value(json_object_get(status, "exit_code"));
    if (member->exit_code == 0) {
        snprintf(member->reason, sizeof member->reason, "exit code 0");
        return;
    }
    s_say_end(member, reason ? reason : "", log ? log : "");
    self->failed_code = member->exit_code;
    s_fail_member(self, i, member->reason, now_ms);
}

static void s_watched(edl_task_t *self, int i, const char *text, int64_t now_ms)
{
    json_t *status = json_loads(text, 0, NULL);
    const char *state = json_string_value(json_object_get(status, "state"));
    if (!state)
        s_fail_member(self, i, "what answers at its agent's address is no agent", now_ms);
    else if (strcmp(state, "ended") == 0)
        s_ended(self, i, status, now_ms);
    else if (strcmp(state, "running") != 0)
        s_fail_member(self, i, "its agent was started anew: its program is gone", now_ms);
    json_decref(status);
}

/*  The first /status of a member whose task was adopted. */
static void s_resumed(edl_task_t *self, int i, const char *text, int64_t now_ms)
{
    static const member_state_t states[] = {MEMBER_CONFIGURED, MEMBER_RUNNING, MEMBER_ENDED};
    static const char *const words[] = {"configured", "running", "ended"};
    json_t *status = json_loads(text, 0, NULL);
    const char *said = json_string_value(json_object_get(status, "state"));
    self->members[i].state = MEMBER_READY;
    for (size_t k = 0; said && k < TT_COUNT(words); k++)
        if (strcmp(said, words[k]) == 0)
            self->members[i].state = states[k];
    if (self->members[i].state == MEMBER_ENDED)
        s_ended(self, i, status, now_ms);
    json_decref(status);
}

/*  No answer, or not a good one. Who is not ready, or runs, is asked again until its time is over. */
static void s_refused(edl_task_t *self, int i, int code, const char *text, int64_t now_ms)
{
    edl_task_member_t *member = &self->members[i];
    char words[400];
    member->again_ms = now_ms + self->limits->poll_ms;
    if (member->state == MEMBER_FOUND || (code == 0 && member->state == MEMBER_RUNNING))
        return;
    if (code)
        snprintf(words, sizeof words, "its agent answers %d: %.300s", code, text);
    else
        snprintf(words, sizeof words, "its agent does not answer: %.300s", text);
    s_fail_member(self, i, words, now_ms);
}

void edl_task_heard(edl_task_t *self, int i, int code, const char *text, int64_t now_ms)
{
    edl_task_member_t *member = &self->members[i];
    if (self->step >= EDL_TASK_BACK)
        return;
    member->asked = false;
    if (code == 200)
        member->heard_ms = now_ms;
    if (code != 200)
        s_refused(self, i, code, text, now_ms);
    else if (member->state == MEMBER_RUNNING)
        s_watched(self, i, text, now_ms);
    else if (member->state == MEMBER_FOUND && self->adopted)
        s_resumed(self, i, text, now_ms);
    else if (member->state < MEMBER_RUNNING)
        member->state++;
}

/* ---- what is said of it ------------------------------------------------------------------------------------------------------------ */

elasticdl_cluster_t edl_task_cluster(const edl_task_t *self)
{
    return (elasticdl_cluster_t){.ps = self->request.ps,
        .workers = self->request.workers,
        .addresses = (const char(*)[ELASTICDL_ADDRESS])self->addresses};
}

const char *edl_task_state(const edl_task_t *self)
{
    static const char *const outcomes[] = {"over", "succeeded", "failed", "deleted"};
    if (self->step == EDL_TASK_QUEUED || self->step == EDL_TASK_BACK)
        return "queued";
    if (self->step < EDL_TASK_RUNNING)
        return "starting";
    return self->step == EDL_TASK_OVER ? outcomes[self->outcome] : s_step(self);
}

void edl_task_folder(const edl_task_t *self, char out[EDL_TASK_FOLDER])
{
    snprintf(out, EDL_TASK_FOLDER, "%s-%d", self->request.name, self->id);
}

void edl_task_member_name(const edl_task_t *self, int member, char out[16])
{
    const elasticdl_cluster_t cluster = edl_task_cluster(self);
    snprintf(out, 16, "%s-%d", elasticdl_type_name(elasticdl_member_type(&cluster, member)),
        elasticdl_member_index(&cluster, member));
}

int edl_task_member_find(const edl_task_t *self, const char *name)
{
    char own[16];
    for (int i = 0; i < self->count; i++) {
        edl_task_member_name(self, i, own);
        if (strcmp(own, name) == 0)
            return i;
    }
    return -1;
}

static json_t *s_member_status(const edl_task_t *self, int i)
{
    const edl_task_member_t *member = &self->members[i];
    char name[16];
    edl_task_member_name(self, i, name);
    json_t *out = json_object();
    json_object_set_new(out, "name", json_string(name));
    json_object_set_new(out, "state", json_string(s_members[member->state]));
    json_object_set_new(out, "address", self->addresses[i][0] ? tt_json_text(self->addresses[i]) : json_null());
    json_object_set_new(out, "exit_code", member->exit_code >= 0 ? json_integer(member->exit_code) : json_null());
    json_object_set_new(out, "reason", member->reason[0] ? tt_json_text(member->reason) : json_null());
    return out;
}

json_t *edl_task_status(const edl_task_t *self)
{
    json_t *members = json_array(), *out = json_object();
    for (int i = 0; i < self->count; i++)
        json_array_append_new(members, s_member_status(self, i));
    json_object_set_new(out, "id", json_integer(self->id));
    json_object_set_new(out, "name", tt_json_text(self->request.name));
    json_object_set_new(out, "strategy", json_string(elasticdl_strategy_name(self->request.strategy)));
    json_object_set_new(out, "image", tt_json_text(self->request.image));
    json_object_set_new(out, "state", json_string(edl_task_state(self)));
    json_object_set_new(out, "step", json_string(s_step(self)));
    const char *reason = self->outcome == EDL_TASK_UNDECIDED ? self->waits : self->reason;
    json_object_set_new(out, "queue", self->request.queue[0] ? json_string(self->request.queue) : json_null());
    json_object_set_new(out, "reason", reason[0] ? tt_json_text(reason) : json_null());
    json_object_set_new(out, "exit_code", self->failed_code ? json_integer(self->failed_code) : json_null());
    json_object_set_new(out, "members", members);
    return out;
}
