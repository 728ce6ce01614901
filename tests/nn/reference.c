#include "tests/nn/reference.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/nn/fixture.h"

static const tt_tensor_t *find(const reference_t *self, const char *tower, uint32_t number, const char *kind)
{
    char name[48];
    snprintf(name, sizeof name, "%s.%u.%s", tower, number, kind);
    for (size_t t = 0; t < self->tensor_count; t++)
        if (strcmp(self->tensors[t].name, name) == 0)
            return &self->tensors[t];
    fail_msg("no tensor %s", name);
    return NULL;
}

static void tower(const reference_t *self, const char *name, const double *params, const float *obs, double *out)
{
    double *x = calloc(1 << 12, sizeof *x), *y = calloc(1 << 12, sizeof *y);
    for (uint32_t i = 0; i < self->spec->obs; i++)
        x[i] = (double)obs[i];
    for (uint32_t l = 0; l <= self->spec->hidden_count; l++) {
        const tt_tensor_t *w = find(self, name, 2 * l, "weight"), *b = find(self, name, 2 * l, "bias");
        for (uint32_t o = 0; o < w->cols; o++) {
            y[o] = params[b->offset + o];
            for (uint32_t i = 0; i < w->rows; i++)
                y[o] += x[i] * params[w->offset + i * w->cols + o];
            if (l < self->spec->hidden_count)
                y[o] = self->spec->activation == TT_NN_TANH ? tanh(y[o]) : fmax(y[o], 0);
        }
        memcpy(x, y, w->cols * sizeof *x);
        memcpy(out, y, (l == self->spec->hidden_count ? w->cols : 0) * sizeof *out);
    }
    free(x);
    free(y);
}

void reference_forward(const reference_t *self, const double *params, const float *obs, double *head, double *value)
{
    tower(self, "actor", params, obs, head);
    tower(self, "critic", params, obs, value);
}

double reference_loss(
    const reference_t *self, const double *params, const float *const *obs, const uint32_t *row, size_t rows)
{
    const uint32_t out = self->spec->out;
    const double *log_std = NULL;
    for (size_t t = 0; t < self->tensor_count; t++)
        if (strcmp(self->tensors[t].name, "actor.log_std") == 0)
            log_std = params + self->tensors[t].offset;
    double loss = 0, value = 0, *head = calloc(out, sizeof *head);
    for (size_t k = 0; k < rows; k++) {
        reference_forward(self, params, obs[k], head, &value);
        for (uint32_t a = 0; a < out; a++)
            loss += 0.5 * (log_std ? exp(-log_std[a]) : 1.0) * pow(head[a] - (double)fixture_target(row[k], a), 2);
        loss += 0.5 * pow(value - (double)fixture_target(row[k], out), 2);
    }
    free(head);
    return loss;
}
