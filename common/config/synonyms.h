/*  synonyms - what other trainers call our settings, so that who writes their word is told ours.
 *
 *  One table: synonyms.c. A word is no alias: the config is refused, and the message says what to write, with the
 *  conversion where the meaning differs. Sources: Stable-Baselines3 and its Zoo, CleanRL's ppo.py and dqn.py, RLlib's
 *  PPOConfig and DQNConfig, Sample Factory's arguments, DI-engine's policy configs.
 *
 *  Threads: constant. */
#pragma once
#include <stddef.h>

typedef struct {
    const char *word; /* last part of a key path, in lower case with '_': "clip_range"; or more of them: "eps.start" */
    const char *ours; /* our whole key: "algorithm.clip"; NULL = there is none         */
    const char *note; /* how the meaning differs, or why there is none; NULL = the same */
} tt_synonym_t;

/*  Of a key path: its last part decides, whatever stands before it ("policy.learn.clip_ratio"), and as a command line
 *  may have it ("--clip-range"). NULL: no such word. */
const tt_synonym_t *tt_synonym(const char *key);

/*  What an algorithm of others is here, in words: "ppo with network.rnn: lstm" of "RecurrentPPO". NULL: no such word. */
const char *tt_synonym_algorithm(const char *name);

/*  What is said, besides, of a value that our key does not take and another trainer's does: of "auto" for
 *  algorithm.entropy_coef. NULL: nothing. */
const char *tt_synonym_value(const char *key, const char *text);

/*  The whole table. */
const tt_synonym_t *tt_synonyms(size_t *count);
