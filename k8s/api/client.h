/*  client - requests to the API server, many at a time, over few connections (HTTP/2 where the server speaks it).
 *
 *  Nothing blocks: an answer comes by a call from the loop. A credential that the server refuses (401) is made anew once
 *  (token file read again, exec plug-in run again) and the request repeated. 429 and 503 with Retry-After are repeated
 *  after that time, while the deadline allows. Nothing else is repeated here: the caller's work queue does that.
 *
 *  Threads: the loop's. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "common/http/buckets.h"
#include "k8s/api/kubeconfig.h"
#include "common/http/reactor.h"

typedef struct kube_client kube_client_t; /* opaque */

/*  What waits when more than max_in_flight requests are under way: lower goes first, then first come. */
typedef enum { KUBE_FIRST, KUBE_PODS, KUBE_SERVICES, KUBE_STATUS, KUBE_EVENTS, KUBE_PRIORITIES } kube_priority_t;

typedef struct {
    int max_in_flight; /* 0 = 32; at most 80: an API server takes 100 at a time over one connection */
    const char *agent; /* "tutti-operator/0.1.0"; copied                                   */
} kube_client_opts_t;

/*  Borrows loop and config. */
tt_status_t kube_client_new(
    kube_client_t **self_p, tt_reactor_t *loop, const kube_config_t *config, const kube_client_opts_t *opts);
/*  Requests under way are dropped without a call. Not from within a handler. */
void kube_client_destroy(kube_client_t **self_p);
tt_reactor_t *kube_client_loop(const kube_client_t *self);

/*  An answer; borrowed until the call returns. */
typedef struct {
    int code;         /* HTTP status; 0 = there was no answer (see text)                                      */
    const char *body; /* 0 after the last byte                                                                */
    size_t size;
    char text[512];  /* for a person where code is not 2xx: the server's message, or what went wrong on the way */
    bool held_back;  /* it was not sent: its `may` said no; code is 0                                          */
    char reason[64]; /* the server's reason: "AlreadyExists", "Conflict", "Expired"; "" where it gave none   */
} kube_reply_t;
typedef void (*kube_done_fn)(void *ctx, const kube_reply_t *reply);

typedef struct {
    const char *method;       /* "GET", "POST", "PUT", "PATCH", "DELETE"                                 */
    const char *path;         /* "/api/v1/namespaces/default/pods?fieldValidation=Strict"                */
    const char *body;         /* NULL = none                                                             */
    bool secret;              /* body: our copy is wiped when it has gone                                */
    const char *content_type; /* NULL = application/json; "application/merge-patch+json"                 */
    const char *accept;       /* NULL = application/json                                                 */
    int timeout_ms;           /* from now on; 0 = 30 s from when it goes, however long others come first     */
    kube_priority_t priority;
    size_t max_bytes; /* of the answer; 0 = 16 MiB                                               */
    /*  Asked each time that it is about to go: false: it does not, and ends. NULL = it always may. */
    bool (*may)(const void *ctx);
    const void *may_ctx;
} kube_request_t;

/*  Queue it; everything is copied. `done` is called exactly once, never from within this call, unless cancelled.
 *  The number is never 0. */
uint64_t kube_client_send(kube_client_t *self, const kube_request_t *request, kube_done_fn done, void *ctx);

/*  The same for an answer that is taken as it comes (watches, long lists): data gets each piece of a 2xx body, then done
 *  comes with an empty body (of an error: with its own) and the code, which is 0 where the stream did not come to its
 *  proper end. data may return a status other than TT_OK to end the transfer: then the text is tt_err_text(). Not counted
 *  as in flight. A stream is ended when no byte has come for idle_ms (0 = never); timeout_ms bounds it as a whole
 *  (0 = not at all). */
typedef tt_status_t (*kube_data_fn)(void *ctx, const char *data, size_t size);
uint64_t kube_client_stream(
    kube_client_t *self, const kube_request_t *request, int idle_ms, kube_data_fn data, kube_done_fn done, void *ctx);

/*  What `may` says has changed: those that wait and may not go any more end soon, without waiting for their turn; so do those under way
 *  of which nothing was sent yet. */
void kube_client_recheck(kube_client_t *self);
/*  No call will come for it any more; the transfer is dropped. 0 and numbers that are done are fine. */
void kube_client_cancel(kube_client_t *self, uint64_t request);
/*  Requests queued or under way, streams left out. */
size_t kube_client_pending(const kube_client_t *self);

/*  What client-go's clients tell of themselves. */
enum { KUBE_STATS_ANSWERS = 48, KUBE_STATS_VERBS = 6 };
typedef struct {
    struct {
        char method[8];            /* "" = not used                                               */
        int code;                  /* 0 = none came                                               */
        uint64_t count;            /* of each attempt; of a watch when it ends                    */
    } answers[KUBE_STATS_ANSWERS]; /* the last takes what has no place: method "other", code 0 */
    struct {
        char verb[8];           /* "" = not used                                                        */
        tt_histogram_t seconds; /* tt_buckets_request: from the asking to the answer; no watches */
    } durations[KUBE_STATS_VERBS];
} kube_client_stats_t;
const kube_client_stats_t *kube_client_stats(const kube_client_t *self);
/*  "10.96.0.1:443". Borrowed, *size bytes. */
const char *kube_client_host(const kube_client_t *self, size_t *size);

/*  For commands and tests: run the loop until the answer is there. *body (may be NULL) is the caller's, to free.
 *  Not from within a handler. TT_NOT_FOUND 404, TT_EXISTS 409, TT_DENIED 401/403, TT_UNAVAILABLE 408, 429, 5xx or
 *  none, TT_INVALID other 4xx. */
tt_status_t kube_client_call(kube_client_t *self, const kube_request_t *request, char **body);
