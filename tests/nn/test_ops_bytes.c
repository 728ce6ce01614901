/*  Products of rows of bytes of which most are 0: what a chain over the others gives, and with that what the full product gives. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/nn/ops_fixture.h"

enum { CASES = 60, GUARD = 16 };

typedef enum { BITS, BYTES, NOTHING, EVERYTHING, KINDS } bytes_t;

typedef struct {
    size_t rows, ins, outs, out16;
    uint8_t *memory;
    const uint8_t **row;
    float *in;     /* the rows as floats                      */
    float *weight; /* [ins][out16], zeros behind the last one */
    float *bias, *d;
    bool panels; /* the weights lie in panels of 16 columns */
} layer_t;

static uint8_t s_byte(bytes_t kind, uint32_t seed, uint32_t i)
{
    const uint32_t draw = ops_pick(seed, 1000 + i, 0, 0xffffff);
    if (kind == EVERYTHING)
        return (uint8_t)(1 + draw % 255);
    if (kind == NOTHING || draw % 16)
        return 0;
    return kind == BITS ? 1 : (uint8_t)(draw >> 8);
}

/*  Rows of the memory in another order than they lie there. */
static void s_rows(layer_t *self, uint32_t seed)
{
    const bytes_t kind = (bytes_t)(seed % KINDS);
    self->memory = malloc(self->rows * self->ins);
    self->row = tt_array0(self->rows, sizeof *self->row);
    self->in = tt_array0(self->rows * self->ins, sizeof(float));
    for (size_t i = 0; i < self->rows * self->ins; i++)
        self->memory[i] = s_byte(kind, seed, (uint32_t)i);
    for (size_t r = 0; r < self->rows; r++) {
        self->row[r] = self->memory + (self->rows - 1 - r) * self->ins;
        for (size_t k = 0; k < self->ins; k++)
            self->in[r * self->ins + k] = self->row[r][k];
    }
}

/*  Rows of vectors, as the products read and write them: `count` numbers and zeros behind. */
static float *s_padded(uint32_t seed, uint32_t what, size_t rows, size_t count, size_t wide)
{
    float *padded = tt_aligned0(rows * wide * sizeof(float)), *plain = ops_numbers(seed, what, OPS_PLAIN, rows * count);
    for (size_t r = 0; r < rows; r++)
        memcpy(padded + r * wide, plain + r * count, count * sizeof(float));
    ops_free(plain);
    return padded;
}

static layer_t s_layer(uint32_t seed)
{
    static const size_t ins[] = {1, 4, 63, 64, 65, 100, 400, 600, 1024, 1025, 2100};
    static const size_t outs[] = {1, 5, 16, 20, 64, 72, 128, 160, 256, 300};
    layer_t self = {.rows = ops_pick(seed, 1, 1, 5),
        .ins = ins[seed % TT_COUNT(ins)],
        .outs = outs[seed % TT_COUNT(outs)],
        .panels = seed % 3 == 0};
    self.out16 = (self.outs + 15) / 16 * 16;
    s_rows(&self, seed);
    self.weight = s_padded(seed, 1, self.ins, self.outs, self.out16);
    self.bias = s_padded(seed, 2, 1, self.outs, self.out16);
    self.d = s_padded(seed, 3, self.rows, self.outs, self.out16);
    return self;
}

static void s_free(layer_t *self)
{
    free(self->memory);
    free(self->row);
    free(self->in);
    free(self->weight);
    free(self->bias);
    free(self->d);
}

static tt_gemm_t s_forward_job(const layer_t *layer, tt_gemm_kind_t kind, const float *weight, float *out)
{
    return (tt_gemm_t){.kind = kind,
        .m = layer->rows,
        .n = layer->out16,
        .k = layer->ins,
        .a = layer->in,
        .a_row = layer->ins,
        .a_k = 1,
        .b = weight,
        .b_panel = layer->panels ? 16 * layer->ins : 16,
        .b_k = layer->panels ? 16 : layer->out16,
        .c = out,
        .c_row = layer->out16,
        .bias = layer->bias};
}

/*  A chain over the numbers that are not 0, from the bias. */
static float s_chain(const layer_t *layer, size_t r, size_t n)
{
    float sum = layer->bias[n];
    for (size_t k = 0; k < layer->ins; k++)
        if (layer->row[r][k])
            sum = fmaf((float)layer->row[r][k], layer->weight[k * layer->out16 + n], sum);
    return sum;
}

