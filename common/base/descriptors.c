#include "common/base/descriptors.h"
#include <limits.h>
#include <stdbool.h>
#include <sys/resource.h>

enum { RESERVE = 16 };

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

int tt_descriptors_reserve(void)
{
    struct rlimit now;
    if (getrlimit(RLIMIT_NOFILE, &now) != 0 || now.rlim_cur > INT_MAX)
        return INT_MAX;
    const int limit = (int)now.rlim_cur;
    return limit - (limit / 4 < RESERVE ? limit / 4 : RESERVE);
}
