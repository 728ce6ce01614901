/*  core - one learner process: its parts, where it stands in the run, and how it waits. Shared by the files that make up
 *  the role (control, feed, fetch, join, update, checkpoint, report); nobody else includes it.
 *
 *  Messages are handled only inside core_serve and core_wait, so between two of those calls nothing changes, and
 *  whenever a handler runs, weights, optimiser and position (position.h) belong together.
 *
 *  Threads: everything here belongs to the learner's thread. */
#pragma once
#include "common/base/laps.h"
#include "common/net/link.h"
#include "common/net/location.h"
#include "common/rl/episodes.h"
#include "common/rl/norm.h"
#include "learner/allreduce.h"
#include "learner/ask.h"
#include "learner/batch.h"
#include "learner/ending.h"
#include "learner/intake.h"
#include "learner/learner.h"
#include "learner/memory.h"
#include "learner/model.h"
#include "learner/pool.h"
#include "learner/position.h"
#include "learner/publish.h"
#include "learner/shards.h"
#include "learner/record.h"
#include "common/snapshot/snapshot.h"
#include "learner/stop.h"
#include "learner/view.h"

/*  Where the time goes: shares of it in heartbeats, and the metrics time/<name>_us, mean microseconds of an update. Other:
 *  before the first update, joining, after the last. */
#define CORE_PHASES(X) X(wait_batch) X(begin) X(gradients) X(wait_sum) X(apply) X(serve) X(publish) X(other)
typedef enum {
#define X(name) CORE_##name,
    CORE_PHASES(X)
#undef X
        CORE_PHASE_COUNT
} core_phase_t;

/*  A collector that attached to us. */
typedef struct {
    char peer[64];
    uint64_t instance;
    uint32_t era;
    uint64_t epoch;
} attached_t;

/*  A FETCH that has no answer yet. */
typedef struct {
    char peer[64];
    tt_msg_FETCH_t msg;
} pending_t;

typedef struct core {
    const tt_location_t *location; /* borrowed */
    const tt_clock_t *clock;       /* the location's */
    int signals_fd;
    tt_link_t *link;
    tt_loop_t *loop;
    tt_sock_t *data, *weights; /* ROUTER for segments and fetches; PUB of weights */
    char data_ipc[256], data_tcp[256], weights_ipc[256], weights_tcp[256];

    /* the job, after WELCOME */
    bool welcome;
    model_t model;
    char *run_dir;
    int64_t start_ns;
    pool_t *pool;
    shards_t *shards;
    intake_t *intake;
    batch_t *batch;
    memory_t *memory; /* NULL: what is trained on is the batch in hand */
    publish_t *publish;
    allreduce_t *allreduce;
    ask_t *ask;
    tt_episodes_t *episodes;
    tt_returns_t *returns;
    tt_norm_t *obs_norm, *reward_norm; /* scratch, loaded from a version's blocks */

    /* the newest roster */
    view_t view;
    tt_packet_t roster; /* one that came and was not acted on yet */
    bool roster_new;
    attached_t *attached;
    size_t attached_count;
    pending_t *pending;
    size_t pending_count;

    /* where we stand */
    position_t at;
    tt_batch_t current;      /* while begun                                                 */
    float *resume;           /* [params] weights now, when they are ahead of version n (a joiner before it has begun) */
    double *episodes_before; /* block of the statistics before batch n                      */
    uint64_t broken;         /* trajectories that did not go on from the batch before */
    record_t record;
    int64_t checkpoint_ns; /* of the newest checkpoint */
    int64_t stats_ns;      /* of the newest STATS, and its update */
    uint64_t stats_update;
    bool frozen;                  /* that the learning rate is 0 has been said */
    tt_packet_t composition;      /* what rank 0 makes batch `composing - 1` of (lag > 1) */
    uint64_t composing, composed; /* batches below: known; taken over                     */
    int64_t composing_ms;         /* since when it is known                               */

    int64_t served_ns; /* last look at the sockets between optimiser steps */
    tt_laps_t laps;
    int64_t told_ns[CORE_PHASE_COUNT]; /* what of laps the newest STATS and those before it held */

    /* how it ends */
    ending_t ending;
    bool again; /* another coordinator may not know what we told the one before */
    uint32_t warnings;
    uint64_t progress;
    int64_t progress_ns;
    char waiting[128]; /* what for: for the heartbeat, and the last words */
} core_t;

/*  Handle what has come; with timeout 0 just look. */
tt_status_t core_serve(core_t *self, int64_t timeout_ms);
/*  Say what we wait for, and wait for something to happen (one tick of it: call it in a loop with the condition).
 *  TT_TIMEOUT: nothing moved for twice net.stall_s; the text says who waits for what. */
