/*  curl - libcurl, loaded when a server is first spoken to and not before.
 *
 *  Every process of a run is the same binary. Linked in the usual way, libcurl brings OpenSSL, Kerberos, LDAP and thirty
 *  libraries behind it, and costs each process milliseconds of its start; only clients of servers need it. Its header is used
 *  as ever; the functions we call come out of this table.
 *
 *  Threads: load from any; the table is read-only afterwards. */
#pragma once
#define CURL_DISABLE_TYPECHECK /* its macros would hide the names of the table */
#include <curl/curl.h>
#include "common/base/status.h"

#define TT_CURL_FUNCTIONS(X)    \
    X(curl_global_init)         \
    X(curl_version_info)        \
    X(curl_easy_init)           \
    X(curl_easy_cleanup)        \
    X(curl_easy_setopt)         \
    X(curl_easy_perform)        \
    X(curl_easy_getinfo)        \
    X(curl_easy_strerror)       \
    X(curl_slist_append)        \
    X(curl_slist_free_all)      \
    X(curl_multi_init)          \
    X(curl_multi_cleanup)       \
    X(curl_multi_setopt)        \
    X(curl_multi_assign)        \
    X(curl_multi_add_handle)    \
    X(curl_multi_remove_handle) \
    X(curl_multi_socket_action) \
    X(curl_multi_info_read)     \
    X(curl_multi_strerror)

typedef struct {
#define X(name) __typeof__(name) *name;
    TT_CURL_FUNCTIONS(X)
#undef X
} tt_curl_t;

/*  The table; it stays loaded until the process ends. TT_UNSUPPORTED: the library is not installed, or lacks TLS. */
tt_status_t tt_curl_load(const tt_curl_t **out);
