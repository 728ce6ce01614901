/*  count - what the host launched on the simulated card, for tests in C.
 *  Threads: any. */
#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*  Kernels one by one, and graphs of them; since the process began. */
typedef struct {
    uint64_t kernels, graphs;
} simt_count_t;

simt_count_t simt_count(void);

#ifdef __cplusplus
}
#endif
