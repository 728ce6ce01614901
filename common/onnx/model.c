#include "common/onnx/model.h"
#include <stdlib.h>
#include "common/base/mem.h"
#include "common/onnx/proto.h"

/*  onnx.proto: the numbers of the fields that we write. */
enum {
    MODEL_IR_VERSION = 1,
    MODEL_PRODUCER_NAME = 2,
    MODEL_PRODUCER_VERSION = 3,
    MODEL_GRAPH = 7,
    MODEL_OPSET_IMPORT = 8,
    MODEL_METADATA_PROPS = 14,
    OPSET_DOMAIN = 1,
    OPSET_VERSION = 2,
    PAIR_KEY = 1,
    PAIR_VALUE = 2,
    GRAPH_NODE = 1,
    GRAPH_NAME = 2,
    GRAPH_INITIALIZER = 5,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    NODE_INPUT = 1,
    NODE_OUTPUT = 2,
    NODE_NAME = 3,
    NODE_OP_TYPE = 4,
    NODE_ATTRIBUTE = 5,
    ATTRIBUTE_NAME = 1,
    ATTRIBUTE_F = 2,
    ATTRIBUTE_I = 3,
    ATTRIBUTE_INTS = 8,
    ATTRIBUTE_TYPE = 20,
    TENSOR_DIMS = 1,
    TENSOR_DATA_TYPE = 2,
    TENSOR_NAME = 8,
    TENSOR_RAW_DATA = 9,
    VALUE_NAME = 1,
    VALUE_TYPE = 2,
    TYPE_TENSOR = 1,
    TYPE_TENSOR_ELEM = 1,
    TYPE_TENSOR_SHAPE = 2,
    SHAPE_DIM = 1,
    DIM_VALUE = 1,
    DIM_PARAM = 2
};

#define BYTES_MAX (((size_t)1 << 31) - 1) /* of a protobuf message */

struct tt_onnx {
    tt_buf_t graph, meta;            /* fields of GraphProto and of ModelProto         */
    tt_buf_t item, inner, innermost; /* of one of these, while it is made   */
    tt_buf_t model;
};

tt_onnx_t *tt_onnx_new(void)
{
    tt_onnx_t *self = tt_new0(sizeof *self);
    tt_buf_t *buf[] = {&self->graph, &self->meta, &self->item, &self->inner, &self->innermost, &self->model};
    for (size_t i = 0; i < TT_COUNT(buf); i++)
        tt_buf_init(buf[i], BYTES_MAX);
    return self;
}

void tt_onnx_destroy(tt_onnx_t **self_p)
{
    tt_onnx_t *self = *self_p;
    if (!self)
        return;
    tt_buf_t *buf[] = {&self->graph, &self->meta, &self->item, &self->inner, &self->innermost, &self->model};
    for (size_t i = 0; i < TT_COUNT(buf); i++)
        tt_buf_free(buf[i]);
    free(self);
    *self_p = NULL;
}

static size_t s_element_size(tt_onnx_type_t type)
{
    switch (type) {
    case TT_ONNX_INT64:
    case TT_ONNX_DOUBLE:
        return 8;
    case TT_ONNX_FLOAT:
    case TT_ONNX_INT32:
        return 4;
    default:
        return 1;
    }
}

/* ---- values ---------------------------------------------------------------------------------------------------------- */

static void s_dimension(tt_onnx_t *self, const tt_onnx_shape_t *shape, uint32_t i)
{
    tt_buf_t dim;
    tt_buf_init(&dim, 256);
    if (i == 0 && shape->rows)
        tt_proto_text(&dim, DIM_PARAM, shape->rows);
    else
        tt_proto_int(&dim, DIM_VALUE, shape->dim[i]);
    tt_proto_message(&self->innermost, SHAPE_DIM, &dim);
    tt_buf_free(&dim);
}

/*  ValueInfoProto: from its innermost message outwards. */
static void s_value(tt_onnx_t *self, uint32_t field, const char *name, const tt_onnx_shape_t *shape)
{
    tt_buf_t type;
    tt_buf_init(&type, BYTES_MAX);
    for (uint32_t i = 0; i < shape->rank; i++)
        s_dimension(self, shape, i);
    tt_proto_int(&self->inner, TYPE_TENSOR_ELEM, shape->type);
    tt_proto_message(&self->inner, TYPE_TENSOR_SHAPE, &self->innermost);
    tt_proto_message(&type, TYPE_TENSOR, &self->inner);
    tt_proto_text(&self->item, VALUE_NAME, name);
    tt_proto_message(&self->item, VALUE_TYPE, &type);
    tt_proto_message(&self->graph, field, &self->item);
    tt_buf_free(&type);
}

