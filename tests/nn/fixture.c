#include "tests/nn/fixture.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/nn/backend.h"

#define LAYERS(...) .hidden_count = sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), .hidden = {__VA_ARGS__}
#define PAIR(obs_, out_, log_std_, ...)                                       \
    {                                                                         \
        .obs = obs_, .towers = 2, .tower = {                                  \
            {.name = "actor", .out = out_, .log_std = log_std_, __VA_ARGS__}, \
            {.name = "critic", .out = 1, __VA_ARGS__}                         \
        }                                                                     \
    }
#define ENCODER(first, count) .kind = TT_TOWER_ENCODER, .layer = first, .layers = count
#define PICTURE(part_, height_, width_, channels_) \
    .part = part_, .height = height_, .width = width_, .channels = channels_
#define WINDOW(kind_, kh, kw, sh, sw, ph, pw, activation_) \
    .kind = kind_, .kernel = {kh, kw}, .stride = {sh, sw}, .pad = {ph, pw}, .activation = activation_
#define CONV(units_, ...)                                     \
    {                                                         \
        .units = units_, WINDOW(TT_LAYER_CONV2D, __VA_ARGS__) \
    }
#define POOL(...)                              \
    {                                          \
        WINDOW(TT_LAYER_MAX_POOL, __VA_ARGS__) \
    }
#define MEAN(...)                              \
    {                                          \
        WINDOW(TT_LAYER_AVG_POOL, __VA_ARGS__) \
    }
#define DENSE(units_, activation_)                                         \
    {                                                                      \
        .kind = TT_LAYER_DENSE, .units = units_, .activation = activation_ \
    }
#define NORM(activation_)                                      \
    {                                                          \
        .kind = TT_LAYER_LAYER_NORM, .activation = activation_ \
    }
#define ACTIVATION(activation_)                                \
    {                                                          \
        .kind = TT_LAYER_ACTIVATION, .activation = activation_ \
    }
#define RESIDUAL(span_, activation_)                                        \
    {                                                                       \
        .kind = TT_LAYER_RESIDUAL, .span = span_, .activation = activation_ \
    }
#define CONCAT(part_, activation_)                                        \
    {                                                                     \
        .kind = TT_LAYER_CONCAT, .part = part_, .activation = activation_ \
    }
#define EMBED(part_, units_, first, count)                                                         \
    {                                                                                              \
        .kind = TT_LAYER_EMBED, .part = part_, .units = units_, .choice = first, .choices = count, \
        .activation = TT_NN_NONE                                                                   \
    }
#define RELU .activation = TT_NN_RELU

