/*  link_core - a link's insides, shared by its two sides: link.c (the role's thread) and link_thread.c (its own thread). */
#pragma once
#include "common/base/laps.h"
#include "common/net/link.h"
#include "common/net/mailbox.h"
#include "common/net/sock.h"

enum { LINK_BEAT_MS = 1000, LINK_LEASE_MS = 5000 }; /* until WELCOME says otherwise */

typedef enum { LINK_HELLO, LINK_IN } link_phase_t;

/*  What the role's thread says and the link's thread reads, and the other way round. */
typedef struct {
    pthread_mutex_t mutex;
    bool stop;
    char state[128];
    uint64_t progress;
    const char *const *stages; /* names of spent_ns[stage_count]; NULL = it does not say */
    size_t stage_count;
    int64_t spent_ns[TT_LAPS_MAX];
    bool gone;              /* the coordinator has ended: nobody hears what we would still say */
    bool holds, warm, news; /* news: holds, warm or era have changed, tell it at once */
    uint64_t update, generation;
    uint32_t era;
    uint64_t epoch;
    uint32_t learners, place; /* as in HELLO */
    uint32_t index;
    int64_t heard_ns; /* when the coordinator last said anything; 0 = never */
    tt_status_t end;  /* not TT_OK: why the link has ended */
    char end_text[1024];
} link_shared_t;

struct tt_link {
    /* set before the thread starts, then only read */
    char *endpoint, *data_ipc, *data_tcp, *weights_ipc, *weights_tcp, *pod;
    tt_keys_t *keys; /* NULL = none */
    tt_peer_role_t role;
    int index;
    uint32_t memory;
    uint64_t instance;
    char identity[64], host[256];
    int64_t hello_wait_ns, patience_ns; /* patience: 0 = so many leases */
    const tt_clock_t *clock;
    pthread_t thread;

    tt_mailbox_t in, out; /* from the coordinator, to the coordinator */
    link_shared_t shared;

    /* the thread's own */
    tt_loop_t *loop;
    tt_sock_t *sock;
    char *config;      /* of the first WELCOME */
    char address[300]; /* written under shared.mutex: where the endpoint's name led last; "" = it has not yet */
    link_phase_t phase;
    int timer;
    bool welcomed; /* ever */
    uint64_t seq;  /* of our last heartbeat */
    int64_t beat_ns, lease_ns;
    int64_t said_ns;    /* when we said the last HELLO or HEARTBEAT   */
    int64_t heard_ns;   /* when we last heard anything, or reconnected  */
    int64_t hello_ns;   /* since when we say HELLO                      */
    int64_t flushed_ns; /* when we last tried to send what waits */
    int leases;         /* of silence, in a row                         */
    tt_letters_t sent;  /* not confirmed yet; tag = heartbeat whose answer confirms it */
    tt_letters_t unsent;
};

/*  The thread: runs until `shared.stop` is set or the link has ended. */
void *link_main(void *link);
