#include "common/base/clock.h"
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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

/*  The 10 ms in which the kernel says we were started, as monotonic time of its beginning; -1 = unknown. */
static int64_t s_start_tick_ns(int64_t now, int64_t *tick_ns)
{
    FILE *file = fopen("/proc/self/stat", "re");
    char line[1024];
    if (!file)
        return -1;
    const size_t length = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[length] = '\0';
    const char *field = strrchr(line, ')'); /* the name may hold spaces; field 3 follows it */
    unsigned long long ticks = 0;
    if (!field || sscanf(field + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
                      &ticks) != 1)
        return -1;
    *tick_ns = 1000000000 / sysconf(_SC_CLK_TCK);
    /* ticks count from boot, CLOCK_MONOTONIC may not count suspended time: take the difference now */
    return now - (s_read(CLOCK_BOOTTIME) - (int64_t)ticks * *tick_ns);
}

int64_t tt_process_start_ns(void)
{
    const int64_t now = s_read(CLOCK_MONOTONIC);
    const int64_t worked = now - s_read(CLOCK_PROCESS_CPUTIME_ID);
    int64_t tick_ns = 0;
    const int64_t earliest = s_start_tick_ns(now, &tick_ns);
    if (earliest < 0)
        return worked;
    const int64_t latest = earliest + tick_ns;
    if (worked > latest + 1000000000) /* a shell that had lived for long became us by exec */
        return worked;
    return worked < earliest ? earliest : worked > latest ? latest : worked;
}
