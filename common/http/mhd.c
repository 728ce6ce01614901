#include "common/http/mhd.h"
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static const char s_soname[] = "libmicrohttpd.so.12"; /* the interface of 0.9.67 and later */
static pthread_mutex_t s_mutex = PTHREAD_MUTEX_INITIALIZER;
static mhd_t s_table;
static void *s_library;

static tt_status_t s_load(void)
{
    if (!s_library)
        s_library = dlopen(s_soname, RTLD_NOW | RTLD_LOCAL);
    if (!s_library)
        return tt_err(TT_UNSUPPORTED, "%s; install libmicrohttpd12, or switch HTTP off", dlerror());
#define X(name)                                                                         \
    {                                                                                   \
        void *symbol = dlsym(s_library, #name);                                         \
        if (!symbol)                                                                    \
            return tt_err(TT_UNSUPPORTED, "%s has no " #name, s_soname);                \
        memcpy(&s_table.name, &symbol, sizeof symbol); /* ISO C has no cast for this */ \
    }
    MHD_FUNCTIONS(X)
#undef X
    return TT_OK;
}

tt_status_t mhd_load(const mhd_t **out)
{
    static bool loaded;
    pthread_mutex_lock(&s_mutex);
    const tt_status_t status = loaded ? TT_OK : s_load();
    loaded = status == TT_OK;
    pthread_mutex_unlock(&s_mutex);
    if (status == TT_OK)
        *out = &s_table;
    return status;
}
