/*  tasks - tasks and their jobs as rows of the store, and what commands do to them.
 *
 *  What is changed is read, changed by the machine of states.h and written in one transaction, so that the engine and any number of
 *  commands may do so at once. Threads: as the store. */
#pragma once
#include "task/exec.h"
#include "task/states.h"
#include "task/store.h"

enum { TASK_JOBS_MAX = 100000 };

/*  What a job has beside its state (task_states_t.jobs, same index). */
typedef struct {
    char *config;           /* owned; file of the data set, "" where that is a file */
    char *slot, *reason;    /* owned; of the newest attempt, NULL = none            */
    uint32_t attempt;       /* 1, 2, ...; 0 = never started                         */
    int exit_code;          /* -1 = none                                            */
    int64_t started, ended; /* seconds since 1970; 0 = not                       */
    bool touched;           /* to be written                                     */
} job_row_t;

typedef struct {
    int64_t id;
    char *name, *username, *dir, *exec, *output, *image; /* owned; image NULL = none */
    bool gpu;
    int64_t et, eta; /* -1 = none */
    int64_t created;
    char config_set[256], data_set[256]; /* the latter "" where there is none */
    exec_secondary_t secondary[EXEC_SECONDARY_MAX];
    size_t secondary_count;
    task_states_t states;
    task_state_t was;  /* as it stands in the store */
    job_state_t *were; /* the same of the jobs      */
    job_row_t *rows;
    bool refused; /* a start, in this turn of the engine */
} task_t;

typedef struct {
    task_t **tasks; /* the oldest first */
    size_t count;
} task_list_t;

/*  What a new task is made of; all borrowed. data_set, secondary, image: NULL = none. */
typedef struct {
    const char *name, *config_set, *data_set, *output, *exec, *secondary, *image, *volume;
    bool gpu, bypass, dry; /* dry: only say what it would be */
    int64_t et, eta;       /* -1 = none */
    uint32_t testers, pass, retries;
} task_new_t;

/*  Check all of it, make its directory and write it down. *dir (PLACE_MAX bytes), *jobs: what was made, or would be. TT_USAGE, TT_INVALID, TT_NOT_FOUND
 *  (a data set), TT_EXISTS (the name or the directory), TT_DENIED, TT_IO. */
tt_status_t task_create(store_t *store, const task_new_t *wanted, char *dir, size_t *jobs);

/*  All of them, or the one of that name (TT_NOT_FOUND names the nearest). */
tt_status_t task_list_load(store_t *store, task_list_t *out, const char *name);
/*  Those for which anything is still to be done: they have not ended, or a job of theirs runs. What is over costs nothing, however
 *  much of it the registry holds. */
tt_status_t task_list_living(store_t *store, task_list_t *out);
void task_list_free(task_list_t *self);
/*  The names of all, and nothing else. */
tt_status_t task_each_name(store_t *store, tt_status_t (*fn)(void *ctx, const char *name), void *ctx);
/*  Write what differs from the store. In a transaction. */
tt_status_t task_save(store_t *store, task_t *self);

/*  states_kill and states_retry of the task of a name. */
tt_status_t task_kill(store_t *store, const char *name);
tt_status_t task_retry(store_t *store, const char *name);
/*  Forget an ended task; its directory goes first (remove), while others may write to the store, or stays. What could
 *  not be removed can be tried again. TT_EXISTS: it has not ended. */
tt_status_t task_delete(store_t *store, const char *name, bool remove);

/*  The line that a job's shell gets, appended to out. root: the task's directory as the job sees it. */
tt_status_t task_line(const task_t *self, size_t job, const char *root, tt_buf_t *out);
