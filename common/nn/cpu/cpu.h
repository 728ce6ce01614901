/*  cpu - the CPU backend: which kernels this processor gets, what a network keeps beside its parameters, and the work itself.
 *
 *  Threads: as nn.h says; lanes run at the same time, each in a workspace of its own, and only read everything else. */
#pragma once
#include "common/nn/backend.h"
#include "common/nn/cpu/kernels.h"
#include "common/nn/cpu/pool.h"

extern const tt_backend_ops_t tt_cpu_backend;

typedef struct {
    tt_device_t base;
    const tt_kernels_t *kernels;
    cpu_pool_t *pool;
    char name[32];
} cpu_device_t;

/*  What every device of this folder's kernels begins with; prefix: of its name, before the kernels'. */
tt_status_t cpu_device_init(
    cpu_device_t *self, const tt_backend_ops_t *ops, const char *prefix, int number, uint32_t lanes);
void cpu_device_clear(cpu_device_t *self);
const char *cpu_device_describe(const tt_device_t *self);

/*  Do one thing now. */
tt_status_t cpu_do(const tt_work_t *work);

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

typedef struct cpu_encoder cpu_encoder_t; /* encoder.h */
typedef struct cpu_encoder_lane cpu_encoder_lane_t;

/*  A tower in one set: hidden layers, then a head of few outputs that is kept transposed; an encoder has its own; one that is made of others' heads has
 *  none of these; a recurrent one has a layer of what it reads and a layer of what it carries, whose outputs are the gates'. */
typedef struct {
    tt_gemm_kind_t forward, backward; /* with its activation; backward: with that of what readers of it see */
    cpu_encoder_t *encoder;           /* owned; NULL: it is none                                 */
    size_t gives16;                   /* a trunk: what readers see of a row, rounded up          */
    uint32_t group;
    uint32_t chain; /* the towers whose forward its own takes, as bits: itself and the trunks before it */
    uint32_t near;  /* the same, but none before a recurrent one                                        */
    bool reads_obs; /* else it reads the trunk `from`                          */
    bool action;    /* and an action, behind what it reads                     */
    uint32_t from;
    tt_tower_kind_t made; /* of what these two gave, or of the one that both are; MLP: of none */
    uint32_t value, advantage;
    float low, high;                /* ATOMS */
    size_t units, units16, gates16; /* of a recurrent one, of a row; else 0 */
    bool lstm;                      /* else a GRU                           */
    size_t carry_at;                /* where in what a row carries          */
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
    uint32_t number;
    float *memory; /* owned; the rest points into it        */
    float *x;      /* [TT_BLOCK][obs16]; NULL: nobody reads it */
    float *joined; /* [TT_BLOCK][joined16] x, or what a trunk gives, and an action behind it; NULL: as above */
    float *action, *d_action; /* columns, of what is drawn; NULL: as above                    */
    void *stacked;            /* [TT_BLOCK][net->stacked] rows made of frames; NULL: the spec has no stack */
    float *hidden[TT_TOWERS_MAX][TT_HIDDEN_MAX]; /* [TT_BLOCK][out16]                     */
    float *out[CPU_VIEWS][TT_TOWERS_MAX];        /* columns                               */
    float *d_out[TT_TOWERS_MAX];                 /* columns                               */
    float *d[2];                                 /* [TT_BLOCK][widest out16]              */
    float *last[TT_TOWERS_MAX];                  /* [TT_BLOCK][gives16], of trunks: what they give */
    float *d_trunk[TT_TOWERS_MAX];               /* [TT_BLOCK][gives16], of trunks        */
    cpu_encoder_lane_t *encoder[TT_TOWERS_MAX];  /* owned; of encoders                    */
    float *head_grad[TT_TOWERS_MAX];             /* [outs][in16]                          */
    float *shown[CPU_VIEWS][TT_TOWERS_MAX]; /* columns, as `out`, of a slice; NULL: a block is always one shard's */
    float *d_shown[TT_TOWERS_MAX];          /* columns, as `d_out`                        */
    float *tile;                            /* [CPU_TILE] slices.c; NULL: as above        */
    float *carried[TT_TOWERS_MAX][2];       /* [TT_BLOCK][units16], of recurrent towers: h, and c of an LSTM */
    float *sequences;                       /* owned, grown by cpu_sequences_reserve: what is kept of sequences' rows */
    size_t sequences_room;
} cpu_lane_t;

