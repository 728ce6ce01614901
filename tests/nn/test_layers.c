/*  Encoders as a shape: lists that are refused, what each layer gives, names and orders of tensors, and how they are put before
 *  towers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/nn/layers.h"
#include "common/nn/tensor.h"
#include "tests/nn/fixture.h"

#define CONV                                                                      \
    {                                                                             \
        .kind = TT_LAYER_CONV2D, .units = 4, .kernel = {3, 3}, .stride = { 1, 1 } \
    }

/*  One encoder on 7 x 6 x 2, and a head on it. */
static tt_net_spec_t spec_of(const tt_layer_t *layer, uint32_t layers)
{
    tt_net_spec_t spec = {.obs = 84, .towers = 2, .layers = layers};
    memcpy(spec.layer, layer, layers * sizeof *layer);
    spec.tower[0] = (tt_tower_t){
        .name = "encoder", .kind = TT_TOWER_ENCODER, .layers = layers, .height = 7, .width = 6, .channels = 2};
    spec.tower[1] = (tt_tower_t){.name = "v", .from = 1, .out = 1};
    return spec;
}

static void assert_refused(const tt_net_spec_t *spec, const char *text)
{
    assert_int_equal(tt_spec_check(spec), TT_INVALID);
    assert_int_equal(tt_net_param_count(spec), 0);
    if (!strstr(tt_err_text(), text))
        fail_msg("'%s' does not say '%s'", tt_err_text(), text);
}

static void test_bad_layers(void **state)
{
    const struct {
        tt_layer_t layer[6];
        uint32_t layers;
        const char *text;
    } bad[] = {
        {{{.kind = (tt_layer_kind_t)9}}, 1, "network: encoder: layer 1 (unknown): kind 9 is unknown"},
        {{{.kind = TT_LAYER_ACTIVATION, .activation = (tt_nn_activation_t)3}}, 1,
            "(activation): activation 3 is unknown"},
        {{{.kind = TT_LAYER_ACTIVATION, .activation = TT_NN_NONE}}, 1, "nothing but an activation, and has none"},
        {{{.kind = TT_LAYER_CONV2D, .kernel = {3, 3}, .stride = {1, 1}}}, 1, "layer 1 (conv2d): it has 0 units; 1 to"},
        {{{.kind = TT_LAYER_CONV2D, .units = 4, .kernel = {3, 0}, .stride = {1, 1}}}, 1,
            "a kernel of 3 x 0 and a stride"},
        {{{.kind = TT_LAYER_CONV2D, .units = 4, .kernel = {3, 3}, .stride = {0, 1}}}, 1, "a stride of 0 x 1; 1 to 255"},
        {{CONV, {.kind = TT_LAYER_CONV2D, .units = 4, .kernel = {5, 5}, .stride = {1, 1}}}, 2,
            "layer 2 (conv2d): a kernel of 5 x 5 does not fit a picture of 5 x 4 with padding of 0 x 0"},
        {{{.kind = TT_LAYER_CONV2D, .units = 4, .kernel = {3, 3}, .stride = {1, 1}, .pad = {0, 3}}}, 1,
            "padding of 0 x 3 for a kernel of 3 x 3: it must be smaller"},
        {{{.kind = TT_LAYER_MAX_POOL, .kernel = {3, 3}, .stride = {1, 1}, .pad = {2, 0}}}, 1,
            "it must be at most half"},
        {{{.kind = TT_LAYER_MAX_POOL, .kernel = {17, 16}, .stride = {1, 1}, .pad = {8, 8}}}, 1,
            "a window of 17 x 16; 256"},
        {{{.kind = TT_LAYER_AVG_POOL, .kernel = {2, 3}, .stride = {1, 1}, .pad = {0, 2}}}, 1,
            "layer 1 (avg_pool): padding of 0 x 2 for a kernel of 2 x 3: it must be at most half"},
        {{{.kind = TT_LAYER_DENSE, .units = 9}, {.kind = TT_LAYER_AVG_POOL, .kernel = {1, 1}, .stride = {1, 1}}}, 2,
            "layer 2 (avg_pool): it needs a picture"},
        {{{.kind = TT_LAYER_DENSE, .units = 9}, CONV}, 2,
            "layer 2 (conv2d): it needs a picture, and a vector of 9 numbers"},
        {{{.kind = TT_LAYER_DENSE, .units = TT_UNITS_MAX}, {.kind = TT_LAYER_DENSE, .units = TT_UNITS_MAX}}, 2,
            "layer 2 (dense): 65536 numbers for each of 65536 units"},
        {{{.kind = TT_LAYER_CONCAT, .part = 1}}, 1, "layer 1 (concat): it appends part 1 of an observation of 1"},
        {{{.kind = TT_LAYER_RESIDUAL, .span = 1}, CONV}, 2,
            "layer 1 (residual): 7 x 6 x 2 comes to it, and what it spans makes 5 x 4 x 4 of it"},
        {{{.kind = TT_LAYER_RESIDUAL, .span = 2}, CONV}, 2, "layer 1 (residual): it spans 2 layers, and 1 follow"},
        {{{.kind = TT_LAYER_RESIDUAL}}, 1, "it spans 0 layers, and 0 follow"},
        {{{.kind = TT_LAYER_RESIDUAL, .span = 1}, {.kind = TT_LAYER_RESIDUAL, .span = 1}, CONV}, 3,
            "layer 2 (residual): it spans 1 layers, and 0 follow in the residual that it lies in"},
        {{{.kind = TT_LAYER_RESIDUAL, .span = 5}, {.kind = TT_LAYER_RESIDUAL, .span = 4},
             {.kind = TT_LAYER_RESIDUAL, .span = 3}, {.kind = TT_LAYER_RESIDUAL, .span = 2},
             {.kind = TT_LAYER_RESIDUAL, .span = 1}},
            6, "layer 5 (residual): residuals lie in one another at most 4 deep"},
        {{{.kind = TT_LAYER_CONCAT}, {.kind = TT_LAYER_RESIDUAL, .span = 1}, {.kind = TT_LAYER_DENSE, .units = 168}}, 3,
            "layer 2 (residual): it would add numbers of a flattened picture"},
    };
    (void)state;
    for (size_t i = 0; i < TT_COUNT(bad); i++) {
        const tt_net_spec_t spec = spec_of(bad[i].layer, bad[i].layers);
        assert_refused(&spec, bad[i].text);
    }
}

