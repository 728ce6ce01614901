#include <stdlib.h>
#include "common/base/mem.h"
#include "common/nn/backend.h"

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

tt_status_t tt_opt_new(tt_opt_t **self_p, tt_net_t *net, uint32_t group, const tt_opt_spec_t *spec)
{
    tt_device_t *device = net->device;
    const size_t count = tt_opt_state_count(spec, &net->spec, group);
    void *state = NULL;
    if (count)
        TT_TRY(device->ops->alloc(device, &state, tt_mul(count, sizeof(float))));
    tt_opt_t *self = tt_new0(sizeof *self);
    *self = (tt_opt_t){.net = net, .group = group, .spec = *spec, .state_count = count, .state = state};
    *self_p = self;
    return TT_OK;
}

void tt_opt_destroy(tt_opt_t **self_p)
{
    tt_opt_t *self = *self_p;
    if (!self)
        return;
    tt_device_t *device = self->net->device;
    device->ops->wait(device); /* what is queued may use the state still */
    device->ops->free(device, self->state);
    free(self);
    *self_p = NULL;
}

tt_status_t tt_opt_get(const tt_opt_t *self, tt_stream_t *stream, float *state)
{
    TT_TRY(stream->device->ops->queue(stream, &(tt_work_t){.kind = TT_WORK_STATE_GET, .state_get = {self, state}}));
    return stream->device->ops->sync(stream);
}

tt_status_t tt_opt_put(tt_opt_t *self, tt_stream_t *stream, const float *state, uint64_t steps)
{
    TT_TRY(stream->device->ops->queue(stream, &(tt_work_t){.kind = TT_WORK_STATE_PUT, .state_put = {self, state}}));
    TT_TRY(stream->device->ops->sync(stream));
    self->steps = steps;
    return TT_OK;
}

uint64_t tt_opt_steps(const tt_opt_t *self)
{
    return self->steps;
}

tt_status_t tt_opt_step(tt_opt_t *self, tt_stream_t *stream, const tt_sums_t *sums, float lr)
{
    if (!sums->whole)
        return tt_err(TT_INVALID, "optimiser step %llu: the gradient was not added up over all shards",
            (unsigned long long)self->steps + 1);
    TT_TRY(stream->device->ops->queue(
        stream, &(tt_work_t){.kind = TT_WORK_STEP, .step = {self, sums, self->steps + 1, lr}}));
    self->steps++;
    return TT_OK;
}
