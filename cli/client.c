#include "cli/client.h"
#include <string.h>
#include "common/base/clock.h"
#include "common/net/link.h"

enum { LOOK_MS = 50 };

/*  TT_STOPPED is the coordinator's word for a run that is ending: for who asks it is not there any more, and he was not stopped. */
static tt_status_t s_take_reply(const tt_msg_REPLY_t *reply, json_t **out)
{
    if (reply->status != TT_OK)
        return tt_err(reply->status == TT_STOPPED ? TT_UNAVAILABLE : (tt_status_t)reply->status, "%s", reply->body);
    if (!out)
        return TT_OK;
    json_error_t error;
    *out = json_loads(reply->body && reply->body[0] ? reply->body : "{}", 0, &error);
    return *out ? TT_OK : tt_err(TT_PROTOCOL, "the coordinator's answer is not JSON: %s", error.text);
}

/*  Nothing has come: has the run ended meanwhile, by another `tutti stop` or by itself? Then nobody is left who could answer. */
static tt_status_t s_err_silent(const tt_rundir_t *run, bool live)
{
    if (!live)
        return tt_err(
            TT_UNAVAILABLE, "run %s has ended meanwhile; 'tutti resume %s' continues it", run->name, run->name);
    return tt_err(
        TT_UNAVAILABLE, "the coordinator of %s does not answer; see %s/logs/coordinator-0.log", run->name, run->path);
}

static tt_status_t s_await(tt_link_t *link, const tt_rundir_t *run, int timeout_ms, json_t **out)
{
    const int64_t deadline = tt_now_ms(tt_clock_real()) + timeout_ms;
    for (;;) {
        const bool live = tt_rundir_live(run); /* before the wait: what a run answers at its end is still taken */
        const int64_t left = deadline - tt_now_ms(tt_clock_real());
        tt_packet_t packet = {0};
        tt_status_t status = left > 0 ? tt_link_wait(link, &packet, left < LOOK_MS ? left : LOOK_MS) : TT_TIMEOUT;
        if (status == TT_AGAIN && live)
            continue;
        if (status == TT_AGAIN || status == TT_TIMEOUT)
            return s_err_silent(run, live);
        if (status != TT_OK)
            return status;
        const bool answered = packet.msg.type == TT_MSG_REPLY;
        if (answered)
            status = s_take_reply(&packet.msg.REPLY, out);
        tt_packet_clear(&packet);
        if (answered)
            return status;
    }
}

/*  The coordinator then forgets us at once: `tutti status` in a loop would else fill its list for a lease's time. */
static void s_leave(tt_link_t *link)
{
    tt_link_send(link, &TT_MSG(DRAINED, .reason = (char *)(uintptr_t) "answered"));
}

tt_status_t tt_client_ask(const tt_rundir_t *run, const char *verb, const char *body, int timeout_ms, json_t **out)
{
    if (!tt_rundir_live(run))
        return tt_err(TT_UNAVAILABLE, "run %s is not running; 'tutti resume %s' continues it", run->name, run->name);
    TT_TRY(tt_rundir_may_ask(run));
    char endpoint[4096];
    tt_rundir_control(run, endpoint, sizeof endpoint);
    const tt_link_opts_t opts = {
        .endpoint = endpoint, .role = TT_PEER_CLIENT, .index = -1, .hello_timeout_ms = timeout_ms};
    tt_link_t *link = NULL;
    TT_TRY(tt_link_start(&link, &opts));
    const tt_msg_REQUEST_t msg = TT_MSG(REQUEST, .id = 1, .verb = (char *)verb, .body = (char *)body);
    tt_status_t status = tt_link_send(link, &msg);
    if (status == TT_OK)
        status = s_await(link, run, timeout_ms, out);
    s_leave(link);
    tt_link_destroy(&link);
    return status;
}
