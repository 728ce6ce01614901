#include "tests/nn/reference.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/nn/fixture.h"

static const tt_tensor_t *find(const reference_t *self, const char *fmt, ...)
{
    char name[56];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    for (size_t t = 0; t < self->tensor_count; t++)
        if (strcmp(self->tensors[t].name, name) == 0)
            return &self->tensors[t];
    fail_msg("no tensor %s", name);
    return NULL;
}

static double root(double x)
{
    return x < 0 ? -sqrt(-x) : sqrt(x);
}

/*  What noise multiplies the deviations of a layer by: of `in` inputs, and behind them `out` outputs. */
static double *noise(const reference_t *self, const tt_tensor_t *w)
{
    const uint32_t number = (uint32_t)(w - self->tensors);
    double *eps = malloc((w->rows + w->cols) * sizeof *eps);
    for (uint32_t i = 0; i < w->rows; i++)
        eps[i] = root(fixture_normal(number, i));
    for (uint32_t o = 0; o < w->cols; o++)
        eps[w->rows + o] = root(fixture_normal(number + 1, o));
    return eps;
}

/*  x[in] -> y[out], the part that noise adds. */
static void add_noise(const reference_t *self, const tt_tensor_t *w, const double *params, const double *x, double *y)
{
    const tt_tensor_t *dw = find(self, "%s_sigma", w->name), *db = find(self, "%s_sigma", w[1].name);
    double *in = noise(self, w), *out = in + w->rows;
    for (uint32_t o = 0; o < w->cols; o++) {
        y[o] += params[db->offset + o] * out[o];
        for (uint32_t i = 0; i < w->rows; i++)
            y[o] += x[i] * params[dw->offset + i * w->cols + o] * in[i] * out[o];
    }
    free(in);
}

void reference_layers(const reference_t *self, uint32_t t, const double *params, double *x)
{
    const tt_tower_t *tower = &self->spec->tower[t];
    double *y = malloc((1 << 12) * sizeof *y);
    for (uint32_t l = 0; l < tt_spec_layers(self->spec, t); l++) {
        const tt_tensor_t *w = find(self, "%s.%u.weight", tower->name, 2 * l);
        const tt_tensor_t *b = find(self, "%s.%u.bias", tower->name, 2 * l);
        for (uint32_t o = 0; o < w->cols; o++) {
            y[o] = params[b->offset + o];
            for (uint32_t i = 0; i < w->rows; i++)
                y[o] += x[i] * params[w->offset + i * w->cols + o];
        }
        if (tower->noise > 0)
            add_noise(self, w, params, x, y);
        for (uint32_t o = 0; o < w->cols && l < tower->hidden_count; o++)
            y[o] = tower->activation == TT_NN_TANH ? tanh(y[o]) : fmax(y[o], 0);
        memcpy(x, y, w->cols * sizeof *x);
    }
    free(y);
}

