/*  query - what stands behind the '?' of a request, name=value pairs, and any other piece of a URL: percent-encoding, both ways.
 *
 *  Threads: pure. */
#pragma once
#include <stddef.h>
#include "common/base/status.h"

/*  The first value of a name, as text in out[size]. TT_NOT_FOUND (no words): it is not there, or empty. TT_INVALID: it is longer, or no
 *  text (a wrong %, a control character). */
tt_status_t tt_query_get(char *out, size_t size, const char *query, const char *name);
/*  A piece of a query, decoded; NULL: no text. Caller frees. */
char *tt_query_decode(const char *from, size_t size);
/*  "default/x y" -> percent-encoded, for path segments and values. Caller frees. */
char *tt_query_escape(const char *text);
