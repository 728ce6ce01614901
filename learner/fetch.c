#define TT_LOG_COMPONENT "fetch"
#include <stdlib.h>
#include <string.h>
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/job/fit.h"
#include "learner/core.h"

enum { PENDING_MAX = 4096 };

tt_status_t fetch_send(core_t *self, const pending_t *to, tt_msg_FETCHED_t *answer, zmq_msg_t *frames, size_t count)
{
    answer->id = to->msg.id;
    answer->what = to->msg.what;
    answer->era = self->view.era;
    answer->generation = self->view.generation;
    const tt_status_t status = tt_sock_send(self->socks.data, to->peer, answer, frames, count);
    if (status != TT_OK)
        log_debug("answer to %s: %s", to->peer, tt_err_text());
    for (size_t i = 0; i < count; i++)
        tt_frame_close(&frames[i]);
    return status == TT_AGAIN ? TT_AGAIN : TT_OK;
}

tt_status_t fetch_gone(core_t *self, const pending_t *to)
{
    tt_msg_FETCHED_t answer = TT_MSG(FETCHED, .gone = true, .batch = to->msg.batch, .version = to->msg.version);
    return fetch_send(self, to, &answer, NULL, 0);
}

static tt_status_t s_weights(core_t *self, const pending_t *to)
{
    version_t *newest = publish_newest(self->data.publish), *oldest = publish_oldest(self->data.publish);
    if (!newest || newest->version < to->msg.version)
        return TT_AGAIN;
    if (!to->msg.newest && to->msg.version < oldest->version)
        return fetch_gone(self, to);
    version_t *version = to->msg.newest ? newest : publish_find(self->data.publish, to->msg.version);
    if (!version)
        return fetch_gone(self, to);
    tt_msg_FETCHED_t answer = TT_MSG(FETCHED, .version = version->version);
    zmq_msg_t frames[2];
    publish_frames(version, frames);
    return fetch_send(self, to, &answer, frames, 2);
}

/*  Envs that cannot be saved have states of no bytes: the collector resets them. */
static tt_status_t s_envs(core_t *self, const pending_t *to)
{
    const tt_msg_FETCH_t *msg = &to->msg;
    const tt_train_cfg_t *train = &self->model.train;
    if (msg->env_lo >= train->num_envs || msg->env_count > train->num_envs - msg->env_lo)
        return fetch_gone(self, to);
    zmq_msg_t frame;
    tt_frame_new(&frame, (size_t)msg->env_count * tt_train_state_bytes(train, self->model.columns));
    const bool reset = train->space.env_state == 0 || (msg->batch == 0 && self->at.update == 0);
    const tt_status_t status =
        reset ? TT_OK : intake_states(self->data.intake, msg->batch, msg->env_lo, msg->env_count, zmq_msg_data(&frame));
    if (status != TT_OK) {
        tt_frame_close(&frame);
        return status == TT_AGAIN ? TT_AGAIN : fetch_gone(self, to);
    }
    if (reset) {
        tt_frame_close(&frame);
        tt_frame_new(&frame, 0);
    }
    tt_msg_FETCHED_t answer = TT_MSG(FETCHED, .batch = msg->batch, .env_lo = msg->env_lo, .env_count = msg->env_count);
    return fetch_send(self, to, &answer, &frame, 1);
}

/*  Everybody waits while a state is on its way: what can come in pieces does. */
static bool s_lacks_much(const core_t *self, uint64_t next)
{
    if (!self->data.memory)
        return false;
    const replay_t *replay = memory_replay(self->data.memory);
    const uint64_t oldest = replay_oldest(replay), first = next > oldest ? next : oldest,
                   settled = pieces_settled(self);
    return first < settled && replay_batches_size(replay, first, settled) > 4 * (uint64_t)REPLAY_PIECE;
}

/*  Handlers run between optimiser steps only, so what we are now is a state to go on from: for a member of the generation
 *  that we act on, without whose gradients we get no further. One that asks as a member of an older generation (it was
 *  stopped for a while) would be left behind with what we gave it: it must ask again with its new roster. */
