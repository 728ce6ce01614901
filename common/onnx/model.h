/*  model - an ONNX file: a graph of operators over named values, with constants, inputs and outputs.
 *
 *  Format: onnx.proto of https://github.com/onnx/onnx (the numbers of its fields stand in model.c), operators as
 *          https://onnx.ai/onnx/operators/ describes them in operator set TT_ONNX_OPSET.
 *  Values are known by their names; each is made once, before who reads it. Sizes are the caller's to bound: a model has at most 2 GiB.
 *  Threads: an instance belongs to one thread. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "common/base/buf.h"

enum {
    TT_ONNX_OPSET = 17, /* the first with LayerNormalization                  */
    TT_ONNX_IR = 8,     /* of the file, as that operator set came with         */
    TT_ONNX_NAME = 128, /* bytes of a value's name                             */
    TT_ONNX_RANK = 6
};

/*  As TensorProto.DataType numbers them. */
typedef enum {
    TT_ONNX_FLOAT = 1,
    TT_ONNX_UINT8 = 2,
    TT_ONNX_INT8 = 3,
    TT_ONNX_INT32 = 6,
    TT_ONNX_INT64 = 7,
    TT_ONNX_BOOL = 9,
    TT_ONNX_DOUBLE = 11
} tt_onnx_type_t;

/*  rows: what the first dimension is called, which is as large as the caller's batch; NULL: dim[0] says how large. */
typedef struct {
    tt_onnx_type_t type;
    uint32_t rank;
    int64_t dim[TT_ONNX_RANK];
    const char *rows;
} tt_onnx_shape_t;

/*  As AttributeProto.AttributeType numbers them. */
typedef enum { TT_ONNX_A_FLOAT = 1, TT_ONNX_A_INT = 2, TT_ONNX_A_INTS = 7 } tt_onnx_attribute_kind_t;

/*  Of an operator; a list of them ends with name NULL. */
typedef struct {
    const char *name;
    tt_onnx_attribute_kind_t kind;
    float number;
    int64_t integer[5]; /* INT: the first */
    uint32_t integers;
} tt_onnx_attribute_t;

typedef struct tt_onnx tt_onnx_t; /* opaque */

tt_onnx_t *tt_onnx_new(void);
void tt_onnx_destroy(tt_onnx_t **self_p);

void tt_onnx_input(tt_onnx_t *self, const char *name, const tt_onnx_shape_t *shape);
void tt_onnx_output(tt_onnx_t *self, const char *name, const tt_onnx_shape_t *shape);
/*  data: all elements, row-major. One with the name of an input is what that is when it is not given. */
void tt_onnx_constant(tt_onnx_t *self, const char *name, const tt_onnx_shape_t *shape, const void *data);
/*  out = op(in[0], in[1], ...). in ends with NULL; attribute may be NULL. */
void tt_onnx_node(
    tt_onnx_t *self, const char *op, const char *const *in, const char *out, const tt_onnx_attribute_t *attribute);
/*  A pair of texts that goes with the model. */
void tt_onnx_meta(tt_onnx_t *self, const char *key, const char *value);

/*  All of it; borrowed until destroy. The last call but that. */
const tt_buf_t *tt_onnx_finish(tt_onnx_t *self, const char *name, const char *producer, const char *version);
