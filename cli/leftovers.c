#include "cli/leftovers.h"
#include <errno.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include "controller/orphans.h"

enum { END_MS = 5000 };

void leftovers_watch(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

void leftovers_end(void)
{
    siginfo_t info;
    const bool none = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD;
    if (!none)
        (void)tt_orphans_end(END_MS);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
}
