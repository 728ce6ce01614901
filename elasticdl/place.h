/*  place - where the members of tasks are: what the tasks of a master need of it, as a table. local.h is one, kube.h the other.
 *
 *  Threads: one, that of the master's loop. */
#pragma once
#include "common/http/token.h"
#include "elasticdl/task.h"

typedef struct edl_place edl_place_t;

typedef struct {
    /*  Of a task with a queue, asked again and again: may it have its members, and why not? TT_UNAVAILABLE: it never may. NULL: there are no
     *  queues. */
    tt_status_t (*admits)(edl_place_t *self, const edl_task_t *task, bool *admitted, char words[EDL_TASK_WAITS]);
    /*  Start the agent of a member; *id is the place's number for it. */
    tt_status_t (*make)(edl_place_t *self, const edl_task_t *task, int member, uint64_t *id);
    /*  Where its agent serves, and where its program is to. TT_AGAIN: not yet; `waits` is why, and "" where it only takes its time. */
    tt_status_t (*find)(
        edl_place_t *self, uint64_t id, char url[128], char address[ELASTICDL_ADDRESS], char waits[EDL_TASK_WAITS]);
    /*  Its program is about to be started. NULL: that is nothing to it. */
    void (*release)(edl_place_t *self, uint64_t id);
    /*  Its agent has said this /status. NULL: nothing to it. */
    void (*heard)(edl_place_t *self, const edl_task_t *task, int member, const char *status);
    /*  End a member. NULL: close does it. */
    void (*end)(edl_place_t *self, uint64_t id);
    /*  The task is ending, and why is decided; said once. NULL: nothing to it. */
    void (*close)(edl_place_t *self, const edl_task_t *task);
    /*  The next one that is gone, and why. False: none. */
    bool (*gone)(edl_place_t *self, uint64_t *id, char reason[EDL_TASK_WAITS]);
    /*  The task is over and out of the list. NULL: nothing to it. */
    void (*forget)(edl_place_t *self, const edl_task_t *task);
    /*  gone is to be asked in so many ms though nothing came; -1 = not. */
    int64_t (*due_ms)(const edl_place_t *self);
    void (*destroy)(edl_place_t **self_p);
} edl_place_ops_t;

struct edl_place {
    const edl_place_ops_t *ops;
    char *run_dir;                   /* absolute; RUN/<task>-<id>/<member>/outputs.log is what a program has written */
    char token[TOKEN_SIZE];          /* what agents want to see                                                      */
    char address[ELASTICDL_ADDRESS]; /* of this master, for its members                                              */
    bool stays;                      /* members go on without their master, and it finds them again                  */
    const gang_t *gang;              /* members of new tasks are placed together by this one; NULL = each by itself   */
    char queue[ELASTICDL_QUEUE];     /* in which a new task waits that names none; "" = in none                       */
    bool images;                     /* a member runs in an image, so a task has to name one                         */
};

/*  A task that was there before its master. */
typedef struct {
    int id;
    const elasticdl_request_t *request;
    const gang_t *gang;
    int64_t age_ms;       /* since it was made                */
    const json_t *record; /* how it ended; NULL = it has not  */
} edl_past_t;

/*  What a member's program has written; the caller closes it. TT_NOT_FOUND: nothing yet. */
tt_status_t edl_place_log(const edl_place_t *self, const edl_task_t *task, const char *member, int *fd);
