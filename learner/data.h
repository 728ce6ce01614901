/*  data - the way of a batch through a learner: segments come in, are assembled, trained on with the others, and published.
 *
 *  data.c alone writes data_t. What its pointers lead to is owned likewise, by intake.c, batch.c and so on: whoever has
 *  something for it calls the functions of its header. Open from WELCOME on.
 *  Threads: the learner's. */
#pragma once
#include "learner/allreduce.h"
#include "learner/ask.h"
#include "learner/batch.h"
#include "learner/compute.h"
#include "learner/intake.h"
#include "learner/memory.h"
#include "learner/model.h"
#include "learner/publish.h"

typedef struct {
    ask_t *ask; /* for what is missing */
    intake_t *intake;
    batch_t *batch;
    tt_batch_t current; /* the batch in hand, assembled: while the update has begun */
    memory_t *memory;   /* NULL: what is trained on is the batch in hand */
    compute_t *compute;
    allreduce_t *allreduce;
    publish_t *publish;
    float *resume; /* [params] weights now, when they are ahead of version n (a joiner before it has begun); or NULL */
} data_t;

/*  How we reach others. */
typedef struct {
    tt_loop_t *loop; /* borrowed */
    const tt_keys_t *keys;
    uint32_t index; /* of this learner */
    uint64_t instance;
    const tt_clock_t *clock;
    tt_memfd_t *memory; /* that others on this host may read; borrowed, as exchange_cfg_t's */
    const char *dir;    /* of this host's sockets; "" = none                                */
} data_net_t;

/*  model is borrowed. TT_CONFIG: the algorithm's feed is out of limits; TT_UNSUPPORTED: the device has no room for what it asks for. What is open is
 *  closed by data_close. */
tt_status_t data_open(data_t *self, const model_t *model, const data_net_t *net);
void data_close(data_t *self);
/*  A new era: nothing has come, nothing is published. */
void data_reset(data_t *self);

/*  Make `current` of batch `update`, which is complete; `env_steps`: of the envs, before it. */
void data_assemble(
    data_t *self, uint64_t update, uint64_t env_steps, const tt_norm_t *obs_norm, const tt_norm_t *reward_norm);
/*  Keep these weights for when the update has begun; NULL: none, forget those that were kept. */
void data_resume(data_t *self, const float *params, size_t count);
