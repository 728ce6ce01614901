/*  cuda - the backend of NVIDIA's cards: memory, staging, what a network keeps on the card, and the work itself as launches of
 *  kernels.h.
 *
 *  All work of a device is queued on one CUDA stream in the order of the calls, whichever of our streams they name, so that a
 *  network's memory has one user at a time. What a call borrows of the host is copied to pinned memory by the call; what it is to fill
 *  lands in pinned memory and is handed over by the next sync. Nothing is allocated once the largest of everything was seen.
 *
 *  Threads: as device.h; nothing here has threads of its own. */
#pragma once
#include <cuda_runtime_api.h>
#include "common/nn/backend.h"
#include "common/nn/cuda/encoder.h"
#include "common/nn/cuda/fast.h"
#include "common/nn/cuda/kernels.h"
#include "common/nn/cuda/kernels_recurrent.h"

/* ---- device.c, staging.c: memory and waiting ------------------------------------------------------------------------- */

typedef struct cuda_stream cuda_stream_t;
typedef struct cuda_land cuda_land_t;
typedef struct cuda_graphs cuda_graphs_t;

/*  Pinned memory in blocks; what is taken is free again after a sync. */
typedef struct {
    uint32_t blocks, used; /* used: blocks before the one that is taken from */
    struct {
        char *memory;
        size_t size;
    } block[64];
    size_t at;    /* in block `used`        */
    size_t taken; /* bytes since the sync */
} cuda_staging_t;

/*  Memory of the card that only grows. */
typedef struct {
    void *memory;
    size_t bytes;
} cuda_room_t;

typedef struct {
    tt_device_t base;
    int number;
    char name[320]; /* "cuda:0 NVIDIA H100" */
    cudaStream_t work;
    cuda_staging_t staging;
    cuda_land_t *land; /* owned; what the next sync hands over */
    uint32_t lands, land_room;
    cuda_stream_t *streams;
    cuda_graphs_t *graphs; /* owned */
    cuda_fast_t *fast;     /* owned; NULL: everything is exact */
    cuda_room_t frames;    /* of the table that was put last, and which rows show them */
    uint64_t freed;        /* how often device memory was given back */
    bool lost;             /* the card failed: nothing more is asked of it */
    char why[512];
} cuda_device_t;

struct cuda_stream {
    tt_stream_t base;
    cuda_stream_t *next; /* of the device's */
    tt_status_t status;  /* of what ran, until sync says it */
    char text[512];
};

struct cuda_land {
    const void *from; /* pinned     */
    void *to;         /* the host's */
    size_t bytes;
};

extern const tt_backend_ops_t cuda_backend;

/*  What CUDA said, as a status with words: what was tried, why it failed and what to do. After a failure that ends all use of the card
 *  the device is lost. TT_OK on success. */
tt_status_t cuda_said(cuda_device_t *self, cudaError_t code, const char *what);
/*  Of the launches since the last call, and whether the card is still there. */
tt_status_t cuda_launched(cuda_device_t *self, const char *what);
tt_status_t cuda_alloc(cuda_device_t *self, void **out, size_t bytes);
void cuda_free(cuda_device_t *self, void *memory);

/*  staging.c. Pinned memory until the next sync, aligned to 64. */
tt_status_t cuda_stage(cuda_device_t *self, size_t bytes, void **out);
void cuda_staging_clear(cuda_staging_t *self);
/*  `bytes` of the host to the card, by way of staging: `from` is free when the call returns. */
tt_status_t cuda_up(cuda_device_t *self, void *to, const void *from, size_t bytes);
/*  From the card to staging, where the next sync finds it: for cuda_land. */
tt_status_t cuda_fetch(cuda_device_t *self, const void *from, size_t bytes, void **stage);
/*  From the card to `to` of the host, at the next sync. */
tt_status_t cuda_down(cuda_stream_t *stream, void *to, const void *from, size_t bytes);
void cuda_land(cuda_device_t *self, const cuda_land_t *land);

