#define TT_LOG_COMPONENT "evaluate"
#include "learner/evaluate.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/job/diverged.h"
#include "common/job/fit.h"

enum { WAITING_MAX = TT_SNAPSHOT_WAITING_MAX, NICE = 10, JOIN_S = 2 };
typedef enum { IDLE, GIVEN, PLAYED } phase_t;

/*  A version by reference. */
typedef struct {
    uint64_t version;
    zmq_msg_t frame[2]; /* parameters, normaliser */
} waiting_t;

struct evaluate {
    /* the learner's thread's */
    evaluate_play_fn play;
    tt_train_cfg_t train;
    tt_columns_t *columns;
    size_t params, norm;
    waiting_t waiting[WAITING_MAX]; /* ascending */
    uint32_t count;
    bool counts;   /* the game in hand is of waiting[0] */
    uint64_t seen; /* of `steps`                     */
    bool alive;    /* the thread is there            */
    pthread_t thread;
    int fd;

    /* handed over: the player's while GIVEN, else the learner's */
    waiting_t game;
    evaluate_result_t result;
    tt_status_t status;
    char text[512];

    pthread_mutex_t mutex; /* of the next two lines */
    phase_t phase;
    bool quit, gone, orphan; /* orphan: the player frees it all, should it ever come back */
    pthread_cond_t given;
    atomic_bool stop;
    atomic_ullong steps;
    atomic_uint ended;
};

/* ---- references ----------------------------------------------------------------------------------------------------- */

static void s_refer(waiting_t *to, waiting_t *from)
{
    to->version = from->version;
    for (int i = 0; i < 2; i++) {
        zmq_msg_init(&to->frame[i]);
        zmq_msg_copy(&to->frame[i], &from->frame[i]);
    }
}

static void s_drop(waiting_t *one)
{
    for (int i = 0; i < 2; i++)
        tt_frame_close(&one->frame[i]);
}

static void s_drop_oldest(evaluate_t *self)
{
    s_drop(&self->waiting[0]);
    for (uint32_t i = 1; i < self->count; i++) {
        s_refer(&self->waiting[i - 1], &self->waiting[i]);
        s_drop(&self->waiting[i]);
    }
    self->count--;
    self->counts = false;
}

/*  Room for one more, larger than all. Who does not lead has no other way to know that the oldest is done: the leader, too, goes on
 *  with one outstanding only. */
static waiting_t *s_add(evaluate_t *self, uint64_t version)
{
    if (self->count == WAITING_MAX)
        s_drop_oldest(self);
    waiting_t *one = &self->waiting[self->count++];
    one->version = version;
    return one;
}

static tt_snapshot_version_t s_version(const waiting_t *one)
{
    waiting_t *frames = (waiting_t *)(uintptr_t)one; /* zmq_msg_data takes no const */
    return (tt_snapshot_version_t){
        .version = one->version, .params = zmq_msg_data(&frames->frame[0]), .norm = zmq_msg_data(&frames->frame[1])};
}

static void s_set_phase(evaluate_t *self, phase_t phase)
{
    pthread_mutex_lock(&self->mutex);
    self->phase = phase;
    pthread_cond_broadcast(&self->given);
    pthread_mutex_unlock(&self->mutex);
}

static phase_t s_phase(evaluate_t *self)
{
    pthread_mutex_lock(&self->mutex);
    const phase_t phase = self->phase;
    pthread_mutex_unlock(&self->mutex);
    return phase;
}

/* ---- the player ----------------------------------------------------------------------------------------------------- */

static bool s_watch(void *ctx, uint32_t ended)
{
    evaluate_t *self = ctx;
    atomic_store_explicit(&self->ended, ended, memory_order_relaxed);
    atomic_fetch_add_explicit(&self->steps, 1, memory_order_relaxed);
    return !atomic_load_explicit(&self->stop, memory_order_relaxed);
}

