#include "tests/fake/coordinator.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "common/base/mem.h"

/* ---- what members say ---------------------------------------------------------------------------------------------- */

static fake_member_t *s_by_peer(fake_coordinator_t *self, const char *peer)
{
    for (size_t i = 0; i < self->members; i++)
        if (strcmp(self->member[i].peer, peer) == 0)
            return &self->member[i];
    return NULL;
}

static fake_member_t *s_by_process(fake_coordinator_t *self, const tt_msg_HELLO_t *hello)
{
    for (size_t i = 0; i < self->members; i++) {
        fake_member_t *member = &self->member[i];
        if (member->pid && (uint32_t)member->pid == hello->pid && (int64_t)member->index == hello->index &&
            member->role == (tt_peer_role_t)hello->role)
            return member;
    }
    return NULL;
}

static void s_on_hello(fake_coordinator_t *self, const char *peer, const tt_msg_HELLO_t *hello)
{
    fake_member_t *member = s_by_process(self, hello);
    if (!member)
        return; /* of one that was killed */
    member->instance = hello->instance;
    snprintf(member->peer, sizeof member->peer, "%s", peer);
    snprintf(member->data, sizeof member->data, "%s", hello->data_ipc ? hello->data_ipc : "");
    member->memory = hello->memory;
    snprintf(member->weights, sizeof member->weights, "%s", hello->weights_ipc ? hello->weights_ipc : "");
    const tt_msg_WELCOME_t welcome = TT_MSG(WELCOME, .wire = TT_WIRE_VERSION, .index = member->index,
        .beat_ms = self->beat_ms, .lease_ms = self->lease_ms, .config = self->config, .run_dir = self->dir,
        .start_ns = tt_now_ns(tt_clock_or_real(self->hands)));
    member->hello = fake_try_send(self, member, &welcome);
}

static void s_on_heartbeat(fake_coordinator_t *self, fake_member_t *from, const tt_msg_HEARTBEAT_t *beat)
{
    from->holds = beat->holds && beat->era == self->era;
    from->warm = beat->warm && beat->era == self->era;
    from->beats++;
    from->progress = beat->progress;
    snprintf(from->state, sizeof from->state, "%s", beat->state);
    if (!self->mute)
        fake_try_send(self, from, &TT_MSG(HEARTBEAT, .seq = beat->seq));
}

static tt_status_t s_on_control(void *ctx, tt_sock_t *sock, tt_packet_t *packet)
{
    (void)sock;
    fake_coordinator_t *self = ctx;
    fake_member_t *from = s_by_peer(self, packet->peer);
    if (packet->msg.type == TT_MSG_HELLO)
        s_on_hello(self, packet->peer, &packet->msg.HELLO);
    else if (packet->msg.type == TT_MSG_HEARTBEAT && from)
        s_on_heartbeat(self, from, &packet->msg.HEARTBEAT);
    else if (packet->msg.type == TT_MSG_STATS)
        self->stats_update = packet->msg.STATS.update;
    else if (packet->msg.type == TT_MSG_EVENT && self->on_event)
        self->on_event(self->ctx, &packet->msg.EVENT);
    else if (packet->msg.type == TT_MSG_DRAINED && from) {
        from->drained = true;
        snprintf(from->reason, sizeof from->reason, "%s", packet->msg.DRAINED.reason);
    }
    return TT_OK;
}

/* ---- what they are told -------------------------------------------------------------------------------------------- */

bool fake_try_send(fake_coordinator_t *self, const fake_member_t *to, const void *msg)
{
    const tt_status_t status = tt_sock_send(self->control, to->peer, msg, NULL, 0);
    if (status != TT_UNAVAILABLE)
        assert_ok(status);
    return status == TT_OK;
}

void fake_send(fake_coordinator_t *self, fake_member_t *to, const void *msg)
{
    fake_until(self, !to->pid || fake_try_send(self, to, msg), "a member to be connected");
}

static bool s_counts(const fake_member_t *member)
{
    return member->role == TT_PEER_LEARNER && member->in;
}

