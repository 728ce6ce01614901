/*  strict - the CPU as a device that is far away: work is kept until a sync and then done on a thread of its own, in memory that
 *  faults when anybody else touches it. Same kernels, same bits as cpu/; here to find who breaks a rule of device.h.
 *
 *  Threads: work runs while the caller waits; the queue is the caller's, and the device's arena belongs to whoever runs. */
#pragma once
#include <pthread.h>
#include "common/nn/cpu/cpu.h"
#include "common/nn/strict/arena.h"

extern const tt_backend_ops_t tt_strict_backend;

/*  Work with what the call lets go of when it returns. */
typedef struct {
    tt_work_t work;
    tt_pass_t pass;
    _Alignas(16) unsigned char params[TT_LOSS_PARAMS_MAX];
} strict_item_t;

typedef struct strict_stream {
    tt_stream_t base;
    struct strict_stream *next; /* of the device's */
    strict_item_t **item;       /* [count] owned   */
    size_t count, room;
    tt_status_t status; /* of what ran, until sync says it */
    char text[2048];
} strict_stream_t;

typedef struct {
    cpu_device_t base;
    strict_arena_t *arena;
    strict_stream_t *streams;
    pthread_t owner; /* who may call */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    strict_stream_t *running; /* NULL: nothing is to be done */
    bool quit;
} strict_device_t;

/*  runner.c: the device's thread. */
tt_status_t strict_runner_start(strict_device_t *self);
void strict_runner_stop(strict_device_t *self);
/*  Do all that the stream has queued; what fails is noted in it, and nothing behind that is done. */
void strict_run(strict_stream_t *stream);

/*  work.c: as cpu_do, where the host's memory is not the device's. */
tt_status_t strict_do(const tt_work_t *work);
