/*  nn - a policy network and a value network as one flat parameter vector, on one backend.
 *
 *  Two separate MLPs read the same observation: "actor" (logits, means of Gaussians; these have a state-independent
 *  log_std vector) and "critic" (one value). All parameters live in one flat float32 vector with named tensors.
 *  A gradient has the same shape, followed by TT_LOSS_STATS sums that the loss wants added up with it, zero-padded to
 *  tt_net_grad_count().
 *
 *  Batch invariance: a row's result does not depend on the rows beside it; sums over rows run in the order the rows are
 *  given, in blocks of TT_BLOCK; every CPU build (portable, AVX2, AVX-512) gives the same bits.
 *
 *  Shapes:  D = spec.obs, A = spec.out, row-major unless said.
 *  Threads: calls that take a `lane` may run at the same time from different threads on different lanes, while nobody
 *  calls init, put or apply. Everything else: one thread.
 *  Devices: pointers marked (device) are memory of the backend (tt_device_alloc); on the CPU any pointer is. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "common/base/limits.h"
#include "common/base/status.h"

enum {
    TT_BLOCK = 32,     /* rows that a loss sees at once                                  */
    TT_LOSS_STATS = 8, /* floats a loss may sum over rows (losses, KL, clip fraction ...) */
    TT_HIDDEN_MAX = TT_LAYERS_MAX
};

typedef enum { TT_NN_TANH, TT_NN_RELU } tt_nn_activation_t;

typedef struct {
    uint32_t obs;                   /* D >= 1                                             */
    uint32_t hidden_count;          /* 0 .. TT_HIDDEN_MAX                                 */
    uint32_t hidden[TT_HIDDEN_MAX]; /* units                                              */
    tt_nn_activation_t activation;
    uint32_t out;     /* A: floats of the head (logits, means); >= 1        */
    uint32_t log_std; /* L: floats of actor.log_std, 0 = there is none      */
} tt_net_spec_t;

/*  One named tensor in the flat vector. Weights are stored [in][out] (columns contiguous); files hold [out][in], as
 *  PyTorch does. Names: actor.0.weight, actor.0.bias, ..., actor.log_std, critic.0.weight, ... */
typedef struct {
    char name[48];
    uint32_t rows, cols; /* bias: rows = 1, cols = units */
    size_t offset;       /* in floats                    */
} tt_tensor_t;

typedef struct tt_device tt_device_t; /* an opened backend, opaque */
typedef struct tt_net tt_net_t;       /* opaque                    */

/*  Open backend "cpu" (later "cuda"); `device` numbers its devices. The CPU picks its kernels from what the processor
 *  has; TT_CPU=portable|avx2|avx512 forces a choice (TT_UNSUPPORTED when the processor lacks it). */
tt_status_t tt_device_open(tt_device_t **self_p, const char *backend, int device);
void tt_device_close(tt_device_t **self_p);
/*  "cpu/avx512" and the like. */
const char *tt_device_name(const tt_device_t *self);

/*  Memory of the backend, zeroed; free it before the device closes (NULL is fine). put and get copy from and to the
 *  host and may be asynchronous in the order of the calls; sync waits for them. */
tt_status_t tt_device_alloc(tt_device_t *self, void **out, size_t bytes);
void tt_device_free(tt_device_t *self, void *memory);
tt_status_t tt_device_put(tt_device_t *self, void *dst, const void *src, size_t bytes);
tt_status_t tt_device_get(tt_device_t *self, void *dst, const void *src, size_t bytes);
tt_status_t tt_device_sync(tt_device_t *self);

/*  Number of parameters; number of floats in a gradient buffer (parameters + TT_LOSS_STATS, rounded up to 16). */
size_t tt_net_param_count(const tt_net_spec_t *spec);
size_t tt_net_grad_count(const tt_net_spec_t *spec);
/*  Where the loss statistics start in a gradient buffer. */
size_t tt_net_stats_offset(const tt_net_spec_t *spec);

/*  TT_INVALID: a number in spec is out of range. `lanes` >= 1 workspaces for concurrent forward / shard_grad. */
tt_status_t tt_net_new(tt_net_t **self_p, tt_device_t *device, const tt_net_spec_t *spec, uint32_t lanes);
void tt_net_destroy(tt_net_t **self_p);
const tt_net_spec_t *tt_net_spec(const tt_net_t *self);
const tt_tensor_t *tt_net_tensors(const tt_net_t *self, size_t *count);

