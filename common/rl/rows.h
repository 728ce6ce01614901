/*  rows - observations as the network reads them (columns.h), one pointer a frame: where nothing is stacked, a row.
 *
 *  A plain list is read where it lies, and copied when it is scaled; of any other a copy is made, its floats scaled on the
 *  way.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include "common/rl/columns.h"
#include "common/rl/norm.h"

typedef struct {
    const tt_columns_t *columns; /* borrowed                                                                       */
    bool plain, scale;
    float clip;
    size_t room;
    const void **at;   /* [room] -> columns->frame bytes: what the network reads                         */
    const float **raw; /* [room] -> columns->scaled floats, as collected; NULL when nothing is scaled    */
    char *copies;      /* [room][frame]; NULL when they are read where they lie                          */
    float *floats;     /* [room][scaled] what raw points to; NULL when that is where they lie            */
    float *scaled;     /* [scaled] scratch                                                               */
} tt_rows_t;

/*  scale: rows are normalised, if there are floats among their numbers. */
void tt_rows_init(tt_rows_t *self, const tt_columns_t *columns, bool scale, float clip);
void tt_rows_free(tt_rows_t *self);

/*  Room for `count` rows; what was there is forgotten when it has to grow. */
void tt_rows_need(tt_rows_t *self, size_t count);
/*  Rows row .. +count-1 are numbers index .. +count-1 of these observation columns, which stay where they are while the
 *  rows are of use. norm may be NULL when nothing is scaled. */
void tt_rows_put(tt_rows_t *self, size_t row, size_t count, const tt_norm_t *norm, void *const *column, size_t index);
/*  All of `count` rows, from the first on: self->at, borrowed until the next call. */
const void *const *tt_rows_of(tt_rows_t *self, size_t count, const tt_norm_t *norm, void *const *column);