/*  x[in] and what is carried to the gates of one side. */
static void gates_of(
    const reference_t *self, uint32_t t, const char *side, const double *params, const double *x, double *gates)
{
    const tt_tensor_t *w = find(self, "%s.weight_%s_l0", self->spec->tower[t].name, side);
    const tt_tensor_t *b = find(self, "%s.bias_%s_l0", self->spec->tower[t].name, side);
    for (uint32_t o = 0; o < w->cols; o++) {
        gates[o] = params[b->offset + o];
        for (uint32_t i = 0; i < w->rows; i++)
            gates[o] += x[i] * params[w->offset + i * w->cols + o];
    }
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/*  As torch.nn.LSTM's and torch.nn.GRU's documentation has it. */
static void run_recurrent(const reference_t *self, uint32_t t, const double *params, double *x)
{
    const uint32_t H = self->spec->tower[t].hidden[0];
    tt_net_spec_t before = *self->spec;
    before.towers = t;
    const uint32_t at = tt_net_carry(&before);
    const double *h = self->carry + at, *c = h + H;
    double *ih = malloc(8 * (size_t)H * sizeof *ih), *hh = ih + 4 * (size_t)H;
    gates_of(self, t, "ih", params, x, ih);
    gates_of(self, t, "hh", params, h, hh);
    for (uint32_t u = 0; u < H; u++)
        if (self->spec->tower[t].kind == TT_TOWER_LSTM) {
            double *to = self->carried + at + H;
            to[u] =
                sigmoid(ih[H + u] + hh[H + u]) * c[u] + sigmoid(ih[u] + hh[u]) * tanh(ih[2 * H + u] + hh[2 * H + u]);
            x[u] = sigmoid(ih[3 * H + u] + hh[3 * H + u]) * tanh(to[u]);
        } else {
            const double r = sigmoid(ih[u] + hh[u]), z = sigmoid(ih[H + u] + hh[H + u]);
            x[u] = (1 - z) * tanh(ih[2 * H + u] + r * hh[2 * H + u]) + z * h[u];
        }
    memcpy(self->carried + at, x, H * sizeof *x);
    free(ih);
}

/*  From the observation through every trunk below tower t, one after the other. */
void reference_tower(
    const reference_t *self, uint32_t t, const double *params, const float *obs, const double *action, double *x)
{
    const tt_tower_t *tower = &self->spec->tower[t];
    if (tower->kind == TT_TOWER_ENCODER) {
        reference_encoder(self, t, params, obs, x);
        return;
    }
    for (uint32_t i = 0; tower->from == 0 && i < self->spec->obs; i++)
        x[i] = (double)obs[i];
    if (tower->from)
        reference_tower(self, tower->from - 1, params, obs, NULL, x);
    if (tower->action)
        memcpy(x + find(self, "%s.0.weight", tower->name)->rows - self->spec->action, action,
            self->spec->action * sizeof *x);
    if (tt_tower_recurs(tower->kind))
        run_recurrent(self, t, params, x);
    else
        reference_layers(self, t, params, x);
}

/*  In `out` the heads of the towers before it stand one behind the other. */
static void run_dueling(const reference_t *self, uint32_t t, const double *out, double *q)
{
    const tt_tower_t *tower = &self->spec->tower[t];
    const uint32_t n = self->spec->tower[tower->value].out;
    const double *value = out, *advantage = out;
    for (uint32_t i = 0; i < tower->value; i++)
        value += self->spec->tower[i].out;
    for (uint32_t i = 0; i < tower->advantage; i++)
        advantage += self->spec->tower[i].out;
    for (uint32_t i = 0; i < n; i++) {
        double mean = 0;
        for (uint32_t a = i; a < tower->out; a += n)
            mean += advantage[a] / (tower->out / n);
        for (uint32_t a = i; a < tower->out; a += n)
            q[a] = value[i] + advantage[a] - mean;
    }
}

static void run_atoms(const reference_t *self, uint32_t t, const double *out, double *q)
{
    const tt_tower_t *tower = &self->spec->tower[t];
    const uint32_t n = self->spec->tower[tower->value].out / tower->out;
    for (uint32_t i = 0; i < tower->value; i++)
        out += self->spec->tower[i].out;
    for (uint32_t a = 0; a < tower->out; a++) {
        double sum = 0, all = 0;
        for (uint32_t i = 0; i < n; i++) {
            const double share = exp(out[a * n + i]), low = (double)tower->low, high = (double)tower->high;
            sum += share;
            all += share * (low + (high - low) * i / (n - 1));
        }
        q[a] = all / sum;
    }
}

static void run_mean(const reference_t *self, uint32_t t, const double *out, double *q)
{
    const tt_tower_t *tower = &self->spec->tower[t];
    const uint32_t n = self->spec->tower[tower->value].out / tower->out;
    for (uint32_t i = 0; i < tower->value; i++)
        out += self->spec->tower[i].out;
    for (uint32_t a = 0; a < tower->out; a++) {
        q[a] = 0;
        for (uint32_t i = 0; i < n; i++)
            q[a] += out[a * n + i] / n;
    }
}

void reference_forward(const reference_t *self, const double *params, const float *obs, double *out)
{
    double *x = malloc((1 << 12) * sizeof *x), *at = out;
    for (uint32_t t = 0; t < self->spec->towers; t++) {
        if (self->spec->tower[t].out == 0)
            continue;
        if (self->spec->tower[t].kind == TT_TOWER_DUELING)
            run_dueling(self, t, out, x);
        else if (self->spec->tower[t].kind == TT_TOWER_MEAN)
            run_mean(self, t, out, x);
        else if (self->spec->tower[t].kind == TT_TOWER_ATOMS)
            run_atoms(self, t, out, x);
        else
            reference_tower(self, t, params, obs, NULL, x);
        memcpy(at, x, self->spec->tower[t].out * sizeof *at);
        at += self->spec->tower[t].out;
    }
    free(x);
}

/*  Of one row; out: its heads. */
static double row_loss(const reference_t *self, const double *params, uint32_t row, const double *out)
{
    double loss = 0;
    uint32_t output = 0;
    for (uint32_t t = 0; t < self->spec->towers; t++) {
        const tt_tower_t *tower = &self->spec->tower[t];
        for (uint32_t a = 0; a < tower->out; a++, output++) {
            const double *log_std =
                a < tower->log_std ? params + find(self, "%s.log_std", tower->name)->offset + a : NULL;
            const double error = out[output] - (double)fixture_target(row, output);
            if (fixture_trained(self->spec, t))
                loss += 0.5 * (log_std ? exp(-*log_std) : 1.0) * error * error;
        }
    }
    return loss;
}

double reference_loss(
    const reference_t *self, const double *params, const float *const *obs, const uint32_t *row, size_t rows)
{
    double loss = 0, *out = calloc(fixture_outs(self->spec), sizeof *out);
    for (size_t k = 0; k < rows; k++) {
        reference_forward(self, params, obs[k], out);
        loss += row_loss(self, params, row[k], out);
    }
    free(out);
    return loss;
}

double reference_sequence(const reference_t *self, const double *params, const float *const *obs, const uint32_t *row,
    size_t rows, const float *carry, const uint8_t *begins)
{
    const size_t C = tt_net_carry(self->spec);
    double loss = 0, *out = calloc(fixture_outs(self->spec) + 2 * C, sizeof *out);
    double *before = out + fixture_outs(self->spec), *after = before + C;
    reference_t step = *self;
    step.carry = before;
    step.carried = after;
    for (size_t i = 0; i < C; i++)
        after[i] = (double)carry[i];
    for (size_t k = 0; k < rows; k++) {
        for (size_t i = 0; i < C; i++)
            before[i] = begins[row[k]] ? 0 : after[i];
        reference_forward(&step, params, obs[k], out);
        loss += row_loss(self, params, row[k], out);
    }
    free(out);
    return loss;
}
