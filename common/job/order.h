/*  order - the bodies of orders to a running job (HTTP, control socket), read strictly: what is not understood is not done.
 *
 *  Threads: pure, but for the thread's error text. */
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include "common/base/status.h"

/*  An object; of no body (NULL, "") an empty one: a new reference. TT_INVALID: not JSON, a key twice, or no object; verb ("stop"): for the
 *  example in the message. */
tt_status_t tt_order_parse(json_t **out, const char *verb, const char *body);

/*  Keys of stop: reason, now, and code, the run's exit code, where it comes from one of its own processes. TT_INVALID: another key, or a
 *  value of another kind. */
tt_status_t tt_order_check_stop(json_t *body, bool code);