static void test_bad_embeddings(void **state)
{
    (void)state;
    const tt_layer_t embed = {.kind = TT_LAYER_EMBED, .units = 3, .choices = 2, .activation = TT_NN_NONE};
    tt_net_spec_t good = spec_of(&embed, 1), spec;
    good.choices = 2;
    good.choice[0] = 40;
    good.choice[1] = 2;
    good.tower[0].height = good.tower[0].width = good.tower[0].channels = 0;
    good.tower[0].blank = true;
    assert_true(tt_spec_tower_params(&good, 0) == 42 * 3 && tt_net_tower_work(&good, 0) == 0);
    assert_true(tt_net_param_count(&good) > 0);
    spec = good;
    spec.layer[0].part = 1;
    assert_refused(&spec, "layer 1 (embed): it appends part 1 of an observation of 1");
    spec = good;
    spec.layer[0].choices = 3;
    assert_refused(&spec, "layer 1 (embed): it embeds choices 0 to 3 of 2; at most 256 are possible");
    spec = good;
    spec.choice[1] = 0;
    assert_refused(&spec, "layer 1 (embed): it embeds a choice of 0; 1 to 65536 are possible");
    spec = good;
    spec.choice[1] = 3;
    assert_refused(&spec, "layer 1 (embed): it embeds choices of 43 together, and part 0 has 84 floats");
    spec = good;
    spec.parts = 1;
    spec.part[0] = (tt_part_t){.bytes = true, .elements = 84, .divisor = 1};
    assert_refused(&spec, "layer 1 (embed): it embeds choices of 42 together, and part 0 has 84 bytes");
    spec = good;
    spec.layer[0].units = 0;
    assert_refused(&spec, "layer 1 (embed): it has 0 units");
    spec = good;
    spec.layer[0].kind = TT_LAYER_DENSE;
    assert_refused(&spec, "layer 1 (dense): nothing comes to it");
    spec = good;
    spec.tower[0].height = 7;
    assert_refused(&spec, "encoder reads a picture, and nothing");
}

