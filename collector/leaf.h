/*  leaf - one leaf of an env's spaces: between the form that the env reads and writes and the one that is stored.
 *
 *  Stored is what common/rl/columns.h says of the leaf's column. Where that is what the env uses, nothing is copied.
 *  Shapes:  rows are envs, [rows][elements].
 *  Threads: pure, but for the scratch of an instance. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/rl/columns.h"

typedef struct {
    const tt_space_t *space;   /* borrowed, as are the next two                            */
    const tt_column_t *column; /* of it                                                    */
    const uint32_t *n;         /* choices: of each element                                 */
    const char *name;          /* "observation", "obs.image", "action", ...                */
    size_t bytes;              /* of a row as the env has it                               */
    void *scratch;             /* [rows] in the env's form; NULL = that is the stored one  */
    bool lent;                 /* scratch is somebody else's                               */
    bool squash;               /* boxes of an action: tt_actor_t                           */
} leaf_t;

/*  The `column`-th column of the list is that of this leaf of the observation's or the action's space. lent (borrowed): rows in
 *  the env's form, which serve as scratch where that is needed; NULL = one is made. Free with leaf_free. */
void leaf_init(
    leaf_t *self, const tt_space_t *space, const tt_columns_t *columns, uint32_t column, uint32_t rows, void *lent);
void leaf_free(leaf_t *self);

/*  Take `rows` rows from `first` on, which an env has written to scratch (or to stored at once), into stored [all rows].
 *  false: *bad is the number of an element (from the first row's on) that is not in the space. */
bool leaf_take(const leaf_t *self, void *stored, uint32_t first, uint32_t rows, size_t *bad);
/*  The same of rows that lie elsewhere: `rows` rows in the env's form, to the stored one. */
bool leaf_read(const leaf_t *self, const void *from, void *to, uint32_t rows, size_t *bad);
/*  Are these rows, as stored, in the space? */
bool leaf_check(const leaf_t *self, const void *stored, uint32_t rows, size_t *bad);
/*  Actions, as stored [all rows], `rows` of them from `first` on, in the env's form: *out [all rows] is `stored` itself or the scratch; boxes
 *  are clipped to their bounds, or squashed onto them: the middle for 0, next to a bound for what is far from it. *bad counts from the first row's on. */
bool leaf_give(const leaf_t *self, const void *stored, uint32_t first, uint32_t rows, const void **out, size_t *bad);

/*  Can it be squashed: is it a box with finite bounds for each element? *bad: one that has none. */
bool leaf_is_bounded(const tt_space_t *space, uint32_t *bad);

/*  Are these numbers all finite? */
bool leaf_finite(const float *x, size_t count, size_t *bad);

/*  Element number `at` of rows in the env's form, for a message; and what it must be: "must be 0 to 3". */
double leaf_written(const leaf_t *self, const void *rows, size_t at);
const char *leaf_must(const leaf_t *self, size_t at, char text[64]);
