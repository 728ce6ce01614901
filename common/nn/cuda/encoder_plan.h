/*  encoder_plan - what an encoder on a GPU is made of: steps, values, and where in a run's memory each lies. For encoder.c.
 *
 *  Threads: pure, but for new and free. */
#pragma once
#include "common/nn/cuda/encoder.h"
#include "common/nn/cuda/kernels_encoder.h"
#include "common/nn/layers.h"

enum {
    ENCODER_VALUES = TT_ENCODER_LAYERS_MAX + 1,
    ENCODER_STEPS = 2 * TT_ENCODER_LAYERS_MAX,
    ENCODER_PLACES =
        TT_RESIDUALS_DEEP + 2 /* derivatives at the same time: of each residual around, and of a layer's two sides */
};

/*  place: of its derivatives, which take turns; those of the last value are the caller's. */
typedef struct {
    size_t count; /* numbers of a row                                  */
    cuda_act_t act;
    bool wanted; /* its derivatives are: a parameter lies before it   */
    uint32_t place;
} encoder_value_t;

typedef struct {
    const tt_layer_t *layer;
    uint32_t in;    /* the value that comes to it                     */
    uint32_t inner; /* of a residual: what the last that it spans gives */
    cuda_window_t window;
    bool weights;              /* it has some             */
    size_t weight_at, bias_at; /* in the flat vector */
} encoder_op_t;

typedef struct {
    uint32_t op;
    bool begin; /* a residual, before what it spans */
} encoder_step_t;

struct cuda_encoder {
    const tt_net_spec_t *spec;
    const tt_tower_t *tower;
    uint32_t ops, steps, places;
    uint32_t last; /* the value that it gives */
    encoder_op_t op[TT_ENCODER_LAYERS_MAX];
    encoder_step_t step[ENCODER_STEPS];
    encoder_value_t value[ENCODER_VALUES];
    size_t widest[ENCODER_PLACES]; /* numbers of a row of whose derivatives come there */
};

/*  A run's memory. */
typedef struct {
    size_t bytes;
    float *value[ENCODER_VALUES];     /* [rows][count]                        */
    uint8_t *which[ENCODER_VALUES];   /* of a max pooling's: [rows][count]     */
    float *moments[ENCODER_VALUES];   /* of a layer norm's: [rows][CUDA_NORM_MOMENTS] */
    uint32_t *chosen[ENCODER_VALUES]; /* of embeddings: [rows][groups]     */
    float *place[ENCODER_PLACES];     /* of derivatives: [rows][widest]         */
    float *partial;                   /* what rows give to a convolution's weights */
    size_t partial_floats;
} encoder_memory_t;

/*  Choices of a row that the layer embeds, those of all frames. */
static inline uint32_t encoder_groups(const cuda_encoder_t *self, const encoder_op_t *op)
{
    return (uint32_t)((self->value[op - self->op + 1].count - self->value[op->in].count) / op->layer->units);
}

/*  What lies where in `memory`; NULL: only the bytes are. Without `back` the last three are missing. */
void encoder_memory(const cuda_encoder_t *self, uint32_t rows, bool back, void *memory, encoder_memory_t *out);
