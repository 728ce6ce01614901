#include "controller/limits.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "controller/cgroups.h"

enum { PERIOD_US = 100000, QUOTA_MIN_US = 1000 }; /* of the kernel's CFS bandwidth controller */

#define PREFIX "tutti-run-"

struct limits {
    cgroups_t groups; /* ".../tutti-run-<run>"; below each one group a container */
};

static void s_remove_all(const char *folder)
{
    DIR *dir = folder ? opendir(folder) : NULL;
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
            unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
    if (dir)
        closedir(dir);
    if (folder)
        rmdir(folder);
}

/*  Groups of runs that were killed: their names end with the id of a process that is no more. */
static void s_sweep(const char *ours)
{
    char *parent = ours ? tt_strdup(ours) : NULL, *slash = parent ? strrchr(parent, '/') : NULL;
    if (slash)
        *slash = '\0';
    DIR *dir = slash ? opendir(parent) : NULL;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        const char *dash = strrchr(entry->d_name, '-');
        const long pid = dash ? strtol(dash + 1, NULL, 10) : 0;
        if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) != 0 || pid < 2 || kill((pid_t)pid, 0) == 0 ||
            errno != ESRCH)
            continue;
        char *stale = tt_sprintf("%s/%s", parent, entry->d_name);
        s_remove_all(stale);
        free(stale);
    }
    if (dir)
        closedir(dir);
    free(parent);
}

tt_status_t limits_new(limits_t **self_p, const char *name)
{
    limits_t *self = tt_new0(sizeof *self);
    char *folder = tt_sprintf(PREFIX "%s", name);
    const tt_status_t status = cgroups_make(&self->groups, folder);
    free(folder);
    if (status != TT_OK) {
        free(self);
        return status;
    }
    s_sweep(self->groups.cpu);
    s_sweep(self->groups.memory);
    *self_p = self;
    return TT_OK;
}

void limits_destroy(limits_t **self_p)
{
    limits_t *self = *self_p;
    if (!self)
        return;
    s_remove_all(self->groups.cpu);
    s_remove_all(self->groups.memory);
    cgroups_clear(&self->groups);
    free(self);
    *self_p = NULL;
}

static char *s_group(const char *folder, const char *container)
{
    return tt_sprintf("%s/%s", folder, container);
}

static bool s_limit_cpu(const limits_t *self, const char *group, double cpu)
{
    char text[64];
    const double want = cpu * PERIOD_US;
    const long long quota = want < QUOTA_MIN_US ? QUOTA_MIN_US : want > 1e12 ? -1 : (long long)want;
    snprintf(text, sizeof text, self->groups.v2 ? "%lld %d" : "%lld", quota, PERIOD_US);
    if (self->groups.v2)
        return cgroups_write(group, "cpu.max", quota < 0 ? "max" : text);
    return cgroups_write(group, "cpu.cfs_quota_us", text);
}

static bool s_limit_memory(const limits_t *self, const char *group, double memory)
{
    char text[64];
    snprintf(text, sizeof text, "%.0f", memory < 1e18 ? memory : 1e18);
    if (self->groups.v2)
        return cgroups_write(group, "memory.max", text) && (cgroups_write(group, "memory.oom.group", "1") || true);
    return cgroups_write(group, "memory.limit_in_bytes", text);
}

/*  One controller's part; folder NULL: none. */
static tt_status_t s_add(const limits_t *self, tt_steps_t *steps, const char *folder, const char *container,
    double value, bool (*limit)(const limits_t *self, const char *group, double value))
{
    if (!folder || value <= 0)
        return TT_OK;
    char *group = s_group(folder, container), *procs = tt_sprintf("%s/cgroup.procs", group);
    const bool made = (mkdir(group, 0755) == 0 || errno == EEXIST) && limit(self, group, value);
    const tt_status_t status = made ? TT_OK : tt_err_errno(TT_OS, "limits in %s", group);
    if (made)
        tt_steps_add(steps, TT_STEP_WRITE, procs, "0");
    free(group);
    free(procs);
    return status;
}

tt_status_t limits_add(limits_t *self, tt_steps_t *steps, const char *container, double cpu, double memory)
{
    TT_TRY(s_add(self, steps, self->groups.cpu, container, cpu, s_limit_cpu));
    return s_add(self, steps, self->groups.memory, container, memory, s_limit_memory);
}

bool limits_remove(limits_t *self, const char *container)
{
    bool killed = false;
    if (self->groups.memory) {
        char *group = s_group(self->groups.memory, container);
        killed = cgroups_oom_kills(group) > 0;
        rmdir(group);
        free(group);
    }
    if (self->groups.cpu) {
        char *group = s_group(self->groups.cpu, container);
        rmdir(group);
        free(group);
    }
    return killed;
}
