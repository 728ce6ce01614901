#include "common/net/location.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/net/resolve.h"
#include "common/net/sockdir.h"

enum { ENDPOINT = 256, POD_PATIENCE_MS = 600000 };

static tt_status_t s_take_run(tt_location_t *self, const char *run)
{
    TT_TRY(tt_sockdir_find(run, self->dir, sizeof self->dir));
    snprintf(self->control, sizeof self->control, "ipc://%s/control", self->dir);
    return TT_OK;
}

/*  Which of our addresses leads there? A connected UDP socket knows; nothing is sent. */
static tt_status_t s_local_address(const char *endpoint, char *out, size_t size)
{
    char resolved[300], host[256], port[16];
    TT_TRY(tt_resolve(endpoint, resolved, sizeof resolved));
    TT_TRY(tt_endpoint_split(resolved, host, port));
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_DGRAM};
    struct addrinfo *found = NULL;
    const int code = getaddrinfo(host, port, &hints, &found);
    if (code != 0)
        return tt_err(TT_NOT_FOUND, "%s: %s", endpoint, gai_strerror(code));
    struct sockaddr_storage mine;
    socklen_t length = sizeof mine;
    const bool v6 = found->ai_family == AF_INET6;
    char address[INET6_ADDRSTRLEN + 1];
    const int fd = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const bool ok =
        fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) == 0 &&
        getsockname(fd, (struct sockaddr *)&mine, &length) == 0 &&
        getnameinfo((struct sockaddr *)&mine, length, address, sizeof address, NULL, 0, NI_NUMERICHOST) == 0;
    const int error = errno;
    if (fd >= 0)
        close(fd);
    freeaddrinfo(found);
    if (!ok) {
        errno = error;
        return tt_err_errno(TT_OS, "%s: no way to that address; give one with --bind", endpoint);
    }
    snprintf(out, size, "%s%s%s", v6 ? "[" : "", address, v6 ? "]" : "");
    return TT_OK;
}

static tt_status_t s_take_tcp(tt_location_t *self, const tt_location_args_t *args)
{
    if (!args->key)
        return tt_err(TT_USAGE, "--coordinator needs --key FILE, the job's key (it lies in the run directory)");
    char host[256], port[16];
    TT_TRY(tt_endpoint_split(args->coordinator, host, port));
    if (strlen(args->coordinator) >= sizeof self->control)
        return tt_err(TT_USAGE, "'%s' is too long", args->coordinator);
    snprintf(self->control, sizeof self->control, "%s", args->coordinator);
    if (args->bind)
        return TT_OK;
    return s_local_address(args->coordinator, self->bind, sizeof self->bind);
}

tt_status_t tt_location_take(tt_location_t *self, tt_peer_role_t role, int index, const tt_location_args_t *args)
{
    *self = (tt_location_t){.role = role, .index = index, .clock = tt_clock_or_real(args->clock)};
    snprintf(self->pod, sizeof self->pod, "%s", args->pod ? args->pod : "");
    if (!args->run == !args->coordinator)
        return tt_err(TT_USAGE, "give either --run DIR or --coordinator tcp://HOST:PORT");
    if (args->bind && !args->key)
        return tt_err(TT_USAGE, "--bind needs --key FILE: others reach that address");
    if (args->bind && snprintf(self->bind, sizeof self->bind, "%s", args->bind) >= (int)sizeof self->bind)
        return tt_err(TT_USAGE, "'%s' is too long for an address", args->bind);
    if (args->key) {
        TT_TRY(tt_keys_read(&self->keys, args->key));
        self->secure = true;
    }
    return args->run ? s_take_run(self, args->run) : s_take_tcp(self, args);
}

const tt_keys_t *tt_location_keys(const tt_location_t *self)
{
    return self->secure ? &self->keys : NULL;
}

/*  Pods start in any order, and a coordinator that was evicted may be away for as long as it takes to find it a node. */
tt_link_opts_t tt_location_link(const tt_location_t *self)
{
    return (tt_link_opts_t){.endpoint = self->control,
        .keys = tt_location_keys(self),
        .role = self->role,
        .index = self->index,
        .pod = self->pod,
        .clock = self->clock,
        .patience_ms = self->pod[0] ? POD_PATIENCE_MS : 0};
}

tt_status_t tt_location_bind(const tt_location_t *self, tt_sock_t *sock, const char *name, char *ipc, char *tcp)
{
    char endpoint[ENDPOINT + 160];
    ipc[0] = tcp[0] = 0;
    if (self->dir[0]) {
        snprintf(endpoint, sizeof endpoint, "ipc://%s/%s-%d-%d.%s", self->dir, tt_peer_role_name(self->role),
            self->index, (int)getpid(), name);
        TT_TRY(tt_sock_bind(sock, endpoint, ipc, ENDPOINT));
    }
    if (self->bind[0]) {
        snprintf(endpoint, sizeof endpoint, "tcp://%s:*", self->bind);
        TT_TRY(tt_sock_bind(sock, endpoint, tcp, ENDPOINT));
    }
    return TT_OK;
}

void tt_location_leave(const char *ipc)
{
    if (strncmp(ipc, "ipc://", 6) == 0)
        unlink(ipc + 6);
}

tt_status_t tt_location_reach(const tt_location_t *self, const char *ipc, const char *tcp, const char **out)
{
    *out = self->dir[0] && ipc && ipc[0] ? ipc : tcp;
    if (!*out || !**out)
        return tt_err(TT_UNAVAILABLE, "it offers no %s endpoint", self->dir[0] ? "ipc or tcp" : "tcp");
    return TT_OK;
}
