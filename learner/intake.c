#include "learner/intake.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"

/*  Env states at the start of one batch. */
typedef struct {
    uint8_t *states; /* [N][state_bytes]  */
    bool *known;     /* [N]               */
    uint32_t filled;
} stand_t;

struct intake {
    intake_cfg_t cfg;
    uint64_t floor;       /* nothing before it was ever here                              */
    uint64_t first;       /* batch of slot first % slots: the update in hand, or the next */
    uint32_t slots;       /* lag + 1                                                      */
    intake_batch_t *slot; /* [slots] ring by batch % slots                                */
    uint32_t stands;      /* slots + 2: the starts of batches first - 1 .. first + slots  */
    stand_t *stand;       /* [stands] ring by batch % stands                              */
    uint64_t dropped;
};

static intake_batch_t *s_slot(const intake_t *self, uint64_t batch)
{
    return &self->slot[batch % self->slots];
}

static stand_t *s_stand(const intake_t *self, uint64_t batch)
{
    return &self->stand[batch % self->stands];
}

static void s_free_segment(intake_segment_t *segment)
{
    tt_frame_close(&segment->frame);
    free(segment->copy);
    free(segment);
}

static void s_clear_slot(intake_t *self, uint64_t batch)
{
    intake_batch_t *slot = s_slot(self, batch);
    for (uint32_t i = 0; i < slot->segments; i++)
        s_free_segment(slot->segment[i]);
    slot->segments = slot->filled = 0;
    slot->batch = batch;
    memset(slot->owner, 0, self->cfg.N * sizeof *slot->owner);
}

static void s_clear_stand(intake_t *self, uint64_t batch)
{
    stand_t *stand = s_stand(self, batch);
    stand->filled = 0;
    memset(stand->known, 0, self->cfg.N * sizeof *stand->known);
}

intake_t *intake_new(const intake_cfg_t *cfg)
{
    intake_t *self = tt_new0(sizeof *self);
    self->cfg = *cfg;
    self->slots = cfg->lag + 1;
    self->slot = tt_array0(self->slots, sizeof *self->slot);
    self->stands = self->slots + 2;
    self->stand = tt_array0(self->stands, sizeof *self->stand);
    for (uint32_t i = 0; i < self->slots; i++)
        self->slot[i].owner = tt_array0(cfg->N, sizeof *self->slot[i].owner);
    for (uint32_t i = 0; i < self->stands; i++) {
        self->stand[i].states = tt_new0(tt_mul(cfg->N, cfg->state_bytes));
        self->stand[i].known = tt_array0(cfg->N, sizeof *self->stand[i].known);
    }
    intake_reset(self, 0);
    return self;
}

void intake_destroy(intake_t **self_p)
{
    intake_t *self = *self_p;
    if (!self)
        return;
    for (uint32_t i = 0; i < self->slots; i++) {
        s_clear_slot(self, i);
        free(self->slot[i].owner);
        free(self->slot[i].segment);
    }
    for (uint32_t i = 0; i < self->stands; i++) {
        free(self->stand[i].states);
        free(self->stand[i].known);
    }
    free(self->slot);
    free(self->stand);
    free(self);
    *self_p = NULL;
}

void intake_reset(intake_t *self, uint64_t base)
{
    self->first = self->floor = base;
    for (uint64_t b = base; b < base + self->slots; b++)
        s_clear_slot(self, b);
    for (uint64_t b = base; b < base + self->stands; b++)
        s_clear_stand(self, b);
}

void intake_advance(intake_t *self, uint64_t base)
{
    for (; self->first < base; self->first++) {
        s_clear_slot(self, self->first);
        s_slot(self, self->first)->batch = self->first + self->slots;
        if (self->first > 0) /* a peer that is one step behind may still be in the update before */
            s_clear_stand(self, self->first - 1);
    }
}

