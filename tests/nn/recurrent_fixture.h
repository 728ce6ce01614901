/*  recurrent_fixture - recurrent networks, sequences in which episodes begin, and what a pass over them gives. */
#pragma once
#include "tests/nn/fixture.h"

/*  LSTM and GRU alone, behind trunks and encoders, of bytes, beside towers that remember nothing; units that reach every tail. */
extern const tt_net_spec_t recurrent_specs[];
extern const size_t recurrent_spec_count;

typedef struct {
    place_t place;
    tt_net_t *net;
    uint32_t sequences, length;
    rows_t rows;     /* rows.row: [sequences][length]                          */
    float *carry;    /* [rows][C] of any row, that it may be a sequence's first */
    uint8_t *begins; /* [rows] by number, one in five                       */
    tt_table_t *obs, *carries, *begin;
} recurrent_t;

/*  The place is taken; recurrent_close closes it. */
void recurrent_open(
    recurrent_t *self, const place_t *place, const tt_net_spec_t *spec, uint32_t sequences, uint32_t length);
void recurrent_close(recurrent_t *self);

/*  The pass of an objective; its parameters are the caller's to add. */
tt_pass_t recurrent_pass(const recurrent_t *self, const tt_objective_t *objective);
/*  The gradient of fixture_loss on all heads: tt_net_grad_count floats; free() it. */
float *recurrent_grad(recurrent_t *self, uint32_t shards);
/*  The same of learners with `width` shards each, a power of two as `shards` is, added as the tree does. free() it. */
float *recurrent_runs(recurrent_t *self, uint32_t shards, uint32_t width);
/*  All heads of all rows, [rows][fixture_outs] by number, as the loss of a pass sees them; and step by step, of any set, what is carried set to
 *  zeros by hand where an episode begins. free() both. */
float *recurrent_seen(recurrent_t *self, uint32_t shards);
float *recurrent_stepped(recurrent_t *self, uint32_t set);

/*  Steps of rows in a table that has others before, between and behind them. */
typedef struct {
    uint32_t rows, steps;
    bool in_place; /* what is carried out of the last step goes where that into the first one was */
} recurrent_walk_t;
/*  tt_net_walk; or step by step, by hand. Heads of all towers, [steps][rows] each; what the last step leaves; what every third row leaves.
 *  free() it. */
float *recurrent_walked(
    const place_t *place, const tt_net_spec_t *spec, const recurrent_walk_t *walk, bool by_hand, size_t *count);
