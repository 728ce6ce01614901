#include "common/http/bind.h"
#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 256 };

static tt_status_t s_err_address(const char *text)
{
    return tt_err(TT_INVALID, "'%s' is not ADDRESS:PORT, as 127.0.0.1:0 or :8080", text);
}

/*  "HOST:PORT", "[HOST]:PORT", ":PORT" -> host "" for every address. */
static tt_status_t s_split(char host[64], char port[8], const char *text)
{
    const char *colon = strrchr(text, ':');
    size_t size = colon ? (size_t)(colon - text) : 0;
    const char *from = text;
    if (size >= 2 && text[0] == '[' && text[size - 1] == ']') {
        from++;
        size -= 2;
    }
    char *end = NULL;
    const long number = colon ? strtol(colon + 1, &end, 10) : -1;
    if (!colon || !isdigit((unsigned char)colon[1]) || *end || number > 65535 || size > 63)
        return s_err_address(text);
    snprintf(host, 64, "%.*s", (int)size, from);
    snprintf(port, 8, "%u", (unsigned)number & 0xffff);
    return TT_OK;
}

static int s_bind(const struct addrinfo *at)
{
    const int fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1, zero = 0;
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (at->ai_family == AF_INET6) /* "::" is for IPv4 too */
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
    if (bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
}

/*  TT_INVALID without words: not a numeric address. */
static tt_status_t s_bind_host(int *out, const char *host, const char *port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV | AI_NUMERICHOST};
    struct addrinfo *list = NULL;
    if (getaddrinfo(host, port, &hints, &list) != 0)
        return TT_INVALID;
    *out = s_bind(list);
    freeaddrinfo(list);
    return TT_OK;
}

tt_status_t http_bind(int *out, const char *address)
{
    char host[64], port[8];
    int fd = -1;
    TT_TRY(s_split(host, port, address));
    const char *numeric = strcmp(host, "localhost") == 0 ? "127.0.0.1" : *host ? host : "::";
    if (s_bind_host(&fd, numeric, port) != TT_OK)
        return s_err_address(address);
    if (fd < 0 && !*host && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL)) /* no IPv6 here */
        TT_TRY(s_bind_host(&fd, "0.0.0.0", port));
    if (fd < 0)
        return tt_err_errno(errno == EADDRINUSE ? TT_EXISTS : TT_OS, "cannot serve HTTP at %s", address);
    *out = fd;
    return TT_OK;
}

int http_bound_port(int fd)
{
    struct sockaddr_storage at = {0};
    socklen_t size = sizeof at;
    getsockname(fd, (struct sockaddr *)&at, &size);
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    memcpy(&in, &at, sizeof in);
    memcpy(&in6, &at, sizeof in6);
    return ntohs(at.ss_family == AF_INET6 ? in6.sin6_port : in.sin_port);
}
