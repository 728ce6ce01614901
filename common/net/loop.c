#define TT_LOG_COMPONENT "net"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/net/sock.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum { PACKETS_MAX = 1024, BURST = 16, FAKE_CLOCK_MS = 2 };

/*  An entry whose handler is NULL was forgotten: handlers may forget anything at any time, so entries are removed only
 *  between rounds. */
typedef struct {
    tt_sock_t *sock;
    tt_on_packet_fn fn;
    void *ctx;
} s_sock_entry_t;

typedef struct {
    int fd;
    tt_on_fd_fn fn;
    void *ctx;
} s_fd_entry_t;

typedef struct {
    int id;
    int64_t due_ns, every_ns;
    tt_on_timer_fn fn;
    void *ctx;
} s_timer_entry_t;

struct tt_loop {
    const tt_clock_t *clock;
    s_sock_entry_t *socks;
    s_fd_entry_t *fds;
    s_timer_entry_t *timers;
    size_t sock_count, fd_count, timer_count;
    struct pollfd *polls; /* the sockets', then the fds' */
    size_t poll_room;
    bool holes;   /* something was forgotten */
    bool busy;    /* in tt_loop_poll */
    size_t first; /* socket that is served first in the next round */
    int last_timer;
};

tt_status_t tt_loop_new(tt_loop_t **self_p, const tt_clock_t *clock)
{
    tt_loop_t *self = tt_new0(sizeof *self);
    self->clock = tt_clock_or_real(clock);
    *self_p = self;
    return TT_OK;
}

void tt_loop_destroy(tt_loop_t **self_p)
{
    tt_loop_t *self = *self_p;
    *self_p = NULL;
    if (!self)
        return;
    free(self->socks);
    free(self->fds);
    free(self->timers);
    free(self->polls);
    free(self);
}

/* ---- what is served ---------------------------------------------------------------------------------------------- */

/*  Room for one more at the end of an array; the entry's address. */
static void *s_grow(void *entries_p, size_t *count, size_t size)
{
    void *entries;
    memcpy(&entries, entries_p, sizeof entries);
    entries = tt_realloc(entries, tt_mul(*count + 1, size));
    memcpy(entries_p, &entries, sizeof entries);
    return (char *)entries + (*count)++ * size;
}

void tt_loop_sock(tt_loop_t *self, tt_sock_t *sock, tt_on_packet_fn fn, void *ctx)
{
    TT_CHECK(fn && tt_sock_receives(sock));
    s_sock_entry_t *entry = s_grow(&self->socks, &self->sock_count, sizeof *entry);
    *entry = (s_sock_entry_t){sock, fn, ctx};
}

void tt_loop_fd(tt_loop_t *self, int fd, tt_on_fd_fn fn, void *ctx)
{
    TT_CHECK(fn && fd >= 0);
    s_fd_entry_t *entry = s_grow(&self->fds, &self->fd_count, sizeof *entry);
    *entry = (s_fd_entry_t){fd, fn, ctx};
}

static int s_add_timer(tt_loop_t *self, int64_t due_ns, int64_t every_ns, tt_on_timer_fn fn, void *ctx)
{
    s_timer_entry_t *entry = s_grow(&self->timers, &self->timer_count, sizeof *entry);
    *entry = (s_timer_entry_t){++self->last_timer, due_ns, every_ns, fn, ctx};
    return entry->id;
}

int tt_loop_timer(tt_loop_t *self, int64_t after_ms, int64_t every_ms, tt_on_timer_fn fn, void *ctx)
{
    TT_CHECK(fn && after_ms >= 0 && every_ms >= 0);
    return s_add_timer(self, tt_now_ns(self->clock) + after_ms * 1000000, every_ms * 1000000, fn, ctx);
}

int tt_loop_timer_at(tt_loop_t *self, int64_t due_ns, tt_on_timer_fn fn, void *ctx)
{
    TT_CHECK(fn);
    return s_add_timer(self, due_ns, 0, fn, ctx);
}

void tt_loop_forget_sock(tt_loop_t *self, tt_sock_t *sock)
{
    for (size_t i = 0; i < self->sock_count; i++)
        if (self->socks[i].sock == sock)
            self->socks[i] = (s_sock_entry_t){0};
    self->holes = true;
}

void tt_loop_forget_fd(tt_loop_t *self, int fd)
{
    for (size_t i = 0; i < self->fd_count; i++)
        if (self->fds[i].fd == fd)
            self->fds[i] = (s_fd_entry_t){0};
    self->holes = true;
}