const tt_net_spec_t fixture_specs[] = {
    PAIR(4, 2, 0, LAYERS(64, 64)),
    PAIR(4, 2, 0, RELU, LAYERS(64, 64)),
    PAIR(3, 1, 1, LAYERS(64, 64)),
    PAIR(1, 1, 0, .hidden_count = 0),
    PAIR(17, 3, 3, .hidden_count = 0),
    PAIR(5, 2, 0, LAYERS(1)),
    PAIR(6, 5, 0, RELU, LAYERS(7)),
    PAIR(16, 4, 4, LAYERS(33, 18, 50)),
    PAIR(31, 6, 0, LAYERS(80, 96)),
    PAIR(100, 18, 0, RELU, LAYERS(128, 130)),
    PAIR(9, 33, 33, LAYERS(16, 15, 14, 13, 12, 11, 10, 9)),
    /* a trunk and two heads on it */
    {.obs = 4,
        .towers = 3,
        .tower = {{.name = "trunk", LAYERS(64, 64)}, {.name = "actor", .from = 1, .out = 2},
            {.name = "critic", .from = 1, .out = 1}}},
    /* three readers, with layers of their own or without, of other activations and in another group */
    {.obs = 21,
        .towers = 4,
        .ride = 3,
        .tower = {{.name = "trunk", RELU, LAYERS(30, 33)}, {.name = "a", .from = 1, LAYERS(20), .out = 3},
            {.name = "b", .from = 1, .out = 5}, {.name = "c", .from = 1, RELU, LAYERS(7, 17), .out = 1, .group = 1}}},
    /* a trunk on a trunk, each with a head between; and a tower that reads the observation itself */
    {.obs = 7,
        .towers = 6,
        .sets = 2,
        .tower = {{.name = "low", LAYERS(16, 48)}, {.name = "high", .from = 1, RELU, LAYERS(10)},
            {.name = "x", .from = 1, .out = 2, .group = 1}, {.name = "y", .from = 2, .out = 3, .group = 1},
            {.name = "z", .from = 2, LAYERS(9), .out = 1, .group = 1},
            {.name = "own", LAYERS(11), .out = 4, .group = 2}}},
    /* an actor and two critics that follow it */
    {.obs = 11,
        .towers = 3,
        .sets = 3,
        .ride = 70,
        .tower = {{.name = "actor", RELU, LAYERS(40, 32), .out = 6, .log_std = 4},
            {.name = "q1", RELU, LAYERS(32, 40), .out = 1, .group = 1},
            {.name = "q2", RELU, LAYERS(32, 40), .out = 1, .group = 1}}},
    /* as many as can be */
    {.obs = 3,
        .towers = 8,
        .sets = TT_SETS_MAX,
        .tower = {{.name = "t0", .out = 1}, {.name = "t1", .out = 2, .group = 1}, {.name = "t2", .out = 16, .group = 2},
            {.name = "t3", .out = 3, .group = 3}, {.name = "t4", .out = 1, .group = 4},
            {.name = "t5", .out = 2, .group = 5}, {.name = "t6", .out = 5, .group = 6},
            {.name = "t7", .out = 1, .group = 7}}},
    /* a dueling tower on streams that read a trunk, and another reader of it */
    {.obs = 6,
        .towers = 5,
        .sets = 2,
        .tower = {{.name = "trunk", RELU, LAYERS(24, 20)}, {.name = "value", .from = 1, RELU, LAYERS(18), .out = 1},
            {.name = "advantage", .from = 1, LAYERS(17), .out = 5},
            {.name = "q", .out = 5, .kind = TT_TOWER_DUELING, .value = 1, .advantage = 2},
            {.name = "own", .from = 1, .out = 2, .group = 1}}},
    /* two of them, apart, before and behind others; a value of one choice */
    {.obs = 5,
        .towers = 7,
        .sets = 2,
        .ride = 2,
        .tower = {{.name = "a1", LAYERS(7), .out = 3}, {.name = "v1", .out = 1, .group = 1},
            {.name = "q1", .out = 3, .kind = TT_TOWER_DUELING, .value = 1, .advantage = 0, .group = 1},
            {.name = "x", RELU, LAYERS(11), .out = 2, .group = 1}, {.name = "a2", .out = 1, .group = 2},
            {.name = "v2", LAYERS(16, 9), .out = 1, .group = 2},
            {.name = "q2", .out = 1, .kind = TT_TOWER_DUELING, .value = 5, .advantage = 4, .group = 2}}},
    /* rows of parts: bytes before, between and behind floats, of no whole words */
    {.obs = 30,
        .parts = 5,
        .part = {{.bytes = true, .elements = 7, .divisor = 1}, {.elements = 2},
            {.bytes = true, .elements = 17, .divisor = 1}, {.elements = 1},
            {.bytes = true, .elements = 3, .divisor = 1}},
        .towers = 2,
        .sets = 2,
        .tower = {{.name = "a", LAYERS(20), .out = 3}, {.name = "b", RELU, LAYERS(16, 8), .out = 1, .group = 1}}},
    /* floats in parts are floats */
    {.obs = 4,
        .parts = 2,
        .part = {{.elements = 1}, {.elements = 3}},
        .towers = 2,
        .tower = {{.name = "actor", LAYERS(64, 64), .out = 2}, {.name = "critic", LAYERS(64, 64), .out = 1}}},
    /* encoders. Bits as MinAtar's; a trunk behind it, and target networks */
    {.obs = 400,
        .parts = 1,
        .part = {{.bytes = true, .elements = 400, .divisor = 1}},
        .towers = 3,
        .sets = 2,
        .layers = 2,
        .layer = {CONV(16, 3, 3, 1, 1, 0, 0, TT_NN_RELU), DENSE(32, TT_NN_RELU)},
        .tower = {{.name = "encoder", ENCODER(0, 2), PICTURE(0, 10, 10, 4)}, {.name = "actor", .from = 1, .out = 3},
            {.name = "critic", .from = 1, LAYERS(9), .out = 1}}},
    /* planes of bytes; odd strides and padding; readers of a picture, with layers and without, in another group */
    {.obs = 309,
        .parts = 2,
        .part = {{.bytes = true, .elements = 306, .divisor = 255}, {.elements = 3}},
        .towers = 4,
        .sets = 2,
        .layers = 3,
        .layer = {CONV(7, 5, 4, 2, 3, 2, 1, TT_NN_TANH), CONV(18, 3, 2, 1, 2, 0, 1, TT_NN_RELU), CONCAT(1, TT_NN_NONE)},
        .tower = {{.name = "encoder", ENCODER(0, 3), PICTURE(0, 9, 17, 2), .planes = 2},
            {.name = "a", .from = 1, RELU, LAYERS(13), .out = 2}, {.name = "b", .from = 1, .out = 4, .group = 1},
            {.name = "c", .from = 1, LAYERS(5), .out = 1, .group = 1}}},
    /* as IMPALA's: pooling, residuals in residuals, a part behind, a norm; under a dueling tower */
    {.obs = 228,
        .parts = 3,
        .part = {{.elements = 5}, {.elements = 216}, {.bytes = true, .elements = 7, .divisor = 1}},
        .towers = 4,
        .sets = 2,
        .ride = 1,
        .layers = 14,
        .layer = {CONV(5, 3, 3, 1, 1, 1, 1, TT_NN_NONE), POOL(3, 3, 2, 2, 1, 1, TT_NN_NONE), RESIDUAL(6, TT_NN_RELU),
            ACTIVATION(TT_NN_RELU), CONV(5, 3, 3, 1, 1, 1, 1, TT_NN_TANH), RESIDUAL(2, TT_NN_NONE),
            ACTIVATION(TT_NN_TANH), CONV(5, 1, 1, 1, 1, 0, 0, TT_NN_TANH), NORM(TT_NN_NONE), CONCAT(0, TT_NN_NONE),
            DENSE(20, TT_NN_TANH), CONCAT(2, TT_NN_TANH), NORM(TT_NN_RELU), DENSE(17, TT_NN_NONE)},
        .tower = {{.name = "encoder", ENCODER(0, 14), PICTURE(1, 9, 8, 3)},
            {.name = "value", .from = 1, LAYERS(8), .out = 1}, {.name = "advantage", .from = 1, .out = 3},
            {.name = "q", .out = 3, .kind = TT_TOWER_DUELING, .value = 1, .advantage = 2}}},
    /* no picture; dense layers in a residual, at the very beginning; one for each reader, by the same list; and an MLP beside */
    {.obs = 26,
        .parts = 2,
        .part = {{.elements = 6}, {.bytes = true, .elements = 20, .divisor = 1}},
        .towers = 5,
        .sets = 2,
        .layers = 6,
        .layer = {RESIDUAL(2, TT_NN_NONE), DENSE(11, TT_NN_RELU), DENSE(26, TT_NN_NONE), CONCAT(1, TT_NN_NONE),
            DENSE(16, TT_NN_RELU), CONCAT(0, TT_NN_NONE)},
        .tower = {{.name = "actor_encoder", ENCODER(0, 6)}, {.name = "actor", .from = 1, .out = 2, .log_std = 2},
            {.name = "critic_encoder", ENCODER(0, 6), .group = 1},
            {.name = "critic", .from = 3, RELU, LAYERS(12), .out = 1, .group = 1},
            {.name = "own", LAYERS(5), .out = 1, .group = 1}}},
    /* much before the first weight, and a residual that ends with the encoder; floats alone, as a picture */
    {.obs = 150,
        .towers = 3,
        .layers = 7,
        .layer = {POOL(2, 3, 1, 2, 1, 0, TT_NN_TANH), RESIDUAL(3, TT_NN_NONE), ACTIVATION(TT_NN_TANH),
            RESIDUAL(1, TT_NN_TANH), ACTIVATION(TT_NN_RELU), RESIDUAL(1, TT_NN_TANH), NORM(TT_NN_NONE)},
        .tower = {{.name = "encoder", ENCODER(0, 7), PICTURE(0, 6, 5, 5), .planes = 5},
            {.name = "actor", .from = 1, LAYERS(10), .out = 2}, {.name = "critic", .from = 1, .out = 1}}},
    /* nothing but bits: layers that take them as they are, and a head that does not */
    {.obs = 203,
        .parts = 1,
        .part = {{.bytes = true, .elements = 203, .divisor = 1}},
        .towers = 3,
        .sets = 2,
        .tower = {{.name = "a", LAYERS(70), .out = 3}, {.name = "b", RELU, LAYERS(16, 8), .out = 1, .group = 1},
            {.name = "c", .out = 2, .group = 1}}},
    /* means: before the first weight, over windows that overlap and reach over the border, and of one number; more channels than lanes */
    {.obs = 216,
        .parts = 1,
        .part = {{.bytes = true, .elements = 216, .divisor = 255}},
        .towers = 3,
        .layers = 5,
        .layer = {MEAN(2, 3, 1, 2, 1, 0, TT_NN_TANH), CONV(18, 3, 2, 1, 1, 1, 0, TT_NN_RELU),
            MEAN(3, 2, 2, 1, 1, 1, TT_NN_NONE), MEAN(1, 1, 1, 1, 0, 0, TT_NN_RELU), NORM(TT_NN_NONE)},
        .tower = {{.name = "encoder", ENCODER(0, 5), PICTURE(0, 9, 8, 3)}, {.name = "actor", .from = 1, .out = 2},
            {.name = "critic", .from = 1, LAYERS(7), .out = 1}}},
    /* noisy layers: read in place, in panels and padded; a dueling tower's, on a trunk without */
    {.obs = 6,
        .towers = 5,
        .sets = 2,
        .ride = 3,
        .tower = {{.name = "trunk", RELU, LAYERS(24, 20)},
            {.name = "value", .from = 1, RELU, LAYERS(16, 70), .out = 1, .noise = 0.5f},
            {.name = "advantage", .from = 1, LAYERS(17), .out = 5, .noise = 1},
            {.name = "q", .out = 5, .kind = TT_TOWER_DUELING, .value = 1, .advantage = 2},
            {.name = "own", LAYERS(9), .out = 2, .group = 1, .noise = 0.25f}}},
    /* a noisy trunk, and heads alone, one with deviations of its own, behind pictures */
    {.obs = 120,
        .parts = 1,
        .part = {{.bytes = true, .elements = 120, .divisor = 1}},
        .towers = 4,
        .layers = 1,
        .layer = {CONV(6, 3, 3, 1, 1, 0, 0, TT_NN_RELU)},
        .tower = {{.name = "encoder", ENCODER(0, 1), PICTURE(0, 6, 5, 4)},
            {.name = "trunk", .from = 1, LAYERS(18), .noise = 0.5f},
            {.name = "actor", .from = 2, .out = 3, .log_std = 2, .noise = 0.5f},
            {.name = "critic", .from = 2, .out = 1}}},
    /* choices embedded with nothing before them: one of several elements, one of a stack's frames; one list for two encoders */
    {.obs = 34,
        .parts = 3,
        .part = {{.elements = 10}, {.elements = 3}, {.elements = 21}},
        .towers = 4,
        .sets = 2,
        .layers = 4,
        .layer = {EMBED(0, 5, 0, 3), CONCAT(1, TT_NN_NONE), EMBED(2, 16, 3, 1), DENSE(12, TT_NN_TANH)},
        .choices = 4,
        .choice = {5, 2, 3, 7},
        .tower = {{.name = "actor_encoder", ENCODER(0, 4), .blank = true}, {.name = "actor", .from = 1, .out = 3},
            {.name = "critic_encoder", ENCODER(0, 4), .blank = true, .group = 1},
            {.name = "critic", .from = 3, RELU, LAYERS(9), .out = 1, .group = 1}}},
    /* behind a picture, and at the end */
    {.obs = 76,
        .parts = 3,
        .part = {{.elements = 4}, {.bytes = true, .elements = 60, .divisor = 255}, {.elements = 12}},
        .towers = 3,
        .layers = 4,
        .layer = {CONV(4, 3, 2, 1, 1, 0, 0, TT_NN_TANH), EMBED(2, 3, 0, 2), NORM(TT_NN_RELU), EMBED(0, 1, 2, 1)},
        .choices = 3,
        .choice = {11, 1, 4},
        .tower = {{.name = "encoder", ENCODER(0, 4), PICTURE(1, 6, 5, 2)}, {.name = "actor", .from = 1, .out = 2},
            {.name = "critic", .from = 1, LAYERS(6), .out = 1}}},
    /* means of parts of a head, with layers behind a trunk or none; of parts of one; of a noisy one */
    {.obs = 6,
        .towers = 7,
        .sets = 2,
        .ride = 2,
        .tower = {{.name = "trunk", RELU, LAYERS(24)}, {.name = "quantiles", .from = 1, LAYERS(18), .out = 15},
            {.name = "q", .out = 3, .kind = TT_TOWER_MEAN, .value = 1, .advantage = 1},
            {.name = "x", .from = 1, .out = 2, .group = 1},
            {.name = "same", .out = 2, .kind = TT_TOWER_MEAN, .value = 3, .advantage = 3, .group = 1},
            {.name = "y", LAYERS(9), .out = 7, .group = 2, .noise = 0.5f},
            {.name = "one", .out = 1, .kind = TT_TOWER_MEAN, .value = 5, .advantage = 5, .group = 2}}},
    /* atoms of a dueling tower, whose choices have five numbers each */
    {.obs = 6,
        .towers = 6,
        .sets = 2,
        .ride = 2,
        .tower = {{.name = "trunk", RELU, LAYERS(24)}, {.name = "value", .from = 1, RELU, LAYERS(18), .out = 5},
            {.name = "advantage", .from = 1, LAYERS(17), .out = 15},
            {.name = "atoms", .out = 15, .kind = TT_TOWER_DUELING, .value = 1, .advantage = 2},
            {.name = "q", .out = 3, .kind = TT_TOWER_ATOMS, .value = 3, .advantage = 3, .low = -2, .high = 3},
            {.name = "own", .from = 1, .out = 2, .group = 1}}},
    /* atoms of a noisy head; means of a dueling one */
    {.obs = 5,
        .towers = 6,
        .sets = 2,
        .tower = {{.name = "logits", LAYERS(9), .out = 14, .noise = 0.5f},
            {.name = "expected", .out = 2, .kind = TT_TOWER_ATOMS, .low = 0, .high = 0.5f},
            {.name = "v", .out = 4, .group = 1}, {.name = "a", LAYERS(11), .out = 12, .group = 1},
            {.name = "d", .out = 12, .kind = TT_TOWER_DUELING, .value = 2, .advantage = 3, .group = 1},
            {.name = "m", .out = 3, .kind = TT_TOWER_MEAN, .value = 4, .advantage = 4, .group = 1}}},
};
const size_t fixture_spec_count = TT_COUNT(fixture_specs), fixture_pair_count = 11;

