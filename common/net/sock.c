#include "common/net/sock.h"
#include "common/base/descriptors.h"
#include "common/base/mem.h"
#include "common/net/context.h"
#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { HWM = 1000, RECONNECT_MS = 2, RECONNECT_MAX_MS = 100, HANDSHAKE_MS = 5000, PEER_MAX = 63 };
enum { IPC_PATH_MAX = sizeof(((struct sockaddr_un *)0)->sun_path) - 1 };

struct tt_sock {
    void *zmq;
    tt_sock_type_t type;
    int fd;
    bool hot;
    char *name;
    const tt_keys_t *keys; /* owned, NULL = none */
    size_t max_bytes;
    uint64_t violations;
    tt_buf_t header;  /* of the message being sent */
    char **endpoints; /* connected ones */
    size_t endpoint_count;
    pthread_t owner;
};

/* ---- life -------------------------------------------------------------------------------------------------------- */

static void s_set_bytes(tt_sock_t *self, int option, const void *value, size_t size)
{
    const int failed = zmq_setsockopt(self->zmq, option, value, size);
    TT_CHECK(!failed);
}

static void s_set(tt_sock_t *self, int option, int value)
{
    s_set_bytes(self, option, &value, sizeof value);
}

static tt_status_t s_set_options(tt_sock_t *self, const tt_sock_opts_t *opts)
{
    const int64_t max_bytes = (int64_t)self->max_bytes;
    s_set_bytes(self, ZMQ_MAXMSGSIZE, &max_bytes, sizeof max_bytes);
    s_set(self, ZMQ_SNDHWM, opts->hwm ? opts->hwm : HWM);
    s_set(self, ZMQ_RCVHWM, opts->hwm ? opts->hwm : HWM);
    s_set(self, ZMQ_LINGER, opts->linger_ms);
    s_set(self, ZMQ_RECONNECT_IVL, RECONNECT_MS);
    s_set(self, ZMQ_RECONNECT_IVL_MAX, RECONNECT_MAX_MS);
    s_set(self, ZMQ_HANDSHAKE_IVL, HANDSHAKE_MS);
    s_set(self, ZMQ_TCP_KEEPALIVE, 1);
    if (self->type == TT_ROUTER) {
        s_set(self, ZMQ_ROUTER_MANDATORY, 1);
        s_set(self, ZMQ_ROUTER_HANDOVER, 1);
    }
    if (self->type == TT_SUB)
        s_set_bytes(self, ZMQ_SUBSCRIBE, "", 0);
    if (!opts->identity)
        return TT_OK;
    const size_t size = strlen(opts->identity);
    if (size == 0 || size > PEER_MAX || opts->identity[0] == '#')
        return tt_err(
            TT_INVALID, "%s: '%s' is no identity (1 to 63 bytes, not beginning with #)", self->name, opts->identity);
    s_set_bytes(self, ZMQ_ROUTING_ID, opts->identity, size);
    return TT_OK;
}

tt_status_t tt_sock_new(tt_sock_t **self_p, tt_sock_type_t type, const tt_sock_opts_t *opts)
{
    static const int types[] = {
        [TT_ROUTER] = ZMQ_ROUTER, [TT_DEALER] = ZMQ_DEALER, [TT_PUB] = ZMQ_PUB, [TT_SUB] = ZMQ_SUB};
    TT_TRY(tt_descriptors_check());
    void *zmq = zmq_socket(tt_context_hold(), types[type]);
    if (!zmq) {
        const int code = errno;
        tt_context_drop();
        return tt_err(TT_OS, "%s: no socket: %s", opts->name, zmq_strerror(code));
    }
    tt_sock_t *self = tt_new0(sizeof *self);
    self->zmq = zmq;
    self->type = type;
    self->name = tt_strdup(opts->name ? opts->name : "socket");
    self->max_bytes = opts->max_bytes ? opts->max_bytes : TT_SOCK_BYTES;
    self->hot = true;
    self->owner = pthread_self();
    tt_buf_init(&self->header, self->max_bytes);
    if (opts->keys) {
        tt_keys_t *keys = tt_new0(sizeof *keys);
        *keys = *opts->keys;
        self->keys = keys;
    }
    size_t size = sizeof self->fd;
    const int failed = zmq_getsockopt(zmq, ZMQ_FD, &self->fd, &size);
    TT_CHECK(!failed);
    const tt_status_t status = s_set_options(self, opts);
    if (status != TT_OK) {
        tt_sock_destroy(&self);
        return status;
    }
    *self_p = self;
    return TT_OK;
}

