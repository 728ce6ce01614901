/*  mhd - libmicrohttpd, loaded when HTTP is first served and not before.
 *
 *  Every process of a run is the same binary. Linked in the usual way, libmicrohttpd brings GnuTLS and seven libraries
 *  behind it, and costs each process 1.8 ms of its start; only a coordinator (not before its first roster) and an operator
 *  need it. Its header is used as ever; the functions we call come out of this table.
 *
 *  Threads: load from any thread; the table is read-only afterwards. */
#pragma once
#include <microhttpd.h>
#include "common/base/status.h"

#define MHD_FUNCTIONS(X)               \
    X(MHD_start_daemon)                \
    X(MHD_stop_daemon)                 \
    X(MHD_get_daemon_info)             \
    X(MHD_run)                         \
    X(MHD_get_timeout)                 \
    X(MHD_suspend_connection)          \
    X(MHD_resume_connection)           \
    X(MHD_get_connection_info)         \
    X(MHD_create_response_from_buffer) \
    X(MHD_create_response_from_fd64)   \
    X(MHD_add_response_header)         \
    X(MHD_queue_response)              \
    X(MHD_destroy_response)            \
    X(MHD_lookup_connection_value)

typedef struct {
#define X(name) __typeof__(name) *name;
    MHD_FUNCTIONS(X)
#undef X
} mhd_t;

/*  The table; it stays loaded until the process ends. TT_UNSUPPORTED: the library is not installed. */
tt_status_t mhd_load(const mhd_t **out);
