#include "common/nn/backend.h"
#include "common/nn/cpu/cpu.h"
#include "common/nn/strict/strict.h"

const tt_backend_ops_t *const tt_backends[] = {&tt_cpu_backend, &tt_strict_backend, NULL};
