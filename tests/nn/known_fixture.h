/*  known_fixture - passes in which the heads of some stages are known, of any network, and passes that give a loss the same numbers in other
 *  ways. */
#pragma once
#include "tests/nn/recurrent_fixture.h"

/*  How the loss gets a head: forwarded by the pass; known; or, with no stage, as an input. */
typedef enum { HEAD_FORWARDED, HEAD_KNOWN, HEAD_INPUT } head_how_t;

typedef struct {
    tt_objective_stage_t stage;
    head_how_t how;
    uint32_t outs;
    float *rows;       /* [rows][outs] by number, those of `table`; NULL where it is trained */
    tt_table_t *table; /* the same                                                           */
    float *log_std;    /* what is there of its tower and set                                 */
    uint32_t number;   /* of its stage in the objective                                      */
} known_head_t;

typedef struct known {
    recurrent_t world; /* of a network that does not recur without what is carried */
    const tt_net_spec_t *spec;
    rows_t next;
    tt_table_t *obs_next;
    uint32_t heads;
    known_head_t head[TT_STAGES_MAX]; /* trained ones first */
    tt_objective_t objective;         /* these three as known_choose makes them */
    tt_pass_t pass;
    const struct known *self; /* the loss's parameter */
} known_t;

/*  All heads that can be trained, then others of both frames and two sets, as many as fit, whose rows are any numbers. Sets differ where
 *  nothing recurs. The place is taken; known_close closes it. */
void known_open(known_t *self, const place_t *place, const tt_net_spec_t *spec, uint32_t sequences, uint32_t length);
void known_close(known_t *self);

/*  Other rows of a head; taken. */
void known_put(known_t *self, uint32_t head, float *rows);
/*  Trained heads are no longer: their rows are zeros. */
void known_train_nothing(known_t *self);
/*  Heads that are not trained, number i as `how` says where bit i is set and wherever they cannot be forwarded, else forwarded. Frames of
 *  which nothing is forwarded have no table of observations. */
void known_choose(known_t *self, head_how_t how, uint32_t heads);
tt_status_t known_try(known_t *self, uint32_t shards, uint32_t lo, uint32_t hi, uint32_t node, float *grad);
/*  Of all shards; free() it. */
float *known_grad(known_t *self, uint32_t shards);

/*  Which heads: all, and every other one, so that one of a view is forwarded beside one that is known. */
static const uint32_t known_masks[] = {UINT32_MAX, 0x555, 0xaaa};
/*  The gradient is `want`, to the bit. what, spec: for the message. */
void known_assert_same(const known_t *self, const float *want, const float *got, const char *what, size_t spec);
/*  So it is with those heads known. */
void known_compare(known_t *self, const float *want, uint32_t mask, uint32_t shards, const char *what, size_t spec);
