/*  turn - whose turn it is: rounds of a worker, ordered and answered by counters in the memory that it shares with its collector (rows.h), without
 *  a system call where both are awake. The worker's side is python/tutti_env/turn.py.
 *
 *  Who waits looks for a moment, giving its core to whoever wants it; then it says that it sleeps, looks once more, and waits for a byte on
 *  the socket, which the other one writes who finds it asleep. All that is written and read here is so in one order for
 *  everybody (seq_cst, which C's atomics are unless they say otherwise; Python's side has fences), so that no two miss each other.
 *
 *  What a worker writes here decides nothing but when its rows are looked at.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "collector/gym/rows.h"

/*  Of one worker. */
typedef struct {
    gym_post_t *post;            /* NULL = it has no rows yet; borrowed                     */
    gym_bell_t *bell;            /* ours, one for all; borrowed                              */
    uint32_t slots[2], asked[2]; /* of each half: how many, and rounds in this range         */
    bool plays[2];               /* its round is under way                                    */
    int64_t since_ns[2];         /* since when                                                */
    int64_t step_ns;             /* that a slot took of the last round, 0 = none was finished */
    uint32_t came;               /* the half whose round was taken last                       */
} gym_turn_t;

/*  Other rows, in which nothing was asked yet. slots: of each half. */
void gym_turn_begin(gym_turn_t *self, const gym_rows_t *rows, uint32_t worker, const uint32_t slots[2]);
/*  Order a round of a half of which none is under way. true: it sleeps, and is to be woken. */
bool gym_turn_ask(gym_turn_t *self, uint32_t half);
/*  Some round is under way. */
bool gym_turn_plays(const gym_turn_t *self);
/*  Some round is over. */
bool gym_turn_is_over(const gym_turn_t *self);
/*  Take one that is over: `came` is its half. false: there is none. */
bool gym_turn_take(gym_turn_t *self);
/*  Its steps are so short that to be woken would cost more than to look for its answer. */
bool gym_turn_is_brisk(const gym_turn_t *self);
/*  We look for answers: nobody need make room for us. */
void gym_turn_look(gym_bell_t *bell);
/*  If it plays: a byte is to come with its answer, or no longer. After sleep answers are to be looked for once more, and then slept. */
void gym_turn_sleep(gym_turn_t *self);
void gym_turn_wake(gym_turn_t *self);
