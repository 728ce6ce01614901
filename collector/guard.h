/*  guard - names the environment in which a process dies.
 *
 *  A shared object runs in our address space: a wild pointer in it ends the process, and nothing can prevent that. What
 *  can be done is to say whose fault it was. Once armed, SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT that arrive
 *  while a thread is between guard_enter and guard_leave write one line with the env's name and what it was doing, and
 *  end the process with EX_SOFTWARE (70): a crash that would repeat after a restart is a failure, not a mishap. The same
 *  when the env calls exit(), and when a call that begins or ends its life does not come back. (How long a step takes is
 *  the run's business: net.stall_s.) Outside of these brackets the signals keep the meaning they had.
 *
 *  Threads: guard_arm once, from one thread; enter and leave from any, each thread for itself. */
#pragma once
#include <stdint.h>
#include "common/base/status.h"

/*  Install the handlers (again: nothing happens). */
void guard_arm(void);

/*  This thread is inside `env` ("./my_env.so"), doing `what` ("step"). Both borrowed until guard_leave. */
void guard_enter(const char *env, const char *what);
/*  The same, and it must leave within 60 s, or as many as the environment variable TT_ENV_START_S says. */
void guard_enter_within(const char *env, const char *what);
void guard_leave(void);

/*  A deadline in seconds from the environment variable `name`, 1 to 86400; `initial` where it says nothing of the kind. */
int guard_seconds(const char *name, int initial);

/*  Are the deadlines above, TT_ENV_STEP_S and TT_ENV_IDLE_S such numbers, where they are there? TT_CONFIG: one is not. */
tt_status_t guard_check(void);

/*  So long processes that an environment has of its own stay without a use: TT_ENV_IDLE_S, else a minute. */
int64_t guard_idle_ms(void);
