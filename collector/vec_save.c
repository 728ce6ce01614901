#include <string.h>
#include "collector/mask.h"
#include "collector/vec_self.h"
#include "common/base/limits.h"
#define TT_LOG_COMPONENT "env"
#include "common/base/log.h"

/*  What stands before an env's own bytes in its saved form; the observation's leaves and the mask follow, then, where observations
 *  are stacked, those before it by column, newest first, zeros in place of other episodes', then the state.
 *  Little-endian, as the wire. */
typedef struct {
    uint32_t magic, env; /* "TTE2", and a hash of the env's id and its arguments */
    uint64_t clock, episode;
    uint32_t steps, columns; /* half the hash of the columns; TTE1: elements of the one float32 vector */
} saved_t;

enum { MAGIC = 0x32455454, MAGIC_1 = 0x31455454 };

static size_t s_own_size(const tt_env_ops_t *ops)
{
    const tt_env_batch_ops_t *batch = tt_env_batch(ops);
    if (batch)
        return batch->save ? ops->save_size : 0;
    if (ops->save)
        return ops->save_size;
    return ops->init && !ops->plain ? 0 : ops->state_size; /* what init made may point elsewhere */
}

/*  Of one frame. */
static size_t s_frame_size(const tt_columns_t *columns)
{
    size_t size = 0;
    for (uint32_t k = 0; k < columns->obs_count; k++)
        size += columns->at[k].bytes;
    return size;
}

static size_t s_seen_size(const tt_columns_t *columns, uint32_t frames)
{
    return frames * s_frame_size(columns) + (columns->mask >= 0 ? columns->mask_bits : 0);
}

size_t tt_vec_save_size(const tt_env_ops_t *ops, uint32_t frames)
{
    const size_t own = s_own_size(ops);
    tt_columns_t *columns;
    if (!own || tt_columns_new(&columns, &ops->obs, &ops->action, ops->mask, true) != TT_OK)
        return 0;
    const size_t size = sizeof(saved_t) + s_seen_size(columns, frames) + own;
    tt_columns_destroy(&columns);
    return size;
}

static uint32_t s_half(uint64_t hash)
{
    return (uint32_t)(hash ^ hash >> 32);
}

/*  Frames of env i's episode before the current one that a stack shows. */
static uint32_t s_back(const tt_vec_t *self, uint32_t steps)
{
    const uint32_t most = self->columns->stack.frames - 1;
    return steps < most ? steps : most;
}

static unsigned char *s_save_frames(const tt_vec_t *self, uint32_t i, unsigned char *to)
{
    const uint32_t back = s_back(self, self->steps[i]), most = self->columns->stack.frames - 1;
    for (uint32_t c = 0; c < self->columns->obs_count; c++) {
        const size_t size = self->columns->at[c].bytes;
        for (uint32_t k = 1; k <= most; k++, to += size) {
            if (k <= back)
                memcpy(to, vec_past(self, i, k, c), size);
            else
                memset(to, 0, size);
        }
    }
    return to;
}

tt_status_t tt_vec_save(const tt_vec_t *self, uint32_t i, void *bytes)
{
    const size_t own = s_own_size(self->ops);
    TT_CHECK(own > 0 && i < self->count);
    const saved_t head = {.magic = MAGIC,
        .env = self->identity,
        .clock = self->clock[i],
        .episode = self->episode[i],
        .steps = self->steps[i],
        .columns = s_half(self->columns->hash)};
    unsigned char *to = bytes;
    memcpy(to, &head, sizeof head);
    to += sizeof head;
    for (uint32_t k = 0; k < self->columns->obs_count; k++) {
        const size_t size = self->columns->at[k].bytes;
        memcpy(to, (char *)self->obs[k] + i * size, size);
        to += size;
    }
    if (self->mask)
        memcpy(to, vec_mask(self, i), self->columns->mask_bits);
    to += self->mask ? self->columns->mask_bits : 0;
    to = s_save_frames(self, i, to);
    memset(to, 0, own); /* an env may write less: equal states have equal bytes */
    return self->mover->save(self, i, to);
}

/*  States that were saved before there were columns: one float32 vector, which lies as it lay. */
static bool s_is_first_form(const tt_vec_t *self, const saved_t *head)
{
    return head->magic == MAGIC_1 && self->columns->obs_count == 1 && self->columns->at[0].dtype == TT_F32 &&
           !self->mask && head->columns == self->columns->flat;
}

static tt_status_t s_check_head(const tt_vec_t *self, const saved_t *head)
{
    const uint32_t limit = self->ops->max_episode_steps;
    const bool ours = head->magic == MAGIC && head->columns == s_half(self->columns->hash);
    if (head->env != self->identity || (!ours && !s_is_first_form(self, head)))
        return tt_err(TT_DATA, "env %s: these bytes are not a saved state of it", self->ops->id);
    if ((limit && head->steps >= limit) || head->clock < head->steps || head->clock < head->episode ||
        head->clock >> 40 != 0)
        return tt_err(TT_DATA, "env %s: a saved state is damaged", self->ops->id);
    return TT_OK;
}