/*  What the header says must fit the job; the block is checked against the header after that. */
static tt_status_t s_check_header(const intake_t *self, const tt_msg_SEGMENT_t *msg)
{
    const intake_cfg_t *cfg = &self->cfg;
    if (msg->columns != cfg->columns->hash)
        return tt_err(TT_INVALID,
            "segment of batch %llu: its rows are another list of columns (hash %016llx) than the job's (%016llx): "
            "start "
            "every role with the same version of the env",
            (unsigned long long)msg->batch, (unsigned long long)msg->columns, (unsigned long long)cfg->columns->hash);
    if (msg->steps != cfg->T || (msg->state_bytes != cfg->state_bytes && msg->state_bytes != 0))
        return tt_err(TT_INVALID, "segment of batch %llu: %u steps, %u bytes of state, but the job has %u, %u",
            (unsigned long long)msg->batch, msg->steps, msg->state_bytes, cfg->T, cfg->state_bytes);
    if (msg->env_count == 0 || msg->env_lo >= cfg->N || msg->env_count > cfg->N - msg->env_lo)
        return tt_err(TT_INVALID, "segment of batch %llu: envs %u..+%u, but there are %u",
            (unsigned long long)msg->batch, msg->env_lo, msg->env_count, cfg->N);
    if (msg->before > msg->env_lo || msg->after > cfg->N - msg->env_lo - msg->env_count)
        return tt_err(TT_INVALID, "segment of batch %llu: %u envs before envs %u..+%u and %u after, but there are %u",
            (unsigned long long)msg->batch, msg->before, msg->env_lo, msg->env_count, msg->after, cfg->N);
    if (msg->batch >= intake_upto(self))
        return tt_err(TT_INVALID, "segment of batch %llu: credit ends below %llu", (unsigned long long)msg->batch,
            (unsigned long long)intake_upto(self));
    const uint64_t oldest = msg->batch > cfg->lag ? msg->batch - cfg->lag : 0;
    if (msg->version < oldest || msg->version > msg->batch || (cfg->lag <= 1 && msg->version != oldest))
        return tt_err(TT_INVALID, "segment of batch %llu: collected with version %llu, lag is %u",
            (unsigned long long)msg->batch, (unsigned long long)msg->version, cfg->lag);
    return TT_OK;
}

/*  Every env takes T steps in a batch. */
static tt_status_t s_check_ages(const intake_t *self, const tt_msg_SEGMENT_t *msg, const intake_segment_t *segment)
{
    bool wrong = false;
    for (uint32_t e = 0; e < msg->env_count; e++)
        wrong |= segment->at.age[e] > msg->batch * self->cfg.T;
    return wrong ? tt_err(TT_INVALID, "segment of batch %llu: an episode is older than the run",
                       (unsigned long long)msg->batch)
                 : TT_OK;
}

/*  The block of a frame, copied when its address does not suit floats. The frame itself is not touched. */
static tt_status_t s_open(const intake_t *self, const tt_msg_SEGMENT_t *msg, zmq_msg_t *frame, intake_segment_t *out)
{
    *out = (intake_segment_t){.instance = msg->instance,
        .version = msg->version,
        .env_lo = msg->env_lo,
        .env_count = msg->env_count,
        .before = msg->before,
        .after = msg->after,
        .shape = {.columns = self->cfg.columns,
            .T = msg->steps,
            .E = msg->env_count,
            .K = msg->finals,
            .S = msg->state_bytes},
        .bytes = zmq_msg_size(frame)};
    size_t bytes = 0;
    TT_TRY(tt_segment_size(&out->shape, &bytes));
    if (bytes != out->bytes)
        return tt_err(TT_INVALID, "segment of batch %llu: %zu bytes where its header needs %zu",
            (unsigned long long)msg->batch, out->bytes, bytes);
    void *block = zmq_msg_data(frame);
    if ((uintptr_t)block % 16 != 0) {
        out->copy = tt_aligned0(bytes);
        memcpy(out->copy, block, bytes);
        block = out->copy;
    }
    out->block = block;
    tt_status_t status = tt_segment_check(&out->shape, block, bytes);
    if (status == TT_OK) {
        tt_segment_map(&out->shape, block, &out->at);
        status = s_check_ages(self, msg, out);
    }
    if (status != TT_OK)
        free(out->copy);
    return status;
}

static void s_keep_states(intake_t *self, uint64_t batch, const intake_segment_t *segment, uint32_t env)
{
    stand_t *stand = s_stand(self, batch + 1);
    const size_t bytes = self->cfg.state_bytes;
    if (segment->shape.S == 0 || bytes == 0)
        return;
    memcpy(stand->states + env * bytes, segment->at.states + (env - segment->env_lo) * bytes, bytes);
    stand->filled += !stand->known[env];
    stand->known[env] = true;
}

/*  The envs of a segment that it will own: those nobody has, or those it is told to replace. */
static bool s_takes(const intake_batch_t *slot, uint32_t env, const intake_range_t *force)
{
    return force ? env >= force->lo && env - force->lo < force->count : slot->owner[env] == 0;
}

static uint32_t s_count_taken(const intake_batch_t *slot, const tt_msg_SEGMENT_t *msg, const intake_range_t *force)
{
    uint32_t taken = 0;
    for (uint32_t env = msg->env_lo; env < msg->env_lo + msg->env_count; env++)
        taken += s_takes(slot, env, force);
    return taken;
}

static void s_claim(intake_t *self, intake_batch_t *slot, const intake_segment_t *segment, const intake_range_t *force)
{
    for (uint32_t env = segment->env_lo; env < segment->env_lo + segment->env_count; env++) {
        if (!s_takes(slot, env, force))
            continue;
        slot->filled += slot->owner[env] == 0;
        slot->owner[env] = slot->segments;
        s_keep_states(self, slot->batch, segment, env);
    }
}

