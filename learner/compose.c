#define TT_LOG_COMPONENT "compose"
#include <stdlib.h>
#include <string.h>
#include "common/base/log.h"
#include "common/base/mem.h"
#include "learner/core.h"

/* ---- answers ----------------------------------------------------------------------------------------------------- */

/*  Runs of envs with one owner. */
static size_t s_slices(const core_t *self, const intake_batch_t *batch, tt_rec_SLICE_t *out)
{
    size_t count = 0;
    for (uint32_t lo = 0, hi; lo < self->model.train.num_envs; lo = hi) {
        for (hi = lo + 1; hi < self->model.train.num_envs && batch->owner[hi] == batch->owner[lo]; hi++)
            continue;
        const intake_segment_t *segment = batch->segment[batch->owner[lo] - 1];
        out[count++] = (tt_rec_SLICE_t){
            .instance = segment->instance, .env_lo = lo, .env_count = hi - lo, .version = segment->version};
    }
    return count;
}

static tt_status_t s_answer_slices(core_t *self, const pending_t *to, const intake_batch_t *batch)
{
    tt_rec_SLICE_t *slices = tt_array0(self->model.train.num_envs, sizeof *slices);
    tt_msg_FETCHED_t answer = TT_MSG(FETCHED, .batch = batch->batch, .slices = slices);
    answer.slices_count = s_slices(self, batch, slices);
    const tt_status_t status = fetch_send(self, to, &answer, NULL, 0);
    free(slices);
    return status;
}

static tt_status_t s_answer_segment(core_t *self, const pending_t *to, const intake_segment_t *segment)
{
    const tt_segment_shape_t *shape = &segment->shape;
    const tt_msg_SEGMENT_t header = TT_MSG(SEGMENT, .era = self->view.era, .instance = segment->instance,
        .batch = to->msg.batch, .version = segment->version, .env_lo = segment->env_lo, .env_count = shape->E,
        .steps = shape->T, .columns = shape->columns->hash, .finals = shape->K, .state_bytes = shape->S,
        .before = segment->before, .after = segment->after);
    tt_buf_t bytes;
    tt_buf_init(&bytes, 4096);
    tt_status_t status = tt_msg_pack(&bytes, &header);
    if (status == TT_OK) {
        zmq_msg_t frames[2];
        tt_frame_new(&frames[0], bytes.size);
        memcpy(zmq_msg_data(&frames[0]), bytes.data, bytes.size);
        tt_frame_new(&frames[1], segment->bytes);
        memcpy(zmq_msg_data(&frames[1]), segment->block, segment->bytes);
        tt_msg_FETCHED_t answer =
            TT_MSG(FETCHED, .batch = to->msg.batch, .env_lo = segment->env_lo, .env_count = shape->E);
        status = fetch_send(self, to, &answer, frames, 2);
    }
    tt_buf_free(&bytes);
    return status;
}

tt_status_t compose_answer(core_t *self, const pending_t *to)
{
    if (to->msg.batch < self->at.update)
        return fetch_gone(self, to);
    if (!intake_complete(self->data.intake, to->msg.batch))
        return TT_AGAIN;
    if (to->msg.env_count == 0)
        return s_answer_slices(self, to, intake_batch(self->data.intake, to->msg.batch));
    const intake_segment_t *segment = intake_owner(self->data.intake, to->msg.batch, to->msg.env_lo);
    return segment ? s_answer_segment(self, to, segment) : fetch_gone(self, to);
}

void compose_reset(compose_t *self)
{
    self->known = self->taken = 0;
}

void compose_close(compose_t *self)
{
    tt_packet_clear(&self->answer);
}

/* ---- fences ------------------------------------------------------------------------------------------------------ */

/*  Is that so in this job, that copies of a segment may differ? */
static bool s_decides(const core_t *self)
{
    return self->model.train.lag > 1 || self->model.train.space.env_state == 0;
}

/*  Is it of a range of the roster? Of the whole of it: who has a part of his former range began anew, too. */
static bool s_is_placed(
    const core_t *self, uint64_t instance, uint32_t lo, uint32_t count, uint32_t before, uint32_t after)
{
    return before <= lo && view_has_range(&self->view, instance, lo - before, before + count + after);
}

bool compose_fence(const core_t *self, const tt_msg_SEGMENT_t *msg)
{
    return !s_decides(self) || s_is_placed(self, msg->instance, msg->env_lo, msg->env_count, msg->before, msg->after);
}

/*  By a roster that was missed a range may have moved, and moved back by this one. */
static bool s_keep(const void *ctx, const intake_segment_t *segment)
{
    const core_t *self = ctx;
    return !self->compose.missed &&
           s_is_placed(self, segment->instance, segment->env_lo, segment->env_count, segment->before, segment->after);
}

static void s_note_epoch(compose_t *self, uint64_t epoch)
{
    self->missed = epoch != self->epoch + 1;
    self->epoch = epoch;
}

