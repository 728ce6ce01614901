/*  tasks - the tasks of a master: what each wants done is done, by the place and over HTTP, and it is told what came of it.
 *
 *  Threads: one, that of the loop. */
#pragma once
#include "elasticdl/local.h"
#include "elasticdl/task.h"
#include "k8s/api/loop.h"

typedef struct tasks tasks_t; /* opaque */

/*  Borrows all of it; limits NULL = the usual ones. */
void tasks_new(
    tasks_t **self_p, local_place_t *place, kube_loop_t *loop, const task_limits_t *limits, const tt_clock_t *clock);
void tasks_destroy(tasks_t **self_p);

/*  TT_UNAVAILABLE: as many as there may be are not over. */
tt_status_t tasks_create(tasks_t *self, const elasticdl_request_t *request, task_t **out);
/*  By number, or the newest of a name; NULL: there is none. Borrowed. */
task_t *tasks_find_id(const tasks_t *self, int id);
task_t *tasks_find_name(const tasks_t *self, const char *name);
/*  In the order in which they came; NULL behind the last. */
task_t *tasks_nth(const tasks_t *self, size_t n);
/*  End it; one that is over is forgotten, and the pointer with it. */
void tasks_delete(tasks_t *self, task_t *task);
void tasks_end_all(tasks_t *self);
/*  Those that are not over. */
size_t tasks_living(const tasks_t *self);
/*  "default-0"; caller frees. */
char *tasks_folder(const task_t *task);

/*  Do what is due. Call it when anything came, and when tasks_due_ms says. */
void tasks_step(tasks_t *self);
int64_t tasks_due_ms(const tasks_t *self);

extern const task_limits_t tasks_usual;