void tt_loop_forget_timer(tt_loop_t *self, int timer)
{
    for (size_t i = 0; i < self->timer_count; i++)
        if (self->timers[i].id == timer)
            self->timers[i] = (s_timer_entry_t){0};
    self->holes = true;
}

static void s_close_holes(tt_loop_t *self)
{
    size_t kept = 0;
    for (size_t i = 0; i < self->sock_count; i++)
        if (self->socks[i].fn)
            self->socks[kept++] = self->socks[i];
    self->sock_count = kept;
    kept = 0;
    for (size_t i = 0; i < self->fd_count; i++)
        if (self->fds[i].fn)
            self->fds[kept++] = self->fds[i];
    self->fd_count = kept;
    kept = 0;
    for (size_t i = 0; i < self->timer_count; i++)
        if (self->timers[i].fn)
            self->timers[kept++] = self->timers[i];
    self->timer_count = kept;
    self->holes = false;
}

/* ---- serving ----------------------------------------------------------------------------------------------------- */

/*  A peer that breaks the rules all the time must not fill the log: the 1st, 2nd, 4th, 8th, ... time is told. */
static void s_report(const tt_sock_t *sock)
{
    const uint64_t count = tt_sock_violations(sock);
    if ((count & (count - 1)) == 0)
        log_warn("dropped a message (number %llu): %s", (unsigned long long)count, tt_err_text());
}

/*  Up to BURST packets of socket i; *left counts down. The handler may forget or destroy the socket. */
static tt_status_t s_serve_sock(tt_loop_t *self, size_t i, size_t *left, size_t *handled)
{
    tt_packet_t packet;
    packet.frame_count = 0;
    memset(&packet.msg, 0, sizeof packet.msg);
    for (size_t burst = 0; burst<BURST && * left> 0; burst++) {
        const s_sock_entry_t entry = self->socks[i];
        if (!entry.fn)
            return TT_OK;
        tt_status_t status = tt_sock_recv(entry.sock, &packet);
        if (status == TT_AGAIN)
            return TT_OK;
        --*left;
        ++*handled;
        if (status == TT_PROTOCOL) {
            s_report(entry.sock);
            continue;
        }
        if (status == TT_OK)
            status = entry.fn(entry.ctx, entry.sock, &packet);
        tt_packet_clear(&packet);
        TT_TRY(status);
    }
    return TT_OK;
}

/*  Round after round over the sockets that may have something, a burst of each, until all are empty. */
static tt_status_t s_serve_socks(tt_loop_t *self, size_t *handled)
{
    size_t left = PACKETS_MAX;
    bool again = true;
    while (again && left > 0) {
        again = false;
        const size_t count = self->sock_count;
        for (size_t k = 0; k < count; k++) {
            const size_t i = (self->first + k) % count;
            if (!self->socks[i].fn || !tt_sock_hot(self->socks[i].sock))
                continue;
            TT_TRY(s_serve_sock(self, i, &left, handled));
            again = true; /* it, or another that its handler sent on, may have more */
        }
        self->first++;
    }
    return TT_OK;
}

static tt_status_t s_serve_fds(tt_loop_t *self, const struct pollfd *polls, size_t count, size_t *handled)
{
    for (size_t i = 0; i < count; i++) {
        const s_fd_entry_t entry = self->fds[i];
        if (!polls[i].revents || !entry.fn || entry.fd != polls[i].fd)
            continue;
        ++*handled;
        TT_TRY(entry.fn(entry.ctx, entry.fd));
    }
    return TT_OK;
}