void tt_sock_destroy(tt_sock_t **self_p)
{
    tt_sock_t *self = *self_p;
    *self_p = NULL;
    if (!self)
        return;
    zmq_close(self->zmq);
    tt_context_drop();
    for (size_t i = 0; i < self->endpoint_count; i++)
        free(self->endpoints[i]);
    free(self->endpoints);
    free((void *)(uintptr_t)self->keys);
    free(self->name);
    tt_buf_free(&self->header);
    free(self);
}

int tt_sock_fd(const tt_sock_t *self)
{
    return self->fd;
}
bool tt_sock_hot(const tt_sock_t *self)
{
    return self->hot;
}
void tt_sock_wake(tt_sock_t *self)
{
    self->hot = true;
}
bool tt_sock_receives(const tt_sock_t *self)
{
    return self->type != TT_PUB;
}
void tt_sock_linger(tt_sock_t *self, int linger_ms)
{
    s_set(self, ZMQ_LINGER, linger_ms);
}
uint64_t tt_sock_violations(const tt_sock_t *self)
{
    return self->violations;
}

/* ---- endpoints --------------------------------------------------------------------------------------------------- */

static bool s_starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool s_is_loopback(const char *host)
{
    return s_starts(host, "127.") || s_starts(host, "localhost:") || s_starts(host, "[::1]:");
}

/*  CURVE with one key pair for all: a server asks for it, a client shows it. */
static tt_status_t s_use_curve(tt_sock_t *self, bool server)
{
    const tt_keys_t *keys = self->keys;
    s_set(self, ZMQ_CURVE_SERVER, server); /* not a server: back to no mechanism, until the server's key is set */
    bool ok = zmq_setsockopt(self->zmq, ZMQ_CURVE_SECRETKEY, keys->secret_key, 41) == 0;
    ok = ok && zmq_setsockopt(self->zmq, ZMQ_CURVE_PUBLICKEY, keys->public_key, 41) == 0;
    if (!server)
        ok = ok && zmq_setsockopt(self->zmq, ZMQ_CURVE_SERVERKEY, keys->public_key, 41) == 0;
    else
        ok = ok && zmq_setsockopt(self->zmq, ZMQ_ZAP_DOMAIN, keys->public_key, 40) == 0;
    if (!ok)
        return tt_err(TT_INVALID, "%s: not a CURVE key pair", self->name);
    if (server)
        s_set(self, ZMQ_CURVE_SERVER, 1); /* setting keys may have made it a client */
    return server ? tt_context_guard() : TT_OK;
}

/*  The domain stays when a bind with CURVE came before (libzmq cannot take it back): the guard knows that. */
static tt_status_t s_use_plain(tt_sock_t *self)
{
    s_set(self, ZMQ_CURVE_SERVER, 0);
    return TT_OK;
}

/*  `*` or up to 65535 (libzmq would take 99999 modulo 65536). */
static bool s_is_port(const char *text)
{
    char *end;
    if (strcmp(text, "*") == 0)
        return true;
    return isdigit((unsigned char)*text) && strtoul(text, &end, 10) <= UINT16_MAX && *end == '\0';
}

/*  Set the socket up for one endpoint: libzmq gives each bind and connect the options of that moment. */
static tt_status_t s_prepare(tt_sock_t *self, const char *endpoint, bool server)
{
    if (s_starts(endpoint, "ipc://")) {
        const char *path = endpoint + 6;
        if (*path == '\0' || strlen(path) > IPC_PATH_MAX)
            return tt_err(TT_INVALID, "%s: %s: a socket's path has 1 to %d bytes", self->name, endpoint, IPC_PATH_MAX);
        return s_use_plain(self);
    }
    const char *colon = strrchr(endpoint, ':');
    if (!s_starts(endpoint, "tcp://") || colon <= endpoint + 6 || !s_is_port(colon + 1))
        return tt_err(TT_INVALID, "%s: '%s' is neither ipc:///path nor tcp://address:port", self->name, endpoint);
    s_set(self, ZMQ_IPV6, endpoint[6] == '[');
    if (self->keys)
        return s_use_curve(self, server);
    if (!s_is_loopback(endpoint + 6))
        return tt_err(
            TT_DENIED, "%s: %s can be reached from other hosts: it needs the job's key", self->name, endpoint);
    return s_use_plain(self);
}

