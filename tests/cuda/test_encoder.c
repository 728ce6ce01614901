/*  Encoders on a GPU against cpu/: what they give and their gradients, to the bit. */
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/nn/backend.h"
#include "common/nn/cpu/encoder.h"
#include "common/nn/cuda/encoder.h"
#include "tests/cuda/memory.h"
#include "tests/nn/ops_fixture.h"

enum { ROWS = 45 };

/* ---- encoders ----------------------------------------------------------------------------------------------------------------------- */

#define CONV(units_, k, s, p, activation_)                                                           \
    {                                                                                                \
        .kind = TT_LAYER_CONV2D, .units = units_, .kernel = {k, k}, .stride = {s, s}, .pad = {p, p}, \
        .activation = activation_                                                                    \
    }
#define DENSE(units_)                                                     \
    {                                                                     \
        .kind = TT_LAYER_DENSE, .units = units_, .activation = TT_NN_RELU \
    }
#define ACTIVATION(activation_)                                \
    {                                                          \
        .kind = TT_LAYER_ACTIVATION, .activation = activation_ \
    }
#define RESIDUAL(span_)                                                    \
    {                                                                      \
        .kind = TT_LAYER_RESIDUAL, .span = span_, .activation = TT_NN_NONE \
    }

/*  Besides those of the fixture. */
static const tt_net_spec_t s_specs[] = {
    /* Nature's, of a small picture: a stack of frames as planes */
    {.obs = 36 * 36 * 4,
        .parts = 1,
        .part = {{.bytes = true, .elements = 36 * 36 * 4, .divisor = 255}},
        .towers = 2,
        .layers = 4,
        .layer = {CONV(32, 8, 4, 0, TT_NN_RELU), CONV(64, 4, 2, 0, TT_NN_RELU), CONV(64, 3, 1, 0, TT_NN_RELU),
            DENSE(64)},
        .tower = {{.name = "encoder",
                      .kind = TT_TOWER_ENCODER,
                      .layers = 4,
                      .height = 36,
                      .width = 36,
                      .channels = 4,
                      .planes = 4},
            {.name = "q", .from = 1, .out = 3}}},
    /* a block of IMPALA's; pictures of two frames with channels of their own */
    {.obs = 12 * 12 * 6,
        .parts = 1,
        .part = {{.bytes = true, .elements = 12 * 12 * 6, .divisor = 255}},
        .towers = 2,
        .layers = 12,
        .layer = {CONV(16, 3, 1, 1, TT_NN_NONE),
            {.kind = TT_LAYER_MAX_POOL, .kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1}, .activation = TT_NN_NONE},
            RESIDUAL(3), ACTIVATION(TT_NN_RELU), CONV(16, 3, 1, 1, TT_NN_RELU), CONV(16, 3, 1, 1, TT_NN_NONE),
            RESIDUAL(3), ACTIVATION(TT_NN_RELU), CONV(16, 3, 1, 1, TT_NN_RELU), CONV(16, 3, 1, 1, TT_NN_NONE),
            ACTIVATION(TT_NN_RELU), DENSE(48)},
        .tower = {{.name = "encoder",
                      .kind = TT_TOWER_ENCODER,
                      .layers = 12,
                      .height = 12,
                      .width = 12,
                      .channels = 6,
                      .planes = 2},
            {.name = "q", .from = 1, .out = 3}}},
};

/*  What one encoder gives to rows and their gradients, as cpu/ has it. */
typedef struct {
    const tt_net_spec_t *spec;
    uint32_t t;
    size_t tensors_before, width, params;
    uint32_t rows;
    float *out;          /* [rows][width]                */
    float *d;            /* the same                     */
    float *grad[SHARDS]; /* [params]                     */
    bool *own;           /* [params]: of this tower      */
} expected_t;

static size_t s_tensors_before(const tt_net_spec_t *spec, uint32_t t)
{
    size_t before = 0;
    for (uint32_t i = 0; i < t; i++)
        before += tt_spec_tower_tensors(spec, i);
    return before;
}

