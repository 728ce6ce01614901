#include "common/nn/inference.h"
#include <stdlib.h>
#include "common/base/mem.h"

struct tt_inference {
    tt_device_t *device;
    tt_stream_t *stream;
    tt_net_t *net;
    tt_table_t *obs;
};

static tt_status_t s_open(tt_inference_t *self, const char *device, uint32_t place, const tt_net_spec_t *spec)
{
    TT_TRY(tt_device_open_wish(&self->device, device, place, 1));
    TT_TRY(tt_stream_new(&self->stream, self->device));
    TT_TRY(tt_net_new(&self->net, self->device, spec));
    return tt_table_new(&self->obs, self->device, tt_net_row_bytes(spec));
}

tt_status_t tt_inference_new(tt_inference_t **self_p, const char *device, uint32_t place, const tt_net_spec_t *spec)
{
    tt_inference_t *self = tt_new0(sizeof *self);
    const tt_status_t status = s_open(self, device, place, spec);
    if (status == TT_OK)
        *self_p = self;
    else
        tt_inference_destroy(&self);
    return status;
}

void tt_inference_destroy(tt_inference_t **self_p)
{
    tt_inference_t *self = *self_p;
    if (!self)
        return;
    tt_table_destroy(&self->obs);
    tt_net_destroy(&self->net);
    tt_stream_destroy(&self->stream);
    tt_device_close(&self->device);
    free(self);
    *self_p = NULL;
}

const char *tt_inference_device(const tt_inference_t *self)
{
    return tt_device_name(self->device);
}

tt_net_t *tt_inference_net(const tt_inference_t *self)
{
    return self->net;
}

tt_stream_t *tt_inference_stream(const tt_inference_t *self)
{
    return self->stream;
}

tt_status_t tt_inference_put(tt_inference_t *self, const float *params)
{
    return tt_net_put(self->net, self->stream, 0, params);
}

tt_status_t tt_inference_noise(tt_inference_t *self, const tt_noise_t *noise)
{
    return tt_net_noise(self->net, self->stream, 0, noise);
}

tt_status_t tt_inference_run(
    tt_inference_t *self, const void *const *obs, size_t rows, const tt_carry_t *carry, float *const *out)
{
    TT_TRY(tt_table_put_frames(self->obs, self->stream, &tt_net_spec(self->net)->stack, obs, rows));
    TT_TRY(tt_net_forward(self->net, self->stream, 0, self->obs, rows, carry, out));
    return tt_stream_sync(self->stream);
}

tt_status_t tt_inference_log_std(const tt_inference_t *self, uint32_t tower, float *log_std)
{
    return tt_net_get_log_std(self->net, self->stream, 0, tower, log_std);
}
