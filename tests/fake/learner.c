#include "tests/fake/learner.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"

static void s_send_credit(fake_learner_t *self)
{
    const tt_msg_CREDIT_t credit =
        TT_MSG(CREDIT, .era = self->run->era, .epoch = self->epoch, .upto = self->upto, .base = self->base);
    tt_sock_send(self->data, self->peer, &credit, NULL, 0);
}

void fake_learner_credit(fake_learner_t *self, uint64_t base, uint64_t upto)
{
    self->answers = true;
    self->base = base;
    self->upto = upto;
    if (self->peer[0])
        s_send_credit(self);
}

void fake_learner_ack(fake_learner_t *self, uint64_t below)
{
    assert_ok(tt_sock_send(self->data, self->peer, &TT_MSG(ACK, .era = self->run->era, .below = below), NULL, 0));
}

void fake_learner_publish(fake_learner_t *self, uint64_t version)
{
    const tt_msg_WEIGHTS_t weights =
        TT_MSG(WEIGHTS, .era = self->run->era, .generation = self->run->generation, .version = version);
    zmq_msg_t frames[2];
    self->store->version(self->store->ctx, version, frames);
    assert_ok(tt_sock_send(self->pub, NULL, &weights, frames, 2));
    tt_frame_close(&frames[0]);
    tt_frame_close(&frames[1]);
}

/* ---- FETCH --------------------------------------------------------------------------------------------------------- */

/*  Frames of the answer; -1: there is none yet. */
static int s_take(fake_learner_t *self, const tt_msg_FETCH_t *fetch, tt_msg_FETCHED_t *answer, zmq_msg_t *frames)
{
    const size_t each = self->store->state_bytes;
    if (fetch->what == TT_FETCH_ENVS && self->gone) {
        self->gone = false;
        self->base = fetch->batch + 1;
        answer->gone = true;
        return 0;
    }
    if (fetch->what == TT_FETCH_WEIGHTS && fetch->version < self->store->published) {
        answer->version = fetch->newest ? self->store->published - 1 : fetch->version;
        self->store->version(self->store->ctx, answer->version, frames);
        self->weights_fetched++;
        return 2;
    }
    if ((fetch->what == TT_FETCH_REPLAY || fetch->what == TT_FETCH_BATCH) && self->lend)
        return self->lend(self->lend_ctx, fetch, answer, frames);
    if (fetch->what != TT_FETCH_ENVS || !self->store->states)
        return -1;
    tt_frame_new(&frames[0], fetch->env_count * each);
    memcpy(zmq_msg_data(&frames[0]), self->store->states + fetch->env_lo * each, fetch->env_count * each);
    self->envs_fetched++;
    return 1;
}

static bool s_answer(fake_learner_t *self, const tt_msg_FETCH_t *fetch)
{
    tt_msg_FETCHED_t answer = TT_MSG(FETCHED, .id = fetch->id, .what = fetch->what, .era = self->run->era,
        .version = fetch->version, .batch = fetch->batch, .env_lo = fetch->env_lo, .env_count = fetch->env_count);
    zmq_msg_t frames[2];
    const int count = s_take(self, fetch, &answer, frames);
    if (count < 0)
        return false;
    const tt_status_t status = tt_sock_send(self->data, self->peer, &answer, frames, (size_t)count);
    if (status != TT_UNAVAILABLE) /* who asked has begun anew, on another connection */
        assert_ok(status);
    for (int i = 0; status != TT_OK && i < count; i++)
        tt_frame_close(&frames[i]);
    return true;
}

void fake_learner_retry(fake_learner_t *self)
{
    for (size_t i = 0; i < self->pendings;)
        if (s_answer(self, &self->pending[i]))
            self->pending[i] = self->pending[--self->pendings];
        else
            i++;
}

/* ---- what collectors send ------------------------------------------------------------------------------------------ */

static bool s_is_member(const fake_coordinator_t *run, uint64_t instance)
{
    for (size_t i = 0; i < run->members; i++)
        if (run->member[i].instance == instance)
            return true;
    return false;
}

static void s_on_attach(fake_learner_t *self, const tt_msg_ATTACH_t *attach)
{
    assert_true(s_is_member(self->run, attach->instance));
    self->epoch = attach->epoch;
    if (self->answers && self->epoch == self->run->epoch) /* of an older roster: it will attach anew */
        s_send_credit(self);
}

static void s_on_segment(fake_learner_t *self, tt_packet_t *packet)
{
    const tt_msg_SEGMENT_t *msg = &packet->msg.SEGMENT;
    assert_true(self->segments < FAKE_SEGMENTS);
    assert_int_equal(packet->frame_count, 1);
    fake_segment_t *segment = &self->segment[self->segments++];
    segment->msg = *msg;
    assert_true(msg->columns == self->store->columns->hash);
    segment->shape = (tt_segment_shape_t){
        .columns = self->store->columns, .T = msg->steps, .E = msg->env_count, .K = msg->finals, .S = msg->state_bytes};
    segment->bytes = zmq_msg_size(&packet->frame[0]);
    segment->block = tt_aligned0(segment->bytes);
    memcpy(segment->block, zmq_msg_data(&packet->frame[0]), segment->bytes);
    assert_ok(tt_segment_check(&segment->shape, segment->block, segment->bytes));
}

static tt_status_t s_on_data(void *ctx, tt_sock_t *sock, tt_packet_t *packet)
{
    (void)sock;
    fake_learner_t *self = ctx;
    snprintf(self->peer, sizeof self->peer, "%s", packet->peer);
    if (packet->msg.type == TT_MSG_ATTACH)
        s_on_attach(self, &packet->msg.ATTACH);
    else if (packet->msg.type == TT_MSG_FETCH) {
        assert_true(self->pendings < TT_COUNT(self->pending));
        self->pending[self->pendings++] = packet->msg.FETCH;
        fake_learner_retry(self);
    } else if (packet->msg.type == TT_MSG_SEGMENT)
        s_on_segment(self, packet);
    else
        fail_msg("a learner got %s", tt_msg_name(packet->msg.type));
    return TT_OK;
}

/* ---- life ---------------------------------------------------------------------------------------------------------- */

static void s_bind(fake_learner_t *self, tt_sock_t **sock, tt_sock_type_t type, const char *name, char *endpoint)
{
    const tt_sock_opts_t opts = {.name = name, .max_bytes = 1 << 24};
    snprintf(endpoint, sizeof self->member->data, "ipc://%s/sock/%s-%u", self->run->dir, name, self->member->index);
    assert_ok(tt_sock_new(sock, type, &opts));
    assert_ok(tt_sock_bind(*sock, endpoint, NULL, 0));
}

void fake_learner_open(fake_learner_t *self, fake_coordinator_t *run, fake_store_t *store, uint32_t index)
{
    *self = (fake_learner_t){.run = run, .store = store, .member = fake_add(run, TT_PEER_LEARNER, index, 0)};
    self->member->instance = 100 + index;
    s_bind(self, &self->data, TT_ROUTER, "data", self->member->data);
    s_bind(self, &self->pub, TT_PUB, "weights", self->member->weights);
    tt_loop_sock(run->loop, self->data, s_on_data, self);
}

void fake_learner_close(fake_learner_t *self)
{
    tt_loop_forget_sock(self->run->loop, self->data);
    tt_sock_destroy(&self->data);
    tt_sock_destroy(&self->pub);
    for (size_t k = 0; k < self->segments; k++)
        free(self->segment[k].block);
}
