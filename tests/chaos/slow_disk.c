/*  slow_disk - preloaded into a run: every fsync, fdatasync and rename takes SLOW_DISK_MS longer, as on a disk that is busy or
 *  behind a network.
 *
 *  $SLOW_DISK_KILLS names a file that is not there: the learner that is the first to wait for a checkpoint makes it, and is killed while it
 *  waits. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/*  `tutti learner ...` */
static bool s_is_learner(void)
{
    char line[256] = {0};
    const int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    const ssize_t size = fd < 0 ? 0 : read(fd, line, sizeof line - 1);
    if (fd >= 0)
        close(fd);
    const size_t first = strlen(line) + 1;
    return (size_t)(size < 0 ? 0 : size) > first && strcmp(line + first, "learner") == 0;
}

static bool s_is_of_checkpoint(int fd)
{
    char path[64], name[4096] = {0};
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return readlink(path, name, sizeof name - 1) > 0 && strstr(name, "/checkpoints/") != NULL;
}

static void s_die_once(int fd)
{
    const char *path = getenv("SLOW_DISK_KILLS");
    if (!path || fd < 0 || !s_is_learner() || !s_is_of_checkpoint(fd))
        return;
    if (open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) >= 0)
        raise(SIGKILL);
}

static void s_wait(long ms)
{
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
}

/*  fd: -1 = nobody dies of it. */
static void s_wait_for_disk(int fd)
{
    const char *text = getenv("SLOW_DISK_MS");
    const long ms = text ? atol(text) : 0;
    s_wait(ms / 2);
    s_die_once(fd);
    s_wait(ms - ms / 2);
}

#define SLOW(name, parameters, arguments, fd)          \
    int name parameters                                \
    {                                                  \
        static int(*next) parameters;                  \
        if (!next)                                     \
            *(void **)&next = dlsym(RTLD_NEXT, #name); \
        s_wait_for_disk(fd);                           \
        return next arguments;                         \
    }

SLOW(fsync, (int fd), (fd), fd)
SLOW(fdatasync, (int fd), (fd), fd)
SLOW(rename, (const char *from, const char *to), (from, to), -1)
