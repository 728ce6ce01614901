#define TT_LOG_COMPONENT "inbox"
#include "coordinator/inbox.h"
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include "common/base/log.h"
#include "coordinator/digest.h"
#include "coordinator/requests.h"
#include "coordinator/state.h"

enum { REPLY_MAX = 1048575 };

/*  What a handler needs to know of the sender. */
typedef struct {
    tt_sock_t *sock;
    const char *identity;
    peer_t *peer;         /* NULL: an observer, or one that has ended */
    const ended_t *ended; /* NULL: one that lives                     */
} sender_t;

/* ---- members, and those that have ended ---------------------------------------------------------------------------- */

/*  Before the first roster of a restarted coordinator, the journal's ranks count. */
static bool s_is_rank0(const coordinator_t *self, const peer_t *peer)
{
    return peer && peer->role == TT_PEER_LEARNER && peer->rank == 0 &&
           (peer->state == PEER_ACTIVE || !roster_announced(self->roster));
}

/*  Whose word on the run counts: rank 0, or one that was it to its end, while its era lasts. */
static bool s_leads(const coordinator_t *self, sender_t from)
{
    return from.ended ? from.ended->led && from.ended->era == roster_era(self->roster) : s_is_rank0(self, from.peer);
}

static tt_peer_role_t s_role(sender_t from)
{
    return from.peer ? from.peer->role : from.ended->role;
}

static uint32_t s_index(sender_t from)
{
    return from.peer ? from.peer->index : from.ended->index;
}

static const ended_t *s_find_ended(const coordinator_t *self, const char *identity)
{
    for (size_t i = 0; i < ENDED_MAX; i++)
        if (strcmp(self->ended[i].identity, identity) == 0)
            return &self->ended[i];
    return NULL;
}

/*  It has what its role needs of its machine: a learner with weights, a collector that has made steps. */
static bool s_does_its_part(const peer_t *peer)
{
    return peer->role == TT_PEER_LEARNER ? peer->holds : peer->role == TT_PEER_COLLECTOR && peer->progress > 0;
}

static void s_bury(coordinator_t *self, peer_t *peer, const char *why)
{
    ended_t *ended = &self->ended[self->ended_count++ % ENDED_MAX];
    *ended = (ended_t){.role = peer->role,
        .index = peer->index,
        .era = roster_era(self->roster),
        .led = s_is_rank0(self, peer),
        .did = s_does_its_part(peer)};
    snprintf(ended->identity, sizeof ended->identity, "%s", peer->identity);
    roster_leave(self->roster, peer, PEER_ENDED, why);
}

/* ---- HELLO --------------------------------------------------------------------------------------------------------- */

static void s_refuse(tt_sock_t *sock, const char *identity, const char *reason)
{
    log_warn("%s refused: %s", identity, reason);
    const tt_msg_REFUSED_t refused = TT_MSG(REFUSED, .reason = (char *)(uintptr_t)reason);
    control_send(sock, identity, &refused);
}

static void s_welcome(coordinator_t *self, tt_sock_t *sock, const char *identity, uint32_t index)
{
    const tt_msg_WELCOME_t welcome = TT_MSG(WELCOME, .wire = TT_WIRE_VERSION, .index = index,
        .beat_ms = self->cfg.net.beat_ms, .lease_ms = self->cfg.net.lease_ms, .config = self->config_text,
        .run_dir = self->root, .start_ns = self->start_ns, .now_ns = tt_now_ns(self->clock));
    control_send(sock, identity, &welcome);
}

/*  A process that was killed and started again says HELLO before its predecessor's lease is over. On our own host we
 *  can see that the old one is no more; and of one pod's containers of a role there is one. */
static bool s_has_died(const coordinator_t *self, const peer_t *peer, const tt_msg_HELLO_t *hello)
{
    if ((uint32_t)peer->role != hello->role || peer->instance == hello->instance)
        return false;
    if (peer->pod[0] || (hello->pod && hello->pod[0]))
        return hello->pod && strcmp(peer->pod, hello->pod) == 0;
    return hello->index == (int64_t)peer->index && peer->pid && strcmp(peer->host, self->host) == 0 &&
           kill((pid_t)peer->pid, 0) != 0 && errno == ESRCH;
}

