/*  signatures - the stand-in's calls and numbers beside those of NVIDIA's header: where one differs, this does not compile. */
#include <cuda_runtime_api.h>
#include "tests/simt/include/simt_calls.h"

#ifndef CUDART_VERSION
#error "this is to be compiled with NVIDIA's header"
#endif

#define SIMT_ERROR(name, value)    _Static_assert((int)(name) == (value), #name);
#define SIMT_COPY(name, value)     _Static_assert((int)(name) == (value), #name);
#define SIMT_FUNCTION(name, value) _Static_assert((int)(name) == (value), #name);
#define SIMT_CAPTURE(name, value)  _Static_assert((int)(name) == (value), #name);
#define SIMT_FLAG(name, value)     _Static_assert((int)(name) == (value), #name);
#include "tests/simt/include/simt_values.def"
