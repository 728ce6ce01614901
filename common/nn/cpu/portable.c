/*  portable - the kernels built on v16_portable.h. */
#include "common/nn/cpu/v16_portable.h"
#include "common/nn/cpu/kernels_impl.h"

const tt_kernels_t tt_kernels_portable = KERNELS_TABLE;
