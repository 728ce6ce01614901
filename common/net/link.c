/*  link - the role's side: everything here only talks to the thread of link_thread.c, through mailboxes and `shared`. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "common/net/link_core.h"

enum { HELLO_WAIT_MS = 30000 }; /* for the first WELCOME, when the caller does not say */

static uint64_t s_random(void)
{
    uint64_t number = 0;
    while (number == 0)
        if (getrandom(&number, sizeof number, 0) != sizeof number)
            number = 0;
    return number;
}

static void s_name(tt_link_t *self)
{
    char index[16] = "-";
    if (self->index >= 0)
        snprintf(index, sizeof index, "%d", self->index);
    snprintf(self->identity, sizeof self->identity, "%s/%s/%016llx", tt_peer_role_name(self->role), index,
        (unsigned long long)self->instance);
    gethostname(self->host, sizeof self->host - 1);
}

static void s_free(tt_link_t *self)
{
    tt_letters_free(&self->sent);
    tt_letters_free(&self->unsent);
    pthread_mutex_destroy(&self->shared.mutex);
    free(self->endpoint);
    free(self->data_ipc);
    free(self->data_tcp);
    free(self->weights_ipc);
    free(self->weights_tcp);
    free(self->pod);
    free(self->config);
    free(self->keys);
    free(self);
}

static tt_link_t *s_new(const tt_link_opts_t *opts)
{
    tt_link_t *self = tt_new0(sizeof *self);
    self->endpoint = tt_strdup(opts->endpoint);
    self->data_ipc = tt_strdup(opts->data_ipc);
    self->data_tcp = tt_strdup(opts->data_tcp);
    self->weights_ipc = tt_strdup(opts->weights_ipc);
    self->weights_tcp = tt_strdup(opts->weights_tcp);
    self->pod = tt_strdup(opts->pod ? opts->pod : "");
    if (opts->keys) {
        self->keys = tt_new0(sizeof *self->keys);
        *self->keys = *opts->keys;
    }
    self->role = opts->role;
    self->index = opts->index;
    self->memory = opts->memory;
    self->instance = s_random();
    const int hello_ms = opts->patience_ms ? opts->patience_ms : HELLO_WAIT_MS;
    self->hello_wait_ns = (int64_t)(opts->hello_timeout_ms ? opts->hello_timeout_ms : hello_ms) * 1000000;
    self->patience_ns = (int64_t)opts->patience_ms * 1000000;
    self->clock = tt_clock_or_real(opts->clock);
    self->beat_ns = (int64_t)LINK_BEAT_MS * 1000000;
    self->lease_ns = (int64_t)LINK_LEASE_MS * 1000000;
    self->shared.index = opts->index >= 0 ? (uint32_t)opts->index : 0;
    pthread_mutex_init(&self->shared.mutex, NULL);
    tt_letters_init(&self->sent);
    tt_letters_init(&self->unsent);
    s_name(self);
    return self;
}

/*  The thread gets no signals: they are for the role's thread. */
static tt_status_t s_run(tt_link_t *self)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int code = pthread_create(&self->thread, NULL, link_main, self);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code == 0 ? TT_OK : tt_err(TT_OS, "no thread for the link: %s", strerror(code));
}

tt_status_t tt_link_start(tt_link_t **self_p, const tt_link_opts_t *opts)
{
    tt_link_t *self = s_new(opts);
    tt_status_t status = tt_mailbox_init(&self->in);
    if (status == TT_OK) {
        status = tt_mailbox_init(&self->out);
        if (status == TT_OK) {
            status = s_run(self);
            if (status == TT_OK) {
                *self_p = self;
                return TT_OK;
            }
            tt_mailbox_free(&self->out);
        }
        tt_mailbox_free(&self->in);
    }
    s_free(self);
    return status;
}

static void s_destroy(tt_link_t **self_p, bool gone)
{
    tt_link_t *self = *self_p;
    *self_p = NULL;
    if (!self)
        return;
    pthread_mutex_lock(&self->shared.mutex);
    self->shared.stop = true;
    self->shared.gone = gone;
    pthread_mutex_unlock(&self->shared.mutex);
    tt_mailbox_wake(&self->out);
    pthread_join(self->thread, NULL);
    tt_mailbox_free(&self->in);
    tt_mailbox_free(&self->out);
    s_free(self);
}

void tt_link_destroy(tt_link_t **self_p)
{
    s_destroy(self_p, false);
}

void tt_link_abandon(tt_link_t **self_p)
{
    s_destroy(self_p, true);
}

int tt_link_fd(const tt_link_t *self)
{
    return self->in.fd;
}

tt_status_t tt_link_next(tt_link_t *self, tt_packet_t *out)
{
    tt_packet_clear(out);
    tt_letter_t *letter = tt_mailbox_take(&self->in);
    if (letter) {
        out->msg = letter->msg; /* moved */
        free(letter);
        return TT_OK;
    }
    pthread_mutex_lock(&self->shared.mutex);
    const tt_status_t end = self->shared.end;
    if (end != TT_OK)
        tt_err(end, "%s", self->shared.end_text);
    pthread_mutex_unlock(&self->shared.mutex);
    if (end == TT_OK)
        return TT_AGAIN;
    tt_mailbox_wake(&self->in); /* it stays so */
    return end;
}

