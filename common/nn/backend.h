/*  backend - what a place to compute must offer. nn.h and device.h are what the rest of Tutti calls; what stands here is behind
 *  them.
 *
 *  Work is data: a call of nn.h checks what it is given, writes it down as a tt_work_t and hands it to its stream's device, which
 *  does it at once or later. cpu/ does it at once; strict/ keeps it and has cpu/ do it; a GPU is one more folder and one more
 *  line in backends.c.
 *
 *  Pointers named "device memory" are from `alloc`; only work looks behind them.
 *  Threads: as device.h; work may run on another thread while the caller waits. */
#pragma once
#include "common/nn/nn.h"

/*  Every device begins with this. */
struct tt_device {
    const struct tt_backend_ops *ops;
    uint32_t lanes;
};

/*  Every stream, too. */
struct tt_stream {
    tt_device_t *device;
};

/*  What was put last, and what work reads: they differ while a put waits for its turn. */
struct tt_table {
    tt_device_t *device;
    size_t bytes;            /* of a row                                                     */
    size_t count;            /* rows that were put last                                      */
    bool side_by_side;       /* how                                                          */
    const char *rows;        /* what work reads: rows side by side ...                       */
    const void *const *row;  /* ... or, when not NULL, each where it lies                 */
    const tt_stack_t *stack; /* not NULL: `row` lists their frames                          */
    size_t there;            /* so many                                                      */
    void *copy;              /* device memory of a device that reads no memory of the host's */
    size_t room;             /* bytes of it                                                  */
};

struct tt_store {
    tt_device_t *device;
    size_t bytes, places; /* of a frame, and how many there are */
    char *frames;         /* device memory, [places][bytes]     */
};

struct tt_net {
    tt_device_t *device; /* borrowed */
    tt_net_spec_t spec;
    size_t tensor_count;
    tt_tensor_t *tensors;
    size_t param_count, grad_count;
    size_t log_std_at[TT_TOWERS_MAX]; /* where a tower's log_std lies, if it has one */
    uint32_t sets;
    float *params[TT_SETS_MAX]; /* device memory     */
    tt_norms_t *norms;          /* device memory; a report forgets bad_step */
    void *impl;                 /* the backend's own */
};

struct tt_sums {
    tt_net_t *net; /* borrowed */
    uint32_t shards;
    size_t count;      /* floats of a gradient                                                     */
    uint32_t lo, hi;   /* the run that was queued last                                             */
    bool whole;        /* node 1 was queued: that run was all there is, or a sum was put           */
    uint32_t groups;   /* that the sums are of, as bits: of others nothing is there, for zeros     */
    float **leaf;      /* [shards] device memory, made by the work that needs it                   */
    const float *root; /* what work reads as node 1                                                */
    float *given;      /* device memory: the sum that was put, where the host's own cannot be read */
    float **host;      /* [shards] nodes that the host asked for, where it cannot read `leaf`      */
};

struct tt_opt {
    tt_net_t *net; /* borrowed */
    uint32_t group;
    tt_opt_spec_t spec;
    size_t state_count;
    float *state;   /* device memory; NULL when there is none */
    uint64_t steps; /* that were queued                       */
};

/*  What can be queued, with the union member of the same name. */
typedef enum {
    TT_WORK_TABLE,     /* a table gets other rows: side by side, or by `row`                */
    TT_WORK_STORE,     /* a store gets other frames                                         */
    TT_WORK_STORED,    /* a table gets rows made of a store's frames; late error: a place that there is not */
    TT_WORK_PUT,       /* parameters of a set                                               */
    TT_WORK_GET,       /* a part of them                                                    */
    TT_WORK_BLEND,     /*                                                                   */
    TT_WORK_NOISE,     /* of noisy layers of a set                                          */
    TT_WORK_FORWARD,   /*                                                                   */
    TT_WORK_WALK,      /* of a recurrent network                                            */
    TT_WORK_COMPUTE,   /* late error: a row number that a table of the pass does not have   */
    TT_WORK_NODE,      /*                                                                   */
    TT_WORK_SUM,       /* node 1 comes from elsewhere                                       */
    TT_WORK_STATE_PUT, /* an optimiser's state                                              */
    TT_WORK_STATE_GET, /*                                                                   */
    TT_WORK_STEP,      /* a norm that is not finite is noted and changes nothing            */
    TT_WORK_REPORT,    /* a norm that is noted is told, and forgotten                       */
    TT_WORKS
} tt_work_kind_t;

