#include "controller/guard.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "controller/orphans.h"

/*  By one way, signals closer together than TWICE_MS are one. By the other way it comes when the guard gets a processor. */
enum { TWICE_MS = 200, ECHO_MS = 5000 };

static pid_t s_guard_pid;

static void s_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGCHLD);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGHUP);
    sigaddset(set, SIGQUIT);
}

/*  Wait for the child and pass on what was sent to us alone. */
static int s_watch(pid_t child, const sigset_t *signals)
{
    for (;;) {
        siginfo_t info;
        const int signal = sigwaitinfo(signals, &info);
        if (signal < 0)
            continue; /* EINTR */
        if (signal != SIGCHLD) {
            if (info.si_code != SI_KERNEL) /* the terminal signals the whole foreground group itself */
                kill(child, signal);
            continue;
        }
        int wait_status;
        pid_t pid;
        while ((pid = waitpid(-1, &wait_status, WNOHANG)) > 0)
            if (pid == child)
                return wait_status;
    }
}

static noreturn void s_guard(pid_t child, const sigset_t *signals, void (*lost)(void *ctx, int signal), void *ctx)
{
    const int wait_status = s_watch(child, signals);
    tt_orphans_end(5000);
    if (WIFSIGNALED(wait_status)) {
        if (lost)
            lost(ctx, WTERMSIG(wait_status));
        _exit(128 + WTERMSIG(wait_status));
    }
    _exit(WEXITSTATUS(wait_status));
}

tt_status_t tt_guard_enter(void (*lost)(void *ctx, int signal), void *ctx)
{
    sigset_t signals, before;
    s_signals(&signals);
    sigprocmask(SIG_BLOCK, &signals, &before);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        return tt_err_errno(TT_OS, "prctl(PR_SET_CHILD_SUBREAPER)");
    }
    s_guard_pid = getpid();
    const pid_t child = fork();
    if (child < 0) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        return tt_err_errno(TT_OS, "fork");
    }
    if (child > 0)
        s_guard(child, &signals, lost, ctx);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (tt_guard_gone())
        raise(SIGTERM); /* pending until the mask is restored */
    sigprocmask(SIG_SETMASK, &before, NULL);
    return TT_OK;
}

bool tt_guard_gone(void)
{
    return s_guard_pid != 0 && getppid() != s_guard_pid;
}

static bool s_is_guard(int pid)
{
    return s_guard_pid != 0 && pid == s_guard_pid;
}

tt_asking_t tt_asked(tt_asked_t *self, int sender, int64_t now_ms)
{
    const bool by_guard = s_is_guard(sender);
    const int64_t before = self->at_ms[by_guard], other = self->at_ms[!by_guard];
    const bool close = before && now_ms - before < TWICE_MS;
    if (!close)
        self->at_ms[by_guard] = now_ms;
    if (!before && !other)
        return TT_ASKED_FIRST;
    return close || (!before && now_ms - other < ECHO_MS) ? TT_ASKED_ECHO : TT_ASKED_TWICE;
}
