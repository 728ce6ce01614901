#include "coordinator/mhd.h"
#include <dlfcn.h>
#include <string.h>

static const char s_soname[] = "libmicrohttpd.so.12"; /* the interface of 0.9.67 and later */

tt_status_t mhd_load(const mhd_t **out)
{
    static mhd_t table;
    static void *library;
    if (!library)
        library = dlopen(s_soname, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return tt_err(TT_UNSUPPORTED,
            "coordinator.http: %s; install libmicrohttpd12, or switch HTTP off with coordinator.http: \"\"", dlerror());
#define X(name)                                                                       \
    {                                                                                 \
        void *symbol = dlsym(library, #name);                                         \
        if (!symbol)                                                                  \
            return tt_err(TT_UNSUPPORTED, "%s has no " #name, s_soname);              \
        memcpy(&table.name, &symbol, sizeof symbol); /* ISO C has no cast for this */ \
    }
    MHD_FUNCTIONS(X)
#undef X
    *out = &table;
    return TT_OK;
}
