#include "cli/pod.h"
#include <ctype.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "common/base/signals.h"
#include "common/net/resolve.h"
#define TT_LOG_COMPONENT "pod"
#include "common/base/log.h"

enum { RETRY_MS = 500, SAY_EVERY_MS = 10000, DEADLINE_MS = 600000 };

static const char *s_env(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static tt_status_t s_port(uint16_t *out, tt_peer_role_t role)
{
    char name[32];
    size_t i = 0;
    for (const char *c = tt_peer_role_name(role); *c && i < sizeof name - 6; c++)
        name[i++] = (char)toupper((unsigned char)*c);
    snprintf(name + i, sizeof name - i, "_PORT");
    const char *text = s_env(name);
    if (!text)
        return TT_OK;
    char *end;
    const long port = strtol(text, &end, 10);
    if (*end || port < 1 || port > 65535)
        return tt_err(TT_CONFIG, "%s is '%s', not a port", name, text);
    *out = (uint16_t)port;
    return TT_OK;
}

static tt_status_t s_coordinator(char *out, size_t size, const char *url)
{
    char host[256], port[16];
    const char *sep = strstr(url, "://");
    if (snprintf(out, size, "tcp://%s", sep ? sep + 3 : url) >= (int)size)
        return tt_err(TT_CONFIG, "KUBERNETES_COORDINATOR_URL is too long: '%s'", url);
    if (tt_endpoint_split(out, host, port) != TT_OK)
        return tt_err(TT_CONFIG, "KUBERNETES_COORDINATOR_URL is '%s', not HOST:PORT", url);
    return TT_OK;
}

tt_status_t tt_pod_look(tt_pod_t *out, tt_peer_role_t role, bool *found)
{
    const char *name = s_env("KUBERNETES_POD_NAME"), *space = s_env("KUBERNETES_POD_NAMESPACE");
    const char *url = s_env("KUBERNETES_COORDINATOR_URL");
    const char *key = s_env("TUTTI_POD_KEY"), *run = s_env("TUTTI_POD_RUN");
    *out = (tt_pod_t){.run = run ? run : TT_POD_RUN};
    *found = name && url;
    if (!*found)
        return TT_OK;
    snprintf(out->name, sizeof out->name, "%s/%s", space ? space : "default", name);
    const char *restarts = s_env("KUBERNETES_COORDINATOR_RESTARTS");
    out->again = restarts && strcmp(restarts, "0") != 0;
    key = key ? key : TT_POD_KEY;
    out->key = access(key, F_OK) == 0 ? key : NULL;
    TT_TRY(s_port(&out->port, role));
    return role == TT_PEER_COORDINATOR ? TT_OK : s_coordinator(out->coordinator, sizeof out->coordinator, url);
}

tt_status_t tt_pod_await_name(const char *endpoint, int signals_fd)
{
    char address[300];
    const int64_t begun = tt_now_ms(tt_clock_real());
    int64_t say = begun;
    for (;;) {
        const tt_status_t status = tt_resolve(endpoint, address, sizeof address);
        if (status != TT_NOT_FOUND)
            return status;
        const int64_t now = tt_now_ms(tt_clock_real());
        if (now - begun > DEADLINE_MS)
            return tt_err_wrap(TT_TIMEOUT, "no coordinator's service for %d s", DEADLINE_MS / 1000);
        if (now >= say) {
            log_info("waiting for the coordinator's service: %s", tt_err_text());
            say = now + SAY_EVERY_MS;
        }
        struct pollfd signals = {.fd = signals_fd, .events = POLLIN};
        if (poll(&signals, 1, RETRY_MS) > 0 && tt_signals_next(signals_fd) != 0)
            return tt_err(TT_STOPPED, "asked to end before the coordinator was found");
    }
}
