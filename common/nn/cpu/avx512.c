/*  avx512 - the kernels built on v16_avx512.h. */
#include "common/nn/cpu/v16_avx512.h"
#include "common/nn/cpu/kernels_impl.h"
#include "common/nn/cpu/kernels_conv.h"
#include "common/nn/cpu/kernels_row.h"
#include "common/nn/cpu/kernels_recurrent.h"
#include "common/nn/cpu/kernels_bytes.h"

const tt_kernels_t tt_kernels_avx512 = KERNELS_TABLE;
