/*  process - what the kernel counts of this process. Threads: any. */
#pragma once
#include <stdint.h>

/*  Monotonic time at which this process was started: now less the processor time it has used, kept within the 10 ms
 *  that /proc/self/stat allows (that counts from fork: a process that lived for over a second before it became us by exec
 *  is believed without it). Call it first thing in main, before time goes by unused. */
int64_t tt_process_start_ns(void);
/*  The same in seconds since 1970, for who looks at it from outside; to be asked as early. */
double tt_process_started_s(void);
/*  Processor time of all threads, of user and system. */
double tt_process_cpu_s(void);
/*  Bytes: of what has addresses, of what is there. 0 = not known. */
typedef struct {
    uint64_t addressed, resident;
} tt_process_memory_t;
tt_process_memory_t tt_process_memory(void);