/* ---- graph.c: work that comes again ------------------------------------------------------------------------------------ */

enum { CUDA_KEY_BYTES = 1024 };

/*  On what the launches of some work depend: where everything lies, shapes, and each number that is an argument of a kernel. Begins as {0}. */
typedef struct {
    size_t bytes;
    char data[CUDA_KEY_BYTES];
} cuda_key_t;
void cuda_key_add(cuda_key_t *self, const void *part, size_t bytes);

/*  Launches, and nothing that waits or goes back to the host. Memory may grow in it the first time. */
typedef tt_status_t (*cuda_work_fn)(void *self);

cuda_graphs_t *cuda_graphs_new(void);
void cuda_graphs_free(cuda_graphs_t *self);
/*  Does the work: by calling it, or by a graph of what an earlier call with this key launched. */
tt_status_t cuda_again(cuda_device_t *device, const cuda_key_t *key, cuda_work_fn work, void *self);

/* ---- net.c: what stands beside the parameters -------------------------------------------------------------------------- */

typedef struct {
    uint32_t in, out; /* out 0: there is none */
    size_t weight_at, bias_at;
} cuda_layer_t;

typedef struct {
    tt_tower_kind_t kind;
    cuda_kind_t forward, backward; /* with its activation; backward: with that of what readers of it see */
    bool reads_obs, noisy;
    uint32_t from;  /* the trunk that it reads otherwise                                            */
    uint32_t chain; /* the towers whose forward its own takes, as bits                              */
    uint32_t value, advantage;
    uint32_t layers;
    cuda_layer_t layer[TT_HIDDEN_MAX];
    cuda_layer_t head;
    uint32_t outs;  /* of the head, or of what is made of heads; 0: a trunk */
    uint32_t gives; /* a trunk: floats of a row that readers see      */
    uint32_t
        carry_at; /* recurrent: layer[0] reads the input, and `head` what is carried, in which its own begins here */
    cuda_encoder_t *encoder; /* owned                                          */
} cuda_tower_t;

enum { CUDA_VIEWS = TT_FRAMES * TT_SETS_MAX }; /* as CPU_VIEWS */

typedef struct cuda_noise cuda_noise_t; /* noise.c */

typedef struct {
    const tt_net_spec_t *spec;
    cuda_tower_t tower[TT_TOWERS_MAX];
    uint32_t backs,
        back[TT_TOWERS_MAX]; /* the way back: those made of others; then readers in their order, then their trunk */
    bool flat;               /* a tower reads the observation as one vector                          */
    bool bits;               /* rows are bytes that nobody divides: layers that read them skip zeros */
    bool fused;              /* passes of a small network as one launch are wished                   */
    cuda_noise_t *noise;     /* owned */
    cuda_room_t activations, lists, columns, partials;
    cuda_step_t *steps; /* [groups] on the card: of each group's newest step */
    float *norm_parts;  /* on the card: of any group (cuda_norm_t)           */
    cuda_room_t encoder[TT_TOWERS_MAX];
    uint32_t acting, action_from, action_at;       /* as in cpu_net_t */
    uint32_t carry;                                /* floats that are carried; 0: nothing recurs */
    cuda_room_t carried, recurrent[TT_TOWERS_MAX]; /* of a forward, in and out; of recurrent towers */
    cuda_room_t walked;                            /* walk.c                        */
} cuda_net_t;

/*  Where a run's rows go on their way through the network: in `activations`, carved anew for each run. */
typedef struct {
    const cuda_net_t *net;
    cuda_device_t *device;
    uint32_t rows;
    cuda_dense_t dense;
    float *x;                                    /* [rows][obs] */
    float *joined;                               /* [rows][action_at + action] where a tower reads one */
    float *d_action;                             /* [rows][action] */
    float *hidden[TT_TOWERS_MAX][TT_HIDDEN_MAX]; /* [rows][units] */
    const float *last[TT_TOWERS_MAX];            /* [rows][gives] of trunks */
    float *heads[TT_TOWERS_MAX];   /* [rows][outs] of a forward, or what came to them on the way back; side by side */
    float *d[2];                   /* [rows][widest] */
    float *d_trunk[TT_TOWERS_MAX]; /* [rows][gives] of trunks */
    uint32_t filled;               /* trunks, as bits, whose d_trunk holds something */
    cuda_sequences_t sequences;    /* count 0: nothing recurs */
    cuda_cells_t cells[TT_TOWERS_MAX]; /* of recurrent towers     */
} cuda_flow_t;