/*  libzmq would take a living process's socket file away: is somebody there? */
static bool s_is_alive(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const bool alive = fd >= 0 && (connect(fd, (struct sockaddr *)&address, sizeof address) == 0 || errno == EAGAIN);
    if (fd >= 0)
        close(fd);
    return alive;
}

static tt_status_t s_endpoint_error(const tt_sock_t *self, const char *verb, const char *endpoint)
{
    const char *text = zmq_strerror(errno);
    switch (errno) {
    case EADDRINUSE:
        return tt_err(
            TT_EXISTS, "%s: %s is in use by another process: end it, or choose another", self->name, endpoint);
    case EACCES:
        return tt_err(TT_DENIED, "%s: cannot %s %s: %s", self->name, verb, endpoint, text);
    case ENODEV:
    case EADDRNOTAVAIL: /* written well, and not of this host */
        return tt_err(
            TT_UNAVAILABLE, "%s: cannot %s %s: this host has no such address or interface", self->name, verb, endpoint);
    case EINVAL:
    case EPROTONOSUPPORT:
    case ENAMETOOLONG:
    case ENOENT:
        return tt_err(TT_INVALID, "%s: cannot %s %s: %s", self->name, verb, endpoint, text);
    default:
        return tt_err(TT_OS, "%s: cannot %s %s: %s", self->name, verb, endpoint, text);
    }
}

tt_status_t tt_sock_bind(tt_sock_t *self, const char *endpoint, char *actual, size_t size)
{
    char any[512]; /* port 0 is written * in libzmq */
    TT_TRY(s_prepare(self, endpoint, true));
    const size_t length = strlen(endpoint);
    if (s_starts(endpoint, "tcp://") && length > 2 && strcmp(endpoint + length - 2, ":0") == 0 && length < sizeof any) {
        snprintf(any, sizeof any, "%.*s*", (int)length - 1, endpoint);
        endpoint = any;
    }
    errno = EADDRINUSE;
    if (s_starts(endpoint, "ipc://") && s_is_alive(endpoint + 6))
        return s_endpoint_error(self, "bind", endpoint);
    if (zmq_bind(self->zmq, endpoint) != 0)
        return s_endpoint_error(self, "bind", endpoint);
    if (actual && zmq_getsockopt(self->zmq, ZMQ_LAST_ENDPOINT, actual, &size) != 0)
        return tt_err(TT_INVALID, "%s: no room for the endpoint", self->name);
    self->hot = true;
    return TT_OK;
}

/*  Index of a connected endpoint, or endpoint_count. */
static size_t s_find(const tt_sock_t *self, const char *endpoint)
{
    size_t i = 0;
    while (i < self->endpoint_count && strcmp(self->endpoints[i], endpoint) != 0)
        i++;
    return i;
}

tt_status_t tt_sock_connect(tt_sock_t *self, const char *endpoint)
{
    if (s_find(self, endpoint) < self->endpoint_count)
        return TT_OK;
    TT_TRY(s_prepare(self, endpoint, false));
    if (zmq_connect(self->zmq, endpoint) != 0)
        return s_endpoint_error(self, "connect to", endpoint);
    self->endpoints = tt_realloc(self->endpoints, tt_mul(self->endpoint_count + 1, sizeof *self->endpoints));
    self->endpoints[self->endpoint_count++] = tt_strdup(endpoint);
    self->hot = true;
    return TT_OK;
}

tt_status_t tt_sock_disconnect(tt_sock_t *self, const char *endpoint)
{
    const size_t at = s_find(self, endpoint);
    if (at == self->endpoint_count)
        return tt_err(TT_NOT_FOUND, "%s: not connected to %s", self->name, endpoint);
    const int failed = zmq_disconnect(self->zmq, endpoint);
    free(self->endpoints[at]);
    self->endpoints[at] = self->endpoints[--self->endpoint_count];
    self->hot = true;
    return failed ? s_endpoint_error(self, "disconnect from", endpoint) : TT_OK;
}

/* ---- peers: identities as text ----------------------------------------------------------------------------------- */

/*  A peer that gave itself no name gets five bytes from ZeroMQ, the first of them 0: shown as # and hex digits. */
enum { NAMELESS = 5 };

