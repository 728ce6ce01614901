/*  recorder - Events (v1) on objects of ours, as `kubectl describe` shows them.
 *
 *  The same event again within ten minutes only raises its count (a patch); more than ten different messages of one
 *  (object, reason) in ten minutes become one "(combined from similar events)"; an object has 25 to spend and gets one back every
 *  five minutes. Events are best effort: a failed write is tried twice more and then dropped with a log line.
 *  Threads: the loop's. */
#pragma once
#include "k8s/api/client.h"

enum { KUBE_EVENT_WORDS = 1024 }; /* bytes of an event's message, without the end */

typedef struct kube_recorder kube_recorder_t; /* opaque */

typedef struct {
    const char *api_version, *kind, *namespace_, *name, *uid;
    uint64_t version; /* resourceVersion; 0 = leave it out */
} kube_ref_t;

/*  component: "di-orchestrator". Borrows client. */
tt_status_t kube_recorder_new(kube_recorder_t **self_p, kube_client_t *client, const char *component);
void kube_recorder_destroy(kube_recorder_t **self_p);
/*  What the server has not been told yet is not told any more. */
void kube_recorder_forget(kube_recorder_t *self);
/*  type: "Normal" or "Warning". */
void kube_recorder_event(kube_recorder_t *self, const kube_ref_t *about, const char *type, const char *reason,
    const char *fmt, ...) __attribute__((format(printf, 5, 6)));