static void s_play(evaluate_t *self)
{
    const tt_snapshot_version_t version = s_version(&self->game);
    const evaluate_game_t game = {.train = &self->train,
        .columns = self->columns,
        .params = version.params,
        .norm = version.norm,
        .watch = s_watch,
        .watch_ctx = self};
    self->status = self->play(&game, &self->result);
    snprintf(self->text, sizeof self->text, "%s", self->status == TT_OK ? "" : tt_err_text());
}

static bool s_await_game(evaluate_t *self)
{
    pthread_mutex_lock(&self->mutex);
    while (self->phase != GIVEN && !self->quit)
        pthread_cond_wait(&self->given, &self->mutex);
    const bool quit = self->quit;
    pthread_mutex_unlock(&self->mutex);
    return !quit;
}

static void s_give_back(evaluate_t *self)
{
    const uint64_t one = 1;
    s_set_phase(self, PLAYED);
    const ssize_t written = write(self->fd, &one, sizeof one);
    TT_CHECK(written == sizeof one);
}

static void s_free(evaluate_t *self)
{
    if (self->phase != IDLE)
        s_drop(&self->game);
    evaluate_reset(self);
    pthread_cond_destroy(&self->given);
    pthread_mutex_destroy(&self->mutex);
    close(self->fd);
    tt_columns_destroy(&self->columns);
    free(self);
}

static void *s_live(void *ctx)
{
    evaluate_t *self = ctx;
    /* training comes first; who may not be nice plays all the same */
    if (setpriority(PRIO_PROCESS, (id_t)gettid(), NICE) != 0)
        log_debug("priority of the evaluation: %s", strerror(errno));
    while (s_await_game(self)) {
        s_play(self);
        s_give_back(self);
    }
    pthread_mutex_lock(&self->mutex);
    self->gone = true;
    const bool orphan = self->orphan;
    pthread_cond_broadcast(&self->given);
    pthread_mutex_unlock(&self->mutex);
    if (orphan)
        s_free(self);
    return NULL;
}

/* ---- make and end --------------------------------------------------------------------------------------------------- */

tt_status_t evaluate_new(evaluate_t **self_p, const evaluate_cfg_t *cfg)
{
    tt_columns_t *columns;
    TT_TRY(tt_train_columns(&columns, cfg->train));
    const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0) {
        tt_columns_destroy(&columns);
        return tt_err_errno(TT_OS, "eventfd");
    }
    evaluate_t *self = tt_new0(sizeof *self);
    self->play = cfg->play;
    self->train = *cfg->train;
    self->columns = columns;
    self->params = cfg->params;
    self->norm = cfg->norm;
    self->fd = fd;
    pthread_mutex_init(&self->mutex, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&self->given, &attr);
    pthread_condattr_destroy(&attr);
    *self_p = self;
    return TT_OK;
}

/*  false: it is inside its environment and does not come back. */
static bool s_await_end(evaluate_t *self)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += JOIN_S;
    atomic_store(&self->stop, true);
    pthread_mutex_lock(&self->mutex);
    self->quit = true;
    pthread_cond_broadcast(&self->given);
    while (!self->gone && pthread_cond_timedwait(&self->given, &self->mutex, &until) == 0)
        ;
    const bool gone = self->gone;
    self->orphan = !gone;
    pthread_mutex_unlock(&self->mutex);
    return gone;
}

static bool s_join(evaluate_t *self)
{
    const pthread_t thread = self->thread;
    if (!self->alive)
        return true;
    if (s_await_end(self))
        return pthread_join(thread, NULL) == 0;
    pthread_detach(thread);
    return false;
}

void evaluate_destroy(evaluate_t **self_p)
{
    evaluate_t *self = *self_p;
    *self_p = NULL;
    if (!self)
        return;
    const uint64_t version = self->game.version; /* who is left behind takes itself along */
    char env[sizeof self->train.env];
    memcpy(env, self->train.env, sizeof env);
    if (s_join(self))
        s_free(self);
    else
        log_error("the evaluation of version %llu is inside env %s and does not come back: left behind",
            (unsigned long long)version, env);
}

int evaluate_fd(const evaluate_t *self)
{
    return self->fd;
}

