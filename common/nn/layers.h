/*  layers - what an encoder's layers give: shapes, what is possible, and the names of their tensors.
 *
 *  Names are those of PyTorch's nn.Sequential over the same layers, in which activations, a Flatten where a picture becomes a
 *  vector, and a residual (a Sequential of its own) are modules: docs/internals/nn.md, "Encoders".
 *  Threads: pure. */
#pragma once
#include "common/nn/nn.h"

enum { TT_RESIDUALS_DEEP = 4 }; /* inside one another */

/*  A row's numbers between two layers: [height][width][channels]; a vector is 1 x 1 x n. */
typedef struct {
    uint32_t height, width, channels;
    bool picture;
    uint32_t order
        [3]; /* height, width, channels of the picture that the first numbers of it are, or were; 0: there is none */
} tt_shape_t;

uint64_t tt_shape_elements(const tt_shape_t *shape);

/*  The weight of a layer: kind, rows and cols of it; false when it has none. */
bool tt_layer_weight(const tt_net_spec_t *spec, const tt_layer_t *layer, const tt_shape_t *in, tt_tensor_t *weight);
/*  Numbers of such a weight, and of its bias where it has one, which is as long as a row. */
uint64_t tt_layer_params(const tt_tensor_t *weight);

/*  What comes to layer 0 and what each layer gives: shape[layers + 1], for a residual what it spans begins with.
 *  TT_INVALID: a layer does not fit what comes to it; the text names tower, layer and both. */
tt_status_t tt_layers_shapes(const tt_net_spec_t *spec, uint32_t t, tt_shape_t *shape);
/*  All that is asked of an encoder: this, what it reads, and how many numbers a row has between all layers. */
tt_status_t tt_layers_check(const tt_net_spec_t *spec, uint32_t t);
/*  What its last layer gives. The spec is valid from here on. */
tt_shape_t tt_layers_end(const tt_net_spec_t *spec, uint32_t t);
/*  The number of a layer's module, those that it lies in before it: "4.1". */
enum { TT_MODULE_TEXT = 24 };
void tt_layers_module(const tt_net_spec_t *spec, uint32_t t, uint32_t layer, char out[TT_MODULE_TEXT]);
