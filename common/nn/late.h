/*  late - backends in libraries of their own, which are loaded when a device of theirs is opened: "cuda", that of NVIDIA's
 *  cards, and "cuda-sim", the same on a stand-in for a card, which only tests have.
 *
 *  A library is looked for beside the program, then in ../lib/tutti, then where the loader looks. It must have been built with this very
 *  program. It has its own copy of common/base, so what went wrong in it is said here in its words.
 *  Threads: as device.h. */
#pragma once
#include <stdbool.h>
#include <string.h>
#include "common/nn/backend.h"

extern const tt_backend_ops_t tt_cuda_backend;
extern const tt_backend_ops_t tt_cuda_sim_backend;

/*  What the library asks of the program: the same TT_BACKEND_ABI and version of Tutti. */
static inline bool tt_late_fits(uint32_t abi, const char *version)
{
    return abi == TT_BACKEND_ABI && strcmp(version, TT_VERSION) == 0;
}
