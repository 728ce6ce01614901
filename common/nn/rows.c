/*  rows - what every backend checks of a pass before it computes: that nobody reads behind a table. */
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
