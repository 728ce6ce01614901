/*  call - one request of the client's on its way: its place in the queue, its transfer. Not for others.
 *
 *  client.c decides when a call goes and what becomes of it; transfer.c has it done by common/http/request. Threads: the loop's. */
#pragma once
#include "common/base/buf.h"
#include "common/base/slots.h"
#include "k8s/api/client.h"
#include "k8s/api/credentials.h"
#include "common/http/request.h"

typedef struct kube_call kube_call_t;

/*  A call waits in a list (for its turn, for credentials, for a Retry-After) or is on the wire. */
typedef enum { CALL_QUEUED, CALL_ON_WIRE, CALL_LATER } kube_call_state_t;

struct kube_call {
    tt_request_t request; /* first: the loop calls it */
    kube_client_t *client;
    kube_call_t *prev, *next; /* in the list where it waits */
    uint64_t id;
    kube_call_state_t state;
    /* what was asked */
    char *method, *path, *body, *content_type, *accept;
    bool secret; /* wipe body */
    size_t body_size, max_bytes;
    int64_t timeout_ms, idle_ms;
    kube_priority_t priority;
    kube_data_fn data; /* NULL = not a stream */
    kube_done_fn done;
    void *ctx;
    bool (*may)(const void *ctx); /* NULL = always */
    const void *may_ctx;
    /* times, by the loop's clock */
    uint64_t deadline, idle, later; /* timers; 0 = none */
    int64_t heard_ms;               /* last byte of a stream */
    int64_t ends_ms;                /* the deadline; 0 = none */
    int64_t asked_ns;
    bool patient, went; /* waiting for its first turn does not count; it has had that */
    /* this attempt */
    tt_buf_t answer;
    tt_status_t stopped; /* what data() or a limit said; TT_OK = nothing */
    char *why;           /* and its words, owned                         */
    uint64_t identity;   /* version of the credentials it went with */
    int64_t sent_ms;
    unsigned generation; /* of connections that it may use */
    /* so far */
    bool refreshed; /* after a 401 */
    bool dropped;   /* cancelled while libcurl was calling us */
    int retries;    /* after a Retry-After */
    int moves;      /* to another connection */
};

enum { CALL_STREAMS = KUBE_PRIORITIES, CALL_LISTS }; /* streams wait in a list of their own */

typedef struct {
    kube_call_t *first, *last;
} kube_call_list_t;

struct kube_client {
    tt_reactor_t *loop;
    const kube_config_t *config;
    kube_credentials_t *credentials;
    char *agent;
    char *url;        /* what requests begin with: the server's, or with its TLS name in it */
    char *host;       /* then: what to call the host; NULL = as the URL does                */
    char *connect_to; /* and where to connect                                               */
    size_t max_in_flight, in_flight, pending;
    kube_call_list_t lists[CALL_LISTS]; /* waiting                                              */
    kube_call_list_t dropped;           /* on the wire, cancelled while libcurl was calling us  */
    tt_slots_t calls;                   /* all there are, by their numbers                      */
    kube_client_stats_t stats;
    bool unknown;        /* waiting for credentials */
    uint64_t refused;    /* version of the credentials that were refused last; 0 = none */
    unsigned generation; /* of connections: those of an older one are left to what is on them */
    uint64_t pump;       /* timer; 0 = none                                     */
    bool recheck;        /* some that wait may not go any more                  */
    int in_data;         /* within libcurl's calls: no transfer may be taken out */
    int64_t heard_ms;    /* last byte from the server, of any call               */
};

/* ---- calls.c ------------------------------------------------------------------------------------------------------- */

void kube_call_push(kube_call_list_t *list, kube_call_t *call, bool first);
void kube_call_unlink(kube_call_list_t *list, kube_call_t *call);
void kube_call_free(kube_call_t *call);

/* ---- transfer.c -------------------------------------------------------------------------------------------------- */

/*  Put the call on the wire. TT_OS. */
tt_status_t kube_transfer_start(kube_call_t *call, const kube_identity_t *identity);
/*  Take it off again, ended or not. */
void kube_transfer_drop(kube_call_t *call);
/*  May the call still go? client.c */
bool kube_call_may(const void *call);

/* ---- client_stats.c ----------------------------------------------------------------------------------------------- */

/*  An attempt has ended, with this HTTP status (0 = none came); the call has, as its caller sees it. */
void kube_stats_attempt(kube_call_t *call, int code);
void kube_stats_call(kube_call_t *call);

/* ---- reply.c ----------------------------------------------------------------------------------------------------- */

/*  text and reason of an answer that is not 2xx. */
void kube_reply_words(kube_reply_t *reply);
