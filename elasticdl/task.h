/*  task - a task from its request to its end, as a state machine without sockets or processes.
 *
 *      TASK_PS       the parameter servers are made, and waited for until all are ready    (AllReduce: left out)
 *      TASK_WORKERS  the same of the workers
 *      TASK_CONFIG   every member is sent its NUM_WORKERS and TF_CONFIG
 *      TASK_RUN_PS   the parameter servers are started, and then
 *      TASK_RUN      the workers
 *      TASK_RUNNING  every member is watched until the last worker has ended
 *      TASK_ENDING   whatever is left of the members is ended
 *      TASK_OVER     succeeded: every worker ended with 0; failed: `reason` says who and why; deleted: somebody asked for it
 *
 *  Its owner asks task_next what is to be done until it says nothing, and tells it what came of it. Ready is who answers, however
 *  late: no step waits a fixed time, and each has a deadline.
 *
 *  Threads: one. Time is the caller's. */
#pragma once
#include <stdint.h>
#include "elasticdl/cluster.h"

typedef enum {
    TASK_PS,
    TASK_WORKERS,
    TASK_CONFIG,
    TASK_RUN_PS,
    TASK_RUN,
    TASK_RUNNING,
    TASK_ENDING,
    TASK_OVER
} task_step_t;

typedef enum { TASK_UNDECIDED, TASK_SUCCEEDED, TASK_FAILED, TASK_DELETED } task_outcome_t;

typedef enum {
    MEMBER_NONE,       /* not made yet                                   */
    MEMBER_MADE,       /* its agent is started; where it serves is not known */
    MEMBER_FOUND,      /* where it serves is known; it has not answered  */
    MEMBER_READY,      /* its agent answers                              */
    MEMBER_CONFIGURED, /* it has its config                              */
    MEMBER_RUNNING,    /* its program runs                               */
    MEMBER_ENDED       /* its program has ended, or the agent is gone    */
} member_state_t;

typedef struct {
    member_state_t state;
    bool present;     /* its agent is there, as far as is known                   */
    bool asked;       /* an answer of its agent is waited for                     */
    int64_t again_ms; /* it is not asked before                                   */
    int64_t heard_ms; /* when it answered last                                    */
    uint64_t place;   /* its owner's number for it                                */
    char url[128];    /* of its agent                                             */
    int exit_code;    /* of its program; -1 = not known                           */
    char reason[512]; /* how it ended, and the last line that it wrote; "" before */
} task_member_t;

typedef struct {
    int ready_ms;  /* for all members of a type to be ready                              */
    int step_ms;   /* for all answers to /config, and to /run                            */
    int silent_ms; /* a running member that has not answered for so long is lost         */
    int end_ms;    /* for the members to be gone                                         */
    int poll_ms;   /* between two questions to who is not ready                          */
} task_limits_t;

typedef struct {
    int id;
    elasticdl_request_t request;
    const task_limits_t *limits; /* borrowed */
    task_step_t step;
    task_outcome_t outcome;
    int64_t since_ms; /* of the step */
    int failed_code;  /* TASK_FAILED: the exit code of the program that failed; 0 = it was not one's end */
    char reason[640];
    int count;
    task_member_t *members;               /* parameter servers, then workers */
    char (*addresses)[ELASTICDL_ADDRESS]; /* beside them: "HOST:PORT" for TF_CONFIG */
} task_t;

typedef enum {
    TASK_NOTHING,
    TASK_MAKE,
    TASK_FIND,
    TASK_ASK_READY,
    TASK_SEND_CONFIG,
    TASK_SEND_RUN,
    TASK_WATCH,
    TASK_END
} task_act_t;

/*  Takes nothing; limits are borrowed. */
void task_new(task_t **self_p, int id, const elasticdl_request_t *request, const task_limits_t *limits, int64_t now_ms);
void task_destroy(task_t **self_p);

/*  The next thing that is to be done, and of which member. TASK_MAKE, TASK_FIND: by the place; the three questions and TASK_WATCH
 *  (/status?wait_ms=...) to the member's agent; TASK_END: end it. Each is said once until it is answered. */
task_act_t task_next(task_t *self, int *member, int64_t now_ms);
/*  ms until task_next is wanted though nothing came; -1 = not. */
int64_t task_due_ms(const task_t *self, int64_t now_ms);

/*  What came of TASK_MAKE (place: the owner's number) and TASK_FIND (url NULL: not known yet). */
void task_made(task_t *self, int member, uint64_t place);
void task_found(task_t *self, int member, const char *url, const char *address, int64_t now_ms);
/*  Its agent has answered: code 0 = it has not, and `text` says why. Ready, watched: the text is /status. */
void task_heard(task_t *self, int member, int code, const char *text, int64_t now_ms);
/*  Its agent is gone; why. */
void task_lost(task_t *self, int member, const char *reason, int64_t now_ms);
/*  A member cannot be made, or what else its owner cannot do. */
void task_fail(task_t *self, const char *reason, int64_t now_ms);
void task_delete(task_t *self, int64_t now_ms);

elasticdl_cluster_t task_cluster(const task_t *self);
/*  "starting", "running", "ending", "succeeded", "failed", "deleted". */
const char *task_state(const task_t *self);
/*  "worker-0" in out[16]. */
void task_member_name(const task_t *self, int member, char out[16]);
/*  -1 = there is none of that name. */
int task_member_find(const task_t *self, const char *name);
/*  {"id", "name", "strategy", "image", "state", "step", "reason", "exit_code", "members": [{"name", "state", "address", "exit_code", "reason"}]}; a
 *  new reference. */
json_t *task_status(const task_t *self);
