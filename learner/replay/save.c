/*  A replay's way into a block and pieces (block.h). */
#include "learner/replay/block.h"

uint64_t replay_settled(const replay_t *self)
{
    const past_t *past = &self->past;
    return past->first < past->next ? past->next - 1 : past->next;
}

uint64_t replay_batches_size(const replay_t *self, uint64_t first, uint64_t next)
{
    uint64_t size = 0;
    for (uint64_t b = first; b < next; b++)
        size += block_batch_size(&self->past, past_batch(&self->past, b)->finals);
    return size;
}

uint64_t replay_run(const replay_t *self, uint64_t first, uint64_t end)
{
    uint64_t next = first + 1, size = replay_batches_size(self, first, next);
    while (next < end && (size += replay_batches_size(self, next, next + 1)) <= REPLAY_PIECE)
        next++;
    return next;
}

/*  A step that is under way is drawn again by whoever loads it. */
static bool s_is_known(const replay_late_t *late)
{
    return late->units && late->given;
}

uint64_t replay_save_size(const replay_t *self, uint64_t from)
{
    const past_t *past = &self->past;
    const uint64_t batches = past->next - past->first;
    const block_head_t head = block_setup(&past->cfg);
    uint64_t size = block_head_size(&head) + BLOCK_SEAL + replay_batches_size(self, from, past->next);
    size += past->cfg.N * (past->record + batches * (past->cfg.T / self->units.period) * sizeof(float));
    for (uint32_t i = 0; i < self->lates; i++)
        size += s_is_known(&self->late[i]) ? 16 + 12 * (uint64_t)self->late[i].units : 0;
    return size;
}

static tt_status_t s_save_batch(const past_t *past, const past_batch_t *batch, tt_buf_t *out)
{
    const uint64_t finals = batch->finals, count = (uint64_t)past->cfg.T * past->cfg.N;
    TT_TRY(tt_buf_add(out, &batch->batch, sizeof batch->batch));
    TT_TRY(tt_buf_add(out, &finals, sizeof finals));
    TT_TRY(tt_buf_add(out, batch->broken, past->cfg.N));
    TT_TRY(tt_buf_add(out, batch->age, past->cfg.N * sizeof *batch->age));
    TT_TRY(tt_buf_add(out, batch->carry, (size_t)past->cfg.N * past->cfg.carry * sizeof *batch->carry));
    for (uint32_t c = 0; c < past->cfg.columns->count; c++)
        if (past_stores(past, c))
            TT_TRY(tt_buf_add(out, batch->column[c], count * past->cfg.columns->at[c].bytes));
    TT_TRY(tt_buf_add(out, batch->final_row, finals * sizeof *batch->final_row));
    return tt_buf_add(out, batch->final, finals * past->record);
}

tt_status_t replay_save_batches(const replay_t *self, uint64_t first, uint64_t next, tt_buf_t *out)
{
    const past_t *past = &self->past;
    TT_CHECK(past->first <= first && first <= next && next <= past->next);
    const size_t before = out->size;
    for (uint64_t b = first; b < next; b++) {
        const tt_status_t status = s_save_batch(past, past_batch(past, b), out);
        if (status != TT_OK) {
            tt_buf_cut(out, before);
            return status;
        }
    }
    return TT_OK;
}

static tt_status_t s_save_priorities(const replay_t *self, tt_buf_t *out)
{
    const uint32_t N = self->past.cfg.N, period = self->units.period;
    for (uint64_t clock = past_oldest(&self->past); clock < past_end(&self->past); clock += period) {
        for (uint32_t e = 0; e < N; e++) {
            const float p = units_lives(&self->units, clock, e) ? units_priority(&self->units, clock, e) : 0;
            TT_TRY(tt_buf_add(out, &p, sizeof p));
        }
    }
    return TT_OK;
}

static tt_status_t s_save_late(const replay_late_t *late, tt_buf_t *out)
{
    const uint64_t numbers[] = {late->total, late->units};
    TT_TRY(tt_buf_add(out, numbers, sizeof numbers));
    TT_TRY(tt_buf_add(out, late->unit, late->units * sizeof *late->unit));
    return tt_buf_add(out, late->p, late->units * sizeof *late->p);
}

static tt_status_t s_save(const replay_t *self, const block_head_t *head, tt_buf_t *out)
{
    const past_t *past = &self->past;
    TT_TRY(tt_buf_add(out, head, block_head_size(head)));
    TT_TRY(replay_save_batches(self, head->from, head->next, out));
    TT_TRY(tt_buf_add(out, past->tip, past->cfg.N * past->record));
    TT_TRY(s_save_priorities(self, out));
    for (uint32_t i = 0; i < self->lates; i++)
        if (s_is_known(&self->late[i]))
            TT_TRY(s_save_late(&self->late[i], out));
    return TT_OK;
}

tt_status_t replay_save(const replay_t *self, uint64_t from, tt_buf_t *out)
{
    const size_t before = out->size;
    block_head_t head = block_setup(&self->past.cfg);
    head.first = self->past.first;
    head.from = from;
    head.next = self->past.next;
    head.total = self->total;
    head.max_priority = (double)self->max_priority;
    for (uint32_t i = 0; i < self->lates; i++)
        head.late += s_is_known(&self->late[i]);
    uint8_t seal[BLOCK_SEAL];
    tt_status_t status = s_save(self, &head, out);
    if (status == TT_OK) {
        crypto_hash_sha256(seal, (const uint8_t *)out->data + before, out->size - before);
        status = tt_buf_add(out, seal, sizeof seal);
    }
    if (status != TT_OK)
        tt_buf_cut(out, before);
    return status;
}
