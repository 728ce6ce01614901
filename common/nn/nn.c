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
    for (uint32_t set = 0; set < self->sets; set++)
        if (self->params[set])
            self->device->ops->free(self->device, self->params[set]);
    free(self->tensors);
    free(self);
}

/*  Parameters are zero until init or put. A vector has a grad_count's worth of room: whole vectors at its end. */
static tt_status_t s_open_net(tt_net_t *self)
{
    const tt_backend_ops_t *ops = self->device->ops;
    for (uint32_t set = 0; set < self->sets; set++) {
        void *memory = NULL;
        TT_TRY(ops->alloc(self->device, &memory, self->grad_count * sizeof(float)));
        self->params[set] = memory;
    }
    return ops->net_new(self);
}

static void s_lay_out(tt_net_t *self)
{
    self->tensors = tt_array0(TT_NN_TENSORS_MAX, sizeof *self->tensors);
    self->tensor_count = tt_spec_tensors(&self->spec, self->tensors);
    self->param_count = tt_net_param_count(&self->spec);
    self->grad_count = tt_net_grad_count(&self->spec);
    const tt_tensor_t *tensor = self->tensors;
    for (uint32_t t = 0; t < self->spec.towers; t++) {
        tensor += 2 * (size_t)tt_spec_layers(&self->spec.tower[t]);
        if (self->spec.tower[t].log_std)
            self->log_std_at[t] = tensor++->offset;
    }
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
    self->sets = tt_spec_sets(spec);
    s_lay_out(self);
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

tt_status_t tt_net_put(tt_net_t *self, uint32_t set, const float *params)
{
    const tt_backend_ops_t *ops = self->device->ops;
    TT_CHECK(set < self->sets);
    TT_TRY(ops->put(self->device, self->params[set], params, self->param_count * sizeof(float)));
    return ops->refresh(self, set, UINT32_MAX);
}

tt_status_t tt_net_get(const tt_net_t *self, uint32_t set, float *params)
{
    const tt_backend_ops_t *ops = self->device->ops;
    TT_CHECK(set < self->sets);
    TT_TRY(ops->get(self->device, params, self->params[set], self->param_count * sizeof(float)));
    return ops->sync(self->device);
}

tt_status_t tt_net_blend(tt_net_t *self, uint32_t to, uint32_t from, uint32_t groups, float tau)
{
    if (to >= self->sets || from >= self->sets || to == from)
        return tt_err(TT_INVALID, "network: set %u cannot follow set %u of %u", to, from, self->sets);
    if (groups >> tt_net_groups(&self->spec))
        return tt_err(TT_INVALID, "network: groups 0x%x of %u", groups, tt_net_groups(&self->spec));
    if (!(tau >= 0.0f && tau <= 1.0f))
        return tt_err(TT_INVALID, "network: tau is %g; 0 to 1 is possible", (double)tau);
    return self->device->ops->blend(self, to, from, groups, tau);
}

tt_status_t tt_net_forward(
    tt_net_t *self, uint32_t lane, uint32_t set, const float *const *obs, size_t rows, float *const *out)
{
    TT_CHECK(lane < self->lanes && set < self->sets);
    return self->device->ops->forward(self, lane, set, obs, rows, out);
}

const float *tt_net_log_std(const tt_net_t *self, uint32_t set, uint32_t tower)
{
    TT_CHECK(set < self->sets && tower < self->spec.towers);
    return self->spec.tower[tower].log_std ? self->params[set] + self->log_std_at[tower] : NULL;
}

static tt_status_t s_check_frames(const tt_pass_t *pass)
{
    const tt_objective_t *objective = pass->objective;
    for (uint32_t s = 0; pass->rows && s < objective->stages; s++)
        if (!pass->obs[objective->stage[s].frame])
            return tt_err(TT_INVALID, "objective %s: stage %u reads frame %u, of which there are no observations",
                objective->name, s, objective->stage[s].frame);
    return TT_OK;
}

tt_status_t tt_net_shard_grad(tt_net_t *self, uint32_t lane, const tt_pass_t *pass, float *grad)
{
    TT_CHECK(lane < self->lanes);
    if (pass->rows) {
        TT_TRY(tt_objective_check(pass->objective, &self->spec));
        TT_TRY(s_check_frames(pass));
    }
    return self->device->ops->shard_grad(self, lane, pass, grad);
}

void tt_grad_add(float *dst, const float *src, size_t count)
{
    for (size_t i = 0; i < count; i++)
        dst[i] += src[i];
}

size_t tt_opt_state_count(const tt_opt_spec_t *opt, const tt_net_spec_t *net, uint32_t group)
{
    size_t first = 0, count = 0;
    tt_net_group_span(net, group, &first, &count);
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

tt_status_t tt_net_apply(tt_net_t *self, uint32_t group, const tt_opt_spec_t *opt, float *opt_state, uint64_t *step,
    const float *grad, float lr, float *norm_out)
{
    const uint32_t groups = tt_net_groups(&self->spec);
    TT_CHECK(group < groups);
    return self->device->ops->apply(self, group, opt, opt_state, step, grad, lr, norm_out);
}
