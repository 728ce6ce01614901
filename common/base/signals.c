#include "common/base/signals.h"
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

static tt_status_t s_open(int *fd_out, const sigset_t *set)
{
    if (pthread_sigmask(SIG_BLOCK, set, NULL) != 0)
        return tt_err_errno(TT_OS, "cannot block signals");
    signal(SIGPIPE, SIG_IGN);
    const int fd = signalfd(-1, set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (fd < 0)
        return tt_err_errno(TT_OS, "signalfd");
    *fd_out = fd;
    return TT_OK;
}

tt_status_t tt_signals_open(int *fd_out)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    return s_open(fd_out, &set);
}

tt_status_t tt_signals_open_parent(int *fd_out)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    return s_open(fd_out, &set);
}

int tt_signals_next_from(int fd, int *sender)
{
    struct signalfd_siginfo info;
    if (read(fd, &info, sizeof info) != (ssize_t)sizeof info)
        return 0;
    *sender = (int)info.ssi_pid;
    return (int)info.ssi_signo;
}

int tt_signals_next(int fd)
{
    int sender;
    return tt_signals_next_from(fd, &sender);
}
