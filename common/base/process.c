#include "common/base/process.h"
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

double tt_process_started_s(void)
{
    const int64_t ago_ns = s_read(CLOCK_MONOTONIC) - tt_process_start_ns();
    return (double)(s_read(CLOCK_REALTIME) - ago_ns) * 1e-9;
}

double tt_process_cpu_s(void)
{
    return (double)s_read(CLOCK_PROCESS_CPUTIME_ID) * 1e-9;
}

tt_process_memory_t tt_process_memory(void)
{
    unsigned long long addressed = 0, resident = 0;
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    FILE *file = fopen("/proc/self/statm", "re");
    if (file && fscanf(file, "%llu %llu", &addressed, &resident) != 2)
        addressed = resident = 0;
    if (file)
        fclose(file);
    return (tt_process_memory_t){addressed * page, resident * page};
}
