/*  finals - what episodes were cut at in the batch in hand of one segment: their number is known only at its end.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include "common/wire/segment.h"

typedef struct {
    uint32_t t, env; /* of the segment */
    uint32_t row;    /* of `column`    */
} final_t;

/*  All zeros is none. */
typedef struct {
    uint32_t count, room;
    final_t *at;                  /* [room] */
    char *column[TT_COLUMNS_MAX]; /* [room] rows of each column that an env gives: the observation's, the mask */
    float *carry;   /* [room][C] what the policy carried out of those steps; NULL where it remembers nothing */
    float *carried; /* [count][C] the same in the order of a block that they were put into */
} finals_t;

/*  The next one: of step t, of that env; row[c]: its row of each column that an env gives, those before columns->action. carry: what the
 *  policy carried out of the step, [columns->carry]. */
void finals_add(finals_t *self, const tt_columns_t *columns, uint32_t t, uint32_t env,
    const void *const row[TT_COLUMNS_MAX], const float *carry);

/*  To their places in a block with as many, ordered by (t, env), however they were added; `carried` has their order then. */
void finals_put(finals_t *self, const tt_columns_t *columns, const tt_segment_t *to);

void finals_free(finals_t *self);
