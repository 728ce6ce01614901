#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/nn/strict/strict.h"

static void s_do_all(strict_device_t *self, strict_stream_t *stream)
{
    strict_arena_open(self->arena);
    for (size_t i = 0; i < stream->count; i++) {
        if (stream->status == TT_OK) {
            stream->status = strict_do(&stream->item[i]->work);
            if (stream->status != TT_OK)
                snprintf(stream->text, sizeof stream->text, "%s", tt_err_text()); /* this thread's words */
        }
        free(stream->item[i]);
    }
    stream->count = 0;
    strict_arena_close(self->arena);
}

static void *s_serve(void *arg)
{
    strict_device_t *self = arg;
    pthread_mutex_lock(&self->mutex);
    for (;;) {
        while (!self->running && !self->quit)
            pthread_cond_wait(&self->changed, &self->mutex);
        if (!self->running)
            break;
        s_do_all(self, self->running);
        self->running = NULL;
        pthread_cond_signal(&self->changed);
    }
    pthread_mutex_unlock(&self->mutex);
    return NULL;
}

void strict_run(strict_stream_t *stream)
{
    strict_device_t *self = (strict_device_t *)stream->base.device;
    if (!stream->count)
        return;
    pthread_mutex_lock(&self->mutex);
    self->running = stream;
    pthread_cond_signal(&self->changed);
    while (self->running)
        pthread_cond_wait(&self->changed, &self->mutex);
    pthread_mutex_unlock(&self->mutex);
}

/*  Signals are the main thread's business, but for those that are this thread's own doing. */
static void s_block_signals(sigset_t *before)
{
    sigset_t all;
    sigfillset(&all);
    const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    for (size_t i = 0; i < TT_COUNT(own); i++)
        sigdelset(&all, own[i]);
    pthread_sigmask(SIG_SETMASK, &all, before);
}

tt_status_t strict_runner_start(strict_device_t *self)
{
    sigset_t before;
    pthread_mutex_init(&self->mutex, NULL);
    pthread_cond_init(&self->changed, NULL);
    s_block_signals(&before);
    const int failed = pthread_create(&self->thread, NULL, s_serve, self);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!failed)
        return TT_OK;
    pthread_cond_destroy(&self->changed);
    pthread_mutex_destroy(&self->mutex);
    return tt_err(TT_OS, "no thread for the work of cpu-strict: %s; see ulimit -u", strerror(failed));
}

void strict_runner_stop(strict_device_t *self)
{
    pthread_mutex_lock(&self->mutex);
    self->quit = true;
    pthread_cond_signal(&self->changed);
    pthread_mutex_unlock(&self->mutex);
    pthread_join(self->thread, NULL);
    pthread_cond_destroy(&self->changed);
    pthread_mutex_destroy(&self->mutex);
}
