/*  words - a line for what has room for so many bytes and no more, as a status or an event has.
 *
 *  Threads: pure. */
#pragma once
#include <stddef.h>

/*  The text in out[size], bytes of no character mended ('?'). Of one that is longer the beginning, which says who, and the end, which says what to
 *  do, with " ... " between; no half of a character. */
void tt_words(char *out, size_t size, const char *text);
