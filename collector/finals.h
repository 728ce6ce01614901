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
} finals_t;

/*  The next one: of step t, of that env; row[c]: its row of each column that an env gives, those before columns->action. */
void finals_add(
    finals_t *self, const tt_columns_t *columns, uint32_t t, uint32_t env, const void *const row[TT_COLUMNS_MAX]);

/*  To their places in a block with as many, ordered by (t, env), however they were added. */
void finals_put(finals_t *self, const tt_columns_t *columns, const tt_segment_t *to);

void finals_free(finals_t *self);
