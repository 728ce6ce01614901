/*  off_policy_options - the settings of algorithms that learn from a replay: how often, from how much, and what of it is kept. As
 *  common_options, with which they begin, each is written once.
 *
 *  Threads: read-only. */
#pragma once
#include "common/base/shift.h"
#include "common/config/train.h"
#include "learner/algorithm.h"
#include "learner/algorithms/common_options.h"

/*  The first member of an algorithm's settings. */
typedef struct {
    common_cfg_t common;
    uint32_t batch_size, n_step;
    uint64_t learning_starts; /* env steps   */
    uint32_t train_every, gradient_steps;
    float tau;
    uint32_t random_shift; /* pixels */
    uint64_t capacity;     /* transitions */
    bool save;
    int memory; /* tt_memory_t */
} off_policy_cfg_t;

#define OFF_POLICY_CAPACITY_MAX 2e9 /* rows: within REPLAY_ROWS_MAX */

_Static_assert((uint64_t)OFF_POLICY_CAPACITY_MAX <= REPLAY_ROWS_MAX, "a replay holds what the key may say");

/*  Entries of a table of settings. */
#define OFF_POLICY_BATCH_SIZE(DEFAULT)                                                                            \
    {                                                                                                             \
        "algorithm.batch_size", TT_CFG_U32, offsetof(off_policy_cfg_t, batch_size), DEFAULT, 1, REPLAY_UNITS_MAX, \
            .help = "transitions of an optimizer step; with network.rnn: sequences"                               \
    }

#define OFF_POLICY_N_STEP                                                                             \
    {                                                                                                 \
        "algorithm.n_step", TT_CFG_U32, offsetof(off_policy_cfg_t, n_step), "1", 1, REPLAY_AHEAD_MAX, \
            .help = "rewards of a return before the target network goes on"                           \
    }

#define OFF_POLICY_TAU(DEFAULT)                                                                       \
    {                                                                                                 \
        "algorithm.tau", TT_CFG_F32, offsetof(off_policy_cfg_t, tau), DEFAULT, 1e-6, 1,               \
            .help = "how far target networks follow; 1 = to the trained ones", .resume = TT_CFG_GIVEN \
    }

#define OFF_POLICY_RANDOM_SHIFT                                                                                   \
    {                                                                                                             \
        "algorithm.random_shift", TT_CFG_U32, offsetof(off_policy_cfg_t, random_shift), "0", 0, TT_SHIFT_MAX,     \
            .help = "shift the picture that the encoder reads by up to so many pixels each way, edges repeated, " \
                    "whenever it is trained on (DrQ: 4); 0 = off",                                                \
            .resume = TT_CFG_GIVEN                                                                                \
    }

#define OFF_POLICY_STEPS(STARTS, EVERY)                                                                     \
    {"algorithm.learning_starts", TT_CFG_U64, offsetof(off_policy_cfg_t, learning_starts), STARTS, 0, 1e15, \
        .help = "env steps before the first optimizer step, played at random"},                             \
        {"algorithm.train_every", TT_CFG_U32, offsetof(off_policy_cfg_t, train_every), EVERY, 1, 1e9,       \
            .help = "env steps for which gradient_steps are made"},                                         \
    {                                                                                                       \
        "algorithm.gradient_steps", TT_CFG_U32, offsetof(off_policy_cfg_t, gradient_steps), "1", 1, 1e6,    \
            .help = "optimizer steps for train_every env steps; of each network, where they take turns"     \
    }

#define OFF_POLICY_CAPACITY                                                                                     \
    {                                                                                                           \
        "replay.capacity", TT_CFG_U64, offsetof(off_policy_cfg_t, capacity), "1e6", 1, OFF_POLICY_CAPACITY_MAX, \
            .help = "transitions that are kept; the oldest batches go first"                                    \
    }

#define OFF_POLICY_STORAGE                                                                                             \
    {"replay.save", TT_CFG_BOOL, offsetof(off_policy_cfg_t, save), "true",                                             \
        .help = "snapshots have it too, in files beside them; false: a resumed run begins with an empty one",          \
        .resume = TT_CFG_GIVEN},                                                                                       \
    {                                                                                                                  \
        "replay.memory", TT_CFG_ENUM, offsetof(off_policy_cfg_t, memory), "auto",                                      \
            .choices = "auto|host|both",                                                                               \
            .help = "where learners have its frames: both = in the memory of learner.device, too; auto = there if it " \
                    "is a card "                                                                                       \
                    "with room; the result is the same",                                                               \
            .resume = TT_CFG_FREE                                                                                      \
    }

/*  How an algorithm trains: so many optimiser steps for `rounds` gradient steps, of networks that take turns; and on what. */
typedef struct {
    uint32_t rounds, steps;
    uint32_t length, burn; /* of sequences (tt_feed_t); length 0: on rows */
} off_policy_form_t;

/*  Rows of a batch. */
uint64_t off_policy_batch(const tt_train_cfg_t *train);
/*  Rules between these keys. train_every times form.rounds is within a uint32_t. TT_CONFIG: with the origin of the key at fault. */
tt_status_t off_policy_check(
    const tt_config_t *config, const tt_train_cfg_t *train, const off_policy_cfg_t *cfg, off_policy_form_t form);
/*  All that is drawn is as likely as any other. Its bytes are `capacity` rows of what is stored of one: observation, mask, action, reward
 *  and both flags; of sequences with what is carried into a batch; but never less than the fewest batches that can always be drawn from take
 *  with a time limit at each row. */
tt_feed_t off_policy_feed(const tt_train_cfg_t *train, const off_policy_cfg_t *cfg, off_policy_form_t form);
