#include "k8s/api/curl_lib.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

static const char s_soname[] = "libcurl.so.4"; /* OpenSSL's build: the GnuTLS one takes no certificates from memory */
static pthread_mutex_t s_mutex = PTHREAD_MUTEX_INITIALIZER;
static kube_curl_t s_table;
static void *s_library;

static tt_status_t s_load(void)
{
    if (!s_library)
        s_library = dlopen(s_soname, RTLD_NOW | RTLD_LOCAL);
    if (!s_library)
        return tt_err(TT_UNSUPPORTED, "Kubernetes: %s; install libcurl4", dlerror());
#define X(name)                                                                         \
    {                                                                                   \
        void *symbol = dlsym(s_library, #name);                                         \
        if (!symbol)                                                                    \
            return tt_err(TT_UNSUPPORTED, "%s has no " #name, s_soname);                \
        memcpy(&s_table.name, &symbol, sizeof symbol); /* ISO C has no cast for this */ \
    }
    KUBE_CURL_FUNCTIONS(X)
#undef X
    if (s_table.curl_global_init(CURL_GLOBAL_ALL) != CURLE_OK)
        return tt_err(TT_UNSUPPORTED, "%s cannot be initialised", s_soname);
    if (!(s_table.curl_version_info(CURLVERSION_NOW)->features & CURL_VERSION_SSL))
        return tt_err(TT_UNSUPPORTED, "%s was built without TLS", s_soname);
    return TT_OK;
}

tt_status_t kube_curl_load(const kube_curl_t **out)
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
