/*  spec - from a network's shape to the layout of its flat parameter vector.
 *
 *  Layout: tensors are listed as PyTorch lists them, but those whose size is a multiple of 16 floats come first in
 *  memory, so that they all start on a cache line and kernels can use them in place.
 *  Threads: pure. */
#pragma once
#include "common/nn/nn.h"

enum { TT_NN_TENSORS_MAX = 4 * (TT_HIDDEN_MAX + 1) + 1 };

/*  TT_INVALID: a number is out of range; the text names it. */
tt_status_t tt_spec_check(const tt_net_spec_t *spec);

/*  Fill tensors[TT_NN_TENSORS_MAX]; returns how many. The spec must be valid. */
size_t tt_spec_tensors(const tt_net_spec_t *spec, tt_tensor_t *tensors);
