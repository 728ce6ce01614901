/*  home - where what belongs to a user, and to none of his runs, is kept (XDG Base Directory Specification): names of runs, tasks.
 *
 *  Threads: reads the environment. */
#pragma once
#include <stddef.h>
#include "common/base/status.h"

/*  "$XDG_STATE_HOME/tutti/NAME", or "$HOME/.local/state/tutti/NAME"; a path that is not absolute counts as not set. Neither is set:
 *  "OTHERWISE/NAME", where that is not NULL. TT_CONFIG: nowhere, or the path is too long; the words say what to set. */
tt_status_t tt_home_state(char *out, size_t size, const char *name, const char *otherwise);