static void s_bury_predecessor(coordinator_t *self, const tt_msg_HELLO_t *hello)
{
    for (size_t i = roster_peer_count(self->roster); i-- > 0;) {
        peer_t *peer = roster_peer(self->roster, i);
        if (s_has_died(self, peer, hello))
            s_bury(self, peer, "its process is no more");
    }
}

static bool s_observes(uint32_t role)
{
    return role == TT_PEER_CONTROLLER || role == TT_PEER_CLIENT;
}

static tt_status_t s_hello_observer(coordinator_t *self, tt_sock_t *sock, const char *identity, const tt_msg_HELLO_t *m)
{
    uint32_t index = 0;
    TT_TRY(observers_hello(self->observers, identity, sock, m, &index));
    s_welcome(self, sock, identity, index);
    if (m->role == TT_PEER_CONTROLLER)
        coordinator_tell_counts(self);
    return TT_OK;
}

static tt_status_t s_hello_peer(coordinator_t *self, tt_sock_t *sock, const char *identity, const tt_msg_HELLO_t *m)
{
    peer_t *peer = NULL;
    if (!tt_peer_named(identity)) {
        log_debug("HELLO over a connection that has lost its name: it comes again over the newer one");
        return TT_OK;
    }
    const bool known = roster_find(self->roster, identity) != NULL;
    s_bury_predecessor(self, m);
    TT_TRY(roster_hello(self->roster, identity, sock, m, &peer));
    tt_log(TT_LOG_COMPONENT, known ? TT_LOG_DEBUG : TT_LOG_INFO, "%s/%u is here: process %u on %s",
        tt_peer_role_name(peer->role), peer->index, peer->pid, peer->host);
    s_welcome(self, sock, identity, peer->index);
    if (peer->state == PEER_ACTIVE || peer->state == PEER_DRAINING)
        control_tell(self->roster, peer);
    return TT_OK;
}

static void s_hello(coordinator_t *self, tt_sock_t *sock, const char *identity, const tt_msg_HELLO_t *m)
{
    char reason[256];
    if (m->wire != TT_WIRE_VERSION) {
        snprintf(reason, sizeof reason,
            "you speak wire version %u (tutti %.40s), this run speaks %d (tutti %s); use the same tutti for all of a "
            "run",
            m->wire, m->software ? m->software : "?", TT_WIRE_VERSION, TT_VERSION);
        s_refuse(sock, identity, reason);
        return;
    }
    const tt_status_t status =
        s_observes(m->role) ? s_hello_observer(self, sock, identity, m) : s_hello_peer(self, sock, identity, m);
    if (status != TT_OK)
        s_refuse(sock, identity, tt_err_text());
}

/* ---- heartbeats and those who leave -------------------------------------------------------------------------------- */

static tt_status_t s_heartbeat(coordinator_t *self, sender_t from, const tt_msg_HEARTBEAT_t *m)
{
    if (from.peer) {
        roster_beat(self->roster, from.peer, m);
        control_tell(self->roster, from.peer); /* in case the roster did not reach it */
        ends_heard(self, from.peer);
    }
    const tt_msg_HEARTBEAT_t answer = TT_MSG(HEARTBEAT, .seq = m->seq);
    control_send(from.sock, from.identity, &answer);
    return TT_OK;
}

/*  We were restarted, or gave it up: it must say who it is. */
static void s_ask_for_hello(tt_sock_t *sock, const char *identity)
{
    const tt_msg_HEARTBEAT_t ask = TT_MSG(HEARTBEAT, .hello = true);
    control_send(sock, identity, &ask);
}

static tt_status_t s_drained(coordinator_t *self, sender_t from, const tt_msg_DRAINED_t *m)
{
    if (from.peer && m->asks)
        roster_asks(self->roster, from.peer);
    else if (from.peer)
        roster_leave(self->roster, from.peer, PEER_DRAINED, m->reason && m->reason[0] ? m->reason : "it has drained");
    else
        observers_leave(self->observers, from.identity);
    return TT_OK;
}

