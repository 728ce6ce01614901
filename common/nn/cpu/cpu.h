/*  cpu - the CPU backend: which kernels this processor gets, and what a network keeps beside its parameters.
 *
 *  Threads: as nn.h says; a lane is a workspace of its own, everything else is read while lanes run. */
#pragma once
#include "common/nn/backend.h"
#include "common/nn/cpu/kernels.h"

extern const tt_backend_ops_t tt_cpu_backend;

typedef struct {
    tt_device_t base;
    const tt_kernels_t *kernels;
    char name[32];
} cpu_device_t;

/*  A hidden layer. in16 and out16: rounded up to whole vectors. */
typedef struct {
    size_t in, out, in16, out16;
    size_t weight_at, bias_at; /* offsets in the flat vector */
    const float *weight;       /* what the forward product reads: the parameters, or `packed` */
    size_t weight_panel, weight_k;
    const float *bias; /* padded: the parameters, or `packed_bias` */
    float *packed;     /* owned; panels of 16 columns; NULL when the parameters serve */
    float *packed_bias;
    float *transposed; /* owned; for the input gradient; NULL for the first layer */
} cpu_layer_t;

/*  One of the two networks: hidden layers, then a head of few outputs that is kept transposed. */
typedef struct {
    uint32_t layers;
    cpu_layer_t layer[TT_HIDDEN_MAX];
    size_t in, in16, outs; /* the head's                     */
    size_t weight_at, bias_at;
    float *head;      /* owned; [outs][in16]            */
    float *head_bias; /* owned; [outs]             */
} cpu_tower_t;

/*  What one row block needs; one for each lane. Columns: [outs][TT_BLOCK]. */
typedef struct {
    float *memory;                   /* owned; the rest points into it   */
    float *x;                        /* [TT_BLOCK][obs16]                */
    float *hidden[2][TT_HIDDEN_MAX]; /* [TT_BLOCK][out16]               */
    float *out[2], *d_out[2];        /* columns                          */
    float *d[2];                     /* [TT_BLOCK][widest out16]         */
    float *head_grad[2];             /* [outs][in16]                     */
} cpu_lane_t;

typedef struct {
    const tt_kernels_t *kernels;
    size_t obs16;
    size_t log_std_at;
    cpu_tower_t tower[2]; /* actor, critic */
    cpu_lane_t *lanes;
} cpu_net_t;

/*  net.c: build, rebuild and free what stands beside the parameters. */
tt_status_t cpu_net_new(tt_net_t *net);
void cpu_net_free(tt_net_t *net);
tt_status_t cpu_net_refresh(tt_net_t *net);

/*  mlp.c: see the backend table. */
tt_status_t cpu_forward(tt_net_t *net, uint32_t lane, const float *const *obs, size_t rows, float *head, float *value);
tt_status_t cpu_shard_grad(tt_net_t *net, uint32_t lane, const float *const *obs, const uint32_t *row, size_t rows,
    tt_loss_fn loss, const void *ctx, float *grad);

/*  apply.c */
tt_status_t cpu_apply(tt_net_t *net, const tt_opt_spec_t *opt, float *opt_state, uint64_t *step, const float *grad,
    float lr, float *norm_out);
