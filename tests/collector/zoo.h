/*  zoo - an env with every kind of space in its observation and in its action, and a mask. What it was told it shows again, so
 *  that a test can see both ways of every number.
 *
 *  Threads: one; zoo_fault is everybody's. */
#pragma once
#include "collector/env.h"

typedef enum {
    ZOO_SOUND,
    ZOO_BAD_CHOICE,    /* obs.choice is 3; it ends at 2           */
    ZOO_BAD_BOOL,      /* obs.bool[1] is 2                        */
    ZOO_BAD_BITS,      /* obs.pair.1[3] is 255                    */
    ZOO_BAD_WIDE,      /* obs.wide is 1e300, more than a float    */
    ZOO_NO_CHOICE,     /* nothing is allowed for action.moves[1]  */
    ZOO_NO_CHOICE_END, /* the same, in a terminated step          */
    ZOO_CUT            /* truncated by the env itself             */
} zoo_fault_t;
extern zoo_fault_t zoo_fault; /* what its next steps do */

/*  Columns in order. Of the observation: */
enum { ZOO_BITS, ZOO_BOOL, ZOO_CHOICE, ZOO_IMAGE, ZOO_LONG, ZOO_NEAR, ZOO_PAIR_0, ZOO_PAIR_1, ZOO_WIDE, ZOO_MASK };
/*  and of the action, from 0: */
enum { ZOO_A_BITS, ZOO_A_FORCE, ZOO_A_GO, ZOO_A_MOVES, ZOO_A_PUSH, ZOO_ACTIONS };

extern const tt_env_ops_t zoo_env;      /* "Zoo-v0"                     */
extern const tt_env_ops_t zoo_env_many; /* the same, with step_many too */
