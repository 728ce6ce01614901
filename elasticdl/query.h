/*  query - the parameters behind the '?' of a request: name=value pairs, percent-decoded.
 *
 *  Threads: pure. */
#pragma once
#include "common/base/status.h"

/*  The first value of a name, as text in out[size]. TT_NOT_FOUND (no words): it is not there, or empty. TT_INVALID: it is longer, or no
 *  text (a wrong %, a control character). */
tt_status_t query_get(char *out, size_t size, const char *query, const char *name);
/*  Put text into out[size] so that query_get gives it back. TT_INVALID: there is no room. */
tt_status_t query_escape(char *out, size_t size, const char *text);
