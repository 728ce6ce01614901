/*  count - what the host launched on the simulated card, for tests in C.
 *  Threads: any. */
#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*  Kernels one by one, graphs of them, and bytes from the host; since the process began. */
typedef struct {
    uint64_t kernels, graphs, up;
} simt_count_t;

simt_count_t simt_count(void);

#ifdef __cplusplus
}
#endif