float fixture_number(uint32_t what, uint64_t k)
{
    uint32_t word[4];
    tt_draw(word, 77, TT_STREAM_TEST, what, k);
    return 2.0f * tt_unit_f32(word[0]) - 1.0f;
}

/*  The number x of -2 .. 2 as a part has it: a third of the bytes are not 0. */
static float as_part(const tt_part_t *part, float x)
{
    if (!part->bytes)
        return x;
    return part->divisor == 1.0f ? (float)(x > 0.67f) : floorf((x + 2.0f) * 63.9f);
}

static void put_part(const tt_part_t *part, float *number, char *to)
{
    for (uint32_t i = 0; i < part->elements; i++) {
        number[i] = as_part(part, number[i]);
        if (part->bytes)
            ((uint8_t *)to)[i] = (uint8_t)number[i];
        else
            memcpy(to + i * sizeof(float), &number[i], sizeof(float));
    }
}

/*  The groups of a part, one-hot, by the first number of each; one time in n + 1 there is no choice. */
static void put_choices(const tt_net_spec_t *spec, const tt_layer_t *layer, float *number)
{
    const float *end = number + spec->part[layer->part].elements;
    for (uint32_t c = 0; number < end; c = (c + 1) % layer->choices) {
        const uint32_t n = spec->choice[layer->choice + c];
        const uint32_t chosen = (uint32_t)((*number + 2.0f) / 4.0f * (float)(n + 1));
        for (uint32_t i = 0; i < n; i++)
            *number++ = i == chosen ? 1.0f : 0.0f;
    }
}

