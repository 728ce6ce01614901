#include "coordinator/replicas.h"
#include <stdio.h>
#include <stdlib.h>
#include "common/base/mem.h"

static const int64_t s_start_ns = 30000000000; /* until its first HELLO, as long as a link waits for its WELCOME */

/*  Structure of our class */
struct replicas {
    const tt_clock_t *clock;
    int64_t lease_ns;
    int64_t turned_ns; /* the last turn */
    replica_t *at;
    size_t count, room;
};

replicas_t *replicas_new(const tt_clock_t *clock, int64_t lease_ns)
{
    replicas_t *self = tt_new0(sizeof *self);
    self->clock = clock;
    self->lease_ns = lease_ns;
    self->turned_ns = tt_now_ns(clock);
    return self;
}

void replicas_destroy(replicas_t **self_p)
{
    if (!*self_p)
        return;
    free((*self_p)->at);
    free(*self_p);
    *self_p = NULL;
}

static replica_t *s_find(replicas_t *self, tt_peer_role_t role, uint32_t index)
{
    for (size_t i = 0; i < self->count; i++)
        if (self->at[i].role == role && self->at[i].index == index)
            return &self->at[i];
    return NULL;
}

static replica_t *s_add(replicas_t *self)
{
    if (self->count == self->room) {
        self->room = 2 * self->room + 8;
        self->at = tt_realloc(self->at, tt_mul(self->room, sizeof *self->at));
    }
    return &self->at[self->count++];
}

void replicas_started(replicas_t *self, tt_peer_role_t role, uint32_t index, uint32_t pid)
{
    replica_t *it = s_find(self, role, index);
    if (it && it->pid == pid)
        return;
    if (!it)
        it = s_add(self);
    *it = (replica_t){.role = role, .index = index, .pid = pid, .seen_ns = tt_now_ns(self->clock)};
}

void replicas_ended(replicas_t *self, tt_peer_role_t role, uint32_t index, uint32_t pid)
{
    replica_t *it = s_find(self, role, index);
    if (it && (pid == 0 || it->pid == pid))
        *it = self->at[--self->count];
}

static void s_note(replica_t *self, const peer_t *peer)
{
    self->heard = true;
    self->told = false;
    self->seen_ns = peer->seen_ns;
    snprintf(self->doing, sizeof self->doing, "%s", peer->doing);
}

static bool s_silent(const replicas_t *self, const replica_t *it, int64_t now)
{
    const int64_t most = it->heard || self->lease_ns > s_start_ns ? self->lease_ns : s_start_ns;
    return now - it->seen_ns >= most && (!it->told || now - it->told_ns >= self->lease_ns);
}

void replicas_turn(replicas_t *self, const roster_t *roster, replicas_tell_fn tell, void *ctx)
{
    const int64_t now = tt_now_ns(self->clock), gap = now - self->turned_ns;
    /* we may have been stopped ourselves (SIGSTOP, a laptop's lid): that time is nobody's silence */
    const int64_t away = gap > self->lease_ns / 2 ? gap : 0;
    self->turned_ns = now;
    for (size_t i = 0; i < self->count; i++) {
        replica_t *it = &self->at[i];
        const peer_t *peer = roster_process(roster, it->role, it->index, it->pid);
        if (peer) {
            s_note(it, peer);
            continue;
        }
        it->seen_ns += away;
        if (!s_silent(self, it, now))
            continue;
        const bool again = it->told;
        it->told = true;
        it->told_ns = now;
        tell(ctx, it, (double)(now - it->seen_ns) * 1e-9, again);
    }
}