/*  Another rank 0, maybe another batch. */
static tt_status_t s_ask_anew(core_t *self)
{
    compose_reset(&self->compose);
    if (self->at.batches_counted == self->at.update || self->at.step > 0)
        return TT_OK; /* a finished step means that everyone had the same batch */
    /* no step of it is done, so it can be made of other copies; its episodes are counted again then */
    position_retract(&self->at);
    ending_retract(&self->ending);
    return statistics_uncount(&self->statistics);
}

tt_status_t compose_on_roster(core_t *self, uint64_t leader)
{
    s_note_epoch(&self->compose, self->view.epoch);
    if (!s_decides(self) || !self->at.holds)
        return TT_OK;
    const bool follows = self->view.member && self->view.rank > 0;
    if (follows && self->view.learner[0].instance != leader)
        TT_TRY(s_ask_anew(self));
    /* the heir of a range starts from rank 0's states: what its former holder played leads nowhere. What rank 0 has of complete batches
     * stays; what others have of them it may have dropped, and what is collected again says the same of itself */
    intake_disown(self->data.intake, follows ? self->at.batches_counted : intake_base(self->data.intake), s_keep, self);
    return TT_OK;
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

bool compose_done(const core_t *self)
{
    return !s_decides(self) || self->view.rank == 0 || self->compose.taken > self->at.update;
}

/*  What is missing may be on its way to us as well. */
enum { PATIENCE_MS = 20 };

static bool s_patient(const core_t *self)
{
    return tt_now_ms(self->clock) - self->compose.known_ms < PATIENCE_MS;
}

/*  The first slice of which we have another copy, or none; NULL when batch n is as it should be. */
static const tt_rec_SLICE_t *s_differs(const core_t *self, bool *missing)
{
    for (size_t i = 0; i < self->compose.answer.msg.FETCHED.slices_count; i++) {
        const tt_rec_SLICE_t *slice = &self->compose.answer.msg.FETCHED.slices[i];
        const uint64_t end = (uint64_t)slice->env_lo + slice->env_count;
        for (uint64_t env = slice->env_lo; env < end && env < self->model.train.num_envs; env++) {
            const intake_segment_t *own = intake_owner(self->data.intake, self->at.update, (uint32_t)env);
            *missing = !own;
            if (!own || own->instance != slice->instance || own->version != slice->version)
                return slice;
        }
    }
    return NULL;
}

static tt_status_t s_take_segment(core_t *self, tt_packet_t *packet, const tt_rec_SLICE_t *slice)
{
    if (packet->msg.FETCHED.gone || packet->frame_count != 2)
        return TT_AGAIN;
    tt_msg_t header;
    TT_TRY(tt_msg_unpack(&header, zmq_msg_data(&packet->frame[0]), zmq_msg_size(&packet->frame[0])));
    const intake_range_t range = {slice->env_lo, slice->env_count};
    const tt_status_t status = header.type == TT_MSG_SEGMENT && header.SEGMENT.batch == self->at.update
                                   ? intake_add(self->data.intake, &header.SEGMENT, &packet->frame[1], &range, NULL)
                                   : tt_err(TT_PROTOCOL, "rank 0 sent another message than the segment asked for");
    tt_msg_clear(&header);
    return status;
}

/*  Ask rank 0; TT_AGAIN: no answer yet, after a while of waiting. */
static tt_status_t s_ask(core_t *self, uint32_t env_lo, uint32_t env_count, tt_packet_t *packet)
{
    const tt_msg_FETCH_t question = TT_MSG(FETCH, .what = TT_FETCH_BATCH, .era = self->view.era,
        .generation = self->view.generation, .batch = self->at.update, .env_lo = env_lo, .env_count = env_count);
    return ask_for(self->data.ask, &self->view.learner[0], &question, packet);
}

static tt_status_t s_ask_composition(core_t *self)
{
    tt_packet_t packet = {0};
    TT_TRY(s_ask(self, 0, 0, &packet));
    if (packet.msg.FETCHED.gone) {
        tt_packet_clear(&packet);
        return TT_AGAIN;
    }
    tt_packet_clear(&self->compose.answer);
    self->compose.answer = packet;
    self->compose.known = self->at.update + 1;
    self->compose.known_ms = tt_now_ms(self->clock);
    return TT_OK;
}

static tt_status_t s_ask_segment(core_t *self, const tt_rec_SLICE_t *slice)
{
    tt_packet_t packet = {0};
    TT_TRY(s_ask(self, slice->env_lo, slice->env_count, &packet));
    const tt_status_t status = s_take_segment(self, &packet, slice);
    tt_packet_clear(&packet);
    return status;
}

/*  A step further; compose_done says when it is enough. */
tt_status_t compose_turn(core_t *self)
{
    tt_status_t status = TT_OK;
    if (self->compose.known <= self->at.update)
        status = s_ask_composition(self);
    if (status == TT_OK) {
        bool missing = false;
        const tt_rec_SLICE_t *slice = s_differs(self, &missing);
        if (!slice)
            self->compose.taken = self->at.update + 1;
        else
            status = missing && s_patient(self) ? core_serve(self, PATIENCE_MS) : s_ask_segment(self, slice);
    }
    if (status == TT_AGAIN)
        return core_wait(self, "waiting for the composition of batch %llu from learner/%u",
            (unsigned long long)self->at.update, self->view.learner[0].index);
    return status;
}
