#include "common/http/mhd.h"
#include "common/base/dylib.h"

static mhd_t s_table;
static const tt_symbol_t s_symbols[] = {
#define X(name) {#name, &s_table.name},
    MHD_FUNCTIONS(X)
#undef X
};
/* The interface of 0.9.67 and later. */
static tt_dylib_t s_library =
    TT_DYLIB("libmicrohttpd.so.12", "install libmicrohttpd12, or switch HTTP off", s_symbols, NULL);

tt_status_t mhd_load(const mhd_t **out)
{
    TT_TRY(tt_dylib_load(&s_library));
    *out = &s_table;
    return TT_OK;
}
