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
    float *transposed; /* owned; for the input gradient; NULL where nobody asks for it */
} cpu_layer_t;

/*  A tower in one set: hidden layers, then a head of few outputs that is kept transposed. */
typedef struct {
    tt_gemm_kind_t forward, backward; /* with its activation                                     */
    uint32_t group;
    uint32_t chain; /* the towers whose forward its own takes, as bits: itself and the trunks before it */
    bool reads_obs; /* else it reads the trunk `from`                          */
    uint32_t from;
    uint32_t layers;
    cpu_layer_t layer[TT_HIDDEN_MAX];
    size_t in, in16, outs; /* the head's; outs 0 = a trunk            */
    size_t weight_at, bias_at;
    float *head;      /* owned; [outs][in16]            */
    float *head_bias; /* owned; [outs]             */
} cpu_tower_t;

/*  A *view* is a set seen from a frame: number frame * TT_SETS_MAX + set; view 0 is the one that is trained. */
enum { CPU_VIEWS = TT_FRAMES * TT_SETS_MAX };

/*  What one row block needs; one for each lane. Columns: [outs][TT_BLOCK]. Views take turns in x and hidden, the trained
 *  one last; only what heads gave is kept of each. */
typedef struct {
    float *memory;                               /* owned; the rest points into it        */
    float *x;                                    /* [TT_BLOCK][obs16]                     */
    float *hidden[TT_TOWERS_MAX][TT_HIDDEN_MAX]; /* [TT_BLOCK][out16]                     */
    float *out[CPU_VIEWS][TT_TOWERS_MAX];        /* columns                               */
    float *d_out[TT_TOWERS_MAX];                 /* columns                               */
    float *d[2];                                 /* [TT_BLOCK][widest out16]              */
    float *d_trunk[TT_TOWERS_MAX];               /* [TT_BLOCK][its last out16], of trunks */
    float *head_grad[TT_TOWERS_MAX];             /* [outs][in16]                          */
} cpu_lane_t;

typedef struct {
    const tt_kernels_t *kernels;
    size_t obs16;
    uint32_t back[TT_TOWERS_MAX]; /* the order of the way back: readers in their order, then the trunk they read */
    cpu_tower_t (*tower)[TT_TOWERS_MAX]; /* owned; by set */
    cpu_lane_t *lanes;
} cpu_net_t;

/*  net.c: build, rebuild and free what stands beside the parameters. */
tt_status_t cpu_net_new(tt_net_t *net);
void cpu_net_free(tt_net_t *net);
tt_status_t cpu_net_refresh(tt_net_t *net, uint32_t set, uint32_t groups);

/*  tower.c: a block of rows in a lane through one tower, and back. */
typedef struct {
    const cpu_net_t *net;
    const cpu_lane_t *lane;
    size_t rows;
    bool first; /* of the shard: sums are written, not added to                  */
    float *grad;
    uint32_t filled; /* trunks, as bits, whose d_trunk holds something of this block  */
} cpu_block_t;

/*  lane->x or a trunk's last layer through tower t of a set: its hidden layers, and its head (a trunk has none) to out. */
void cpu_tower_forward(const cpu_block_t *block, uint32_t set, uint32_t t, float *out);
/*  lane->d_out[t], or a trunk's d_trunk, to the parameters' gradient and to the trunk that it reads. */
void cpu_tower_backward(cpu_block_t *block, uint32_t t);
/*  When a shard ends: what stood transposed goes to its place. */
void cpu_tower_put_head_grad(const cpu_tower_t *tower, const float *head_grad, float *grad);

/*  pass.c: see the backend table. */
tt_status_t cpu_forward(
    tt_net_t *net, uint32_t lane, uint32_t set, const float *const *obs, size_t rows, float *const *out);
tt_status_t cpu_shard_grad(tt_net_t *net, uint32_t lane, const tt_pass_t *pass, float *grad);

/*  apply.c */
tt_status_t cpu_apply(tt_net_t *net, uint32_t group, const tt_opt_spec_t *opt, float *opt_state, uint64_t *step,
    const float *grad, float lr, float *norm_out);
tt_status_t cpu_blend(tt_net_t *net, uint32_t to, uint32_t from, uint32_t groups, float tau);
