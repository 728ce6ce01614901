/*  progress - who computes something that may take long tells whoever waits for it that a part of it is done.
 *
 *  Threads: it is called on the thread that computes. */
#pragma once
#include <stddef.h>

typedef struct {
    void (*fn)(void *ctx); /* NULL: nobody wants to know */
    void *ctx;
} tt_progress_t;

#define TT_NO_PROGRESS ((tt_progress_t){NULL, NULL})

static inline void tt_progress(tt_progress_t self)
{
    if (self.fn)
        self.fn(self.ctx);
}
