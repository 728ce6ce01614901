/*  inbox - what each message on the control socket means to the coordinator.
 *
 *  Threads: the coordinator's. */
#pragma once
#include "common/net/net.h"

/*  tt_on_packet_fn; ctx is the coordinator_t. Fails only for what ends the coordinator (its journal cannot be written). */
tt_status_t inbox_packet(void *ctx, tt_sock_t *sock, tt_packet_t *packet);
