#define TT_LOG_COMPONENT "pieces"
#include "learner/pieces.h"
#include <string.h>
#include "common/base/log.h"
#include "common/snapshot/pieces.h"
#include "learner/core.h"

enum { REST = 3, OUTRUN = 4, BEHIND = 2 };

/*  Learners are one update apart at most, and the batch in hand may yet be composed anew: two before it, all is as it will be. */
uint64_t pieces_settled(const core_t *self)
{
    const uint64_t inserted = replay_settled(memory_replay(self->data.memory));
    const uint64_t done = self->at.update > BEHIND ? self->at.update - BEHIND : 0;
    return inserted < done ? inserted : done;
}

static tt_status_t s_make(const replay_t *replay, uint64_t first, uint64_t next, zmq_msg_t frames[2])
{
    tt_buf_t bytes;
    tt_buf_init(&bytes, replay_batches_size(replay, first, next));
    TT_TRY(replay_save_batches(replay, first, next, &bytes));
    tt_frame_new(&frames[0], bytes.size);
    tt_frame_new(&frames[1], TT_PIECE_HASH);
    memcpy(zmq_msg_data(&frames[0]), bytes.data, bytes.size);
    tt_piece_hash(bytes.data, bytes.size, zmq_msg_data(&frames[1]));
    tt_buf_free(&bytes);
    return TT_OK;
}

static bool s_rests(const core_t *self)
{
    return tt_now_ns(self->clock) < self->pieces.rests_until_ns && self->at.update < self->pieces.rests_until_update;
}

static tt_status_t s_send(core_t *self, const pending_t *to)
{
    const replay_t *replay = memory_replay(self->data.memory);
    const uint64_t settled = pieces_settled(self), until = to->msg.until, oldest = replay_oldest(replay);
    const uint64_t first = to->msg.batch > oldest ? to->msg.batch : oldest;
    const uint64_t end = until && until < settled ? until : settled;
    tt_msg_FETCHED_t answer = TT_MSG(FETCHED, .batch = first, .until = first, .settled = settled);
    zmq_msg_t frames[2];
    if (first >= end)
        return fetch_send(self, to, &answer, NULL, 0);
    answer.until = replay_run(replay, first, end);
    TT_TRY(s_make(replay, first, answer.until, frames));
    self->pieces.rests_until_update = self->at.update + (answer.until - first) / OUTRUN;
    core_progress(self);
    return fetch_send(self, to, &answer, frames, 2);
}

tt_status_t pieces_answer(core_t *self, const pending_t *to)
{
    pieces_t *pieces = &self->pieces;
    const int64_t now = tt_now_ns(self->clock);
    if (!self->data.memory)
        return fetch_gone(self, to);
    if (s_rests(self)) {
        pieces->asked = true;
        return TT_AGAIN;
    }
    const tt_status_t status = s_send(self, to);
    const int64_t then = tt_now_ns(self->clock);
    pieces->rests_until_ns = then + REST * (then - now);
    return status;
}

void pieces_turn(core_t *self)
{
    pieces_t *pieces = &self->pieces;
    if (!pieces->asked || s_rests(self))
        return;
    pieces->asked = false;
    fetch_retry(self);
}

int64_t pieces_wait_ms(const core_t *self, int64_t timeout_ms)
{
    if (!self->pieces.asked)
        return timeout_ms;
    const int64_t left_ms = (self->pieces.rests_until_ns - tt_now_ns(self->clock) + 999999) / 1000000;
    const int64_t least = left_ms > 0 ? left_ms : 0;
    return least < timeout_ms ? least : timeout_ms;
}
