/*  digest - a STATS as it goes on from the coordinator: with what the members' heartbeats say of their time and memory,
 *  what holds the run up, and the newest evaluation. For metrics.jsonl, event files and whoever watches.
 *
 *  Threads: the coordinator's. */
#pragma once
#include "coordinator/bottleneck.h"
#include "coordinator/evaluations.h"

enum { DIGEST_METRICS = 160 };

struct coordinator;

/*  What is known now of every role, and of all. */
typedef struct {
    usage_mean_t role[3]; /* collector, learner, aggregator: members of the newest roster */
    uint64_t memory;      /* of all of them, bytes; 0 = not known                           */
    double cpus;          /* that all of them keep busy; 0 = not known                      */
    char bottleneck[256]; /* "" = not known                                                 */
} digest_facts_t;
extern const char *const digest_roles[3];
void digest_facts(const struct coordinator *self, digest_facts_t *out);

/*  The STATS with more in it. Borrows from `said` and from itself: do not copy it. */
typedef struct {
    tt_msg_STATS_t stats;
    digest_facts_t facts;
    tt_rec_METRIC_t metric[DIGEST_METRICS];
    char name[3 * USAGE_STAGES + 2 + EVALUATIONS_METRICS][64];
} digest_t;
void digest_stats(const struct coordinator *self, const tt_msg_STATS_t *said, digest_t *out);
