#include "common/http/reactor.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "common/http/reactor_curl.h"
#include "common/http/timers.h"

enum { EVENTS = 64 };                             /* handled a turn */
static const uint64_t BEFORE = UINT64_C(1) << 63; /* in the number of a timer: of which kind it is */

/* What is watched, by number of the descriptor. */
typedef struct {
    tt_fd_fn fn;
    void *ctx;
    uint32_t use; /* tells a descriptor from the next one of its number */
    bool watched, curls;
} slot_t;

struct tt_reactor {
    const tt_clock_t *clock;
    int epoll, wake;
    slot_t *slots;
    size_t slot_count;
    tt_timers_t timers, before; /* after what is ready, and before it */
    const tt_curl_t *curl;      /* NULL until a client comes */
    CURLM *multi;
    int64_t curl_due_ns; /* when libcurl wants to be called, by the real clock; -1 = not */
};

/* ---- descriptors ------------------------------------------------------------------------------------------------- */

static slot_t *s_slot(tt_reactor_t *self, int fd)
{
    const size_t need = (size_t)fd + 1;
    if (need > self->slot_count) {
        const size_t count = need > 2 * self->slot_count ? need : 2 * self->slot_count;
        self->slots = tt_realloc(self->slots, tt_mul(count, sizeof *self->slots));
        memset(self->slots + self->slot_count, 0, (count - self->slot_count) * sizeof *self->slots);
        self->slot_count = count;
    }
    return &self->slots[fd];
}

static void s_watch(tt_reactor_t *self, int fd, uint32_t events, slot_t what)
{
    TT_CHECK(fd >= 0);
    slot_t *slot = s_slot(self, fd);
    what.use = slot->watched && slot->curls == what.curls ? slot->use : slot->use + 1;
    what.watched = true;
    *slot = what;
    struct epoll_event event = {.events = events, .data.u64 = (uint64_t)slot->use << 32 | (uint32_t)fd};
    int failed = epoll_ctl(self->epoll, EPOLL_CTL_MOD, fd, &event);
    if (failed && errno == ENOENT)
        failed = epoll_ctl(self->epoll, EPOLL_CTL_ADD, fd, &event);
    TT_CHECK(!failed);
}

static void s_unwatch(tt_reactor_t *self, int fd, bool curls)
{
    if (fd < 0 || (size_t)fd >= self->slot_count || !self->slots[fd].watched || self->slots[fd].curls != curls)
        return;
    self->slots[fd].watched = false;
    self->slots[fd].use++;
    (void)epoll_ctl(self->epoll, EPOLL_CTL_DEL, fd, NULL); /* closed already: gone already */
}

void tt_reactor_fd(tt_reactor_t *self, int fd, tt_fd_fn fn, void *ctx)
{
    s_watch(self, fd, EPOLLIN, (slot_t){.fn = fn, .ctx = ctx});
}

void tt_reactor_forget_fd(tt_reactor_t *self, int fd)
{
    s_unwatch(self, fd, false);
}

/* ---- libcurl ----------------------------------------------------------------------------------------------------- */

static int s_on_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *slot)
{
    (void)easy, (void)slot;
    tt_reactor_t *self = ctx;
    if (what == CURL_POLL_REMOVE)
        s_unwatch(self, fd, true);
    else
        s_watch(self, fd, (what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u),
            (slot_t){.curls = true});
    return 0;
}

static int s_on_timer(CURLM *multi, long ms, void *ctx)
{
    (void)multi;
    tt_reactor_t *self = ctx;
    self->curl_due_ns = ms < 0 ? -1 : tt_now_ns(tt_clock_real()) + ms * INT64_C(1000000);
    return 0;
}