void tt_onnx_input(tt_onnx_t *self, const char *name, const tt_onnx_shape_t *shape)
{
    s_value(self, GRAPH_INPUT, name, shape);
}

void tt_onnx_output(tt_onnx_t *self, const char *name, const tt_onnx_shape_t *shape)
{
    s_value(self, GRAPH_OUTPUT, name, shape);
}

void tt_onnx_constant(tt_onnx_t *self, const char *name, const tt_onnx_shape_t *shape, const void *data)
{
    size_t bytes = s_element_size(shape->type);
    for (uint32_t i = 0; i < shape->rank; i++) {
        tt_proto_int(&self->item, TENSOR_DIMS, shape->dim[i]);
        bytes = tt_mul(bytes, (size_t)shape->dim[i]);
    }
    tt_proto_int(&self->item, TENSOR_DATA_TYPE, shape->type);
    tt_proto_text(&self->item, TENSOR_NAME, name);
    tt_proto_bytes(&self->item, TENSOR_RAW_DATA, data, bytes);
    tt_proto_message(&self->graph, GRAPH_INITIALIZER, &self->item);
}

/* ---- operators ------------------------------------------------------------------------------------------------------- */

static void s_attribute(tt_onnx_t *self, const tt_onnx_attribute_t *attribute)
{
    tt_proto_text(&self->inner, ATTRIBUTE_NAME, attribute->name);
    tt_proto_int(&self->inner, ATTRIBUTE_TYPE, attribute->kind);
    if (attribute->kind == TT_ONNX_A_FLOAT)
        tt_proto_float(&self->inner, ATTRIBUTE_F, attribute->number);
    if (attribute->kind == TT_ONNX_A_INT)
        tt_proto_int(&self->inner, ATTRIBUTE_I, attribute->integer[0]);
    for (uint32_t i = 0; attribute->kind == TT_ONNX_A_INTS && i < attribute->integers; i++)
        tt_proto_int(&self->inner, ATTRIBUTE_INTS, attribute->integer[i]);
    tt_proto_message(&self->item, NODE_ATTRIBUTE, &self->inner);
}

void tt_onnx_node(
    tt_onnx_t *self, const char *op, const char *const *in, const char *out, const tt_onnx_attribute_t *attribute)
{
    for (; *in; in++)
        tt_proto_text(&self->item, NODE_INPUT, *in);
    tt_proto_text(&self->item, NODE_OUTPUT, out);
    tt_proto_text(&self->item, NODE_NAME, out);
    tt_proto_text(&self->item, NODE_OP_TYPE, op);
    for (; attribute && attribute->name; attribute++)
        s_attribute(self, attribute);
    tt_proto_message(&self->graph, GRAPH_NODE, &self->item);
}

/* ---- the whole ------------------------------------------------------------------------------------------------------- */

void tt_onnx_meta(tt_onnx_t *self, const char *key, const char *value)
{
    tt_proto_text(&self->item, PAIR_KEY, key);
    tt_proto_text(&self->item, PAIR_VALUE, value);
    tt_proto_message(&self->meta, MODEL_METADATA_PROPS, &self->item);
}

const tt_buf_t *tt_onnx_finish(tt_onnx_t *self, const char *name, const char *producer, const char *version)
{
    tt_proto_text(&self->graph, GRAPH_NAME, name);
    tt_proto_int(&self->model, MODEL_IR_VERSION, TT_ONNX_IR);
    tt_proto_text(&self->model, MODEL_PRODUCER_NAME, producer);
    tt_proto_text(&self->model, MODEL_PRODUCER_VERSION, version);
    tt_proto_text(&self->item, OPSET_DOMAIN, "");
    tt_proto_int(&self->item, OPSET_VERSION, TT_ONNX_OPSET);
    tt_proto_message(&self->model, MODEL_OPSET_IMPORT, &self->item);
    const tt_status_t status = tt_buf_add(&self->model, tt_buf_text(&self->meta), self->meta.size);
    TT_CHECK(status == TT_OK);
    tt_proto_message(&self->model, MODEL_GRAPH, &self->graph);
    return &self->model;
}
