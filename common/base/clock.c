#include "common/base/clock.h"
#include <pthread.h>
#include <time.h>

static int64_t s_read(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static int64_t s_real_now(const tt_clock_t *self)
{
    (void)self;
    return s_read(CLOCK_MONOTONIC);
}

static int64_t s_fake_now(const tt_clock_t *self)
{
    return self->fake_ns;
}

static const tt_clock_t s_real = {.now_ns = s_real_now};

const tt_clock_t *tt_clock_real(void)
{
    return &s_real;
}

const tt_clock_t *tt_clock_or_real(const tt_clock_t *clock)
{
    return clock ? clock : &s_real;
}

tt_clock_t tt_clock_fake(int64_t start_ns)
{
    return (tt_clock_t){.now_ns = s_fake_now, .fake_ns = start_ns};
}

void tt_clock_turn(tt_clock_t *self, int64_t by_ns)
{
    self->fake_ns += by_ns;
}

int64_t tt_wall_ns(void)
{
    return s_read(CLOCK_REALTIME);
}

static int64_t s_ahead; /* of the wall clock before the monotonic one, at first */

static void s_compare(void)
{
    s_ahead = s_read(CLOCK_REALTIME) - s_read(CLOCK_MONOTONIC);
}

int64_t tt_steady_ns(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, s_compare);
    return s_ahead + s_read(CLOCK_MONOTONIC);
}
