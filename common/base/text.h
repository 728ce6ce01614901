/*  text - bytes from outside made into text: a path, another process's words or what a limit cut may not be UTF-8, and no JSON
 *  takes that. A byte that belongs to no character becomes '?'.
 *
 *  Threads: pure; tt_shown has buffers for each thread. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/*  The character at text (UTF-8, shortest form, no surrogates) and its length in bytes; 0: there is none. */
size_t tt_utf8_next(const char *text, uint32_t *out);

/*  Copy what fits into out[size], cut before a character and not within one. */
void tt_text_copy(char *out, size_t size, const char *text);
/*  The same as a new string, whole; NULL stays NULL. */
char *tt_text_dup(const char *text);

/*  For a person's eyes, on whose terminal it must do nothing: control characters as "\x1b" and "\u009b", bytes of no character as
 *  "\xe4". A text that has none is returned as it is (so is NULL); else a copy, good for TT_SHOWN_AT_ONCE of them, and cut ("...") to
 *  TT_SHOWN_MAX. */
enum { TT_SHOWN_AT_ONCE = 4, TT_SHOWN_MAX = 8192 };
const char *tt_shown(const char *text);
