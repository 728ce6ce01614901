/*  tasks - the tasks of a master: what each wants done is done, by the place and over HTTP, and it is told what came of it.
 *
 *  Threads: one, that of the loop. */
#pragma once
#include "elasticdl/place.h"
#include "common/http/reactor.h"

typedef struct tasks edl_tasks_t; /* opaque */

/*  Borrows all of it; limits NULL = the usual ones. */
void edl_tasks_new(edl_tasks_t **self_p, edl_place_t *place, tt_reactor_t *loop, const edl_task_limits_t *limits,
    const tt_clock_t *clock);
void edl_tasks_destroy(edl_tasks_t **self_p);

/*  TT_UNAVAILABLE: as many as there may be are not over. */
tt_status_t edl_tasks_create(edl_tasks_t *self, const elasticdl_request_t *request, edl_task_t **out);
/*  One that another master began. Those of lower numbers come first. */
void edl_tasks_adopt(edl_tasks_t *self, const edl_past_t *past);
/*  By number, or the newest of a name; NULL: there is none. Borrowed. */
edl_task_t *edl_tasks_find_id(const edl_tasks_t *self, int id);
edl_task_t *edl_tasks_find_name(const edl_tasks_t *self, const char *name);
/*  In the order in which they came; NULL behind the last. */
edl_task_t *edl_tasks_nth(const edl_tasks_t *self, size_t n);
/*  End it; one that is over is forgotten, and the pointer with it. */
void edl_tasks_delete(edl_tasks_t *self, edl_task_t *task);
void edl_tasks_end_all(edl_tasks_t *self);
/*  Those that are not over. */
size_t edl_tasks_living(const edl_tasks_t *self);

typedef struct {
    uint64_t created;                     /* by edl_tasks_create */
    uint64_t finished[EDL_TASK_OUTCOMES]; /* that were not over when they came here, by what became of them */
    int members, running;                 /* of tasks that are not over; those whose program runs */
} edl_tasks_stats_t;

edl_tasks_stats_t edl_tasks_stats(const edl_tasks_t *self);

/*  Do what is due. Call it when anything came, and when edl_tasks_due_ms says. */
void edl_tasks_step(edl_tasks_t *self);
int64_t edl_tasks_due_ms(const edl_tasks_t *self);

/*  Of members that are processes, and of those that are pods, whose images take their time. */
extern const edl_task_limits_t edl_tasks_usual, edl_tasks_in_pods;
