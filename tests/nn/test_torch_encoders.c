/*  Parity with PyTorch on recorded data (tests/golden/torch/record_encoders.py): encoders forward and back, with the names, shapes
 *  and orders of its tensors. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/nn/tensor.h"
#include "tests/nn/fixture.h"
#include "tests/nn/golden.h"
#include "tests/nn/st_file.h"

enum { SAMPLES = 64, ACTIONS = 5 };

/*  record_encoders.py: numbers(count, what). */
static float number(uint32_t what, size_t index)
{
    uint32_t i = (uint32_t)(index * 2654435761u + what * (uint64_t)2246822519u);
    i = (i ^ i >> 15) * 2246822519u;
    i = (i ^ i >> 13) * 3266489917u;
    i ^= i >> 16;
    return (float)(i >> 8) / (float)(1 << 23) - 1.0f;
}

/* ---- the networks -------------------------------------------------------------------------------------------------- */

#define RELU .activation = TT_NN_RELU
#define TANH .activation = TT_NN_TANH
#define NONE .activation = TT_NN_NONE
#define CONV(units_, kh, kw, sh, sw, ph, pw, ...)                                                                      \
    {                                                                                                                  \
        .kind = TT_LAYER_CONV2D, .units = units_, .kernel = {kh, kw}, .stride = {sh, sw}, .pad = {ph, pw}, __VA_ARGS__ \
    }
#define SAME(units_, ...) CONV(units_, 3, 3, 1, 1, 1, 1, __VA_ARGS__)
#define BLOCK(c) \
    {.kind = TT_LAYER_RESIDUAL, .span = 3, NONE}, {.kind = TT_LAYER_ACTIVATION, RELU}, SAME(c, RELU), SAME(c, NONE)
#define STAGE(c)                                                                                                   \
    SAME(c, NONE), {.kind = TT_LAYER_MAX_POOL, .kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1}, NONE}, BLOCK(c), \
        BLOCK(c)
#define MEAN(kh, kw, sh, sw, ph, pw)                                                             \
    {                                                                                            \
        .kind = TT_LAYER_AVG_POOL, .kernel = {kh, kw}, .stride = {sh, sw}, .pad = {ph, pw}, NONE \
    }
#define DENSE(units_, ...)                                   \
    {                                                        \
        .kind = TT_LAYER_DENSE, .units = units_, __VA_ARGS__ \
    }
#define NORM(...)                                \
    {                                            \
        .kind = TT_LAYER_LAYER_NORM, __VA_ARGS__ \
    }

typedef struct {
    const char *name;
    uint32_t height, width, channels;
    bool first;
    float divisor;
    uint32_t behind, rows, layers;
    tt_layer_t layer[40];
} net_t;

static const net_t s_nets[] = {
    {"nature", 84, 84, 4, true, 255, 0, 3, 4,
        {CONV(32, 8, 8, 4, 4, 0, 0, RELU), CONV(64, 4, 4, 2, 2, 0, 0, RELU), CONV(64, 3, 3, 1, 1, 0, 0, RELU),
            DENSE(512, RELU)}},
    {"impala", 30, 27, 3, true, 255, 0, 3, 32,
        {STAGE(8), STAGE(12), STAGE(16), {.kind = TT_LAYER_ACTIVATION, RELU}, DENSE(64, RELU)}},
    {"minatar", 10, 10, 4, false, 1, 0, 33, 2, {CONV(16, 3, 3, 1, 1, 0, 0, RELU), DENSE(128, RELU)}},
    {"mixed", 10, 7, 3, false, 255, 5, 35, 9,
        {CONV(6, 4, 3, 2, 1, 1, 0, NONE), NORM(TANH), {.kind = TT_LAYER_CONCAT, .part = 1, NONE}, NORM(TANH),
            DENSE(24, RELU), {.kind = TT_LAYER_RESIDUAL, .span = 2, NONE}, DENSE(18, TANH), DENSE(24, NONE),
            NORM(NONE)}},
    {"means", 11, 8, 2, true, 255, 0, 9, 4,
        {CONV(5, 3, 3, 1, 1, 0, 0, RELU), MEAN(3, 2, 2, 1, 1, 0), MEAN(2, 3, 1, 2, 1, 1), DENSE(12, RELU)}},
    {"embedded", 5, 4, 2, true, 255, 10, 37, 3,
        {CONV(3, 3, 3, 1, 1, 0, 0, RELU), {.kind = TT_LAYER_EMBED, .part = 1, .units = 4, .choices = 3, NONE},
            DENSE(14, TANH)}},
};

