/*  algorithm - what a learning algorithm must offer. One file each in learner/algorithms/, one line in
 *  learner/algorithms/algorithms.def.
 *
 *  An update: begin (advantages and targets from the batch), then for step = 0 .. steps-1: minibatch (which rows, which
 *  loss, what it reads), the learner computes shard gradients and sums them along the fixed tree, has the groups that are trained
 *  take a step of their optimisers, then
 *  `after` sees the summed statistics and may end the update early. Every learner of a generation makes these calls
 *  with the same arguments and must come to the same bits. A device may be steps behind: `after` is called in the steps' order, but for a
 *  step that it can end the update with (tt_minibatch_t.ends) at any time until the update ends.
 *
 *  Threads: the learner's; the loss is called from the device's threads, on disjoint rows. */
#pragma once
#include "common/base/status.h"
#include "common/config/train.h"
#include "common/nn/nn.h"
#include "common/rl/policy.h"
#include "learner/replay/replay.h"

/*  The experience of one update, assembled: row r = t * N + env. log_prob and the values are NULL where acting estimates
 *  neither (common/rl/columns.h). */
typedef struct {
    uint64_t update;             /* n: batch n makes version n + 1                                      */
    uint64_t env_steps;          /* consumed before this batch                                          */
    uint32_t T, N, D;            /* steps, envs, numbers of an observation as the network reads it      */
    const tt_columns_t *columns; /* what a row consists of                                              */
    bool stale;                  /* behaviour version < n: values and log-probs may be recomputed       */
    const void *const *obs;      /* [T*N] -> rows as the network reads them, normalised (columns.h); where they are
                                           stacked, [T*N][frames], oldest first (what a replay feeds: not read) */
    const void *const *last;     /* [N] -> the same of the observation after step T                     */
    const void *action[TT_COLUMNS_MAX]; /* of each action column, as stored: [T][N][elements] (unclipped)  */
    const uint8_t *mask;                /* [T][N][columns->mask_bits], NULL = the env has none                 */
    const float *reward;                /* [T][N] normalised                                                   */
    const uint8_t *terminated;          /* [T][N]                                                              */
    const uint8_t *truncated;           /* [T][N]                                                              */
    const float *log_prob;              /* [T][N] of the behaviour policy                                      */
    const float *value;                 /* [T][N] of the behaviour version                                     */
    const float *last_value;            /* [N]    of the behaviour version                                     */
    uint32_t finals;                    /* truncations inside the batch                                        */
    const uint32_t *final_row;          /* [finals] ascending row numbers                                      */
    const void *const *final_obs;       /* [finals] -> rows as `obs`                                           */
    const float *final_value;           /* [finals] of the behaviour version                                   */
    const void *const *
        carry; /* [N] -> what the policy carried into the first step, float[columns->carry]; NULL: it remembers nothing */
    const uint8_t *begins; /* [T][N] an episode begins with this row; NULL: as above              */
} tt_batch_t;

/*  Rows of a batch that a network can be asked about. */
typedef enum { TT_ROWS_OBS, TT_ROWS_LAST, TT_ROWS_FINAL } tt_batch_rows_t;

/*  The network as it is when an update begins: set 0, version n. */
typedef struct {
    void *ctx;
    /*  Heads of all those rows on the host: out[tower][rows][A], NULL = not wanted. Of a recurrent network LAST and FINAL follow a call of OBS, from
     *  where these have what they carry. */
    tt_status_t (*forward)(void *ctx, tt_batch_rows_t which, float *const *out);
    /*  log_std of a tower. */
    tt_status_t (*log_std)(void *ctx, uint32_t tower, float *out);
} tt_evaluator_t;

/*  Where a run stands when a step is described. */
typedef struct {
    uint64_t update;
    uint64_t rows;                 /* env steps inserted, this update's too                      */
    uint64_t total;                /* REPLAY: steps sampled before this one                      */
    uint32_t step;                 /* of this update                                             */
    const replay_t *replay;        /* REPLAY; NULL: BATCH                                        */
    const replay_sample_t *sample; /* REPLAY: the units of this step, by position; NULL: BATCH   */
} tt_at_t;

/*  p_to = fma(tau, p_from - p_to, p_to) in the groups of the mask. */
typedef struct {
    uint8_t to, from; /* sets */
    uint32_t groups;
    float tau;
} tt_blend_t;

