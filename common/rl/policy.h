/*  policy - from a network's head to actions: one distribution for each element of the action space, all independent.
 *
 *  Parts: each discrete element is a categorical over its choices, each float a Gaussian. A row's head
 *  is, part by part in the order of the action's columns: logits of every choice of every element, or means. log_std: the
 *  floats of all Gaussian parts, in order, the same for all rows; or, of columns with state_std, each row's own, which
 *  stand at the end of its head and are held within TT_LOG_STD_LEAST and TT_LOG_STD_MOST; with no_std there are none, and nothing is sampled. The log-probability of an action is the sum over
 *  parts, in order, of the sums over their elements, in order.
 *  Masks:   [rows][mask_bits] bytes, 1 = allowed, choices in the order of the head; NULL = all are. A choice that is not allowed
 *           has probability 0, to the bit. A row in which an element has no allowed choice is the caller's error (vec refuses it).
 *  Draws:   as in dist.h; every choice and every four floats have a block of words of their own, numbered over all parts, so a
 *           policy of one part draws what dist.h draws.
 *  Threads: pure. */
#pragma once
#include "common/rl/columns.h"
#include "common/rl/dist.h"

typedef struct {
    bool box;        /* Gaussian; otherwise choices                                       */
    uint32_t column; /* of the list, and its number among the action's columns            */
    uint32_t number;
    bool bits;          /* multi-binary: stored as uint8_t, each a choice of 2           */
    uint32_t elements;  /* of an action                                                      */
    const uint32_t *n;  /* choices: [elements], borrowed from the columns                    */
    uint32_t head, out; /* floats of the head: first, how many                               */
    uint32_t log_std;   /* box: first float of log_std, or of a row's own                    */
    uint32_t mask;      /* choices: first byte of a row's mask                               */
    uint32_t draw;      /* its first block of words in a step (a choice takes one, four floats one) */
} tt_policy_part_t;

typedef struct {
    uint32_t parts, out, log_std, mask_bits; /* floats of a head, of log_std; bytes of a mask      */
    uint32_t own_std;                        /* the last floats of a head: the row's log_std; or 0 */
    tt_policy_part_t part[TT_COLUMNS_MAX];
} tt_policy_t;

/*  Of a list of columns, which must outlive it. */
void tt_policy_of(tt_policy_t *self, const tt_columns_t *columns);

/*  Are all parts boxes? */
bool tt_policy_boxes(const tt_policy_t *self);
/*  Is an action one choice of n, and nothing else? */
bool tt_policy_one_choice(const tt_policy_t *self);

/*  action[i]: array of rows of action column i, as stored: int32_t, uint8_t (multi-binary) or float. */
void tt_policy_sample(const tt_policy_t *self, const float *head, const float *log_std, const uint8_t *mask,
    size_t rows, const tt_dist_draw_t *draw, void *const *action, float *log_prob);
/*  The most probable: of equals the lowest choice; means. */
void tt_policy_greedy(
    const tt_policy_t *self, const float *head, const uint8_t *mask, size_t rows, void *const *action);
/*  The same of one choice by q[rows][n], what each is worth; but with probability epsilon[row] any choice that is allowed, all
 *  alike. Of the block of words of the row's choice the first says whether, the second which. */
void tt_policy_explore(const tt_policy_t *self, const float *q, const uint8_t *mask, size_t rows, const float *epsilon,
    const tt_dist_draw_t *draw, int32_t *action);
/*  Of boxes alone: numbers that are even within -1 and 1 once they have been squashed, each from the words that sampling it would take. */
void tt_policy_any_squashed(const tt_policy_t *self, size_t rows, const tt_dist_draw_t *draw, void *const *action);
/*  Of boxes alone: tanh of the mean and, from the words that sampling it would take, normal noise of deviation sigma, cut short of -1 and 1; as the
 *  number whose tanh that is, within about 7.3. */
void tt_policy_noisy_mean(const tt_policy_t *self, const float *head, size_t rows, float sigma,
    const tt_dist_draw_t *draw, void *const *action);
/*  log_prob[rows] of given actions. */
void tt_policy_log_prob(const tt_policy_t *self, const float *head, const float *log_std, const uint8_t *mask,
    size_t rows, const void *const *action, float *log_prob);
