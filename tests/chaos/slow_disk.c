/*  slow_disk - preloaded into a run: every fsync, fdatasync and rename takes SLOW_DISK_MS longer, as on a disk that is busy or
 *  behind a network. */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

static void s_wait(void)
{
    const char *text = getenv("SLOW_DISK_MS");
    const long ms = text ? atol(text) : 0;
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
}

#define SLOW(name, parameters, arguments)              \
    int name parameters                                \
    {                                                  \
        static int(*next) parameters;                  \
        if (!next)                                     \
            *(void **)&next = dlsym(RTLD_NEXT, #name); \
        s_wait();                                      \
        return next arguments;                         \
    }

SLOW(fsync, (int fd), (fd))
SLOW(fdatasync, (int fd), (fd))
SLOW(rename, (const char *from, const char *to), (from, to))
