#include "aggregator/early.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/net/net.h"
#define TT_LOG_COMPONENT "aggregator"
#include "common/base/log.h"

enum { COUNT_MAX = 65536 }; /* a frame may be as small as a float */

typedef struct {
    char peer[64];
    tt_msg_GRAD_t grad;
    zmq_msg_t frame;
    int64_t since_ms;
} waiting_t;

struct early {
    waiting_t **at; /* in the order of arrival */
    size_t count, room;
    size_t bytes, bytes_max;
};

early_t *early_new(size_t bytes_max)
{
    early_t *self = tt_new0(sizeof *self);
    self->bytes_max = bytes_max;
    return self;
}

static void s_drop(early_t *self, waiting_t *it)
{
    self->bytes -= zmq_msg_size(&it->frame);
    tt_frame_close(&it->frame);
    free(it);
}

void early_destroy(early_t **self_p)
{
    early_t *self = *self_p;
    if (!self)
        return;
    for (size_t i = 0; i < self->count; i++)
        s_drop(self, self->at[i]);
    free(self->at);
    free(self);
    *self_p = NULL;
}

tt_status_t early_put(early_t *self, const char *peer, const tt_msg_GRAD_t *grad, zmq_msg_t *frame, int64_t now_ms)
{
    const size_t size = zmq_msg_size(frame);
    if (size > self->bytes_max - self->bytes || self->count == COUNT_MAX)
        return TT_AGAIN;
    if (self->count == self->room) {
        self->room = 2 * self->room + 16;
        self->at = tt_realloc(self->at, tt_mul(self->room, sizeof *self->at));
    }
    waiting_t *it = tt_new0(sizeof *it);
    snprintf(it->peer, sizeof it->peer, "%s", peer);
    it->grad = *grad;
    it->since_ms = now_ms;
    zmq_msg_init(&it->frame);
    zmq_msg_move(&it->frame, frame);
    self->at[self->count++] = it;
    self->bytes += size;
    return TT_OK;
}

void early_offer(early_t *self, early_fn fn, void *ctx)
{
    size_t left = 0;
    for (size_t i = 0; i < self->count; i++) {
        waiting_t *it = self->at[i];
        const size_t size = zmq_msg_size(&it->frame);
        if (fn(ctx, it->peer, &it->grad, &it->frame) == TT_AGAIN) {
            self->at[left++] = it;
            continue;
        }
        self->bytes -= size - zmq_msg_size(&it->frame); /* of what was taken */
        s_drop(self, it);
    }
    self->count = left;
}

size_t early_expire(early_t *self, int64_t before_ms)
{
    size_t left = 0, gone = 0;
    char named[64] = "";
    for (size_t i = 0; i < self->count; i++) {
        waiting_t *it = self->at[i];
        if (it->since_ms > before_ms) {
            self->at[left++] = it;
            continue;
        }
        gone++;
        if (strcmp(it->peer, named) != 0)
            log_warn("%s sent GRAD of era %u, generation %" PRIu64 ", step %" PRIu64
                     ", and no roster came that would make that possible; dropped",
                it->peer, it->grad.era, it->grad.generation, it->grad.step);
        memcpy(named, it->peer, sizeof named);
        s_drop(self, it);
    }
    self->count = left;
    return gone;
}
