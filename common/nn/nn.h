/*  nn - a list of networks as one flat parameter vector, on one device (device.h).
 *
 *  A network is a list of *towers*: MLPs that read the observation, or the last layer of an earlier tower without a
 *  head (a *trunk*); *encoders*, trunks made of layers of any kind (convolutions ...), which read pictures; *recurrent*
 *  towers, trunks that remember: what they carry goes from a step of an env to the next; and *dueling*
 *  towers, which have no parameters and make values of choices of the heads of two others. A tower may read an *action* beside the
 *  observation, which a pass gives or draws from the head of another.
 *  Towers lie in *groups*, contiguous parts of the vector with an optimiser, a step counter and a clip of
 *  their own. A *set* is a copy of the vector: set 0 is trained, others follow it (target networks).
 *
 *  Parameters are one flat float32 vector with named tensors. A gradient has the same shape, followed by TT_LOSS_STATS
 *  sums and `ride` floats that the loss wants added up with it, zero-padded to tt_net_grad_count().
 *
 *  Batch invariance: a row's result does not depend on the rows beside it; sums over rows run in the order the rows are
 *  given, in blocks of TT_BLOCK; every CPU build (portable, AVX2, AVX-512), any number of lanes and cpu-strict give the
 *  same bits.
 *
 *  Shapes:  D = spec.obs, A = out of a tower, row-major unless said.
 *  Streams: calls that name one queue work on it, and borrow and fill as device.h says; those that say so wait for it.
 *  Threads: as device.h. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/base/limits.h"
#include "common/base/progress.h"
#include "common/base/rng.h"
#include "common/base/status.h"
#include "common/nn/device.h"
#include "common/nn/loss.h"

enum {
    TT_GROUP_ALIGN = 64, /* floats: where a group may begin                                */
    TT_HIDDEN_MAX = TT_LAYERS_MAX,
    TT_SEQUENCES = 32,     /* side by side (tt_sums_t): TT_BLOCK, so that only a shard's last block is short */
    TT_SEQUENCE_FLOATS = 9 /* floats of each unit and row of sequences that are trained on (cpu/sequences.c) */
};

typedef enum { TT_NN_TANH, TT_NN_RELU, TT_NN_NONE } tt_nn_activation_t; /* NONE: of encoders' layers only */
typedef enum { TT_NN_ORTHOGONAL, TT_NN_UNIFORM } tt_nn_init_t;          /* first weights: tt_net_init */
typedef enum {
    TT_TOWER_MLP,
    TT_TOWER_DUELING, /* Q_a = V + (A_a - mean A), Wang et al. 2016, arXiv:1511.06581, equation 9; or so each part of Q */
    TT_TOWER_ENCODER, /* layers of any kind; a trunk                                              */
    TT_TOWER_MEAN,    /* Q_a = the mean of the a-th part of a head, as of quantiles of returns            */
    TT_TOWER_ATOMS, /* Q_a = sum of z_i softmax(the a-th part of a head)_i, z the atoms of returns; no gradient goes through it */
    TT_TOWER_LSTM, /* recurrent: a layer of torch.nn.LSTM or torch.nn.GRU of hidden[0] units; a trunk */
    TT_TOWER_GRU
} tt_tower_kind_t;

/*  Is it made of other towers' heads, and has no parameters? */
static inline bool tt_tower_is_made(tt_tower_kind_t kind)
{
    return kind == TT_TOWER_DUELING || kind == TT_TOWER_MEAN || kind == TT_TOWER_ATOMS;
}

static inline bool tt_tower_recurs(tt_tower_kind_t kind)
{
    return kind == TT_TOWER_LSTM || kind == TT_TOWER_GRU;
}

/*  An observation is a row of *parts* side by side, each from a multiple of 4 bytes on: floats, or bytes that are widened on the
 *  device. A tower that reads "the observation" reads all parts as one vector of D numbers, in their order. */