void fake_in(fake_coordinator_t *self, fake_member_t *member)
{
    member->rank = 0;
    for (size_t i = 0; i < self->members; i++)
        member->rank += s_counts(&self->member[i]);
    member->in = true;
    self->generation += member->role == TT_PEER_LEARNER;
}

void fake_out(fake_coordinator_t *self, fake_member_t *member)
{
    if (!member->in)
        return;
    member->in = false;
    for (size_t i = 0; i < self->members; i++)
        self->member[i].rank -= s_counts(&self->member[i]) && self->member[i].rank > member->rank;
    self->generation += member->role == TT_PEER_LEARNER;
}

static tt_rec_MEMBER_t s_record(const fake_member_t *member)
{
    return (tt_rec_MEMBER_t){.role = member->role,
        .index = member->index,
        .instance = member->instance,
        .rank = member->rank,
        .env_lo = member->env_lo,
        .env_count = member->env_count,
        .pid = (uint32_t)member->pid,
        .memory = member->memory,
        .data_ipc = (char *)(uintptr_t)member->data,
        .weights_ipc = (char *)(uintptr_t)member->weights};
}

void fake_roster(fake_coordinator_t *self, bool fresh, const char *restore)
{
    tt_rec_MEMBER_t members[FAKE_MEMBERS];
    size_t count = 0;
    self->epoch++;
    self->era += fresh;
    for (size_t i = 0; i < self->members; i++)
        if (self->member[i].in)
            members[count++] = s_record(&self->member[i]);
    const tt_msg_ROSTER_t roster =
        TT_MSG(ROSTER, .era = self->era, .epoch = self->epoch, .generation = self->generation,
            .restore = (char *)(uintptr_t)restore, .fresh = fresh, .members = members, .members_count = count);
    for (size_t i = 0; i < self->members; i++)
        if (self->member[i].hello)
            fake_send(self, &self->member[i], &roster);
    if (self->on_roster)
        self->on_roster(self->ctx);
}

/* ---- time ---------------------------------------------------------------------------------------------------------- */

int64_t fake_deadline(const fake_coordinator_t *self)
{
    return tt_now_ms(tt_clock_real()) + self->patience_ms;
}

void fake_turn(fake_coordinator_t *self)
{
    const tt_status_t status = tt_loop_poll(self->loop, self->hands ? 1 : 20);
    if (status != TT_AGAIN)
        assert_ok(status);
    if (self->hands)
        tt_clock_turn(self->hands, 1000000);
    if (self->on_turn)
        self->on_turn(self->ctx);
}

void fake_wait(fake_coordinator_t *self, int64_t until_ms, const char *what)
{
    fake_turn(self);
    if (tt_now_ms(tt_clock_real()) > until_ms)
        fail_msg("waited too long for %s", what);
}

/* ---- life ---------------------------------------------------------------------------------------------------------- */

fake_member_t *fake_add(fake_coordinator_t *self, tt_peer_role_t role, uint32_t index, pid_t pid)
{
    assert_true(self->members < FAKE_MEMBERS);
    fake_member_t *member = &self->member[self->members++];
    *member = (fake_member_t){.role = role, .index = index, .pid = pid};
    return member;
}

void fake_open(fake_coordinator_t *self, char *config)
{
    char path[128];
    *self = (fake_coordinator_t){.config = config, .beat_ms = 100, .lease_ms = 60000, .patience_ms = 20000};
    assert_int_equal(folder_make(self->dir, "fake"), 0);
    snprintf(path, sizeof path, "%s/sock", self->dir);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "ipc://%s/sock/control", self->dir);
    assert_ok(tt_loop_new(&self->loop, NULL));
    assert_ok(tt_sock_new(&self->control, TT_ROUTER, &(tt_sock_opts_t){.name = "control"}));
    assert_ok(tt_sock_bind(self->control, path, NULL, 0));
    tt_loop_sock(self->loop, self->control, s_on_control, self);
}

void fake_close(fake_coordinator_t *self)
{
    tt_loop_forget_sock(self->loop, self->control);
    tt_sock_destroy(&self->control);
    tt_loop_destroy(&self->loop);
    free(self->config);
    assert_int_equal(folder_remove(self->dir), 0);
}
