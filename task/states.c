#include "task/states.h"
#include <string.h>
#include "common/base/backoff.h"

static const char *const s_job_names[JOB_STATES] = {
    "registered", "assigned", "running", "kill", "done", "failed", "broken", "killed"};
static const char *const s_task_names[TASK_STATES] = {
    "registered", "testing", "running", "kill", "done", "finalized", "broken", "killed", "removing"};

const char *job_state_name(job_state_t state)
{
    TT_CHECK(state < JOB_STATES);
    return s_job_names[state];
}

const char *task_state_name(task_state_t state)
{
    TT_CHECK(state < TASK_STATES);
    return s_task_names[state];
}

static bool s_find(const char *const *names, unsigned count, const char *name, unsigned *out)
{
    for (unsigned i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0) {
            *out = i;
            return true;
        }
    return false;
}

bool job_state_of(const char *name, job_state_t *out)
{
    unsigned at;
    const bool found = s_find(s_job_names, JOB_STATES, name, &at);
    if (found)
        *out = (job_state_t)at;
    return found;
}

bool task_state_of(const char *name, task_state_t *out)
{
    unsigned at;
    const bool found = s_find(s_task_names, TASK_STATES, name, &at);
    if (found)
        *out = (task_state_t)at;
    return found;
}

bool job_state_ended(job_state_t state)
{
    return state >= JOB_DONE;
}

bool task_state_ended(task_state_t state)
{
    return state >= TASK_DONE;
}

/* ---- what follows ---------------------------------------------------------------------------------------------------- */

static size_t s_testers(const task_states_t *self)
{
    return self->testers < self->count ? self->testers : self->count;
}

/*  Of the first `among` jobs, those in a state. */
static size_t s_in(const task_states_t *self, size_t among, job_state_t state)
{
    size_t count = 0;
    for (size_t i = 0; i < among; i++)
        count += self->jobs[i].state == state;
    return count;
}

static void s_move(task_states_t *self, size_t among, job_state_t from, job_state_t to)
{
    for (size_t i = 0; i < among; i++)
        if (self->jobs[i].state == from)
            self->jobs[i].state = to;
}

static void s_begin(task_states_t *self)
{
    s_move(self, self->bypass ? self->count : s_testers(self), JOB_REGISTERED, JOB_ASSIGNED);
    self->state = self->bypass ? TASK_RUNNING : TASK_TESTING;
}

static void s_break(task_states_t *self)
{
    for (size_t i = 0; i < self->count; i++)
        if (self->jobs[i].state != JOB_DONE)
            self->jobs[i].state = JOB_BROKEN;
    self->state = TASK_BROKEN;
}

static void s_judge(task_states_t *self)
{
    const size_t testers = s_testers(self);
    for (size_t i = 0; i < testers; i++)
        if (!job_state_ended(self->jobs[i].state))
            return;
    if (s_in(self, testers, JOB_DONE) * 100 < self->pass * testers) {
        s_break(self);
        return;
    }
    s_move(self, self->count, JOB_REGISTERED, JOB_ASSIGNED);
    self->state = TASK_RUNNING;
}

static void s_finish(task_states_t *self)
{
    for (size_t i = 0; i < self->count; i++)
        if (!job_state_ended(self->jobs[i].state))
            return;
    self->state = s_in(self, self->count, JOB_DONE) == self->count ? TASK_DONE : TASK_FINALIZED;
}

void states_schedule(task_states_t *self)
{
    if (self->state == TASK_REGISTERED)
        s_begin(self);
    if (self->state == TASK_TESTING)
        s_judge(self);
    if (self->state == TASK_RUNNING)
        s_finish(self);
    if (self->state == TASK_KILL && s_in(self, self->count, JOB_KILL) == 0)
        self->state = TASK_KILLED;
}

/* ---- what happens to a job --------------------------------------------------------------------------------------------- */

void states_started(task_states_t *self, size_t at)
{
    TT_CHECK(at < self->count && self->jobs[at].state == JOB_ASSIGNED);
    self->jobs[at].state = JOB_RUNNING;
}

void states_ended(task_states_t *self, size_t at, bool well)
{
    task_job_t *job = &self->jobs[at];
    TT_CHECK(at < self->count && (job->state == JOB_RUNNING || job->state == JOB_KILL));
    if (well) {
        job->state = JOB_DONE; /* faster than the kill, where there was one */
    } else if (job->state == JOB_KILL) {
        job->state = JOB_KILLED;
    } else if (job->tried < self->retries) {
        job->state = JOB_ASSIGNED;
        job->tried++;
    } else {
        job->state = JOB_FAILED;
    }
}

