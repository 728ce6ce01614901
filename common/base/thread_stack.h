/*  thread_stack - how large a stack each thread of this process may have. The usual limit, 8 MiB, is more than any of ours
 *  needs; below 160 KiB a thread would end in a fault that says nothing. */
#pragma once
#include "common/base/status.h"

/*  Raise a soft limit that is too small to what the hard one allows, for the main thread and those to come.
 *  TT_OS: the hard one is too small itself. Before any other thread starts. */
tt_status_t tt_thread_stack_raise(void);