/*  Of what layers embed. */
static void choose(const tt_net_spec_t *spec, float *row)
{
    for (uint32_t l = 0; l < spec->layers; l++) {
        float *part = row;
        for (uint32_t p = 0; p < spec->layer[l].part; p++)
            part += spec->part[p].elements;
        if (spec->layer[l].kind == TT_LAYER_EMBED)
            put_choices(spec, &spec->layer[l], part);
    }
}

static void *pack(const tt_net_spec_t *spec, size_t rows, float *data)
{
    char *memory = tt_array0(rows, tt_net_row_bytes(spec));
    for (size_t k = 0; k < rows; k++) {
        char *to = memory + k * tt_net_row_bytes(spec);
        for (uint32_t p = 0; p < spec->parts; p++) {
            put_part(&spec->part[p], data, to);
            data += spec->part[p].elements;
            to += tt_spec_part_bytes(&spec->part[p]);
        }
    }
    return memory;
}

static rows_t make_rows(const tt_net_spec_t *spec, size_t rows, uint32_t what)
{
    rows_t self = {.rows = rows};
    self.data = tt_array0(rows * spec->obs, sizeof *self.data);
    self.obs = tt_array0(rows, sizeof *self.obs);
    self.plain = tt_array0(rows, sizeof *self.plain);
    self.row = tt_array0(rows, sizeof *self.row);
    self.by_number = tt_array0(rows, sizeof *self.by_number);
    for (size_t i = 0; i < rows * spec->obs; i++)
        self.data[i] = 2.0f * fixture_number(what, i);
    for (size_t k = 0; k < rows; k++)
        choose(spec, self.data + k * spec->obs);
    self.table = spec->parts ? pack(spec, rows, self.data) : self.data;
    for (size_t k = 0; k < rows; k++) {
        self.row[k] = (uint32_t)(rows - 1 - k);
        self.obs[k] = (const void *)((char *)self.table + self.row[k] * tt_net_row_bytes(spec));
        self.plain[k] = self.data + self.row[k] * spec->obs;
        self.by_number[k] = (const void *)((char *)self.table + k * tt_net_row_bytes(spec));
    }
    return self;
}

