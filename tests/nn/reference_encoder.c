/*  reference_encoder - an encoder in the plainest double arithmetic; pictures are [height][width][channels]. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "tests/nn/fixture.h"
#include "tests/nn/reference.h"

typedef struct {
    double *x; /* owned */
    uint32_t h, w, c;
} numbers_t;

typedef struct {
    const reference_t *ref;
    const tt_tower_t *tower;
    const double *params;
    const float *obs;
    const tt_tensor_t *at; /* the tensors of the next layer that has some */
} walk_t;

static numbers_t make(uint32_t h, uint32_t w, uint32_t c)
{
    return (numbers_t){calloc((size_t)h * w * c, sizeof(double)), h, w, c};
}

static size_t count_of(const numbers_t *n)
{
    return (size_t)n->h * n->w * n->c;
}

/*  The numbers of a part, divided, behind `to`. */
static size_t put_part(const walk_t *walk, uint32_t p, double *to)
{
    const tt_net_spec_t *spec = walk->ref->spec;
    size_t first = 0;
    for (uint32_t before = 0; before < p; before++)
        first += spec->part[before].elements;
    const size_t n = spec->parts ? spec->part[p].elements : spec->obs;
    const double divisor = spec->parts && spec->part[p].bytes ? (double)spec->part[p].divisor : 1.0;
    for (size_t i = 0; i < n; i++)
        to[i] = (double)walk->obs[first + i] / divisor;
    return n;
}

static numbers_t look(const walk_t *walk)
{
    const tt_tower_t *tower = walk->tower;
    const tt_net_spec_t *spec = walk->ref->spec;
    if (tower->blank)
        return make(1, 1, 0);
    numbers_t n = tower->height ? make(tower->height, tower->width, tower->channels) : make(1, 1, spec->obs);
    if (!tower->height) {
        size_t at = 0;
        for (uint32_t p = 0; p < (spec->parts ? spec->parts : 1); p++)
            at += put_part(walk, p, n.x + at);
        return n;
    }
    numbers_t read = make(n.h, n.w, n.c);
    const uint32_t planes = tower->planes ? tower->planes : 1, deep = n.c / planes;
    put_part(walk, tower->part, read.x);
    for (uint32_t y = 0; y < n.h; y++)
        for (uint32_t x = 0; x < n.w; x++)
            for (uint32_t c = 0; c < n.c; c++)
                n.x[(y * n.w + x) * n.c + c] = read.x[((c / deep * n.h + y) * n.w + x) * deep + c % deep];
    free(read.x);
    return n;
}

static numbers_t windows(const tt_layer_t *layer, const numbers_t *in, uint32_t channels)
{
    return make((in->h + 2u * layer->pad[0] - layer->kernel[0]) / layer->stride[0] + 1,
        (in->w + 2u * layer->pad[1] - layer->kernel[1]) / layer->stride[1] + 1, channels);
}

/*  What a window of the kernel at (y, x) sees at (kh, kw) of a channel; outside: `outside`. */
static double sees(
    const tt_layer_t *layer, const numbers_t *in, uint32_t y, uint32_t x, uint32_t k, uint32_t c, double outside)
{
    const long iy = (long)(y * layer->stride[0] + k / layer->kernel[1]) - layer->pad[0];
    const long ix = (long)(x * layer->stride[1] + k % layer->kernel[1]) - layer->pad[1];
    if (iy < 0 || ix < 0 || iy >= (long)in->h || ix >= (long)in->w)
        return outside;
    return in->x[((size_t)iy * in->w + (size_t)ix) * in->c + c];
}

static numbers_t conv(walk_t *walk, const tt_layer_t *layer, const numbers_t *in)
{
    const double *weight = walk->params + walk->at[0].offset, *bias = walk->params + walk->at[1].offset;
    numbers_t out = windows(layer, in, layer->units);
    double *to = out.x;
    for (uint32_t y = 0; y < out.h; y++)
        for (uint32_t x = 0; x < out.w; x++)
            for (uint32_t o = 0; o < out.c; o++, to++) {
                *to = bias[o];
                for (uint32_t k = 0; k < (uint32_t)layer->kernel[0] * layer->kernel[1]; k++)
                    for (uint32_t c = 0; c < in->c; c++)
                        *to += sees(layer, in, y, x, k, c, 0) * weight[(k * in->c + c) * out.c + o];
            }
    walk->at += 2;
    return out;
}

static numbers_t pool(walk_t *walk, const tt_layer_t *layer, const numbers_t *in)
{
    (void)walk;
    numbers_t out = windows(layer, in, in->c);
    double *to = out.x;
    for (uint32_t y = 0; y < out.h; y++)
        for (uint32_t x = 0; x < out.w; x++)
            for (uint32_t c = 0; c < out.c; c++, to++) {
                *to = -INFINITY;
                for (uint32_t k = 0; k < (uint32_t)layer->kernel[0] * layer->kernel[1]; k++)
                    *to = fmax(*to, sees(layer, in, y, x, k, c, -INFINITY));
            }
    return out;
}

static numbers_t mean(walk_t *walk, const tt_layer_t *layer, const numbers_t *in)
{
    (void)walk;
    const uint32_t places = (uint32_t)layer->kernel[0] * layer->kernel[1];
    numbers_t out = windows(layer, in, in->c);
    double *to = out.x;
    for (uint32_t y = 0; y < out.h; y++)
        for (uint32_t x = 0; x < out.w; x++)
            for (uint32_t c = 0; c < out.c; c++, to++)
                for (uint32_t k = 0; k < places; k++)
                    *to += sees(layer, in, y, x, k, c, 0) / places;
    return out;
}

