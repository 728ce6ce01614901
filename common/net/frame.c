/*  frame - raw frames, and the one place where ThreadSanitizer is told that memory changes hands.
 *
 *  The last reference to a frame may be dropped by ZeroMQ's I/O thread. ZeroMQ counts references atomically, but it is
 *  not instrumented: whoever lets go of a reference releases the frame's memory, and the free callback acquires it. */
#include "common/base/mem.h"
#include "common/net/net.h"
#include "common/net/sock.h"
#include <stdlib.h>

#ifndef __has_feature
#define __has_feature(x) 0
#endif
/*  libzmq is not instrumented: without these ThreadSanitizer does not see a frame pass between threads. */
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#include <sanitizer/tsan_interface.h>
#define RELEASE(memory) __tsan_release(memory)
#define ACQUIRE(memory) __tsan_acquire(memory)
#else
#define RELEASE(memory) ((void)(memory))
#define ACQUIRE(memory) ((void)(memory))
#endif

enum { ALIGN = 64 };

void tt_frame_release(zmq_msg_t *frame)
{
    RELEASE(zmq_msg_data(frame));
}

void tt_frame_close(zmq_msg_t *frame)
{
    tt_frame_release(frame);
    zmq_msg_close(frame);
    zmq_msg_init(frame);
}

static void s_free(void *memory, void *hint)
{
    (void)hint;
    ACQUIRE(memory);
    free(memory);
}

void tt_frame_new(zmq_msg_t *out, size_t size)
{
    if (size == 0) {
        zmq_msg_init(out);
        return;
    }
    void *memory = aligned_alloc(ALIGN, tt_align(size, ALIGN));
    TT_CHECK(memory != NULL);
    const int failed = zmq_msg_init_data(out, memory, size, s_free, NULL);
    TT_CHECK(!failed);
}

typedef struct {
    void (*done)(void *memory, void *hint);
    void *hint;
} s_wrap_t;

static void s_done(void *memory, void *hint)
{
    ACQUIRE(memory);
    s_wrap_t *wrap = hint;
    wrap->done(memory, wrap->hint);
    free(wrap);
}

void tt_frame_wrap(zmq_msg_t *out, void *memory, size_t size, void (*done)(void *memory, void *hint), void *hint)
{
    s_wrap_t *wrap = tt_new0(sizeof *wrap);
    *wrap = (s_wrap_t){done, hint};
    RELEASE(memory);
    const int failed = zmq_msg_init_data(out, memory, size, s_done, wrap);
    TT_CHECK(!failed);
}