tt_status_t core_wait(core_t *self, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/*  We got on: one more segment, step, version. */
void core_progress(core_t *self);
/*  The time since the lap before was spent on this. */
void core_lap(core_t *self, core_phase_t phase);
extern const char *const core_phase_names[CORE_PHASE_COUNT];
/*  Let the next heartbeat say what the time went to. */
void core_tell_laps(core_t *self);
bool core_leads(const core_t *self); /* rank 0 of a roster, with weights of its era */

/*  control.c: WELCOME, ROSTER, STOP, DRAIN, signals. */
tt_status_t control_on_link(void *ctx, int fd);
tt_status_t control_on_signal(void *ctx, int fd);
/*  Say DRAINED, and leave. */
tt_status_t control_leave(core_t *self, const char *reason);
/*  While draining: has it taken too long? Then leave. */
tt_status_t control_check_draining(core_t *self);
/*  Act on a roster that came: after the poll, so that no socket goes away under the loop. */
tt_status_t control_enter(core_t *self);

/*  feed.c: the data socket; credits and acknowledgements to collectors. */
tt_status_t feed_on_packet(void *ctx, tt_sock_t *sock, tt_packet_t *packet);
void feed_credit_all(core_t *self);
void feed_ack_all(core_t *self);
/*  A new roster: forget who is gone, answer who attached ahead of it. */
void feed_on_roster(core_t *self);

/*  fetch.c: answers to FETCH. */
void fetch_take(core_t *self, const char *peer, const tt_msg_FETCH_t *msg);
/*  Look at all that wait: called whenever an answer may have become possible. */
void fetch_retry(core_t *self);

/*  Send an answer. TT_OK: answered, or nobody is there to hear it; TT_AGAIN: not yet. gone: there will be no answer. */
tt_status_t fetch_send(core_t *self, const pending_t *to, tt_msg_FETCHED_t *answer, zmq_msg_t *frames, size_t count);
tt_status_t fetch_gone(core_t *self, const pending_t *to);

/*  compose.c: what a batch is made of, where a second copy of a segment has other bits: at lag > 1, and with envs that
 *  cannot be saved. compose_fence: may a collector's segment count? */
bool compose_fence(const core_t *self, const tt_msg_SEGMENT_t *msg);
/*  A new roster; `leader` was rank 0 before. */
tt_status_t compose_on_roster(core_t *self, uint64_t leader);
tt_status_t compose_answer(core_t *self, const pending_t *to);
bool compose_done(const core_t *self);
tt_status_t compose_turn(core_t *self);

/*  join.c: from nothing to weights: version 0, a snapshot, or the state of rank 0. */
tt_status_t join_turn(core_t *self);
/*  Drop weights and experience (a new era). */
void join_reset(core_t *self);

/*  update.c: one turn with weights: wait for the batch, train on it. */
tt_status_t update_turn(core_t *self);

/*  state.c: between the process and a snapshot. Capture borrows from self until it next serves; release frees scratch. */
void state_capture(core_t *self, tt_snapshot_t *out);
void state_release(tt_snapshot_t *snapshot);
/*  What a snapshot must look like to be of use here, before tt_snapshot_read or tt_snapshot_decode. */
void state_expect(core_t *self, tt_snapshot_t *out);
tt_status_t state_restore(core_t *self, const tt_snapshot_t *from);

/*  checkpoint.c */
tt_status_t checkpoint_when_due(core_t *self);
/*  The final one; path[4096] gets its name. Another era may have begun when it returns. */
tt_status_t checkpoint_final(core_t *self, char *path, size_t size);

/*  snapshot_remote.c: a snapshot to the coordinator's run directory, and from there. They wait, and serve meanwhile: afterwards
 *  another roster may hold. TT_STOPPED: an era began, or the process is to end. TT_TIMEOUT: the coordinator is silent,
 *  for longer than patience_ms (one that is away, for longer than ten minutes, when patience_ms is more than 3 s).
 *  TT_IO: the coordinator could not. */
tt_status_t snapshot_remote_store(core_t *self, const char *name, bool best, const tt_buf_t *bytes, int patience_ms);
tt_status_t snapshot_remote_load(core_t *self, const char *path, tt_buf_t *out);

/*  report.c: STATS and EVENT. */
void report_stats(core_t *self);
void report_event(core_t *self, const char *kind, const char *text, double value);
/*  It is solved now: noted by every learner, said by the one that leads; and said again. */
void report_solved(core_t *self);
void report_solved_again(core_t *self);
void report_finished(core_t *self, const char *checkpoint);
stop_facts_t report_facts(const core_t *self);