static tt_status_t s_replica(coordinator_t *self, sender_t from, const tt_msg_REPLICA_t *m)
{
    if (from.peer || observers_role(self->observers, from.identity) != TT_PEER_CONTROLLER)
        return TT_OK;
    const tt_peer_role_t role = (tt_peer_role_t)m->role;
    if (m->alive) {
        replicas_started(self->replicas, role, m->index, m->pid);
        return TT_OK;
    }
    replicas_ended(self->replicas, role, m->index, m->pid);
    if (m->code == 0) /* comes behind whatever may have told it to go: SCALE, or EVENT of the end */
        control_send(from.sock, from.identity, m);
    peer_t *peer = roster_process(self->roster, role, m->index, m->pid);
    if (!peer)
        return TT_OK;
    char why[192];
    snprintf(why, sizeof why, "its process ended with code %u%s%.128s", m->code, m->reason && m->reason[0] ? ": " : "",
        m->reason ? m->reason : "");
    s_bury(self, peer, why);
    return TT_OK;
}

/* ---- the training -------------------------------------------------------------------------------------------------- */

/*  Another host has another clock: what came over tcp happened when it came. On this host it happened in this life of the
 *  run, and is over. 0: who says so does not know. */
static int64_t s_when(const coordinator_t *self, sender_t from, int64_t time_ns)
{
    const int64_t now = tt_now_ns(self->clock);
    const bool can_be = time_ns >= self->start_ns && time_ns <= now;
    if (time_ns == 0)
        return 0;
    return can_be && !control_is_tcp(self->control, from.sock) ? time_ns : now;
}

/*  Steps that we did not see, or whose time was another clock's, are no speed of ours. */
static tt_status_t s_count_from_here(coordinator_t *self, const tt_msg_STATS_t *first)
{
    progress_count_from(&self->progress, first->env_steps, first->time_ns);
    return journal_count_from(self->journal, first->env_steps, first->time_ns);
}

static tt_status_t s_stats(coordinator_t *self, sender_t from, const tt_msg_STATS_t *said)
{
    digest_t digest;
    tt_msg_STATS_t stats = *said;
    stats.time_ns = s_when(self, from, said->time_ns);
    if (!s_leads(self, from) || stats.era != roster_era(self->roster))
        return TT_OK;
    const bool here = roster_took_over(self->roster) || (self->new_clock && self->progress.first_step_ns == 0);
    if (!self->progress.at.any && here)
        TT_TRY(s_count_from_here(self, &stats));
    if (!progress_stats(&self->progress, &stats))
        return TT_OK;
    digest_stats(self, &stats, &digest);
    observers_stats(self->observers, &digest.stats);
    return coordinator_write_stats(self, &digest.stats);
}

static tt_status_t s_evaluated(coordinator_t *self, sender_t from, const tt_msg_EVALUATED_t *said)
{
    tt_msg_EVALUATED_t evaluated = *said;
    evaluated.time_ns = s_when(self, from, said->time_ns);
    const uint64_t batch = (uint64_t)self->cfg.num_envs * self->cfg.num_steps;
    if (!s_leads(self, from) || said->era != roster_era(self->roster))
        return TT_OK;
    if (said->update > INT64_MAX / batch || said->env_steps != said->update * batch) {
        log_warn("%s: EVALUATED of version %" PRIu64 " after %" PRIu64 " env steps, which cannot be: ignored",
            from.identity, said->update, said->env_steps);
        return TT_OK;
    }
    return coordinator_write_evaluation(self, &evaluated);
}

/*  Kept relative to the run directory, which may be moved before it is resumed. */
static const char *s_relative(const coordinator_t *self, const char *path)
{
    const size_t length = strlen(self->root);
    return strncmp(path, self->root, length) == 0 && path[length] == '/' ? path + length + 1 : path;
}

