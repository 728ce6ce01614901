/*  backend - what a place to compute must offer. nn.h is what the rest of Tutti calls; this table is what stands behind
 *  it. Calls are coarse, so that a backend may fuse. cpu/ implements it; a GPU is one more folder and one more line in
 *  backends.c.
 *
 *  Contract of each entry: see the function of the same name in nn.h. Threads: as there. */
#pragma once
#include "common/nn/nn.h"

typedef struct tt_backend_ops {
    const char *name; /* "cpu" */

    tt_status_t (*open)(tt_device_t **self_p, int device);
    void (*close)(tt_device_t **self_p);
    const char *(*describe)(const tt_device_t *self);

    /*  Device memory; put and get may be asynchronous on the device's stream, sync waits and reports late errors. */
    tt_status_t (*alloc)(tt_device_t *self, void **out, size_t bytes);
    void (*free)(tt_device_t *self, void *memory);
    tt_status_t (*put)(tt_device_t *self, void *dst, const void *src, size_t bytes);
    tt_status_t (*get)(tt_device_t *self, void *dst, const void *src, size_t bytes);
    tt_status_t (*sync)(tt_device_t *self);

    /*  What a network keeps on the device (derived copies, workspaces) and the work itself. */
    tt_status_t (*net_new)(tt_net_t *net);
    void (*net_free)(tt_net_t *net);
    tt_status_t (*refresh)(
        tt_net_t *net, uint32_t set, uint32_t groups); /* parameters changed: rebuild derived copies */
    tt_status_t (*forward)(
        tt_net_t *net, uint32_t lane, uint32_t set, const float *const *obs, size_t rows, float *const *out);
    tt_status_t (*shard_grad)(tt_net_t *net, uint32_t lane, const tt_pass_t *pass, float *grad);
    tt_status_t (*apply)(tt_net_t *net, uint32_t group, const tt_opt_spec_t *opt, float *opt_state, uint64_t *step,
        const float *grad, float lr, float *norm_out);
    tt_status_t (*blend)(tt_net_t *net, uint32_t to, uint32_t from, uint32_t groups, float tau);
} tt_backend_ops_t;

/*  Every device begins with this. */
struct tt_device {
    const tt_backend_ops_t *ops;
};

/*  A network: the part that every backend shares. */
struct tt_net {
    tt_device_t *device; /* borrowed */
    tt_net_spec_t spec;
    size_t tensor_count;
    tt_tensor_t *tensors;
    size_t param_count, grad_count;
    size_t log_std_at[TT_TOWERS_MAX]; /* where a tower's log_std lies, if it has one */
    uint32_t lanes, sets;
    float *params[TT_SETS_MAX]; /* host copy on the CPU, device memory elsewhere */
    void *impl;                 /* the backend's own                             */
};

/*  The backends there are, NULL-terminated (backends.c). */
extern const tt_backend_ops_t *const tt_backends[];