rows_t fixture_rows(const tt_net_spec_t *spec, size_t rows)
{
    return make_rows(spec, rows, 3);
}

rows_t fixture_rows_next(const tt_net_spec_t *spec, size_t rows)
{
    return make_rows(spec, rows, 4);
}

void fixture_rows_free(rows_t *rows)
{
    if (rows->table != rows->data)
        free(rows->table);
    free(rows->data);
    free(rows->obs);
    free(rows->plain);
    free(rows->by_number);
    free(rows->row);
    *rows = (rows_t){0};
}

const char *fixture_backend(void)
{
    const char *wish = getenv("TT_DEVICE");
    return wish && *wish ? wish : "cpu";
}

const char *fixture_card(void)
{
    const char *named = getenv("TT_TEST_CARD");
    return named ? named : "cuda-sim";
}

void fixture_open_on(place_t *self, const char *backend, uint32_t lanes)
{
    assert_ok(tt_device_open(&self->device, backend, 0, lanes));
    assert_ok(tt_stream_new(&self->stream, self->device));
}

void fixture_open(place_t *self, uint32_t lanes)
{
    fixture_open_on(self, NULL, lanes);
}

void fixture_close(place_t *self)
{
    tt_stream_destroy(&self->stream);
    tt_device_close(&self->device);
}

