#include "common/base/descriptors.h"
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <unistd.h>

enum { RESERVE = 16, LEAST = 64 };

static struct rlimit s_before;
static bool s_raised;

void tt_descriptors_raise(void)
{
    if (s_raised || getrlimit(RLIMIT_NOFILE, &s_before) != 0)
        return;
    const struct rlimit all = {s_before.rlim_max, s_before.rlim_max};
    s_raised = setrlimit(RLIMIT_NOFILE, &all) == 0;
}

void tt_descriptors_restore(void)
{
    if (s_raised)
        setrlimit(RLIMIT_NOFILE, &s_before);
}

/*  The lowest free number is given first, so each of the three is at hand when its turn comes. */
void tt_descriptors_fill(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

static int s_limit(void)
{
    struct rlimit now;
    return getrlimit(RLIMIT_NOFILE, &now) != 0 || now.rlim_cur > INT_MAX ? INT_MAX : (int)now.rlim_cur;
}

tt_status_t tt_descriptors_check(void)
{
    const int limit = s_limit();
    if (limit >= LEAST)
        return TT_OK;
    return tt_err(TT_OS,
        "only %d files may be open at a time, and a process of a run needs %d: raise the hard limit "
        "(ulimit -Hn)",
        limit, LEAST);
}

int tt_descriptors_reserve(void)
{
    const int limit = s_limit();
    return limit - (limit / 4 < RESERVE ? limit / 4 : RESERVE);
}
