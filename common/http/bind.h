/*  bind - a listening socket for HTTP.
 *
 *  Threads: pure. */
#pragma once
#include "common/base/status.h"

/*  Bind "HOST:PORT" with a numeric address or localhost, port 0 = any free one; "[::]:8080", ":8080" = every address.
 *  Caller owns *fd. TT_INVALID: not such an address; TT_EXISTS: in use; TT_OS. */
tt_status_t http_bind(int *fd, const char *address);
/*  The port of such a socket. */
int http_bound_port(int fd);