tt_status_t cuda_net_new(tt_net_t *net);
void cuda_net_free(tt_net_t *net);
/*  At least so many bytes. What was there is gone. */
tt_status_t cuda_room(cuda_device_t *device, cuda_room_t *room, size_t bytes);
/*  Room for rows x cols floats, from whole cache lines on, `at` bytes into memory; without memory it is only counted. */
float *cuda_carve(char *memory, size_t *at, size_t rows, size_t cols);
/*  back: the way back is wanted, too. */
tt_status_t cuda_flow(cuda_flow_t *self, const tt_net_t *net, uint32_t rows, bool back);

/*  noise.c: as cpu/noise.c. */
tt_status_t cuda_noise_new(cuda_noise_t **self_p, const tt_net_t *net);
void cuda_noise_free(const tt_net_t *net, cuda_noise_t *self);
const float *cuda_noise_weights(const tt_net_t *net, uint32_t set, uint32_t t);
tt_status_t cuda_noise_refresh(const tt_net_t *net, uint32_t set, uint32_t groups);
tt_status_t cuda_noise_draw(const tt_work_t *work);
void cuda_noise_back(const tt_net_t *net, uint32_t groups, const cuda_run_t *run);

/* ---- tower.c: a run's rows through towers and back ---------------------------------------------------------------------- */

/*  Observations as one vector each, to flow->x, where a tower reads them so. */
void cuda_gather_rows(const cuda_flow_t *flow, const cuda_rows_t *from);
/*  Towers (bits) of a set in their order. Heads: row by row to flow->heads, or in columns by slot to columns[t]. */
typedef struct {
    uint32_t set, towers;
    cuda_rows_t from;     /* observations */
    const uint32_t *slot; /* NULL: row by row */
    float *const *columns;
} cuda_forward_t;
void cuda_towers_forward(cuda_flow_t *flow, const tt_net_t *net, const cuda_forward_t *job);
/*  flow->heads[t], or what came to a trunk, to the gradients of the run's shards and to the trunk that it reads. */
void cuda_tower_backward(cuda_flow_t *flow, const tt_net_t *net, const cuda_run_t *run, uint32_t t);

/*  What a pass's actions are: those of a table, by the rows' numbers, or columns of what was drawn. */
typedef struct {
    const float *given; /* NULL: columns */
    const uint32_t *row, *slot;
    const float *columns;
} cuda_actions_t;
/*  flow->x, or what a trunk gave, and an action to flow->joined, which towers read that read one. */
void cuda_join_actions(const cuda_flow_t *flow, const cuda_actions_t *actions);
/*  flow->heads[t] to the drawn action that tower t read, flow->d_action; more: it is added. The tower's own gradients are left alone. */
void cuda_tower_through(const cuda_flow_t *flow, const tt_net_t *net, uint32_t t, bool more);

/* ---- recurrent.c ------------------------------------------------------------------------------------------------------- */

/*  Room for what its recurrent towers make of these sequences; after cuda_flow, whose rows they are. */
tt_status_t cuda_cells(cuda_flow_t *self, const tt_net_t *net, const cuda_sequences_t *sequences, bool back);
/*  What layer[0] of tower t made of its input (cells.gates), to flow->last[t], step by step. */
void cuda_recurrent_forward(const cuda_flow_t *flow, const tt_net_t *net, uint32_t set, uint32_t t);
/*  flow->d_trunk[t] to what came to the outputs of both layers, cells.gates and cells.d_hidden. */
void cuda_recurrent_backward(const cuda_flow_t *flow, const tt_net_t *net, uint32_t t);

