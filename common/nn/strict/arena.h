/*  arena - memory that can be touched while the arena is open, and faults while it is closed.
 *
 *  Blocks come out of a few large mappings, so that opening and closing is a call each. A mapping goes with its last block.
 *  Threads: one at a time. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

typedef struct strict_arena strict_arena_t; /* opaque */

/*  Closed at first. */
strict_arena_t *strict_arena_new(void);
/*  All blocks were given back before. */
void strict_arena_destroy(strict_arena_t **self_p);

/*  Zeros, aligned to 64 bytes. */
void *strict_arena_take(strict_arena_t *self, size_t bytes);
/*  NULL is fine. */
void strict_arena_give(strict_arena_t *self, void *block);

void strict_arena_open(strict_arena_t *self);
void strict_arena_close(strict_arena_t *self);