static void test_bad_encoders(void **state)
{
    (void)state;
    const tt_layer_t conv = CONV, wide = {.kind = TT_LAYER_CONV2D, .units = 60000, .kernel = {1, 1}, .stride = {1, 1}};
    tt_net_spec_t spec = spec_of(&conv, 1);
    assert_true(tt_net_param_count(&spec) > 0);
    spec.tower[0].out = 1;
    assert_refused(&spec, "encoder is an encoder: it reads the observation");
    spec = spec_of(&conv, 1);
    spec.tower[0].layers = 2;
    assert_refused(&spec, "encoder: layers 0 to 2 of 1");
    spec.tower[0].layers = TT_ENCODER_LAYERS_MAX + 1;
    assert_refused(&spec, "129 layers of encoders; at most 128");
    spec = spec_of(&conv, 1);
    spec.tower[0].height = 8;
    assert_refused(&spec, "a picture of 8 x 6 x 2, and the observation's part 0 has 84 numbers");
    spec.tower[0].height = 0;
    assert_refused(&spec, "encoder: a picture of 0 x 6 x 2");
    spec = spec_of(&conv, 1);
    spec.tower[0].part = 1;
    assert_refused(&spec, "encoder reads part 1 of an observation of 1");
    spec = spec_of(&wide, 1);
    spec.obs = 256 * 256 * 2;
    spec.tower[0].height = spec.tower[0].width = 256;
    assert_refused(&spec, "numbers between all layers; 4194304 are possible");
    spec = spec_of(&conv, 1);
    spec.obs = 256 * 256 * 2; /* more than an MLP may read */
    spec.tower[0].height = spec.tower[0].width = 256;
    assert_true(tt_net_param_count(&spec) > 0);
    spec.tower[spec.towers++] = (tt_tower_t){.name = "w", .out = 1};
    assert_refused(&spec, "the observation has 131072 units; 1 to 65536");
}

/*  Of fixture_specs[22], as IMPALA's: modules, shapes in files and the order of a dense layer's inputs. */
static void test_names(void **state)
{
    const struct {
        const char *name;
        uint32_t rank;
        uint64_t shape[4];
    } want[] = {
        {"encoder.0.weight", 4, {5, 3, 3, 3}},
        {"encoder.0.bias", 1, {5}},
        {"encoder.2.1.weight", 4, {5, 5, 3, 3}},   /* conv, pool, (relu, conv */
        {"encoder.2.3.1.weight", 4, {5, 5, 1, 1}}, /* tanh, (tanh, conv, tanh) */
        {"encoder.2.4.weight", 3, {5, 5, 4}},      /* norm), relu             */
        {"encoder.6.weight", 2, {20, 105}},        /* flatten, concat, dense  */
        {"encoder.10.weight", 1, {27}},            /* tanh, concat, tanh, norm */
        {"encoder.12.weight", 2, {17, 27}},
        {"value.0.weight", 2, {8, 17}},
    };
    (void)state;
    place_t place;
    size_t count = 0;
    fixture_open(&place, 1);
    tt_net_t *net = fixture_net(&place, &fixture_specs[22]);
    const tt_tensor_t *tensor = tt_net_tensors(net, &count);
    for (size_t i = 0, at = 0; i < TT_COUNT(want); i++, at++) {
        uint64_t shape[4] = {0};
        while (at < count && strcmp(tensor[at].name, want[i].name) != 0)
            at++;
        if (at == count)
            fail_msg("no %s, or not behind the one before", want[i].name);
        assert_int_equal(tt_tensor_shape(&tensor[at], shape), want[i].rank);
        assert_memory_equal(shape, want[i].shape, want[i].rank * sizeof *shape);
    }
    tt_net_destroy(&net);
    fixture_close(&place);
}

