/*  exposition_process - process_* as Prometheus' own libraries have them. */
#include <dirent.h>
#include <sys/resource.h>
#include "common/base/process.h"
#include "common/http/exposition.h"

static double s_open_fds(void)
{
    DIR *folder = opendir("/proc/self/fd");
    double count = 0;
    if (!folder)
        return 0;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count - 1; /* without the folder's own */
}

static double s_max_fds(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? (double)limit.rlim_cur : 0;
}

tt_status_t tt_exposition_process(tt_buf_t *out, double started_s)
{
    const tt_process_memory_t memory = tt_process_memory();
    const struct {
        const char *name, *type, *help;
        double value;
    } all[] = {{"cpu_seconds_total", "counter", "Processor time, of user and system.", tt_process_cpu_s()},
        {"open_fds", "gauge", "File descriptors that are open.", s_open_fds()},
        {"max_fds", "gauge", "File descriptors that may be open.", s_max_fds()},
        {"resident_memory_bytes", "gauge", "Memory that is there.", (double)memory.resident},
        {"virtual_memory_bytes", "gauge", "Memory that has addresses.", (double)memory.addressed},
        {"start_time_seconds", "gauge", "Start of the process, since 1970.", started_s}};
    for (size_t i = 0; i < TT_COUNT(all); i++)
        TT_TRY(tt_exposition_one(out, "process_", all[i].name, all[i].type, all[i].help, all[i].value));
    return TT_OK;
}
