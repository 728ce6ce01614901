/*  repeat - what goes wrong again and again is said once, and again after REPEAT_NS.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define REPEAT_NS (INT64_C(30) * 1000000000)

typedef struct {
    char text[1024]; /* said last; "": nothing to repeat */
    int64_t said_ns;
} repeat_t;

/*  Is this to be said now? Not when the same was less than REPEAT_NS ago. What differs in numbers alone, as of an update in the name
 *  of a file, is the same. true: it counts as said. */
bool repeat_due(repeat_t *self, const char *text, int64_t now_ns);
/*  It goes well again: whatever comes next is new. */
void repeat_forget(repeat_t *self);