/*  A block of rows through the encoder and back. */
static void s_expect_block(expected_t *self, cpu_block_t *block, size_t first)
{
    const size_t stride = block->net->tower[0][self->t].gives16;
    cpu_encoder_forward(block, 0, self->t);
    float *back = block->lane->d_trunk[self->t];
    memset(back, 0, TT_BLOCK * stride * sizeof *back);
    for (size_t r = 0; r < block->rows; r++) {
        const size_t at = (first + r) * self->width;
        memcpy(self->out + at, block->lane->last[self->t] + r * stride, self->width * sizeof(float));
        memcpy(back + r * stride, self->d + at, self->width * sizeof(float));
    }
    cpu_encoder_backward(block, self->t);
}

static void s_expect_shard(
    expected_t *self, const tt_net_t *net, const tt_table_t *obs, const uint32_t *row, uint32_t s)
{
    const cpu_net_t *cpu = net->impl;
    const uint32_t begin = s * self->rows / SHARDS, end = (s + 1) * self->rows / SHARDS;
    if (begin == end)
        cpu_encoder_clear(cpu->tower[0][self->t].encoder, self->grad[s]);
    for (uint32_t r = begin; r < end; r += TT_BLOCK) {
        const cpu_slice_t slice = {.rows = end - r < TT_BLOCK ? end - r : TT_BLOCK, .grad = self->grad[s]};
        cpu_block_t block = {
            .net = cpu, .lane = &cpu->lanes[0], .rows = slice.rows, .first = r == begin, .slices = 1, .slice = &slice};
        cpu_gather(&block, obs, row ? row + r : NULL, r);
        s_expect_block(self, &block, r);
    }
}

/*  NaN marks what the tower does not write. */
static expected_t s_expect(const place_t *place, const tt_net_t *net, uint32_t t, uint32_t rows, const rows_t *table,
    const uint32_t *row, size_t width)
{
    expected_t self = {.spec = tt_net_spec(net), .t = t, .rows = rows, .width = width};
    self.params = tt_net_param_count(self.spec);
    self.tensors_before = s_tensors_before(self.spec, t);
    self.out = tt_array0(rows * width + 1, sizeof *self.out);
    self.d = tt_array0(rows * width + 1, sizeof *self.d);
    for (size_t i = 0; i < rows * width; i++)
        self.d[i] = fixture_number(900 + t, i);
    if (rows > 20)
        self.d[7 * width] = NAN;
    for (uint32_t s = 0; s < SHARDS; s++) {
        self.grad[s] = tt_aligned0(self.params * sizeof(float));
        for (size_t i = 0; i < self.params; i++)
            self.grad[s][i] = 12345.0f;
    }
    tt_table_t *obs = NULL;
    assert_ok(tt_table_new(&obs, place->device, tt_net_row_bytes(self.spec)));
    assert_ok(tt_table_put(obs, place->stream, table->table, table->rows));
    assert_ok(tt_stream_sync(place->stream));
    for (uint32_t s = 0; s < SHARDS; s++)
        s_expect_shard(&self, net, obs, row, s);
    tt_table_destroy(&obs);
    return self;
}

static void s_free_expected(expected_t *self)
{
    free(self->out);
    free(self->d);
    for (uint32_t s = 0; s < SHARDS; s++)
        free(self->grad[s]);
}

/*  Tensor by tensor, so that what differs has a name. */
static void s_check_grads(const expected_t *e, const tt_net_t *net, const grads_t *grads, const char *words)
{
    size_t count = 0;
    const tt_tensor_t *tensors = tt_net_tensors(net, &count) + e->tensors_before;
    for (size_t i = 0; i < tt_spec_tower_tensors(e->spec, e->t); i++)
        for (uint32_t s = grads->run.lo; s < grads->run.hi; s++) {
            char name[160];
            snprintf(name, sizeof name, "%s, %s", words, tensors[i].name);
            grads_same(grads, s, e->grad[s] + tensors[i].offset, tensors[i].offset,
                (size_t)tensors[i].rows * tensors[i].cols, name);
        }
}

