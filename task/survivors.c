#include "task/survivors.h"
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "common/base/buf.h"
#include "common/base/clock.h"

enum { ENVIRONMENT_MAX = 4 << 20, PATIENCE_MS = 5000 };

static bool s_has(const tt_buf_t *text, const char *mark)
{
    for (size_t at = 0; mark && at < text->size; at += strlen(text->data + at) + 1)
        if (strcmp(text->data + at, mark) == 0)
            return true;
    return !mark;
}

/*  Does the environment that the process was started with hold the marks? Of others' processes it cannot be read, of zombies it is
 *  empty. */
static bool s_is_marked(pid_t pid, const char *mark, const char *more)
{
    char path[64];
    tt_buf_t text;
    tt_buf_init(&text, ENVIRONMENT_MAX);
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    const bool found = tt_buf_read_file(&text, path) == TT_OK && s_has(&text, mark) && s_has(&text, more);
    tt_buf_free(&text);
    return found;
}

static tt_status_t s_kill_all(const char *mark, const char *more, size_t *count)
{
    DIR *all = opendir("/proc");
    if (!all)
        return tt_err_errno(TT_OS, "/proc");
    *count = 0;
    for (struct dirent *entry; (entry = readdir(all));) {
        const pid_t pid = (pid_t)atoi(entry->d_name);
        if (pid > 1 && pid != getpid() && s_is_marked(pid, mark, more) && kill(pid, SIGKILL) == 0)
            ++*count;
    }
    closedir(all);
    return TT_OK;
}

tt_status_t survivors_end(const char *mark, const char *more)
{
    size_t left = 0;
    for (const int64_t from = tt_now_ms(tt_clock_real()); tt_now_ms(tt_clock_real()) < from + PATIENCE_MS;) {
        TT_TRY(s_kill_all(mark, more, &left));
        if (left == 0)
            return TT_OK;
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL); /* a killed process takes its time to go */
    }
    return tt_err(TT_TIMEOUT,
        "%zu processes of jobs do not end though they were killed; look for %s in their environment", left,
        more ? more : mark);
}