tt_status_t tt_link_each(tt_link_t *self, tt_link_fn fn, void *ctx)
{
    tt_packet_t packet = {0};
    tt_status_t status;
    while ((status = tt_link_next(self, &packet)) == TT_OK) {
        status = fn(ctx, &packet);
        tt_packet_clear(&packet);
        if (status != TT_OK)
            return status;
    }
    return status == TT_AGAIN ? TT_OK : status;
}

tt_status_t tt_link_wait(tt_link_t *self, tt_packet_t *out, int64_t timeout_ms)
{
    const int64_t deadline = tt_now_ms(tt_clock_real()) + timeout_ms;
    for (;;) {
        const tt_status_t status = tt_link_next(self, out);
        const int64_t left = deadline - tt_now_ms(tt_clock_real());
        if (status != TT_AGAIN || left <= 0)
            return status;
        struct pollfd ready = {.fd = self->in.fd, .events = POLLIN};
        if (poll(&ready, 1, (int)(left < 1000000 ? left : 1000000)) < 0 && errno == EINTR)
            return TT_AGAIN;
    }
}

tt_status_t tt_link_send(tt_link_t *self, const void *msg)
{
    tt_letter_t *letter = NULL;
    TT_TRY(tt_letter_new(&letter, msg));
    tt_mailbox_put(&self->out, letter);
    return TT_OK;
}

void tt_link_state(tt_link_t *self, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    pthread_mutex_lock(&self->shared.mutex);
    vsnprintf(self->shared.state, sizeof self->shared.state, fmt, ap);
    pthread_mutex_unlock(&self->shared.mutex);
    va_end(ap);
}

void tt_link_progress(tt_link_t *self, uint64_t progress)
{
    pthread_mutex_lock(&self->shared.mutex);
    self->shared.progress = progress;
    pthread_mutex_unlock(&self->shared.mutex);
}

void tt_link_spent(tt_link_t *self, const char *const *names, const int64_t *spent_ns, size_t count)
{
    TT_CHECK(count <= TT_LAPS_MAX);
    pthread_mutex_lock(&self->shared.mutex);
    self->shared.stages = names;
    self->shared.stage_count = count;
    memcpy(self->shared.spent_ns, spent_ns, count * sizeof *spent_ns);
    pthread_mutex_unlock(&self->shared.mutex);
}

void tt_link_holds(tt_link_t *self, bool holds, uint64_t update, uint32_t era, uint64_t generation)
{
    link_shared_t *shared = &self->shared;
    pthread_mutex_lock(&shared->mutex);
    const bool news = shared->holds != holds || shared->era != era;
    shared->news = shared->news || news;
    shared->holds = holds;
    shared->update = update;
    shared->era = era;
    shared->generation = generation;
    pthread_mutex_unlock(&shared->mutex);
    /* not with the next beat: rosters wait for who holds weights */
    if (news)
        tt_mailbox_wake(&self->out);
}

void tt_link_warm(tt_link_t *self, bool warm)
{
    link_shared_t *shared = &self->shared;
    pthread_mutex_lock(&shared->mutex);
    const bool news = shared->warm != warm;
    shared->news = shared->news || news;
    shared->warm = warm;
    pthread_mutex_unlock(&shared->mutex);
    if (news)
        tt_mailbox_wake(&self->out);
}

uint32_t tt_link_index(const tt_link_t *self)
{
    tt_link_t *link = (tt_link_t *)(uintptr_t)self;
    pthread_mutex_lock(&link->shared.mutex);
    const uint32_t index = link->shared.index;
    pthread_mutex_unlock(&link->shared.mutex);
    return index;
}

void tt_link_roster(tt_link_t *self, const tt_msg_ROSTER_t *roster)
{
    uint32_t learners = 0, place = 0;
    for (size_t i = 0; i < roster->members_count; i++) {
        const tt_rec_MEMBER_t *member = &roster->members[i];
        learners += member->role == TT_PEER_LEARNER;
        if (member->role == TT_PEER_LEARNER && member->instance == self->instance)
            place = member->rank + 1;
    }
    link_shared_t *shared = &self->shared;
    pthread_mutex_lock(&shared->mutex);
    shared->epoch = roster->epoch;
    shared->learners = learners;
    shared->place = place;
    pthread_mutex_unlock(&shared->mutex);
}

void tt_link_where(const tt_link_t *self, char *out, size_t size)
{
    tt_link_t *link = (tt_link_t *)(uintptr_t)self;
    pthread_mutex_lock(&link->shared.mutex);
    snprintf(out, size, "%s", self->address[0] ? self->address : self->endpoint);
    pthread_mutex_unlock(&link->shared.mutex);
}

int64_t tt_link_silence_ms(const tt_link_t *self)
{
    tt_link_t *link = (tt_link_t *)(uintptr_t)self;
    pthread_mutex_lock(&link->shared.mutex);
    const int64_t heard_ns = link->shared.heard_ns;
    pthread_mutex_unlock(&link->shared.mutex);
    return (tt_now_ns(self->clock) - heard_ns) / 1000000;
}

uint64_t tt_link_instance(const tt_link_t *self)
{
    return self->instance;
}

bool tt_link_remote(const tt_link_t *self)
{
    return strncmp(self->endpoint, "tcp://", 6) == 0;
}
