#define TT_LOG_COMPONENT "net"
#include "common/net/context.h"
#include "common/base/log.h"
#include "common/net/accept.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

typedef struct {
    void *zmq;
    size_t holders;
    pid_t pid; /* whose it is: a forked child must not touch its parent's */
    bool guarded;
    pthread_t guard;
} s_context_t;

static pthread_mutex_t s_mutex = PTHREAD_MUTEX_INITIALIZER;
static s_context_t s_context; /* under s_mutex */

void *tt_context_hold(void)
{
    pthread_mutex_lock(&s_mutex);
    if (s_context.zmq && s_context.pid != getpid())
        s_context = (s_context_t){0};
    if (!s_context.zmq) {
        s_context.zmq = zmq_ctx_new();
        TT_CHECK(s_context.zmq != NULL);
        s_context.pid = getpid();
    }
    s_context.holders++;
    void *zmq = s_context.zmq;
    pthread_mutex_unlock(&s_mutex);
    return zmq;
}

/*  The mutex is held until the context has gone: the libraries that libzmq starts and stops with its contexts (libpgm)
 *  do not bear a start in one thread while another still stops. Whoever wants a new context waits for the linger. */
void tt_context_drop(void)
{
    pthread_mutex_lock(&s_mutex);
    TT_CHECK(s_context.holders > 0);
    if (--s_context.holders == 0) {
        while (zmq_ctx_term(s_context.zmq) != 0 && errno == EINTR)
            ;
        if (s_context.guarded)
            pthread_join(s_context.guard, NULL); /* the end of the context was its end */
        s_context = (s_context_t){0};
    }
    pthread_mutex_unlock(&s_mutex);
}

/* ---- the guard: answers "may this key come in?" for CURVE sockets -------------------------------------------------- */

enum { PARTS = 7, VERSION = 0, REQUEST_ID, DOMAIN, ADDRESS, IDENTITY, MECHANISM, CREDENTIALS };

typedef struct {
    char data[256];
    size_t size;
} s_part_t;

/*  One ZAP request. Parts beyond what we know are read and ignored. False: the context has ended. */
static bool s_read_request(void *socket, s_part_t parts[PARTS])
{
    memset(parts, 0, PARTS * sizeof *parts);
    size_t more = 1, size = sizeof(int);
    for (size_t i = 0; more; i++) {
        s_part_t beyond, *part = i < PARTS ? &parts[i] : &beyond;
        int length;
        while ((length = zmq_recv(socket, part->data, sizeof part->data, 0)) < 0)
            if (errno != EINTR)
                return false;
        part->size = (size_t)length;
        int flag = 0;
        zmq_getsockopt(socket, ZMQ_RCVMORE, &flag, &size);
        more = (size_t)flag;
    }
    return true;
}

static bool s_is(const s_part_t *part, const char *text)
{
    return part->size == strlen(text) && memcmp(part->data, text, part->size) == 0;
}

/*  The domain is the job's public key; only who proved to own that very key may come in. NULL is the mechanism of ipc and
 *  loopback endpoints that are bound without keys: libzmq has made sure that nobody says NULL to a CURVE endpoint. */
static bool s_allowed(const s_part_t parts[PARTS])
{
    char key[41];
    if (!s_is(&parts[VERSION], "1.0"))
        return false;
    if (s_is(&parts[MECHANISM], "NULL"))
        return true;
    return s_is(&parts[MECHANISM], "CURVE") && parts[CREDENTIALS].size == 32 &&
           zmq_z85_encode(key, (const uint8_t *)parts[CREDENTIALS].data, 32) && s_is(&parts[DOMAIN], key);
}

static void s_answer(void *socket, const s_part_t parts[PARTS], bool allowed)
{
    const char *const code = allowed ? "200" : "400", *const text = allowed ? "OK" : "another key";
    const s_part_t *id = &parts[REQUEST_ID];
    zmq_send(socket, "1.0", 3, ZMQ_SNDMORE);
    zmq_send(socket, id->data, id->size < sizeof id->data ? id->size : sizeof id->data, ZMQ_SNDMORE);
    zmq_send(socket, code, 3, ZMQ_SNDMORE);
    zmq_send(socket, text, strlen(text), ZMQ_SNDMORE);
    zmq_send(socket, "", 0, ZMQ_SNDMORE);
    zmq_send(socket, "", 0, 0);
}

static void *s_guard(void *socket)
{
    s_part_t parts[PARTS];
    for (uint64_t refused = 0; s_read_request(socket, parts);) {
        const bool allowed = s_allowed(parts);
        refused += !allowed;
        if (!allowed && (refused & (refused - 1)) == 0) /* it tries again: the 1st, 2nd, 4th, ... time is told */
            log_warn("%.*s was refused: it does not hold the job's key", (int)parts[ADDRESS].size, parts[ADDRESS].data);
        s_answer(socket, parts, allowed);
    }
    zmq_close(socket);
    return NULL;
}

/*  Bound here, so that it is there before the first peer; then the thread's alone. */
static tt_status_t s_guard_start(void)
{
    void *socket = zmq_socket(s_context.zmq, ZMQ_REP);
    if (!socket || zmq_bind(socket, "inproc://zeromq.zap.01") != 0) {
        const tt_status_t status = tt_err(TT_OS, "cannot check keys: %s", zmq_strerror(errno));
        if (socket)
            zmq_close(socket);
        return status;
    }
    sigset_t all, before; /* signals are for the role's thread */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int code = pthread_create(&s_context.guard, NULL, s_guard, socket);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0) {
        zmq_close(socket);
        return tt_err(TT_OS, "cannot check keys: %s", strerror(code));
    }
    s_context.guarded = true;
    return TT_OK;
}

tt_status_t tt_context_guard(void)
{
    pthread_mutex_lock(&s_mutex);
    const tt_status_t status = s_context.guarded ? TT_OK : s_guard_start();
    pthread_mutex_unlock(&s_mutex);
    return status;
}
