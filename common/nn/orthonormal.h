/*  orthonormal - vectors made orthonormal, in double, with the same bits on every machine.
 *
 *  Modified Gram-Schmidt, run twice: of each vector its part along those before it is taken off, one after the other, and once
 *  more, before it is scaled to length 1. The diagonal of R is positive by construction. Dot products run in eight
 *  sums: element k goes to sum k mod 8.
 *
 *  Source:  Björck 1967, "Solving linear least squares problems by Gram-Schmidt orthogonalization"
 *  Threads: pure. */
#pragma once
#include <stddef.h>
#include "common/base/progress.h"

/*  In place: `count` <= n vectors of n numbers each, one behind the other. They must be linearly independent. Tells of each vector. */
void tt_orthonormalise(double *vectors, size_t count, size_t n, tt_progress_t progress);