enum { TT_BLENDS_MAX = 4 };

/*  A table that a loss reads: rows side by side on the host, numbered as the minibatch's. bytes 0: there is none. */
typedef struct {
    const void *at;
    size_t bytes; /* of a row                                                          */
    bool single;  /* one row, the same for all                                         */
} tt_input_t;

/*  A step as data. Nothing in it is an address on a device: what it names lies on the host, and the learner brings it there. */
typedef struct {
    const uint32_t
        *row;      /* BATCH: [rows] row numbers of the batch in the order of the minibatch. REPLAY: NULL, the units as
                            sampled; their numbers in the loss are positions, 0 .. units - 1; of sequences those of their rows that
                            are trained on, step * units + position      */
    uint32_t rows; /* cut into learner.shards runs, equal ones but for sequences               */
    uint32_t
        length; /* of a recurrent network: row is [rows / length][length], all steps of one env after another; the shards are runs of envs, and
                    need not be equal. REPLAY: the feed's. 0: nothing recurs                                 */
    const tt_objective_t *objective;
    const void *params; /* of the loss, plain data */
    size_t params_size;
    uint32_t inputs;
    tt_input_t input
        [TT_INPUTS_MAX]; /* BATCH: the same in all steps of an update. REPLAY: by position, or step * units + position */
    uint32_t train;      /* groups that take a step, bit g is group g; the others stay as they are   */
    float lr[TT_TOWERS_MAX]; /* of each of them                                                          */
    uint32_t blends;
    tt_blend_t blend[TT_BLENDS_MAX]; /* after the optimisers' steps, in order                       */
    bool ends;                       /* `after` may end the update with this step                   */
} tt_minibatch_t;

/*  What a step came to; borrowed for the call. */
typedef struct {
    uint32_t trained;   /* groups that took a step, bit g is group g                           */
    const float *stats; /* [TT_LOSS_STATS] summed over the minibatch                           */
    const float *ride;  /* [ride] what rode on the sum                                         */
    const float *norm;  /* [groups] of their gradients before clipping; 0 of those not trained */
} tt_result_t;

/*  A number for the metrics, under the names that CleanRL and SB3 users know: "losses/policy_loss". */
typedef void (*tt_metric_fn)(void *ctx, const char *name, double value);

typedef enum {
    TT_FEED_BATCH, /* the rows of one batch, once it is complete: on-policy            */
    TT_FEED_REPLAY /* units sampled from all rows so far, as far as they are kept      */
} tt_source_t;

/*  Where its frames are read from: a device's memory if it has one of its own and room, which needs no choice; or only the host's; or
 *  that of both, whatever the device is. In the order of the choices of replay.memory. */
typedef enum { TT_MEMORY_AUTO, TT_MEMORY_HOST, TT_MEMORY_BOTH } tt_memory_t;

/*  Where experience comes from. All but `source`: REPLAY only. */
typedef struct {
    tt_source_t source;
    uint64_t capacity; /* logical bytes of rows that are kept                              */
    uint32_t ahead;    /* steps of an n-step return, at most                               */
    uint32_t units;    /* of a step                                                        */
    uint32_t shift;    /* places by which pictures are shifted at random, at most; 0: none; no sequences */
    uint32_t length;   /* rows of a sequence that are trained on; 0: units are rows        */
    uint32_t burn;     /* rows before them, from which the network gets what it remembers  */
    float eta;         /* |error| of a sequence: so much of its rows' largest, the rest of their mean */
    float alpha,
        epsilon; /* priority = (|error| + epsilon) ^ alpha, of what rides on a step's sum, one float a unit or a row of
                                sequences; alpha 0 = uniform */
    float beta, beta_end;    /* weights ^ -beta, from the one to the other in a straight line ...*/
    uint64_t beta_rows;      /* ... over so many rows inserted                                   */
    uint32_t priority_delay; /* steps after which a step's new priorities count                  */
    bool save;               /* snapshots have it too                                            */
    tt_memory_t memory;      /* where its frames are                                             */
    uint64_t start;          /* rows before the first step                                       */
    uint32_t every, steps;   /* so many steps for every so many rows                             */
} tt_feed_t;

