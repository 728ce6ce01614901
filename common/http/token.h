/*  token - the secret that HTTP wants to see: RUN_DIR/token, 64 hex digits, or another file; readable by its owner alone.
 *
 *  Threads: pure. */
#pragma once
#include <stdbool.h>
#include "common/base/status.h"

enum { TOKEN_SIZE = 129 };

/*  Read it, or make it. TT_DENIED: others may read the file; TT_DATA: not a token; TT_IO. */
tt_status_t token_take(char out[TOKEN_SIZE], const char *run_dir);

/*  From a file that somebody else has made. As above, and TT_NOT_FOUND. */
tt_status_t token_read(char out[TOKEN_SIZE], const char *path);
/*  Is it the text of one: 16 to 128 letters, digits, '-', '_', '.'? */
bool token_is(const char *text);

/*  Is this the header "Bearer <token>", the first word in any case (RFC 9110, 11.1)? Takes the same time for every wrong one of a length. */
bool token_matches(const char *token, const char *header);