static void s_check_forward(const tt_kernels_t *kernels, const layer_t *layer)
{
    static const tt_gemm_kind_t kinds[] = {TT_GEMM_TANH, TT_GEMM_RELU, TT_GEMM_SUM};
    static const tt_nn_activation_t activation[] = {TT_NN_TANH, TT_NN_RELU, TT_NN_NONE};
    const size_t count = layer->rows * layer->out16;
    float *packed = tt_aligned0(layer->ins * layer->out16 * sizeof(float));
    float *sparse = tt_aligned0(count * sizeof(float)), *full = tt_aligned0(count * sizeof(float));
    kernels->pack(layer->ins, layer->out16, layer->weight, packed);
    for (size_t i = 0; i < TT_COUNT(kinds); i++) {
        const float *weight = layer->panels ? packed : layer->weight;
        tt_gemm_t job = s_forward_job(layer, kinds[i], weight, full);
        kernels->gemm(&job);
        job.c = sparse;
        job.a = NULL;
        cpu_bytes_forward(kernels, &job, layer->row);
        for (size_t r = 0; r < layer->rows; r++)
            for (size_t n = 0; n < layer->outs; n++) {
                const float expected = ops_activate(kernels, activation[i], s_chain(layer, r, n));
                ops_assert_same(
                    &expected, &sparse[r * layer->out16 + n], 1, kernels->name, "a chain over what is not 0");
            }
        ops_assert_same(full, sparse, count, kernels->name, "the full product");
    }
    free(packed);
    free(sparse);
    free(full);
}

/*  Two blocks of the same rows: the first one is written, the second added. The gradient is neither padded nor aligned. */
static void s_check_param_grad(const tt_kernels_t *kernels, const layer_t *layer)
{
    const size_t count = layer->ins * layer->outs;
    float *room[3];
    for (size_t i = 0; i < 3; i++) {
        room[i] = (float *)malloc((1 + count + GUARD) * sizeof(float)) + 1;
        for (size_t j = 0; j < count + GUARD; j++)
            room[i][j] = 12345.0f;
    }
    for (int block = 0; block < 2; block++) {
        tt_gemm_t job = {.kind = TT_GEMM_ADD,
            .first = block == 0,
            .m = layer->ins,
            .n = layer->outs,
            .k = layer->rows,
            .a = layer->in,
            .a_row = 1,
            .a_k = layer->ins,
            .b = layer->d,
            .b_panel = 16,
            .b_k = layer->out16,
            .c = room[0],
            .c_row = layer->outs};
        kernels->gemm(&job);
        job.a = NULL;
        job.c = room[1];
        cpu_bytes_param_grad(kernels, &job, layer->row);
        for (size_t i = 0; i < count; i++) {
            room[2][i] = block ? room[2][i] : 0.0f;
            for (size_t r = 0; r < layer->rows; r++)
                if (layer->row[r][i / layer->outs])
                    room[2][i] = fmaf((float)layer->row[r][i / layer->outs],
                        layer->d[r * layer->out16 + i % layer->outs], room[2][i]);
        }
    }
    ops_assert_same(room[2], room[1], count + GUARD, kernels->name, "gradient, rows in order");
    ops_assert_same(room[0], room[1], count + GUARD, kernels->name, "gradient, the full product");
    for (size_t i = 0; i < 3; i++)
        free(room[i] - 1);
}

static void s_check_layer(const tt_kernels_t *kernels, uint32_t seed)
{
    layer_t layer = s_layer(seed);
    s_check_forward(kernels, &layer);
    s_check_param_grad(kernels, &layer);
    s_free(&layer);
}

static void test_layers(void **state)
{
    (void)state;
    ops_on_builds(s_check_layer, CASES);
}

/*  What is left out is left out: a weight that is not finite harms only the rows that have its input. */
static void s_check_infinity(const tt_kernels_t *kernels, uint32_t seed)
{
    enum { INS = 130, OUTS = 16 };
    uint8_t memory[2][INS] = {{0}};
    const uint8_t *const row[] = {memory[0], memory[1]};
    float *weight = s_padded(seed, 1, INS, OUTS, OUTS), *bias = s_padded(seed, 2, 1, OUTS, OUTS), out[2][OUTS];
    const tt_gemm_t job = {.kind = TT_GEMM_SUM,
        .m = 2,
        .n = OUTS,
        .k = INS,
        .b = weight,
        .b_panel = 16,
        .b_k = OUTS,
        .c = out[0],
        .c_row = OUTS,
        .bias = bias};
    memory[1][129] = 2;
    weight[129 * OUTS + 3] = INFINITY;
    cpu_bytes_forward(kernels, &job, row);
    ops_assert_same(bias, out[0], OUTS, kernels->name, "a row without that input");
    assert_true(isinf(out[1][3]));
    assert_true(isfinite(out[1][4]));
    free(weight);
    free(bias);
}

static void test_infinity(void **state)
{
    (void)state;
    ops_on_builds(s_check_infinity, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_infinity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
