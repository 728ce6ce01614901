/*  control - the run's control socket: what `tutti status`, `scale` and `stop` ask a coordinator of ours is answered here. */
#include <stdlib.h>
#include <string.h>
#include "common/job/order.h"
#include "k8s/api/dump.h"
#include "local/run.h"
#define TT_LOG_COMPONENT "local"
#include "common/base/log.h"

enum { BEAT_MS = 1000, LEASE_MS = 5000, LINGER_MS = 500 };

static tt_status_t s_stop(run_t *run, const char *body)
{
    json_t *object = NULL;
    TT_TRY(tt_order_parse(&object, "stop", body));
    const tt_status_t status = tt_order_check_stop(object, true);
    const bool now = json_is_true(json_object_get(object, "now"));
    json_decref(object);
    TT_TRY(status);
    run_stop(run, 0);
    if (now)
        kubelet_end(run->kubelet, 0);
    return TT_OK;
}

static tt_status_t s_scale(run_t *run, const char *body)
{
    json_t *wanted = NULL;
    TT_TRY(tt_order_parse(&wanted, "scale", body));
    const tt_status_t status = run_scale(run, wanted);
    json_decref(wanted);
    return status;
}

/*  *answer: JSON text; caller frees; NULL = none. */
static tt_status_t s_order(run_t *run, const tt_msg_REQUEST_t *request, char **answer)
{
    const char *verb = request->verb ? request->verb : "";
    json_t *status = NULL;
    if (strcmp(verb, "stop") == 0)
        return s_stop(run, request->body);
    if (strcmp(verb, "scale") == 0)
        TT_TRY(s_scale(run, request->body));
    else if (strcmp(verb, "status") != 0)
        return tt_err(TT_UNSUPPORTED, "a %s on this machine knows no '%.40s'", run->front->kind, verb);
    run_settle(run);
    status = run_status(run);
    *answer = kube_dump(strcmp(verb, "scale") == 0 ? json_object_get(status, "replicas") : status);
    json_decref(status);
    return TT_OK;
}

static void s_request(run_t *run, tt_sock_t *sock, const char *peer, const tt_msg_REQUEST_t *request)
{
    char *answer = NULL;
    const tt_status_t status = s_order(run, request, &answer);
    char *body = status == TT_OK ? answer : (char *)(uintptr_t)tt_err_text();
    const tt_msg_REPLY_t reply = TT_MSG(REPLY, .id = request->id, .status = status, .body = body);
    if (tt_sock_send(sock, peer, &reply, NULL, 0) != TT_OK)
        log_debug("%s", tt_err_text());
    free(answer);
}

static tt_status_t s_on_packet(void *ctx, tt_sock_t *sock, tt_packet_t *packet)
{
    run_t *run = ctx;
    char *run_dir = (char *)(uintptr_t)run->opts->run->path;
    const tt_msg_WELCOME_t welcome =
        TT_MSG(WELCOME, .wire = TT_WIRE_VERSION, .beat_ms = BEAT_MS, .lease_ms = LEASE_MS, .run_dir = run_dir);
    const tt_msg_HEARTBEAT_t beat = TT_MSG(HEARTBEAT, .seq = packet->msg.HEARTBEAT.seq);
    tt_status_t status = TT_OK;
    switch (packet->msg.type) {
    case TT_MSG_HELLO:
        status = tt_sock_send(sock, packet->peer, &welcome, NULL, 0);
        break;
    case TT_MSG_HEARTBEAT:
        status = tt_sock_send(sock, packet->peer, &beat, NULL, 0);
        break;
    case TT_MSG_REQUEST:
        s_request(run, sock, packet->peer, &packet->msg.REQUEST);
        break;
    default:
        break;
    }
    if (status != TT_OK)
        log_debug("%s", tt_err_text());
    return TT_OK;
}

tt_status_t control_serve(run_t *self)
{
    char endpoint[4096];
    tt_rundir_control(self->opts->run, endpoint, sizeof endpoint);
    const tt_sock_opts_t opts = {.name = "control", .linger_ms = LINGER_MS};
    TT_TRY(tt_sock_new(&self->control, TT_ROUTER, &opts));
    TT_TRY(tt_sock_bind(self->control, endpoint, NULL, 0));
    tt_loop_sock(self->loop, self->control, s_on_packet, self);
    return TT_OK;
}
