/*  clock - time as a thing one can hand over, so that tests can turn the hands.
 *
 *  Threads: the real clock is shared by all; a fake one belongs to the test that turns it (reads are atomic). */
#pragma once
#include <stdint.h>

typedef struct tt_clock tt_clock_t;
struct tt_clock {
    int64_t (*now_ns)(const tt_clock_t *self); /* monotonic nanoseconds */
    _Atomic int64_t fake_ns;                   /* the fake clock's time */
};

/*  CLOCK_MONOTONIC; the same zero for all processes of a host. */
const tt_clock_t *tt_clock_real(void);
/*  For options in which NULL means the real one. */
const tt_clock_t *tt_clock_or_real(const tt_clock_t *clock);

/*  A clock that stands at start_ns until tt_clock_turn moves it on. */
tt_clock_t tt_clock_fake(int64_t start_ns);
void tt_clock_turn(tt_clock_t *self, int64_t by_ns);

static inline int64_t tt_now_ns(const tt_clock_t *clock)
{
    return clock->now_ns(clock);
}
static inline int64_t tt_now_ms(const tt_clock_t *clock)
{
    return clock->now_ns(clock) / 1000000;
}

/*  Nanoseconds since 1970 (for log lines and event files only). */
int64_t tt_wall_ns(void);
/*  The same as the wall clock had it when this process first asked, and then the time that has passed: whoever sets the wall clock, two of
 *  them are as far apart as they were. For times that a process writes down and then reckons with. */
int64_t tt_steady_ns(void);
