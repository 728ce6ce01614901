/*  rows - what every backend does around a pass: that nobody reads behind a table, memory for its gradients, and which parts of them it
 *  has to do with. */
#include "common/base/mem.h"
#include "common/nn/backend.h"

static size_t s_rows_there(const tt_pass_t *pass)
{
    size_t there = pass->begins ? pass->begins->there : SIZE_MAX;
    for (uint32_t f = 0; f < TT_FRAMES; f++)
        if (pass->obs[f] && pass->obs[f]->there < there)
            there = pass->obs[f]->there;
    for (uint32_t s = 0; s < TT_STAGES_MAX; s++)
        if (pass->head[s] && pass->head[s]->there < there)
            there = pass->head[s]->there;
    for (uint32_t i = 0; i < TT_INPUTS_MAX; i++)
        if (pass->input[i] && pass->input[i]->there != 1 && pass->input[i]->there < there)
            there = pass->input[i]->there;
    return there;
}

/*  Of rows first, first + step ... */
static tt_status_t s_check(const tt_pass_t *pass, uint32_t first, uint32_t end, uint32_t step, size_t there)
{
    uint32_t last = 0;
    for (uint32_t k = first; k < end; k += step)
        last = pass->row[k] > last ? pass->row[k] : last;
    if (first < end && last >= there)
        return tt_err(TT_INVALID, "objective %s: row %u of tables that have %zu", pass->objective->name, last, there);
    return TT_OK;
}

/*  What is carried is read for the first row of a sequence alone. */
tt_status_t tt_work_check_rows(const tt_work_t *work)
{
    const tt_pass_t *pass = work->compute.pass;
    const uint32_t shards = work->compute.sums->shards, length = pass->length ? pass->length : 1;
    const uint32_t first = tt_sums_first(shards, pass->rows / length, work->compute.lo) * length;
    const uint32_t end = tt_sums_first(shards, pass->rows / length, work->compute.hi) * length;
    TT_TRY(s_check(pass, first, end, 1, s_rows_there(pass)));
    return pass->carry ? s_check(pass, first, end, length, pass->carry->there) : TT_OK;
}

tt_status_t tt_work_reserve(const tt_work_t *work)
{
    const tt_sums_t *sums = work->compute.sums;
    tt_device_t *device = sums->net->device;
    for (uint32_t s = work->compute.lo; s < work->compute.hi; s++) {
        void *memory = sums->leaf[s];
        if (!memory)
            TT_TRY(device->ops->alloc(device, &memory, tt_mul(sums->count, sizeof(float))));
        sums->leaf[s] = memory;
    }
    return TT_OK;
}

static uint32_t s_span(tt_span_t *span, uint32_t spans, size_t first, size_t end)
{
    tt_span_t *last = spans ? &span[spans - 1] : NULL;
    if (last && first - (last->first + last->count) < TT_GROUP_ALIGN) {
        last->count = end - last->first;
        return spans;
    }
    span[spans] = (tt_span_t){first, end - first};
    return spans + 1;
}

static uint32_t s_spans(const tt_net_t *net, uint32_t groups, tt_span_t *span)
{
    uint32_t spans = 0;
    for (uint32_t g = 0; g < tt_net_groups(&net->spec); g++) {
        size_t first = 0, count = 0;
        tt_net_group_span(&net->spec, g, &first, &count);
        if (groups >> g & 1)
            spans = s_span(span, spans, first, first + count);
    }
    return spans;
}

uint32_t tt_work_spans(const tt_net_t *net, uint32_t groups, tt_span_t span[TT_SPANS_MAX])
{
    return s_span(span, s_spans(net, groups, span), net->param_count, net->grad_count);
}

uint32_t tt_work_missing(const tt_sums_t *sums, uint32_t groups, tt_span_t span[TT_SPANS_MAX])
{
    return s_spans(sums->net, groups & ~sums->groups, span);
}
