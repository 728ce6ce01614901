/*  tensor - where the numbers of a named tensor lie in files and in the flat vector: files have what PyTorch has.
 *
 *  Threads: pure. */
#pragma once
#include "common/nn/nn.h"

size_t tt_tensor_count(const tt_tensor_t *tensor);
/*  Its shape in a file; returns the rank, 1 to 4. */
uint32_t tt_tensor_shape(const tt_tensor_t *tensor, uint64_t shape[4]);
/*  Element i of the file's array is element tt_tensor_at(i) of the vector, from the tensor's offset on. The one place that knows
 *  the orders: who reads and who writes a file ask here. */
size_t tt_tensor_at(const tt_tensor_t *tensor, size_t i);
