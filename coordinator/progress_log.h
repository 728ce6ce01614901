/*  progress_log - a line in the log now and then: how the training gets on, or for whom the run waits. Where nobody shows the
 *  run on a terminal, the log is what a person looks at (`kubectl logs -f`).
 *
 *  Threads: the coordinator's. */
#pragma once
#include <stdint.h>

typedef struct coordinator coordinator_t;

typedef struct {
    int64_t due_ns;       /* of the next line; 0 = at once                    */
    int64_t waits_due_ns; /* of the next line of waiting; 0 = it does not wait */
    uint64_t updates;     /* at the last line                                 */
    uint32_t lines;       /* written so far                                   */
} progress_log_t;

/*  Called by the coordinator's loop. Each second in the beginning, then each ten; nothing while nothing changes, but
 *  for a run that waits for members: that is said each half minute. */
void progress_log_turn(coordinator_t *self, int64_t now_ns);
