#include "collector/guard.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>
#include "common/base/status.h"

static const int s_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
static struct sigaction s_before[TT_COUNT(s_signals)];

/* volatile: read by a handler on the same thread */
static _Thread_local const char *volatile s_env;
static _Thread_local const char *volatile s_what;

/* strsignal and printf may not be called in a handler; strlen, memcpy and write may. */
static const char *name_of(int number)
{
    switch (number) {
    case SIGSEGV:
        return "SIGSEGV, a bad memory access";
    case SIGBUS:
        return "SIGBUS, a bad memory access";
    case SIGFPE:
        return "SIGFPE, an integer division";
    case SIGILL:
        return "SIGILL, an instruction this CPU does not have";
    default:
        return "SIGABRT, abort()";
    }
}

static size_t append(char *line, size_t used, size_t room, const char *text)
{
    const size_t size = strlen(text), fits = size < room - used ? size : room - used;
    memcpy(line + used, text, fits);
    return used + fits;
}

static void on_signal(int number)
{
    if (s_env) {
        char line[1024];
        const char *parts[] = {"error: env ", s_env, " crashed in ", s_what, " (", name_of(number),
            "). The fault is in the environment's own code; run it under a debugger or with -fsanitize=address.\n"};
        size_t used = 0;
        for (size_t i = 0; i < TT_COUNT(parts); i++)
            used = append(line, used, sizeof line, parts[i]);
        const ssize_t written = write(STDERR_FILENO, line, used);
        (void)written;
        _exit(EX_SOFTWARE);
    }
    /* Not ours: as it was before; a fault happens again when we return, a sent signal is sent again. */
    for (size_t i = 0; i < TT_COUNT(s_signals); i++) {
        if (s_signals[i] == number)
            sigaction(number, &s_before[i], NULL);
    }
    raise(number);
}

void guard_arm(void)
{
    static bool s_armed;
    if (s_armed)
        return;
    s_armed = true;
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < TT_COUNT(s_signals); i++)
        sigaction(s_signals[i], &action, &s_before[i]);
}

void guard_enter(const char *env, const char *what)
{
    s_what = what;
    s_env = env;
}

void guard_leave(void)
{
    s_env = NULL;
}