/*  What was seen, into the rows for finals, where it lies aligned; nothing else is touched. */
static tt_status_t s_check_seen(tt_vec_t *self, uint32_t i, const unsigned char *from)
{
    const tt_columns_t *columns = self->columns;
    bool sound = true;
    size_t bad;
    for (uint32_t k = 0; k < columns->obs_count; k++) {
        const size_t size = columns->at[k].bytes;
        void *row = (char *)self->final[k] + i * size;
        memcpy(row, from, size);
        from += size;
        sound = sound && leaf_check(&self->obs_leaf[k], row, 1, &bad);
    }
    if (self->mask) {
        uint32_t column, element;
        uint8_t *row = (uint8_t *)self->final[columns->mask] + (size_t)i * columns->mask_bits;
        memcpy(row, from, columns->mask_bits);
        sound = sound && mask_settle(columns, row, &column, &element);
    }
    return sound ? TT_OK : tt_err(TT_DATA, "env %s: a saved state is damaged", self->ops->id);
}

/*  A batch may say that it could not save. */
static bool s_is_nothing(const tt_vec_t *self, const unsigned char *bytes, size_t size)
{
    return self->batch && bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0;
}

static tt_status_t s_begin_anew(tt_vec_t *self, uint32_t i, const saved_t *head)
{
    log_warn("env %s: the state of env %u could not be saved: it begins anew; this run is not reproducible",
        self->ops->id, self->lo + i);
    return vec_begin_anew(self, i, head->clock);
}

/*  The frames before it, each looked at where it lies aligned. */
static tt_status_t s_check_frames(tt_vec_t *self, uint32_t i, const saved_t *head, const unsigned char *from)
{
    const uint32_t back = s_back(self, head->steps), most = self->columns->stack.frames - 1;
    bool sound = true;
    size_t bad;
    for (uint32_t c = 0; c < self->columns->obs_count; c++) {
        const size_t size = self->columns->at[c].bytes;
        void *row = (char *)self->final[c] + i * size;
        for (uint32_t k = 1; k <= most; k++, from += size) {
            memcpy(row, from, size);
            sound = sound && (k > back || leaf_check(&self->obs_leaf[c], row, 1, &bad));
        }
    }
    return sound ? TT_OK : tt_err(TT_DATA, "env %s: a saved state is damaged", self->ops->id);
}

/*  They were checked, but for those that no stack shows: what stands there is made zeros. */
static void s_load_frames(tt_vec_t *self, uint32_t i, const saved_t *head, const unsigned char *from)
{
    const uint32_t back = s_back(self, head->steps), most = self->columns->stack.frames - 1;
    for (uint32_t c = 0; c < self->columns->obs_count; c++) {
        const size_t size = self->columns->at[c].bytes;
        for (uint32_t k = 1; k <= most; k++, from += size) {
            if (k <= back)
                memcpy(vec_past(self, i, k, c), from, size);
            else
                memset(vec_past(self, i, k, c), 0, size);
        }
    }
}

tt_status_t tt_vec_begin_load(tt_vec_t *self, uint32_t i, const void *bytes)
{
    const tt_columns_t *columns = self->columns;
    const uint32_t frames = columns->stack.frames;
    const unsigned char *seen = (const unsigned char *)bytes + sizeof(saved_t);
    const unsigned char *before = seen + s_seen_size(columns, 1);
    const size_t own = s_own_size(self->ops);
    TT_CHECK(own > 0 && i < self->count);
    saved_t head;
    memcpy(&head, bytes, sizeof head);
    TT_TRY(s_check_head(self, &head));
    TT_TRY(s_check_frames(self, i, &head, before));
    TT_TRY(s_check_seen(self, i, seen));
    const unsigned char *state = seen + s_seen_size(columns, frames);
    if (s_is_nothing(self, state, own))
        return s_begin_anew(self, i, &head);
    TT_TRY(self->mover->load(self, i, state));
    s_load_frames(self, i, &head, before);
    for (uint32_t k = 0; k < columns->obs_count; k++) {
        const size_t size = columns->at[k].bytes;
        memcpy((char *)self->obs[k] + i * size, (char *)self->final[k] + i * size, size);
    }
    if (self->mask)
        memcpy(vec_mask(self, i), tt_vec_final(self, i, (uint32_t)columns->mask), columns->mask_bits);
    self->clock[i] = head.clock;
    self->episode[i] = head.episode;
    self->steps[i] = head.steps;
    return TT_OK;
}

tt_status_t tt_vec_loaded(tt_vec_t *self, bool *all, uint64_t *moves)
{
    return self->mover->loaded(self, all, moves);
}
