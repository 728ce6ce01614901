#include "elasticdl/reply.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int reply_code(tt_status_t status)
{
    switch (status) {
    case TT_OK:
        return 200;
    case TT_INVALID:
    case TT_USAGE:
        return 400;
    case TT_NOT_FOUND:
        return 404;
    case TT_EXISTS:
    case TT_STOPPED:
        return 409;
    case TT_UNAVAILABLE:
    case TT_TIMEOUT:
        return 503;
    default:
        return 500;
    }
}

void reply_text(tt_server_t *server, uint64_t id, int code, const char *text)
{
    tt_server_reply(server, id, code, "text/plain; charset=utf-8", text, strlen(text));
}

void reply_json(tt_server_t *server, uint64_t id, int code, json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT);
    TT_CHECK(text != NULL);
    tt_server_reply(server, id, code, "application/json", text, strlen(text));
    free(text);
    json_decref(value);
}

void reply_url(char out[128], const char *address, int port)
{
    const int host = (int)(strrchr(address, ':') - address);
    snprintf(out, 128, "http://%.*s:%d", host ? host : 7, host ? address : "0.0.0.0", port);
}

bool reply_is_loopback(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strncmp(address, "localhost:", 10) == 0 ||
           strncmp(address, "[::1]:", 6) == 0;
}