typedef struct {
    bool bytes;        /* uint8_t; else float                                        */
    uint32_t elements; /* >= 1                                                       */
    float divisor;     /* bytes as an encoder reads them: number / divisor, 1 or 255 */
} tt_part_t;

/*  What an encoder does to one row, layer by layer. A picture is [height][width][channels] in memory; where a vector is wanted
 *  (dense, concat, whoever reads the encoder) it is that, flattened. Files hold what PyTorch would: kernels as [out][in][kh][kw], the
 *  inputs of a dense layer behind a picture in the order [channels][height][width]. Orders of sums: docs/internals/nn.md. */
typedef enum {
    TT_LAYER_CONV2D,     /* units: output channels; kernel, stride, pad (zeros)                     */
    TT_LAYER_MAX_POOL,   /* kernel, stride, pad (never chosen)                                      */
    TT_LAYER_DENSE,      /* units                                                                   */
    TT_LAYER_LAYER_NORM, /* over all of a row's numbers, eps 1e-5, with a gain and a bias for each   */
    TT_LAYER_ACTIVATION, /* nothing but `activation`                                                */
    TT_LAYER_RESIDUAL,   /* x + f(x): f is the next `span` layers, which keep the shape; may nest    */
    TT_LAYER_CONCAT,     /* the vector so far, and behind it observation part `part` (no gradient)  */
    TT_LAYER_AVG_POOL,   /* kernel, stride, pad (zeros, which count)                                */
    TT_LAYER_EMBED /* the vector so far, and behind it a learned vector of `units` for each choice of part `part` */
} tt_layer_kind_t;

static inline bool tt_layer_pools(tt_layer_kind_t kind)
{
    return kind == TT_LAYER_MAX_POOL || kind == TT_LAYER_AVG_POOL;
}
/*  Has it a kernel, a stride and padding, and needs a picture therefore? */
static inline bool tt_layer_looks(tt_layer_kind_t kind)
{
    return kind == TT_LAYER_CONV2D || tt_layer_pools(kind);
}
/*  Does it keep the vector so far, and put something of the observation behind it? */
static inline bool tt_layer_appends(tt_layer_kind_t kind)
{
    return kind == TT_LAYER_CONCAT || kind == TT_LAYER_EMBED;
}

typedef struct {
    tt_layer_kind_t kind;
    tt_nn_activation_t activation; /* behind it; of RESIDUAL: behind the sum            */
    uint32_t units;
    uint8_t kernel[2], stride[2], pad[2]; /* height, width                              */
    uint32_t span, part;
    uint32_t choice,
        choices; /* EMBED: the part is one-hot groups of spec.choice[choice .. choice + choices - 1] floats, the same again
                                 for each frame of a stack. A group without a number other than 0 is given zeros */
} tt_layer_t;

/*  A dueling tower has nothing but a name, out, group and the two that it reads, whose heads no other reads: one of n outputs, and one of
 *  `out`, n times as many; number i of choice a is a n + i. Of a mean, or of atoms, both are the one tower whose head, of `out` parts, it
 *  reads: a tower with layers, or a dueling one. An encoder has a
 *  name, group, layers and what it reads: it reads the observation (`from` 0), and has no head. A recurrent tower has a name, group, one
 *  number of units (hidden_count 1), and reads the observation or a trunk behind which nothing recurs: none reads another, however many
 *  towers lie between. Its tensors: <tower>.weight_ih_l0 [in][gates x H], <tower>.bias_ih_l0, <tower>.weight_hh_l0 [H][gates x H],
 *  <tower>.bias_hh_l0, gates in PyTorch's order: i, f, g, o of an LSTM, r, z, n of a GRU. */
