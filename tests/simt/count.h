/*  count - what the host asked of the simulated card, for tests in C.
 *  Threads: any. */
#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*  Kernels one by one, graphs of them, bytes from the host, copies that were asked for, and waits for a stream; since the process
 *  began. What is recorded counts when the graph is launched, as one graph. */
typedef struct {
    uint64_t kernels, graphs, up, copies, waits;
} simt_count_t;

simt_count_t simt_count(void);

#ifdef __cplusplus
}
#endif
