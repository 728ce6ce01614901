/*  batches - a collector's way from a roster to segments, as docs/internals/protocol.md has it ("Batches"): attach to the
 *  learners, agree where to start, get the env states, then for every batch wait for credit and for its policy version,
 *  play, send.
 *
 *  One flat state machine; batches_advance moves it as far as it goes without waiting. It never blocks for longer than
 *  one slice of play.
 *  Threads: an instance belongs to one thread. */
#pragma once
#include "collector/env.h"
#include "common/config/train.h"
#include "common/net/location.h"

typedef struct {
    const tt_location_t *location; /* borrowed, as is everything here */
    const tt_train_cfg_t *cfg;
    const tt_env_ops_t *env;
    tt_loop_t *loop;
    tt_link_t *link;
    int64_t lease_ms;
} batches_opts_t;

typedef struct batches batches_t; /* opaque */

/*  TT_INVALID: the env here is not the one of the job (sizes differ). TT_DEVICE and others: no network. */
tt_status_t batches_new(batches_t **self_p, const batches_opts_t *opts);
void batches_destroy(batches_t **self_p);

/*  Act on a roster from the next batches_advance on; it is taken (the packet is empty afterwards). */
void batches_roster(batches_t *self, tt_packet_t *roster);

/*  Do what can be done now. *wait_ms: how long there is nothing to do unless a message comes; 0 = call again at once.
 *  TT_INTERNAL: an env failed. */
tt_status_t batches_advance(batches_t *self, int64_t *wait_ms);

/*  Env steps played since the start of the process; first batch that is not collected. */
uint64_t batches_env_steps(const batches_t *self);
uint64_t batches_next(const batches_t *self);