/* ---- fused.c: a pass of a small network as one launch ------------------------------------------------------------------- */

/*  The way to launch it; NULL: it is none, or not wished. Then everything is launched by itself. */
cuda_fused_fn cuda_fused_fits(const tt_sums_t *sums, const tt_pass_t *pass);
/*  loss: all but heads, derivatives and partial sums. Gradients of the run's shards are written whole. */
tt_status_t cuda_fused(const tt_sums_t *sums, const tt_pass_t *pass, const cuda_loss_t *loss);

/* ---- table.c, store.c, forward.c, pass.c, apply.c, work.c ------------------------------------------------------------------------------------------ */

tt_status_t cuda_table(cuda_device_t *device, const tt_work_t *work);
/*  At least so many bytes, of a room or of a table's rows; what was there is gone. */
tt_status_t cuda_reserve(cuda_device_t *device, cuda_room_t *room, size_t bytes);
tt_status_t cuda_table_room(cuda_device_t *device, tt_table_t *table, size_t bytes);
void cuda_stack_parts(cuda_stack_t *job, const tt_stack_t *stack);
/*  store.c */
tt_status_t cuda_store(cuda_device_t *device, const tt_work_t *work);
tt_status_t cuda_stored(cuda_device_t *device, const tt_work_t *work);
/*  forward.c */
tt_status_t cuda_forward(cuda_stream_t *stream, const tt_work_t *work);
/*  Heads of a pass to the host, at the next sync, in one copy: they lie side by side. `steps` of so many rows each, `apart` rows from one to
 *  the next where they go to. */
typedef struct {
    float *const *to; /* [TT_TOWERS_MAX] NULL: nobody asks for it */
    size_t at;        /* row of `to` where the first goes         */
    size_t rows, steps, apart;
} cuda_heads_t;
tt_status_t cuda_hand_out(const cuda_flow_t *flow, const cuda_heads_t *heads);
/*  walk.c */
tt_status_t cuda_walk(cuda_stream_t *stream, const tt_work_t *work);
tt_status_t cuda_compute(const tt_work_t *work);
tt_status_t cuda_blend_sets(const tt_work_t *work);
tt_status_t cuda_step(const tt_work_t *work);
tt_status_t cuda_report(cuda_stream_t *stream, const tt_work_t *work);
/*  Do one thing: queue its launches and copies. */
tt_status_t cuda_do(cuda_stream_t *stream, const tt_work_t *work);
/*  Zeros to a gradient of these sums where it has nothing of these groups. */
tt_status_t cuda_fill(const tt_sums_t *sums, uint32_t groups, float *grad);

/*  losses.c (made by CMake): the loss of an objective of that name; NULL: there is none here. */
cuda_loss_fn cuda_loss_find(const char *name);
/*  The same with a small network around it. */
cuda_fused_fn cuda_fused_find(const char *name);
/*  What it draws by, if it does; NULL: on the host. */
cuda_draw_fns_t cuda_draw_find(const char *name);
/*  host_loss.c: the same for a draw, and for the way back to its source's d_head. */
tt_status_t cuda_host_draw(cuda_device_t *device, const tt_pass_t *pass, const cuda_loss_t *job, const uint32_t *row,
    const cuda_blocks_t *blocks);
tt_status_t cuda_host_draw_back(cuda_device_t *device, const tt_pass_t *pass, const cuda_loss_t *job,
    const uint32_t *row, const cuda_blocks_t *blocks);
/*  host_loss.c: a loss that is not there as a kernel is called on the host, between two copies. It adds to the gradients itself:
 *  nothing is to be folded. row, blocks: job's, on the host. Waits. */
tt_status_t cuda_host_loss(cuda_device_t *device, const tt_net_t *net, const tt_pass_t *pass, const cuda_loss_t *job,
    const uint32_t *row, const cuda_blocks_t *blocks);
