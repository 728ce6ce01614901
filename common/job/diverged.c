#include "common/job/diverged.h"
#include <stdarg.h>
#include <stdio.h>

tt_status_t tt_diverged(const char *fmt, ...)
{
    char what[1024]; /* the arguments may point into the text that is replaced */
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    return tt_err(TT_DIVERGED,
        "training has diverged: %s; lower algorithm.learning_rate, set or lower algorithm.max_grad_norm, switch on "
        "normalize.obs and normalize.reward, or have the env give smaller rewards",
        what);
}
