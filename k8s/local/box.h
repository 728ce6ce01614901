/*  box - a container of a local pod, the pod, and their status as the API server would show it.
 *
 *  What the kubelet's files share; nobody else includes it. Threads: the run's one. */
#pragma once
#include "common/base/backoff.h"
#include "controller/substrate.h"
#include "k8s/front/front.h"

enum { BOX_WORDS = 512 };

typedef enum { BOX_NEW, BOX_RUNNING, BOX_WAITING, BOX_ENDED } box_state_t; /* WAITING: to be started again at due_ms */
typedef enum { RESTART_ALWAYS, RESTART_ON_FAILURE, RESTART_NEVER } restart_t;

/*  A container. */
typedef struct {
    const json_t *spec; /* of the pod's object */
    char *log;          /* name of its log and control group */
    bool init;
    restart_t restart;
    box_state_t state;
    tt_replica_id_t id;
    int exit_code, restarts;             /* exit_code: of the newest end                                        */
    char reason[32], message[BOX_WORDS]; /* of the newest end: "Error", the last line that was written before   */
    tt_backoff_t backoff;
    int64_t due_ms;
    int64_t started_s, finished_s;
} box_t;

typedef struct {
    json_t *object; /* owned: the pod */
    void *seen;     /* what it decodes to now, as its front end keeps it */
    char ip[16];
    int port;
    bool deleting;
    int64_t leave_ms; /* when its containers are to be asked to end; 0 = they have been */
    int grace_s;
    box_t *boxes; /* init containers first */
    size_t count;
} pod_t;

/*  An init container that stays beside the others. */
bool box_is_sidecar(const box_t *self);
/*  Why it ended: the last line of its log, if there is one. */
void box_read_last_line(box_t *self, const char *run_dir);

const char *pod_name(const pod_t *self);
/*  "2026-11-21T10:00:00Z", a new reference. */
json_t *pod_time(int64_t seconds);
/*  The status object, a new reference. */
json_t *pod_status(const pod_t *self);
