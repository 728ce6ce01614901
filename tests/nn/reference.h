/*  reference - the networks in the plainest double arithmetic, sharing nothing with the code under test but the table of
 *  tensors. */
#pragma once
#include "common/nn/nn.h"

typedef struct {
    const tt_net_spec_t *spec;
    const tt_tensor_t *tensors;
    size_t tensor_count;
    const double *carry; /* of a recurrent network: [tt_net_carry] into a row, and out of it */
    double *carried;
} reference_t;

/*  What encoder t gives; returns how many numbers. */
size_t reference_encoder(const reference_t *self, uint32_t t, const double *params, const float *obs, double *out);

/*  x[in] through the layers of a tower, in place: what its head gives, or a trunk's last layer. x: room for 4096. */
void reference_layers(const reference_t *self, uint32_t t, const double *params, double *x);

/*  What tower t gives, of an observation; where it reads an action, of this behind it or behind its trunk. */
void reference_tower(
    const reference_t *self, uint32_t t, const double *params, const float *obs, const double *action, double *x);

/*  out[fixture_outs] of one observation, tower after tower. */
void reference_forward(const reference_t *self, const double *params, const float *obs, double *out);

/*  The loss of fixture.h over rows. */
double reference_loss(
    const reference_t *self, const double *params, const float *const *obs, const uint32_t *row, size_t rows);
/*  Of a recurrent network's: rows of one sequence, what is carried into the first, and where episodes begin, by number. */
double reference_sequence(const reference_t *self, const double *params, const float *const *obs, const uint32_t *row,
    size_t rows, const float *carry, const uint8_t *begins);
