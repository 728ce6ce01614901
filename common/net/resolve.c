#include "common/net/resolve.h"
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

tt_status_t tt_endpoint_split(const char *endpoint, char host[256], char port[16])
{
    const char *start = strncmp(endpoint, "tcp://", 6) == 0 ? endpoint + 6 : NULL, *colon = strrchr(endpoint, ':');
    if (!start || colon <= start || colon - start >= 256 || strlen(colon + 1) - 1 >= 15)
        return tt_err(TT_USAGE, "'%s' is not tcp://HOST:PORT", endpoint);
    const bool brackets = *start == '[' && colon[-1] == ']';
    snprintf(host, 256, "%.*s", (int)(colon - start) - 2 * brackets, start + brackets);
    snprintf(port, 16, "%s", colon + 1);
    return TT_OK;
}

static bool s_is_address(const char *host)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    return strcmp(host, "*") == 0 || inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

static const struct addrinfo *s_choose(const struct addrinfo *found)
{
    for (const struct addrinfo *it = found; it; it = it->ai_next)
        if (it->ai_family == AF_INET)
            return it;
    return found;
}

tt_status_t tt_resolve(const char *endpoint, char *out, size_t size)
{
    char host[256], port[16], address[INET6_ADDRSTRLEN + 1];
    const char *result = endpoint;
    char text[INET6_ADDRSTRLEN + 32];
    if (strncmp(endpoint, "tcp://", 6) == 0) {
        TT_TRY(tt_endpoint_split(endpoint, host, port));
        if (!s_is_address(host)) {
            const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
            struct addrinfo *found = NULL;
            const int code = getaddrinfo(host, NULL, &hints, &found);
            if (code != 0)
                return tt_err(TT_NOT_FOUND, "%s: %s", endpoint, gai_strerror(code));
            const struct addrinfo *it = s_choose(found);
            const int failed =
                getnameinfo(it->ai_addr, it->ai_addrlen, address, sizeof address, NULL, 0, NI_NUMERICHOST);
            const bool v6 = it->ai_family == AF_INET6;
            freeaddrinfo(found);
            if (failed)
                return tt_err(TT_NOT_FOUND, "%s: %s", endpoint, gai_strerror(failed));
            snprintf(text, sizeof text, "tcp://%s%s%s:%s", v6 ? "[" : "", address, v6 ? "]" : "", port);
            result = text;
        }
    }
    if (snprintf(out, size, "%s", result) >= (int)size)
        return tt_err(TT_USAGE, "'%s' is too long", endpoint);
    return TT_OK;
}
