#include "controller/cgroups.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "common/base/mem.h"

#define MOUNT "/sys/fs/cgroup"
#define LEAF  "tutti-self" /* where what was in a delegated group goes */

enum { MOVES_MAX = 16 };

bool cgroups_write(const char *group, const char *file, const char *text)
{
    char *path = tt_sprintf("%s/%s", group, file);
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    free(path);
    if (fd < 0)
        return false;
    const bool done = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    close(fd);
    return done;
}

/*  Of /proc/self/cgroup: the path behind ":<controllers>:", for v2 ("") the one behind "0::"; "" is the root. */
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
        found = !*controller && !names[1];
        for (char *save = NULL, *name = strtok_r(names + 1, ",", &save); name; name = strtok_r(NULL, ",", &save))
            found |= strcmp(name, controller) == 0;
        snprintf(out, size, "%s", strcmp(path, "/") == 0 ? "" : path);
    }
    if (file)
        fclose(file);
    return found;
}

/* ---- who was ended for want of memory ------------------------------------------------------------------------------------- */

long long cgroups_oom_kills(const char *group)
{
    static const char *const files[] = {"memory.events", "memory.oom_control"}; /* of v2, of v1 */
    static const char key[] = "oom_kill ";
    long long count = -1;
    char line[128];
    for (size_t i = 0; i < TT_COUNT(files) && count < 0; i++) {
        char *path = tt_sprintf("%s/%s", group, files[i]);
        FILE *file = fopen(path, "re");
        while (file && fgets(line, sizeof line, file))
            if (strncmp(line, key, sizeof key - 1) == 0)
                count = strtoll(line + sizeof key - 1, NULL, 10);
        if (file)
            fclose(file);
        free(path);
    }
    return count;
}

/*  Inside a container our own group may be the root of what is mounted here. */
long long cgroups_own_oom_kills(void)
{
    char own[PATH_MAX];
    const bool v1 = s_own_group("memory", own, sizeof own);
    const char *mount = v1 ? MOUNT "/memory" : MOUNT;
    if (!v1 && !s_own_group("", own, sizeof own))
        return -1;
    char *group = tt_sprintf("%s%s", mount, own);
    const long long count = cgroups_oom_kills(group);
    free(group);
    return count >= 0 ? count : cgroups_oom_kills(mount);
}

/* ---- v1 ------------------------------------------------------------------------------------------------------------------- */

/*  Caller frees; NULL: not permitted. Inside a container our own group may be the root of what is mounted here. */
static char *s_make_v1(const char *mount, const char *controller, const char *name)
{
    char own[PATH_MAX] = "";
    if (!s_own_group(controller, own, sizeof own))
        return NULL;
    char *path = tt_sprintf("%s%s/%s", mount, own, name);
    if (mkdir(path, 0755) == 0)
        return path;
    free(path);
    path = tt_sprintf("%s/%s", mount, name);
    if (errno == ENOENT && mkdir(path, 0755) == 0)
        return path;
    free(path);
    return NULL;
}

/* ---- v2 ------------------------------------------------------------------------------------------------------------------- */

static bool s_hand_down(const char *group)
{
    return cgroups_write(group, "cgroup.subtree_control", "+cpu +memory");
}

/*  A group below `at` that can hand both down in its turn; caller frees. */
static char *s_make_below(const char *at, const char *name)
{
    char *path = tt_sprintf("%s/%s", at, name);
    if (mkdir(path, 0755) == 0) {
        if (s_hand_down(path))
            return path;
        rmdir(path);
    }
    free(path);
    return NULL;
}

static bool s_delegated(const char *group)
{
    char value = '0';
    return (getxattr(group, "user.delegate", &value, 1) == 1 || getxattr(group, "trusted.delegate", &value, 1) == 1) &&
           value == '1';
}

/*  What is forked meanwhile is moved the next time. */
static void s_move_all(const char *from, const char *to)
{
    char *path = tt_sprintf("%s/cgroup.procs", from), pid[32];
    bool moved = true;
    for (int tries = 0; moved && tries < MOVES_MAX; tries++) {
        FILE *file = fopen(path, "re");
        moved = false;
        while (file && fgets(pid, sizeof pid, file))
            moved |= cgroups_write(to, "cgroup.procs", pid);
        if (file)
            fclose(file);
    }
    free(path);
}

static bool s_step_aside(const char *group)
{
    char *leaf = tt_sprintf("%s/" LEAF, group);
    bool done = false;
    if (mkdir(leaf, 0755) == 0) {
        s_move_all(group, leaf);
        done = s_hand_down(group);
        if (!done) {
            s_move_all(leaf, group);
            rmdir(leaf);
        }
    }
    free(leaf);
    return done;
}

/*  From our own group upwards. */
static char *s_make_v2(const char *name)
{
    char own[PATH_MAX], *made = NULL;
    if (!s_own_group("", own, sizeof own))
        return NULL;
    char *at = tt_sprintf(MOUNT "%s", own);
    for (char *end = at + strlen(at); end && !made; end = strlen(at) > strlen(MOUNT) ? strrchr(at, '/') : NULL) {
        *end = '\0';
        made = s_make_below(at, name);
        if (!made && s_delegated(at) && s_step_aside(at))
            made = s_make_below(at, name);
    }
    free(at);
    return made;
}

/* ---- either --------------------------------------------------------------------------------------------------------------- */

tt_status_t cgroups_make(cgroups_t *out, const char *name)
{
    *out = (cgroups_t){.v2 = access(MOUNT "/cgroup.controllers", F_OK) == 0};
    if (out->v2) {
        out->cpu = s_make_v2(name);
        out->memory = tt_strdup(out->cpu);
    } else {
        out->cpu = s_make_v1(MOUNT "/cpu", "cpu", name);
        out->memory = s_make_v1(MOUNT "/memory", "memory", name);
    }
    if (out->cpu || out->memory)
        return TT_OK;
    return out->v2 ? tt_err(TT_UNSUPPORTED,
                         "cgroup v2: cpu and memory are not handed down to us; where systemd is, 'systemd-run %s-p "
                         "Delegate=yes tutti run ...' does that",
                         geteuid() == 0 ? "--scope " : "--user --scope ")
                   : tt_err(TT_UNSUPPORTED, "cgroup v1: no permission to make a control group");
}

void cgroups_clear(cgroups_t *self)
{
    free(self->cpu);
    free(self->memory);
    *self = (cgroups_t){0};
}
