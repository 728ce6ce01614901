#include "common/net/sockdir.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define SHORT "/tmp/tutti-"
enum { RANDOM = 6, OWNER = 64, OPEN_DIR = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

/*  What roles append must fit too: the longest is an aggregator's or learner's socket. */
static bool s_fits(const char *dir)
{
    return strlen(dir) + sizeof "/aggregator-65535-4194304.weights" <= sizeof((struct sockaddr_un *)0)->sun_path;
}

static tt_status_t s_err(const char *path)
{
    return tt_err_errno(errno == EACCES || errno == EROFS ? TT_DENIED : TT_IO, "%s", path);
}

/* ---- the short one in /tmp ----------------------------------------------------------------------------------------- */

static void s_owner(char out[OWNER], const struct stat *run)
{
    snprintf(out, OWNER, "%llx:%llx", (unsigned long long)run->st_dev, (unsigned long long)run->st_ino);
}

/*  The name in /tmp that sock links to, if it has the shape of ours. */
static bool s_link(int run, char name[sizeof SHORT + RANDOM])
{
    char target[sizeof SHORT + RANDOM + 1];
    const ssize_t length = readlinkat(run, "sock", target, sizeof target);
    if (length != sizeof SHORT - 1 + RANDOM || memcmp(target, SHORT, sizeof SHORT - 1) != 0)
        return false;
    target[length] = '\0';
    const char *random = target + sizeof SHORT - 1;
    if (strspn(random, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") != RANDOM)
        return false;
    memcpy(name, target, sizeof SHORT + RANDOM);
    return true;
}

/*  Open what is there by the name, if it belongs to who owns the run, to nobody else, and to this run. */
static int s_open_ours(int run, const char *name)
{
    struct stat info, mine;
    char said[OWNER] = "", owner[OWNER];
    const int fd = open(name, OPEN_DIR);
    if (fd < 0)
        return -1;
    const bool private_ =
        fstat(run, &info) == 0 && fstat(fd, &mine) == 0 && mine.st_uid == info.st_uid && !(mine.st_mode & 077);
    s_owner(owner, &info);
    if (private_ && readlinkat(fd, "run", said, sizeof said - 1) > 0 && strcmp(said, owner) == 0)
        return fd;
    close(fd);
    return -1;
}

static tt_status_t s_make_short(int run, const char *path)
{
    char name[] = SHORT "XXXXXX", link[sizeof name + 4], owner[OWNER];
    struct stat info;
    if (fstat(run, &info) != 0)
        return s_err(path);
    if (!mkdtemp(name))
        return tt_err_wrap(s_err(SHORT "XXXXXX"),
            "%s is too long for sockets, and no shorter place can be made for them (use a run directory with a shorter "
            "path)",
            path);
    s_owner(owner, &info);
    snprintf(link, sizeof link, "%s/run", name);
    if (symlink(owner, link) == 0 && symlinkat(name, run, "sock") == 0)
        return TT_OK;
    const tt_status_t status = s_err(path);
    unlink(link);
    rmdir(name);
    return status;
}

/* ---- removing ------------------------------------------------------------------------------------------------------ */

/*  The sockets in it, and no other file; takes fd. */
static void s_clear(int fd)
{
    DIR *dir = fdopendir(fd);
    if (!dir) {
        close(fd);
        return;
    }
    struct stat info;
    for (struct dirent *entry; (entry = readdir(dir));)
        if (fstatat(fd, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(info.st_mode))
            unlinkat(fd, entry->d_name, 0);
    closedir(dir);
}

static void s_remove_short(int run)
{
    char name[sizeof SHORT + RANDOM];
    const int fd = s_link(run, name) ? s_open_ours(run, name) : -1;
    if (fd < 0)
        return;
    unlinkat(fd, "run", 0);
    s_clear(fd);
    rmdir(name);
}

static void s_remove(int run)
{
    s_remove_short(run);
    if (unlinkat(run, "sock", 0) == 0)
        return;
    const int fd = openat(run, "sock", OPEN_DIR);
    if (fd >= 0)
        s_clear(fd);
    unlinkat(run, "sock", AT_REMOVEDIR);
}

void tt_sockdir_close(const char *run_dir)
{
    const int run = open(run_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (run < 0)
        return;
    s_remove(run);
    close(run);
}

/* ---- making -------------------------------------------------------------------------------------------------------- */

/*  Is there one that will do? A directory is made private. */
static bool s_there(int run)
{
    char name[sizeof SHORT + RANDOM];
    int fd = s_link(run, name) ? s_open_ours(run, name) : openat(run, "sock", OPEN_DIR);
    const bool there = fd >= 0 && fchmod(fd, 0700) == 0;
    if (fd >= 0)
        close(fd);
    return there;
}

static tt_status_t s_open(int run, const char *run_dir, const char *path)
{
    char real[PATH_MAX];
    if (!realpath(run_dir, real))
        return s_err(run_dir);
    if (strlen(real) + sizeof "/sock" > sizeof real)
        return tt_err(TT_INVALID, "%s: path too long", run_dir);
    strcat(real, "/sock");
    const bool fits = s_fits(real);
    if (s_there(run) && (fits || faccessat(run, "sock/run", F_OK, AT_SYMLINK_NOFOLLOW) == 0))
        return TT_OK;
    s_remove(run);
    if (!fits)
        return s_make_short(run, path);
    return mkdirat(run, "sock", 0700) == 0 ? TT_OK : s_err(path);
}

tt_status_t tt_sockdir_open(const char *run_dir)
{
    char path[PATH_MAX];
    const int run = open(run_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (run < 0)
        return s_err(run_dir);
    snprintf(path, sizeof path, "%.4000s/sock", run_dir);
    const tt_status_t status = s_open(run, run_dir, path);
    close(run);
    return status;
}

tt_status_t tt_sockdir_find(const char *run_dir, char *out, size_t size)
{
    char path[PATH_MAX], real[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/sock", run_dir) >= (int)sizeof path || !realpath(path, real))
        return tt_err(TT_NOT_FOUND, "%s: not the directory of a running job (it has no sock/)", run_dir);
    if (!s_fits(real) || strlen(real) >= size)
        return tt_err(TT_INVALID, "%s: too long for a socket; use a run directory with a shorter path", real);
    memcpy(out, real, strlen(real) + 1);
    return TT_OK;
}
