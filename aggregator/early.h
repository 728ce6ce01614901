/*  early - GRADs that are ahead of us: of a generation whose roster has not reached us yet, or of a step that cannot be
 *  yet. They wait for the roster, a lease at most and within a limit of bytes; what nobody can vouch for by then is
 *  dropped with its sender's name. A number from the wire alone never makes anything void.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include <zmq.h>
#include "common/base/status.h"
#include "common/wire/msg.h"

typedef struct early early_t; /* opaque */

/*  Room for so many bytes of frames. */
early_t *early_new(size_t bytes_max);
void early_destroy(early_t **self_p);

/*  Let one wait; *frame is taken (empty afterwards) on TT_OK. TT_AGAIN: there is no room. */
tt_status_t early_put(early_t *self, const char *peer, const tt_msg_GRAD_t *grad, zmq_msg_t *frame, int64_t now_ms);

/*  Offer all that wait, in the order in which they came. TT_AGAIN: it is still ahead, and waits on; else it is done with
 *  (the frame is released if it was not taken). */
typedef tt_status_t (*early_fn)(void *ctx, const char *peer, const tt_msg_GRAD_t *grad, zmq_msg_t *frame);
void early_offer(early_t *self, early_fn fn, void *ctx);

/*  Drop what has waited since before then, with a warning that names the senders. Returns how many that were. */
size_t early_expire(early_t *self, int64_t before_ms);
