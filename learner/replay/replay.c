#include "learner/replay/replay.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/limits.h"
#include "common/base/mem.h"
#include "common/base/vmath.h"
#include "learner/replay/parts.h"

static tt_status_t s_check_range(const char *what, uint64_t value, uint64_t low, uint64_t high)
{
    if (value >= low && value <= high)
        return TT_OK;
    return tt_err(TT_CONFIG, "replay: %s is %" PRIu64 "; it can be %" PRIu64 " to %" PRIu64, what, value, low, high);
}

static tt_status_t s_check(const replay_cfg_t *cfg)
{
    const tt_columns_t *columns = cfg->columns;
    TT_TRY(s_check_range("envs", cfg->N, 1, TT_ENVS_MAX));
    TT_TRY(s_check_range("steps of a batch", cfg->T, 1, TT_STEPS_MAX));
    TT_TRY(s_check_range("envs times steps", (uint64_t)cfg->N * cfg->T, 1, TT_BATCH_ROWS_MAX));
    TT_TRY(s_check_range("stripes", cfg->stripes, 1, TT_SHARDS_OF_JOB_MAX));
    if (cfg->stripes & (cfg->stripes - 1))
        return tt_err(TT_CONFIG, "replay: %" PRIu32 " stripes; a power of two is needed", cfg->stripes);
    TT_TRY(s_check_range("ahead", cfg->ahead, 1, REPLAY_AHEAD_MAX));
    TT_TRY(s_check_range("stack", cfg->stack, 1, TT_STACK_MAX));
    TT_TRY(s_check_range("priority_delay", cfg->priority_delay, 0, REPLAY_DELAY_MAX));
    TT_TRY(s_check_range("burn and length", (uint64_t)cfg->burn + cfg->length, 0, REPLAY_SEQUENCE_MAX));
    if (cfg->burn && !cfg->length)
        return tt_err(TT_CONFIG, "replay: a burn of %" PRIu32 " without a length", cfg->burn);
    if (!(cfg->gamma >= 0 && cfg->gamma <= 1))
        return tt_err(TT_CONFIG, "replay: gamma is %g; it can be 0 to 1", cfg->gamma);
    if (!(cfg->alpha >= 0 && cfg->alpha <= 4))
        return tt_err(TT_CONFIG, "replay: alpha is %g; it can be 0 to 4", (double)cfg->alpha);
    if (cfg->alpha > 0 && !(cfg->epsilon > 0 && cfg->epsilon <= 1))
        return tt_err(TT_CONFIG, "replay: epsilon is %g; it can be more than 0, up to 1", (double)cfg->epsilon);
    if (cfg->alpha > 0 && !(tt_powf(cfg->epsilon, cfg->alpha) > 0))
        return tt_err(
            TT_CONFIG, "replay: an epsilon of %g to the power of %g is 0", (double)cfg->epsilon, (double)cfg->alpha);
    if (cfg->stack > 1 &&
        (cfg->stacked >= columns->count || !(cfg->store >> cfg->stacked & 1) || !columns->at[cfg->stacked].keep))
        return tt_err(TT_CONFIG, "replay: column %" PRIu32 " cannot be stacked", cfg->stacked);
    return TT_OK;
}

tt_status_t replay_new(replay_t **self_p, const replay_cfg_t *cfg)
{
    TT_TRY(s_check(cfg));
    TT_AUTO(replay) self = tt_new0(sizeof *self);
    TT_TRY(past_init(&self->past, cfg));
    units_init(&self->units, &self->past);
    self->max_priority = 1;
    self->lates = cfg->alpha > 0 ? cfg->priority_delay + 2 : 0;
    self->late = tt_array0(self->lates, sizeof *self->late);
    *self_p = self;
    self = NULL;
    return TT_OK;
}

void replay_destroy(replay_t **self_p)
{
    replay_t *self = *self_p;
    if (!self)
        return;
    for (uint32_t i = 0; self->late && i < self->lates; i++) {
        free(self->late[i].unit);
        free(self->late[i].p);
    }
    free(self->late);
    free(self->unit);
    free(self->aim);
    free(self->weight);
    free(self->ret);
    free(self->discount);
    free(self->next);
    units_free(&self->units);
    past_free(&self->past);
    free(self);
    *self_p = NULL;
}

/*  All is checked before anything changes; and room is made first, so that at no time there is more than the capacity, but where one batch
 *  alone is. */
tt_status_t replay_insert(
    replay_t *self, uint64_t batch, const replay_part_t *part, uint32_t parts, const uint8_t *broken)
{
    past_t *past = &self->past;
    TT_TRY(past_check(past, batch, part, parts));
    const uint64_t bytes = past_bytes(past, part, parts);
    past_cut(past, broken);
    while (past->first < past->next && past->bytes + bytes > past->cfg.capacity) {
        units_drop(&self->units);
        past_evict(past);
    }
    past_add(past, batch, part, parts, broken);
    units_add(&self->units, self->max_priority);
    return TT_OK;
}

bool replay_has(const replay_t *self, uint64_t batch, const replay_part_t *part, uint32_t parts, const uint8_t *broken)
{
    return past_has(&self->past, batch, part, parts, broken);
}

void replay_stats(const replay_t *self, replay_stats_t *out)
{
    const past_t *past = &self->past;
    const uint64_t batches = past->next - past->first;
    *out = (replay_stats_t){.batches = batches,
        .rows = batches * past->cfg.T * past->cfg.N,
        .units = self->units.living,
        .finals = past->finals,
        .bytes = past->bytes,
        .oldest = past->first,
        .next = past->next,
        .max_priority = self->max_priority};
    out->physical = (batches + (past->spare != NULL)) * past->block_bytes + past->cfg.N * past->record +
                    (past->mask + 1) * sizeof(past_batch_t *) +
                    self->units.tree->slots * past->cfg.stripes * 2 * sizeof(double) +
                    past->finals_room * (past->record + sizeof(uint32_t));
}

uint64_t replay_oldest(const replay_t *self)
{
    return self->past.first;
}

uint64_t replay_owed(uint64_t rows, uint64_t start, uint64_t every, uint64_t steps)
{
    TT_CHECK(every);
    return rows > start ? (rows - start) / every * steps : 0;
}
