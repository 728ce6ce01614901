/*  json - jansson's strings of text that may be none. json_string gives NULL then, and json_pack with "s" no object at all;
 *  what a user or another process may have said goes in with "o" and this.
 *
 *  Threads: pure. */
#pragma once
#include <jansson.h>
#include <stdlib.h>
#include "common/base/text.h"

/*  A new string, with '?' for bytes that are not UTF-8 (common/base/text.h); null for NULL. Never NULL itself. */
static inline json_t *tt_json_text(const char *text)
{
    char *valid = tt_text_dup(text);
    json_t *out = valid ? json_string(valid) : json_null();
    free(valid);
    return out;
}
