/*  ending - how a learner's part in a run ends: the run is over, or the process goes while the run goes on.
 *
 *  ending.c alone writes it; everyone else reads.
 *  Threads: the learner's. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    /* the run: over at the version at hand, once there is a reason */
    const char *reason; /* a stop rule holds, or the coordinator asked to finish; NULL = it goes on */
    char asked[256];    /* the coordinator's own */
    bool finish;        /* it asked to finish: at the next version */
    bool reported;      /* EVENT finished was sent */
    /* the process */
    bool leave;          /* end it */
    bool draining;       /* asked the coordinator to let us go */
    int64_t draining_ns; /* since when */
    bool farewell;       /* the last learner was asked to leave: a checkpoint first */
} ending_t;

/*  A new era: the run is not over any more. What the coordinator and signals asked for stays asked. */
void ending_reset(ending_t *self);
/*  A stop rule holds (NULL: none does). The first reason stays. */
void ending_rule(ending_t *self, const char *rule);
/*  The batch by which a rule held is another one now, and the rules are looked at again. What was asked for stays. */
void ending_retract(ending_t *self);
/*  The coordinator's STOP: finish, or end the process. */
void ending_ask(ending_t *self, const char *reason, bool finish);
/*  Between updates: what was asked for is due. */
void ending_boundary(ending_t *self);
void ending_report(ending_t *self);
/*  false: it was said before. */
bool ending_leave(ending_t *self);
/*  A signal; alone: nobody else holds the weights. */
void ending_drain(ending_t *self, int64_t now_ns, bool alone);
/*  The farewell was said. */
void ending_bid(ending_t *self);
