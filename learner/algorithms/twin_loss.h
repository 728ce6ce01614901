/*  twin_loss - what losses of an actor and two critics have in common, those of sac_loss.h and td3_loss.h: tables, stages, statistics.
 *  Threads: pure. */
#pragma once
#include "common/nn/loss.h"

/*  The tables that all of them read, by position in the minibatch. */
enum {
    TWIN_IN_ACTION,   /* [numbers] floats: the row's action, within -1 and 1 */
    TWIN_IN_NOISE,    /* [numbers] floats: standard normals                  */
    TWIN_IN_RETURN,   /* float, of both                                      */
    TWIN_IN_DISCOUNT, /* of what follows                                     */
    TWIN_IN_WEIGHT,   /* of a unit, so that the sum is a mean over the replay */
    TWIN_INPUTS
};

/*  What the parameters of each of these losses, and of their draws, begin with. */
typedef struct {
    uint32_t numbers; /* of an action */
    float scale;      /* 1 / units    */
} twin_loss_t;

/*  The stages of the critics' objective; the first is drawn from. */
enum { TWIN_NEXT, TWIN_Q1_NEXT, TWIN_Q2_NEXT, TWIN_Q1_AT, TWIN_Q2_AT, TWIN_CRITIC_STAGES };

/*  And its places in the statistics; each is a mean over the minibatch once all shards are summed. */
enum { TWIN_CRITIC_LOSS, TWIN_Q, TWIN_TARGET, TWIN_CRITIC_STATS };
