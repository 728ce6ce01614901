#include "common/nn/cpu/pool.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/relax.h"
#include "common/base/status.h"

enum {
    SPIN_NS = 30000,    /* about what sleeping and waking through the kernel cost */
    LOOK_NS = 100000000 /* how often the caller looks whether others get on       */
};

typedef struct {
    cpu_pool_t *pool;
    uint32_t lane;
} worker_t;

struct cpu_pool {
    uint32_t lanes;
    int64_t spin_ns; /* how long to look before sleeping */
    pthread_t *threads;
    worker_t *workers;
    cpu_pool_fn fn; /* of the round; written before `round` grows */
    void *ctx;
    tt_progress_t progress; /* of the round */
    bool quit;
    _Alignas(64) _Atomic uint64_t round;
    _Alignas(64) _Atomic uint64_t busy;  /* workers still in the round           */
    _Alignas(64) _Atomic uint32_t idle;  /* workers asleep, or about to be       */
    _Alignas(64) _Atomic uint32_t await; /* the caller sleeps, or is about to    */
    _Alignas(64) _Atomic uint32_t moved; /* a worker got on since the caller looked */
    pthread_mutex_t mutex;
    pthread_cond_t started, ended;
};

/*  Look for a moment whether *word is no longer (or has become, `want`) `value`. */
static bool s_spin_until(const cpu_pool_t *self, _Atomic uint64_t *word, uint64_t value, bool want)
{
    if (self->spin_ns == 0)
        return false;
    const tt_clock_t *clock = tt_clock_real(); /* other threads work meanwhile, whatever a test's clock says */
    const int64_t until_ns = tt_now_ns(clock) + self->spin_ns;
    do {
        for (int i = 0; i < 16; i++) {
            if ((atomic_load(word) == value) == want)
                return true;
            tt_relax();
        }
    } while (tt_now_ns(clock) < until_ns);
    return false;
}

/*  Sequentially consistent orders matter here: the starter writes round, then reads idle; a worker writes idle, then
 *  reads round; one of them sees the other. The same with busy and await. */
static bool s_await_round(cpu_pool_t *self, uint64_t seen)
{
    if (s_spin_until(self, &self->round, seen, false))
        return !self->quit;
    pthread_mutex_lock(&self->mutex);
    atomic_fetch_add(&self->idle, 1);
    while (atomic_load(&self->round) == seen)
        pthread_cond_wait(&self->started, &self->mutex);
    atomic_fetch_sub(&self->idle, 1);
    pthread_mutex_unlock(&self->mutex);
    return !self->quit;
}

static void *s_work(void *arg)
{
    const worker_t *worker = arg;
    cpu_pool_t *self = worker->pool;
    for (uint64_t seen = 0; s_await_round(self, seen); seen++) {
        self->fn(self->ctx, worker->lane, self->lanes);
        if (atomic_fetch_sub(&self->busy, 1) == 1 && atomic_load(&self->await)) {
            pthread_mutex_lock(&self->mutex);
            pthread_cond_signal(&self->ended);
            pthread_mutex_unlock(&self->mutex);
        }
    }
    return NULL;
}

static void s_start_round(cpu_pool_t *self)
{
    atomic_fetch_add(&self->round, 1);
    if (atomic_load(&self->idle)) {
        pthread_mutex_lock(&self->mutex);
        pthread_cond_broadcast(&self->started);
        pthread_mutex_unlock(&self->mutex);
    }
}

/*  Until the last worker ends or it is time to look. */
static void s_sleep(cpu_pool_t *self)
{
    const int64_t until_ns = tt_now_ns(tt_clock_real()) + LOOK_NS;
    const struct timespec until = {until_ns / 1000000000, until_ns % 1000000000};
    (void)pthread_cond_clockwait(&self->ended, &self->mutex, CLOCK_MONOTONIC, &until);
}

static void s_await_workers(cpu_pool_t *self)
{
    if (s_spin_until(self, &self->busy, 0, true))
        return;
    pthread_mutex_lock(&self->mutex);
    atomic_store(&self->await, 1);
    while (atomic_load(&self->busy)) {
        s_sleep(self);
        if (atomic_exchange(&self->moved, 0))
            tt_progress(self->progress);
    }
    atomic_store(&self->await, 0);
    pthread_mutex_unlock(&self->mutex);
}

/*  The threads of all lanes but the first, or of those up to self->lanes: signals are the main thread's business. */
static tt_status_t s_start_threads(cpu_pool_t *self, uint32_t lanes)
{
    sigset_t all, before;
    int failed = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (self->lanes = 1; self->lanes < lanes && !failed; self->lanes += !failed) {
        self->workers[self->lanes] = (worker_t){self, self->lanes};
        failed = pthread_create(&self->threads[self->lanes], NULL, s_work, &self->workers[self->lanes]);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed)
        return tt_err(TT_OS, "no thread %u of %u to compute with (learner.threads): %s; see ulimit -u", self->lanes + 1,
            lanes, strerror(failed));
    return TT_OK;
}

tt_status_t cpu_pool_new(cpu_pool_t **self_p, uint32_t lanes)
{
    TT_CHECK(lanes >= 1);
    cpu_pool_t *self = tt_aligned0(sizeof *self);
    self->spin_ns = sysconf(_SC_NPROCESSORS_ONLN) >= (long)lanes ? SPIN_NS : 0;
    pthread_mutex_init(&self->mutex, NULL);
    pthread_cond_init(&self->started, NULL);
    pthread_cond_init(&self->ended, NULL);
    self->threads = tt_array0(lanes, sizeof *self->threads);
    self->workers = tt_array0(lanes, sizeof *self->workers);
    const tt_status_t status = s_start_threads(self, lanes);
    if (status == TT_OK)
        *self_p = self;
    else
        cpu_pool_destroy(&self);
    return status;
}

void cpu_pool_destroy(cpu_pool_t **self_p)
{
    cpu_pool_t *self = *self_p;
    if (!self)
        return;
    self->quit = true;
    s_start_round(self);
    for (uint32_t lane = 1; lane < self->lanes; lane++)
        pthread_join(self->threads[lane], NULL);
    pthread_cond_destroy(&self->ended);
    pthread_cond_destroy(&self->started);
    pthread_mutex_destroy(&self->mutex);
    free(self->workers);
    free(self->threads);
    free(self);
    *self_p = NULL;
}

void cpu_pool_tell(cpu_pool_t *self, uint32_t lane)
{
    if (lane == 0)
        tt_progress(self->progress);
    else if (!atomic_load_explicit(&self->moved, memory_order_relaxed))
        atomic_store_explicit(&self->moved, 1, memory_order_relaxed);
}

void cpu_pool_run(cpu_pool_t *self, cpu_pool_fn fn, void *ctx, tt_progress_t progress)
{
    self->progress = progress;
    if (self->lanes == 1) {
        fn(ctx, 0, 1);
        return;
    }
    self->fn = fn;
    self->ctx = ctx;
    atomic_store(&self->moved, 0);
    atomic_store(&self->busy, self->lanes - 1);
    s_start_round(self);
    fn(ctx, 0, self->lanes);
    s_await_workers(self);
}