static tt_status_t s_snapshot(coordinator_t *self, const tt_msg_EVENT_t *m)
{
    journal_snapshot_t *snapshot = &self->snapshot;
    const char *path = s_relative(self, m->text ? m->text : "");
    if (!path[0] || strlen(path) >= sizeof snapshot->path)
        return tt_err(TT_PROTOCOL, "EVENT snapshot: no path, or a longer one than %zu bytes", sizeof snapshot->path);
    *snapshot = (journal_snapshot_t){
        .era = roster_era(self->roster), .update = m->update, .env_steps = m->env_steps, .return_mean = m->value};
    snprintf(snapshot->path, sizeof snapshot->path, "%s", path);
    self->snapshots++;
    self->unsaved.row = 0;
    return journal_snapshot(self->journal, snapshot);
}

/*  The run goes on; `status` says so for as long as it lasts. Who watches is told by EVENT warning, which comes less often. */
static void s_unsaved(unsaved_t *self, const tt_msg_EVENT_t *m)
{
    if (self->row == 0)
        self->since_ns = m->time_ns;
    self->row++;
    self->total++;
    snprintf(self->why, sizeof self->why, "%s", m->text ? m->text : "");
}

/*  A learner or collector that has come to help and cannot, for a reason of its machine's: no card, no memory. Others of its role do; or it
 *  came by hand, and whoever started it sees why it ended: another one may come, or those that a controller keeps. */
static bool s_goes_on_without(const coordinator_t *self, sender_t from, uint32_t code)
{
    const tt_peer_role_t role = s_role(from);
    const bool did = from.peer ? s_does_its_part(from.peer) : from.ended->did;
    if (role == TT_PEER_AGGREGATOR || did || tt_exit_is_final((int)code))
        return false;
    bool goes_on = s_index(from) >= ROSTER_BY_HAND;
    for (size_t i = 0; i < roster_peer_count(self->roster); i++) {
        const peer_t *other = roster_peer(self->roster, i);
        goes_on |= other->role == role && s_does_its_part(other);
    }
    return goes_on;
}

/*  why: "learner/1: what it said". */
static void s_failed(coordinator_t *self, sender_t from, tt_msg_EVENT_t *event, const char *why)
{
    if (!s_goes_on_without(self, from, event->code)) {
        ends_fail(self, event->code, why);
        return;
    }
    log_warn("%s; the others go on", why);
    event->kind = (char *)(uintptr_t) "warning";
    observers_tell(self->observers, event);
}

static tt_status_t s_event(coordinator_t *self, sender_t from, const tt_msg_EVENT_t *said)
{
    tt_msg_EVENT_t event = *said;
    const tt_msg_EVENT_t *m = &event;
    event.time_ns = s_when(self, from, said->time_ns);
    const char *kind = m->kind ? m->kind : "", *text = m->text ? m->text : "";
    if (!from.peer && !from.ended)
        return TT_OK;
    const char *role = tt_peer_role_name(s_role(from));
    const uint32_t index = s_index(from);
    if (strcmp(kind, "failed") == 0) {
        char why[2048];
        snprintf(why, sizeof why, "%s/%u: %s", role, index, text);
        s_failed(self, from, &event, why);
        return TT_OK;
    }
    if (strcmp(kind, "warning") == 0) {
        log_warn("%s/%u: %s", role, index, text);
        observers_tell(self->observers, m);
        return TT_OK;
    }
    if (strcmp(kind, "waiting") == 0) { /* all collectors do: it is told once */
        if (self->waiting_told)
            return TT_OK;
        self->waiting_told = true;
        log_info("%s/%u: %s", role, index, text);
        observers_tell(self->observers, m);
        return TT_OK;
    }
    if (strcmp(kind, "first_step") == 0) {
        if (!progress_first_step(&self->progress, m->time_ns))
            return TT_OK;
        observers_tell(self->observers, m);
        return journal_first_step(self->journal, m->time_ns);
    }
    if (!s_leads(self, from)) {
        log_debug("%s: EVENT %s from one that is not rank 0: ignored", from.identity, kind);
        return TT_OK;
    }
    if (strcmp(kind, "damaged") == 0) {
        if (!restore_refuse(self, text))
            return TT_OK;
        roster_begin_again(self->roster);
        return journal_not_fresh(self->journal); /* a successor must not repeat it */
    }
    if (strcmp(kind, "unsaved") == 0) {
        s_unsaved(&self->unsaved, m);
        return TT_OK;
    }
    if (strcmp(kind, "finished") == 0) {
        ends_finished(self, m);
        return TT_OK;
    }
    const bool solved = strcmp(kind, "solved") == 0;
    if (solved && !progress_solved(&self->progress, m->time_ns, m->env_steps))
        return TT_OK; /* said again, in case that we had lost it */
    observers_tell(self->observers, m);
    if (strcmp(kind, "snapshot") == 0)
        return s_snapshot(self, m);
    return solved ? journal_solved(self->journal, m->time_ns, m->env_steps) : TT_OK;
}