/*  Of the elements that stand behind, one-hot, where a layer embeds them. */
enum { CHOICES = 3 };
static const uint32_t s_choice[CHOICES] = {3, 5, 2};

static bool embeds(const net_t *net)
{
    bool found = false;
    for (uint32_t l = 0; l < net->layers; l++)
        found |= net->layer[l].kind == TT_LAYER_EMBED;
    return found;
}

static tt_net_spec_t spec_of(const net_t *net)
{
    const uint32_t elements = net->height * net->width * net->channels;
    tt_net_spec_t spec = {
        .obs = elements + net->behind, .parts = 1 + (net->behind > 0), .towers = 3, .layers = net->layers};
    memcpy(spec.layer, net->layer, sizeof net->layer);
    spec.choices = CHOICES;
    memcpy(spec.choice, s_choice, sizeof s_choice);
    spec.part[0] = (tt_part_t){.bytes = true, .elements = elements, .divisor = net->divisor};
    spec.part[1] = (tt_part_t){.elements = net->behind};
    spec.tower[0] = (tt_tower_t){.name = "encoder",
        .kind = TT_TOWER_ENCODER,
        .layers = net->layers,
        .height = net->height,
        .width = net->width,
        .channels = net->channels,
        .planes = net->first ? net->channels : 1};
    spec.tower[1] = (tt_tower_t){.name = "actor", .from = 1, .out = ACTIONS};
    spec.tower[2] = (tt_tower_t){.name = "critic", .from = 1, .hidden_count = 1, .hidden = {8}, .out = 1};
    return spec;
}

/* ---- what it is given ----------------------------------------------------------------------------------------------- */

static void put_params(const place_t *place, tt_net_t *net)
{
    size_t count = 0;
    const tt_tensor_t *tensor = tt_net_tensors(net, &count);
    float *params = tt_array0(tt_net_param_count(tt_net_spec(net)), sizeof *params);
    for (size_t t = 0; t < count; t++) {
        const bool weight = tensor[t].kind == TT_TENSOR_DENSE || tensor[t].kind == TT_TENSOR_KERNEL;
        const bool table = tensor[t].kind == TT_TENSOR_TABLE;
        const float scale = weight || table ? (float)(1.7 / sqrt(table ? tensor[t].cols : tensor[t].rows)) : 0.3f;
        for (size_t i = 0; i < tt_tensor_count(&tensor[t]); i++)
            params[tensor[t].offset + tt_tensor_at(&tensor[t], i)] = number(100 + (uint32_t)t, i) * scale;
    }
    assert_ok(tt_net_put(net, place->stream, 0, params));
    free(params);
}

/*  What of each element was chosen in a row, one-hot. */
static void put_choices(uint32_t r, float *to)
{
    for (uint32_t c = 0; c < CHOICES; to += s_choice[c++]) {
        memset(to, 0, s_choice[c] * sizeof *to);
        const double share = ((double)number(2, (size_t)r * CHOICES + c) + 1) / 2;
        to[(size_t)(share * s_choice[c])] = 1.0f;
    }
}

/*  Rows in their order. */
static rows_t rows_of(const net_t *net, const tt_net_spec_t *spec)
{
    rows_t rows = fixture_rows(spec, net->rows);
    const size_t elements = spec->part[0].elements, bytes = tt_net_row_bytes(spec);
    for (uint32_t r = 0; r < net->rows; r++) {
        uint8_t *at = (uint8_t *)rows.table + r * bytes;
        for (size_t i = 0; i < elements; i++)
            at[i] = (uint8_t)floorf((number(1, r * elements + i) + 1.0f) * (net->divisor + 1.0f) / 2.0f);
        const size_t numbers = embeds(net) ? 0 : net->behind;
        if (!numbers && net->behind)
            put_choices(r, (float *)(void *)(at + tt_spec_part_bytes(&spec->part[0])));
        for (size_t i = 0; i < numbers; i++)
            memcpy(at + tt_spec_part_bytes(&spec->part[0]) + i * sizeof(float),
                &(float){number(2, r * (size_t)net->behind + i)}, sizeof(float));
        rows.row[r] = r;
        rows.obs[r] = rows.by_number[r];
    }
    return rows;
}

/*  1/2 the sum of the squared errors of both heads. */
static void squares(const void *params, const void *const *input, const tt_loss_block_t *block)
{
    (void)params;
    (void)input;
    const uint32_t outs[] = {ACTIONS, 1};
    for (uint32_t s = 0; s < 2; s++)
        for (uint32_t i = 0; i < outs[s] * TT_BLOCK; i++) {
            const uint32_t a = i / TT_BLOCK, r = i % TT_BLOCK;
            const float error =
                r < block->rows ? block->head[s][i] - number(3 + s, (size_t)block->row[r] * outs[s] + a) : 0.0f;
            block->d_head[s][i] = error;
            block->stats[0] += 0.5f * error * error;
        }
}