static bool s_peer_text(char out[64], const uint8_t *id, size_t size)
{
    if (size == NAMELESS && id[0] == 0) {
        snprintf(out, 64, "#%02x%02x%02x%02x%02x", id[0], id[1], id[2], id[3], id[4]);
        return true;
    }
    if (size == 0 || size > PEER_MAX || id[0] == '#')
        return false;
    for (size_t i = 0; i < size; i++)
        if (!isgraph(id[i]))
            return false;
    memcpy(out, id, size);
    out[size] = '\0';
    return true;
}

bool tt_peer_named(const char *peer)
{
    return peer[0] != '#';
}

static size_t s_peer_id(uint8_t id[64], const char *text)
{
    const size_t size = strlen(text);
    if (text[0] != '#') {
        memcpy(id, text, size < 64 ? size : 64);
        return size;
    }
    for (size_t i = 0; i < NAMELESS; i++) {
        unsigned byte = 0;
        sscanf(size == 1 + 2 * NAMELESS ? text + 1 + 2 * i : "", "%2x", &byte);
        id[i] = (uint8_t)byte;
    }
    return NAMELESS;
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

static tt_status_t s_send_error(const tt_sock_t *self, const char *peer, tt_msg_id_t id)
{
    if (errno == EAGAIN)
        return TT_AGAIN;
    const char *name = tt_msg_name(id);
    if (errno == EHOSTUNREACH)
        return tt_err(TT_UNAVAILABLE, "%s: no peer %s for %s", self->name, peer, name);
    return tt_err(TT_OS, "%s: cannot send %s: %s", self->name, name, zmq_strerror(errno));
}

static bool s_send_bytes(tt_sock_t *self, const void *data, size_t size, int flags)
{
    int sent;
    while ((sent = zmq_send(self->zmq, data, size, flags | ZMQ_DONTWAIT)) < 0 && errno == EINTR)
        ;
    return sent >= 0;
}

static bool s_send_frame(tt_sock_t *self, zmq_msg_t *frame, int flags)
{
    int sent;
    tt_frame_release(frame);
    while ((sent = zmq_msg_send(frame, self->zmq, flags | ZMQ_DONTWAIT)) < 0 && errno == EINTR)
        ;
    return sent >= 0;
}

static tt_status_t s_check_frames(const tt_sock_t *self, tt_msg_id_t id, zmq_msg_t *frames, size_t count)
{
    if (count > tt_msg_frames(id))
        return tt_err(
            TT_INVALID, "%s: %s with %zu frames, %zu at most", self->name, tt_msg_name(id), count, tt_msg_frames(id));
    for (size_t i = 0; i < count; i++)
        if (zmq_msg_size(&frames[i]) > self->max_bytes)
            return tt_err(TT_INVALID, "%s: a frame of %s has %zu bytes, %zu at most", self->name, tt_msg_name(id),
                zmq_msg_size(&frames[i]), self->max_bytes);
    return TT_OK;
}

/*  A PUB with a full queue loses messages without a word, and that its subscribers have read stands in commands which
 *  zmq_send itself looks at once in 3 million ticks of the processor, about a millisecond. Asking for events looks now;
 *  the other sockets do so when they receive. */
static void s_hear_readers(const tt_sock_t *self)
{
    int events;
    size_t size = sizeof events;
    while (zmq_getsockopt(self->zmq, ZMQ_EVENTS, &events, &size) != 0 && errno == EINTR)
        ;
}

/*  ZeroMQ takes or refuses a message with its first part; the parts behind it are never refused. */
tt_status_t tt_sock_send(tt_sock_t *self, const char *peer, const void *msg, zmq_msg_t *frames, size_t frame_count)
{
    TT_DCHECK(pthread_equal(self->owner, pthread_self()));
    const tt_msg_id_t id = *(const tt_msg_id_t *)msg;
    tt_buf_clear(&self->header);
    TT_TRY(tt_msg_pack(&self->header, msg));
    TT_TRY(s_check_frames(self, id, frames, frame_count));
    self->hot = true; /* sending may take the news of an arrival */
    if (self->type == TT_PUB)
        s_hear_readers(self);
    if (self->type == TT_ROUTER) {
        uint8_t bytes[64];
        const size_t size = s_peer_id(bytes, peer);
        if (size > PEER_MAX)
            return tt_err(TT_INVALID, "%s: '%s' is no peer", self->name, peer);
        if (!s_send_bytes(self, bytes, size, ZMQ_SNDMORE))
            return s_send_error(self, peer, id);
    }
    if (!s_send_bytes(self, self->header.data, self->header.size, frame_count ? ZMQ_SNDMORE : 0))
        return s_send_error(self, peer ? peer : "", id);
    for (size_t i = 0; i < frame_count; i++)
        if (!s_send_frame(self, &frames[i], i + 1 < frame_count ? ZMQ_SNDMORE : 0))
            return s_send_error(self, peer ? peer : "", id);
    return TT_OK;
}

/* ---- receiving --------------------------------------------------------------------------------------------------- */

void tt_packet_clear(tt_packet_t *self)
{
    for (size_t i = 0; i < self->frame_count; i++)
        tt_frame_close(&self->frame[i]);
    tt_msg_clear(&self->msg);
    self->frame_count = 0;
    self->peer[0] = '\0';
}

/*  False: nothing there (of the first part), or the socket has ended. */
static bool s_recv_part(tt_sock_t *self, zmq_msg_t *part)
{
    int size;
    zmq_msg_init(part);
    while ((size = zmq_msg_recv(part, self->zmq, ZMQ_DONTWAIT)) < 0 && errno == EINTR)
        ;
    return size >= 0;
}

/*  Read and drop what is left of a message, count it, and say who broke which rule. */
static tt_status_t s_violation(tt_sock_t *self, tt_packet_t *out, zmq_msg_t *part, const char *what)
{
    const tt_status_t status =
        tt_err(TT_PROTOCOL, "%s: from %s: %s", self->name, out->peer[0] ? out->peer : "a peer", what);
    self->violations++;
    tt_packet_clear(out);
    while (zmq_msg_more(part)) {
        zmq_msg_close(part);
        if (!s_recv_part(self, part))
            break;
    }
    zmq_msg_close(part);
    return status;
}

/*  The header in `part`, then the raw frames. */
static tt_status_t s_recv_body(tt_sock_t *self, tt_packet_t *out, zmq_msg_t *part)
{
    char what[1024];
    if (tt_msg_unpack(&out->msg, zmq_msg_data(part), zmq_msg_size(part)) != TT_OK) {
        snprintf(what, sizeof what, "%s", tt_err_text());
        return s_violation(self, out, part, what);
    }
    const size_t most = tt_msg_frames(out->msg.type);
    while (zmq_msg_more(part)) {
        if (out->frame_count == most) {
            snprintf(what, sizeof what, "%s with more than %zu frames", tt_msg_name(out->msg.type), most);
            return s_violation(self, out, part, what);
        }
        zmq_msg_close(part);
        if (!s_recv_part(self, part))
            return tt_err(TT_OS, "%s: a message is cut off: %s", self->name, zmq_strerror(errno));
        zmq_msg_t *frame = &out->frame[out->frame_count++];
        zmq_msg_init(frame);
        zmq_msg_copy(frame, part); /* a reference; `part` still knows whether more comes */
    }
    zmq_msg_close(part);
    return TT_OK;
}

tt_status_t tt_sock_recv(tt_sock_t *self, tt_packet_t *out)
{
    TT_DCHECK(pthread_equal(self->owner, pthread_self()));
    _Static_assert(TT_FRAMES_MAX == 2, "messages.def has at most two frames");
    zmq_msg_t part;
    tt_packet_clear(out);
    if (!s_recv_part(self, &part)) {
        self->hot = errno != EAGAIN;
        return errno == EAGAIN ? TT_AGAIN : tt_err(TT_OS, "%s: cannot receive: %s", self->name, zmq_strerror(errno));
    }
    if (self->type == TT_ROUTER) {
        if (!s_peer_text(out->peer, zmq_msg_data(&part), zmq_msg_size(&part)))
            return s_violation(self, out, &part, "an identity that is not 1 to 63 visible characters");
        if (!zmq_msg_more(&part))
            return s_violation(self, out, &part, "a message without a header");
        zmq_msg_close(&part);
        if (!s_recv_part(self, &part))
            return tt_err(TT_OS, "%s: a message is cut off: %s", self->name, zmq_strerror(errno));
    }
    return s_recv_body(self, out, &part);
}
