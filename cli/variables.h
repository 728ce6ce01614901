/*  variables - those of the environment that steer all processes of a run, looked at by the command that starts it.
 *
 *  A role can only say in its log that TT_LOG means nothing, or fail late by TT_CPU; a wrong deadline it would not even mention.
 *
 *  Threads: main thread, before any other exists (getenv). */
#pragma once
#include "common/base/status.h"

/*  TT_CONFIG: "TT_CPU=mmx: ...", the first that is wrong. */
tt_status_t variables_check(void);