/*  Of fixture_specs[30]: behind a picture, and at the end. */
static void test_tables(void **state)
{
    (void)state;
    const char *const want[] = {"encoder.0.weight", "encoder.0.bias", "encoder.3.weight", "encoder.4.weight",
        "encoder.4.bias", "encoder.6.weight", "actor.0.weight"};
    uint64_t shape[4] = {0};
    place_t place;
    size_t count = 0;
    fixture_open(&place, 1);
    tt_net_t *net = fixture_net(&place, &fixture_specs[30]);
    const tt_tensor_t *tensor = tt_net_tensors(net, &count);
    assert_int_equal(count, 12);
    for (size_t i = 0; i < TT_COUNT(want); i++)
        assert_string_equal(tensor[i].name, want[i]);
    assert_int_equal(tt_tensor_shape(&tensor[2], shape), 2);
    assert_true(shape[0] == 12 && shape[1] == 3);
    assert_int_equal(tt_tensor_at(&tensor[2], 17), 17);
    tt_net_destroy(&net);
    fixture_close(&place);
}

/*  Every number of a tensor has one place in a file, and the orders are PyTorch's. */
static void test_orders(void **state)
{
    const tt_tensor_t kernel = {.kind = TT_TENSOR_KERNEL, .rows = 3 * 2 * 4, .cols = 5, .kernel = {3, 2}};
    const tt_tensor_t dense = {.kind = TT_TENSOR_DENSE, .rows = 2 * 3 * 4 + 2, .cols = 3, .picture = {2, 3, 4}};
    const tt_tensor_t norm = {.kind = TT_TENSOR_NORM, .rows = 1, .cols = 24, .picture = {2, 3, 4}};
    const tt_tensor_t *const all[] = {&kernel, &dense, &norm};
    (void)state;
    for (size_t t = 0; t < TT_COUNT(all); t++) {
        char seen[256] = {0};
        for (size_t i = 0; i < tt_tensor_count(all[t]); i++) {
            assert_true(tt_tensor_at(all[t], i) < tt_tensor_count(all[t]));
            assert_int_equal(seen[tt_tensor_at(all[t], i)]++, 0);
        }
    }
    /* [o][c][kh][kw] = [2][3][1][0] */
    assert_int_equal(tt_tensor_at(&kernel, ((2 * 4 + 3) * 3 + 1) * 2 + 0), ((1 * 2 + 0) * 4 + 3) * 5 + 2);
    /* unit 2, channel 3 at (1, 2); and the number behind the picture */
    assert_int_equal(tt_tensor_at(&dense, 2 * 26 + (3 * 2 + 1) * 3 + 2), ((1 * 3 + 2) * 4 + 3) * 3 + 2);
    assert_int_equal(tt_tensor_at(&dense, 2 * 26 + 24), 24 * 3 + 2);
    assert_int_equal(tt_tensor_at(&norm, (3 * 2 + 1) * 3 + 2), (1 * 3 + 2) * 4 + 3);
}

static void test_shapes_and_work(void **state)
{
    const uint32_t want[14][3] = {{9, 8, 5}, {5, 4, 5}, {5, 4, 5}, {5, 4, 5}, {5, 4, 5}, {5, 4, 5}, {5, 4, 5},
        {5, 4, 5}, {5, 4, 5}, {1, 1, 105}, {1, 1, 20}, {1, 1, 27}, {1, 1, 27}, {1, 1, 17}};
    const tt_net_spec_t *spec = &fixture_specs[22];
    (void)state;
    for (uint32_t l = 0; l < 14; l++) {
        uint32_t shape[3];
        tt_net_layer_shape(spec, 0, l, shape);
        assert_memory_equal(shape, want[l], sizeof shape);
    }
    const uint64_t convs = 9 * 8 * 27 * 5 + 5 * 4 * 45 * 5 + 5 * 4 * 5 * 5, denses = 105 * 20 + 27 * 17;
    assert_true(tt_net_tower_work(spec, 0) == convs + denses);
    assert_true(tt_net_tower_work(spec, 1) == 17 * 8 + 8 && tt_net_tower_work(spec, 3) == 0);
    assert_true(tt_spec_tower_params(spec, 1) == 18 * 8 + 9);
    assert_int_equal(tt_net_row_bytes(spec), 221 * 4 + 8);
}

