/*  exposition - lines of the text that Prometheus reads (format 0.0.4).
 *
 *  Errors: those of the buffer, which keeps what it had. Threads: pure. */
#pragma once
#include "common/base/buf.h"

/*  HELP and TYPE of `prefix` and `name` together; type: "counter", "gauge", "histogram". */
tt_status_t tt_exposition_head(tt_buf_t *out, const char *prefix, const char *name, const char *type, const char *help);
/*  The same, and its one value, without labels. */
tt_status_t tt_exposition_one(
    tt_buf_t *out, const char *prefix, const char *name, const char *type, const char *help, double value);
/*  As short as can be read again as the same number; "NaN", "+Inf", "-Inf". */
void tt_exposition_number(char out[32], double value);
/*  process_*: what every program tells of itself, under the names of Prometheus' own libraries. started_s: when the process was started,
 *  since 1970. */
tt_status_t tt_exposition_process(tt_buf_t *out, double started_s);
/*  A label's value, with what is not allowed in it escaped. */
tt_status_t tt_exposition_label(tt_buf_t *out, const char *text);
