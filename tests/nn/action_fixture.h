/*  action_fixture - networks of an actor and two critics that read its actions, behind the observation or a trunk, and two objectives of
 *  them with losses and a draw of their own. */
#pragma once
#include "tests/nn/fixture.h"
#include "tests/nn/reference.h"

enum { ACTION_PLAIN = 5, ACTION_SHAPES = 9 }; /* the plain ones first, whose critics read the observation */

enum { ACTOR, Q1, Q2, V, ACTION_TOWERS }; /* V: reads what the critics read, but no action; of some networks */
enum { IN_NOISE, IN_GIVEN };              /* tables */

/*  A network with sets that differ, rows, and what the objectives read of them. */
typedef struct {
    tt_net_spec_t spec;
    place_t place; /* the caller's */
    tt_net_t *net;
    rows_t at, next;
    float *noise, *given; /* [rows][A] by the row's number */
    tt_table_t *table[2];
    reference_t ref;
    double *params[2]; /* of both sets */
    uint32_t tower[ACTION_TOWERS];
    /*  "reach_actor": the actor is trained, through both critics. "reach_critic": these are, and V is, and they see what is drawn from the
     *  actor at the next frame in set 1. */
    tt_objective_t actor, critic;
} stage_t;

/*  place is open. */
void action_set_up(stage_t *self, size_t shape, size_t rows);
void action_tear_down(stage_t *self);
tt_pass_t action_pass(const stage_t *self, const tt_objective_t *objective);
/*  As one shard: tt_net_grad_count floats. */
tt_status_t action_gradient(const stage_t *self, const tt_pass_t *pass, float *grad);
/*  The sum of some shards, of rows that come in one of these ways: as they are, or made of the frames of the spec's stack, by where they
 *  lie or by their places in a store. */
typedef enum { ACTION_ROWS, ACTION_FRAMED, ACTION_STORED, ACTION_WAYS } action_way_t;
void action_sum(const stage_t *self, const tt_pass_t *pass, action_way_t way, uint32_t shards, float *grad);
enum { ACTION_STACKED = 8 }; /* the shape that has a stack */
/*  The network alone. */
tt_net_spec_t action_spec(size_t shape);
