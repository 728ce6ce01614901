#include "common/nn/nn.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/nn/backend.h"
#include "common/nn/spec.h"

static void s_free_net(tt_net_t *self)
{
    const tt_backend_ops_t *ops = self->device->ops;
    ops->wait(self->device);
    ops->net_free(self);
    for (uint32_t set = 0; set < self->sets; set++)
        ops->free(self->device, self->params[set]);
    ops->free(self->device, self->norms);
    free(self->tensors);
    free(self);
}

/*  Parameters are zero until init or put. A vector has a grad_count's worth of room: whole vectors at its end. */
static tt_status_t s_open_net(tt_net_t *self)
{
    const tt_backend_ops_t *ops = self->device->ops;
    void *memory = NULL;
    for (uint32_t set = 0; set < self->sets; set++) {
        TT_TRY(ops->alloc(self->device, &memory, tt_mul(self->grad_count, sizeof(float))));
        self->params[set] = memory;
    }
    TT_TRY(ops->alloc(self->device, &memory, sizeof *self->norms));
    self->norms = memory;
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
        if (self->spec.tower[t].log_std)
            self->log_std_at[t] = tensor[2 * (size_t)tt_spec_layers(&self->spec, t)].offset;
        tensor += tt_spec_tower_tensors(&self->spec, t);
    }
}

