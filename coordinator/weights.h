/*  weights - which of RUN_DIR/checkpoints a client gets that asks for the weights over HTTP.
 *
 *  Nothing of the file is read here, for its checksum would take the loop's time: whoever fetches it compares that, and asks
 *  for the one before it where it is damaged (cli/fetch_url.c). Files of that folder are renamed into place and never written
 *  to, so an open one stays as it is, whatever becomes of its name.
 *
 *  Threads: the coordinator's. */
#pragma once
#include "common/base/status.h"
#include "coordinator/http.h"

typedef struct coordinator coordinator_t;

/*  query: "" the newest, "best" that with the best mean return (cli/weights.h), "below=N" the newest that is named by an update
 *  before N. The caller owns out->fd. TT_NOT_FOUND: there is none (yet); TT_INVALID: another query; TT_IO. */
tt_status_t weights_open(const coordinator_t *self, const char *query, http_file_t *out);