void states_broke(task_states_t *self, size_t at)
{
    task_job_t *job = &self->jobs[at];
    TT_CHECK(at < self->count && (job->state == JOB_RUNNING || job->state == JOB_KILL));
    job->state = job->state == JOB_KILL ? JOB_KILLED : JOB_BROKEN;
}

void states_lost(task_states_t *self, size_t at)
{
    task_job_t *job = &self->jobs[at];
    TT_CHECK(at < self->count && (job->state == JOB_RUNNING || job->state == JOB_KILL));
    job->state = job->state == JOB_KILL ? JOB_KILLED : JOB_ASSIGNED;
}

int64_t states_wait_s(const task_job_t *self, int64_t ended_s, int64_t now_s)
{
    static const tt_backoff_rule_t rule = {.first = 1, .most = TASK_BACKOFF_MAX_S};
    const int64_t wait_s = tt_backoff_wait(&rule, self->tried), left_s = ended_s + wait_s + 1 - now_s;
    return ended_s <= 0 || self->tried == 0 || left_s < 0 || ended_s > now_s ? 0 : left_s;
}

/* ---- what a person wants ----------------------------------------------------------------------------------------------- */

tt_status_t states_kill(task_states_t *self)
{
    if (task_state_ended(self->state))
        return tt_err(TT_INVALID, "it has ended already (%s)", task_state_name(self->state));
    s_move(self, self->count, JOB_RUNNING, JOB_KILL);
    for (size_t i = 0; i < self->count; i++)
        if (!job_state_ended(self->jobs[i].state) && self->jobs[i].state != JOB_KILL)
            self->jobs[i].state = JOB_KILLED;
    self->state = TASK_KILL;
    return TT_OK;
}

/*  Every failed job that has a try left. */
static tt_status_t s_retry_failed(task_states_t *self)
{
    size_t failed = 0, again = 0;
    for (size_t i = 0; i < self->count; i++) {
        task_job_t *job = &self->jobs[i];
        if (job->state != JOB_FAILED && job->state != JOB_BROKEN)
            continue;
        failed++;
        if (job->tried >= TASK_RETRIES_MAX)
            continue;
        job->state = JOB_ASSIGNED;
        job->tried++;
        again++;
    }
    if (failed == 0)
        return tt_err(TT_INVALID, "no job of it has failed");
    if (again == 0)
        return tt_err(
            TT_INVALID, "each of its failed jobs was tried again %d times; create another task", TASK_RETRIES_MAX);
    if (self->state == TASK_FINALIZED)
        self->state = TASK_RUNNING;
    return TT_OK;
}

static void s_retry_all(task_states_t *self)
{
    for (size_t i = 0; i < self->count; i++) {
        task_job_t *job = &self->jobs[i];
        if (job->state == JOB_DONE && self->state != TASK_DONE)
            continue;
        job->state = JOB_REGISTERED;
        job->tried = 0;
    }
    self->state = TASK_REGISTERED;
}

tt_status_t states_retry(task_states_t *self)
{
    if (self->state == TASK_KILL)
        return tt_err(TT_INVALID, "it is being killed; try again when it is");
    if (self->state == TASK_REMOVING)
        return tt_err(TT_INVALID, "its files are being removed");
    if (self->state == TASK_FINALIZED || !task_state_ended(self->state))
        return s_retry_failed(self);
    s_retry_all(self);
    return TT_OK;
}

/* ---- priorities -------------------------------------------------------------------------------------------------------- */

void states_priorities(task_states_t *const *tasks, size_t count)
{
    size_t total = 0, n = 0;
    for (size_t t = 0; t < count; t++)
        total += s_in(tasks[t], tasks[t]->count, JOB_REGISTERED) + s_in(tasks[t], tasks[t]->count, JOB_ASSIGNED) +
                 s_in(tasks[t], tasks[t]->count, JOB_RUNNING);
    for (size_t t = 0; t < count; t++)
        for (size_t i = 0; i < tasks[t]->count; i++) {
            task_job_t *job = &tasks[t]->jobs[i];
            if (job->state == JOB_ASSIGNED)
                job->priority =
                    tasks[t]->state == TASK_TESTING ? TASK_PRIORITY_MAX : TASK_PRIORITY_MAX - (double)(total + ++n) / 5;
            else if (job->state != JOB_RUNNING)
                job->priority = -1;
        }
}
