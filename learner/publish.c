#include "learner/publish.h"
#include <stdlib.h>
#include "common/base/mem.h"

struct publish {
    publish_cfg_t cfg;
    version_t *version; /* [keep] ascending; version[0] is the oldest */
    uint32_t count;
};

publish_t *publish_new(const publish_cfg_t *cfg)
{
    publish_t *self = tt_new0(sizeof *self);
    self->cfg = *cfg;
    self->version = tt_array0(cfg->keep, sizeof *self->version);
    return self;
}

static void s_free_version(version_t *version)
{
    tt_frame_close(&version->params);
    tt_frame_close(&version->norm);
    free(version->reward);
}

void publish_reset(publish_t *self)
{
    for (uint32_t i = 0; i < self->count; i++)
        s_free_version(&self->version[i]);
    self->count = 0;
}

void publish_destroy(publish_t **self_p)
{
    publish_t *self = *self_p;
    if (!self)
        return;
    publish_reset(self);
    free(self->version);
    free(self);
    *self_p = NULL;
}

/*  Frames are moved by zmq_msg_move, as ZeroMQ asks for. */
static void s_drop_oldest(publish_t *self)
{
    s_free_version(&self->version[0]);
    for (uint32_t i = 1; i < self->count; i++) {
        version_t *to = &self->version[i - 1], *from = &self->version[i];
        to->version = from->version;
        to->reward = from->reward;
        zmq_msg_init(&to->params);
        zmq_msg_init(&to->norm);
        zmq_msg_move(&to->params, &from->params);
        zmq_msg_move(&to->norm, &from->norm);
        tt_frame_close(&from->params);
        tt_frame_close(&from->norm);
    }
    self->count--;
}

version_t *publish_add(publish_t *self, uint64_t version)
{
    TT_CHECK(self->count == 0 || self->version[self->count - 1].version < version);
    if (self->count == self->cfg.keep)
        s_drop_oldest(self);
    version_t *slot = &self->version[self->count++];
    slot->version = version;
    tt_frame_new(&slot->params, tt_mul(self->cfg.params, sizeof(float)));
    tt_frame_new(&slot->norm, tt_mul(self->cfg.norm, sizeof(double)));
    slot->reward = tt_array0(self->cfg.reward, sizeof(double));
    return slot;
}

float *version_params(version_t *self)
{
    return zmq_msg_data(&self->params);
}

double *version_norm(version_t *self)
{
    return zmq_msg_data(&self->norm);
}

version_t *publish_find(const publish_t *self, uint64_t version)
{
    for (uint32_t i = 0; i < self->count; i++)
        if (self->version[i].version == version)
            return &self->version[i];
    return NULL;
}

version_t *publish_newest(const publish_t *self)
{
    return self->count ? &self->version[self->count - 1] : NULL;
}

version_t *publish_oldest(const publish_t *self)
{
    return self->count ? &self->version[0] : NULL;
}

void publish_frames(version_t *version, zmq_msg_t frames[2])
{
    zmq_msg_init(&frames[0]);
    zmq_msg_init(&frames[1]);
    zmq_msg_copy(&frames[0], &version->params);
    zmq_msg_copy(&frames[1], &version->norm);
}

tt_status_t publish_send(version_t *version, tt_sock_t *pub, uint32_t era, uint64_t generation)
{
    const tt_msg_WEIGHTS_t message = TT_MSG(WEIGHTS, .era = era, .generation = generation, .version = version->version);
    zmq_msg_t frames[2];
    publish_frames(version, frames);
    const tt_status_t status = tt_sock_send(pub, NULL, &message, frames, 2);
    tt_frame_close(&frames[0]);
    tt_frame_close(&frames[1]);
    return status;
}
