#include "aggregator/reduce.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/net/net.h"
#include "common/nn/tree.h"

enum { STEPS = 2 };

/*  A sender of a chunk: the node it sent first, 0 = it sent nothing. */
typedef struct {
    uint32_t first;
    bool waits; /* for the sum */
} part_t;

typedef struct {
    tt_tree_t *tree; /* NULL until the first GRAD; kept from step to step */
    part_t *part;    /* [shards], by peer number                          */
    bool begun, summed;
    bool reaches; /* all that it is made of said so */
} chunk_t;

typedef struct {
    bool used;
    uint64_t step;
    uint32_t chunks;
    chunk_t *chunk;
} step_t;

struct reduce {
    reduce_limits_t limits;
    reduce_send_fn send;
    void *ctx;
    uint32_t era;
    uint64_t generation;
    step_t step[STEPS];
    char (*peer)[64]; /* [shards] senders of this generation, by number */
    uint32_t peers;
    bool moved; /* other chunks are ours: the next step may be any */
    uint64_t sums, dropped;
    size_t unsent;
};

tt_status_t reduce_new(reduce_t **self_p, const reduce_limits_t *limits, reduce_send_fn send, void *ctx)
{
    if (!tt_tree_shards_ok(limits->shards))
        return tt_err(TT_INVALID, "%u shards: must be a power of two up to %d", limits->shards, TT_SHARDS_MAX);
    reduce_t *self = tt_new0(sizeof *self);
    self->limits = *limits;
    self->send = send;
    self->ctx = ctx;
    self->peer = tt_array0(limits->shards, sizeof *self->peer);
    *self_p = self;
    return TT_OK;
}

static void s_chunk_reset(chunk_t *chunk, uint32_t shards)
{
    if (!chunk->begun)
        return;
    tt_tree_reset(chunk->tree);
    memset(chunk->part, 0, shards * sizeof *chunk->part);
    chunk->begun = chunk->summed = false;
}

static void s_step_free(step_t *step)
{
    for (uint32_t i = 0; i < step->chunks; i++) {
        tt_tree_destroy(&step->chunk[i].tree);
        free(step->chunk[i].part);
    }
    free(step->chunk);
    *step = (step_t){0};
}

/*  Use a slot for another step; memory stays when the number of chunks does. */
static void s_step_begin(reduce_t *self, step_t *slot, uint64_t step, uint32_t chunks)
{
    if (slot->chunks != chunks) {
        s_step_free(slot);
        slot->chunk = tt_array0(chunks, sizeof *slot->chunk);
        slot->chunks = chunks;
    }
    for (uint32_t i = 0; i < chunks; i++)
        s_chunk_reset(&slot->chunk[i], self->limits.shards);
    slot->used = true;
    slot->step = step;
    self->moved = false;
}

void reduce_destroy(reduce_t **self_p)
{
    reduce_t *self = *self_p;
    if (!self)
        return;
    for (size_t i = 0; i < STEPS; i++)
        s_step_free(&self->step[i]);
    free(self->peer);
    free(self);
    *self_p = NULL;
}

static bool s_is_newer(const reduce_t *self, uint32_t era, uint64_t generation)
{
    return era != self->era ? era > self->era : generation > self->generation;
}

void reduce_moved(reduce_t *self)
{
    self->moved = true;
}

void reduce_enter(reduce_t *self, uint32_t era, uint64_t generation)
{
    if (!s_is_newer(self, era, generation))
        return;
    self->moved = false;
    self->era = era;
    self->generation = generation;
    self->peers = 0;
    self->unsent = 0;
    for (size_t i = 0; i < STEPS; i++) {
        step_t *slot = &self->step[i];
        for (uint32_t c = 0; c < slot->chunks; c++)
            s_chunk_reset(&slot->chunk[c], self->limits.shards);
        slot->used = false;
    }
}

/* ---- one GRAD ---------------------------------------------------------------------------------------------------- */

static tt_status_t s_check(const reduce_t *self, const char *peer, const tt_msg_GRAD_t *grad, size_t bytes)
{
    const reduce_limits_t *limits = &self->limits;
    if (grad->shards != limits->shards)
        return tt_err(TT_PROTOCOL, "GRAD from %s: %u shards, the job has %u", peer, grad->shards, limits->shards);
    if (grad->node < 1 || grad->node >= 2 * limits->shards)
        return tt_err(
            TT_PROTOCOL, "GRAD from %s: node %u is not in a tree of %u shards", peer, grad->node, grad->shards);
    if (grad->chunks < 1 || grad->chunks > limits->chunks || grad->chunk >= grad->chunks)
        return tt_err(
            TT_PROTOCOL, "GRAD from %s: chunk %u of %u (most: %u)", peer, grad->chunk, grad->chunks, limits->chunks);
    if (bytes == 0 || bytes % sizeof(float) || bytes > limits->chunk_bytes)
        return tt_err(TT_PROTOCOL, "GRAD from %s: a chunk of %zu bytes (most: %zu)", peer, bytes, limits->chunk_bytes);
    return TT_OK;
}