typedef struct cpu_noise cpu_noise_t; /* noise.c: of noisy layers */

typedef struct {
    const tt_kernels_t *kernels;
    const tt_net_spec_t *spec; /* the network's */
    bool parts;                /* rows are not simply D floats             */
    bool bits; /* rows are bytes that nobody divides, most of them 0: layers that read them do so where they lie */
    bool flat; /* lane->x is read: a tower reads the observation as one vector of floats */
    size_t obs16, joined16; /* joined16: of what is read and an action; 0: nobody reads both */
    size_t action_at;       /* where the action begins in such a row                     */
    uint32_t acting;        /* towers that read one, as bits; no other tower reads these */
    uint32_t action_from;   /* what they read before it, as tt_tower_t.from              */
    size_t stacked;         /* bytes of a row in a lane, whole vectors */
    uint32_t recurrent;     /* towers, as bits                         */
    size_t carry;           /* floats that a row carries               */
    uint32_t
        back[TT_TOWERS_MAX]; /* the way back: those made of others; then readers in their order, then their trunk */
    cpu_tower_t (*tower)[TT_TOWERS_MAX]; /* owned; by set */
    cpu_noise_t *noise;                  /* owned */
    cpu_lane_t *lanes;
} cpu_net_t;

/*  net.c: build, rebuild and free what stands beside the parameters. */
tt_status_t cpu_net_new(tt_net_t *net);
void cpu_net_free(tt_net_t *net);
void cpu_net_refresh(const tt_net_t *net, uint32_t set, uint32_t groups);
/*  Of noisy towers alone. */
void cpu_net_refresh_noisy(const tt_net_t *net, uint32_t set);
/*  Zeroed memory of the device. */
float *cpu_new_floats(tt_device_t *device, size_t rows, size_t cols);
/*  A layer's copies; tensors: its weight and bias. `back`: the gradient of its input is wanted. */
void cpu_layer_build(cpu_layer_t *layer, tt_device_t *device, const tt_tensor_t *weight, const tt_tensor_t *bias,
    const float *params, bool back);
void cpu_layer_free(tt_device_t *device, cpu_layer_t *layer);
void cpu_layer_refresh(const tt_kernels_t *kernels, const cpu_layer_t *layer, const float *params);
/*  Some of a lane's memory; NULL as long as it has none and only counts, in *at. */
float *cpu_carve(const cpu_lane_t *lane, size_t *at, size_t floats);

/*  Rows of a block that are one shard's, and where their sums go. */
typedef struct {
    size_t first, rows;
    float *grad;
} cpu_slice_t;

/*  tower.c: a block of rows in a lane through one tower, and back. */
typedef struct {
    const cpu_net_t *net;
    const cpu_lane_t *lane;
    size_t rows;
    const void *from[TT_BLOCK]; /* the rows of observations, where they lie                       */
    bool first;                 /* of the shard: sums are written, not added to                  */
    uint32_t slices;            /* a power of two: shards whose rows these are, or 1: of one's, some */
    const cpu_slice_t *slice;
    uint32_t filled; /* trunks, as bits, whose d_trunk holds something of this block  */
} cpu_block_t;

/*  gather.c: block->from gets the block's rows of a table: by their numbers, or (row NULL) those from `at` on; lane->x gets their
 *  numbers as one vector. */
void cpu_gather(cpu_block_t *block, const tt_table_t *obs, const uint32_t *row, size_t at);

/*  Towers (bits), each with the trunks before it, in their order: lane->x through hidden layers and heads, the heads to
 *  lane->out[view]. */
void cpu_towers_forward(const cpu_block_t *block, uint32_t view, uint32_t towers);
/*  lane->d_out[t], or a trunk's d_trunk, to the parameters' gradient and to the trunk that it reads. */
void cpu_tower_backward(cpu_block_t *block, uint32_t t);
/*  What goes into the first layer of tower t; NULL: the rows' bytes. */
const float *cpu_tower_input(const cpu_block_t *block, uint32_t t);
/*  What came to the output of that layer, d, goes to the trunk that the tower reads. Scratch: [rows][widest out16]. */
void cpu_give_to_trunk(cpu_block_t *block, uint32_t t, const float *d, float *scratch);
/*  A layer of the block, [rows][in16] to [rows][out16]; the gradient of its weight and bias; and of its input, with the derivative of
 *  what gave that, h. Input NULL: the bytes of the rows where they lie, whose zeros are left out. */
