#include <stdlib.h>
#include "common/base/mem.h"
#include "common/nn/backend.h"
#include "common/nn/tree.h"

tt_status_t tt_sums_new(tt_sums_t **self_p, tt_net_t *net, uint32_t shards)
{
    if (!tt_tree_shards_ok(shards))
        return tt_err(TT_INVALID, "%u shards; a power of two up to %d is possible", shards, TT_SHARDS_MAX);
    tt_sums_t *self = tt_new0(sizeof *self);
    self->net = net;
    self->shards = shards;
    self->count = net->grad_count;
    self->leaf = tt_array0(shards, sizeof *self->leaf);
    self->host = tt_array0(shards, sizeof *self->host);
    *self_p = self;
    return TT_OK;
}

void tt_sums_destroy(tt_sums_t **self_p)
{
    tt_sums_t *self = *self_p;
    if (!self)
        return;
    tt_device_t *device = self->net->device;
    device->ops->wait(device);
    for (uint32_t s = 0; s < self->shards; s++) {
        device->ops->free(device, self->leaf[s]);
        free(self->host[s]);
    }
    device->ops->free(device, self->given);
    free(self->leaf);
    free(self->host);
    free(self);
    *self_p = NULL;
}

uint32_t tt_sums_first(uint32_t shards, uint32_t rows, uint32_t shard)
{
    return (uint32_t)((uint64_t)rows * shard / shards);
}

static tt_status_t s_check_heads(const tt_pass_t *pass, const tt_net_spec_t *spec)
{
    const tt_objective_t *objective = pass->objective;
    for (uint32_t s = 0; s < TT_STAGES_MAX; s++) {
        const tt_table_t *head = pass->head[s];
        const bool known = s < objective->stages && objective->stage[s].known;
        const uint32_t outs = known ? spec->tower[objective->stage[s].tower].out : 0;
        if (known != (head != NULL))
            return tt_err(TT_INVALID,
                known ? "objective %s: stage %u is known, and there is no table of its head"
                      : "objective %s: stage %u is not known, and there is a table of its head",
                objective->name, s);
        if (known && head->bytes != outs * sizeof(float))
            return tt_err(TT_INVALID, "objective %s: stage %u has a head of %u numbers, and rows of %zu bytes",
                objective->name, s, outs, head->bytes);
        if (known && !head->side_by_side)
            return tt_err(TT_INVALID,
                "objective %s: the rows of the head of stage %u do not lie side by side (tt_table_put)",
                objective->name, s);
    }
    return TT_OK;
}

/*  Tables that the objective's forwards read, and those that its loss does. */
static tt_status_t s_check_tables(const tt_pass_t *pass, const tt_net_spec_t *spec)
{
    const tt_objective_t *objective = pass->objective;
    for (uint32_t s = 0; s < objective->stages; s++)
        if (!objective->stage[s].known && !pass->obs[objective->stage[s].frame])
            return tt_err(TT_INVALID, "objective %s: stage %u reads frame %u, of which there are no observations",
                objective->name, s, objective->stage[s].frame);
    const size_t row = tt_net_row_bytes(spec);
    for (uint32_t f = 0; f < TT_FRAMES; f++)
        TT_CHECK(!pass->obs[f] || pass->obs[f]->bytes == row);
    for (uint32_t s = 0; s < objective->stages; s++)
        if (objective->stage[s].action == TT_ACTION_GIVEN &&
            (!pass->input[objective->given] || pass->input[objective->given]->bytes != spec->action * sizeof(float)))
            return tt_err(TT_INVALID, "objective %s: stage %u reads actions of %u numbers, and input %u has none",
                objective->name, s, spec->action, objective->given);
    for (uint32_t i = 0; i < TT_INPUTS_MAX; i++)
        if (pass->input[i] && !pass->input[i]->side_by_side)
            return tt_err(TT_INVALID, "objective %s: the rows of input %u do not lie side by side (tt_table_put)",
                objective->name, i);
    return s_check_heads(pass, spec);
}

static tt_status_t s_check_sequences(const tt_pass_t *pass, const tt_net_spec_t *spec)
{
    const char *name = pass->objective->name;
    const uint32_t carry = tt_net_carry(spec);
    if (!carry)
        return pass->length
                   ? tt_err(TT_INVALID, "objective %s: sequences of %u rows, and nothing in the network recurs", name,
                         pass->length)
                   : TT_OK;
    if (!pass->length || pass->rows % pass->length)
        return tt_err(TT_INVALID, "objective %s: the network recurs, and %u rows are no sequences of %u", name,
            pass->rows, pass->length);
    if (!pass->carry || !pass->begins)
        return tt_err(TT_INVALID, "objective %s: the network recurs, and there is no table of %s", name,
            pass->carry ? "where episodes begin" : "what sequences carry");
    TT_CHECK(pass->carry->bytes == carry * sizeof(float) && pass->begins->bytes == 1);
    if (!pass->carry->side_by_side || !pass->begins->side_by_side)
        return tt_err(TT_INVALID, "objective %s: the rows of %s do not lie side by side (tt_table_put)", name,
            pass->carry->side_by_side ? "where episodes begin" : "what sequences carry");
    return TT_OK;
}

tt_status_t tt_sums_compute(tt_sums_t *self, tt_stream_t *stream, const tt_pass_t *pass, uint32_t lo, uint32_t hi)
{
    TT_CHECK(lo < hi && hi <= self->shards && pass->params_size <= TT_LOSS_PARAMS_MAX);
    if (pass->rows) {
        TT_TRY(tt_objective_check(pass->objective, &self->net->spec));
        TT_TRY(s_check_tables(pass, &self->net->spec));
        TT_TRY(s_check_sequences(pass, &self->net->spec));
    }
    TT_TRY(stream->device->ops->queue(stream, &(tt_work_t){.kind = TT_WORK_COMPUTE, .compute = {self, pass, lo, hi}}));
    self->lo = lo;
    self->hi = hi;
    self->whole = lo == 0 && hi == self->shards;
    return TT_OK;
}

tt_status_t tt_sums_node(tt_sums_t *self, tt_stream_t *stream, uint32_t node, const float **out)
{
    uint32_t lo, hi;
    tt_tree_span(self->shards, node, &lo, &hi);
    if (node == 1 ? !self->whole : lo < self->lo || hi > self->hi)
        return tt_err(
            TT_INVALID, "node %u, shards %u to %u: the sums are of shards %u to %u", node, lo, hi, self->lo, self->hi);
    TT_TRY(stream->device->ops->queue(stream, &(tt_work_t){.kind = TT_WORK_NODE, .node = {self, node, out}}));
    return stream->device->ops->sync(stream);
}

tt_status_t tt_sums_put(tt_sums_t *self, tt_stream_t *stream, const float *sum)
{
    TT_TRY(stream->device->ops->queue(stream, &(tt_work_t){.kind = TT_WORK_SUM, .sum = {self, sum}}));
    self->whole = true;
    return TT_OK;
}