static numbers_t dense(walk_t *walk, const tt_layer_t *layer, const numbers_t *in)
{
    const double *weight = walk->params + walk->at[0].offset, *bias = walk->params + walk->at[1].offset;
    numbers_t out = make(1, 1, layer->units);
    for (uint32_t o = 0; o < out.c; o++) {
        out.x[o] = bias[o];
        for (size_t i = 0; i < count_of(in); i++)
            out.x[o] += in->x[i] * weight[i * out.c + o];
    }
    walk->at += 2;
    return out;
}

static numbers_t copy(walk_t *walk, const tt_layer_t *layer, const numbers_t *in)
{
    (void)walk;
    (void)layer;
    numbers_t out = make(in->h, in->w, in->c);
    memcpy(out.x, in->x, count_of(in) * sizeof *out.x);
    return out;
}

static numbers_t norm(walk_t *walk, const tt_layer_t *layer, const numbers_t *in)
{
    const double *gain = walk->params + walk->at[0].offset, *bias = walk->params + walk->at[1].offset;
    numbers_t out = copy(walk, layer, in);
    const size_t n = count_of(in);
    double mean = 0, variance = 0;
    for (size_t i = 0; i < n; i++)
        mean += in->x[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        variance += (in->x[i] - mean) * (in->x[i] - mean) / (double)n;
    for (size_t i = 0; i < n; i++)
        out.x[i] = (in->x[i] - mean) / sqrt(variance + 1e-5) * gain[i] + bias[i];
    walk->at += 2;
    return out;
}

static numbers_t concat(walk_t *walk, const tt_layer_t *layer, const numbers_t *in)
{
    const tt_net_spec_t *spec = walk->ref->spec;
    const size_t n = count_of(in);
    numbers_t out = make(1, 1, (uint32_t)n + (spec->parts ? spec->part[layer->part].elements : spec->obs));
    memcpy(out.x, in->x, n * sizeof *out.x);
    put_part(walk, layer->part, out.x + n);
    return out;
}

/*  A product with what is one-hot: group by group, frame by frame. */
static numbers_t embed(walk_t *walk, const tt_layer_t *layer, const numbers_t *in)
{
    const tt_net_spec_t *spec = walk->ref->spec;
    const uint32_t rows = walk->at->rows, units = layer->units, frames = spec->part[layer->part].elements / rows;
    const size_t n = count_of(in);
    numbers_t out = make(1, 1, (uint32_t)n + frames * layer->choices * units), hot = make(1, 1, frames * rows);
    double *to = out.x + n;
    memcpy(out.x, in->x, n * sizeof *out.x);
    put_part(walk, layer->part, hot.x);
    for (uint32_t f = 0, i = 0; f < frames; f++)
        for (uint32_t c = 0, row = 0; c < layer->choices; c++, to += units)
            for (uint32_t k = 0; k < spec->choice[layer->choice + c]; k++, i++, row++)
                for (uint32_t o = 0; o < units; o++)
                    to[o] += hot.x[i] * walk->params[walk->at->offset + row * units + o];
    free(hot.x);
    walk->at++;
    return out;
}

static numbers_t (*const s_kinds[])(walk_t *walk, const tt_layer_t *layer, const numbers_t *in) = {
    [TT_LAYER_CONV2D] = conv,
    [TT_LAYER_MAX_POOL] = pool,
    [TT_LAYER_DENSE] = dense,
    [TT_LAYER_LAYER_NORM] = norm,
    [TT_LAYER_ACTIVATION] = copy,
    [TT_LAYER_RESIDUAL] = copy,
    [TT_LAYER_CONCAT] = concat,
    [TT_LAYER_AVG_POOL] = mean,
    [TT_LAYER_EMBED] = embed,
};

static void activate(tt_nn_activation_t activation, const numbers_t *n)
{
    for (size_t i = 0; i < count_of(n) && activation != TT_NN_NONE; i++)
        n->x[i] = activation == TT_NN_TANH ? tanh(n->x[i]) : fmax(n->x[i], 0);
}

/*  Layers of a list, one after the other; x is taken. */
static numbers_t run(walk_t *walk, const tt_layer_t *layer, uint32_t count, numbers_t x)
{
    for (uint32_t l = 0; l < count; l++) {
        const tt_layer_t *now = &layer[l];
        numbers_t y = s_kinds[now->kind](walk, now, &x);
        if (now->kind == TT_LAYER_RESIDUAL) {
            y = run(walk, now + 1, now->span, y);
            for (size_t i = 0; i < count_of(&x); i++)
                y.x[i] += x.x[i];
            l += now->span;
        }
        activate(now->activation, &y);
        free(x.x);
        x = y;
    }
    return x;
}

size_t reference_encoder(const reference_t *self, uint32_t t, const double *params, const float *obs, double *out)
{
    walk_t walk = {self, &self->spec->tower[t], params, obs, self->tensors};
    for (uint32_t before = 0; before < t; before++)
        walk.at += tt_spec_tower_tensors(self->spec, before);
    const numbers_t end = run(&walk, &self->spec->layer[walk.tower->layer], walk.tower->layers, look(&walk));
    const size_t count = count_of(&end);
    memcpy(out, end.x, count * sizeof *out);
    free(end.x);
    return count;
}
