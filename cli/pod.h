/*  pod - what the environment says of the pod of a DIJob that a role runs in (docs/internals/pods.md).
 *
 *    KUBERNETES_POD_NAMESPACE, KUBERNETES_POD_NAME   who we are
 *    KUBERNETES_COORDINATOR_URL                      <coordinator's pod>.<namespace>:<port>; "http://" may stand before it
 *    KUBERNETES_COORDINATOR_RESTARTS                 how often the coordinator's pod was made anew (absent: 0)
 *    TUTTI_POD_RUN, TUTTI_POD_KEY                    the folder and the file that stand for those below, where there is no mount
 *                                                    namespace that could show them there (local/)
 *    <ROLE>_PORT                                     COORDINATOR_PORT and so on: where the role listens
 *
 *  Threads: main thread; nothing here changes the environment. */
#pragma once
#include <stdint.h>
#include "common/base/status.h"
#include "common/wire/msg.h"

#define TT_POD_KEY "/etc/tutti/curve/curve.key" /* where the job's Secret is mounted */
#define TT_POD_RUN "/var/lib/tutti"             /* the coordinator's run directory   */

typedef struct {
    char name[320];        /* "namespace/name"                      */
    char coordinator[300]; /* "tcp://..."; "" for the coordinator   */
    const char *key;       /* TT_POD_KEY or what stands for it; NULL: it is not there */
    const char *run;       /* TT_POD_RUN or what stands for it */
    uint16_t port;         /* 0 = none is given                     */
    bool again;            /* the coordinator's pod is not the first of its job */
} tt_pod_t;

/*  false: this is no pod of such a job. TT_CONFIG: the environment makes no sense. */
tt_status_t tt_pod_look(tt_pod_t *out, tt_peer_role_t role, bool *found);
/*  Wait until the coordinator's name has an address: its service may be made after our pod. TT_STOPPED: a signal came
 *  (signals_fd, -1 = none); TT_TIMEOUT: ten minutes. */
tt_status_t tt_pod_await_name(const char *endpoint, int signals_fd);
