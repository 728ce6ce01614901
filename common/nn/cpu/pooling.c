/*  pooling - the largest number of each window, or their mean, and back to it. Places outside the picture are left out, as in
 *  convolutions; they count in a mean's divisor. */
#include "common/nn/cpu/window.h"
#include <string.h>

enum { PLACES_MAX = 256 }; /* their numbers are bytes */

typedef struct {
    const tt_kernels_t *kernels;
    const float *in;
    float *out;
    uint8_t *which;
} forward_t;

typedef struct {
    const tt_kernels_t *kernels;
    const float *d;
    const uint8_t *which;
    float *d_in;
} backward_t;

/*  The places of a band, their offsets from the first and their numbers. */
typedef struct {
    size_t at[PLACES_MAX];
    uint8_t number[PLACES_MAX];
    tt_pool_t job;
} places_t;

static void s_places(places_t *self, const cpu_window_t *s, const cpu_band_t *band)
{
    size_t count = 0;
    for (size_t kh = band->kh.first; kh < band->kh.end; kh++)
        for (size_t kw = band->kw.first; kw < band->kw.end; kw++, count++) {
            self->at[count] = ((kh - band->kh.first) * s->in_w + kw - band->kw.first) * s->in_c;
            self->number[count] = (uint8_t)(kh * s->kernel_w + kw);
        }
    self->job = (tt_pool_t){
        .h = band->y.end - band->y.first,
        .w = band->x.end - band->x.first,
        .channels = s->in_c,
        .places = count,
        .at = self->at,
        .number = self->number,
        .share = 1.0f / (float)(s->kernel_h * s->kernel_w),
        .in_y = (size_t)s->stride_h * s->in_w * s->in_c,
        .in_x = (size_t)s->stride_w * s->in_c,
        .out_y = (size_t)s->out_w * s->in_c,
        .out_x = s->in_c,
    };
}

static size_t s_out(const cpu_window_t *s, const cpu_band_t *band)
{
    return (band->y.first * s->out_w + band->x.first) * s->in_c;
}

static void s_forward(const void *ctx, const cpu_window_t *s, const cpu_band_t *band)
{
    const forward_t *f = ctx;
    places_t places;
    s_places(&places, s, band);
    f->kernels->pool(
        &places.job, f->in + band->in, f->out + s_out(s, band), f->which ? f->which + s_out(s, band) : NULL);
}

void cpu_pool_forward(
    const tt_kernels_t *kernels, const cpu_window_t *shape, const float *in, float *out, uint8_t *which)
{
    const forward_t forward = {kernels, in, out, which};
    cpu_window_bands(shape, false, s_forward, &forward);
}

static void s_backward(const void *ctx, const cpu_window_t *s, const cpu_band_t *band)
{
    const backward_t *b = ctx;
    places_t places;
    s_places(&places, s, band);
    b->kernels->pool_back(
        &places.job, b->d + s_out(s, band), b->which ? b->which + s_out(s, band) : NULL, b->d_in + band->in);
}

void cpu_pool_backward(
    const tt_kernels_t *kernels, const cpu_window_t *shape, const float *d, const uint8_t *which, float *d_in)
{
    const backward_t backward = {kernels, d, which, d_in};
    memset(d_in, 0, (size_t)shape->in_h * shape->in_w * shape->in_c * sizeof *d_in);
    /* row by row: windows that overlap add in the order (y, x) */
    cpu_window_bands(shape, true, s_backward, &backward);
}
