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

/*  A network with parameters of stream 1, scaled to the layer's width; log_std around -0.3. */
tt_net_t *fixture_net(tt_device_t *device, const tt_net_spec_t *spec, uint32_t lanes);

/*  Sum over rows of 1/2 sum_a exp(-log_std_a) (head_a - t_ra)^2 + 1/2 (value - t_r)^2 with targets t of stream 2 keyed by
 *  the row's number; stats: [0] the loss, [1] the rows. ctx: const tt_net_spec_t *. */
void fixture_loss(const void *ctx, const tt_loss_block_t *block);
float fixture_target(uint32_t row, uint32_t output);

/*  Shapes that reach every tail: odd sizes, wide heads, no hidden layer. */
extern const tt_net_spec_t fixture_specs[];
extern const size_t fixture_spec_count;
