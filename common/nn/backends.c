#include "common/nn/backend.h"
#include "common/nn/cpu/cpu.h"
#include "common/nn/late.h"
#include "common/nn/strict/strict.h"

const tt_backend_ops_t *const tt_backends[] = {
    &tt_cpu_backend, &tt_strict_backend, &tt_cuda_backend, &tt_cuda_sim_backend, NULL};
