/*  run - what the files of a local run share; nobody else includes it. */
#pragma once
#include "common/net/net.h"
#include "controller/guard.h"
#include "k8s/front/refusals.h"
#include "local/kubelet.h"
#include "local/local.h"
#include "common/http/server.h"

typedef struct {
    const local_opts_t *opts;
    const tt_clock_t *clock;
    place_t *place;
    kubelet_t *kubelet;
    const front_t *front;
    json_t *job;     /* borrowed: the whole object, status and all     */
    void *seen;      /* what it decodes to, as its front end keeps it  */
    void **services; /* the same of services: names only, so that plans see what they expect */
    size_t service_count;
    json_t *objects; /* ConfigMaps and Secrets, the job's key among them */
    json_t *ports;   /* {"<key>": port}: front_machine_t.port             */
    json_t *shown;   /* {"<pod>": "Running"}: what was said of it last    */
    tt_server_t *server;
    char server_url[64];
    tt_loop_t *loop;
    tt_sock_t *control;
    int signal_fd;
    uint64_t random;
    uint32_t made, removed; /* front_view_t */
    bool dirty, idle;       /* idle: the last plan asked for nothing */
    bool started;
    bool stopping, broken; /* broken: a pod that leads cannot be started */
    int signal;            /* that asked to stop; 0 = `tutti stop` did */
    int64_t again_ms;      /* plan again then; -1 = not needed         */
    front_refusals_t
        refused; /* pods that could not be made: without a memory of them a plan would ask for them at once, for ever */
    int64_t refused_generation; /* of the spec that they are about */
    int64_t asked_ms;
    tt_asked_t asked; /* by signals */
    int failed_code;  /* exit code of the first pod that failed */
    int last_code;    /* of one that is down and may come again: the job's if that was the end of it */
} run_t;

/*  The job's name, borrowed; and what else anybody may know of it. */
const char *run_name(const run_t *self);
front_job_t run_info(const run_t *self);
/*  status.phase, "" = none yet. */
const char *run_phase(const run_t *self);

/*  make.c: build a pod as in the cluster, give it a place on this machine, start it. */
tt_status_t run_make(run_t *self, const front_action_t *action);
/*  What is built of an action, a new reference. */
tt_status_t run_build(const run_t *self, json_t **out, const front_action_t *action);
/*  All pods, for a plan; caller frees the array. */
const void **run_pods(const run_t *self, size_t *count);

/*  api.c: a request to the replicas API, which is DI-orchestrator's. */
void run_api(void *ctx, const tt_server_request_t *request);

/*  control.c: the socket that `tutti status`, `scale` and `stop` speak to. */
tt_status_t control_serve(run_t *self);

/*  run.c: what changed is planned and done; the job's numbers changed as {role: number} says, all of them or, on an error
 *  (TT_NOT_FOUND: no such role), none. */
void run_settle(run_t *self);
tt_status_t run_scale(run_t *self, json_t *wanted);
void run_stop(run_t *self, int signal);
/*  show.c: say what has changed; keep job.json and pods.json; the answer to `tutti status`, a new reference. */
void run_say(run_t *self, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void run_show(run_t *self);
void run_keep(run_t *self);
json_t *run_status(const run_t *self);