typedef struct {
    char name[24];                  /* "actor"; its tensors are "actor.0.weight", ...                       */
    uint32_t from;                  /* 0 = the observation; k = the last hidden layer of tower k - 1, a trunk */
    uint32_t hidden_count;          /* 0 .. TT_HIDDEN_MAX                                                   */
    uint32_t hidden[TT_HIDDEN_MAX]; /* units                                                                */
    tt_nn_activation_t activation;
    uint32_t out;     /* A: floats of the head (logits, means, values); 0 = no head: a trunk       */
    uint32_t log_std; /* L: floats of <name>.log_std beside it, at most A; 0 = there is none       */
    bool log_alpha;   /* they are no deviations, and called <name>.log_alpha: weights of its loss  */
    bool
        action; /* MLP with hidden layers: behind the observation, or behind an encoder's or MLP's trunk, it reads an action;
                         seen in passes alone. All such towers of a network read the same observation or trunk; no other tower is
                         made of their heads, and nothing in the network recurs */
    uint32_t group; /* 0 for the first tower; then that of the tower before, or one more         */
    tt_tower_kind_t kind;
    float
        noise; /* MLP: > 0: its layers are noisy (Fortunato et al. 2018, arXiv:1706.10295, factorised): beside each weight and bias stands a
                    deviation, <tensor>_sigma, at first noise / sqrt(inputs); 0: they are not                   */
    uint32_t value, advantage; /* DUELING: numbers of two MLPs before it; MEAN, ATOMS: of one MLP or DUELING, twice */
    float low, high;           /* ATOMS: the first and the last of them, low < high                             */
    /* ENCODER: */
    uint32_t layer, layers; /* spec.layer[layer .. layer + layers - 1], at least one                         */
    uint32_t part;          /* the part that it reads as a picture; with height 0: all parts, as one vector  */
    bool blank;             /* height 0: none; its first layers put behind a vector of 0 numbers what they know */
    uint32_t height, width,
        channels; /* of the picture: elements = height x width x channels                          */
    uint32_t
        planes; /* the row holds it as [planes][height][width][channels / planes]; 0 = 1, and as many as channels: channels
                            first. Channel c is number c % (channels / planes) of plane c / (channels / planes)       */
} tt_tower_t;

/*  How many deviations stand beside its head. */
static inline uint32_t tt_tower_deviations(const tt_tower_t *tower)
{
    return tower->log_alpha ? 0 : tower->log_std;
}

typedef struct {
    uint32_t obs;     /* D >= 1: elements of all parts                                   */
    uint32_t action;  /* numbers of the action that towers with `action` read            */
    tt_stack_t stack; /* of tables whose rows are made of frames; none at first          */
    uint32_t parts;   /* 0: one, of D floats                                             */
    tt_part_t part[TT_PARTS_MAX];
    uint32_t towers; /* 1 .. TT_TOWERS_MAX; a tower comes before those who read it      */
    tt_tower_t tower[TT_TOWERS_MAX];
    uint32_t layers; /* of all encoders together, at most TT_ENCODER_LAYERS_MAX         */
    tt_layer_t layer[TT_ENCODER_LAYERS_MAX];
    uint32_t choices; /* of all EMBED layers                                              */
    uint32_t choice[TT_EMBEDDED_MAX];
    uint32_t sets; /* 0 .. TT_SETS_MAX; 0 = 1                                         */
    uint32_t ride; /* floats behind the statistics that ride on the sum of a gradient */
    tt_nn_init_t init;
} tt_net_spec_t;

/*  "actor" with one weight of its loss (log_alpha), in group 0; "q1" and "q2", a value each of the observation and an action of so many
 *  numbers, in group 1. */
tt_net_spec_t tt_net_soft_actor_critic(uint32_t obs, const uint32_t *hidden, uint32_t hidden_count,
    tt_nn_activation_t activation, uint32_t out, uint32_t action);

/*  The same, but that "actor" has nothing beside it, and gives a number for each of the action. */
tt_net_spec_t tt_net_twin_critics(
    uint32_t obs, const uint32_t *hidden, uint32_t hidden_count, tt_nn_activation_t activation, uint32_t action);

/*  The usual pair: "actor" with log_std and "critic" with one value, apart from one another, in one group. Like any other
 *  it is checked by tt_net_new. */
tt_net_spec_t tt_net_actor_critic(uint32_t obs, const uint32_t *hidden, uint32_t hidden_count,
    tt_nn_activation_t activation, uint32_t out, uint32_t log_std);

