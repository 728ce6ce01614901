/*  reference - the networks in the plainest double arithmetic, sharing nothing with the code under test but the table of
 *  tensors. */
#pragma once
#include "common/nn/nn.h"

typedef struct {
    const tt_net_spec_t *spec;
    const tt_tensor_t *tensors;
    size_t tensor_count;
} reference_t;

/*  What encoder t gives; returns how many numbers. */
size_t reference_encoder(const reference_t *self, uint32_t t, const double *params, const float *obs, double *out);

/*  out[fixture_outs] of one observation, tower after tower. */
void reference_forward(const reference_t *self, const double *params, const float *obs, double *out);

/*  The loss of fixture.h over rows. */
double reference_loss(
    const reference_t *self, const double *params, const float *const *obs, const uint32_t *row, size_t rows);