tt_status_t tt_reactor_multi(tt_reactor_t *self, const tt_curl_t **curl, CURLM **multi)
{
    if (!self->multi) {
        TT_TRY(tt_curl_load(&self->curl));
        self->multi = self->curl->curl_multi_init();
        if (!self->multi)
            return tt_err(TT_OS, "libcurl: out of memory");
        self->curl->curl_multi_setopt(self->multi, CURLMOPT_SOCKETFUNCTION, s_on_socket);
        self->curl->curl_multi_setopt(self->multi, CURLMOPT_SOCKETDATA, self);
        self->curl->curl_multi_setopt(self->multi, CURLMOPT_TIMERFUNCTION, s_on_timer);
        self->curl->curl_multi_setopt(self->multi, CURLMOPT_TIMERDATA, self);
        self->curl->curl_multi_setopt(self->multi, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
    }
    *curl = self->curl;
    *multi = self->multi;
    return TT_OK;
}

/* libcurl's own waits are over, and what has ended is said. */
static void s_curl_turn(tt_reactor_t *self)
{
    if (!self->multi)
        return;
    int running = 0;
    if (self->curl_due_ns >= 0 && self->curl_due_ns <= tt_now_ns(tt_clock_real())) {
        self->curl_due_ns = -1;
        self->curl->curl_multi_socket_action(self->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
    int left = 0;
    for (CURLMsg *msg; (msg = self->curl->curl_multi_info_read(self->multi, &left)) != NULL;) {
        if (msg->msg != CURLMSG_DONE)
            continue;
        const CURLcode code = msg->data.result;
        tt_transfer_t *transfer = NULL;
        self->curl->curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &transfer);
        transfer->ended(transfer, code);
    }
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

tt_status_t tt_reactor_new(tt_reactor_t **self_p, const tt_clock_t *clock)
{
    tt_reactor_t *self = tt_new0(sizeof *self);
    self->clock = tt_clock_or_real(clock);
    self->curl_due_ns = -1;
    self->epoll = epoll_create1(EPOLL_CLOEXEC);
    self->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = UINT64_MAX};
    if (self->epoll < 0 || self->wake < 0 || epoll_ctl(self->epoll, EPOLL_CTL_ADD, self->wake, &event) != 0) {
        const tt_status_t status = tt_err_errno(TT_OS, "event loop");
        tt_reactor_destroy(&self);
        return status;
    }
    *self_p = self;
    return TT_OK;
}

void tt_reactor_destroy(tt_reactor_t **self_p)
{
    tt_reactor_t *self = *self_p;
    if (!self)
        return;
    if (self->multi)
        self->curl->curl_multi_cleanup(self->multi);
    if (self->epoll >= 0)
        close(self->epoll);
    if (self->wake >= 0)
        close(self->wake);
    tt_timers_free(&self->timers);
    tt_timers_free(&self->before);
    free(self->slots);
    free(self);
    *self_p = NULL;
}

static int64_t s_due_ns(const tt_reactor_t *self, int64_t after_ms)
{
    const int64_t now_ns = tt_now_ns(self->clock);
    const int64_t most_ms = (INT64_MAX - now_ns) / 1000000;
    const int64_t ms = after_ms < 0 ? 0 : after_ms > most_ms ? most_ms : after_ms;
    return now_ns + ms * 1000000;
}

uint64_t tt_reactor_timer(tt_reactor_t *self, int64_t after_ms, tt_timer_fn fn, void *ctx)
{
    return tt_timers_add(&self->timers, s_due_ns(self, after_ms), fn, ctx);
}

uint64_t tt_reactor_timer_before(tt_reactor_t *self, int64_t after_ms, tt_timer_fn fn, void *ctx)
{
    return tt_timers_add(&self->before, s_due_ns(self, after_ms), fn, ctx) | BEFORE;
}

void tt_reactor_forget_timer(tt_reactor_t *self, uint64_t timer)
{
    if (timer & BEFORE)
        tt_timers_forget(&self->before, timer & ~BEFORE);
    else
        tt_timers_forget(&self->timers, timer);
}

/* What is due now; what is added meanwhile waits for the next turn, so that timers of 0 ms starve nobody. */
static void s_timers_turn(const tt_reactor_t *self, tt_timers_t *timers)
{
    const int64_t now_ns = tt_now_ns(self->clock);
    const uint64_t before = timers->order;
    for (const tt_timer_t *first; (first = tt_timers_first(timers)) != NULL;) {
        if (first->due_ns > now_ns || first->order >= before)
            return;
        const tt_timer_t timer = *first;
        tt_timers_forget(timers, timer.id);
        timer.fn(timer.ctx);
    }
}

static int64_t s_sooner(int64_t wait_ms, int64_t due_ns, int64_t now_ns)
{
    const int64_t ms = due_ns <= now_ns ? 0 : (due_ns - now_ns + 999999) / 1000000;
    return wait_ms < 0 || ms < wait_ms ? ms : wait_ms;
}

static int s_wait_ms(const tt_reactor_t *self, int64_t timeout_ms)
{
    const tt_timer_t *const first[] = {tt_timers_first(&self->timers), tt_timers_first(&self->before)};
    int64_t ms = timeout_ms;
    for (size_t i = 0; i < TT_COUNT(first); i++)
        if (first[i])
            ms = s_sooner(ms, first[i]->due_ns, tt_now_ns(self->clock));
    if (self->curl_due_ns >= 0)
        ms = s_sooner(ms, self->curl_due_ns, tt_now_ns(tt_clock_real()));
    return ms < 0 ? -1 : ms > INT_MAX ? INT_MAX : (int)ms;
}

static void s_handle(tt_reactor_t *self, const struct epoll_event *event)
{
    if (event->data.u64 == UINT64_MAX) {
        uint64_t woken;
        (void)!read(self->wake, &woken, sizeof woken);
        return;
    }
    const int fd = (int)(event->data.u64 & UINT32_MAX);
    const slot_t slot = self->slots[fd];
    if (!slot.watched || slot.use != event->data.u64 >> 32)
        return; /* forgotten by a handler of this very turn */
    if (!slot.curls) {
        slot.fn(slot.ctx, fd);
        return;
    }
    const int what = (event->events & (EPOLLIN | EPOLLHUP) ? CURL_CSELECT_IN : 0) |
                     (event->events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                     (event->events & EPOLLERR ? CURL_CSELECT_ERR : 0);
    int running = 0;
    self->curl->curl_multi_socket_action(self->multi, fd, what, &running);
}

tt_status_t tt_reactor_poll(tt_reactor_t *self, int64_t timeout_ms)
{
    struct epoll_event events[EVENTS];
    const int count = epoll_wait(self->epoll, events, EVENTS, s_wait_ms(self, timeout_ms));
    if (count < 0 && errno != EINTR)
        return tt_err_errno(TT_OS, "epoll_wait");
    s_timers_turn(self, &self->before);
    for (int i = 0; i < count; i++)
        s_handle(self, &events[i]);
    s_curl_turn(self);
    s_timers_turn(self, &self->timers);
    return TT_OK;
}

void tt_reactor_wake(tt_reactor_t *self)
{
    const int saved = errno; /* may be a signal handler */
    const uint64_t one = 1;
    (void)!write(self->wake, &one, sizeof one);
    errno = saved;
}

const tt_clock_t *tt_reactor_clock(const tt_reactor_t *self)
{
    return self->clock;
}
