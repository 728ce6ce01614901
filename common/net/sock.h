/*  sock - what the loop and the link need of a socket beyond net.h. Inside tt_net only. */
#pragma once
#include "common/net/net.h"

/*  Readable when ZeroMQ has news for this socket. Edge-triggered (it reports commands, not messages): wait on it only
 *  while tt_sock_hot is false, and call tt_sock_wake when it is readable. */
int tt_sock_fd(const tt_sock_t *self);
/*  May there be a message? False only after tt_sock_recv said TT_AGAIN and nothing was done with the socket since. */
bool tt_sock_hot(const tt_sock_t *self);
void tt_sock_wake(tt_sock_t *self);

bool tt_sock_receives(const tt_sock_t *self);
/*  Change linger_ms, before tt_sock_destroy. */
void tt_sock_linger(tt_sock_t *self, int linger_ms);

/*  Tell ThreadSanitizer that our reference to a frame is about to be let go. */
void tt_frame_release(zmq_msg_t *frame);
