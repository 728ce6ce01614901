/*  recurrent - a step of one unit of an LSTM or a GRU, and back, in C17 and CUDA C++: operation by operation what a lane of
 *  cpu/kernels_recurrent.h does.
 *
 *  Formulas: torch.nn.LSTM (Hochreiter and Schmidhuber 1997, with Gers' forget gate), torch.nn.GRU (Cho et al. 2014, arXiv:1406.1078,
 *            with the reset behind the product)
 *  Special:  NaN passes through all of them.
 *  Threads:  pure. */
#pragma once
#include "common/nn/math/activation.h"

/*  1 / (1 + exp(-x)) = (1 + tanh(x / 2)) / 2. */
TT_MATH_FN float tt_sigmoidf(float x)
{
    return tt_fmaf(tt_tanhf(0.5f * x), 0.5f, 0.5f);
}

/*  d times the derivative of the sigmoid where it gave y. */
TT_MATH_FN float tt_sigmoid_back(float y, float d)
{
    return d * tt_fmaf(-y, y, y);
}

/*  Of a unit: before a step what comes to each gate from what is read (ih) and from what is carried (hh), after it what they gave. */
typedef struct {
    float i, f, g, o;
} tt_lstm_gates_t;

typedef struct {
    tt_lstm_gates_t gates;
    float c, squashed, h; /* what is carried, its tanh; what is given, and carried too */
} tt_lstm_t;

TT_MATH_FN tt_lstm_t tt_lstm(const tt_lstm_gates_t *ih, const tt_lstm_gates_t *hh, float c)
{
    tt_lstm_t to;
    to.gates.i = tt_sigmoidf(ih->i + hh->i);
    to.gates.f = tt_sigmoidf(ih->f + hh->f);
    to.gates.g = tt_tanhf(ih->g + hh->g);
    to.gates.o = tt_sigmoidf(ih->o + hh->o);
    to.c = tt_fmaf(to.gates.f, c, to.gates.i * to.gates.g);
    to.squashed = tt_tanhf(to.c);
    to.h = to.gates.o * to.squashed;
    return to;
}

/*  What comes to the gates, and in *d_c from the c of the step after to the c of the one before. d_h: what came to its h. */
TT_MATH_FN tt_lstm_gates_t tt_lstm_back(
    const tt_lstm_gates_t *gates, float c_before, float squashed, float d_h, float *d_c)
{
    const float d = *d_c + tt_tanh_back(squashed, d_h * gates->o);
    tt_lstm_gates_t to;
    to.i = tt_sigmoid_back(gates->i, d * gates->g);
    to.f = tt_sigmoid_back(gates->f, d * c_before);
    to.g = tt_tanh_back(gates->g, d * gates->i);
    to.o = tt_sigmoid_back(gates->o, d_h * squashed);
    *d_c = d * gates->f;
    return to;
}

typedef struct {
    float r, z, n;
} tt_gru_gates_t;

/*  h' = n + z (h - n), which is (1 - z) n + z h. *gates: what they gave. */
TT_MATH_FN float tt_gru(const tt_gru_gates_t *ih, const tt_gru_gates_t *hh, float h, tt_gru_gates_t *gates)
{
    gates->r = tt_sigmoidf(ih->r + hh->r);
    gates->z = tt_sigmoidf(ih->z + hh->z);
    gates->n = tt_tanhf(tt_fmaf(gates->r, hh->n, ih->n));
    return tt_fmaf(gates->z, h - gates->n, gates->n);
}

/*  hh_n: what came to n from what was carried. Of r and z the same comes to both sides, of n this is what comes to ih's, and *d_hh_n
 *  to hh's. *d_h: what came to the step's h, and then what goes to the h before past the gates. */
TT_MATH_FN tt_gru_gates_t tt_gru_back(
    const tt_gru_gates_t *gates, float hh_n, float h_before, float *d_h, float *d_hh_n)
{
    tt_gru_gates_t to;
    to.n = tt_tanh_back(gates->n, *d_h * (1.0f - gates->z));
    to.z = tt_sigmoid_back(gates->z, *d_h * (h_before - gates->n));
    to.r = tt_sigmoid_back(gates->r, to.n * hh_n);
    *d_hh_n = to.n * gates->r;
    *d_h = *d_h * gates->z;
    return to;
}
