/*  states - what becomes of tasks and their jobs: a pure machine, without clock, files or processes.
 *
 *  A task's first jobs are testers. They run before the others, at the highest priority; when all of them have ended, and enough of them
 *  well, the rest follows, else the task is broken. A task is done when every job is, finalized when all have ended and not all of them well.
 *
 *      registered -> testing -> running -> done | finalized        kill: of any of these but the last two -> kill -> killed
 *                          \-> broken                             retry: broken, killed, done -> registered; finalized -> running
 *                                                                 delete with its files: of one that has ended -> removing
 *
 *      registered -> assigned -> running -> done | failed          failed -> assigned while the task has retries left for it
 *                        \-> broken (could not be started)         running -> kill -> killed; running -> assigned when it was lost
 *
 *  The words and rules are LPS Orchestra's; what is done otherwise here says docs/internals/task.md.
 *  Threads: pure. */
#pragma once
#include <stdint.h>
#include "common/base/status.h"

typedef enum {
    JOB_REGISTERED, /* waits for the testers */
    JOB_ASSIGNED,   /* waits for a slot      */
    JOB_RUNNING,
    JOB_KILL, /* runs, and is to end   */
    JOB_DONE,
    JOB_FAILED,
    JOB_BROKEN, /* could not be started, or its testers failed */
    JOB_KILLED,
    JOB_STATES
} job_state_t;

typedef enum {
    TASK_REGISTERED,
    TASK_TESTING,
    TASK_RUNNING,
    TASK_KILL,
    TASK_DONE,
    TASK_FINALIZED,
    TASK_BROKEN,
    TASK_KILLED,
    TASK_REMOVING, /* its files; then it is forgotten */
    TASK_STATES
} task_state_t;

enum {
    TASK_RETRIES_MAX = 3, /* of one job, by itself and by hand together */
    TASK_TESTERS = 10,    /* defaults                                   */
    TASK_TEST_PASS = 80,  /* percent of the testers                     */
    TASK_BACKOFF_MAX_S = 60
};
#define TASK_PRIORITY_MAX 1000.0

typedef struct {
    int64_t id; /* ties between equal priorities go to the lower */
    job_state_t state;
    uint32_t tried;  /* retries so far, the present one included  */
    double priority; /* states_priorities                         */
} task_job_t;

typedef struct {
    task_state_t state;
    bool bypass;            /* no testers               */
    uint32_t testers, pass; /* pass: percent, 1 to 100  */
    uint32_t retries;       /* of a job, by itself      */
    task_job_t *jobs;       /* in the order of config files */
    size_t count;           /* at least 1               */
} task_states_t;

/*  "assigned". And back; false: no such word. */
const char *job_state_name(job_state_t state);
bool job_state_of(const char *name, job_state_t *out);
const char *task_state_name(task_state_t state);
bool task_state_of(const char *name, task_state_t *out);
/*  Nothing happens any more but by retry, and of one that is being removed not even that. */
bool job_state_ended(job_state_t state);
bool task_state_ended(task_state_t state);

/*  Let follow what follows from the jobs' states. Call it after every change; calling it again changes nothing. */
void states_schedule(task_states_t *self);
/*  Job `at` was started; ended; could not be started at all; was running when its engine died, which is no fault of its own and costs
 *  no retry. */
void states_started(task_states_t *self, size_t at);
void states_ended(task_states_t *self, size_t at, bool well);
void states_broke(task_states_t *self, size_t at);
void states_lost(task_states_t *self, size_t at);
/*  Seconds that an assigned job is left alone still, of which the attempt before ended at ended_s (0 = there was none): before its first
 *  retry 1, doubling to 60, and up to one more, as ends are known in whole seconds. A clock that was set back holds nobody. */
int64_t states_wait_s(const task_job_t *self, int64_t ended_s, int64_t now_s);
/*  End it: what runs is to end, the rest is killed at once. TT_INVALID: it has ended already. */
tt_status_t states_kill(task_states_t *self);
/*  Try again: the failed jobs of a task that goes on or is finalized (TT_INVALID where none may be tried once more), or a broken, killed
 *  or done task from its beginning: of the first two what is done stays done. TT_INVALID: a task that is being killed or
 *  removed. */
tt_status_t states_retry(task_states_t *self);

/*  Priorities of one user's tasks, in their order: T = jobs that are registered, assigned or running; the n-th assigned one of all tasks
 *  has TASK_PRIORITY_MAX - (T + n) / 5, testers TASK_PRIORITY_MAX, and who is neither assigned nor running -1. The highest is
 *  served first. */
void states_priorities(task_states_t *const *tasks, size_t count);
