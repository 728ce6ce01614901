/*  signatures_lt - the calls and numbers of cuBLASLt that Tutti has beside those of NVIDIA's header: where one differs, this does not compile. */
#include <cublasLt.h>
#include "common/nn/cuda/lt_calls.h"

#define LT_STATUS(name, value)    _Static_assert((int)(name) == (value), #name);
#define LT_COMPUTE(name, value)   _Static_assert((int)(name) == (value), #name);
#define LT_TYPE(name, value)      _Static_assert((int)(name) == (value), #name);
#define LT_OPERATION(name, value) _Static_assert((int)(name) == (value), #name);
#define LT_DESC(name, value)      _Static_assert((int)(name) == (value), #name);
#define LT_PREF(name, value)      _Static_assert((int)(name) == (value), #name);
#define LT_REDUCTION(name, value) _Static_assert((int)(name) == (value), #name);
#include "common/nn/cuda/lt_values.def"

/*  As lt.h has them. */
_Static_assert(sizeof(cublasLtMatmulAlgo_t) == 64, "an algorithm");
_Static_assert(offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize) == 64, "what was found");
_Static_assert(offsetof(cublasLtMatmulHeuristicResult_t, state) == 72, "what was found");
_Static_assert(sizeof(cublasLtMatmulHeuristicResult_t) == 96, "what was found");
