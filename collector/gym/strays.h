/*  strays - what a worker's environments started in a session of their own (a simulator) is not in its process group: it is found by a
 *  variable that it has from the worker, and ends with it. What was started without our environment is not found.
 *
 *  Threads: any. */
#pragma once
#include <stddef.h>

enum { GYM_MARK = 48 };

/*  "TT_WORKER=...", of no other worker anywhere. */
void gym_strays_mark(char out[GYM_MARK]);

/*  Kill all that has one of these in its environment, and is not this process. */
void gym_strays_end(const char (*mark)[GYM_MARK], size_t count);
