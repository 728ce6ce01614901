#include "common/http/curl.h"
#include "common/base/dylib.h"

static tt_curl_t s_table;
static const tt_symbol_t s_symbols[] = {
#define X(name) {#name, &s_table.name},
    TT_CURL_FUNCTIONS(X)
#undef X
};
#define SONAME "libcurl.so.4" /* OpenSSL's build: the GnuTLS one takes no certificates from memory */

static tt_status_t s_init(void)
{
    if (s_table.curl_global_init(CURL_GLOBAL_ALL) != CURLE_OK)
        return tt_err(TT_UNSUPPORTED, SONAME " cannot be initialised");
    if (!(s_table.curl_version_info(CURLVERSION_NOW)->features & CURL_VERSION_SSL))
        return tt_err(TT_UNSUPPORTED, SONAME " was built without TLS");
    return TT_OK;
}

static tt_dylib_t s_library = TT_DYLIB(SONAME, "install libcurl4", s_symbols, s_init);

tt_status_t tt_curl_load(const tt_curl_t **out)
{
    TT_TRY(tt_dylib_load(&s_library));
    *out = &s_table;
    return TT_OK;
}
