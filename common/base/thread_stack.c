#include "common/base/thread_stack.h"
#include <pthread.h>
#include <stdbool.h>
#include <sys/resource.h>

enum { LEAST = 512 << 10, USUAL = 8 << 20 };

/*  The main thread's grows up to the limit of the moment; of other threads the C library has read it before main. */
tt_status_t tt_thread_stack_raise(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= LEAST)
        return TT_OK;
    if (limit.rlim_max < LEAST)
        return tt_err(TT_OS,
            "only %u KiB of stack are allowed, and a thread needs %d: raise the hard limit (ulimit -Hs)",
            (unsigned)(limit.rlim_max >> 10), LEAST >> 10);
    limit.rlim_cur = limit.rlim_max < USUAL ? limit.rlim_max : USUAL;
    if (setrlimit(RLIMIT_STACK, &limit) != 0)
        return tt_err_errno(TT_OS, "the limit of the stack (ulimit -s) cannot be raised");
    pthread_attr_t threads;
    const bool known = pthread_attr_init(&threads) == 0 && pthread_attr_setstacksize(&threads, limit.rlim_cur) == 0 &&
                       pthread_setattr_default_np(&threads) == 0;
    return known ? TT_OK : tt_err(TT_OS, "no thread can be given a larger stack (ulimit -s)");
}
