/*  words - a line for a status or an event, which have room for so many bytes and no more.
 *
 *  Threads: pure. */
#pragma once
#include <stddef.h>

enum { KUBE_EVENT_WORDS = 1024 }; /* bytes of an event's message, without the end */

/*  The text in out[size], bytes of no character mended ('?'). Of one that is longer the beginning, which says who, and the end, which says what to
 *  do, with " ... " between; no half of a character. */
void kube_words(char *out, size_t size, const char *text);
