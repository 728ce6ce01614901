/*  engine_parts - what the files of the engine share. Not for others. Threads: as engine.h. */
#pragma once
#include "task/attempt.h"
#include "task/engine.h"
#include "task/tasks.h"

#define ENGINE_POD "pod/" /* how slots of a cluster begin */

typedef struct {
    tt_replica_id_t replica;
    int64_t job; /* of the store */
    uint32_t attempt;
    bool gpu, asked; /* asked: to end */
    char slot[ENGINE_GPU_NAME + 16];
    bool ended; /* it is kept, with its slot, till nothing of it is left and the store has the rest: */
    bool stays; /* something of it, though it was killed */
    bool broke, lost;
    int code;
    char reason[576];
} engine_child_t;

typedef struct {
    store_t *store;
    const engine_options_t *options;
    tt_substrate_t *substrate;
    task_list_t list; /* the store's that live, as of version */
    int64_t version;
    engine_slots_t slots;
    engine_child_t *children; /* owned */
    size_t count, room;
    int run_lock, lock, signals, ended_by; /* ended_by: a signal */
    bool settling;                         /* nothing is begun */
    bool held;                             /* the store does not let us; said once */
} engine_t;

/* ---- engine_rows.c: what is so, and how it is changed ------------------------------------------------------------ */

void engine_say(const engine_t *self, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/*  Change what is so by fn, on what is so now, and let follow what follows: one transaction. fn NULL: look only. After a failure the
 *  store is right, and what we have is read anew. TT_EXISTS: another process has it. */
tt_status_t engine_change(engine_t *self, tt_status_t (*fn)(engine_t *self, void *ctx), void *ctx);
/*  The task and the index of a job in it; NULL: it was deleted, or its task is over. */
task_t *engine_find(const engine_t *self, int64_t job, size_t *at);
/*  Texts of a row: a copy in place of what is there; NULL = none. */
void engine_set_text(char **at, const char *text);
/*  How an attempt went, in its row. code -1: not known. */
void engine_write_end(job_row_t *row, int code, const char *reason);
/*  Is the task this engine's concern? And where its attempts run. */
bool engine_has(const engine_t *self, const task_t *task);
attempt_place_t engine_place(const engine_t *self);
void engine_add_child(engine_t *self, const engine_child_t *child);

/* ---- engine_recover.c: after a death ------------------------------------------------------------------------------ */

/*  With the lock held: whatever runs here now is nobody's. What left an exit code has ended, what left none is lost; pods stay. */
tt_status_t engine_recover(engine_t *self);
/*  Pods that an engine before us started are ours. */
tt_status_t engine_adopt(engine_t *self);