/*  The newest step of this generation; false: it has none yet. */
static bool s_newest(const reduce_t *self, uint64_t *out)
{
    bool any = false;
    for (size_t i = 0; i < STEPS; i++) {
        const step_t *slot = &self->step[i];
        if (slot->used && (!any || slot->step > *out))
            *out = slot->step;
        any |= slot->used;
    }
    return any;
}

/*  No learner gets beyond a step before we have finished its sum, so what follows the newest step is the next one. */
static bool s_is_ahead(const reduce_t *self, const tt_msg_GRAD_t *grad)
{
    uint64_t newest = 0;
    if (s_is_newer(self, grad->era, grad->generation))
        return true;
    return grad->era == self->era && grad->generation == self->generation && !self->moved && s_newest(self, &newest) &&
           grad->step > newest && grad->step - newest > 1;
}

/*  The slot of a step: the one that has it, else the one with the oldest. NULL: the step is too old. */
static step_t *s_slot(reduce_t *self, uint64_t step)
{
    step_t *oldest = NULL;
    uint64_t newest = 0;
    for (size_t i = 0; i < STEPS; i++) {
        step_t *slot = &self->step[i];
        if (slot->used && slot->step == step)
            return slot;
        if (!oldest || !slot->used || (oldest->used && slot->step < oldest->step))
            oldest = slot;
    }
    return s_newest(self, &newest) && step < newest && newest - step >= STEPS ? NULL : oldest;
}

static tt_status_t s_peer_number(reduce_t *self, const char *peer, uint32_t *out)
{
    for (uint32_t i = 0; i < self->peers; i++) {
        if (strcmp(self->peer[i], peer) == 0) {
            *out = i;
            return TT_OK;
        }
    }
    if (self->peers == self->limits.shards)
        return tt_err(TT_PROTOCOL, "GRAD from %s: more senders than %u shards", peer, self->limits.shards);
    snprintf(self->peer[self->peers], sizeof self->peer[0], "%s", peer);
    *out = self->peers++;
    return TT_OK;
}

static void s_release(void *ctx, void *owner)
{
    (void)ctx;
    tt_frame_close(owner);
    free(owner);
}

/*  A frame that may be summed into: the received one, or a copy where others hold it too or floats cannot lie in it. */
static zmq_msg_t *s_own(zmq_msg_t *frame)
{
    zmq_msg_t *own = tt_new0(sizeof *own);
    const bool fits = (uintptr_t)zmq_msg_data(frame) % sizeof(float) == 0;
    if (fits && zmq_msg_get(frame, ZMQ_SHARED) == 0) {
        zmq_msg_init(own);
        zmq_msg_move(own, frame);
        return own;
    }
    tt_frame_new(own, zmq_msg_size(frame));
    memcpy(zmq_msg_data(own), zmq_msg_data(frame), zmq_msg_size(frame));
    return own;
}

static tt_status_t s_chunk_begin(reduce_t *self, chunk_t *chunk, size_t count)
{
    if (chunk->tree && tt_tree_count(chunk->tree) != count)
        tt_tree_destroy(&chunk->tree);
    if (!chunk->tree)
        TT_TRY(tt_tree_new(&chunk->tree, self->limits.shards, count, s_release, NULL));
    if (!chunk->part)
        chunk->part = tt_array0(self->limits.shards, sizeof *chunk->part);
    chunk->begun = chunk->reaches = true;
    return TT_OK;
}

/*  A root speaks for all: it was summed before. */
static void s_add(chunk_t *chunk, const tt_msg_GRAD_t *grad, zmq_msg_t *frame)
{
    zmq_msg_t *own = s_own(frame);
    chunk->reaches = grad->reaches && (chunk->reaches || grad->node == 1);
    chunk->summed = tt_tree_add(chunk->tree, grad->node, zmq_msg_data(own), own);
}

static void s_answer(reduce_t *self, const step_t *step, uint32_t number, uint32_t peer)
{
    chunk_t *chunk = &step->chunk[number];
    void *owner;
    const float *root = tt_tree_at(chunk->tree, 1, &owner);
    TT_CHECK(root);
    zmq_msg_t frame;
    zmq_msg_init(&frame);
    zmq_msg_copy(&frame, owner);
    const tt_msg_SUM_t sum = TT_MSG(SUM, .era = self->era, .generation = self->generation, .step = step->step,
        .chunk = number, .chunks = step->chunks, .reaches = chunk->reaches);
    const tt_status_t status = self->send(self->ctx, self->peer[peer], &sum, &frame);
    if (status == TT_AGAIN)
        self->unsent++;
    else
        chunk->part[peer].waits = false;
    tt_frame_close(&frame);
}

static void s_answer_all(reduce_t *self, const step_t *step, uint32_t number)
{
    for (uint32_t i = 0; i < self->peers; i++)
        if (step->chunk[number].part[i].waits)
            s_answer(self, step, number, i);
}

