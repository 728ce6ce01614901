#include "common/net/wake.h"
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct sockaddr_un s_address(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    return address;
}

tt_status_t tt_wake_open(tt_wake_t *out, const char *path)
{
    const struct sockaddr_un address = s_address(path);
    if (strlen(path) >= sizeof out->path)
        return tt_err(TT_INVALID, "%s: too long for a socket", path);
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        const tt_status_t status = tt_err_errno(TT_OS, "%s", path);
        if (fd >= 0)
            close(fd);
        return status;
    }
    out->fd = fd;
    memcpy(out->path, path, strlen(path) + 1);
    return TT_OK;
}

void tt_wake_drain(const tt_wake_t *self)
{
    char byte;
    while (recv(self->fd, &byte, sizeof byte, 0) >= 0)
        continue;
}

void tt_wake_other(const tt_wake_t *self, const char *path)
{
    const struct sockaddr_un address = s_address(path);
    const ssize_t sent = sendto(self->fd, "", 1, MSG_NOSIGNAL, (const struct sockaddr *)&address, sizeof address);
    (void)sent; /* full: it has been told already */
}

void tt_wake_close(tt_wake_t *self)
{
    if (self->fd < 0)
        return;
    close(self->fd);
    unlink(self->path);
    self->fd = -1;
}
