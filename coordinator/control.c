#define TT_LOG_COMPONENT "control"
#include "coordinator/control.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/net/sockdir.h"

enum { LINGER_MS = 500, HWM = 256 }; /* messages for a peer: rosters and pieces of snapshots may have a MiB or more */

/*  Structure of our class */
struct control {
    tt_loop_t *loop; /* borrowed */
    tt_sock_t *ipc, *tcp;
    int lock; /* RUN_DIR/lock: one coordinator a run directory */
    char listen[256];
};

/* ---- the run directory --------------------------------------------------------------------------------------------- */

static tt_status_t s_lock(int *fd_out, const char *run_dir)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/coordinator.lock", run_dir);
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return tt_err_errno(errno == ENOENT ? TT_NOT_FOUND : TT_IO, "%s", path);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        close(fd);
        return tt_err(TT_EXISTS,
            "%s is in use by another coordinator; stop that run first, or take another run directory", run_dir);
    }
    *fd_out = fd;
    return TT_OK;
}

/* ---- sockets ------------------------------------------------------------------------------------------------------- */

static tt_status_t s_open_ipc(control_t *self, const char *run_dir)
{
    char dir[PATH_MAX], endpoint[PATH_MAX + 16];
    TT_TRY(tt_sockdir_open(run_dir));
    TT_TRY(tt_sockdir_find(run_dir, dir, sizeof dir));
    snprintf(endpoint, sizeof endpoint, "ipc://%s/control", dir);
    TT_TRY(
        tt_sock_new(&self->ipc, TT_ROUTER, &(tt_sock_opts_t){.name = "control", .hwm = HWM, .linger_ms = LINGER_MS}));
    return tt_sock_bind(self->ipc, endpoint, NULL, 0);
}

static tt_status_t s_take_keys(tt_keys_t *keys, const control_opts_t *opts)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/key", opts->run_dir);
    if (opts->key || access(path, F_OK) == 0)
        return tt_keys_read(keys, opts->key ? opts->key : path);
    return tt_keys_create(keys, path);
}

static tt_status_t s_open_tcp(control_t *self, const control_opts_t *from)
{
    tt_keys_t keys;
    TT_TRY(s_take_keys(&keys, from));
    const tt_sock_opts_t opts = {.name = "control tcp", .hwm = HWM, .linger_ms = LINGER_MS, .keys = &keys};
    TT_TRY(tt_sock_new(&self->tcp, TT_ROUTER, &opts));
    const tt_status_t status = tt_sock_bind(self->tcp, from->listen, self->listen, sizeof self->listen);
    return status == TT_OK ? TT_OK : tt_err_wrap(status, "coordinator.listen");
}

tt_status_t control_open(control_t **self_p, tt_loop_t *loop, const control_opts_t *opts)
{
    control_t *self = tt_new0(sizeof *self);
    self->loop = loop;
    self->lock = -1;
    tt_status_t status = s_lock(&self->lock, opts->run_dir);
    if (status == TT_OK)
        status = s_open_ipc(self, opts->run_dir);
    if (status == TT_OK && opts->listen[0])
        status = s_open_tcp(self, opts);
    if (status != TT_OK) {
        control_close(&self);
        return status;
    }
    tt_loop_sock(loop, self->ipc, opts->on_packet, opts->ctx);
    if (self->tcp)
        tt_loop_sock(loop, self->tcp, opts->on_packet, opts->ctx);
    *self_p = self;
    return TT_OK;
}

void control_close(control_t **self_p)
{
    control_t *self = *self_p;
    if (!self)
        return;
    if (self->ipc)
        tt_loop_forget_sock(self->loop, self->ipc);
    if (self->tcp)
        tt_loop_forget_sock(self->loop, self->tcp);
    tt_sock_destroy(&self->ipc);
    tt_sock_destroy(&self->tcp);
    if (self->lock >= 0)
        close(self->lock);
    free(self);
    *self_p = NULL;
}

bool control_is_tcp(const control_t *self, const tt_sock_t *sock)
{
    return self && self->tcp && self->tcp == sock;
}

const char *control_listen(const control_t *self)
{
    return self->listen;
}

/* ---- sending ------------------------------------------------------------------------------------------------------- */

bool control_send(void *sock, const char *identity, const void *msg)
{
    if (tt_sock_send(sock, identity, msg, NULL, 0) == TT_OK)
        return true;
    log_debug("%s to %s: %s", tt_msg_name(*(const tt_msg_id_t *)msg), identity, tt_err_text());
    return false;
}

static void s_tell_roster(const tt_msg_ROSTER_t *message, peer_t *peer)
{
    if (peer->told < message->epoch && control_send(peer->sock, peer->identity, message))
        peer->told = message->epoch;
}

/*  An aggregator has nothing in hand that it would have to finish: STOP. */
static void s_tell_victim(peer_t *peer)
{
    if (peer->state != PEER_DRAINING || peer->told_to_leave)
        return;
    const char *reason = peer->asks ? "as it asked" : "scaled down";
    const tt_msg_DRAIN_t drain = TT_MSG(DRAIN, .reason = (char *)(uintptr_t)reason);
    const tt_msg_STOP_t stop = TT_MSG(STOP, .reason = (char *)(uintptr_t)reason);
    const void *message = peer->role == TT_PEER_AGGREGATOR ? (const void *)&stop : (const void *)&drain;
    peer->told_to_leave = control_send(peer->sock, peer->identity, message);
}

void control_tell(const roster_t *roster, peer_t *peer)
{
    if (!roster_announced(roster))
        return;
    tt_msg_ROSTER_t message;
    roster_message(roster, &message);
    s_tell_roster(&message, peer);
    s_tell_victim(peer);
}

void control_announce(roster_t *roster)
{
    for (size_t i = 0; i < roster_peer_count(roster); i++)
        control_tell(roster, roster_peer(roster, i));
}

void control_stop(roster_t *roster, const char *reason, uint32_t code)
{
    const tt_msg_STOP_t stop = TT_MSG(STOP, .reason = (char *)(uintptr_t)reason, .code = code);
    for (size_t i = 0; i < roster_peer_count(roster); i++) {
        const peer_t *peer = roster_peer(roster, i);
        control_send(peer->sock, peer->identity, &stop);
    }
}