/*  The same with one trunk, "trunk", which has all the hidden layers; "actor" and "critic" are heads on it. */
tt_net_spec_t tt_net_shared(uint32_t obs, const uint32_t *hidden, uint32_t hidden_count, tt_nn_activation_t activation,
    uint32_t out, uint32_t log_std);
/*  A single tower: "q" with a value for every choice. */
tt_net_spec_t tt_net_one(const char *name, uint32_t obs, const uint32_t *hidden, uint32_t hidden_count,
    tt_nn_activation_t activation, uint32_t out);
/*  How values of choices come about: dueling, from "value" and "advantage", which have the last of the hidden layers each and
 *  read "trunk", which has those before it (with one hidden layer, or none, there is no trunk); and, so or not, from several numbers each. */
typedef struct {
    bool dueling;
    uint32_t quantiles; /* > 0: "q" is the means of "quantiles", so many for every choice    */
    uint32_t atoms;     /* >= 2, and no quantiles: "q" is what is expected by "atoms"        */
    float low, high;    /* of atoms                                                          */
} tt_values_t;
/*  "q" with a value for every choice; NULL: one tower. */
tt_net_spec_t tt_net_values(uint32_t obs, const uint32_t *hidden, uint32_t hidden_count, tt_nn_activation_t activation,
    uint32_t choices, const tt_values_t *how);
/*  Put an encoder before all towers: those that read the observation read it instead. Its layers are those already in
 *  spec->layer[tower->layer ..]. With `separate`, each of these towers gets one of its own, called "<tower>_encoder". The text of
 *  what does not fit comes from tt_net_new. */
void tt_net_put_encoder(tt_net_spec_t *spec, const tt_tower_t *encoder, bool separate);
/*  The same before the towers of one group alone (< 32) that read the observation: one for all of them, under the encoder's own name. */
void tt_net_put_encoder_of(tt_net_spec_t *spec, const tt_tower_t *encoder, uint32_t group);
/*  Put a recurrent tower (kind LSTM or GRU, units) before all MLPs that read the observation or an encoder: they read it, and it reads
 *  what they did; called "lstm" or "gru". With `separate`, each of them gets one of its own, called "<tower>_lstm". After tt_net_put_encoder, with the same
 *  `separate`. */
void tt_net_put_recurrent(tt_net_spec_t *spec, tt_tower_kind_t kind, uint32_t units, bool separate);
/*  Floats that a tower carries from one step to the next; 0: it does not recur. */
uint32_t tt_tower_carry(const tt_tower_t *tower);
/*  Floats that an env carries from one step to the next, C: tower by tower h[H], and of an LSTM then c[H]. 0: nothing recurs. Where an
 *  episode begins they are zeros. */
uint32_t tt_net_carry(const tt_net_spec_t *spec);
/*  What an encoder's layer gives, [height][width][channels]: vectors are 1 x 1 x units. The spec must be valid. For whoever shows
 *  a network. */
void tt_net_layer_shape(const tt_net_spec_t *spec, uint32_t tower, uint32_t layer, uint32_t shape[3]);
/*  Multiply-adds of a row on its way forward through one tower, without the trunks before it. */
uint64_t tt_net_tower_work(const tt_net_spec_t *spec, uint32_t tower);
/*  Bytes of an observation's row: a table of observations has rows of these. A lone part of bytes is followed by nothing; else a
 *  row is a multiple of 4. */
size_t tt_net_row_bytes(const tt_net_spec_t *spec);
/*  The number of the tower of that name; spec->towers when there is none. */
uint32_t tt_net_tower(const tt_net_spec_t *spec, const char *name);

typedef enum {
    TT_TENSOR_VECTOR, /* [cols]: a bias, log_std                                                            */
    TT_TENSOR_DENSE,  /* [rows][cols] = [in][out]; in files [out][in]                                       */
    TT_TENSOR_KERNEL, /* [rows][cols] = [kh x kw x in][out]; in files [out][in][kh][kw]                     */
    TT_TENSOR_NORM,   /* [cols], a gain or bias of each number; over a picture [channels][height][width] in files */
    TT_TENSOR_TABLE   /* [rows][cols], a vector for each choice; in files too                                     */
} tt_tensor_kind_t;

