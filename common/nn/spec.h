/*  spec - from a network's shape to the layout of its flat parameter vector.
 *
 *  Layout of a group: tensors are listed as PyTorch lists them, but those whose size is a multiple of 16 floats come first
 *  in memory, so that they all start on a cache line and kernels can use them in place. Groups begin at multiples of
 *  TT_GROUP_ALIGN floats; what lies between them is zero.
 *  Threads: pure. */
#pragma once
#include "common/nn/nn.h"

enum { TT_NN_TENSORS_MAX = TT_TOWERS_MAX * (4 * (TT_HIDDEN_MAX + 1) + 1) + 2 * TT_ENCODER_LAYERS_MAX };

/*  TT_INVALID: a number is out of range; the text names it. */
tt_status_t tt_spec_check(const tt_net_spec_t *spec);

/*  Fill tensors[TT_NN_TENSORS_MAX], tower after tower: weight and bias of each layer (tt_layer_tensors), then log_std, then
 *  the deviations of each weight and bias, where it is noisy. Returns how many. The
 *  spec must be valid. */
size_t tt_spec_tensors(const tt_net_spec_t *spec, tt_tensor_t *tensors);
/*  Floats of a set, with the zeros between groups; of a spec whose towers are valid. */
uint64_t tt_spec_params(const tt_net_spec_t *spec);
/*  How many layers of tower t have weights, its head too; none of one that is made of others; two of a recurrent one. */
uint32_t tt_spec_layers(const tt_net_spec_t *spec, uint32_t t);
/*  Tensors of tower t; how many stand before its deviations. */
size_t tt_spec_tower_tensors(const tt_net_spec_t *spec, uint32_t t);
size_t tt_spec_deviations(const tt_net_spec_t *spec, uint32_t t);
/*  Parameters of tower t alone, its log_std among them. */
uint64_t tt_spec_tower_params(const tt_net_spec_t *spec, uint32_t t);
/*  Bytes of a part in a row, up to where the next one begins. */
size_t tt_spec_part_bytes(const tt_part_t *part);
/*  How many numbers trunk t gives to those that read it. */
uint32_t tt_spec_gives(const tt_net_spec_t *spec, uint32_t t);
/*  How many numbers stand before the action in what towers read that read one; 0: none does. */
uint32_t tt_spec_before_action(const tt_net_spec_t *spec);
/*  The tower that is made of the head of tower t; spec->towers when none is. */
uint32_t tt_spec_made_of(const tt_net_spec_t *spec, uint32_t t);
/*  The groups of these towers; both as bits. */
uint32_t tt_spec_groups_of(const tt_net_spec_t *spec, uint32_t towers);
/*  Copies of the parameters: spec->sets, at least 1. */
uint32_t tt_spec_sets(const tt_net_spec_t *spec);
