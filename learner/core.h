/*  core - one learner process, put together from its parts.
 *
 *  Each part has one file that writes it, the one of its name, with the rules for it in that file's header; every other file
 *  reads it, and asks for a change by a function of the owner's. Shared by the files that make up the role; nobody else
 *  includes it.
 *
 *  Messages are handled only inside core_serve and core_wait, so between two of those calls nothing changes, and
 *  whenever a handler runs, weights, optimiser and position (position.h) belong together.
 *
 *  Threads: everything here belongs to the learner's thread. */
#pragma once
#include "common/base/laps.h"
#include "common/net/link.h"
#include "common/net/location.h"
#include "common/snapshot/snapshot.h"
#include "learner/boundary.h"
#include "learner/checkpoint.h"
#include "learner/compose.h"
#include "learner/control.h"
#include "learner/data.h"
#include "learner/ending.h"
#include "learner/evaluation.h"
#include "learner/feed.h"
#include "learner/fetch.h"
#include "learner/keeping.h"
#include "learner/model.h"
#include "learner/pieces.h"
#include "learner/position.h"
#include "learner/record.h"
#include "learner/report.h"
#include "learner/statistics.h"
#include "learner/view.h"
#include "learner/warm.h"

/*  Where the time goes: shares of it in heartbeats, and the metrics time/<name>_us, mean microseconds of an update. Other:
 *  before the first update, joining, after the last. */
#define CORE_PHASES(X) \
    X(wait_batch) X(wait_eval) X(begin) X(gradients) X(wait_sum) X(apply) X(serve) X(publish) X(other)
typedef enum {
#define X(name) CORE_##name,
    CORE_PHASES(X)
#undef X
        CORE_PHASE_COUNT
} core_phase_t;

/*  How we wait, get on, and spend our time: core.c alone writes it. */
typedef struct {
    char waiting[128]; /* what for: for the heartbeat, and the last words */
    uint64_t progress;
    int64_t progress_ns;
    int64_t served_ns; /* last look at the sockets between optimiser steps */
    tt_laps_t laps;
    int64_t told_ns[CORE_PHASE_COUNT]; /* what of laps core_spent_ns has told */
} pace_t;

/*  Where others reach us: learner.c alone writes it, before anything comes. */
typedef struct {
    tt_sock_t *data, *weights; /* ROUTER for segments and fetches; PUB of weights */
    char data_ipc[256], data_tcp[256], weights_ipc[256], weights_tcp[256];
    tt_memfd_t memory; /* for partial sums, sized by exchange.c; fd -1: none */
} socks_t;

struct core {
    /* the process; learner.c */
    const tt_location_t *location; /* borrowed */
    const tt_clock_t *clock;       /* the location's */
    evaluate_play_fn play;         /* of learner_run */
    int signals_fd;
    tt_link_t *link;
    tt_loop_t *loop;
    socks_t socks;
    pace_t pace;

    /* what others say and ask */
    control_t control;
    view_t view; /* the newest roster: control.c alone takes one */
    feed_t feed;
    fetch_t fetch;
    pieces_t pieces;
    warm_t warm;
    compose_t compose;

    /* the job, from WELCOME on */
    model_t model;
    data_t data;
    statistics_t statistics;
    evaluate_t *evaluate; /* NULL: eval.every is off */

    /* where it stands */
    position_t at;
    boundary_t boundary;
    record_t record;
    checkpoint_t checkpoint;
    keeping_t keeping;
    report_t report;
    ending_t ending;
};

/* ---- core.c ------------------------------------------------------------------------------------------------------ */

/*  Handle what has come; with timeout 0 just look. */
tt_status_t core_serve(core_t *self, int64_t timeout_ms);
/*  Between two optimiser steps: look, unless that was a moment ago. */
tt_status_t core_glance(core_t *self);
/*  Say what we wait for, and wait for something to happen (one tick of it: call it in a loop with the condition).
 *  TT_TIMEOUT: nothing moved for twice net.stall_s; the text says who waits for what. */
#define CORE_OTHERS "waiting for" /* stands in every wait that somebody else may make long */
#define CORE_BATCH  CORE_OTHERS " batch"
tt_status_t core_wait(core_t *self, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/*  We got on: one more segment, step, version. */
void core_progress(core_t *self);
/*  The same, as what is told by whoever computes for long. */
tt_progress_t core_gets_on(core_t *self);
/*  The first lap begins. */
void core_start_laps(core_t *self);
/*  The time since the lap before was spent on this. */
void core_lap(core_t *self, core_phase_t phase);
extern const char *const core_phase_names[CORE_PHASE_COUNT];
/*  Let the next heartbeat say what the time went to. */
void core_tell_laps(core_t *self);
/*  Spent on this since it was asked before. */
int64_t core_spent_ns(core_t *self, core_phase_t phase);
bool core_leads(const core_t *self); /* rank 0 of a roster, with weights of its era */

/* ---- of files that keep nothing of their own ------------------------------------------------------------------------ */

/*  join.c: from nothing to weights: version 0, a snapshot, or the state of rank 0. */
tt_status_t join_turn(core_t *self);
/*  The same before there is a place for us: only what would make others wait later. */
tt_status_t join_outside(core_t *self);
/*  Drop weights and experience (a new era). */
void join_reset(core_t *self);

/*  update.c: one turn with weights: wait for the batch, train on it. */
tt_status_t update_turn(core_t *self);
/*  Between two steps: the algorithm, and a replay, are told what came of those that are queued. TT_DIVERGED: one could not be taken. */
tt_status_t update_settle(core_t *self);

/*  state.c: between the process and a snapshot. Capture borrows from self until it next serves; release frees scratch. It fails as the device
 *  does, or as update_settle; then nothing is there to release. */
typedef enum {
    STATE_REPLAY_SINCE,  /* batches from `since` on: for who has the others, or with 0 has no files of ours */
    STATE_REPLAY_BESIDE, /* what is on disk is referred to (keeping.h)      */
    STATE_REPLAY_NONE
} state_replay_t;
tt_status_t state_capture(core_t *self, state_replay_t replay, uint64_t since, tt_snapshot_t *out);
void state_release(tt_snapshot_t *snapshot);
/*  What a snapshot must look like to be of use here, before tt_snapshot_read or tt_snapshot_decode. */
void state_expect(core_t *self, tt_snapshot_t *out);
/*  folder: keeping_load. */
tt_status_t state_restore(core_t *self, const tt_snapshot_t *from, const char *folder);

/*  snapshot_remote.c: a snapshot to the coordinator's run directory, and from there. They wait, and serve meanwhile: afterwards
 *  another roster may hold. TT_STOPPED: an era began, or the process is to end. TT_TIMEOUT: the coordinator is silent,
 *  for longer than patience_ms (one that is away, for longer than ten minutes, when patience_ms is more than 3 s).
 *  TT_IO: the coordinator could not. */
tt_status_t snapshot_remote_store(core_t *self, const char *name, bool best, const tt_buf_t *bytes, int patience_ms);
tt_status_t snapshot_remote_load(core_t *self, const char *path, tt_buf_t *out);
