/*  usage - what a member's time, processors and memory go to, as its heartbeats say: shares over the last of them.
 *
 *  Heartbeats count from the start of the process, so that one that is lost loses nothing. Numbers and names come from
 *  other processes: what is no sensible number, or no plain name, is left out.
 *
 *  Threads: plain data; the coordinator's. */
#pragma once
#include "common/wire/msg.h"

enum { USAGE_STAGES = 16, USAGE_NAME = 32, USAGE_WINDOW = 8 };

/*  A part of the time: 0 .. 1, all parts of one member add up to 1. */
typedef struct {
    char name[USAGE_NAME];
    double share;
} usage_share_t;

typedef struct {
    uint64_t memory; /* resident bytes; 0 = not known */
    size_t stages, samples;
    char name[USAGE_STAGES][USAGE_NAME];
    struct {
        double cpu_s, spent[USAGE_STAGES];
    } window[USAGE_WINDOW]; /* a ring */
} usage_t;

void usage_beat(usage_t *self, const tt_msg_HEARTBEAT_t *beat);

/*  Where the time went over the window; the number of shares, 0 = it has not said yet. */
size_t usage_shares(const usage_t *self, usage_share_t out[USAGE_STAGES]);
/*  Processors it kept busy over the window; 0 = not known. */
double usage_cpus(const usage_t *self);

/*  The mean of several members' shares, stage by stage, in the order in which the first has them. */
typedef struct {
    size_t members, count;
    double cpus;     /* all of them together */
    uint64_t memory; /* the same             */
    usage_share_t share[USAGE_STAGES];
} usage_mean_t;
void usage_add(usage_mean_t *mean, const usage_t *member);
/*  Of one stage; 0 = it has no such. */
double usage_of(const usage_mean_t *mean, const char *stage);
/*  Of all stages that wait. */
double usage_waits(const usage_mean_t *mean);