void cpu_layer_forward(
    const cpu_block_t *block, const cpu_layer_t *layer, tt_gemm_kind_t kind, const float *input, float *out);
void cpu_layer_param_grad(const cpu_block_t *block, const cpu_layer_t *layer, const float *input, const float *d);
void cpu_layer_input_grad(const cpu_block_t *block, const cpu_layer_t *layer, tt_gemm_kind_t kind, const float *d,
    const float *h, float *d_input);
/*  When a shard ends: what stood transposed goes to its place. */
void cpu_tower_put_head_grad(const cpu_tower_t *tower, const float *head_grad, float *grad);

/*  The gradient of layer l's input (l = layers: the head's), with the derivative of the activation that gave it. d: what came to the
 *  layer's output; of the head, lane->d_out. */
void cpu_tower_input_grad(const cpu_block_t *block, uint32_t t, uint32_t l, const float *d, float *d_input);

/*  action.c: lane->joined gets what those towers read that read an action, and this behind it: that of lane->action or, not NULL, of
 *  rows of floats by their numbers. What came to the first layer of such a tower, d, goes to the trunk that it reads, [rows][gives16],
 *  with the derivative of what gave that; numbers behind a row's last are nobody's. And the way back from the head of tower t to the
 *  drawn action that it read, which changes no gradient of its own: lane->d_action is written, or `more`: added to. */
void cpu_join(const cpu_block_t *block, const float *given, const uint32_t *row);
void cpu_beside_grad(const cpu_block_t *block, uint32_t t, const float *d, float *d_trunk);
void cpu_tower_through(const cpu_block_t *block, uint32_t t, bool more);

/*  dueling.c: what a dueling tower makes of two heads, q[a] = v + (adv[a] - mean adv), and back. Columns of TT_BLOCK rows; a
 *  mean is one chain over a, divided by their number. Of choices of n numbers each, `outs` in all, so for each of the n by itself. Plain C is
 *  enough: each operation is one rounding, whatever vectors a compiler makes of it. */
void cpu_dueling_forward(const float *value, const float *advantage, size_t outs, size_t n, float *q);
void cpu_dueling_backward(const float *d_q, size_t outs, size_t n, float *d_value, float *d_advantage);
/*  Numbers of each part of the head that a tower is made of. */
static inline size_t cpu_parts(const cpu_block_t *block, const cpu_tower_t *tower)
{
    return block->net->tower[0][tower->value].outs / tower->outs;
}
/*  mean.c: q[a] = the mean of number a n .. a n + n - 1 of a head, a chain from the first, divided; and back. */
void cpu_mean_forward(const float *head, size_t outs, size_t n, float *q);
void cpu_mean_backward(const float *d_q, size_t outs, size_t n, float *d_head);
/*  atoms.c: q[a] = the sum of z[i] e^(x[a n + i] - m) over that of e^(x[a n + i] - m), m the largest of these x; two chains from 0. */
void cpu_atoms_forward(const float *head, size_t outs, size_t n, float low, float high, float *q);

/*  recurrent.c: what a row carries into a tower, from its place among what the row carries for all (NULL: zeros), to h and c; and out of
 *  it. A step of the block's rows: what is read and lane->carried[t] to lane->last[t] and, of an LSTM, lane->carried[t][1]. */
void cpu_carry_in(const cpu_tower_t *tower, const float *row, float *h, float *c);
void cpu_carry_out(const cpu_tower_t *tower, const float *h, const float *c, float *row);
void cpu_recurrent_forward(const cpu_block_t *block, uint32_t set, uint32_t t);

/*  forward.c */
tt_status_t cpu_forward(const tt_work_t *work);
tt_status_t cpu_walk(const tt_work_t *work);

/*  noise.c. The floats that a tower's layers read, in the places of the parameters: these, or those with noise; what the latter are,
 *  after the parameters of groups have changed; the gradients of deviations, when a shard ends. */
cpu_noise_t *cpu_noise_new(const tt_net_t *net);
void cpu_noise_free(const tt_net_t *net, cpu_noise_t *self);
const float *cpu_noise_weights(const tt_net_t *net, uint32_t set, uint32_t t);
void cpu_noise_refresh(const tt_net_t *net, uint32_t set, uint32_t groups);
void cpu_noise_back(const tt_net_t *net, uint32_t groups, float *grad);
tt_status_t cpu_noise(const tt_work_t *work);