/*  Version 0: orthogonal weights (gain sqrt 2 for hidden layers, head_gain and 1 for the heads), biases 0,
 *  log_std = log_std0. Philox stream TT_STREAM_INIT. The same bits everywhere. */
tt_status_t tt_net_init(tt_net_t *self, uint64_t seed, float head_gain, float log_std0);

/*  Copy all parameters in / out; host memory, tt_net_param_count floats. */
tt_status_t tt_net_put(tt_net_t *self, const float *params);
tt_status_t tt_net_get(const tt_net_t *self, float *params);

/*  obs[k] (device) -> D floats, k < rows. Writes head[rows][A] and value[rows]; either may be NULL and is then not
 *  computed. log_std is in the parameters: tt_net_log_std. */
tt_status_t tt_net_forward(
    tt_net_t *self, uint32_t lane, const float *const *obs, size_t rows, float *head, float *value);
/*  log_std[L], NULL when there is none; borrowed until the next init, put or apply. */
const float *tt_net_log_std(const tt_net_t *self);

/*  A block of rows on its way through a loss. Arrays are columns of TT_BLOCK floats, so that loops over rows are the
 *  inner ones: head[a * TT_BLOCK + r]. Entries at r >= rows hold zeros and must be written as zeros. */
typedef struct {
    uint32_t rows;        /* 1 .. TT_BLOCK                                                */
    const uint32_t *row;  /* [rows] the numbers given to tt_net_shard_grad                */
    const float *head;    /* [A][TT_BLOCK]                                                */
    const float *value;   /* [TT_BLOCK]                                                   */
    const float *log_std; /* [L] or NULL                                                 */
    float *d_head;        /* [A][TT_BLOCK] out: d loss / d head                           */
    float *d_value;       /* [TT_BLOCK]    out: d loss / d value                          */
    float *d_log_std;     /* [L] add to it, rows in order                                 */
    float *stats;         /* [TT_LOSS_STATS] add to it, rows in order                     */
} tt_loss_block_t;

/*  A loss: a pure function of ctx and the block. */
typedef void (*tt_loss_fn)(const void *ctx, const tt_loss_block_t *block);

/*  Forward, loss and backward over `rows` rows: grad[tt_net_grad_count] is overwritten with their sum (not mean).
 *  obs[k] as above; row[k] is handed to the loss. */
tt_status_t tt_net_shard_grad(tt_net_t *self, uint32_t lane, const float *const *obs, const uint32_t *row, size_t rows,
    tt_loss_fn loss, const void *ctx, float *grad);

/*  dst[i] += src[i], i < count: a node of the fixed summation tree. */
void tt_grad_add(float *dst, const float *src, size_t count);

/* ---- optimisers ------------------------------------------------------------------------------------------------ */

typedef enum { TT_OPT_ADAM, TT_OPT_SGD, TT_OPT_RMSPROP } tt_opt_kind_t;

typedef struct {
    tt_opt_kind_t kind;
    float beta1, beta2; /* Adam                                                          */
    float alpha;        /* RMSProp decay                                                 */
    float momentum;     /* SGD, RMSProp                                                  */
    float eps;
    float max_norm; /* global gradient-norm clip; 0 = none                           */
} tt_opt_spec_t;

/*  Optimiser state is one flat vector of tt_opt_state_count floats (host; Adam: m then v; 0-size for plain SGD) and
 *  the number of steps taken; both belong to the caller, who saves and ships them. */
size_t tt_opt_state_count(const tt_opt_spec_t *opt, const tt_net_spec_t *net);

/*  One step: clip `grad` by global norm (canonical order; the statistics behind the parameters are not part of it),
 *  update parameters, refresh derived copies. *step is incremented. norm_out (may be NULL): the norm before clipping.
 *  Formulas as PyTorch's torch.optim (Adam: bias-corrected, eps outside the root) and clip_grad_norm_ (eps 1e-6).
 *  TT_INVALID: the norm is not finite; nothing was changed. */
tt_status_t tt_net_apply(tt_net_t *self, const tt_opt_spec_t *opt, float *opt_state, uint64_t *step, const float *grad,
    float lr, float *norm_out);