/*  What the rest of the system has to know of an algorithm, as data. All zeros: an on-policy actor-critic. */
typedef struct {
    tt_actor_t actor; /* how collectors act; becomes the keys actor.*                */
    tt_feed_t feed;
    uint32_t sets;     /* copies of the parameters: set 0 is trained, others follow it; 0 = 1 */
    uint32_t ride;     /* floats that the loss wants added up beside a gradient               */
    uint32_t forwards; /* of a row that is trained on, all stages of the objective; 0 = 1     */
} tt_algorithm_shape_t;

typedef struct tt_algo tt_algo_t; /* an instance; opaque, each algorithm's own */

typedef struct tt_algorithm {
    const char *name;             /* "ppo"                                     */
    const char *summary;          /* one line for `tutti algorithms`           */
    const tt_cfg_field_t *fields; /* keys "algorithm.<option>"                 */
    size_t cfg_size;              /* of the struct that `fields` fills         */
    bool sequences; /* it trains networks that remember: its minibatches have a length where columns->carry is not 0 */

    /*  Rules between keys: TT_CONFIG with the key's origin. NULL: there are none. Called by tt_algorithm_check. */
    tt_status_t (*check)(const tt_config_t *config, const tt_train_cfg_t *train, const void *cfg);

    /*  Fill in what differs from zeros (*out comes as those). A pure function of settings that are each in range, but not yet
     *  checked against one another. NULL: an on-policy actor-critic. */
    void (*shape)(const tt_train_cfg_t *train, const void *cfg, tt_algorithm_shape_t *out);

    /*  columns: what a row consists of; outlives the instance. */
    tt_status_t (*create)(
        tt_algo_t **self_p, const tt_train_cfg_t *train, const tt_columns_t *columns, const void *cfg);
    void (*destroy)(tt_algo_t **self_p);

    float (*head_gain)(
        const void *cfg); /* of the tower "actor" or "q" (dueling: "advantage", of quantiles: those); others have 1 */
    float (*log_std0)(const void *cfg);
    double (*gamma)(const void *cfg); /* discount, for reward normalisation   */
    /*  Of each group: actor.groups of `shape` says which there are. */
    const tt_opt_spec_t *(*opt)(const tt_algo_t *self, uint32_t group);

    /*  BATCH: optimiser steps of one update at most (epochs x minibatches). REPLAY: NULL, as `begin`: the feed says it. */
    uint32_t (*steps)(const tt_algo_t *self);
    /*  Take a batch; borrowed until the next begin. net: for the length of the call. */
    tt_status_t (*begin)(tt_algo_t *self, const tt_batch_t *batch, const tt_evaluator_t *net);
    /*  Describe an optimiser step; may depend only on `at`, and on the batch or the replay, not on what `after` was told. Callable again for the
     *  same step. What *out points to lasts until the next call. */
    tt_status_t (*minibatch)(tt_algo_t *self, const tt_at_t *at, tt_minibatch_t *out);
    /*  Returns true to end the update after this step, if that was said of it. */
    bool (*after)(tt_algo_t *self, uint32_t step, const tt_result_t *result);
    /*  Metrics of the update that just ended; where it made no step, of the one before. */
    void (*metrics)(const tt_algo_t *self, tt_metric_fn emit, void *ctx);
} tt_algorithm_t;

/*  Rules between keys, those that hold for all algorithms and its own: TT_CONFIG with the key's origin. */
tt_status_t tt_algorithm_check(
    const tt_algorithm_t *self, const tt_config_t *config, const tt_train_cfg_t *train, const void *cfg);
/*  What it says of itself, whether or not it has the hook. cfg: as its fields fill it. */
tt_algorithm_shape_t tt_algorithm_shape(const tt_algorithm_t *self, const tt_train_cfg_t *train, const void *cfg);

/*  All algorithms; find by name, TT_NOT_FOUND names the nearest. */
const tt_algorithm_t *const *tt_algorithms(size_t *count);
/*  Version 0 of a network, with the algorithm's gains (tt_net_init). */
tt_status_t tt_algorithm_init(const tt_algorithm_t *algorithm, const void *cfg, tt_net_t *net, tt_stream_t *stream,
    uint64_t seed, tt_progress_t progress);
tt_status_t tt_algorithm_find(const tt_algorithm_t **out, const char *name);
