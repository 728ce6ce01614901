#include "task/place.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/file.h"
#include "common/base/tree.h"

#define MARK       ".tutti-task"
#define FINISHED   "tutti-task 1"
#define UNFINISHED "tutti-task unfinished"

enum { OPEN_DIR = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

void place_job_path(char *out, const char *dir, uint32_t config_id)
{
    snprintf(out, PLACE_MAX, "%.3900s/job_configId_%u", dir, config_id);
}

void place_log_path(char *out, const char *dir, uint32_t config_id)
{
    snprintf(out, PLACE_MAX, "%.3900s/logs/job_configId_%u.log", dir, config_id);
}

void place_exit_path(char *out, const char *dir, uint32_t config_id, uint32_t attempt)
{
    snprintf(out, PLACE_MAX, "%.3900s/logs/job_configId_%u-%u.exit", dir, config_id, attempt);
}

static tt_status_t s_failed(const char *what, const char *path)
{
    return tt_err_errno(errno == EACCES || errno == EPERM ? TT_DENIED : TT_IO, "cannot make %s %s", what, path);
}

/* ---- the mark ---------------------------------------------------------------------------------------------------------- */

/*  The first, in a directory that is new: in one write, so that there is nothing else in it before. */
static tt_status_t s_mark_unfinished(const char *dir, const char *task)
{
    char path[PLACE_MAX], text[512];
    snprintf(path, sizeof path, "%.3900s/" MARK, dir);
    const int length = snprintf(text, sizeof text, UNFINISHED "\n%s\n", task);
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    const bool written = fd >= 0 && tt_file_write(fd, text, (size_t)length, NULL);
    const tt_status_t status = written ? TT_OK : s_failed("the mark", path);
    if (fd >= 0)
        close(fd);
    return status;
}

/*  Is it this task's? *finished: what its mark says. */
static bool s_is_marked(int dir, const char *task, bool *finished)
{
    char text[512], wanted[512];
    const int fd = openat(dir, MARK, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const ssize_t size = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        close(fd);
    if (size < 0)
        return false;
    text[size] = '\0';
    snprintf(wanted, sizeof wanted, FINISHED "\n%s\n", task);
    *finished = strcmp(text, wanted) == 0;
    snprintf(wanted, sizeof wanted, UNFINISHED "\n%s\n", task);
    return *finished || strcmp(text, wanted) == 0;
}

/* ---- made and removed -------------------------------------------------------------------------------------------------- */

static tt_status_t s_open(const char *dir, const char *task, bool unfinished_only, int *out)
{
    bool finished = false;
    tt_status_t status = TT_OK;
    const int fd = open(dir, OPEN_DIR);
    if (fd < 0 && errno != ENOENT)
        return tt_err_errno(TT_IO, "%s", dir);
    if (fd >= 0 && !s_is_marked(fd, task, &finished))
        status = tt_err(TT_DENIED, "%s is not the directory of %s: it is not removed", dir, task);
    else if (finished && unfinished_only)
        status = tt_err(TT_EXISTS, "%s", dir);
    if (status == TT_OK)
        *out = fd;
    else
        close(fd);
    return status;
}

tt_status_t place_open(const char *dir, const char *task, int *fd)
{
    return s_open(dir, task, false, fd);
}

tt_status_t place_empty(int fd, const char *dir)
{
    if (fd < 0)
        return TT_OK;
    tt_status_t status = tt_tree_empty(fd, dir, MARK); /* the mark goes last, so that it can be tried again */
    if (status == TT_OK && (unlinkat(fd, MARK, 0) != 0 || rmdir(dir) != 0))
        status = tt_err_errno(TT_IO, "%s could not be removed", dir);
    close(fd);
    return status;
}

static tt_status_t s_remove(const char *dir, const char *task, bool unfinished_only)
{
    int fd = -1;
    TT_TRY(s_open(dir, task, unfinished_only, &fd));
    return place_empty(fd, dir);
}

tt_status_t place_remove(const char *dir, const char *task)
{
    return s_remove(dir, task, false);
}

static tt_status_t s_fill(const char *dir, const char *task, const place_link_t *links, size_t count)
{
    char path[PLACE_MAX];
    TT_TRY(s_mark_unfinished(dir, task));
    snprintf(path, sizeof path, "%.3900s/logs", dir);
    if (mkdir(path, 0755) != 0)
        return s_failed("the folder", path);
    for (size_t i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%.3800s/%.255s", dir, links[i].name);
        if (symlink(links[i].target, path) != 0)
            return s_failed("the link", path);
    }
    return TT_OK;
}

/*  A directory that holds nothing, or nothing but an empty mark: a creation was killed when it had hardly begun. */
static bool s_remove_bare(const char *dir)
{
    struct stat info;
    if (rmdir(dir) == 0)
        return true;
    const int fd = open(dir, OPEN_DIR);
    const bool bare = fd >= 0 && fstatat(fd, MARK, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode) &&
                      info.st_size == 0 && unlinkat(fd, MARK, 0) == 0;
    if (fd >= 0)
        close(fd);
    return bare && rmdir(dir) == 0;
}

/*  What an unfinished creation of the same task left behind goes: nobody has been told of it. */
static tt_status_t s_make_dir(const char *dir, const char *task)
{
    if (mkdir(dir, 0755) == 0)
        return TT_OK;
    if (errno != EEXIST)
        return s_failed("the directory", dir);
    if (s_remove(dir, task, true) != TT_OK && !s_remove_bare(dir))
        return tt_err(TT_EXISTS, "%s is there already: move it away, or give the task another name", dir);
    return mkdir(dir, 0755) == 0 ? TT_OK : s_failed("the directory", dir);
}

tt_status_t place_make(const char *dir, const char *task, const place_link_t *links, size_t count)
{
    TT_TRY(tt_file_check_umask());
    TT_TRY(s_make_dir(dir, task));
    const tt_status_t status = s_fill(dir, task, links, count);
    if (status == TT_OK)
        return TT_OK;
    char why[1024];
    snprintf(why, sizeof why, "%s", tt_err_text());
    if (s_remove(dir, task, true) != TT_OK)
        (void)rmdir(dir); /* not even marked: nothing else was made in it */
    return tt_err(status, "%s", why);
}

tt_status_t place_finish(const char *dir, const char *task)
{
    char text[512];
    snprintf(text, sizeof text, FINISHED "\n%s\n", task);
    return tt_file_replace(dir, MARK, text, 0644);
}

/* ---- attempts ---------------------------------------------------------------------------------------------------------- */

tt_status_t place_attempt(const char *dir, uint32_t config_id, uint32_t attempt)
{
    char path[PLACE_MAX], aside[PLACE_MAX + 32];
    place_job_path(path, dir, config_id);
    snprintf(aside, sizeof aside, "%s.attempt%u", path, attempt - 1);
    if (rename(path, aside) != 0 && errno != ENOENT)
        return tt_err_errno(TT_IO, "cannot put %s aside as %s", path, aside);
    if (mkdir(path, 0755) != 0)
        return s_failed("the directory", path);
    return TT_OK;
}

bool place_exit(const char *dir, uint32_t config_id, uint32_t attempt, int *code)
{
    char path[PLACE_MAX], text[16];
    place_exit_path(path, dir, config_id, attempt);
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const ssize_t size = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        close(fd);
    if (size < 1)
        return false;
    text[size] = '\0';
    char *end;
    const long value = strtol(text, &end, 10);
    if (end == text || *end != '\n' || value < 0 || value > 255)
        return false;
    *code = (int)value;
    return true;
}