static void s_append(intake_batch_t *slot, intake_segment_t *segment)
{
    if (slot->segments == slot->room) {
        slot->room = slot->room ? 2 * slot->room : 8;
        slot->segment = tt_realloc(slot->segment, tt_mul(slot->room, sizeof *slot->segment));
    }
    slot->segment[slot->segments++] = segment;
}

tt_status_t intake_add(
    intake_t *self, const tt_msg_SEGMENT_t *msg, zmq_msg_t *frame, const intake_range_t *force, uint32_t *fresh)
{
    if (fresh)
        *fresh = 0;
    TT_TRY(s_check_header(self, msg));
    intake_batch_t *slot = s_slot(self, msg->batch);
    const uint32_t taken = msg->batch < self->first ? 0 : s_count_taken(slot, msg, force);
    if (!force)
        self->dropped += msg->env_count - taken;
    if (taken == 0)
        return TT_OK;
    intake_segment_t *segment = tt_new0(sizeof *segment);
    const tt_status_t status = s_open(self, msg, frame, segment);
    if (status != TT_OK) {
        free(segment);
        return status;
    }
    zmq_msg_init(&segment->frame);
    if (!segment->copy)
        zmq_msg_move(&segment->frame, frame);
    s_append(slot, segment);
    s_claim(self, slot, segment, force);
    if (fresh)
        *fresh = taken;
    return TT_OK;
}

static void s_disown_env(intake_t *self, intake_batch_t *slot, uint32_t env)
{
    stand_t *stand = s_stand(self, slot->batch + 1);
    slot->owner[env] = 0;
    slot->filled--;
    stand->filled -= stand->known[env];
    stand->known[env] = false;
}

void intake_disown(
    intake_t *self, uint64_t first, bool (*keep)(const void *ctx, const intake_segment_t *segment), const void *ctx)
{
    for (uint64_t batch = first > self->first ? first : self->first; batch < intake_upto(self); batch++) {
        intake_batch_t *slot = s_slot(self, batch);
        for (uint32_t env = 0; env < self->cfg.N; env++)
            if (slot->owner[env] && !keep(ctx, slot->segment[slot->owner[env] - 1]))
                s_disown_env(self, slot, env);
    }
}

uint64_t intake_upto(const intake_t *self)
{
    return self->first + self->slots;
}

uint64_t intake_base(const intake_t *self)
{
    uint64_t base = self->first;
    while (base < intake_upto(self) && s_slot(self, base)->filled == self->cfg.N)
        base++;
    return base;
}

uint64_t intake_dropped(const intake_t *self)
{
    return self->dropped;
}

const intake_batch_t *intake_batch(const intake_t *self, uint64_t batch)
{
    return batch >= self->first && batch < intake_upto(self) ? s_slot(self, batch) : NULL;
}

bool intake_complete(const intake_t *self, uint64_t batch)
{
    const intake_batch_t *slot = intake_batch(self, batch);
    return slot && slot->filled == self->cfg.N;
}

const intake_segment_t *intake_owner(const intake_t *self, uint64_t batch, uint32_t env)
{
    const intake_batch_t *slot = intake_batch(self, batch);
    return slot && env < self->cfg.N && slot->owner[env] ? slot->segment[slot->owner[env] - 1] : NULL;
}

tt_status_t intake_states(const intake_t *self, uint64_t batch, uint32_t env_lo, uint32_t env_count, uint8_t *out)
{
    const size_t bytes = self->cfg.state_bytes;
    if (env_lo >= self->cfg.N || env_count > self->cfg.N - env_lo)
        return tt_err(TT_INVALID, "states of envs %u..+%u, but there are %u", env_lo, env_count, self->cfg.N);
    if (batch + 1 < self->first || batch < self->floor || bytes == 0)
        return tt_err(
            TT_NOT_FOUND, "the env states at the start of batch %llu are not kept", (unsigned long long)batch);
    if (batch > intake_upto(self))
        return TT_AGAIN;
    const stand_t *stand = s_stand(self, batch);
    for (uint32_t env = env_lo; env < env_lo + env_count; env++)
        if (!stand->known[env])
            return TT_AGAIN;
    memcpy(out, stand->states + env_lo * bytes, env_count * bytes);
    return TT_OK;
}

void intake_put_states(intake_t *self, const uint8_t *states)
{
    stand_t *stand = s_stand(self, self->first);
    memcpy(stand->states, states, self->cfg.N * (size_t)self->cfg.state_bytes);
    memset(stand->known, true, self->cfg.N * sizeof *stand->known);
    stand->filled = self->cfg.N;
}