/*  One named tensor in the flat vector. Weights are stored [in][out] (columns contiguous); files hold [out][in], as
 *  PyTorch does (tensor.h). Names: actor.0.weight, actor.0.bias, ..., actor.log_std, critic.0.weight, ... */
typedef struct {
    char name[56];
    tt_tensor_kind_t kind;
    uint32_t rows, cols; /* but for weights, rows = 1                                                             */
    size_t offset;       /* in floats                                                                             */
    uint32_t kernel[2];  /* kh, kw of a KERNEL                                                                    */
    uint32_t
        picture[3]; /* height, width, channels of the picture that the first inputs of a DENSE, or numbers of a NORM,
                            are or were; else 0: files hold these in the order [channels][height][width]        */
} tt_tensor_t;

/*  Tensors of a layer whose weight is of that kind: a bias follows it, but a table. */
static inline uint32_t tt_layer_tensors(tt_tensor_kind_t weight)
{
    return weight == TT_TENSOR_TABLE ? 1 : 2;
}

typedef struct tt_net tt_net_t; /* opaque */

/* ---- a network ------------------------------------------------------------------------------------------------- */

/*  Number of parameters, with the zeros between groups; number of floats in a gradient buffer (parameters, statistics and
 *  what rides, rounded up to 16). A spec that is refused has 0 parameters. */
size_t tt_net_param_count(const tt_net_spec_t *spec);
size_t tt_net_grad_count(const tt_net_spec_t *spec);
/*  Where the loss statistics start in a gradient buffer; what rides follows them. */
size_t tt_net_stats_offset(const tt_net_spec_t *spec);
/*  How many groups, and where one lies in the vector. */
uint32_t tt_net_groups(const tt_net_spec_t *spec);
void tt_net_group_span(const tt_net_spec_t *spec, uint32_t group, size_t *first, size_t *count);

/*  TT_INVALID: a number in spec is out of range. The device is borrowed. All parameters are 0. */
tt_status_t tt_net_new(tt_net_t **self_p, tt_device_t *device, const tt_net_spec_t *spec);
void tt_net_destroy(tt_net_t **self_p);
const tt_net_spec_t *tt_net_spec(const tt_net_t *self);
const tt_tensor_t *tt_net_tensors(const tt_net_t *self, size_t *count);

/*  Version 0, all sets alike; log_std = log_std0. ORTHOGONAL: orthogonal weights (gain sqrt 2 for hidden layers, gain[t] for the
 *  head of tower t), biases 0. UNIFORM: weights and biases within 1 / sqrt(inputs) of 0, those of the head of tower t within
 *  gain[t] of that. Recurrent towers: ORTHOGONAL with gain 1, biases 0, or UNIFORM within 1 / sqrt(units). Philox stream TT_STREAM_INIT. The same bits everywhere. Waits, and tells of each column or layer that
 *  is done: two ORTHOGONAL layers of 4096 x 4096 take minutes. */
tt_status_t tt_net_init(
    tt_net_t *self, tt_stream_t *stream, uint64_t seed, const float *gain, float log_std0, tt_progress_t progress);

/*  Copy all parameters of a set in / out: tt_net_param_count floats. Both wait. */
tt_status_t tt_net_put(tt_net_t *self, tt_stream_t *stream, uint32_t set, const float *params);
tt_status_t tt_net_get(const tt_net_t *self, tt_stream_t *stream, uint32_t set, float *params);
/*  log_std[L] of a tower; nothing when it has no deviations. Waits. */
tt_status_t tt_net_get_log_std(const tt_net_t *self, tt_stream_t *stream, uint32_t set, uint32_t tower, float *log_std);

