/*  plugin - what the library shows to the program that loads it (late.c): the backend, and the words of its last error, which are kept
 *  in its own copy of common/base. */
#include "common/nn/cuda/cuda.h"
#include "common/nn/late.h"

#define SHOWN __attribute__((visibility("default")))

SHOWN const tt_backend_ops_t *tutti_cuda_backend(uint32_t abi, const char *version);
SHOWN const char *tutti_cuda_error(void);

const tt_backend_ops_t *tutti_cuda_backend(uint32_t abi, const char *version)
{
    return tt_late_fits(abi, version) ? &cuda_backend : NULL;
}

const char *tutti_cuda_error(void)
{
    return tt_err_text();
}