typedef struct {
    tt_work_kind_t kind;
    union {
        struct {
            tt_table_t *table;
            const void *rows;
            const void *const *row; /* not NULL: instead of rows */
            const tt_stack_t *stack;
            size_t count;
        } table;
        struct {
            tt_store_t *store;
            size_t first, count;
            const void *frames;
        } store;
        struct {
            tt_table_t *table;
            tt_stored_t from; /* what it names is the caller's */
        } stored;
        struct {
            tt_net_t *net;
            uint32_t set;
            const float *params;
        } put;
        struct {
            const tt_net_t *net;
            uint32_t set;
            size_t first, count;
            float *out;
        } get;
        struct {
            tt_net_t *net;
            uint32_t to, from, groups;
            float tau;
        } blend;
        struct {
            tt_net_t *net;
            uint32_t set;
            bool drawn; /* else there is none */
            tt_noise_t from;
        } noise;
        struct {
            tt_net_t *net;
            uint32_t set;
            const tt_table_t *obs;
            size_t first, rows;
            bool again;       /* as many rows are expected again */
            tt_carry_t carry; /* NULL, NULL where nothing recurs */
            float *out[TT_TOWERS_MAX];
        } forward;
        struct {
            tt_net_t *net;
            uint32_t set;
            const tt_table_t *obs;
            tt_walk_t of; /* what it names is the caller's */
            float *out[TT_TOWERS_MAX];
        } walk;
        struct {
            tt_sums_t *sums;
            const tt_pass_t *pass; /* of the call: a device that does it later copies it and its params */
            uint32_t lo, hi;
        } compute;
        struct {
            tt_sums_t *sums;
            uint32_t node;
            const float **out;
        } node;
        struct {
            tt_sums_t *sums;
            const float *sum;
        } sum;
        struct {
            tt_opt_t *opt;
            const float *state;
        } state_put;
        struct {
            const tt_opt_t *opt;
            float *state;
        } state_get;
        struct {
            tt_opt_t *opt;
            const tt_sums_t *sums;
            uint64_t number; /* of the step, from 1 */
            float lr;
        } step;
        struct {
            tt_net_t *net;
            const tt_sums_t *sums;
            float *stats; /* either may be NULL */
            tt_norms_t *norms;
        } report;
    };
} tt_work_t;

/*  rows.c: what any device does before TT_WORK_COMPUTE: TT_INVALID, a row of the run that one of the pass's tables does not have; memory
 *  for the gradients of the run. */
tt_status_t tt_work_check_rows(const tt_work_t *work);
tt_status_t tt_work_reserve(const tt_work_t *work);
/*  Floats of a gradient. */
typedef struct {
    size_t first, count;
} tt_span_t;
/*  Where a gradient has these groups (bits), and what stands behind the parameters: of neighbours one span, with the gap between them. */
enum { TT_SPANS_MAX = TT_TOWERS_MAX + 1 };
uint32_t tt_work_spans(const tt_net_t *net, uint32_t groups, tt_span_t span[TT_SPANS_MAX]);
/*  Where it lacks the zeros of some of these groups: those that the sums are not of. */
uint32_t tt_work_missing(const tt_sums_t *sums, uint32_t groups, tt_span_t span[TT_SPANS_MAX]);

/*  stored.c: what any device needs to know of rows made of stored frames. */

/*  How many frames make a row: 1 where there is no stack. */
uint32_t tt_stored_frames(const tt_stored_t *self);
/*  Where a row has the floats of each of the scale's runs: those of frame k begin at byte at + k step. */
typedef struct {
    uint32_t runs;
    struct {
        size_t at, step;
        uint32_t count;
    } run[TT_PARTS_MAX];
} tt_stored_runs_t;
void tt_stored_runs(const tt_stored_t *self, tt_stored_runs_t *out);
/*  Before TT_WORK_STORED is done: TT_INVALID, a place that the store does not have. */
tt_status_t tt_work_check_places(const tt_work_t *work);

typedef struct tt_backend_ops {
    const char *name; /* "cpu" */

    tt_status_t (*open)(tt_device_t **self_p, int number, uint32_t lanes);
    void (*close)(tt_device_t *self);
    const char *(*describe)(const tt_device_t *self);
    /*  Never TT_EXACT; NULL: it can do nothing else. */
    tt_status_t (*precision)(tt_device_t *self, tt_precision_t precision);

    /*  Zeroed device memory, aligned to 64 bytes. */
    tt_status_t (*alloc)(tt_device_t *self, void **out, size_t bytes);
    void (*free)(tt_device_t *self, void *memory);
    /*  Bytes that are free in memory of the device's own; 0: it has none, or it was lost. */
    uint64_t (*room)(tt_device_t *self);

    tt_status_t (*stream_new)(tt_stream_t **self_p, tt_device_t *device);
    /*  Waits. */
    void (*stream_free)(tt_stream_t *self);
    /*  The work is copied as far as its comments say. An error may be said here or by sync. */
    tt_status_t (*queue)(tt_stream_t *self, const tt_work_t *work);
    tt_status_t (*sync)(tt_stream_t *self);
    /*  As tt_stream_let_go. NULL: whatever it borrows was read when it was queued. */
    void (*let_go)(tt_stream_t *self);
    /*  Wait for all streams of the device: something that work may name goes. What failed is said by their own sync. */
    void (*wait)(tt_device_t *self);

    /*  What a network keeps on the device beside its parameters, which are 0. */
    tt_status_t (*net_new)(tt_net_t *net);
    void (*net_free)(tt_net_t *net);
} tt_backend_ops_t;

/*  What a backend in a library of its own was compiled against: everything in this header, and the limits in it. One more with each
 *  change of them. late.c asks the library for it, and for the version of Tutti. */
enum { TT_BACKEND_ABI = 15 };

/*  The backends there are, NULL-terminated (backends.c). */
extern const tt_backend_ops_t *const tt_backends[];
