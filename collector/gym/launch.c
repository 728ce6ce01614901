#include "collector/gym/launch.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/descriptors.h"
#include "common/base/mem.h"

extern char **environ;

enum { FIRST_FREE = 5, ASIDE = 10 };

/*  What a worker finds in its environment unless it says something else there: a traceback where it crashes, no threads of
 *  NumPy's beside one worker a core, no greetings. */
static const char *const s_defaults[] = {"PYTHONFAULTHANDLER=1", "PYTHONUNBUFFERED=1", "OMP_NUM_THREADS=1",
    "OPENBLAS_NUM_THREADS=1", "MKL_NUM_THREADS=1", "PYGAME_HIDE_SUPPORT_PROMPT=1", "SDL_VIDEODRIVER=dummy"};

static bool s_is_set(const char *assignment)
{
    const size_t name = strcspn(assignment, "=") + 1;
    for (char **at = environ; at && *at; at++)
        if (strncmp(*at, assignment, name) == 0)
            return true;
    return false;
}

/*  Pointers to strings that live on; free the array alone. */
static char **s_environment(char *mark)
{
    size_t count = 0, used = 0;
    while (environ && environ[count])
        count++;
    char **out = tt_array0(count + TT_COUNT(s_defaults) + 2, sizeof *out);
    const size_t name = strcspn(mark, "=") + 1;
    for (size_t i = 0; i < count; i++)
        if (strncmp(environ[i], mark, name) != 0) /* who is in an environment of another collector has its own */
            out[used++] = environ[i];
    out[used++] = mark;
    for (size_t i = 0; i < TT_COUNT(s_defaults); i++)
        if (!s_is_set(s_defaults[i]))
            out[used++] = (char *)(uintptr_t)s_defaults[i];
    return out;
}

typedef struct {
    const gym_launch_t *how;
    char **env;
    int from[FIRST_FREE]; /* which descriptor becomes number 0 to 4, -1 = none */
    pid_t parent;
    volatile int error; /* the child's errno: it shares our memory */
} child_t;

/*  In the child, on our memory and stack, until it is another program: nothing here may change what we go on with. */
static void s_become(child_t *self)
{
    sigset_t none;
    sigemptyset(&none);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != self->parent)
        _exit(127); /* it died before the line above */
    for (int number = 1; number <= SIGRTMAX; number++)
        if (number != SIGKILL && number != SIGSTOP)
            signal(number, SIG_DFL);
    signal(SIGINT, SIG_IGN); /* Ctrl-C is for the one who started us all */
    for (int i = 0; i < FIRST_FREE; i++)
        if (self->from[i] >= 0 && dup2(self->from[i], i) < 0)
            return;
    close_range((unsigned)(self->from[FIRST_FREE - 1] >= 0 ? FIRST_FREE : FIRST_FREE - 1), ~0U, 0);
    tt_descriptors_restore();
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(self->how->program, self->how->argv, self->env);
}

/*  Signals are held back meanwhile: a handler of ours must not run in the child. */
static __attribute__((noinline)) pid_t s_vfork(child_t *self)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const pid_t pid = vfork();
    if (pid == 0) {
        s_become(self);
        self->error = errno;
        _exit(127);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return pid;
}

/*  A copy whose number is none of those that the child makes. */
static int s_aside(int fd)
{
    return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, ASIDE);
}

tt_status_t gym_launch(pid_t *out, const gym_launch_t *how)
{
    const int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    child_t child = {.how = how, .env = s_environment(how->mark), .parent = getpid()};
    const int wanted[FIRST_FREE] = {null_fd, how->out, how->out, how->socket, how->memory};
    bool whole = true;
    for (int i = 0; i < FIRST_FREE; i++) {
        child.from[i] = s_aside(wanted[i]);
        whole = whole && (child.from[i] >= 0 || (wanted[i] < 0 && i == FIRST_FREE - 1));
    }
    const pid_t pid = whole ? s_vfork(&child) : -1;
    const int error = pid < 0 ? errno : child.error;
    for (int i = 0; i < FIRST_FREE; i++)
        if (child.from[i] >= 0)
            close(child.from[i]);
    if (null_fd >= 0)
        close(null_fd);
    free(child.env);
    if (pid > 0 && error)
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    errno = error;
    if (error == EMFILE)
        return tt_err(TT_OS,
            "cannot start %s: too many open files: raise the hard limit (ulimit -Hn), or have fewer workers "
            "(env.workers)",
            how->program);
    if (pid < 0 || error)
        return tt_err_errno(error == ENOENT ? TT_NOT_FOUND : TT_OS, "cannot start %s", how->program);
    *out = pid;
    return TT_OK;
}
