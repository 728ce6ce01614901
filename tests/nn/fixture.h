/*  fixture - networks, rows and a loss for the tests of nn. Everything is a function of Philox numbers. */
#pragma once
#include "common/nn/nn.h"
#include "tests/test.h"

/*  The k-th number of stream `what`, uniform in [-1, 1). */
float fixture_number(uint32_t what, uint64_t k);

/*  rows observations of spec->obs numbers, and pointers to them in an order that is not the memory's. */
typedef struct {
    size_t rows;
    float *data;
    const float **obs;
    uint32_t *row; /* the number of the row that obs[k] points to */
} rows_t;

rows_t fixture_rows(const tt_net_spec_t *spec, size_t rows);
void fixture_rows_free(rows_t *rows);

/*  Open the kernels called `build`; false when this processor lacks them (said on stdout). */
bool fixture_device(tt_device_t **device_p, const char *build);

/*  A network with parameters of stream 1, scaled to the layer's width; log_std around -0.3; the same in all sets. */
tt_net_t *fixture_net(tt_device_t *device, const tt_net_spec_t *spec, uint32_t lanes);

/*  Floats that all heads give for one row. */
uint32_t fixture_outs(const tt_net_spec_t *spec);
/*  All heads of a set over rows: out[fixture_outs * rows], tower after tower. */
void fixture_forward(tt_net_t *net, uint32_t lane, uint32_t set, const float *const *obs, size_t rows, float *out);

/*  Every head trained on TT_AT, with fixture_loss. ctx of the loss: const tt_net_spec_t *. */
tt_objective_t fixture_objective(const tt_net_spec_t *spec);
void fixture_grad(tt_net_t *net, uint32_t lane, const rows_t *rows, size_t first, size_t count, float *grad);

/*  Sum over rows of 1/2 sum_a exp(-log_std_a) (head_a - t_ra)^2 over all heads, with targets t of stream 2 keyed by the
 *  row's number and the output's among all heads; stats: [0] the loss, [1] the rows. A head has log_std for its first outputs
 *  or for none. */
void fixture_loss(const void *ctx, const tt_loss_block_t *block);
float fixture_target(uint32_t row, uint32_t output);

/*  Shapes that reach every tail: odd sizes, wide heads, no hidden layer; the pairs first (fixture_pair_count of them), then
 *  trunks, groups and sets. */
extern const tt_net_spec_t fixture_specs[];
extern const size_t fixture_spec_count, fixture_pair_count;
