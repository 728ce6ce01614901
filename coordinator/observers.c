#define TT_LOG_COMPONENT "control"
#include "coordinator/observers.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/log.h"
#include "common/base/mem.h"
#include "coordinator/control.h"

enum { OBSERVERS_MAX = 1024 };
static const int64_t s_interval_ns = 50000000;

typedef struct {
    char identity[64];
    void *sock;
    tt_peer_role_t role;
    uint32_t index;
    bool listens;
    int64_t seen_ns;
} observer_t;

/*  Structure of our class */
struct observers {
    const tt_clock_t *clock;
    int64_t lease_ns, sent_ns;
    observer_t *at;
    size_t count;
    uint32_t numbers;
    bool pending;         /* stats waits to be sent                  */
    tt_msg_STATS_t stats; /* a copy, its list in metrics, its text owned */
    tt_rec_METRIC_t *metrics;
    size_t room;
};

observers_t *observers_new(const tt_clock_t *clock, int64_t lease_ns)
{
    observers_t *self = tt_new0(sizeof *self);
    self->clock = clock;
    self->lease_ns = lease_ns;
    self->sent_ns = INT64_MIN / 2;
    return self;
}

static void s_forget_stats(observers_t *self)
{
    for (size_t i = 0; i < self->stats.metrics_count; i++)
        free(self->metrics[i].name);
    free(self->stats.bottleneck);
    self->stats.bottleneck = NULL;
    self->stats.metrics_count = 0;
}

void observers_destroy(observers_t **self_p)
{
    observers_t *self = *self_p;
    if (!self)
        return;
    s_forget_stats(self);
    free(self->metrics);
    free(self->at);
    free(self);
    *self_p = NULL;
}

static observer_t *s_find(const observers_t *self, const char *identity)
{
    for (size_t i = 0; i < self->count; i++)
        if (strcmp(self->at[i].identity, identity) == 0)
            return &self->at[i];
    return NULL;
}

tt_status_t observers_hello(
    observers_t *self, const char *identity, void *sock, const tt_msg_HELLO_t *hello, uint32_t *index)
{
    observer_t *it = s_find(self, identity);
    if (!it) {
        if (self->count == OBSERVERS_MAX)
            return tt_err(TT_DENIED, "%d clients are connected already; end one first", OBSERVERS_MAX);
        self->at = tt_realloc(self->at, tt_mul(self->count + 1, sizeof *self->at));
        it = &self->at[self->count++];
        *it = (observer_t){.role = (tt_peer_role_t)hello->role, .index = self->numbers++ % 65536};
        snprintf(it->identity, sizeof it->identity, "%s", identity);
        it->listens = it->role == TT_PEER_CONTROLLER;
    }
    it->sock = sock;
    it->seen_ns = tt_now_ns(self->clock);
    *index = it->index;
    return TT_OK;
}

bool observers_heard(observers_t *self, const char *identity)
{
    observer_t *it = s_find(self, identity);
    if (it)
        it->seen_ns = tt_now_ns(self->clock);
    return it != NULL;
}

tt_peer_role_t observers_role(const observers_t *self, const char *identity)
{
    const observer_t *it = s_find(self, identity);
    return it ? it->role : TT_PEER_NONE;
}

void observers_watch(observers_t *self, const char *identity)
{
    observer_t *it = s_find(self, identity);
    if (it)
        it->listens = true;
}

void observers_leave(observers_t *self, const char *identity)
{
    observer_t *it = s_find(self, identity);
    if (it)
        *it = self->at[--self->count];
}

static bool s_anybody_listens(const observers_t *self)
{
    for (size_t i = 0; i < self->count; i++)
        if (self->at[i].listens)
            return true;
    return false;
}

void observers_tell(observers_t *self, const void *msg)
{
    for (size_t i = 0; i < self->count; i++)
        if (self->at[i].listens)
            control_send(self->at[i].sock, self->at[i].identity, msg);
}

void observers_order(observers_t *self, const void *msg)
{
    for (size_t i = 0; i < self->count; i++)
        if (self->at[i].role == TT_PEER_CONTROLLER)
            control_send(self->at[i].sock, self->at[i].identity, msg);
}

void observers_stats(observers_t *self, const tt_msg_STATS_t *stats)
{
    if (!s_anybody_listens(self))
        return;
    if (tt_now_ns(self->clock) - self->sent_ns >= s_interval_ns) {
        observers_tell(self, stats);
        self->sent_ns = tt_now_ns(self->clock);
        self->pending = false;
        return;
    }
    s_forget_stats(self);
    if (stats->metrics_count > self->room) {
        self->room = stats->metrics_count;
        self->metrics = tt_realloc(self->metrics, tt_mul(self->room, sizeof *self->metrics));
    }
    self->stats = *stats;
    self->stats.metrics = self->metrics;
    self->stats.bottleneck = tt_strdup(stats->bottleneck);
    for (size_t i = 0; i < stats->metrics_count; i++)
        self->metrics[i] = (tt_rec_METRIC_t){
            .name = tt_strdup(stats->metrics[i].name ? stats->metrics[i].name : ""), .value = stats->metrics[i].value};
    self->pending = true;
}

static int64_t s_lease_due(const observers_t *self)
{
    int64_t due = INT64_MAX;
    for (size_t i = 0; i < self->count; i++)
        if (self->at[i].seen_ns + self->lease_ns < due)
            due = self->at[i].seen_ns + self->lease_ns;
    return due;
}

/*  As roster_tick: we were away ourselves, and what they said meanwhile lies unread. One that watches and is forgotten
 *  would wait for news for ever. */
static bool s_looked_late(observers_t *self, int64_t now)
{
    const int64_t grace = self->lease_ns / 2, due = s_lease_due(self);
    if (due == INT64_MAX || now - due < grace)
        return false;
    for (size_t i = 0; i < self->count; i++)
        if (self->at[i].seen_ns < now - grace)
            self->at[i].seen_ns = now - grace;
    return true;
}

static void s_drop_silent(observers_t *self, int64_t now)
{
    if (s_looked_late(self, now))
        return;
    for (size_t i = self->count; i-- > 0;) {
        if (now - self->at[i].seen_ns < self->lease_ns)
            continue;
        log_debug("%s is silent: forgotten", self->at[i].identity);
        self->at[i] = self->at[--self->count];
    }
}

int64_t observers_flush(observers_t *self, bool now)
{
    const int64_t time = tt_now_ns(self->clock);
    if (self->pending && (now || time - self->sent_ns >= s_interval_ns)) {
        observers_tell(self, &self->stats);
        self->sent_ns = time;
        self->pending = false;
    }
    s_drop_silent(self, time);
    const int64_t due = s_lease_due(self), next = self->sent_ns + s_interval_ns;
    return self->pending && next < due ? next : due;
}

size_t observers_controllers(const observers_t *self)
{
    size_t count = 0;
    for (size_t i = 0; i < self->count; i++)
        count += self->at[i].role == TT_PEER_CONTROLLER;
    return count;
}