/* ---- what it gives --------------------------------------------------------------------------------------------------- */

static const tt_st_array_t *recorded(const tt_st_t *file, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static const tt_st_array_t *recorded(const tt_st_t *file, const char *fmt, ...)
{
    char name[96];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    const tt_st_array_t *array = tt_st_find(file, name);
    if (!array)
        fail_msg("PyTorch has no %s", name);
    return array;
}

static void check_shape(const tt_st_t *file, const char *net, const tt_tensor_t *tensor)
{
    const tt_st_array_t *array = recorded(file, "%s.shape.%s", net, tensor->name);
    uint64_t shape[4];
    const uint32_t rank = tt_tensor_shape(tensor, shape);
    assert_int_equal(array->bytes, rank * sizeof(uint64_t));
    assert_memory_equal(array->data, shape, array->bytes);
}

/*  Every n-th number, and the norm, which sees the others. */
static void check_gradient(const tt_st_t *file, const char *net, const tt_tensor_t *tensor, const float *grad)
{
    const size_t count = tt_tensor_count(tensor), stride = count < 2 * SAMPLES ? 1 : count / SAMPLES;
    const tt_st_array_t *sample = recorded(file, "%s.grad.%s", net, tensor->name);
    float *ours = tt_array0(count, sizeof *ours);
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        const float g = grad[tensor->offset + tt_tensor_at(tensor, i)];
        sum += (double)g * (double)g;
        if (i % stride == 0)
            ours[i / stride] = g;
    }
    const float norm = (float)sqrt(sum);
    golden_compare(&norm, recorded(file, "%s.norm.%s", net, tensor->name)->data, 1, 2e-5, tensor->name);
    assert_int_equal(sample->bytes / sizeof(float), (count + stride - 1) / stride);
    golden_compare(ours, sample->data, sample->bytes / sizeof(float), 3e-5, tensor->name);
    free(ours);
}

static void check_heads(const tt_st_t *file, const place_t *place, tt_net_t *net, const net_t *of, const rows_t *rows)
{
    float *actor = tt_array0(of->rows * (ACTIONS + 1), sizeof *actor), *critic = actor + of->rows * ACTIONS;
    float *const out[] = {NULL, actor, critic};
    fixture_heads(place, net, 0, rows->obs, of->rows, out);
    golden_compare(actor, recorded(file, "%s.actor", of->name)->data, of->rows * ACTIONS, 5e-6, "actor");
    golden_compare(critic, recorded(file, "%s.critic", of->name)->data, of->rows, 5e-6, "critic");
    free(actor);
}

static void check_net(const tt_st_t *file, const net_t *of)
{
    const tt_net_spec_t spec = spec_of(of);
    const tt_objective_t objective = {.name = "squares",
        .stages = 2,
        .stage = {{.tower = 1, .grad = true}, {.tower = 2, .grad = true}},
        .loss = squares};
    place_t place;
    tt_net_t *net = NULL;
    fixture_open(&place, 1);
    assert_ok(tt_net_new(&net, place.device, &spec));
    put_params(&place, net);
    rows_t rows = rows_of(of, &spec);
    check_heads(file, &place, net, of, &rows);
    const tt_pass_t pass = {.objective = &objective, .row = rows.row, .rows = of->rows};
    float *grad = tt_array0(tt_net_grad_count(&spec), sizeof *grad);
    assert_ok(fixture_pass(&place, net, &pass, &rows, NULL, grad));
    golden_compare(grad + tt_net_stats_offset(&spec), recorded(file, "%s.loss", of->name)->data, 1, 1e-5, "loss");
    size_t count = 0;
    const tt_tensor_t *tensor = tt_net_tensors(net, &count);
    for (size_t t = 0; t < count; t++) {
        check_shape(file, of->name, &tensor[t]);
        check_gradient(file, of->name, &tensor[t], grad);
    }
    free(grad);
    fixture_rows_free(&rows);
    tt_net_destroy(&net);
    fixture_close(&place);
}

static void test_encoders(void **state)
{
    (void)state;
    tt_st_t *file = NULL;
    assert_ok(st_file(&file, TT_SOURCE_DIR "/tests/golden/torch/nn-encoders.safetensors"));
    for (size_t i = 0; i < TT_COUNT(s_nets); i++) {
        print_message("%s\n", s_nets[i].name);
        check_net(file, &s_nets[i]);
    }
    tt_st_destroy(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_encoders)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
