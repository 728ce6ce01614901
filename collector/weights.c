#include "collector/weights.h"
#include <inttypes.h>
#include <stdlib.h>
#include "common/base/mem.h"

void weights_init(weights_t *self, size_t keep, size_t params_bytes, size_t norm_bytes)
{
    *self = (weights_t){
        .at = tt_array0(keep, sizeof *self->at), .keep = keep, .params_bytes = params_bytes, .norm_bytes = norm_bytes};
}

/*  How far beyond `need`; what lies before it wraps around and is furthest of all. */
static uint64_t s_beyond(uint64_t version, uint64_t need)
{
    return version - need;
}

/*  The slot for a new version: a free one, or that of the one needed least. NULL: that would be the new one. */
static weights_version_t *s_slot(weights_t *self, uint64_t version, uint64_t need)
{
    if (self->count < self->keep)
        return &self->at[self->count++];
    weights_version_t *least = &self->at[0];
    for (size_t i = 1; i < self->count; i++)
        if (s_beyond(self->at[i].version, need) > s_beyond(least->version, need))
            least = &self->at[i];
    if (s_beyond(least->version, need) < s_beyond(version, need))
        return NULL;
    tt_frame_close(&least->params);
    tt_frame_close(&least->norm);
    return least;
}

tt_status_t weights_add(weights_t *self, uint64_t version, uint64_t need, zmq_msg_t *frames, size_t frame_count)
{
    if (frame_count != 2 || zmq_msg_size(&frames[0]) != self->params_bytes ||
        zmq_msg_size(&frames[1]) < self->norm_bytes)
        return tt_err(TT_PROTOCOL, "weights of version %" PRIu64 " have %zu frames of another size than the job's",
            version, frame_count);
    weights_version_t *slot = weights_find(self, version) ? NULL : s_slot(self, version, need);
    if (!slot)
        return TT_OK;
    slot->version = version;
    zmq_msg_init(&slot->params);
    zmq_msg_init(&slot->norm);
    zmq_msg_move(&slot->params, &frames[0]);
    zmq_msg_move(&slot->norm, &frames[1]);
    return TT_OK;
}

weights_version_t *weights_find(const weights_t *self, uint64_t version)
{
    for (size_t i = 0; i < self->count; i++)
        if (self->at[i].version == version)
            return &self->at[i];
    return NULL;
}

weights_version_t *weights_newest(const weights_t *self, uint64_t least, uint64_t most)
{
    weights_version_t *newest = NULL;
    for (size_t i = 0; i < self->count; i++)
        if (self->at[i].version >= least && self->at[i].version <= most &&
            (!newest || self->at[i].version > newest->version))
            newest = &self->at[i];
    return newest;
}

void weights_clear(weights_t *self)
{
    for (size_t i = 0; i < self->count; i++) {
        tt_frame_close(&self->at[i].params);
        tt_frame_close(&self->at[i].norm);
    }
    self->count = 0;
}

void weights_free(weights_t *self)
{
    weights_clear(self);
    free(self->at);
    *self = (weights_t){0};
}