/* ---- requests ------------------------------------------------------------------------------------------------------ */

static tt_status_t s_request(coordinator_t *self, sender_t from, const tt_msg_REQUEST_t *m)
{
    if (from.peer)
        return TT_OK;
    tt_buf_t out;
    tt_buf_init(&out, REPLY_MAX);
    const tt_status_t status =
        requests_answer(self, from.identity, m->verb ? m->verb : "", m->body ? m->body : "", &out);
    const char *body = status == TT_OK ? tt_buf_text(&out) : tt_err_text();
    const tt_msg_REPLY_t reply = TT_MSG(REPLY, .id = m->id, .status = status, .body = (char *)(uintptr_t)body);
    control_send(from.sock, from.identity, &reply);
    tt_buf_free(&out);
    return TT_OK;
}

/* ---- the table ----------------------------------------------------------------------------------------------------- */

static tt_status_t s_dispatch(coordinator_t *self, sender_t from, const tt_msg_t *msg)
{
    switch (msg->type) {
    case TT_MSG_HEARTBEAT:
        return s_heartbeat(self, from, &msg->HEARTBEAT);
    case TT_MSG_DRAINED:
        return s_drained(self, from, &msg->DRAINED);
    case TT_MSG_STATS:
        return s_stats(self, from, &msg->STATS);
    case TT_MSG_EVALUATED:
        return s_evaluated(self, from, &msg->EVALUATED);
    case TT_MSG_EVENT:
        return s_event(self, from, &msg->EVENT);
    case TT_MSG_REPLICA:
        return s_replica(self, from, &msg->REPLICA);
    case TT_MSG_REQUEST:
        return s_request(self, from, &msg->REQUEST);
    default:
        log_warn("%s sent %s, which is nothing for a coordinator: ignored", from.identity, tt_msg_name(msg->type));
        return TT_OK;
    }
}

tt_status_t inbox_packet(void *ctx, tt_sock_t *sock, tt_packet_t *packet)
{
    coordinator_t *self = ctx;
    if (packet->msg.type == TT_MSG_HELLO) {
        s_hello(self, sock, packet->peer, &packet->msg.HELLO);
        return TT_OK;
    }
    if (packet->msg.type == TT_MSG_STORE || packet->msg.type == TT_MSG_LOAD) {
        snapshot_store_packet(self, sock, packet);
        return TT_OK;
    }
    sender_t from = {.sock = sock, .identity = packet->peer, .peer = roster_find(self->roster, packet->peer)};
    if (!from.peer)
        from.ended = s_find_ended(self, packet->peer);
    if (from.ended) {
        const tt_msg_id_t type = packet->msg.type;
        const bool last_words = type == TT_MSG_EVENT || type == TT_MSG_STATS || type == TT_MSG_EVALUATED;
        return last_words ? s_dispatch(self, from, &packet->msg) : TT_OK;
    }
    if (from.peer) {
        roster_heard(self->roster, from.peer);
    } else if (!observers_heard(self->observers, packet->peer)) {
        s_ask_for_hello(sock, packet->peer);
        return TT_OK;
    }
    return s_dispatch(self, from, &packet->msg);
}
