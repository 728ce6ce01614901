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

int64_t tt_process_start_ns(void)
{
    const int64_t now = s_read(CLOCK_MONOTONIC);
    FILE *file = fopen("/proc/self/stat", "re");
    char line[1024];
    if (!file)
        return now;
    const size_t length = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[length] = '\0';
    const char *field = strrchr(line, ')'); /* the name may hold spaces; field 3 follows it */
    unsigned long long ticks = 0;
    if (!field || sscanf(field + 1,
                      " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
                      "%*d %llu",
                      &ticks) != 1)
        return now;
    /* ticks count from boot, CLOCK_MONOTONIC may not count suspended time: take the difference now */
    const int64_t boot = s_read(CLOCK_BOOTTIME);
    const int64_t started = (int64_t)(ticks * (1000000000ull / (unsigned long long)sysconf(_SC_CLK_TCK)));
    const int64_t age = boot - started;
    return age < 0 ? now : now - age;
}
