/*  sets - the StatefulSets of a master's tasks, as the API server is asked for them and has them; their pods, and their tasks' PodGroups.
 *
 *  Each set has a list of what is to be asked for, and asks for the next when the one before is answered. Without an answer it asks again,
 *  and nothing is concluded. Pods are looked at by one list of all, often while a set begins or ends and seldom while it runs.
 *
 *  Threads: the loop's. */
#pragma once
#include "elasticdl/group.h"
#include "elasticdl/queue.h"

typedef struct {
    bool made, found, gone; /* its task asked for it; was told where it is; was told that it is gone */
    bool seen, ready;       /* in the newest list                                                    */
    char uid[40], ip[46];
    char trouble[EDL_TASK_WAITS]; /* why it does not begin; "" = nothing known              */
    char lost[EDL_TASK_WAITS];    /* why it will not begin, or its program is lost; "" = no */
} edl_set_pod_t;

typedef struct edl_sets edl_sets_t; /* opaque */

typedef struct {
    edl_sets_t *sets;
    int task;
    elasticdl_type_t type;
    char name[EDL_SET_NAME];
    int first, count;    /* of its members, among its task's */
    edl_set_pod_t *pods; /* by ordinal */
    edl_group_t *group;  /* of its task; it comes first. NULL = none               */
    edl_queue_t *queue;  /* of its task; it says when there may be pods. NULL = none */
    char uid[40];        /* where there is a queue; "" = not known yet             */
    bool raised, idle;   /* pods are wanted, as far as the API server was asked; none were seen since they were not */
    bool adopted, over;  /* it was there before this master; and its task has ended  */
    bool ending;         /* no pods are wanted any more                            */
    bool clear;          /* ... and it was seen that there are none                */
    int holds;           /* it is not scaled down before this is 0                 */
    char *create, *service, *end; /* bodies that are still to be sent: NULL = the API server has it */
    /* the rest is sets.c's */
    bool scaled, remove, silent;
    bool unserved;             /* no Service of it was asked for, or it is gone */
    bool tried[2], foreign[2]; /* of StatefulSet, Service: asked for without an answer; somebody else's */
    uint64_t request;
    int step;
    int64_t again_ms;
    uint64_t scaled_look; /* the newest list when it was scaled, or lowered */
    bool moving;          /* raised or lowered without an answer yet        */
} edl_set_t;

/*  Borrows all of it. */
void edl_sets_new(edl_sets_t **self_p, kube_client_t *client, const edl_objects_t *objects, const tt_clock_t *clock);
/*  What was not asked for yet is not. */
void edl_sets_destroy(edl_sets_t **self_p);

/*  The task's set of that type; NULL. */
edl_set_t *edl_sets_find(edl_sets_t *self, int task, elasticdl_type_t type);
/*  It is asked for. TT_INVALID: its name. */
tt_status_t edl_sets_add(edl_sets_t *self, const edl_task_t *task, elasticdl_type_t type, edl_set_t **out);
/*  It is there; not over: its Service and its group are asked for once more. */
void edl_sets_adopt(edl_sets_t *self, const edl_task_t *task, const edl_found_t *found, bool over);
/*  No pods any more, when nobody holds it; another end is not asked for. Takes record. */
void edl_set_finish(edl_set_t *set, json_t *record);
/*  The set itself goes, too, when its pods have gone. It is freed then. */
void edl_set_remove(edl_set_t *set);

/*  It is in a queue, and may have no pods: those that it has go. */
bool edl_set_rests(const edl_set_t *set);

/*  The first set, and those behind it, in no order; NULL behind the last. */
edl_set_t *edl_sets_nth(edl_sets_t *self, size_t n);
/*  Ask for what is due. ms until that is wanted again; -1 = not. */
void edl_sets_turn(edl_sets_t *self);
int64_t edl_sets_due_ms(const edl_sets_t *self);
