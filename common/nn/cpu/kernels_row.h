/*  kernels_row - what encoders do to the numbers of a row besides products, for every build; behind kernels_impl.h and under its
 *  rules: activations, layer norm, pooling, widening. */
#pragma once
#include "common/nn/cpu/kernels_impl.h"

/* ---- activations ------------------------------------------------------------------------------------------------------------- */

V16_FN v16 activated(tt_nn_activation_t activation, v16 x)
{
    return activation == TT_NN_TANH ? v_tanh(x) : activation == TT_NN_RELU ? v_max(v_zero(), x) : x;
}

/*  d times the derivative of what gave y. */
V16_FN v16 activated_back(tt_nn_activation_t activation, v16 y, v16 d)
{
    return activation == TT_NN_TANH   ? v_mul(d, v_fnma(y, y, v_set(1.0f)))
           : activation == TT_NN_RELU ? v_keep_pos(y, d)
                                      : d;
}

static void kernel_activate(tt_nn_activation_t activation, size_t count, const float *x, float *y)
{
    for (size_t i = 0; i < count; i += 16)
        part_store(y + i, activated(activation, part_load(x + i, count - i)), count - i);
}

static void kernel_activate_back(
    tt_nn_activation_t activation, size_t count, const float *y, const float *d, float *d_x)
{
    for (size_t i = 0; i < count; i += 16) {
        const size_t left = count - i;
        part_store(d_x + i, activated_back(activation, part_load(y + i, left), part_load(d + i, left)), left);
    }
}

/* ---- layer norm: sums in lanes i mod 16, then in the canonical order ---------------------------------------------------------- */

/*  x in the lanes that exist, 0 in the others. */
V16_FN v16 part(v16 x, size_t left)
{
    float lanes[16];
    if (left >= 16)
        return x;
    v_store(lanes, x);
    return v_load_n(lanes, left);
}

static void kernel_norm(size_t count, const float *x, const float *gain, const float *bias, float *y, float *moments)
{
    v16 sum = v_zero(), squares = v_zero();
    for (size_t i = 0; i < count; i += 16)
        sum = v_add(sum, part_load(x + i, count - i));
    const float mean = v_sum(sum) / (float)count;
    for (size_t i = 0; i < count; i += 16) {
        const v16 off = part(v_sub(part_load(x + i, count - i), v_set(mean)), count - i);
        squares = v_fma(off, off, squares);
    }
    float scale[16];
    v_store(scale, v_div(v_set(1.0f), v_sqrt(v_set(v_sum(squares) / (float)count + 1e-5f))));
    for (size_t i = 0; i < count; i += 16) {
        const size_t left = count - i;
        const v16 z = v_mul(v_sub(part_load(x + i, left), v_set(mean)), v_set(scale[0]));
        part_store(y + i, v_fma(z, part_load(gain + i, left), part_load(bias + i, left)), left);
    }
    moments[0] = mean;
    moments[1] = scale[0];
}

/*  d_x = (g - mean g - z mean(g z)) scale, where g = d gain and z = (x - mean) scale. */
static void kernel_norm_back(size_t count, const float *x, const float *moments, const float *gain, const float *d,
    bool first, float *d_gain, float *d_bias, float *d_x)
{
    const v16 mean = v_set(moments[0]), scale = v_set(moments[1]);
    v16 sum = v_zero(), along = v_zero();
    for (size_t i = 0; i < count; i += 16) {
        const size_t left = count - i;
        const v16 z = v_mul(v_sub(part_load(x + i, left), mean), scale), back = part_load(d + i, left);
        const v16 g = v_mul(back, part_load(gain + i, left));
        sum = v_add(sum, g);
        along = v_fma(g, part(z, left), along);
        part_store(d_gain + i, v_fma(back, z, first ? v_zero() : part_load(d_gain + i, left)), left);
        part_store(d_bias + i, v_add(first ? v_zero() : part_load(d_bias + i, left), back), left);
    }
    const v16 level = v_set(v_sum(sum) / (float)count), slope = v_set(v_sum(along) / (float)count);
    for (size_t i = 0; i < count; i += 16) {
        const size_t left = count - i;
        const v16 z = v_mul(v_sub(part_load(x + i, left), mean), scale);
        const v16 g = v_mul(part_load(d + i, left), part_load(gain + i, left));
        part_store(d_x + i, v_mul(v_fnma(z, slope, v_sub(g, level)), scale), left);
    }
}

/* ---- pooling ------------------------------------------------------------------------------------------------------------------ */