/*  Who began the newest step. */
static const char *s_ahead_of_all(const reduce_t *self, uint64_t newest)
{
    for (size_t i = 0; i < STEPS; i++) {
        const step_t *slot = &self->step[i];
        for (uint32_t c = 0; slot->used && slot->step == newest && c < slot->chunks; c++)
            for (uint32_t who = 0; slot->chunk[c].begun && who < self->peers; who++)
                if (slot->chunk[c].part[who].first)
                    return self->peer[who];
    }
    return "another";
}

/*  One of two is wrong, and we cannot tell which: both are named. */
static tt_status_t s_too_old(reduce_t *self, const char *peer, const tt_msg_GRAD_t *grad)
{
    uint64_t newest = 0;
    self->dropped++;
    s_newest(self, &newest);
    return tt_err(TT_PROTOCOL,
        "GRAD of step %" PRIu64 " from %s: %s is at step %" PRIu64
        ", and no two learners of a generation are more than one step apart",
        grad->step, peer, s_ahead_of_all(self, newest), newest);
}

static tt_status_t s_take(reduce_t *self, const char *peer, const tt_msg_GRAD_t *grad, zmq_msg_t *frame)
{
    const size_t count = zmq_msg_size(frame) / sizeof(float);
    TT_TRY(s_check(self, peer, grad, zmq_msg_size(frame)));
    if (s_is_ahead(self, grad))
        return TT_AGAIN;
    step_t *step = s_slot(self, grad->step);
    if (grad->era != self->era || grad->generation != self->generation) {
        self->dropped++;
        return TT_OK;
    }
    if (!step)
        return s_too_old(self, peer, grad);
    uint32_t who = 0;
    TT_TRY(s_peer_number(self, peer, &who));
    if (!step->used || step->step != grad->step)
        s_step_begin(self, step, grad->step, grad->chunks);
    if (step->chunks != grad->chunks)
        return tt_err(TT_PROTOCOL, "GRAD from %s: %u chunks, others say %u", peer, grad->chunks, step->chunks);
    chunk_t *chunk = &step->chunk[grad->chunk];
    if (!chunk->begun)
        TT_TRY(s_chunk_begin(self, chunk, count));
    if (count != tt_tree_count(chunk->tree))
        return tt_err(TT_PROTOCOL, "GRAD from %s: chunk %u has %zu floats, others say %zu", peer, grad->chunk, count,
            tt_tree_count(chunk->tree));
    part_t *part = &chunk->part[who];
    /* the node it sent first comes again: the sum did not reach it. Once more then, not once for each node */
    part->waits = part->waits || part->first == 0 || part->first == grad->node;
    if (part->first == 0)
        part->first = grad->node;
    const bool before = chunk->summed;
    if (!before)
        s_add(chunk, grad, frame);
    if (chunk->summed && !before) {
        self->sums++;
        s_answer_all(self, step, grad->chunk);
    } else if (chunk->summed && part->waits) {
        s_answer(self, step, grad->chunk, who);
    }
    return TT_OK;
}

tt_status_t reduce_grad(reduce_t *self, const char *peer, const tt_msg_GRAD_t *grad, zmq_msg_t *frame)
{
    const tt_status_t status = s_take(self, peer, grad, frame);
    if (status != TT_AGAIN)
        tt_frame_close(frame);
    return status;
}

/* ---- the rest ---------------------------------------------------------------------------------------------------- */

size_t reduce_flush(reduce_t *self)
{
    if (self->unsent == 0)
        return 0;
    self->unsent = 0;
    for (size_t i = 0; i < STEPS; i++) {
        const step_t *step = &self->step[i];
        for (uint32_t c = 0; step->used && c < step->chunks; c++)
            if (step->chunk[c].summed)
                s_answer_all(self, step, c);
    }
    return self->unsent;
}

uint64_t reduce_sums(const reduce_t *self)
{
    return self->sums;
}

uint64_t reduce_dropped(const reduce_t *self)
{
    return self->dropped;
}

/*  The first shard that no node covers. */
static uint32_t s_first_gap(const tt_tree_t *tree, uint32_t shards)
{
    for (uint32_t shard = 0; shard < shards; shard++) {
        bool covered = false;
        for (uint32_t node = shards + shard; node && !covered; node /= 2)
            covered = tt_tree_at(tree, node, NULL) != NULL;
        if (!covered)
            return shard;
    }
    return shards;
}

bool reduce_gap(const reduce_t *self, reduce_gap_t *out)
{
    bool found = false;
    for (size_t i = 0; i < STEPS; i++) {
        const step_t *step = &self->step[i];
        if (!step->used || (found && step->step > out->step))
            continue;
        for (uint32_t c = 0; c < step->chunks; c++) {
            if (!step->chunk[c].begun || step->chunk[c].summed)
                continue;
            *out = (reduce_gap_t){step->step, c, s_first_gap(step->chunk[c].tree, self->limits.shards)};
            found = true;
            break;
        }
    }
    return found;
}
