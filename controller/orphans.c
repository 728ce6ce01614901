#include "controller/orphans.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/clock.h"

enum { LINE = 2048, EXEC_MS = 5000 }; /* EXEC_MS: how long one may take: it may be held up amid it */

static ssize_t s_read_file(const char *path, char *out, size_t room)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    size_t used = 0;
    ssize_t got;
    while (used < room && (got = read(fd, out + used, room - used)) > 0)
        used += (size_t)got;
    close(fd);
    return (ssize_t)used;
}

/*  A process's line of proc(5), from the space before field 3 on; NULL: it is gone. */
static const char *s_stat(pid_t pid, char line[LINE])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    const ssize_t length = s_read_file(path, line, LINE - 1);
    if (length <= 0)
        return NULL;
    line[length] = '\0';
    const char *name_end = strrchr(line, ')'); /* the name may hold anything */
    return name_end ? name_end + 1 : NULL;
}

static pid_t s_parent_of(pid_t pid)
{
    char line[LINE];
    const char *fields = s_stat(pid, line);
    int parent = -1;
    if (!fields || sscanf(fields, " %*c %d", &parent) != 1)
        return -1;
    return (pid_t)parent;
}

/*  In the middle of exec(2) the old program's environment is gone, and the new one's has no bounds yet (fields 50 and 51). A thread of
 *  the kernel has none either, but no memory (field 23). */
bool tt_orphans_is_bare(pid_t pid)
{
    char line[LINE];
    const char *at = s_stat(pid, line);
    if (!at || at[1] == 'Z')
        return true;
    for (int field = 3; at && field < 50; field++) {
        if (field == 23 && strtoull(at, NULL, 10) == 0)
            return true;
        at = strchr(at + 1, ' ');
    }
    unsigned long long start = 0, end = 0;
    return !at || sscanf(at, " %llu %llu", &start, &end) != 2 || (end != 0 && start == end);
}

static ssize_t s_environment(pid_t pid, char *out, size_t room)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    for (int wait_ms = EXEC_MS;; wait_ms--) {
        const ssize_t length = s_read_file(path, out, room);
        if (length != 0 || wait_ms == 0 || tt_orphans_is_bare(pid))
            return length;
        poll(NULL, 0, 1);
    }
}

static bool s_has_mark(pid_t pid, const char *mark)
{
    static char environment[131072];
    const ssize_t length = s_environment(pid, environment, sizeof environment - 1);
    if (length <= 0)
        return false;
    environment[length] = '\0';
    for (const char *entry = environment; entry < environment + length; entry += strlen(entry) + 1)
        if (strcmp(entry, mark) == 0)
            return true;
    return false;
}

int tt_orphans_signal(int signal, const char *mark, bool (*spare)(void *ctx, pid_t pid), void *ctx)
{
    DIR *proc = opendir("/proc");
    if (!proc)
        return 0;
    const pid_t self = getpid();
    int count = 0;
    for (struct dirent *entry; (entry = readdir(proc));) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        const pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (s_parent_of(pid) != self || (spare && spare(ctx, pid)) || (mark && !s_has_mark(pid, mark)))
            continue;
        if (kill(pid, signal) == 0)
            count++;
    }
    closedir(proc);
    return count;
}

bool tt_orphans_end(int wait_ms)
{
    const int64_t deadline = tt_now_ms(tt_clock_real()) + wait_ms; /* the kernel needs it, and no other clock */
    for (;;) {
        /* killing children hands us theirs, so it takes as many rounds as the tree is deep */
        tt_orphans_signal(SIGKILL, NULL, NULL, NULL);
        pid_t reaped;
        while ((reaped = waitpid(-1, NULL, WNOHANG)) > 0)
            continue;
        if (reaped < 0 && errno == ECHILD)
            return true;
        if (tt_now_ms(tt_clock_real()) >= deadline)
            return false;
        poll(NULL, 0, 1); /* killed processes need a moment to become reapable; bounded by the deadline */
    }
}
