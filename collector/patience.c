#include "collector/patience.h"
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include "common/base/clock.h"
#define TT_LOG_COMPONENT "env"
#include "common/base/log.h"

static _Thread_local patience_fn s_also;
static _Thread_local void *s_also_ctx;

void patience_also(patience_fn fn, void *ctx)
{
    s_also = fn;
    s_also_ctx = ctx;
}

bool patience_first(void)
{
    static atomic_bool s_told;
    return !atomic_exchange(&s_told, true);
}

static void *s_watch(void *ctx)
{
    patience_t *self = ctx;
    const struct timespec until = {self->until_ns / 1000000000, self->until_ns % 1000000000};
    int failed = 0;
    pthread_mutex_lock(&self->mutex);
    while (!self->over && failed == 0)
        failed = pthread_cond_timedwait(&self->ended, &self->mutex, &until);
    if (!self->over && patience_first()) {
        log_info("%s: waiting for the environment: %s", self->env, self->doing);
        if (self->also)
            self->also(self->ctx, self->doing);
    }
    pthread_mutex_unlock(&self->mutex);
    return NULL;
}

/*  It gets no signals: they are for the others. */
static bool s_run(patience_t *self)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int code = pthread_create(&self->thread, NULL, s_watch, self);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code == 0;
}

void patience_begin(patience_t *self, const char *env, const char *fmt, ...)
{
    va_list ap;
    pthread_condattr_t attr;
    *self = (patience_t){.env = env,
        .also = s_also,
        .ctx = s_also_ctx,
        .until_ns = tt_now_ns(tt_clock_real()) + PATIENCE_MS * INT64_C(1000000)};
    va_start(ap, fmt);
    vsnprintf(self->doing, sizeof self->doing, fmt, ap);
    va_end(ap);
    pthread_mutex_init(&self->mutex, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&self->ended, &attr);
    pthread_condattr_destroy(&attr);
    self->watched = s_run(self);
}

void patience_end(patience_t *self)
{
    pthread_mutex_lock(&self->mutex);
    self->over = true;
    pthread_cond_signal(&self->ended);
    pthread_mutex_unlock(&self->mutex);
    if (self->watched)
        pthread_join(self->thread, NULL);
    pthread_cond_destroy(&self->ended);
    pthread_mutex_destroy(&self->mutex);
}