/*  Every timer that is due, once; one that is behind by several periods does not run after them. */
static tt_status_t s_serve_timers(tt_loop_t *self, size_t *handled)
{
    if (self->timer_count == 0)
        return TT_OK;
    const int64_t now = tt_now_ns(self->clock);
    const size_t count = self->timer_count;
    for (size_t i = 0; i < count; i++) {
        s_timer_entry_t *entry = &self->timers[i];
        if (!entry->fn || entry->due_ns > now)
            continue;
        const s_timer_entry_t due = *entry;
        if (due.every_ns)
            entry->due_ns = due.due_ns + due.every_ns > now ? due.due_ns + due.every_ns : now + due.every_ns;
        else
            tt_loop_forget_timer(self, due.id);
        ++*handled;
        TT_TRY(due.fn(due.ctx));
    }
    return TT_OK;
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

static bool s_is_fake(const tt_loop_t *self)
{
    return self->clock != tt_clock_real();
}

/*  How long may we sleep, at most wait_ns? */
static int64_t s_wait_ns(const tt_loop_t *self, int64_t wait_ns)
{
    for (size_t i = 0; i < self->sock_count; i++)
        if (tt_sock_hot(self->socks[i].sock))
            return 0;
    if (s_is_fake(self) && wait_ns > FAKE_CLOCK_MS * 1000000)
        wait_ns = FAKE_CLOCK_MS * 1000000; /* nothing wakes us when somebody turns its hands */
    if (self->timer_count == 0 || wait_ns == 0)
        return wait_ns;
    const int64_t now = tt_now_ns(self->clock);
    for (size_t i = 0; i < self->timer_count; i++) {
        const int64_t left = self->timers[i].due_ns - now;
        if (left < wait_ns)
            wait_ns = left > 0 ? left : 0;
    }
    return wait_ns;
}

/*  One system call over everything. False: a signal came. */
static bool s_look(tt_loop_t *self, int64_t wait_ns)
{
    const size_t count = self->sock_count + self->fd_count;
    if (count > self->poll_room) {
        self->polls = tt_realloc(self->polls, tt_mul(count, sizeof *self->polls));
        self->poll_room = count;
    }
    for (size_t i = 0; i < self->sock_count; i++)
        self->polls[i] = (struct pollfd){.fd = tt_sock_fd(self->socks[i].sock), .events = POLLIN};
    for (size_t i = 0; i < self->fd_count; i++)
        self->polls[self->sock_count + i] = (struct pollfd){.fd = self->fds[i].fd, .events = POLLIN};
    const struct timespec wait = {.tv_sec = wait_ns / 1000000000, .tv_nsec = wait_ns % 1000000000};
    const int ready = ppoll(self->polls, (nfds_t)count, &wait, NULL);
    if (ready < 0) {
        TT_CHECK(errno == EINTR);
        return false;
    }
    for (size_t i = 0; ready > 0 && i < self->sock_count; i++)
        if (self->polls[i].revents)
            tt_sock_wake(self->socks[i].sock);
    return true;
}

static tt_status_t s_serve(tt_loop_t *self, size_t *handled)
{
    const size_t socks = self->sock_count, fds = self->fd_count; /* as polled */
    TT_TRY(s_serve_fds(self, self->polls + socks, fds, handled));
    TT_TRY(s_serve_socks(self, handled));
    return s_serve_timers(self, handled);
}

/*  Whoever waits may have taken the time from the loop's clock: one that was turned ends the wait, one that stands does not
 *  make it longer. */
typedef struct {
    int64_t real_ns, fake_ns;
} s_deadline_t;

static s_deadline_t s_deadline(const tt_loop_t *self, int64_t left_ns)
{
    return (s_deadline_t){.real_ns = left_ns ? tt_now_ns(tt_clock_real()) + left_ns : 0,
        .fake_ns = s_is_fake(self) ? tt_now_ns(self->clock) + left_ns : INT64_MAX};
}

static int64_t s_left_ns(const tt_loop_t *self, const s_deadline_t *end)
{
    const int64_t left_ns = end->real_ns - tt_now_ns(tt_clock_real());
    return s_is_fake(self) && tt_now_ns(self->clock) >= end->fake_ns ? 0 : left_ns;
}

static tt_status_t s_poll(tt_loop_t *self, int64_t timeout_ms)
{
    int64_t left_ns = timeout_ms * 1000000;
    const s_deadline_t end = s_deadline(self, left_ns);
    for (size_t handled = 0;;) {
        if (self->holes)
            s_close_holes(self);
        if (!s_look(self, s_wait_ns(self, left_ns)))
            return TT_AGAIN;
        TT_TRY(s_serve(self, &handled));
        if (handled > 0)
            return TT_OK;
        if (left_ns > 0) /* woken for nothing: ZeroMQ's own business, or a clock that does not run by itself */
            left_ns = s_left_ns(self, &end);
        if (left_ns <= 0)
            return TT_AGAIN;
    }
}

tt_status_t tt_loop_poll(tt_loop_t *self, int64_t timeout_ms)
{
    TT_CHECK(timeout_ms >= 0 && !self->busy); /* a handler must not wait on the loop that called it */
    self->busy = true;
    const tt_status_t status = s_poll(self, timeout_ms);
    self->busy = false;
    return status;
}
