#include "common/net/seat.h"
#include <arpa/inet.h>
#include <limits.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { ENDPOINT = 256 };

static tt_status_t s_take_run(tt_seat_t *self, const char *run)
{
    char path[PATH_MAX], real[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/sock", run) >= (int)sizeof path || !realpath(path, real))
        return tt_err(TT_NOT_FOUND, "%s: not the directory of a running job (it has no sock/)", run);
    const size_t room = sizeof((struct sockaddr_un *)0)->sun_path - sizeof "/aggregator-65535-4194304.weights";
    const int length = snprintf(self->dir, sizeof self->dir, "%s", real);
    if (length >= (int)sizeof self->dir || (size_t)length > room)
        return tt_err(TT_INVALID, "%s: too long for a socket; use a run directory with a shorter path", real);
    snprintf(self->control, sizeof self->control, "ipc://%s/control", self->dir);
    return TT_OK;
}

/*  "tcp://HOST:PORT" into its parts. */
static tt_status_t s_split(const char *endpoint, char host[128], char port[16])
{
    const char *start = strncmp(endpoint, "tcp://", 6) == 0 ? endpoint + 6 : NULL, *colon = strrchr(endpoint, ':');
    if (!start || colon <= start || colon - start >= 128 || strlen(colon + 1) - 1 >= 15)
        return tt_err(TT_USAGE, "'%s' is not tcp://HOST:PORT", endpoint);
    snprintf(host, 128, "%.*s", (int)(colon - start), start);
    snprintf(port, 16, "%s", colon + 1);
    return TT_OK;
}

/*  Which of our addresses leads there? A connected UDP socket knows; nothing is sent. */
static tt_status_t s_local_address(const char *endpoint, char *out, size_t size)
{
    char host[128], port[16];
    TT_TRY(s_split(endpoint, host, port));
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_DGRAM}, *found = NULL;
    const int code = getaddrinfo(host, port, &hints, &found);
    if (code != 0)
        return tt_err(TT_NOT_FOUND, "%s: %s", endpoint, gai_strerror(code));
    struct sockaddr_in mine;
    socklen_t length = sizeof mine;
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const bool ok = fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) == 0 &&
                    getsockname(fd, (struct sockaddr *)&mine, &length) == 0 &&
                    inet_ntop(AF_INET, &mine.sin_addr, out, (socklen_t)size) != NULL;
    if (fd >= 0)
        close(fd);
    freeaddrinfo(found);
    return ok ? TT_OK : tt_err_errno(TT_OS, "%s: no way to that address; give one with --bind", endpoint);
}

static tt_status_t s_take_tcp(tt_seat_t *self, const tt_seat_args_t *args)
{
    if (!args->key)
        return tt_err(TT_USAGE, "--coordinator needs --key FILE, the job's key (it lies in the run directory)");
    char host[128], port[16];
    TT_TRY(s_split(args->coordinator, host, port));
    if (strlen(args->coordinator) >= sizeof self->control)
        return tt_err(TT_USAGE, "'%s' is too long", args->coordinator);
    snprintf(self->control, sizeof self->control, "%s", args->coordinator);
    if (args->bind)
        return TT_OK;
    return s_local_address(args->coordinator, self->bind, sizeof self->bind);
}

tt_status_t tt_seat_take(tt_seat_t *self, tt_peer_role_t role, int index, const tt_seat_args_t *args)
{
    *self = (tt_seat_t){.role = role, .index = index};
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

const tt_keys_t *tt_seat_keys(const tt_seat_t *self)
{
    return self->secure ? &self->keys : NULL;
}

tt_status_t tt_seat_bind(const tt_seat_t *self, tt_sock_t *sock, const char *name, char *ipc, char *tcp)
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

void tt_seat_leave(const char *ipc)
{
    if (strncmp(ipc, "ipc://", 6) == 0)
        unlink(ipc + 6);
}

tt_status_t tt_seat_reach(const tt_seat_t *self, const char *ipc, const char *tcp, const char **out)
{
    *out = self->dir[0] && ipc && ipc[0] ? ipc : tcp;
    if (!*out || !**out)
        return tt_err(TT_UNAVAILABLE, "it offers no %s endpoint", self->dir[0] ? "ipc or tcp" : "tcp");
    return TT_OK;
}