/*  Shards lo .. hi-1 on the device. */
static void s_check_run(const expected_t *e, const tt_net_t *net, const cuda_encoder_t *encoder, const float *params,
    const rows_t *table, const uint32_t *row, uint32_t lo, uint32_t hi)
{
    grads_t grads;
    grads_take(&grads, e->rows, lo, hi, e->params);
    const uint32_t first = grads_begin(&grads.run, lo), count = grads_begin(&grads.run, hi) - first;
    const size_t bytes = tt_net_row_bytes(e->spec);
    uint8_t *rows =
        device_put((const char *)table->table + (row ? 0 : first * bytes), (row ? table->rows : count) * bytes);
    uint32_t *numbers = row ? device_put(row + first, count * sizeof *row) : NULL;
    const cuda_rows_t from = {.count = count, .rows = rows, .bytes = bytes, .row = numbers};
    float *d = device_put_floats(e->d + first * e->width, count * e->width);
    void *memory = device_room(cuda_encoder_bytes(encoder, count, true));
    const float *out =
        cuda_encoder_forward(encoder, device_stream, &(cuda_dense_t){.fast = NULL}, params, &from, memory);
    float *got = device_get(out, count * e->width * sizeof *got);
    char words[100];
    snprintf(words, sizeof words, "%u layers, %u rows, shards %u-%u", e->spec->tower[e->t].layers, e->rows, lo, hi);
    ops_assert_same(e->out + first * e->width, got, count * e->width, "cuda", words);
    cuda_encoder_backward(encoder, device_stream, &(cuda_dense_t){.fast = NULL}, params, &grads.run, d, memory);
    device_wait();
    s_check_grads(e, net, &grads, words);
    free(got);
    device_fine(cudaFree(memory));
    device_fine(cudaFree(d));
    device_fine(cudaFree(numbers));
    device_fine(cudaFree(rows));
    grads_free(&grads);
}

/*  All shards and some, rows of a table by number and in its order; fewer rows than shards; one shard of many blocks. */
static void s_check_encoder(const place_t *place, const tt_net_t *net, uint32_t t, const float *params)
{
    static const struct {
        uint32_t rows, lo, hi;
        bool by_number;
    } runs[] = {{ROWS, 0, SHARDS, true}, {ROWS, 2, 5, false}, {5, 0, SHARDS, false}};
    const tt_net_spec_t *spec = tt_net_spec(net);
    size_t tensors = 0;
    const tt_tensor_t *first = tt_net_tensors(net, &tensors) + s_tensors_before(spec, t);
    cuda_encoder_t *encoder = cuda_encoder_new(spec, t, first);
    for (size_t i = 0; i < TT_COUNT(runs); i++) {
        rows_t rows = fixture_rows(spec, runs[i].rows);
        const uint32_t *row = runs[i].by_number ? rows.row : NULL;
        expected_t e = s_expect(place, net, t, runs[i].rows, &rows, row, cuda_encoder_width(encoder));
        s_check_run(&e, net, encoder, params, &rows, row, runs[i].lo, runs[i].hi);
        s_free_expected(&e);
        fixture_rows_free(&rows);
    }
    cuda_encoder_free(encoder);
}

static void s_check_spec(const tt_net_spec_t *spec)
{
    place_t place;
    if (!spec->layers)
        return;
    fixture_open_on(&place, "cpu", 1);
    tt_net_t *net = fixture_net(&place, spec);
    float *host = fixture_params(&place, net, 0), *params = device_put_floats(host, tt_net_param_count(spec));
    for (uint32_t t = 0; t < spec->towers; t++)
        if (spec->tower[t].kind == TT_TOWER_ENCODER)
            s_check_encoder(&place, net, t, params);
    device_fine(cudaFree(params));
    free(host);
    tt_net_destroy(&net);
    fixture_close(&place);
}

static void test_encoders(void **state)
{
    (void)state;
    size_t left = device_cases(fixture_spec_count + TT_COUNT(s_specs));
    for (size_t i = 0; i < TT_COUNT(s_specs) && left; i++, left--)
        s_check_spec(&s_specs[i]);
    for (size_t i = 0; i < fixture_spec_count && left; i++, left--)
        s_check_spec(&fixture_specs[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_encoders)};
    return device_run_tests(tests);
}