/* ---- what is due ---------------------------------------------------------------------------------------------------- */

void evaluate_reset(evaluate_t *self)
{
    while (self->count)
        s_drop_oldest(self);
    atomic_store(&self->stop, true);
    self->counts = false;
}

static bool s_is_due(const evaluate_t *self, uint64_t version)
{
    const uint64_t batch = (uint64_t)self->train.num_envs * self->train.num_steps, every = self->train.eval.every;
    return version > 0 && version * batch / every > (version - 1) * batch / every;
}

void evaluate_keep(evaluate_t *self, version_t *version)
{
    if (s_is_due(self, version->version))
        publish_frames(version, s_add(self, version->version)->frame);
}

void evaluate_capture(const evaluate_t *self, tt_snapshot_t *out)
{
    out->waitings = self->count;
    for (uint32_t i = 0; i < self->count; i++)
        out->waiting[i] = s_version(&self->waiting[i]);
}

void evaluate_restore(evaluate_t *self, const tt_snapshot_t *from)
{
    evaluate_reset(self);
    for (size_t i = 0; i < from->waitings; i++) {
        waiting_t *one = s_add(self, from->waiting[i].version);
        tt_frame_new(&one->frame[0], self->params * sizeof(float));
        tt_frame_new(&one->frame[1], self->norm * sizeof(double));
        memcpy(zmq_msg_data(&one->frame[0]), from->waiting[i].params, self->params * sizeof(float));
        memcpy(zmq_msg_data(&one->frame[1]), from->waiting[i].norm, self->norm * sizeof(double));
    }
}

uint32_t evaluate_outstanding(const evaluate_t *self)
{
    return self->count;
}

/* ---- hand-over ------------------------------------------------------------------------------------------------------ */

tt_status_t evaluate_begin(evaluate_t *self)
{
    if (self->count == 0 || s_phase(self) != IDLE)
        return TT_OK;
    s_refer(&self->game, &self->waiting[0]);
    self->counts = true;
    atomic_store(&self->stop, false);
    atomic_store(&self->ended, 0);
    s_set_phase(self, GIVEN);
    if (self->alive)
        return TT_OK;
    const int failed = pthread_create(&self->thread, NULL, s_live, self);
    if (failed) {
        s_drop(&self->game);
        s_set_phase(self, IDLE);
        return tt_err(TT_OS, "no thread to evaluate in (eval.every): %s; see ulimit -u", strerror(failed));
    }
    self->alive = true;
    return TT_OK;
}

tt_status_t evaluate_take(evaluate_t *self, tt_snapshot_version_t *version, evaluate_result_t *out)
{
    if (s_phase(self) != PLAYED)
        return TT_AGAIN;
    s_drop(&self->game);
    s_set_phase(self, IDLE);
    if (!self->counts)
        return TT_AGAIN;
    self->counts = false;
    if (self->status == TT_DIVERGED)
        return tt_diverged("evaluation of version %llu: %s", (unsigned long long)self->game.version, self->text);
    if (self->status != TT_OK)
        return tt_err(
            self->status, "evaluation of version %llu: %s", (unsigned long long)self->game.version, self->text);
    *version = s_version(&self->waiting[0]);
    *out = self->result;
    return TT_OK;
}

void evaluate_done(evaluate_t *self)
{
    s_drop_oldest(self);
}

bool evaluate_moved(evaluate_t *self)
{
    const uint64_t steps = atomic_load_explicit(&self->steps, memory_order_relaxed);
    const bool moved = steps != self->seen;
    self->seen = steps;
    return moved;
}

const char *evaluate_doing(const evaluate_t *self, char *out, size_t size)
{
    if (!self->counts)
        snprintf(out, size, "no more: the game in hand is to stop");
    else
        snprintf(out, size, "version %llu (%u of %u episodes have ended)", (unsigned long long)self->waiting[0].version,
            atomic_load_explicit(&self->ended, memory_order_relaxed), self->train.eval.episodes);
    return out;
}
