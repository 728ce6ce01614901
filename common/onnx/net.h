/*  net - the towers of a network (common/nn/nn.h) as operators of an ONNX graph.
 *
 *  Constants have the names, shapes and orders of a checkpoint's arrays, which are PyTorch's; pictures are [channels][height][width] as
 *  there. Numbers agree with Tutti's own to rounding: a runtime adds in its own order.
 *  Threads: an instance belongs to one thread. */
#pragma once
#include <stdbool.h>
#include "common/nn/nn.h"
#include "common/onnx/model.h"

typedef struct {
    char name[TT_ONNX_NAME];
} tt_onnx_value_t;

/*  Begin with what is borrowed, and the rest zero. */
typedef struct {
    tt_onnx_t *model;
    const tt_net_spec_t *spec; /* valid */
    const tt_tensor_t *tensor;
    size_t tensors;
    const float *params;
    tt_onnx_value_t part
        [TT_PARTS_MAX]; /* the observation's: [rows][elements], uint8 of bytes, else float. Without parts the first is all of it */
    tt_onnx_value_t carry; /* what recurrent towers carry into the step: [rows][tt_net_carry], float */

    tt_onnx_value_t plain[TT_PARTS_MAX], divided[TT_PARTS_MAX], whole, whole_divided; /* as floats; "" = not yet made */
    tt_onnx_value_t tower[TT_TOWERS_MAX];                                             /* what each gives            */
    tt_onnx_value_t cell[TT_TOWERS_MAX]; /* of an LSTM: the c that goes out of the step */
} tt_onnx_net_t;

/*  What tower t gives, [rows][out] of one with a head: its operators, and those of all that it reads, are put into the model where
 *  that was not done before. Borrowed. */
const char *tt_onnx_tower(tt_onnx_net_t *self, uint32_t t);
/*  `out` = what the recurrent towers that are in the model carry out of the step, as `carry` has it going in; those left out must be
 *  the last ones. Returns how many floats; 0: nothing recurs, and there is no such value. */
uint32_t tt_onnx_carry(tt_onnx_net_t *self, const char *out);