/*  pass.c: the rows of a shard through an objective. A plan is made once for all shards: which towers each view computes and
 *  which are walked back, as bits; where the tables lie that the loss reads. */
typedef struct {
    const tt_net_t *net;
    const tt_pass_t *pass;
    uint32_t forward[CPU_VIEWS];
    uint8_t action[CPU_VIEWS]; /* tt_action_kind_t: what its towers read that read one  */
    uint32_t back;
    uint32_t through; /* towers through which gradients go to what was drawn */
    uint32_t groups;  /* groups that are trained, as bits; what a gradient has of them, and behind the parameters: */
    uint32_t spans;
    tt_span_t span[TT_SPANS_MAX];
    uint32_t near; /* towers that the stages take without what comes before recurrent ones */
    const void *input[TT_INPUTS_MAX];
} cpu_plan_t;

void cpu_plan(cpu_plan_t *self, const tt_net_t *net, const tt_pass_t *pass);
/*  Rows first .. end-1 of the pass. */
void cpu_shard(const cpu_plan_t *plan, const cpu_lane_t *lane, uint32_t first, uint32_t end, float *grad);
/*  Several shards in one block, whose rows begin with the pass's row `first`: a power of two of them, all of a node of the tree, whose sum
 *  is slice[0]'s gradient then. The others' are scratch. */
void cpu_shards(
    const cpu_plan_t *plan, const cpu_lane_t *lane, uint32_t first, const cpu_slice_t *slice, uint32_t slices);
/*  The loss on what lane->out holds of a block; row: the block's numbers. One tower of the block, back. */
void cpu_loss(const cpu_plan_t *plan, const cpu_block_t *block, const uint32_t *row);
void cpu_back(cpu_block_t *block, uint32_t t);

/*  slices.c: shards side by side in a block. Does a network's pass allow that? The loss of each (all: of the block); floats of their
 *  gradients added up in the tree's order, in slice[0]; and those of a layer's weight and bias, [rows][in16] times [rows][out16],
 *  added up before they leave the nearest caches (input NULL: as above). */
enum { CPU_TILE = 65536 };
bool cpu_slices_may(const cpu_net_t *net);
void cpu_slices_loss(const cpu_plan_t *plan, const cpu_block_t *block, const tt_loss_block_t *all);
void cpu_slices_add(const cpu_block_t *block, size_t first, size_t count);
void cpu_slices_layer_grad(const cpu_block_t *block, const cpu_layer_t *layer, const float *input, const float *d);
/*  pass.c: what a loss adds to in a shard's gradient. */
void cpu_show_sums(const cpu_plan_t *plan, const cpu_slice_t *slice, tt_loss_block_t *out);

/*  sequences.c: the same of a recurrent network, for rows that are whole sequences. Reserve: room in each lane for the sequences of a
 *  run's shards, before the lanes start. */
void cpu_sequences_reserve(const cpu_plan_t *plan, const tt_sums_t *sums);
void cpu_sequences(const cpu_plan_t *plan, const cpu_lane_t *lane, uint32_t first, uint32_t end, float *grad);

/*  sums.c. Tell: a part of the pass is done in this lane. Fill: zeros to a gradient of these sums where it has nothing of
 *  these groups. */
void cpu_tell(const cpu_plan_t *plan, const cpu_lane_t *lane);
void cpu_sums_fill(const tt_sums_t *sums, uint32_t groups, float *grad);
tt_status_t cpu_compute(const tt_work_t *work);
tt_status_t cpu_node(const tt_work_t *work);
tt_status_t cpu_sum(const tt_work_t *work);

/*  apply.c */
tt_status_t cpu_state_put(const tt_work_t *work);
tt_status_t cpu_state_get(const tt_work_t *work);
tt_status_t cpu_step(const tt_work_t *work);
tt_status_t cpu_report(const tt_work_t *work);
tt_status_t cpu_blend(const tt_work_t *work);
tt_status_t cpu_store(const tt_work_t *work);
tt_status_t cpu_stored(const tt_work_t *work);
/*  Memory for rows that the table has a copy of; what was there is gone. */
tt_status_t cpu_table_room(tt_table_t *table, size_t bytes);
