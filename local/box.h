/*  box - a container of a local pod, the pod, and their status as the API server would show it.
 *
 *  What the kubelet's files share; nobody else includes it. Threads: the run's one. */
#pragma once
#include "controller/containers.h"
#include "k8s/front/front.h"

enum { BOX_WORDS = 2049 }; /* as of a kubelet */

/*  What is kept of a container beside its state (controller/containers.h). */
typedef struct {
    const json_t *spec;                  /* of the pod's object */
    char *log;                           /* name of its log and control group */
    char reason[32], message[BOX_WORDS]; /* of the newest end: "Error", the last line that was written before */
    int64_t started_s, finished_s;
} box_t;

typedef struct {
    json_t *object; /* owned: the pod */
    void *seen;     /* what it decodes to now, as its front end keeps it */
    char ip[16];
    int port;
    bool deleting;
    tt_containers_t containers;
    box_t *boxes; /* one each */
} pod_t;

/*  Why it ended: the last line of its log, if there is one. */
void box_read_last_line(box_t *self, const char *run_dir);

const char *pod_name(const pod_t *self);
/*  The status object, a new reference. */
json_t *pod_status(const pod_t *self);
