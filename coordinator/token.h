/*  token - the secret that HTTP wants to see: RUN_DIR/token, 64 hex digits, readable by its owner alone.
 *
 *  Threads: pure. */
#pragma once
#include <stdbool.h>
#include "common/base/status.h"

enum { TOKEN_SIZE = 129 };

/*  Read it, or make it. TT_DENIED: others may read the file; TT_DATA: not a token; TT_IO. */
tt_status_t token_take(char out[TOKEN_SIZE], const char *run_dir);

/*  Is this the header "Bearer <token>"? Takes the same time for every wrong one of a length. */
bool token_matches(const char *token, const char *header);
