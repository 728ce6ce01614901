#include "k8s/local/limits.h"
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
#include "common/base/buf.h"
#include "common/base/mem.h"

enum { PERIOD_US = 100000, QUOTA_MIN_US = 1000 }; /* of the kernel's CFS bandwidth controller */

#define PREFIX "tutti-run-"

/*  Where the groups of one controller are: "/sys/fs/cgroup/memory/<ours>/tutti-run-<run>"; NULL = we have none there. */
struct limits {
    bool v2;
    char *cpu, *memory; /* the same folder in v2 */
};

static bool s_write(const char *folder, const char *file, const char *text)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    const bool done = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    close(fd);
    return done;
}

/*  Of /proc/self/cgroup: the path behind ":<controllers>:", for v2 those behind "0::". */
static bool s_own_group(const char *controller, char *out, size_t size)
{
    char line[PATH_MAX + 64];
    bool found = false;
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file && !found && fgets(line, sizeof line, file)) {
        char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = '\0';
        path[strcspn(path, "\n")] = '\0';
        for (char *save = NULL, *name = strtok_r(names + 1, ",", &save); name; name = strtok_r(NULL, ",", &save))
            found |= strcmp(name, controller) == 0;
        found |= !*controller && !names[1];
        snprintf(out, size, "%s", strcmp(path, "/") == 0 ? "" : path);
    }
    if (file)
        fclose(file);
    return found;
}

/*  A folder of the run in a controller's hierarchy; caller frees. Inside a container our own group may be the root of what
 *  is mounted here. */
static char *s_make(const char *mount, const char *controller, const char *name)
{
    char own[PATH_MAX] = "";
    if (!s_own_group(controller, own, sizeof own))
        return NULL;
    char *path = tt_sprintf("%s%s/" PREFIX "%s", mount, own, name);
    if (mkdir(path, 0755) == 0)
        return path;
    free(path);
    path = tt_sprintf("%s/" PREFIX "%s", mount, name);
    if (errno == ENOENT && mkdir(path, 0755) == 0)
        return path;
    free(path);
    return NULL;
}

static bool s_make_v2(limits_t *self, const char *name)
{
    struct stat info;
    if (stat("/sys/fs/cgroup/cgroup.controllers", &info) != 0)
        return false;
    self->v2 = true;
    self->cpu = s_make("/sys/fs/cgroup", "", name);
    if (!self->cpu)
        return false;
    if (!s_write(self->cpu, "cgroup.subtree_control", "+cpu +memory")) { /* not handed down to our group */
        rmdir(self->cpu);
        return false;
    }
    self->memory = tt_strdup(self->cpu);
    return true;
}

static bool s_make_v1(limits_t *self, const char *name)
{
    self->v2 = false;
    self->cpu = s_make("/sys/fs/cgroup/cpu", "cpu", name);
    self->memory = s_make("/sys/fs/cgroup/memory", "memory", name);
    return self->cpu || self->memory;
}

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
    const bool made = s_make_v2(self, name);
    if (made || (!self->v2 && s_make_v1(self, name))) {
        s_sweep(self->cpu);
        s_sweep(self->memory);
        *self_p = self;
        return TT_OK;
    }
    const bool v2 = self->v2;
    free(self->cpu);
    free(self);
    return tt_err(TT_UNSUPPORTED, "no control group of our own can be made here (%s)",
        v2 ? "cgroup v2: cpu and memory are not delegated to us" : "cgroup v1: no permission");
}

void limits_destroy(limits_t **self_p)
{
    limits_t *self = *self_p;
    if (!self)
        return;
    s_remove_all(self->cpu);
    s_remove_all(self->memory);
    free(self->cpu);
    free(self->memory);
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
    snprintf(text, sizeof text, self->v2 ? "%lld %d" : "%lld", quota, PERIOD_US);
    if (self->v2)
        return s_write(group, "cpu.max", quota < 0 ? "max" : text);
    return s_write(group, "cpu.cfs_quota_us", text);
}

static bool s_limit_memory(const limits_t *self, const char *group, double memory)
{
    char text[64];
    snprintf(text, sizeof text, "%.0f", memory < 1e18 ? memory : 1e18);
    if (self->v2)
        return s_write(group, "memory.max", text) && (s_write(group, "memory.oom.group", "1") || true);
    return s_write(group, "memory.limit_in_bytes", text);
}

/*  One controller's part; folder NULL: none. */
static tt_status_t s_add(const limits_t *self, steps_t *steps, const char *folder, const char *container, double value,
    bool (*limit)(const limits_t *self, const char *group, double value))
{
    if (!folder || value <= 0)
        return TT_OK;
    char *group = s_group(folder, container), *procs = tt_sprintf("%s/cgroup.procs", group);
    const bool made = (mkdir(group, 0755) == 0 || errno == EEXIST) && limit(self, group, value);
    const tt_status_t status = made ? TT_OK : tt_err_errno(TT_OS, "limits in %s", group);
    if (made)
        steps_add(steps, STEP_WRITE, procs, "0");
    free(group);
    free(procs);
    return status;
}

tt_status_t limits_add(limits_t *self, steps_t *steps, const char *container, double cpu, double memory)
{
    TT_TRY(s_add(self, steps, self->cpu, container, cpu, s_limit_cpu));
    return s_add(self, steps, self->memory, container, memory, s_limit_memory);
}

static bool s_was_killed(const limits_t *self, const char *group)
{
    tt_buf_t text;
    tt_buf_init(&text, 65536);
    char *path = tt_sprintf("%s/%s", group, self->v2 ? "memory.events" : "memory.oom_control");
    bool killed = false;
    if (tt_buf_read_file(&text, path) == TT_OK) {
        const char *line = strstr(tt_buf_text(&text), "oom_kill ");
        killed = line && strtoll(line + strlen("oom_kill "), NULL, 10) > 0;
    }
    free(path);
    tt_buf_free(&text);
    return killed;
}

bool limits_remove(limits_t *self, const char *container)
{
    bool killed = false;
    if (self->memory) {
        char *group = s_group(self->memory, container);
        killed = s_was_killed(self, group);
        rmdir(group);
        free(group);
    }
    if (self->cpu) {
        char *group = s_group(self->cpu, container);
        rmdir(group);
        free(group);
    }
    return killed;
}
