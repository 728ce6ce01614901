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
#include "controller/orphans.h"

enum { ENVIRONMENT_MAX = 4 << 20 };

static bool s_has(const tt_buf_t *text, const char *mark)
{
    for (size_t at = 0; mark && at < text->size; at += strlen(text->data + at) + 1)
        if (strcmp(text->data + at, mark) == 0)
            return true;
    return !mark;
}

/*  Does the environment that the process was started with hold the marks? Of others' processes it cannot be read, of zombies it is
 *  empty, and so it is in the middle of exec(2): there it is to be seen, and *soon is counted. */
static bool s_is_marked(pid_t pid, const char *mark, const char *more, size_t *soon)
{
    char path[64];
    tt_buf_t text;
    tt_buf_init(&text, ENVIRONMENT_MAX);
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    const bool read = tt_buf_read_file(&text, path) == TT_OK;
    const bool found = read && s_has(&text, mark) && s_has(&text, more);
    *soon += read && text.size == 0 && !tt_orphans_is_bare(pid);
    tt_buf_free(&text);
    return found;
}

static tt_status_t s_kill_all(const char *mark, const char *more, size_t *killed, size_t *soon)
{
    DIR *all = opendir("/proc");
    if (!all)
        return tt_err_errno(TT_OS, "/proc");
    *killed = *soon = 0;
    for (struct dirent *entry; (entry = readdir(all));) {
        const pid_t pid = (pid_t)atoi(entry->d_name);
        if (pid > 1 && pid != getpid() && s_is_marked(pid, mark, more, soon) && kill(pid, SIGKILL) == 0)
            ++*killed;
    }
    closedir(all);
    return TT_OK;
}

tt_status_t survivors_end(const char *mark, const char *more, int patience_ms)
{
    const int64_t until = tt_now_ms(tt_clock_real()) + patience_ms;
    size_t left = 1, soon = 0;
    for (bool last = false; left + soon > 0 && !last;) {
        last = tt_now_ms(tt_clock_real()) >= until; /* asked before the look: it may be we who were held up */
        TT_TRY(s_kill_all(mark, more, &left, &soon));
        if (left + soon > 0 && !last)
            nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL); /* a killed process takes its time to go */
    }
    if (left == 0) /* who is still in the middle of exec(2) may be a stranger that hangs there */
        return TT_OK;
    return tt_err(TT_TIMEOUT,
        "%zu processes of jobs do not end though they were killed; look for %s in their environment", left,
        more ? more : mark);
}
