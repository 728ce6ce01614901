/*  diverged - the one text, and the one status, for gradients, and outputs of a policy, that are no numbers any more.
 *
 *  Whoever sees it first ends the run: a learner by the norm of a gradient, which is then not applied, or by a priority; a collector or an
 *  evaluation by what the policy gives. A person is to read the same in each case.
 *
 *  Threads: pure, but for the thread's error text. */
#pragma once
#include "common/base/status.h"

/*  "training has diverged: <fmt>; <what may help>". TT_DIVERGED, so that one can write `return tt_diverged("...");`. */
tt_status_t tt_diverged(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