tt_status_t tt_net_new(tt_net_t **self_p, tt_device_t *device, const tt_net_spec_t *spec)
{
    TT_TRY(tt_spec_check(spec));
    tt_net_t *self = tt_new0(sizeof *self);
    self->device = device;
    self->spec = *spec;
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
    if (*self_p)
        s_free_net(*self_p);
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

static tt_status_t s_queue_and_wait(tt_stream_t *stream, const tt_work_t *work)
{
    TT_TRY(stream->device->ops->queue(stream, work));
    return stream->device->ops->sync(stream);
}

tt_status_t tt_net_put(tt_net_t *self, tt_stream_t *stream, uint32_t set, const float *params)
{
    TT_CHECK(set < self->sets);
    return s_queue_and_wait(stream, &(tt_work_t){.kind = TT_WORK_PUT, .put = {self, set, params}});
}

tt_status_t tt_net_get(const tt_net_t *self, tt_stream_t *stream, uint32_t set, float *params)
{
    TT_CHECK(set < self->sets);
    return s_queue_and_wait(
        stream, &(tt_work_t){.kind = TT_WORK_GET, .get = {self, set, 0, self->param_count, params}});
}

tt_status_t tt_net_get_log_std(const tt_net_t *self, tt_stream_t *stream, uint32_t set, uint32_t tower, float *log_std)
{
    TT_CHECK(set < self->sets && tower < self->spec.towers);
    return s_queue_and_wait(stream,
        &(tt_work_t){.kind = TT_WORK_GET,
            .get = {self, set, self->log_std_at[tower], tt_tower_deviations(&self->spec.tower[tower]), log_std}});
}

tt_status_t tt_net_blend(tt_net_t *self, tt_stream_t *stream, uint32_t to, uint32_t from, uint32_t groups, float tau)
{
    if (to >= self->sets || from >= self->sets || to == from)
        return tt_err(TT_INVALID, "network: set %u cannot follow set %u of %u", to, from, self->sets);
    if (groups >> tt_net_groups(&self->spec))
        return tt_err(TT_INVALID, "network: groups 0x%x of %u", groups, tt_net_groups(&self->spec));
    if (!(tau >= 0.0f && tau <= 1.0f))
        return tt_err(TT_INVALID, "network: tau is %g; 0 to 1 is possible", (double)tau);
    return self->device->ops->queue(
        stream, &(tt_work_t){.kind = TT_WORK_BLEND, .blend = {self, to, from, groups, tau}});
}

tt_status_t tt_net_noise(tt_net_t *self, tt_stream_t *stream, uint32_t set, const tt_noise_t *noise)
{
    TT_CHECK(set < self->sets);
    if (!tt_net_noisy(&self->spec))
        return TT_OK;
    tt_work_t work = {.kind = TT_WORK_NOISE, .noise = {.net = self, .set = set, .drawn = noise != NULL}};
    if (noise)
        work.noise.from = *noise;
    return self->device->ops->queue(stream, &work);
}

/*  work: all but the heads and what is carried. */
static tt_status_t s_forward(tt_stream_t *stream, tt_work_t *work, const tt_carry_t *carry, float *const *out)
{
    const tt_net_t *self = work->forward.net;
    const tt_table_t *obs = work->forward.obs;
    const size_t first = work->forward.first, rows = work->forward.rows, row = tt_net_row_bytes(&self->spec);
    TT_CHECK(work->forward.set < self->sets);
    if (rows == 0)
        return TT_OK;
    const bool recurs = tt_net_carry(&self->spec) > 0;
    TT_CHECK(obs->bytes == row && (carry && carry->in) == recurs);
    if (carry)
        work->forward.carry = *carry;
    if (first > obs->count || rows > obs->count - first)
        return tt_err(TT_INVALID, "network: %zu rows from row %zu on of a table of %zu", rows, first, obs->count);
    for (uint32_t t = 0; t < self->spec.towers; t++) {
        work->forward.out[t] = self->spec.tower[t].out ? out[t] : NULL;
        TT_CHECK(!work->forward.out[t] || !self->spec.tower[t].action); /* there is none here */
    }
    return self->device->ops->queue(stream, work);
}

tt_status_t tt_net_forward(tt_net_t *self, tt_stream_t *stream, uint32_t set, const tt_table_t *obs, size_t rows,
    const tt_carry_t *carry, float *const *out)
{
    tt_work_t work = {
        .kind = TT_WORK_FORWARD, .forward = {.net = self, .set = set, .obs = obs, .rows = rows, .again = true}};
    return s_forward(stream, &work, carry, out);
}

tt_status_t tt_net_forward_from(tt_net_t *self, tt_stream_t *stream, uint32_t set, const tt_table_t *obs, size_t first,
    size_t rows, const tt_carry_t *carry, float *const *out)
{
    tt_work_t work = {
        .kind = TT_WORK_FORWARD, .forward = {.net = self, .set = set, .obs = obs, .first = first, .rows = rows}};
    return s_forward(stream, &work, carry, out);
}

/*  Is that part of the table? */
static tt_status_t s_check_steps(const tt_walk_t *steps, const tt_table_t *obs)
{
    TT_CHECK(steps->rows <= steps->apart);
    const size_t room = obs->count < steps->first ? 0 : obs->count - steps->first;
    if (steps->rows > room || steps->steps - 1 > (room - steps->rows) / steps->apart)
        return tt_err(TT_INVALID, "network: %u steps of %u rows, %zu apart from row %zu on, of a table of %zu",
            steps->steps, steps->rows, steps->apart, steps->first, obs->count);
    for (uint32_t i = 0; i < steps->keeps; i++) {
        const size_t at = steps->keep[i] - steps->first;
        TT_CHECK(steps->keep[i] >= steps->first && at / steps->apart < steps->steps &&
                 at % steps->apart < steps->rows && (!i || steps->keep[i] > steps->keep[i - 1]));
    }
    return TT_OK;
}

tt_status_t tt_net_walk(
    tt_net_t *self, tt_stream_t *stream, uint32_t set, const tt_table_t *obs, const tt_walk_t *steps, float *const *out)
{
    tt_work_t work = {.kind = TT_WORK_WALK, .walk = {.net = self, .set = set, .obs = obs, .of = *steps}};
    const size_t row = tt_net_row_bytes(&self->spec);
    const bool recurs = tt_net_carry(&self->spec) > 0;
    TT_CHECK(set < self->sets && recurs && obs->bytes == row && steps->rows && steps->steps);
    TT_TRY(s_check_steps(steps, obs));
    for (uint32_t t = 0; t < self->spec.towers; t++) {
        work.walk.out[t] = self->spec.tower[t].out ? out[t] : NULL;
        TT_CHECK(!work.walk.out[t] || !self->spec.tower[t].action); /* there is none here */
    }
    return self->device->ops->queue(stream, &work);
}

tt_status_t tt_net_report(tt_net_t *self, tt_stream_t *stream, const tt_sums_t *sums, float *stats, tt_norms_t *norms)
{
    if (stats && !sums->whole)
        return tt_err(TT_INVALID, "network: a report of a minibatch that was not added up");
    return self->device->ops->queue(stream, &(tt_work_t){.kind = TT_WORK_REPORT, .report = {self, sums, stats, norms}});
}

tt_status_t tt_norms_check(const tt_norms_t *self)
{
    return self->bad_step ? tt_err(TT_INVALID, "optimiser step %llu: the gradient's norm is %g; the loss has diverged",
                                (unsigned long long)self->bad_step, (double)self->bad)
                          : TT_OK;
}
