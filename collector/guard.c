#include "collector/guard.h"
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

static const int s_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
static struct sigaction s_before[TT_COUNT(s_signals)];

/* volatile: read by a handler on the same thread */
static _Thread_local const char *volatile s_env;
static _Thread_local const char *volatile s_what;
static _Thread_local bool s_stacked;
static bool s_armed;

/*  A timer of each thread that was ever within: its signal comes to that thread. */
enum { START_S = 60, START_MOST_S = 86400, IDLE_S = 60 };
static _Thread_local timer_t s_timer;
static _Thread_local pid_t s_timer_of; /* the process that made it (a child has none), 0 = nobody */
static _Thread_local bool s_ticking;
static char s_limit[48] = " within 60 s";
static int s_start_s = START_S;

/* strsignal and printf may not be called in a handler; strlen, memcpy and write may. */
static const char *s_name_of(int number)
{
    switch (number) {
    case SIGSEGV:
        return " (SIGSEGV, a bad memory access)";
    case SIGBUS:
        return " (SIGBUS, a bad memory access)";
    case SIGFPE:
        return " (SIGFPE, an integer division)";
    case SIGILL:
        return " (SIGILL, an instruction this CPU does not have)";
    default:
        return " (SIGABRT, abort())";
    }
}

static size_t s_append(char *line, size_t used, size_t room, const char *text)
{
    const size_t size = strlen(text), fits = size < room - used ? size : room - used;
    memcpy(line + used, text, fits);
    return used + fits;
}

/*  One line, and the end: only what a signal handler may call. */
static noreturn void s_end(const char *did, const char *how)
{
    char line[1024];
    const char *parts[] = {"error: env ", s_env, did, s_what, how,
        ": the fault is in the environment's own code; run it under a debugger or with -fsanitize=address\n"};
    size_t used = 0;
    for (size_t i = 0; i < TT_COUNT(parts); i++)
        used = s_append(line, used, sizeof line, parts[i]);
    const ssize_t written = write(STDERR_FILENO, line, used);
    (void)written;
    _exit(EX_SOFTWARE);
}

static void s_on_signal(int number)
{
    if (s_env)
        s_end(" crashed in ", s_name_of(number));
    /* Not an env's: as it was before. A fault happens again when we return, a sent signal is sent again. */
    for (size_t i = 0; i < TT_COUNT(s_signals); i++) {
        if (s_signals[i] == number)
            sigaction(number, &s_before[i], NULL);
    }
    raise(number);
}

static void s_on_deadline(int number)
{
    (void)number;
    if (s_env)
        s_end(" did not come back from ", s_limit);
}

static int s_deadline_signal(void)
{
    return SIGRTMAX - 2;
}

static void s_on_exit_call(void)
{
    if (s_env)
        s_end(" called exit() in ", "");
}

/*  A stack that overflowed has no room for a handler: give this thread another, unless it has one. */
static void s_own_stack(void)
{
    static _Thread_local char s_stack[16384];
    stack_t now;
    s_stacked = true;
    if (sigaltstack(NULL, &now) == 0 && (now.ss_flags & SS_DISABLE))
        sigaltstack(&(stack_t){.ss_sp = s_stack, .ss_size = sizeof s_stack}, NULL);
}

/*  0: it is not there, or nothing of the kind. */
static int s_seconds(const char *text)
{
    char *end;
    const long seconds = text ? strtol(text, &end, 10) : 0;
    return text && !*end && seconds >= 1 && seconds <= START_MOST_S ? (int)seconds : 0;
}

int guard_seconds(const char *name, int initial)
{
    const int seconds = s_seconds(getenv(name));
    return seconds ? seconds : initial;
}

tt_status_t guard_check(void)
{
    static const char *const names[] = {"TT_ENV_START_S", "TT_ENV_STEP_S", "TT_ENV_IDLE_S"};
    for (size_t i = 0; i < TT_COUNT(names); i++) {
        const char *text = getenv(names[i]);
        if (text && *text && !s_seconds(text))
            return tt_err(
                TT_CONFIG, "%s: '%s' is not a whole number of seconds from 1 to %d", names[i], text, START_MOST_S);
    }
    return TT_OK;
}

int64_t guard_idle_ms(void)
{
    return (int64_t)guard_seconds("TT_ENV_IDLE_S", IDLE_S) * 1000;
}

static void s_read_limit(void)
{
    s_start_s = guard_seconds("TT_ENV_START_S", START_S);
    snprintf(s_limit, sizeof s_limit, " within %d s (TT_ENV_START_S)", s_start_s);
}

void guard_arm(void)
{
    if (s_armed)
        return;
    s_armed = true;
    s_read_limit();
    struct sigaction late = {.sa_handler = s_on_deadline, .sa_flags = SA_ONSTACK};
    sigemptyset(&late.sa_mask);
    sigaction(s_deadline_signal(), &late, NULL);
    struct sigaction action = {.sa_handler = s_on_signal, .sa_flags = SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < TT_COUNT(s_signals); i++)
        sigaction(s_signals[i], &action, &s_before[i]);
    atexit(s_on_exit_call);
}

void guard_enter(const char *env, const char *what)
{
    if (s_armed && !s_stacked)
        s_own_stack();
    s_what = what;
    s_env = env;
}

/*  0 = stop it. */
static void s_tick(int seconds)
{
    const struct itimerspec when = {.it_value.tv_sec = seconds};
    if (s_timer_of != getpid()) {
        struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = s_deadline_signal()};
        event._sigev_un._tid = gettid();
        if (timer_create(CLOCK_MONOTONIC, &event, &s_timer) != 0)
            return; /* no timer, no deadline */
        s_timer_of = getpid();
    }
    s_ticking = timer_settime(s_timer, 0, &when, NULL) == 0 && seconds > 0;
}

void guard_enter_within(const char *env, const char *what)
{
    guard_enter(env, what);
    if (s_armed)
        s_tick(s_start_s);
}

void guard_leave(void)
{
    s_env = NULL;
    if (s_ticking)
        s_tick(0);
}
