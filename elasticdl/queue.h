/*  queue - the Workload of a task that waits in a queue of Kueue: asked for when its sets are there, which have no pods till it is admitted, and
 *  looked at until the task is over.
 *
 *  The workers' StatefulSet owns it, so it goes with its task. As a set it has one thing at a time to ask for, and without an answer it asks
 *  again. What Kueue is told: that the quota is free, when the pods of a task that was evicted have gone; and that the task has ended. One
 *  that somebody deletes is made again, when its pods have gone. Who may have no pods has none of the life before when it may have them again,
 *  however soon that is.
 *
 *  Threads: the loop's. */
#pragma once
#include "elasticdl/objects.h"
#include "k8s/api/client.h"

typedef struct {
    /* what its owner says */
    int task;
    char owner[40]; /* uid of the set that owns it; "" = that is not there yet */
    bool pods;      /* some of its members' pods may be there                  */
    bool over;      /* the task is; well: it succeeded                         */
    bool well;
    /* what comes of it */
    bool known;                 /* false: it was there before this master, and is not read yet */
    bool orphaned;              /* it went, and maybe with its owner: that is to be said anew  */
    bool admitted;              /* its members may be there                                    */
    json_t *updates;            /* what their pods get, by the name of their set; admitted     */
    char words[EDL_TASK_WAITS]; /* why they may not                                            */
    char lost[EDL_TASK_WAITS];  /* why they never may; "" = they may come to                   */
    bool told;                  /* over: Kueue knows, or there is none that has to             */
    /* the rest is queue.c's */
    kube_client_t *client;
    const tt_clock_t *clock;
    edl_task_t *like; /* owned: the task's number and request */
    json_t *object;   /* as it is to be made                  */
    char *path, name[EDL_TASK_FOLDER + 16];
    bool made, ranked, tried, silent;
    bool current;    /* its sets are this master's, by its template            */
    bool back;       /* pods that were there when it might have none: they go before there are others */
    json_t *found;   /* as it was admitted                                     */
    json_t *names;   /* flavours of it that are still to be fetched; and those */
    json_t *flavors; /* that were, by name                                     */
    int step;
    uint64_t request;
    int64_t again_ms;
} edl_queue_t;

/*  adopted: the task was there before this master, and so may its Workload be. Borrows client, clock and objects. */
void edl_queue_new(edl_queue_t **self_p, kube_client_t *client, const tt_clock_t *clock, const edl_objects_t *objects,
    const edl_task_t *task, bool adopted);
void edl_queue_destroy(edl_queue_t **self_p);
/*  Ask for what is due. ms until that is wanted again; -1 = not before its owner says something new. */
void edl_queue_turn(edl_queue_t *self);
int64_t edl_queue_due_ms(const edl_queue_t *self);
