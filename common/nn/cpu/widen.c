/*  widen - bytes to floats. Planes are first woven into bytes in the picture's order, a stretch of pixels at a time, and then
 *  widened as any others: the strided access is to bytes that lie in the nearest cache, and floats are written once, in order. */
#include "common/nn/cpu/ops.h"

enum { STRETCH = 64, WOVEN = 4096 };

void cpu_widen(const tt_kernels_t *kernels, size_t count, const uint8_t *in, float divisor, float *out)
{
    kernels->widen(count, in, divisor, out);
}

/*  A stack of four frames: a constant that a compiler makes shuffles of. */
static void s_weave4(size_t pixels, const uint8_t *restrict in, uint8_t *restrict woven)
{
    for (size_t p = 0; p < STRETCH; p++)
        for (size_t c = 0; c < 4; c++)
            woven[p * 4 + c] = in[c * pixels + p];
}

/*  count pixels, the planes [channels] of `pixels` each. */
static void s_weave(size_t channels, size_t pixels, size_t count, const uint8_t *in, uint8_t *woven)
{
    if (channels == 4 && count == STRETCH) {
        s_weave4(pixels, in, woven);
        return;
    }
    for (size_t c = 0; c < channels; c++)
        for (size_t p = 0; p < count; p++)
            woven[p * channels + c] = in[c * pixels + p];
}

/*  One pixel of all planes, each of `deep` bytes that lie side by side. */
static void s_weave_deep(size_t planes, size_t deep, size_t pixels, const uint8_t *in, uint8_t *woven)
{
    for (size_t k = 0; k < planes; k++)
        for (size_t c = 0; c < deep; c++)
            woven[k * deep + c] = in[k * pixels * deep + c];
}

/*  Pictures with channels of their own. */
static void s_widen_deep(const tt_kernels_t *kernels, size_t planes, size_t deep, size_t pixels, const uint8_t *in,
    float divisor, float *out)
{
    uint8_t woven[WOVEN];
    const size_t channels = planes * deep, fit = WOVEN / channels;
    for (size_t p = 0; fit && p < pixels; p += fit) {
        const size_t count = pixels - p < fit ? pixels - p : fit;
        for (size_t i = 0; i < count; i++)
            s_weave_deep(planes, deep, pixels, in + (p + i) * deep, woven + i * channels);
        kernels->widen(count * channels, woven, divisor, out + p * channels);
    }
    for (size_t p = 0; !fit && p < pixels; p++)
        for (size_t k = 0; k < planes; k++)
            kernels->widen(deep, in + (k * pixels + p) * deep, divisor, out + p * channels + k * deep);
}

void cpu_widen_planes(const tt_kernels_t *kernels, size_t planes, size_t each, size_t pixels, const uint8_t *in,
    float divisor, float *out)
{
    const size_t channels = planes;
    if (each > 1) {
        s_widen_deep(kernels, planes, each, pixels, in, divisor, out);
        return;
    }
    uint8_t woven[WOVEN];
    const size_t deep = channels < WOVEN ? channels : WOVEN; /* channels at once; with more than that, pixel by pixel */
    const size_t fit = WOVEN / deep, stretch = deep < channels ? 1 : fit < STRETCH ? fit : STRETCH;
    for (size_t p = 0; p < pixels; p += stretch)
        for (size_t c = 0; c < channels; c += deep) {
            const size_t count = pixels - p < stretch ? pixels - p : stretch;
            const size_t height = channels - c < deep ? channels - c : deep;
            s_weave(height, pixels, count, in + c * pixels + p, woven);
            kernels->widen(count * height, woven, divisor, out + p * channels + c);
        }
}
