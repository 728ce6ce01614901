/*  link_thread - the link's own thread: HELLO, heartbeats, silence, and messages both ways. */
#define TT_LOG_COMPONENT "link"
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/process.h"
#include "common/net/link_core.h"
#include "common/net/resolve.h"

enum { HELLO_MS = 1000, LEASES_MAX = 10, FAREWELL_MS = 500, LETTERS_MAX = 4096, RETRY_MS = 10 };

static void s_finish(tt_link_t *self, tt_status_t status, const char *text)
{
    pthread_mutex_lock(&self->shared.mutex);
    self->shared.end = status;
    snprintf(self->shared.end_text, sizeof self->shared.end_text, "%s", text);
    pthread_mutex_unlock(&self->shared.mutex);
    tt_mailbox_wake(&self->in);
}

static bool s_has_ended(tt_link_t *self)
{
    pthread_mutex_lock(&self->shared.mutex);
    const bool ended = self->shared.end != TT_OK;
    pthread_mutex_unlock(&self->shared.mutex);
    return ended;
}

static void s_arm(tt_link_t *self);

/* ---- what we say ------------------------------------------------------------------------------------------------- */

static void s_send_now(tt_link_t *self, const void *msg)
{
    self->said_ns = tt_now_ns(self->clock); /* before it can be heard */
    if (tt_sock_send(self->sock, NULL, msg, NULL, 0) != TT_OK)
        log_debug("%s is not accepted now", tt_msg_name(*(const tt_msg_id_t *)msg)); /* it is said again */
}

static void s_say_hello(tt_link_t *self)
{
    link_shared_t *shared = &self->shared;
    pthread_mutex_lock(&shared->mutex);
    const tt_msg_HELLO_t hello = TT_MSG(HELLO, .wire = TT_WIRE_VERSION, .software = (char *)(uintptr_t)TT_VERSION,
        .role = self->role, .index = self->welcomed ? (int64_t)shared->index : self->index, .instance = self->instance,
        .pid = (uint32_t)getpid(), .host = self->host, .data_ipc = self->data_ipc, .data_tcp = self->data_tcp,
        .weights_ipc = self->weights_ipc, .weights_tcp = self->weights_tcp, .memory = self->memory,
        .holds = shared->holds, .update = shared->update, .era = shared->era, .generation = shared->generation,
        .epoch = shared->epoch, .learners = shared->learners, .place = shared->place, .pod = self->pod);
    pthread_mutex_unlock(&shared->mutex);
    if (self->phase != LINK_HELLO)
        self->hello_ns = tt_now_ns(self->clock);
    self->phase = LINK_HELLO;
    s_send_now(self, &hello);
}

/*  Call with the lock held. */
static size_t s_spent(const link_shared_t *shared, tt_rec_METRIC_t out[TT_LAPS_MAX])
{
    for (size_t i = 0; i < shared->stage_count; i++)
        out[i] = (tt_rec_METRIC_t){
            .name = (char *)(uintptr_t)shared->stages[i], .value = (double)shared->spent_ns[i] * 1e-9};
    return shared->stage_count;
}

static void s_say_heartbeat(tt_link_t *self)
{
    char state[128];
    tt_rec_METRIC_t spent[TT_LAPS_MAX];
    link_shared_t *shared = &self->shared;
    const uint64_t memory = tt_process_memory().resident;
    pthread_mutex_lock(&shared->mutex);
    memcpy(state, shared->state, sizeof state);
    const size_t stages = s_spent(shared, spent);
    const tt_msg_HEARTBEAT_t beat = TT_MSG(HEARTBEAT, .seq = ++self->seq, .state = state, .progress = shared->progress,
        .holds = shared->holds, .era = shared->era, .warm = shared->warm, .cpu_s = tt_process_cpu_s(), .memory = memory,
        .spent = spent, .spent_count = stages);
    shared->news = false;
    pthread_mutex_unlock(&shared->mutex);
    s_send_now(self, &beat);
}

/*  Send what waits; what was sent is kept until the answer to the next heartbeat says that it has arrived. */
static void s_flush(tt_link_t *self)
{
    self->flushed_ns = tt_now_ns(self->clock);
    while (self->phase == LINK_IN && self->unsent.first) {
        if (tt_sock_send(self->sock, NULL, &self->unsent.first->msg, NULL, 0) != TT_OK)
            return;
        tt_letter_t *letter = tt_letters_take(&self->unsent);
        letter->tag = self->seq + 1;
        tt_letters_add(&self->sent, letter);
    }
}

