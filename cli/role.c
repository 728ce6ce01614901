#include "cli/role.h"
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "cli/pod.h"
#include "common/base/log.h"
#include "common/base/signals.h"
#include "common/config/train.h"

/*  Where roles of this host are to be reached from others, when the job lets others in. */
typedef struct {
    char bind[128], key[4200];
} listen_t;

/*  An address of ours that is not loopback, for a job that listens on all of them; loopback when there is none. */
static tt_status_t s_any_address(char *out, size_t size)
{
    struct ifaddrs *all = NULL;
    if (getifaddrs(&all) != 0)
        return tt_err_errno(TT_OS, "our addresses");
    snprintf(out, size, "127.0.0.1");
    for (const struct ifaddrs *it = all; it; it = it->ifa_next) {
        if (!it->ifa_addr || it->ifa_addr->sa_family != AF_INET || (it->ifa_flags & IFF_LOOPBACK))
            continue;
        const struct sockaddr_in *in = (const void *)it->ifa_addr;
        if (inet_ntop(AF_INET, &in->sin_addr, out, (socklen_t)size))
            break;
    }
    freeifaddrs(all);
    return TT_OK;
}

/*  coordinator.listen of the run, for a role that was not told where to bind. */
static tt_status_t s_where_it_listens(const char *run, listen_t *out)
{
    char path[4200];
    tt_buf_t text;
    tt_train_cfg_t train;
    snprintf(path, sizeof path, "%s/config.yaml", run);
    tt_buf_init(&text, 1 << 20);
    tt_status_t status = tt_buf_read_file(&text, path);
    if (status == TT_OK)
        status = tt_train_parse(&train, tt_buf_text(&text), text.size);
    tt_buf_free(&text);
    if (status != TT_OK)
        return status == TT_NOT_FOUND
                   ? TT_OK
                   : tt_err_wrap(status, "%s", path); /* the location says what is wrong with such a directory */
    const char *listen = train.coordinator.listen, *colon = strrchr(listen, ':');
    if (strncmp(listen, "tcp://", 6) != 0 || colon < listen + 6)
        return TT_OK;
    snprintf(out->key, sizeof out->key, "%s/key", run);
    snprintf(out->bind, sizeof out->bind, "%.*s", (int)(colon - listen - 6), listen + 6);
    if (strcmp(out->bind, "*") == 0 || strcmp(out->bind, "0.0.0.0") == 0)
        return s_any_address(out->bind, sizeof out->bind);
    return TT_OK;
}

/*  In a pod of a DIJob the environment says what the command line does not. */
static tt_status_t s_ask_pod(tt_location_args_t *from, tt_pod_t *pod, tt_peer_role_t role, int signals)
{
    bool found = false;
    if (from->run || from->coordinator)
        return TT_OK;
    TT_TRY(tt_pod_look(pod, role, &found));
    if (!found)
        return TT_OK;
    from->coordinator = pod->coordinator;
    from->pod = pod->name;
    if (!from->key)
        from->key = pod->key;
    if (!from->key)
        return tt_err(TT_NOT_FOUND, "no key at %s: is the job's Secret mounted there? Or give --key FILE", TT_POD_KEY);
    return tt_pod_await_name(pod->coordinator, signals);
}

static tt_status_t s_take_location(tt_location_t *location, tt_peer_role_t role, const tt_args_t *args, int signals)
{
    uint64_t index = UINT64_MAX;
    TT_TRY(tt_arg_u64(args, "index", &index, 0, 65535));
    tt_location_args_t from = {.run = tt_arg(args, "run"),
        .coordinator = tt_arg(args, "coordinator"),
        .key = tt_arg(args, "key"),
        .bind = tt_arg(args, "bind")};
    tt_log_init(tt_peer_role_name(role), index == UINT64_MAX ? -1 : (int)index);
    listen_t listen = {0};
    tt_pod_t pod = {0};
    TT_TRY(s_ask_pod(&from, &pod, role, signals));
    if (from.run && !from.key && !from.bind)
        TT_TRY(s_where_it_listens(from.run, &listen));
    if (listen.bind[0]) {
        from.bind = listen.bind;
        from.key = listen.key;
    }
    return tt_location_take(location, role, index == UINT64_MAX ? -1 : (int)index, &from);
}

int tt_cli_role(const char *command, tt_peer_role_t role, int argc, char **argv,
    tt_status_t (*run)(const tt_location_t *location, int signals_fd))
{
    int code, signals = -1;
    TT_AUTO(tt_args) args = tt_args_new(&code, command, argc, argv);
    if (!args)
        return code;
    tt_location_t location;
    tt_status_t status = tt_signals_open(&signals);
    if (status == TT_OK)
        status = s_take_location(&location, role, args, signals);
    if (status == TT_OK)
        status = run(&location, signals);
    if (signals >= 0)
        close(signals);
    return status == TT_OK ? 0 : tt_args_fail(args, status);
}