bool fixture_build(place_t *self, const char *build)
{
    *self = (place_t){0};
    assert_int_equal(setenv("TT_CPU", build, 1), 0);
    const tt_status_t status = tt_device_open(&self->device, NULL, 0, 1);
    assert_int_equal(unsetenv("TT_CPU"), 0);
    if (status == TT_UNSUPPORTED) {
        printf("not tested: %s\n", tt_err_text());
        return false;
    }
    assert_ok(status);
    char name[32];
    snprintf(name, sizeof name, "%s/%s", fixture_backend(), build);
    assert_string_equal(tt_device_name(self->device), name);
    assert_ok(tt_stream_new(&self->stream, self->device));
    return true;
}

const tt_noise_t fixture_noise = {.seed = 31, .stream = TT_STREAM_NOISE_LEARN, .clock = 5};

double fixture_normal(uint32_t number, size_t i)
{
    uint32_t word[4];
    tt_draw(word, fixture_noise.seed, fixture_noise.stream, number, fixture_noise.clock * (1 << 20) + i / 4);
    const uint32_t *pair = word + i % 4 / 2 * 2;
    const double radius = sqrt(-2 * log(((pair[0] >> 8) + 1) / 16777216.0));
    const double turn = 6.283185307179586 * ((pair[1] >> 8) / 16777216.0);
    return radius * (i % 2 ? sin(turn) : cos(turn));
}