/*  p_to = fma(tau, p_from - p_to, p_to) in the groups of the mask (bit g is group g), 0 <= tau <= 1; 1 copies. */
tt_status_t tt_net_blend(tt_net_t *self, tt_stream_t *stream, uint32_t to, uint32_t from, uint32_t groups, float tau);

/*  Which noise noisy layers have: a pure function of these, of the set and of the layer. */
typedef struct {
    uint64_t seed;
    tt_rng_stream_t stream; /* TT_STREAM_NOISE and the like     */
    uint64_t clock;         /* below 2^44; one more, other noise */
} tt_noise_t;

/*  From here on the noisy layers of a set compute with mean + deviation x noise, the same for all rows, whatever their parameters
 *  become. NULL: with means, as at first. Nothing where no layer is noisy. */
tt_status_t tt_net_noise(tt_net_t *self, tt_stream_t *stream, uint32_t set, const tt_noise_t *noise);
bool tt_net_noisy(const tt_net_spec_t *spec);

/*  A step of a recurrent network: what each row carries into it, and out of it: [rows][C] on the host, C = tt_net_carry. `in` is borrowed
 *  until the sync. `out` NULL: nobody wants it; it may be `in`. */
typedef struct {
    const float *in;
    float *out;
} tt_carry_t;

/*  The first `rows` of a table of observations (rows of tt_net_row_bytes; TT_INVALID: it has fewer). Fills out[t][rows][A] of each
 *  tower; out[t] may be NULL and is then not computed, and is not read for a trunk; it is NULL for a tower that reads an action. `out` itself is read at once, as `carry` is. For who acts: it is
 *  expected again with as many rows, and a device that records work records it. carry: NULL where nothing recurs, and only there. */
tt_status_t tt_net_forward(tt_net_t *self, tt_stream_t *stream, uint32_t set, const tt_table_t *obs, size_t rows,
    const tt_carry_t *carry, float *const *out);
/*  The same of rows first .. first + rows - 1, which is not expected again. What a row gives does not depend on which others are asked for
 *  with it. */
tt_status_t tt_net_forward_from(tt_net_t *self, tt_stream_t *stream, uint32_t set, const tt_table_t *obs, size_t first,
    size_t rows, const tt_carry_t *carry, float *const *out);

/*  Steps of a recurrent network, `rows` sequences side by side: row r of step k is the table's row first + k apart + r. Arrays of [rows][C] are as
 *  tt_carry_t has them. */
typedef struct {
    size_t first, apart;
    uint32_t rows, steps;  /* rows <= apart                                                        */
    const uint8_t *begins; /* [steps][apart]: not 0, an episode begins with the row: nothing is carried into it */
    const float *in;       /* [rows][C] carried into the first step                                */
    float *left;           /* [rows][C] carried out of the last; may be `in`                       */
    uint32_t keeps;
    const uint32_t *keep; /* [keeps] of these rows, by the table's numbers, ascending ...         */
    float *kept;          /* ... [keeps][C] what each carries on                                   */
} tt_walk_t;

/*  As tt_net_forward_from, of all steps in their order, and nobody has to wait between two of them. Fills out[t] + k apart + r, [A] each. What
 *  *steps names is borrowed until the sync. */
tt_status_t tt_net_walk(tt_net_t *self, tt_stream_t *stream, uint32_t set, const tt_table_t *obs,
    const tt_walk_t *steps, float *const *out);

/* ---- objectives ------------------------------------------------------------------------------------------------ */

/*  Which observation of a row a forward reads: the row's own, or the one from which its return goes on. */
typedef enum { TT_AT, TT_NEXT } tt_frame_t;
enum { TT_FRAMES = 2 };

/*  Which action a tower reads that reads one: that of a table of the pass, or what was drawn. */
typedef enum { TT_ACTION_NONE, TT_ACTION_GIVEN, TT_ACTION_DRAWN } tt_action_kind_t;

/*  One forward: of a tower with a head, with the parameters of a set, from one frame. A dueling tower and one that it reads are
 *  not trained in one objective: a head has one source of gradient. Stages of one set and frame read the same action. */
