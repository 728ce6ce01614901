/*  blocks - memory for segments that ZeroMQ may still be sending when we are done with them: taken, wrapped into a frame,
 *  and back in the pool when the last reference to the frame is gone.
 *
 *  Threads: take, wrap and destroy from the owner's thread; memory comes back from ZeroMQ's. */
#pragma once
#include <stddef.h>
#include "common/net/net.h"

typedef struct blocks blocks_t; /* opaque */

blocks_t *blocks_new(void);
/*  Blocks that are still out are freed when they come back. */
void blocks_destroy(blocks_t **self_p);

/*  At least `size` bytes, 64-byte aligned, contents unspecified. The caller holds it until blocks_give or blocks_wrap. */
void *blocks_take(blocks_t *self, size_t size);
void blocks_give(blocks_t *self, void *block);
/*  A frame of the first `size` bytes; the block belongs to it. */
void blocks_wrap(blocks_t *self, void *block, size_t size, zmq_msg_t *out);
