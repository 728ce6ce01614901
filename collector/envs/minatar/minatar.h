/*  minatar - what MinAtar's five games share: the board, the arguments, sticky actions, how randomness is asked for.
 *
 *  MinAtar: Young & Tian, arXiv:1903.03176. The games here are our own, from the rules as the paper and gymnax
 *  (RobertTLange/gymnax, Apache-2.0) tell them and from what the package MinAtar 1.0.15 shows from outside; nothing of
 *  its text is in them. tests/collector/test_minatar.c holds them to its observations, step by step.
 *
 *  A game is a file: a game_t that is plain data, the functions that table.h names, and an #include of table.h, which
 *  makes the two tables of it: -v0 with all six actions, -v1 with those that do something. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "collector/env.h"

enum { SIDE = 10, CELLS = SIDE * SIDE };

typedef enum { NOTHING, LEFT, UP, RIGHT, DOWN, FIRE, MINATAR_ACTIONS } minatar_action_t;

/*  The arguments, as the game reads them. */
typedef struct {
    uint64_t sticky; /* of 2^32: how often the last action is made again */
    uint64_t ramping;
} minatar_args_t;

/*  What a step of a game comes to. */
typedef struct {
    double reward;
    bool terminated;
} minatar_end_t;

const char *minatar_init(minatar_args_t *self, const tt_env_arg_t *args);
extern const tt_env_option_t minatar_options[];

/*  --- randomness: one word a draw, so that a test can say what is drawn --- */

#define MINATAR_HALF  UINT64_C(0x80000000)
#define MINATAR_THIRD UINT64_C(0x55555555)

/*  True in `part` of 2^32 cases. */
static inline bool minatar_chance(tt_env_rng_t *rng, uint64_t part)
{
    return rng->next(rng) < part;
}

/*  0 to n - 1. The words do not divide evenly: for n <= 10 a choice is off by less than 1e-8. */
static inline uint32_t minatar_below(tt_env_rng_t *rng, uint32_t n)
{
    return (uint32_t)(((uint64_t)rng->next(rng) * n) >> 32);
}

/*  --- the board: obs[y][x][channel] --- */

static inline bool minatar_on_board(int x, int y)
{
    return x >= 0 && x < SIDE && y >= 0 && y < SIDE;
}

static inline void minatar_mark(uint8_t *obs, int channels, int x, int y, int channel)
{
    obs[(y * SIDE + x) * channels + channel] = 1;
}

/*  A step to one side, -1 or 1, that stays within low and high. */
static inline int minatar_moved(int at, int by, int low, int high)
{
    at += by;
    return at < low ? low : at > high ? high : at;
}