static void s_confirm(tt_link_t *self, uint64_t seq)
{
    while (self->sent.first && self->sent.first->tag <= seq) {
        tt_letter_t *letter = tt_letters_take(&self->sent);
        tt_letter_destroy(&letter);
    }
}

/*  A coordinator that has just let us in may have missed what we said to its predecessor: again, in the old order. */
static void s_say_again(tt_link_t *self)
{
    for (tt_letter_t *letter; (letter = tt_letters_take(&self->unsent)) != NULL;)
        tt_letters_add(&self->sent, letter);
    const tt_letters_t all = self->sent;
    tt_letters_init(&self->sent);
    if (all.first)
        self->unsent = all;
    if (!self->unsent.first)
        tt_letters_init(&self->unsent);
    s_flush(self);
}

/*  STATS are worth nothing later: sent now or never. */
static void s_post(tt_link_t *self, tt_letter_t *letter)
{
    if (letter->msg.type == TT_MSG_STATS) {
        if (self->phase == LINK_IN)
            tt_sock_send(self->sock, NULL, &letter->msg, NULL, 0);
        tt_letter_destroy(&letter);
        return;
    }
    if (self->sent.count + self->unsent.count >= LETTERS_MAX) {
        log_warn("the coordinator has been away for long: %s is dropped", tt_msg_name(letter->msg.type));
        tt_letter_destroy(&letter);
        return;
    }
    tt_letters_add(&self->unsent, letter);
}

static tt_status_t s_on_outbox(void *ctx, int fd)
{
    tt_link_t *self = ctx;
    (void)fd;
    for (tt_letter_t *letter; (letter = tt_mailbox_take(&self->out)) != NULL;)
        s_post(self, letter);
    s_flush(self);
    if (self->unsent.first)
        s_arm(self);
    pthread_mutex_lock(&self->shared.mutex);
    const bool news = self->shared.news;
    pthread_mutex_unlock(&self->shared.mutex);
    if (news && self->phase == LINK_IN)
        s_say_heartbeat(self);
    return TT_OK;
}

/* ---- what we hear ------------------------------------------------------------------------------------------------ */

static void s_deliver(tt_link_t *self, tt_packet_t *packet)
{
    tt_letter_t *letter = tt_new0(sizeof *letter);
    letter->msg = packet->msg; /* moved */
    memset(&packet->msg, 0, sizeof packet->msg);
    tt_mailbox_put(&self->in, letter);
}

/*  What we are doing belongs to the job that we were first told of. */
static bool s_same_job(tt_link_t *self, const tt_msg_WELCOME_t *welcome)
{
    const char *config = welcome->config ? welcome->config : "";
    if (!self->config)
        self->config = tt_strdup(config);
    return strcmp(self->config, config) == 0;
}

static void s_on_welcome(tt_link_t *self, tt_packet_t *packet)
{
    const tt_msg_WELCOME_t *welcome = &packet->msg.WELCOME;
    if (self->phase != LINK_HELLO)
        return; /* the answer to a HELLO that we repeated */
    if (welcome->wire != TT_WIRE_VERSION) {
        char text[160];
        snprintf(text, sizeof text, "the coordinator at %.60s speaks wire version %u, we speak %d: use the same tutti",
            self->endpoint, welcome->wire, TT_WIRE_VERSION);
        s_finish(self, TT_PROTOCOL, text);
        return;
    }
    if (!s_same_job(self, welcome)) {
        s_finish(
            self, TT_DENIED, "the coordinator was started again with other settings: this process is of the old run");
        return;
    }
    self->beat_ns = (int64_t)(welcome->beat_ms ? welcome->beat_ms : LINK_BEAT_MS) * 1000000;
    self->lease_ns = (int64_t)(welcome->lease_ms ? welcome->lease_ms : LINK_LEASE_MS) * 1000000;
    pthread_mutex_lock(&self->shared.mutex);
    self->shared.index = welcome->index;
    pthread_mutex_unlock(&self->shared.mutex);
    self->welcomed = true;
    self->phase = LINK_IN;
    log_debug("welcome as %s/%u", tt_peer_role_name(self->role), welcome->index);
    s_deliver(self, packet);
    s_say_again(self);
    s_arm(self);
}

