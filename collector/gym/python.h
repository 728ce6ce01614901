/*  python - which interpreter plays, and where our package lies.
 *
 *  Threads: pure but for the environment and the file system. */
#pragma once
#include "common/base/status.h"

/*  `wanted` (env.python), else TT_PYTHON, else bin/python3 of VIRTUAL_ENV or CONDA_PREFIX, else python3 of PATH. Caller frees.
 *  *passed: which of these two are set and are not taken, and why, in a sentence; NULL: none. Caller frees.
 *  TT_NOT_FOUND, TT_DENIED: there is no such program; then *passed is part of the text, and not given. */
tt_status_t gym_python(char **out, const char *wanted, char **passed);

/*  The folder of the package tutti_env: share/tutti/python/tutti_env beside the binary's folder, or below TT_SHARE. Caller frees. */
tt_status_t gym_package(char **out);
