/*  task - a task from its request to its end, as a state machine without sockets or processes.
 *
 *      EDL_TASK_QUEUED   of one with a queue: its place says when it may have its members
 *      EDL_TASK_PS       the parameter servers are made, and waited for until all are ready    (AllReduce: left out)
 *      EDL_TASK_WORKERS  the same of the workers
 *      EDL_TASK_CONFIG   every member is sent its NUM_WORKERS and TF_CONFIG
 *      EDL_TASK_RUN_PS   the parameter servers are started, and then
 *      EDL_TASK_RUN      the workers
 *      EDL_TASK_RUNNING  every member is watched until the last worker has ended
 *      EDL_TASK_BACK     of one with a queue, which may not have its members any more: they are ended, and then it waits again, and begins anew
 *      EDL_TASK_ENDING   whatever is left of the members is ended
 *      EDL_TASK_OVER     succeeded: every worker ended with 0; failed: `reason` says who and why; deleted: somebody asked for it
 *
 *  Its owner asks edl_task_next what is to be done until it says nothing, and tells it what came of it. Ready is who answers, however
 *  late: no step waits a fixed time, and each has a deadline; all of them together have that of the request.
 *
 *  Threads: one. Time is the caller's. */
#pragma once
#include <stdint.h>
#include "elasticdl/cluster.h"

typedef enum {
    EDL_TASK_QUEUED,
    EDL_TASK_PS,
    EDL_TASK_WORKERS,
    EDL_TASK_CONFIG,
    EDL_TASK_RUN_PS,
    EDL_TASK_RUN,
    EDL_TASK_RUNNING,
    EDL_TASK_BACK,
    EDL_TASK_ENDING,
    EDL_TASK_OVER
} edl_task_step_t;

typedef enum {
    EDL_TASK_UNDECIDED,
    EDL_TASK_SUCCEEDED,
    EDL_TASK_FAILED,
    EDL_TASK_DELETED,
    EDL_TASK_OUTCOMES
} edl_task_outcome_t;

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
} edl_task_member_t;

enum { EDL_TASK_FOLDER = ELASTICDL_NAME + 12, EDL_TASK_WAITS = 400 };

typedef struct {
    int ready_ms;  /* for all members of a type to be ready                              */
    int step_ms;   /* for all answers to /config, and to /run                            */
    int silent_ms; /* a running member that has not answered for so long is lost         */
    int end_ms;    /* for the members to be gone                                         */
    int poll_ms;   /* between two questions to who is not ready                          */
} edl_task_limits_t;

typedef struct gang gang_t; /* k8s/front/gang.h: who places members together */

typedef struct {
    int id;
    elasticdl_request_t request;
    const gang_t *gang;              /* all members are made at once, and placed together or not at all; NULL */
    const edl_task_limits_t *limits; /* borrowed */
    edl_task_step_t step;
    edl_task_outcome_t outcome;
    int64_t begun_ms; /* when it was asked for */
    int64_t since_ms; /* of the step           */
    bool adopted;     /* begun by a master before this one: its members are taken as their agents say they are */
    int failed_code;  /* EDL_TASK_FAILED: the exit code of the program that failed; 0 = it was not one's end */
    char reason[640];
    bool admitted;              /* of one with a queue: it may have its members */
    char waits[EDL_TASK_WAITS]; /* why not, in its queue's words                */
    int count;
    edl_task_member_t *members;           /* parameter servers, then workers */
    char (*addresses)[ELASTICDL_ADDRESS]; /* beside them: "HOST:PORT" for TF_CONFIG */
} edl_task_t;

typedef enum {
    EDL_TASK_NOTHING,
    EDL_TASK_MAKE,
    EDL_TASK_FIND,
    EDL_TASK_ASK_READY,
    EDL_TASK_SEND_CONFIG,
    EDL_TASK_SEND_RUN,
    EDL_TASK_WATCH,
    EDL_TASK_END
} edl_task_act_t;

/*  Takes nothing; limits are borrowed. */
void edl_task_new(
    edl_task_t **self_p, int id, const elasticdl_request_t *request, const edl_task_limits_t *limits, int64_t now_ms);
/*  Of a new task: no member is waited for before all are asked for, since none is placed before. NULL: nothing. */
void edl_task_together(edl_task_t *self, const gang_t *gang);
void edl_task_destroy(edl_task_t **self_p);

/*  Of a task with a queue: may it have its members? words: why not. Said whenever the place is asked; one that has members and may not have them
 *  any more gives them back. */
void edl_task_admit(edl_task_t *self, bool admitted, const char *words);

/*  The next thing that is to be done, and of which member. EDL_TASK_MAKE, EDL_TASK_FIND: by the place; the three questions and EDL_TASK_WATCH
 *  (/status?wait_ms=...) to the member's agent; EDL_TASK_END: end it. Each is said once until it is answered. */
edl_task_act_t edl_task_next(edl_task_t *self, int *member, int64_t now_ms);
/*  ms until edl_task_next is wanted though nothing came; -1 = not. */
int64_t edl_task_due_ms(const edl_task_t *self, int64_t now_ms);

/*  What came of EDL_TASK_MAKE (place: the owner's number) and EDL_TASK_FIND (url NULL: not known yet). */
void edl_task_made(edl_task_t *self, int member, uint64_t place);
void edl_task_found(edl_task_t *self, int member, const char *url, const char *address, int64_t now_ms);
/*  Why a member cannot be found yet, for /status; "" = no more than its turn. */
void edl_task_waits(edl_task_t *self, int member, const char *why);
/*  Its agent has answered: code 0 = it has not, and `text` says why. Ready, watched: the text is /status, by which a member of a task that was
 *  adopted is as far as it had come. */
void edl_task_heard(edl_task_t *self, int member, int code, const char *text, int64_t now_ms);
/*  Its agent is gone; why. */
void edl_task_lost(edl_task_t *self, int member, const char *reason, int64_t now_ms);
/*  A member cannot be made, or what else its owner cannot do. */
void edl_task_fail(edl_task_t *self, const char *reason, int64_t now_ms);
void edl_task_delete(edl_task_t *self, int64_t now_ms);

/*  What another master has to know of a task that is ending: {"outcome", "reason", "exit_code", "exit_codes": [one a member, null = not known]};
 *  a new reference. */
json_t *edl_task_record(const edl_task_t *self);
/*  A new task is ending as that says. TT_DATA: it is none. */
tt_status_t edl_task_restore(edl_task_t *self, const json_t *record, int64_t now_ms);

elasticdl_cluster_t edl_task_cluster(const edl_task_t *self);
/*  "queued", "starting", "running", "ending", "succeeded", "failed", "deleted". */
const char *edl_task_state(const edl_task_t *self);
/*  "default-0": its name and its number. */
void edl_task_folder(const edl_task_t *self, char out[EDL_TASK_FOLDER]);
/*  "worker-0" in out[16]. */
void edl_task_member_name(const edl_task_t *self, int member, char out[16]);
/*  -1 = there is none of that name. */
int edl_task_member_find(const edl_task_t *self, const char *name);
/*  {"id", "name", "strategy", "image", "state", "step", "reason", "exit_code", "members": [{"name", "state", "address", "exit_code", "reason"}]}; a
 *  new reference. */
json_t *edl_task_status(const edl_task_t *self);
