/*  state - the coordinator's own: what its loop's thread owns, shared by the files of this folder and nobody else.
 *
 *  Threads: the coordinator's. */
#pragma once
#include "common/config/train.h"
#include "common/net/net.h"
#include "coordinator/control.h"
#include "coordinator/progress_log.h"
#include "coordinator/ends.h"
#include "coordinator/http.h"
#include "coordinator/journal.h"
#include "coordinator/evaluations.h"
#include "coordinator/metrics.h"
#include "coordinator/observers.h"
#include "coordinator/progress.h"
#include "coordinator/replicas.h"
#include "coordinator/restore.h"
#include "coordinator/roster.h"
#include "coordinator/tensorboard.h"
#include "coordinator/snapshot_store.h"

enum { ENDED_MAX = 64 };

/*  A member whose process is known to have ended. What it said last (why it failed, its last snapshot) came on another
 *  connection than the news of its end, and may be read after it. */
typedef struct {
    char identity[64];
    tt_peer_role_t role;
    uint32_t index, era;
    bool led; /* was rank 0, in that era */
    bool did; /* its part: had weights, or made steps */
} ended_t;

/*  Snapshots that could not be made. */
typedef struct {
    uint64_t total; /* in the coordinator's life                    */
    uint64_t row;   /* since the newest that was; 0 = all is well   */
    int64_t since_ns;
    char why[1024]; /* the newest of them, for a person */
} unsaved_t;

struct coordinator {
    const char *run_dir; /* borrowed from the options; absolute in `root`                     */
    const char *key;     /* borrowed, NULL = RUN_DIR/key                                      */
    const char *token;   /* borrowed, NULL = RUN_DIR/token                                    */
    bool alone, again;   /* coordinator_opts_t                                                */
    progress_log_t progress_log;
    char root[4096];
    char host[256];
    char *config_text; /* the job's resolved YAML                                            */
    tt_train_cfg_t cfg;
    const tt_clock_t *clock;
    int64_t start_ns;
    char boot[40];    /* whose CLOCK_MONOTONIC start_ns is of, "" = not known                    */
    bool new_clock;   /* the journal's times were another boot's                               */
    double started_s; /* of this process, since 1970; start_ns is of the run's */
    tt_loop_t *loop;
    control_t *control;
    observers_t *observers;
    roster_t *roster;
    replicas_t *replicas;
    uint32_t replaced;        /* replicas found silent                           */
    char replaced_last[320];  /* the last of them, for a person; "" = none       */
    ended_t ended[ENDED_MAX]; /* a ring of the newest */
    size_t ended_count;
    journal_t *journal;
    progress_t progress;
    journal_snapshot_t snapshot; /* newest; path "" = none                                             */
    uint32_t snapshots;
    unsaved_t unsaved;
    restore_t restore;
    snapshot_store_t snapshot_store;
    ends_t ends;
    int signals;                /* file descriptor */
    int64_t checked_ns;         /* last look for processes that do not get on */
    int64_t lenient_until_ns;   /* nobody is said before not to get on        */
    int64_t lonely_ns;          /* since when nobody has taken part           */
    metrics_t *metrics;         /* NULL until the first roster or STATS */
    tensorboard_t *tensorboard; /* the same                             */
    evaluations_t *evaluations; /* what eval.every brings               */
    int64_t written_ns;         /* when these were last flushed         */
    http_t *http;               /* NULL = not yet, or switched off          */
    int64_t http_due_ns;        /* when it is to be started */
    bool http_missing;          /* there is no library for it */
    bool waiting_told;          /* EVENT waiting              */
};
typedef struct coordinator coordinator_t;

/*  Most replicas of a role that can be asked for. */
uint32_t coordinator_most(const coordinator_t *self, tt_peer_role_t role);
/*  SCALE with desired and ready counts; records[3] is the caller's, names are static. */
void coordinator_counts(const coordinator_t *self, tt_rec_COUNT_t records[3]);
void coordinator_tell_counts(coordinator_t *self);
/*  Aggregators follow the learners. */
tt_status_t coordinator_fit_aggregators(coordinator_t *self);
/*  A STATS that counts: to metrics.jsonl and the event file. */
tt_status_t coordinator_write_stats(coordinator_t *self, const tt_msg_STATS_t *stats);
/*  How a version did: to evaluations.jsonl and the event file, once. */
tt_status_t coordinator_write_evaluation(coordinator_t *self, const tt_msg_EVALUATED_t *evaluated);