tt_net_t *fixture_net(const place_t *place, const tt_net_spec_t *spec)
{
    tt_net_t *net = NULL;
    assert_ok(tt_net_new(&net, place->device, spec));
    size_t count = 0;
    const tt_tensor_t *tensors = tt_net_tensors(net, &count);
    float *params = tt_array0(tt_net_param_count(spec), sizeof *params);
    for (size_t t = 0; t < count; t++)
        for (size_t i = 0; i < (size_t)tensors[t].rows * tensors[t].cols; i++) {
            const float x = fixture_number(100 + (uint32_t)t, i);
            float *at = &params[tensors[t].offset + i];
            if (strstr(tensors[t].name, "_sigma"))
                *at = x * 0.4f / sqrtf((float)tensors[t].rows);
            else if (strstr(tensors[t].name, "weight"))
                *at = x * 1.7f / sqrtf((float)tensors[t].rows);
            else
                *at = strstr(tensors[t].name, "log_std") ? -0.3f + 0.2f * x : 0.3f * x;
        }
    for (uint32_t set = 0; set == 0 || set < spec->sets; set++) {
        assert_ok(tt_net_put(net, place->stream, set, params));
        assert_ok(tt_net_noise(net, place->stream, set, &fixture_noise));
    }
    free(params);
    return net;
}

float *fixture_params(const place_t *place, const tt_net_t *net, uint32_t set)
{
    float *params = tt_array0(tt_net_param_count(tt_net_spec(net)), sizeof *params);
    assert_ok(tt_net_get(net, place->stream, set, params));
    return params;
}

uint32_t fixture_outs(const tt_net_spec_t *spec)
{
    uint32_t outs = 0;
    for (uint32_t t = 0; t < spec->towers; t++)
        outs += spec->tower[t].out;
    return outs;
}

void fixture_heads(
    const place_t *place, tt_net_t *net, uint32_t set, const float *const *obs, size_t rows, float *const *out)
{
    tt_table_t *table = NULL;
    assert_ok(tt_table_new(&table, place->device, tt_net_row_bytes(tt_net_spec(net))));
    assert_ok(tt_table_put_rows(table, place->stream, (const void *const *)obs, rows));
    assert_ok(tt_net_forward(net, place->stream, set, table, rows, NULL, out));
    assert_ok(tt_stream_sync(place->stream));
    tt_table_destroy(&table);
}

void fixture_forward(
    const place_t *place, tt_net_t *net, uint32_t set, const float *const *obs, size_t rows, float *out)
{
    const tt_net_spec_t *spec = tt_net_spec(net);
    float *at[TT_TOWERS_MAX] = {NULL};
    for (uint32_t t = 0; t < spec->towers; out += rows * spec->tower[t++].out)
        at[t] = out;
    fixture_heads(place, net, set, obs, rows, at);
}

bool fixture_trained(const tt_net_spec_t *spec, uint32_t t)
{
    const uint32_t q = tt_spec_made_of(spec, t);
    const bool last = q == spec->towers || spec->tower[q].kind == TT_TOWER_ATOMS;
    return spec->tower[t].out && spec->tower[t].kind != TT_TOWER_ATOMS && last;
}

tt_objective_t fixture_objective(const tt_net_spec_t *spec)
{
    tt_objective_t self = {.name = "fixture", .loss = fixture_loss};
    for (uint32_t t = 0; t < spec->towers; t++)
        if (fixture_trained(spec, t))
            self.stage[self.stages++] = (tt_objective_stage_t){.tower = (uint8_t)t, .frame = TT_AT, .grad = true};
    return self;
}

/*  Rows of a pass by their numbers: the row's own as a list, the next side by side. */
static tt_table_t *put_frame(const place_t *place, const rows_t *rows, size_t bytes, bool list)
{
    tt_table_t *table = NULL;
    assert_ok(tt_table_new(&table, place->device, bytes));
    if (list)
        assert_ok(tt_table_put_rows(table, place->stream, (const void *const *)rows->by_number, rows->rows));
    else
        assert_ok(tt_table_put(table, place->stream, rows->table, rows->rows));
    return table;
}