/* ---- put before towers ----------------------------------------------------------------------------------------------- */

static tt_net_spec_t with_encoder(tt_net_spec_t spec, bool separate)
{
    const tt_layer_t conv = CONV;
    const tt_tower_t encoder = {.name = "encoder", .layers = 1, .height = 7, .width = 6, .channels = 2};
    spec.layers = 1;
    spec.layer[0] = conv;
    tt_net_put_encoder(&spec, &encoder, separate);
    return spec;
}

static void assert_tower(const tt_net_spec_t *spec, uint32_t t, const char *name, uint32_t from, uint32_t group)
{
    assert_string_equal(spec->tower[t].name, name);
    assert_int_equal(spec->tower[t].from, from);
    assert_int_equal(spec->tower[t].group, group);
}

static void test_put_encoder(void **state)
{
    (void)state;
    const uint32_t hidden[] = {8, 6};
    tt_net_spec_t pair = tt_net_actor_critic(84, hidden, 1, TT_NN_TANH, 3, 0), spec = with_encoder(pair, false);
    assert_true(spec.towers == 3 && tt_net_param_count(&spec) > 0);
    assert_tower(&spec, 0, "encoder", 0, 0);
    assert_tower(&spec, 1, "actor", 1, 0);
    assert_tower(&spec, 2, "critic", 1, 0);
    pair.tower[1].group = 1;
    spec = with_encoder(pair, true);
    assert_true(spec.towers == 4 && tt_net_param_count(&spec) > 0);
    assert_tower(&spec, 0, "actor_encoder", 0, 0);
    assert_tower(&spec, 1, "actor", 1, 0);
    assert_tower(&spec, 2, "critic_encoder", 0, 1);
    assert_tower(&spec, 3, "critic", 3, 1);
}

/*  Behind them a trunk with readers, and a dueling tower: their numbers follow. */
static void test_put_encoder_before_dueling(void **state)
{
    (void)state;
    const uint32_t hidden[] = {8, 6};
    tt_net_spec_t spec =
        with_encoder(tt_net_values(84, hidden, 2, TT_NN_RELU, 3, &(tt_values_t){.dueling = true}), false);
    assert_true(spec.towers == 5 && tt_net_param_count(&spec) > 0);
    assert_tower(&spec, 1, "trunk", 1, 0);
    assert_tower(&spec, 2, "value", 2, 0);
    assert_true(spec.tower[4].value == 2 && spec.tower[4].advantage == 3);
    spec = with_encoder(tt_net_values(84, hidden, 1, TT_NN_RELU, 3, &(tt_values_t){.dueling = true}), true);
    assert_true(spec.towers == 5 && tt_net_param_count(&spec) > 0);
    assert_tower(&spec, 2, "advantage_encoder", 0, 0);
    assert_tower(&spec, 3, "advantage", 3, 0);
    assert_true(spec.tower[4].value == 1 && spec.tower[4].advantage == 3 && spec.tower[4].from == 0);
}

static void test_put_too_many(void **state)
{
    (void)state;
    tt_net_spec_t spec = {.obs = 84, .towers = TT_TOWERS_MAX}, many;
    for (uint32_t t = 0; t < TT_TOWERS_MAX; t++) {
        spec.tower[t].out = 1;
        snprintf(spec.tower[t].name, sizeof spec.tower[t].name, "t%u", t);
    }
    many = with_encoder(spec, false);
    assert_refused(&many, "network: 9 towers; 1 to 8 are possible");
    many = with_encoder(spec, true);
    assert_refused(&many, "network: 16 towers; 1 to 8 are possible");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_layers),
        cmocka_unit_test(test_bad_embeddings),
        cmocka_unit_test(test_bad_encoders),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_shapes_and_work),
        cmocka_unit_test(test_put_encoder),
        cmocka_unit_test(test_put_encoder_before_dueling),
        cmocka_unit_test(test_put_too_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
