/*  model - the job as a learner sees it: settings, algorithm, network, optimisers.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include "common/config/train.h"
#include "common/job/groups.h"
#include "common/nn/nn.h"
#include "common/rl/columns.h"
#include "learner/algorithm.h"

typedef struct {
    char *text; /* the job's resolved YAML, owned */
    tt_train_cfg_t train;
    tt_columns_t *columns; /* what a row of experience consists of, owned */
    const tt_algorithm_t *algorithm;
    void *cfg; /* the algorithm's options, owned */
    tt_algorithm_shape_t shape;
    tt_algo_t *algo;
    tt_device_t *device;
    tt_stream_t *stream;
    tt_net_t *net;
    tt_groups_t groups; /* their names; a lone one has none   */
    uint32_t opts;      /* one for each group                 */
    tt_opt_t *opt[TT_TOWERS_MAX];
    size_t opt_count[TT_TOWERS_MAX]; /* floats of their states             */
    size_t params, grads;            /* floats of a set, of a gradient     */
    uint32_t threads;
    uint64_t batch_steps; /* T * N */
} model_t;

/*  Build all of it from the YAML of WELCOME; place: our number, by which a card is taken. TT_CONFIG and others: nothing is left to close. */
tt_status_t model_open(model_t *self, const char *text, uint32_t place);
void model_close(model_t *self);
/*  Would it be refused? Without making anything large. */
tt_status_t model_check(const char *text);

/*  Version 0: fresh weights, optimisers at rest. */
tt_status_t model_init(model_t *self, tt_progress_t progress);