tt_status_t fixture_pass(
    const place_t *place, tt_net_t *net, const tt_pass_t *pass, const rows_t *at, const rows_t *next, float *grad)
{
    const tt_net_spec_t *spec = tt_net_spec(net);
    const rows_t *const frames[TT_FRAMES] = {at, next};
    tt_table_t *table[TT_FRAMES] = {NULL};
    tt_pass_t full = *pass;
    for (int f = 0; f < TT_FRAMES; f++)
        if (frames[f])
            full.obs[f] = table[f] = put_frame(place, frames[f], tt_net_row_bytes(spec), f == TT_AT);
    tt_sums_t *sums = NULL;
    const float *node = NULL;
    assert_ok(tt_sums_new(&sums, net, 1));
    tt_status_t status = tt_sums_compute(sums, place->stream, &full, 0, 1);
    if (status == TT_OK)
        status = tt_sums_node(sums, place->stream, 1, &node);
    if (status == TT_OK)
        memcpy(grad, node, tt_net_grad_count(spec) * sizeof *grad);
    tt_sums_destroy(&sums);
    for (int f = 0; f < TT_FRAMES; f++)
        tt_table_destroy(&table[f]);
    return status;
}

void fixture_grad(const place_t *place, tt_net_t *net, const rows_t *rows, size_t first, size_t count, float *grad)
{
    const tt_net_spec_t *spec = tt_net_spec(net);
    const tt_objective_t objective = fixture_objective(spec);
    const tt_pass_t pass = {.objective = &objective,
        .params = &spec,
        .params_size = sizeof spec,
        .row = rows->row + first,
        .rows = (uint32_t)count};
    assert_ok(fixture_pass(place, net, &pass, rows, NULL, grad));
}

tt_status_t fixture_report(const place_t *place, tt_net_t *net, const tt_sums_t *sums, float *stats, tt_norms_t *norms)
{
    TT_TRY(tt_net_report(net, place->stream, sums, stats, norms));
    TT_TRY(tt_stream_sync(place->stream));
    return tt_norms_check(norms);
}

tt_status_t fixture_step(const place_t *place, tt_net_t *net, tt_opt_t *opt, const float *grad, float lr, float *norm)
{
    tt_sums_t *sums = NULL;
    tt_norms_t norms;
    assert_ok(tt_sums_new(&sums, net, 1));
    assert_ok(tt_sums_put(sums, place->stream, grad));
    assert_ok(tt_opt_step(opt, place->stream, sums, lr));
    const tt_status_t status = fixture_report(place, net, sums, NULL, &norms);
    if (status == TT_OK && norm)
        *norm = norms.newest[opt->group];
    tt_sums_destroy(&sums);
    return status;
}

float fixture_target(uint32_t row, uint32_t output)
{
    return 1.5f * fixture_number(2, (uint64_t)row << 16 | output);
}

/*  One row of one head; `output` is the number of its first output. */
static void row_loss(
    const tt_loss_block_t *block, uint32_t s, uint32_t outs, uint32_t log_stds, uint32_t r, uint32_t output)
{
    const bool there = r < block->rows;
    for (uint32_t a = 0; a < outs; a++) {
        const uint32_t i = a * TT_BLOCK + r;
        if (!there)
            assert_true(block->head[s][i] == 0.0f);
        const float scale = a < log_stds ? expf(-block->log_std[s][a]) : 1.0f;
        const float error = there ? block->head[s][i] - fixture_target(block->row[r], output + a) : 0.0f;
        block->d_head[s][i] = scale * error;
        if (a < log_stds && there)
            block->d_log_std[s][a] -= 0.5f * scale * error * error;
        block->stats[0] += 0.5f * scale * error * error;
    }
}

void fixture_loss(const void *params, const void *const *input, const tt_loss_block_t *block)
{
    (void)input;
    const tt_net_spec_t *spec = *(const tt_net_spec_t *const *)params;
    assert_true(block->rows >= 1 && block->rows <= TT_BLOCK);
    assert_true((block->ride != NULL) == (spec->ride > 0));
    for (uint32_t r = 0; r < TT_BLOCK; r++) {
        uint32_t s = 0, output = 0;
        for (uint32_t t = 0; t < spec->towers; output += spec->tower[t++].out) {
            const tt_tower_t *tower = &spec->tower[t];
            if (!fixture_trained(spec, t))
                continue;
            assert_true((block->log_std[s] != NULL) == (tower->log_std > 0));
            row_loss(block, s++, tower->out, tower->log_std, r, output);
        }
        block->stats[1] += r < block->rows ? 1.0f : 0.0f;
    }
}
