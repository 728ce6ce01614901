/*  when - moments as text (RFC 3339), as logs, lists of runs and Kubernetes have them.
 *
 *  Threads: pure. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum { TT_WHEN = 40 }; /* bytes of any of them */

/*  "2026-01-31T12:00:00Z". A moment that no calendar has is the first of 1970. Returns out. */
const char *tt_when_text(char out[TT_WHEN], int64_t unix_s);
/*  The same with microseconds: "2026-01-31T12:00:00.000000Z". */
const char *tt_when_text_us(char out[TT_WHEN], int64_t unix_ns);
/*  The seconds since 1970; a fraction is passed over, Z or an offset ("+02:00") has to be there. false: it is no moment, and *out is
 *  as it was. */
bool tt_when_read(int64_t *out, const char *text);
