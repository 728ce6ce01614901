/*  descriptors - how many files a process may have open. A coordinator has a connection to every process of its run and to
 *  every client; the usual soft limit of 1,024 is there for programs that call select(), which nothing here does.
 *
 *  Threads: raise before any other thread starts; the others from any, and both are safe between fork and exec. */
#pragma once
#include "common/base/status.h"

/*  As many as the hard limit allows. What it was before is kept. */
void tt_descriptors_raise(void);
/*  For a child that will be another program, which may call select(): as it was before. */
void tt_descriptors_restore(void);
/*  Where standard input, output or error is closed, /dev/null takes the number, the wrong way round: to read or write there fails
 *  as before, and no file that is opened later gets the lines that are meant for a terminal. Before anything is opened. */
void tt_descriptors_fill(void);
/*  TT_OS: so few are allowed that sockets cannot be made (their library would end the process). */
tt_status_t tt_descriptors_check(void);
/*  The first number that is not to be used for what others ask of us: so many are left for our own files. */
int tt_descriptors_reserve(void);
