#include "common/nn/nn.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/nn/backend.h"
#include "common/nn/spec.h"

tt_status_t tt_device_open(tt_device_t **self_p, const char *backend, int device)
{
    for (size_t i = 0; tt_backends[i]; i++)
        if (strcmp(tt_backends[i]->name, backend) == 0)
            return tt_backends[i]->open(self_p, device);
    return tt_err(TT_NOT_FOUND, "no backend called '%s' in this build; there is '%s'", backend, tt_backends[0]->name);
}

void tt_device_close(tt_device_t **self_p)
{
    if (*self_p)
        (*self_p)->ops->close(self_p);
    *self_p = NULL;
}

const char *tt_device_name(const tt_device_t *self)
{
    return self->ops->describe(self);
}

tt_status_t tt_device_alloc(tt_device_t *self, void **out, size_t bytes)
{
    return self->ops->alloc(self, out, bytes);
}

void tt_device_free(tt_device_t *self, void *memory)
{
    self->ops->free(self, memory);
}

tt_status_t tt_device_put(tt_device_t *self, void *dst, const void *src, size_t bytes)
{
    return self->ops->put(self, dst, src, bytes);
}

tt_status_t tt_device_get(tt_device_t *self, void *dst, const void *src, size_t bytes)
{
    return self->ops->get(self, dst, src, bytes);
}

tt_status_t tt_device_sync(tt_device_t *self)
{
    return self->ops->sync(self);
}

static void s_free_net(tt_net_t *self)
{
    if (self->params)
        self->device->ops->free(self->device, self->params);
    free(self->tensors);
    free(self);
}

/*  Parameters are zero until init or put. The vector has a grad_count's worth of room: whole vectors at its end. */
static tt_status_t s_open_net(tt_net_t *self)
{
    const tt_backend_ops_t *ops = self->device->ops;
    void *memory = NULL;
    TT_TRY(ops->alloc(self->device, &memory, tt_net_grad_count(&self->spec) * sizeof(float)));
    self->params = memory;
    return ops->net_new(self);
}

tt_status_t tt_net_new(tt_net_t **self_p, tt_device_t *device, const tt_net_spec_t *spec, uint32_t lanes)
{
    TT_TRY(tt_spec_check(spec));
    if (lanes < 1 || lanes > 1024)
        return tt_err(TT_INVALID, "network: %u lanes; 1 to 1024 are possible", lanes);
    tt_net_t *self = tt_new0(sizeof *self);
    self->device = device;
    self->spec = *spec;
    self->lanes = lanes;
    self->tensors = tt_array0(TT_NN_TENSORS_MAX, sizeof *self->tensors);
    self->tensor_count = tt_spec_tensors(spec, self->tensors);
    self->param_count = tt_net_param_count(spec);
    const tt_status_t status = s_open_net(self);
    if (status != TT_OK)
        s_free_net(self);
    else
        *self_p = self;
    return status;
}

void tt_net_destroy(tt_net_t **self_p)
{
    if (*self_p) {
        (*self_p)->device->ops->net_free(*self_p);
        s_free_net(*self_p);
    }
    *self_p = NULL;
}

const tt_net_spec_t *tt_net_spec(const tt_net_t *self)
{
    return &self->spec;
}

const tt_tensor_t *tt_net_tensors(const tt_net_t *self, size_t *count)
{
    *count = self->tensor_count;
    return self->tensors;
}

tt_status_t tt_net_put(tt_net_t *self, const float *params)
{
    const tt_backend_ops_t *ops = self->device->ops;
    TT_TRY(ops->put(self->device, self->params, params, self->param_count * sizeof(float)));
    return ops->refresh(self);
}

tt_status_t tt_net_get(const tt_net_t *self, float *params)
{
    const tt_backend_ops_t *ops = self->device->ops;
    TT_TRY(ops->get(self->device, params, self->params, self->param_count * sizeof(float)));
    return ops->sync(self->device);
}

tt_status_t tt_net_forward(
    tt_net_t *self, uint32_t lane, const float *const *obs, size_t rows, float *head, float *value)
{
    TT_CHECK(lane < self->lanes);
    return self->device->ops->forward(self, lane, obs, rows, head, value);
}

const float *tt_net_log_std(const tt_net_t *self)
{
    for (size_t i = 0; self->spec.log_std && i < self->tensor_count; i++)
        if (strcmp(self->tensors[i].name, "actor.log_std") == 0)
            return self->params + self->tensors[i].offset;
    return NULL;
}

tt_status_t tt_net_shard_grad(tt_net_t *self, uint32_t lane, const float *const *obs, const uint32_t *row, size_t rows,
    tt_loss_fn loss, const void *ctx, float *grad)
{
    TT_CHECK(lane < self->lanes);
    return self->device->ops->shard_grad(self, lane, obs, row, rows, loss, ctx, grad);
}

void tt_grad_add(float *dst, const float *src, size_t count)
{
    for (size_t i = 0; i < count; i++)
        dst[i] += src[i];
}

size_t tt_opt_state_count(const tt_opt_spec_t *opt, const tt_net_spec_t *net)
{
    const size_t count = tt_net_param_count(net);
    switch (opt->kind) {
    case TT_OPT_ADAM:
        return 2 * count;
    case TT_OPT_SGD:
        return opt->momentum != 0.0f ? count : 0;
    case TT_OPT_RMSPROP:
        return opt->momentum != 0.0f ? 2 * count : count;
    }
    return 0;
}

tt_status_t tt_net_apply(tt_net_t *self, const tt_opt_spec_t *opt, float *opt_state, uint64_t *step, const float *grad,
    float lr, float *norm_out)
{
    return self->device->ops->apply(self, opt, opt_state, step, grad, lr, norm_out);
}