KERNEL_FN void part_store_bytes(uint8_t *p, v16 a, size_t left)
{
    uint8_t bytes[16];
    v_store_bytes(left < 16 ? bytes : p, a);
    for (size_t i = 0; left < 16 && i < left; i++)
        p[i] = bytes[i];
}

KERNEL_FN v16 part_load_bytes(const uint8_t *p, size_t left)
{
    uint8_t bytes[16] = {0};
    for (size_t i = 0; left < 16 && i < left; i++)
        bytes[i] = p[i];
    return v_load_bytes(left < 16 ? bytes : p);
}

KERNEL_FN void pool_part(const tt_pool_t *p, const float *in, size_t left, float *out, uint8_t *which)
{
    v16 best = part_load(in + p->at[0], left), number = v_set((float)p->number[0]);
    for (size_t i = 1; i < p->places; i++) {
        const v16 x = part_load(in + p->at[i], left);
        number = v_where_above(x, best, v_set((float)p->number[i]), number);
        best = v_where_above(x, best, x, best);
    }
    part_store(out, best, left);
    part_store_bytes(which, number, left);
}

KERNEL_FN void mean_part(const tt_pool_t *p, const float *in, size_t left, float *out)
{
    v16 sum = part_load(in + p->at[0], left);
    for (size_t i = 1; i < p->places; i++)
        sum = v_add(sum, part_load(in + p->at[i], left));
    part_store(out, v_mul(sum, v_set(p->share)), left);
}

static void kernel_pool(const tt_pool_t *job, const float *in, float *out, uint8_t *which)
{
    const tt_pool_t local = *job, *p = &local;
    for (size_t y = 0; y < p->h; y++)
        for (size_t x = 0; x < p->w; x++) {
            const size_t from = y * p->in_y + x * p->in_x, to = y * p->out_y + x * p->out_x;
            for (size_t c = 0; c < p->channels; c += 16)
                if (which)
                    pool_part(p, in + from + c, p->channels - c, out + to + c, which + to + c);
                else
                    mean_part(p, in + from + c, p->channels - c, out + to + c);
        }
}

/*  Every place gets d or 0. A sum that began at 0 is never -0 where numbers are added and not multiplied, so a 0 more changes
 *  nothing. */
KERNEL_FN void pool_back_part(const tt_pool_t *p, const float *d, const uint8_t *which, size_t left, float *d_in)
{
    const v16 back = part_load(d, left), number = part_load_bytes(which, left);
    for (size_t i = 0; i < p->places; i++) {
        float *to = d_in + p->at[i];
        const v16 here = v_keep_equal(number, v_set((float)p->number[i]), back);
        part_store(to, v_add(part_load(to, left), here), left);
    }
}

KERNEL_FN void mean_back_part(const tt_pool_t *p, const float *d, size_t left, float *d_in)
{
    const v16 back = v_mul(part_load(d, left), v_set(p->share));
    for (size_t i = 0; i < p->places; i++) {
        float *to = d_in + p->at[i];
        part_store(to, v_add(part_load(to, left), back), left);
    }
}

static void kernel_pool_back(const tt_pool_t *job, const float *d, const uint8_t *which, float *d_in)
{
    const tt_pool_t local = *job, *p = &local;
    for (size_t y = 0; y < p->h; y++)
        for (size_t x = 0; x < p->w; x++) {
            const size_t to = y * p->in_y + x * p->in_x, from = y * p->out_y + x * p->out_x;
            for (size_t c = 0; c < p->channels; c += 16)
                if (which)
                    pool_back_part(p, d + from + c, which + from + c, p->channels - c, d_in + to + c);
                else
                    mean_back_part(p, d + from + c, p->channels - c, d_in + to + c);
        }
}

/* ---- widening ----------------------------------------------------------------------------------------------------------------- */

/*  x / divisor without a division: the product with the rounded reciprocal, set right by what it lacks. For 255 and every byte
 *  the quotient is the correctly rounded one (tests/nn/test_ops.c tries them all); for 1 there is nothing to set right. */
V16_FN v16 widened(v16 x, v16 divisor, v16 reciprocal)
{
    const v16 quotient = v_mul(x, reciprocal);
    return v_fma(v_fnma(quotient, divisor, x), reciprocal, quotient);
}

static void kernel_widen(size_t count, const uint8_t *in, float divisor, float *out)
{
    const v16 whole = v_set(divisor), reciprocal = v_set(1.0f / divisor);
    size_t i = 0;
    for (; i + 16 <= count; i += 16)
        v_store(out + i, widened(v_load_bytes(in + i), whole, reciprocal));
    if (i < count)
        v_store_n(out + i, widened(part_load_bytes(in + i, count - i), whole, reciprocal), count - i);
}
