/*  fixture - networks, rows and a loss for the tests of nn. Everything is a function of Philox numbers. */
#pragma once
#include "common/nn/nn.h"
#include "common/nn/spec.h"
#include "tests/test.h"

/*  The k-th number of stream `what`, uniform in [-1, 1). */
float fixture_number(uint32_t what, uint64_t k);

/*  A device and a stream on it. */
typedef struct {
    tt_device_t *device;
    tt_stream_t *stream;
} place_t;

/*  The backend that TT_DEVICE names, and what it calls itself before its kernels' name. */
const char *fixture_backend(void);
/*  The backend of cards that is held to the CPU's bits: the simulated one, or what TT_TEST_CARD names (tests/gpu/run). */
const char *fixture_card(void);
void fixture_open(place_t *self, uint32_t lanes);
void fixture_open_on(place_t *self, const char *backend, uint32_t lanes);
/*  One lane, with the kernels called `build`; false when this processor lacks them (said on stdout). */
bool fixture_build(place_t *self, const char *build);
void fixture_close(place_t *self);

/*  rows observations of spec->obs numbers, and pointers to them in an order that is not the memory's. Bytes are 0 or 1, or with a
 *  divisor of 255 anything. */
typedef struct {
    size_t rows;
    float *data;             /* the numbers                                                     */
    void *table;             /* as a table has them, rows of tt_net_row_bytes: often `data`     */
    const float **obs;       /* rows of `table`                                                 */
    const float **plain;     /* rows of `data`, in the order of obs                             */
    uint32_t *row;           /* the number of the row that obs[k] points to                     */
    const float **by_number; /* rows of `table` in the memory's order                           */
} rows_t;

rows_t fixture_rows(const tt_net_spec_t *spec, size_t rows);
/*  Other ones. */
rows_t fixture_rows_next(const tt_net_spec_t *spec, size_t rows);
void fixture_rows_free(rows_t *rows);

/*  A network with parameters of stream 1, scaled to the layer's width; log_std around -0.3; the same in all sets, but for the noise. */
tt_net_t *fixture_net(const place_t *place, const tt_net_spec_t *spec);
/*  The noise that noisy layers have in it; for the reference: that of tensor `number` in set 0, before the root is taken. */
extern const tt_noise_t fixture_noise;
double fixture_normal(uint32_t number, size_t i);
/*  A copy of a set's parameters; free() it. */
float *fixture_params(const place_t *place, const tt_net_t *net, uint32_t set);

/*  Floats that all heads give for one row. */
uint32_t fixture_outs(const tt_net_spec_t *spec);
/*  All heads of a set over rows: out[fixture_outs * rows], tower after tower. */
void fixture_forward(
    const place_t *place, tt_net_t *net, uint32_t set, const float *const *obs, size_t rows, float *out);
/*  As tt_net_forward, of rows that lie anywhere. Waits. */
void fixture_heads(
    const place_t *place, tt_net_t *net, uint32_t set, const float *const *obs, size_t rows, float *const *out);

/*  A head with a loss of its own: none that a dueling tower reads. */
bool fixture_trained(const tt_net_spec_t *spec, uint32_t t);

/*  What pass->row names, of the rows of each frame (next: NULL = there are none), as one shard: tt_net_grad_count floats. The
 *  pass has no tables yet. */
tt_status_t fixture_pass(
    const place_t *place, tt_net_t *net, const tt_pass_t *pass, const rows_t *at, const rows_t *next, float *grad);

/*  Every such head trained on TT_AT, with fixture_loss, over rows first .. first + count - 1 in their order. */
tt_objective_t fixture_objective(const tt_net_spec_t *spec);
void fixture_grad(const place_t *place, tt_net_t *net, const rows_t *rows, size_t first, size_t count, float *grad);

/*  What steps came to; waits. TT_INVALID: one of them could not be taken. */
tt_status_t fixture_report(const place_t *place, tt_net_t *net, const tt_sums_t *sums, float *stats, tt_norms_t *norms);
/*  One step with a gradient from the host; norm (may be NULL): of the optimiser's group. */
tt_status_t fixture_step(const place_t *place, tt_net_t *net, tt_opt_t *opt, const float *grad, float lr, float *norm);

/*  Sum over rows of 1/2 sum_a exp(-log_std_a) (head_a - t_ra)^2 over the trained heads, with targets t of stream 2 keyed by the
 *  row's number and the output's among all heads; stats: [0] the loss, [1] the rows. A head has log_std for its first outputs
 *  or for none. params: const tt_net_spec_t *, a pointer. */
void fixture_loss(const void *params, const void *const *input, const tt_loss_block_t *block);
float fixture_target(uint32_t row, uint32_t output);

/*  Shapes that reach every tail: odd sizes, wide heads, no hidden layer; the pairs first (fixture_pair_count of them), then
 *  trunks, groups and sets, then dueling towers. */
extern const tt_net_spec_t fixture_specs[];
extern const size_t fixture_spec_count, fixture_pair_count;