static void s_on_heartbeat(tt_link_t *self, const tt_msg_HEARTBEAT_t *beat)
{
    if (!beat->hello) {
        s_confirm(self, beat->seq);
        return;
    }
    if (self->phase == LINK_HELLO)
        return; /* it crossed our HELLO */
    log_info("the coordinator does not know us (was it restarted?): saying HELLO again");
    s_say_hello(self);
}

static bool s_is_gone(tt_link_t *self)
{
    pthread_mutex_lock(&self->shared.mutex);
    const bool gone = self->shared.gone;
    pthread_mutex_unlock(&self->shared.mutex);
    return gone;
}

static tt_status_t s_on_packet(void *ctx, tt_sock_t *sock, tt_packet_t *packet)
{
    tt_link_t *self = ctx;
    (void)sock;
    self->heard_ns = tt_now_ns(self->clock);
    self->leases = 0;
    pthread_mutex_lock(&self->shared.mutex);
    self->shared.heard_ns = self->heard_ns;
    pthread_mutex_unlock(&self->shared.mutex);
    switch (packet->msg.type) {
    case TT_MSG_WELCOME:
        s_on_welcome(self, packet);
        break;
    case TT_MSG_REFUSED:
        s_finish(self, TT_DENIED, packet->msg.REFUSED.reason ? packet->msg.REFUSED.reason : "refused");
        break;
    case TT_MSG_HEARTBEAT:
        s_on_heartbeat(self, &packet->msg.HEARTBEAT);
        break;
    default:
        if (self->phase == LINK_IN)
            s_deliver(self, packet);
        else
            log_debug("%s before WELCOME is dropped", tt_msg_name(packet->msg.type));
    }
    return TT_OK;
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

static void s_note_address(tt_link_t *self, const char *address)
{
    pthread_mutex_lock(&self->shared.mutex);
    snprintf(self->address, sizeof self->address, "%s", address);
    pthread_mutex_unlock(&self->shared.mutex);
}

/*  Looked up each time that we connect: a coordinator that was started on another host keeps its name only. While the
 *  name leads nowhere, where it led before; in the beginning libzmq may try. */
static const char *s_where(tt_link_t *self)
{
    char address[sizeof self->address];
    if (tt_resolve(self->endpoint, address, sizeof address) != TT_OK)
        log_info("%s", tt_err_text());
    else
        s_note_address(self, address);
    return self->address[0] ? self->address : self->endpoint;
}

static tt_status_t s_open(tt_link_t *self)
{
    const tt_sock_opts_t opts = {
        .name = "control", .identity = self->identity, .linger_ms = FAREWELL_MS, .keys = self->keys};
    TT_TRY(tt_sock_new(&self->sock, TT_DEALER, &opts));
    TT_TRY(tt_sock_connect(self->sock, s_where(self)));
    tt_loop_sock(self->loop, self->sock, s_on_packet, self);
    s_say_hello(self);
    return TT_OK;
}

static void s_close(tt_link_t *self, int linger_ms)
{
    if (!self->sock)
        return;
    tt_loop_forget_sock(self->loop, self->sock);
    tt_sock_linger(self->sock, linger_ms);
    tt_sock_destroy(&self->sock);
}

static int64_t s_leases_max(const tt_link_t *self)
{
    const int64_t wanted = self->patience_ns / self->lease_ns;
    return wanted > LEASES_MAX ? wanted : LEASES_MAX;
}

/*  How much longer than a lease nothing was heard: time in which this process did not run. */
static int64_t s_lost_ns(const tt_link_t *self, int64_t now)
{
    const int64_t lost = now - self->heard_ns - self->lease_ns;
    return self->welcomed && lost > 0 ? lost : 0;
}

/*  Silence is counted in leases that we have lived through, not in time: a process that was stopped for an hour has
 *  missed nothing that a fresh socket would not bring. */
static tt_status_t s_on_silence(tt_link_t *self, int64_t now)
{
    char text[512];
    if (++self->leases >= s_leases_max(self) && self->welcomed) {
        snprintf(text, sizeof text, "the coordinator at %.300s has been silent for %d leases of %lld ms",
            self->endpoint, self->leases, (long long)(self->lease_ns / 1000000));
        s_finish(self, TT_UNAVAILABLE, text);
        return TT_OK;
    }
    log_info("nothing heard from the coordinator at %s for %lld ms: connecting anew", self->endpoint,
        (long long)(self->lease_ns / 1000000));
    self->hello_ns += s_lost_ns(self, now);
    self->heard_ns = now;
    s_close(self, 0);
    return s_open(self);
}

/*  In LINK_HELLO: how long may that take? Once we were in, silence ends it (s_on_silence), and this a coordinator that
 *  talks and does not let us in, again in time that we lived through. */
static bool s_hello_expired(tt_link_t *self, int64_t now)
{
    char text[512];
    const int64_t wait_ns = self->welcomed ? 2 * s_leases_max(self) * self->lease_ns : self->hello_wait_ns;
    if (self->phase != LINK_HELLO || now - self->hello_ns - s_lost_ns(self, now) < wait_ns)
        return false;
    snprintf(text, sizeof text, "no answer to HELLO from the coordinator at %.300s for %lld ms: %s", self->endpoint,
        (long long)(wait_ns / 1000000), self->keys ? "is it running there, and is this its key?" : "is it running?");
    s_finish(self, self->welcomed ? TT_UNAVAILABLE : TT_TIMEOUT, text);
    return true;
}

static int64_t s_said_due(const tt_link_t *self)
{
    return self->said_ns + (self->phase == LINK_IN ? self->beat_ns : HELLO_MS * 1000000);
}

static tt_status_t s_on_timer(void *ctx)
{
    tt_link_t *self = ctx;
    const int64_t now = tt_now_ns(self->clock);
    self->timer = 0;
    if (s_hello_expired(self, now))
        return TT_OK;
    if (now - self->heard_ns >= self->lease_ns)
        TT_TRY(s_on_silence(self, now));
    else if (now >= s_said_due(self))
        self->phase == LINK_IN ? s_say_heartbeat(self) : s_say_hello(self);
    s_flush(self);
    s_arm(self);
    return TT_OK;
}

/*  One timer, for whatever is due first. */
static void s_arm(tt_link_t *self)
{
    int64_t due = s_said_due(self);
    if (self->heard_ns + self->lease_ns < due)
        due = self->heard_ns + self->lease_ns;
    if (self->phase == LINK_IN && self->unsent.first && self->flushed_ns + RETRY_MS * 1000000 < due)
        due = self->flushed_ns + RETRY_MS * 1000000; /* the pipe was full */
    if (self->phase == LINK_HELLO && !self->welcomed && self->hello_ns + self->hello_wait_ns < due)
        due = self->hello_ns + self->hello_wait_ns;
    if (self->timer)
        tt_loop_forget_timer(self->loop, self->timer);
    self->timer = tt_loop_timer_at(self->loop, due, s_on_timer, self);
}

/* ---- the thread -------------------------------------------------------------------------------------------------- */

static bool s_stop_asked(tt_link_t *self)
{
    pthread_mutex_lock(&self->shared.mutex);
    const bool stop = self->shared.stop;
    pthread_mutex_unlock(&self->shared.mutex);
    return stop;
}

/*  Until everything that was posted is on its way, at most FAREWELL_MS. */
static void s_farewell(tt_link_t *self)
{
    const int64_t deadline = tt_now_ms(tt_clock_real()) + FAREWELL_MS;
    s_on_outbox(self, -1);
    while (self->unsent.first && !s_has_ended(self)) {
        const int64_t left = deadline - tt_now_ms(tt_clock_real());
        if (left <= 0)
            break;
        const tt_status_t status = tt_loop_poll(self->loop, left);
        if (status != TT_OK && status != TT_AGAIN)
            break;
    }
}

void *link_main(void *ctx)
{
    tt_link_t *self = ctx;
    tt_status_t status = tt_loop_new(&self->loop, self->clock);
    self->heard_ns = self->hello_ns = tt_now_ns(self->clock);
    tt_loop_fd(self->loop, self->out.fd, s_on_outbox, self);
    if (status == TT_OK)
        status = s_open(self);
    if (status == TT_OK)
        s_arm(self);
    while ((status == TT_OK || status == TT_AGAIN) && !s_stop_asked(self) && !s_has_ended(self))
        status = tt_loop_poll(self->loop, 1000);
    if (status != TT_OK && status != TT_AGAIN)
        s_finish(self, status, tt_err_text());
    else if (self->sock && !s_is_gone(self))
        s_farewell(self);
    s_close(self, self->phase == LINK_IN && !s_is_gone(self) ? FAREWELL_MS : 0);
    tt_loop_destroy(&self->loop);
    return NULL;
}
