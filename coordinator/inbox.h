/*  inbox - what each message on the control socket means to the coordinator.
 *
 *  Threads: the coordinator's. */
#pragma once
#include "coordinator/state.h"

/*  tt_on_packet_fn; ctx is the coordinator_t. Fails only for what ends the coordinator (its journal cannot be written). */
tt_status_t inbox_packet(void *ctx, tt_sock_t *sock, tt_packet_t *packet);
/*  Let go of those whose end a controller has told. To be called when everything that came was read: a process's last
 *  words (why it failed, its last snapshot) come on another connection, and must be heard while it is still a member. */
void inbox_bury(coordinator_t *self);
