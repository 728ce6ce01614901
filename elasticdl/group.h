/*  group - the PodGroup of a task whose members are placed together or not at all: asked for before its sets, deleted when their pods have gone.
 *  Who waits in a queue has none meanwhile.
 *
 *  As a set it has one thing at a time to ask for, and without an answer it asks again. One of its name that nobody here asked for is
 *  somebody else's: it is left alone, and the task fails.
 *
 *  Threads: the loop's. */
#pragma once
#include "elasticdl/objects.h"
#include "k8s/api/client.h"

typedef struct {
    int task;
    bool there;                /* it was asked for and answered                                      */
    bool wanted;               /* it is to be there                                                  */
    bool over;                 /* nobody is of it any more                                           */
    bool gone;                 /* ... and it is not there, or not to be had away                     */
    char lost[EDL_TASK_WAITS]; /* why there is none and will be none; "" = it is there, or may come  */
    /* the rest is group.c's */
    kube_client_t *client;
    const tt_clock_t *clock;
    char name[EDL_TASK_FOLDER], *path, *body; /* path: of all of the namespace */
    bool adopted, tried, foreign, silent;
    bool asks; /* for it, and not for its end */
    uint64_t request;
    int64_t again_ms;
} edl_group_t;

/*  adopted: the task was there before this master, and so may its group be. Borrows client, clock and objects. */
void edl_group_new(edl_group_t **self_p, kube_client_t *client, const tt_clock_t *clock, const edl_objects_t *objects,
    const edl_task_t *task, bool adopted);
/*  What was not asked for yet is not. */
void edl_group_destroy(edl_group_t **self_p);
/*  Ask for what is due. */
void edl_group_turn(edl_group_t *self);
/*  Something is to be asked for, now or soon. */
bool edl_group_waits(const edl_group_t *self);
