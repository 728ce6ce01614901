/*  encoder - an encoder on the CPU: a block of rows through its layers, and back.
 *
 *  *Values* are what lies between layers: value 0 is what the encoder reads, value l + 1 what layer l gives; that of a residual is
 *  the sum. A *step* is a layer's turn; a residual has two, before and behind what it spans. Dense layers are products of the whole
 *  block; all others go row by row, and those that follow one another take a row together, so that it stays in the nearest caches.
 *  What is kept of all rows for the way back are the values; derivatives only where a dense layer comes next.
 *  Threads: as cpu.h. */
#pragma once
#include "common/nn/cpu/cpu.h"
#include "common/nn/cpu/ops.h"

enum { CPU_VALUES = TT_ENCODER_LAYERS_MAX + 1, CPU_STEPS = 2 * TT_ENCODER_LAYERS_MAX };

typedef struct {
    size_t count, stride; /* floats of a row, rounded up to whole vectors                                       */
    size_t d_stride;      /* of its derivatives; 0: they take turns in one place, row after row                */
    tt_nn_activation_t activation; /* that gave it                                                              */
    bool wanted;                   /* its derivatives are: a parameter lies before it                           */
} cpu_value_t;

typedef struct {
    const tt_layer_t *layer;
    uint32_t in;    /* the value that comes to it                     */
    uint32_t inner; /* of a residual: what the last that it spans gives */
    cpu_window_t window;
    cpu_layer_t dense;      /* owns its copies                              */
    size_t weights, biases; /* how many it has: at ... in the flat vector       */
    size_t weight_at, bias_at;
    const float *params;         /* of the set                                */
    float *packed, *packed_back; /* owned; of a convolution            */
} cpu_op_t;

typedef struct {
    uint32_t op;
    bool begin; /* a residual, before what it spans */
} cpu_step_t;

struct cpu_encoder {
    const tt_net_spec_t *spec;
    const tt_tower_t *tower;
    uint32_t ops, steps;
    cpu_op_t op[TT_ENCODER_LAYERS_MAX];
    cpu_step_t step[CPU_STEPS];
    cpu_value_t value[CPU_VALUES];
    uint32_t last; /* the value that the encoder gives */
};

/*  What a lane keeps of it. */
struct cpu_encoder_lane {
    float *value[CPU_VALUES];   /* [TT_BLOCK][stride]                   */
    float *d[CPU_VALUES];       /* [TT_BLOCK or 1][stride]; the last one's is the trunk's */
    uint8_t *which[CPU_VALUES]; /* of a pooling layer's: [TT_BLOCK][stride] */
    float *moments[CPU_VALUES]; /* of a layer norm's: [TT_BLOCK][CPU_NORM_MOMENTS] */
};

/*  encoder_net.c: tensors are those of the tower in this set. */
cpu_encoder_t *cpu_encoder_new(const tt_net_t *net, uint32_t set, uint32_t t, const tt_tensor_t *tensors);
void cpu_encoder_free(tt_device_t *device, cpu_encoder_t *self);
void cpu_encoder_refresh(const tt_kernels_t *kernels, const cpu_encoder_t *self);
/*  Zeros to its part of a gradient. */
void cpu_encoder_clear(const cpu_encoder_t *self, float *grad);
/*  Its part of a lane's memory; d_last: where the derivatives of what it gives come to. */
void cpu_encoder_carve(
    const cpu_encoder_t *self, cpu_encoder_lane_t *out, const cpu_lane_t *lane, size_t *at, float *d_last);

/*  encoder.c: block->from through tower t of a set; and lane->d_trunk[t] to the parameters' gradient. */
void cpu_encoder_forward(const cpu_block_t *block, uint32_t set, uint32_t t);
void cpu_encoder_backward(const cpu_block_t *block, uint32_t t);
