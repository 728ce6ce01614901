/*  evaluator - plays a version for a learner as `tutti eval` plays a checkpoint: same seed, same returns, to the bit.
 *
 *  The environments are the collectors'; roles do not know of one another, and here both are known.
 *  Threads: any, each game for itself. */
#pragma once
#include "learner/evaluate.h"

tt_status_t evaluator_play(const evaluate_game_t *game, evaluate_result_t *out);
