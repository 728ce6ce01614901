/*  adam - Adam's corrections for a step, which every device is given: beta^n by squaring, in double, for libm's pow may differ in the last
 *  bit from one processor to another.
 *  Threads: pure. */
#pragma once
#include "common/nn/nn.h"

/*  *lr becomes lr / (1 - beta1^step); returns 1 / sqrt(1 - beta2^step). */
float tt_adam_correct(const tt_opt_spec_t *opt, uint64_t step, float *lr);