typedef struct {
    uint8_t tower, set, frame; /* frame: tt_frame_t                                              */
    bool grad;                 /* train it: set 0 and TT_AT only                                 */
    uint8_t action;            /* tt_action_kind_t                                                    */
    bool through; /* DRAWN, set 0, TT_AT: the gradient of its head goes through it to the draw; it is not trained */
    bool known;   /* its head is known: rows of the pass's table; nothing is forwarded, trained or drawn from */
} tt_objective_stage_t;

/*  Forwards, a loss on all their heads, and the way back through those that are trained. */
typedef struct {
    const char *name;
    uint32_t stages; /* 1 .. TT_STAGES_MAX, no two alike */
    tt_objective_stage_t stage[TT_STAGES_MAX];
    tt_loss_fn loss;
    uint8_t given;          /* the input whose rows are the actions that are GIVEN: spec.action floats             */
    uint8_t source;         /* the stage that is drawn from; if it is trained, all stages are of set 0 and TT_AT   */
    tt_draw_fn draw;        /* NULL: nothing is drawn                                                       */
    tt_draw_back_fn d_draw; /* where a stage is `through`                                                  */
} tt_objective_t;

/*  TT_INVALID: the network has no such stages (the text says which); tt_net_gradients says the same. Of a recurrent network all are of
 *  set 0 and TT_AT, or known. */
tt_status_t tt_objective_check(const tt_objective_t *objective, const tt_net_spec_t *spec);

/*  One objective over some rows of tables. */
typedef struct {
    const tt_objective_t *objective;
    const void *params; /* of the loss: copied by the call; at most TT_LOSS_PARAMS_MAX bytes, no alignment above 16 */
    size_t params_size;
    const tt_table_t *obs[TT_FRAMES];       /* by frame: rows of observations; unread ones may be NULL     */
    const tt_table_t *input[TT_INPUTS_MAX]; /* what the loss reads, put side by side; one row: for all */
    const tt_table_t *head[TT_STAGES_MAX];  /* of known stages, put side by side: rows of A floats; else NULL */
    const uint32_t *row;                    /* [rows] in all of these tables; TT_INVALID: one has fewer    */
    uint32_t rows;                          /* 0: a sum of nothing                                         */
    /*  A recurrent network is trained on *sequences*: runs of `length` rows that follow one another in an env, row = [rows / length][length].
     *  Gradients go back to a sequence's first row or to where an episode began in it, and no further. 0 where nothing recurs. */
    uint32_t length;
    const tt_table_t *carry; /* what a sequence carries into its first row r: the table's row r, of C floats */
    const tt_table_t
        *begins; /* by row, one byte: not 0, an episode begins with it, so that nothing is carried into it */
    /*  Called as its parts are done (a block of rows, a step of sequences), on the thread that computes, while the caller
     *  waits. On a card all of it is one piece of work, and nothing is told. */
    tt_progress_t progress;
} tt_pass_t;

/* ---- sums ---------------------------------------------------------------------------------------------------------- */

/*  Gradients of shards and their sums along the fixed tree (tree.h), on the device. Shard s of S has rows [s m / S,
 *  (s + 1) m / S) of a minibatch of m; where these are sequences it has those sequences of m. Sums over the rows of a shard of sequences run over TT_SEQUENCES
 *  sequences at a time, these in the order of their steps, and within a step in the order of the sequences. Every shard's gradient has a place of its own and every addition is one of the tree's,
 *  so that neither lanes nor the borders of a run can change a bit. Memory: a gradient for each shard of a run that was ever
 *  computed. */
typedef struct tt_sums tt_sums_t; /* opaque */

/*  shards: a power of two (tt_tree_shards_ok). The net is borrowed. */
tt_status_t tt_sums_new(tt_sums_t **self_p, tt_net_t *net, uint32_t shards);
void tt_sums_destroy(tt_sums_t **self_p);
/*  The first row of a shard in a minibatch of `rows`. */
uint32_t tt_sums_first(uint32_t shards, uint32_t rows, uint32_t shard);

