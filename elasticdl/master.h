/*  master - takes tasks over HTTP and brings each through its steps (elasticdl/task.h), with its members on this machine
 *  (elasticdl/local.h) or in pods of a Kubernetes (elasticdl/kube.h).
 *
 *      GET /create?strategy=&n_worker=&n_ps=&img=&name=   200 OK at once: it is taken; 400 with words. &answer=json: its /status
 *      GET /status?id= | ?name=                           JSON; name: the newest of that name
 *      GET /list                                          JSON, oldest first
 *      GET /logs?id=|name= &member=worker-0               what its program has written so far
 *      GET /delete?id=|name=                              200 OK: it is ended; one that is over is forgotten
 *      GET /healthz
 *
 *  /create and /delete are taken as POST, too.
 *
 *  Threads: one. */
#pragma once
#include "elasticdl/kube.h"

enum {
    ELASTICDL_TASKS = 32,      /* tasks that are not over                    */
    ELASTICDL_TASKS_MAX = 256, /* tasks in the list; of those that are over the oldest is forgotten */
    ELASTICDL_AGENTS = 512,    /* members of all tasks that are not over     */
};

typedef struct {
    const char *listen; /* "ADDRESS:PORT"                                                  */
    const char *token;  /* NULL = none: any process of this machine may ask                */
    int ready_ms;       /* for all members of a type to answer; 0 = 60 s, in pods 600 s      */
    int stop_fd;        /* tt_signals_open_parent                                          */
    local_place_opts_t place;
    const edl_kube_opts_t *cluster; /* NULL = this machine */
} elasticdl_master_opts_t;

/*  Serve until SIGTERM, SIGINT or SIGHUP: every task is ended then, but on a cluster it goes on. RUN/master.json has "url" and "pid" once it serves. TT_EXISTS:
 *  the address is in use. */
tt_status_t elasticdl_master_run(const elasticdl_master_opts_t *opts);
