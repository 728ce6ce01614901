/*  kernels_recurrent - a step of recurrent layers, and back, for every build; behind kernels_impl.h and under its rules: what
 *  common/nn/math/recurrent.h does to one unit, done to sixteen.
 *
 *  The numbers of a gate stand side by side, the next gate's behind them, from any float on. What has one number for each unit has
 *  zeros up to a whole vector. */
#pragma once
#include "common/nn/cpu/kernels_row.h"
#include "common/nn/math/recurrent.h"

V16_FN v16 v_sigmoid(v16 x)
{
    return v_fma(v_tanh(v_mul(v_set(0.5f), x)), v_set(0.5f), v_set(0.5f));
}

V16_FN v16 v_tanh_back(v16 y, v16 d)
{
    return v_mul(d, v_fnma(y, y, v_set(1.0f)));
}

V16_FN v16 v_sigmoid_back(v16 y, v16 d)
{
    return v_mul(d, v_fnma(y, y, y));
}

/*  Units u .. u + 15 of a gate of a row, of which `left` exist. */
KERNEL_FN v16 gate_load(const tt_cell_t *s, const float *row, size_t gate, size_t u)
{
    return part_load(row + gate * s->units + u, s->units - u);
}
KERNEL_FN void gate_store(const tt_cell_t *s, float *row, size_t gate, size_t u, v16 a)
{
    part_store(row + gate * s->units + u, a, s->units - u);
}
/*  Of what stands in whole vectors. */
KERNEL_FN void unit_store(const tt_cell_t *s, float *row, size_t u, v16 a)
{
    v_store(row + u, part(a, s->units - u));
}

KERNEL_FN void lstm_part(const tt_cell_t *s, size_t r, size_t u)
{
    float *gates = s->gates + r * s->gates_row;
    const float *hh = s->hh + r * s->gates_row;
    const size_t at = r * s->row + u;
    const v16 i = v_sigmoid(v_add(gate_load(s, gates, 0, u), gate_load(s, hh, 0, u)));
    const v16 f = v_sigmoid(v_add(gate_load(s, gates, 1, u), gate_load(s, hh, 1, u)));
    const v16 g = v_tanh(v_add(gate_load(s, gates, 2, u), gate_load(s, hh, 2, u)));
    const v16 o = v_sigmoid(v_add(gate_load(s, gates, 3, u), gate_load(s, hh, 3, u)));
    const v16 c = v_fma(f, v_load(s->c_before + at), v_mul(i, g));
    const v16 squashed = v_tanh(c);
    gate_store(s, gates, 0, u, i);
    gate_store(s, gates, 1, u, f);
    gate_store(s, gates, 2, u, g);
    gate_store(s, gates, 3, u, o);
    unit_store(s, s->c + r * s->row, u, c);
    unit_store(s, s->squashed + r * s->row, u, squashed);
    unit_store(s, s->h + r * s->row, u, v_mul(o, squashed));
}

static void kernel_lstm(const tt_cell_t *job)
{
    const tt_cell_t local = *job, *s = &local;
    for (size_t r = 0; r < s->rows; r++)
        for (size_t u = 0; u < s->units; u += 16)
            lstm_part(s, r, u);
}

KERNEL_FN void lstm_back_part(const tt_cell_t *s, size_t r, size_t u)
{
    float *gates = s->gates + r * s->gates_row;
    const size_t at = r * s->row + u;
    const v16 i = gate_load(s, gates, 0, u), f = gate_load(s, gates, 1, u);
    const v16 g = gate_load(s, gates, 2, u), o = gate_load(s, gates, 3, u);
    const v16 d_h = v_load(s->d_h + at), squashed = v_load(s->squashed + at);
    const v16 d = v_add(v_load(s->d_c + at), v_tanh_back(squashed, v_mul(d_h, o)));
    gate_store(s, gates, 0, u, v_sigmoid_back(i, v_mul(d, g)));
    gate_store(s, gates, 1, u, v_sigmoid_back(f, v_mul(d, v_load(s->c_before + at))));
    gate_store(s, gates, 2, u, v_tanh_back(g, v_mul(d, i)));
    gate_store(s, gates, 3, u, v_sigmoid_back(o, v_mul(d_h, squashed)));
    unit_store(s, s->d_c + r * s->row, u, v_mul(d, f));
}

static void kernel_lstm_back(const tt_cell_t *job)
{
    const tt_cell_t local = *job, *s = &local;
    for (size_t r = 0; r < s->rows; r++)
        for (size_t u = 0; u < s->units; u += 16)
            lstm_back_part(s, r, u);
}

KERNEL_FN void gru_part(const tt_cell_t *s, size_t r, size_t u)
{
    float *gates = s->gates + r * s->gates_row;
    const float *hh = s->hh + r * s->gates_row;
    const v16 reset = v_sigmoid(v_add(gate_load(s, gates, 0, u), gate_load(s, hh, 0, u)));
    const v16 z = v_sigmoid(v_add(gate_load(s, gates, 1, u), gate_load(s, hh, 1, u)));
    const v16 n = v_tanh(v_fma(reset, gate_load(s, hh, 2, u), gate_load(s, gates, 2, u)));
    gate_store(s, gates, 0, u, reset);
    gate_store(s, gates, 1, u, z);
    gate_store(s, gates, 2, u, n);
    unit_store(s, s->h + r * s->row, u, v_fma(z, v_sub(v_load(s->h_before + r * s->row + u), n), n));
}

static void kernel_gru(const tt_cell_t *job)
{
    const tt_cell_t local = *job, *s = &local;
    for (size_t r = 0; r < s->rows; r++)
        for (size_t u = 0; u < s->units; u += 16)
            gru_part(s, r, u);
}

KERNEL_FN void gru_back_part(const tt_cell_t *s, size_t r, size_t u)
{
    float *gates = s->gates + r * s->gates_row, *hh = s->hh + r * s->gates_row;
    const size_t at = r * s->row + u;
    const v16 reset = gate_load(s, gates, 0, u), z = gate_load(s, gates, 1, u), n = gate_load(s, gates, 2, u);
    const v16 d_h = v_load(s->d_h + at);
    const v16 d_n = v_tanh_back(n, v_mul(d_h, v_sub(v_set(1.0f), z)));
    const v16 d_z = v_sigmoid_back(z, v_mul(d_h, v_sub(v_load(s->h_before + at), n)));
    const v16 d_r = v_sigmoid_back(reset, v_mul(d_n, gate_load(s, hh, 2, u)));
    gate_store(s, gates, 0, u, d_r);
    gate_store(s, gates, 1, u, d_z);
    gate_store(s, gates, 2, u, d_n);
    gate_store(s, hh, 0, u, d_r);
    gate_store(s, hh, 1, u, d_z);
    gate_store(s, hh, 2, u, v_mul(d_n, reset));
    unit_store(s, s->d_h + r * s->row, u, v_mul(d_h, z));
}

static void kernel_gru_back(const tt_cell_t *job)
{
    const tt_cell_t local = *job, *s = &local;
    for (size_t r = 0; r < s->rows; r++)
        for (size_t u = 0; u < s->units; u += 16)
            gru_back_part(s, r, u);
}