/*  Forward, loss and backward of shards lo .. hi-1 of a minibatch, each summed over its rows (not a mean), and added up as far as
 *  the tree allows inside the run. Towers that no trained stage reaches have a gradient of zero. */
tt_status_t tt_sums_compute(tt_sums_t *self, tt_stream_t *stream, const tt_pass_t *pass, uint32_t lo, uint32_t hi);
/*  The sum of a maximal subtree of the run just computed (tt_tree_nodes names them), or of node 1 that was put:
 *  tt_net_grad_count floats on the host, borrowed until the next compute or put. Waits. */
tt_status_t tt_sums_node(tt_sums_t *self, tt_stream_t *stream, uint32_t node, const float **out);
/*  The sum of all shards comes from elsewhere: it is node 1 now. Borrowed, unchanged, until a sync after the next compute or
 *  put, or until destroy. */
tt_status_t tt_sums_put(tt_sums_t *self, tt_stream_t *stream, const float *sum);

/* ---- optimisers ------------------------------------------------------------------------------------------------ */

typedef enum { TT_OPT_ADAM, TT_OPT_SGD, TT_OPT_RMSPROP } tt_opt_kind_t;

typedef struct {
    tt_opt_kind_t kind;
    float beta1, beta2; /* Adam                                                          */
    float alpha;        /* RMSProp decay                                                 */
    float momentum;     /* SGD, RMSProp                                                  */
    float eps;
    float max_norm; /* clip by the norm of the group's gradient; 0 = none            */
} tt_opt_spec_t;

/*  Optimiser state of a group is one flat vector of tt_opt_state_count floats on the device (Adam: m then v; none for plain
 *  SGD), and the number of steps taken. */
size_t tt_opt_state_count(const tt_opt_spec_t *opt, const tt_net_spec_t *net, uint32_t group);

typedef struct tt_opt tt_opt_t; /* opaque: the optimiser of one group, at rest at first */

/*  spec is copied, the net borrowed. */
tt_status_t tt_opt_new(tt_opt_t **self_p, tt_net_t *net, uint32_t group, const tt_opt_spec_t *spec);
void tt_opt_destroy(tt_opt_t **self_p);
/*  Its state, tt_opt_state_count floats, and the steps taken; for saving, and to go on from. Both wait. */
tt_status_t tt_opt_get(const tt_opt_t *self, tt_stream_t *stream, float *state);
tt_status_t tt_opt_put(tt_opt_t *self, tt_stream_t *stream, const float *state, uint64_t steps);
uint64_t tt_opt_steps(const tt_opt_t *self);

/*  One step of its group in set 0 with node 1 of `sums`: clip the group's part by the norm of that part (canonical order),
 *  update the parameters, refresh derived copies. Formulas as PyTorch's torch.optim (Adam: bias-corrected, eps outside the
 *  root) and clip_grad_norm_ (eps 1e-6). A norm that is not finite changes nothing; a report says so. Steps taken
 *  are counted when the step is queued. */
tt_status_t tt_opt_step(tt_opt_t *self, tt_stream_t *stream, const tt_sums_t *sums, float lr);

/*  Norms before clipping: of each group's newest step; and of the first step since they were reported before that could not be taken
 *  (bad_step 0: there is none). */
typedef struct {
    float newest[TT_TOWERS_MAX];
    float bad;
    uint64_t bad_step;
} tt_norms_t;

/*  After the steps of a minibatch: what stands behind the parameters in node 1, stats[TT_LOSS_STATS + ride], and the norms; either may
 *  be NULL. Both are filled at the next sync: several minibatches can be queued, and the reports of all read then. */
tt_status_t tt_net_report(tt_net_t *self, tt_stream_t *stream, const tt_sums_t *sums, float *stats, tt_norms_t *norms);
/*  TT_INVALID: a step was not taken, since its norm is not finite. */
tt_status_t tt_norms_check(const tt_norms_t *self);
