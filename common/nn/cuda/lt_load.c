/*  lt_load - NVIDIA's library, of the release that this build's runtime is of: where the loader looks, else in the toolkit's usual place. */
#include <unistd.h>
#include "common/base/dylib.h"
#include "common/base/mem.h"
#include "common/nn/cuda/lt.h"

#define WORD_OF(number) #number
#define WORD(number)    WORD_OF(number)
#if CUDART_VERSION >= 13000
#define RELEASE 13
#else
#define RELEASE 12
#endif
#define SONAME "libcublasLt.so." WORD(RELEASE)
#define ADVICE                                                                                                         \
    "learner.precision needs cuBLAS of CUDA " WORD(RELEASE) ": install NVIDIA's package libcublas-" WORD(              \
        RELEASE) "-0 or a later one, or pip install 'nvidia-cublas==" WORD(RELEASE) ".*' and name the folder of that " \
                                                                                    "file in "                         \
                                                                                    "LD_LIBRARY_PATH; or say "         \
                                                                                    "learner.precision: exact"

static cuda_lt_t s_calls;
static const tt_symbol_t s_symbols[] = {
#define LT_SYMBOL(name) {#name, &s_calls.name},
    LT_CALLS(LT_SYMBOL)
#undef LT_SYMBOL
};
static tt_dylib_t s_library = TT_DYLIB(SONAME, ADVICE, s_symbols, NULL);
static tt_dylib_t s_toolkits = TT_DYLIB("/usr/local/cuda/lib64/" SONAME, ADVICE, s_symbols, NULL);

tt_status_t cuda_lt_load(const cuda_lt_t **out)
{
    const tt_status_t status = tt_dylib_load(&s_library);
    if (status != TT_OK && access(s_toolkits.soname, R_OK) != 0)
        return status;
    if (status != TT_OK)
        TT_TRY(tt_dylib_load(&s_toolkits));
    *out = &s_calls;
    return TT_OK;
}
