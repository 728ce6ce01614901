#include "learner/shift.h"
#include <stdlib.h>
#include "common/base/mem.h"
#include "common/nn/spec.h"

struct shift {
    uint64_t seed;
    uint32_t units, most;
    int8_t (*by[TT_FRAMES])[2]; /* [units] */
    tt_shift_t picture[TT_FRAMES];
};

/*  Encoders of a network's groups read one picture. */
static const tt_tower_t *s_encoder(const tt_net_spec_t *net)
{
    for (uint32_t t = 0; t < net->towers; t++)
        if (net->tower[t].kind == TT_TOWER_ENCODER && net->tower[t].height)
            return &net->tower[t];
    return NULL;
}

bool shift_picture(const tt_net_spec_t *net, tt_shift_t *out)
{
    const tt_tower_t *tower = s_encoder(net);
    if (!tower)
        return false;
    const uint32_t planes = tower->planes ? tower->planes : 1;
    *out = (tt_shift_t){.planes = planes,
        .height = tower->height,
        .width = tower->width,
        .place = tower->channels / planes * (net->part[tower->part].bytes ? 1 : (uint32_t)sizeof(float))};
    for (uint32_t p = 0; p < tower->part; p++)
        out->at += (uint32_t)tt_spec_part_bytes(&net->part[p]);
    return true;
}

shift_t *shift_new(const tt_net_spec_t *net, uint64_t seed, uint32_t units, uint32_t most)
{
    shift_t *self = tt_new0(sizeof *self);
    tt_shift_t picture;
    const bool there = shift_picture(net, &picture);
    TT_CHECK(there && most && most <= TT_SHIFT_MAX);
    self->seed = seed;
    self->units = units;
    self->most = most;
    for (int f = 0; f < TT_FRAMES; f++) {
        self->by[f] = tt_array0(units, sizeof *self->by[f]);
        picture.by = (const int8_t(*)[2])self->by[f];
        self->picture[f] = picture;
    }
    return self;
}

void shift_destroy(shift_t **self_p)
{
    shift_t *self = *self_p;
    if (!self)
        return;
    for (int f = 0; f < TT_FRAMES; f++)
        free(self->by[f]);
    free(self);
    *self_p = NULL;
}

/*  -most .. most, each as likely. */
static int8_t s_places(const shift_t *self, uint32_t word)
{
    return (int8_t)((int)tt_below(word, 2 * self->most + 1) - (int)self->most);
}

/*  By position alone: every learner has the same, whichever of them it reads. */
void shift_draw(shift_t *self, uint64_t total)
{
    for (uint32_t u = 0; u < self->units; u++) {
        uint32_t word[2 * TT_FRAMES];
        tt_draw(word, self->seed, TT_STREAM_SHIFT, u, total);
        for (int f = 0; f < TT_FRAMES; f++)
            for (int side = 0; side < 2; side++)
                self->by[f][u][side] = s_places(self, word[2 * f + side]);
    }
}

const tt_shift_t *shift_of(const shift_t *self, tt_frame_t frame)
{
    return &self->picture[frame];
}

void shift_rows(const shift_t *self, tt_frame_t frame, uint32_t lo, uint32_t hi, char *rows, size_t bytes)
{
    for (uint32_t u = lo; u < hi; u++)
        tt_shift_row(&self->picture[frame], u, rows + u * bytes);
}