static tt_status_t s_state(core_t *self, const pending_t *to)
{
    if (self->view.generation < to->msg.generation)
        return TT_AGAIN;
    if (self->view.generation > to->msg.generation)
        return fetch_gone(self, to);
    if (self->at.begun &&
        self->at.step == self->at.step_count) /* we go on without its gradients: after the update, then */
        return TT_AGAIN;
    if (s_lacks_much(self, to->msg.batch))
        return fetch_gone(self, to);
    tt_buf_t bytes;
    tt_buf_init(&bytes, TT_SNAPSHOT_WIRE_MAX);
    tt_snapshot_t snapshot;
    TT_TRY(state_capture(self, STATE_REPLAY_SINCE, to->msg.batch, &snapshot));
    snapshot.sum = allreduce_last_sum(self->data.allreduce, &snapshot.sum_step);
    tt_status_t status = tt_snapshot_encode(&snapshot, &bytes);
    state_release(&snapshot);
    if (status == TT_OK) {
        zmq_msg_t frame;
        tt_frame_new(&frame, bytes.size);
        memcpy(zmq_msg_data(&frame), bytes.data, bytes.size);
        tt_msg_FETCHED_t answer = TT_MSG(FETCHED, .version = self->at.update);
        log_info("state for %s: update %llu, step %u", to->peer, (unsigned long long)self->at.update, self->at.step);
        status = fetch_send(self, to, &answer, &frame, 1);
    } else {
        log_error("state for %s: %s", to->peer, tt_err_text());
        status = fetch_gone(self, to);
    }
    tt_buf_free(&bytes);
    return status;
}

static tt_status_t s_answer(core_t *self, const pending_t *to)
{
    if (self->view.era == 0 || to->msg.era > self->view.era)
        return TT_AGAIN;
    if (to->msg.era < self->view.era)
        return fetch_gone(self, to);
    if (!self->at.holds)
        return TT_AGAIN;
    switch (to->msg.what) {
    case TT_FETCH_WEIGHTS:
        return s_weights(self, to);
    case TT_FETCH_ENVS:
        return s_envs(self, to);
    case TT_FETCH_STATE:
        return s_state(self, to);
    case TT_FETCH_BATCH:
        return compose_answer(self, to);
    case TT_FETCH_REPLAY:
        return pieces_answer(self, to);
    default:
        return fetch_gone(self, to);
    }
}

/*  Perhaps it is about something that will never be, or its asker is gone; if not, it is asked again. */
static void s_drop_oldest(core_t *self)
{
    const pending_t *oldest = &self->fetch.pending[0];
    log_warn("%s: its question (what %u, era %u) waits for long, and too many are open; dropped", oldest->peer,
        oldest->msg.what, oldest->msg.era);
    self->fetch.count--;
    memmove(self->fetch.pending, self->fetch.pending + 1, self->fetch.count * sizeof *self->fetch.pending);
}

void fetch_take(core_t *self, const char *peer, const tt_msg_FETCH_t *msg)
{
    pending_t pending = {.msg = *msg};
    memcpy(pending.peer, peer, strnlen(peer, sizeof pending.peer - 1));
    if (s_answer(self, &pending) == TT_OK)
        return;
    for (size_t i = 0; i < self->fetch.count; i++) /* it has one question of a kind: the newer replaces the older */
        if (strcmp(self->fetch.pending[i].peer, peer) == 0 && self->fetch.pending[i].msg.what == msg->what) {
            self->fetch.pending[i] = pending;
            return;
        }
    if (self->fetch.count == PENDING_MAX)
        s_drop_oldest(self);
    self->fetch.pending = tt_realloc(self->fetch.pending, tt_mul(self->fetch.count + 1, sizeof *self->fetch.pending));
    self->fetch.pending[self->fetch.count++] = pending;
}

void fetch_retry(core_t *self)
{
    for (size_t i = 0; i < self->fetch.count;)
        if (s_answer(self, &self->fetch.pending[i]) == TT_OK)
            self->fetch.pending[i] = self->fetch.pending[--self->fetch.count];
        else
            i++;
}

void fetch_close(fetch_t *self)
{
    free(self->pending);
    *self = (fetch_t){0};
}
