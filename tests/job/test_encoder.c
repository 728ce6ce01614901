/*  Encoders in words: what they become, what they read, and what is said of words that are none. */
#include "common/job/encoder.h"
#include <stdio.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/job/fit.h"
#include "common/nn/spec.h"
#include "tests/test.h"

static tt_train_cfg_t s_cfg(const char *obs, const char *words)
{
    tt_train_cfg_t cfg = {.name = "test",
        .env = "X",
        .num_envs = 4,
        .num_steps = 8,
        .lag = 1,
        .learner.device = "cpu",
        .collector.device = "cpu"};
    snprintf(cfg.space.obs, sizeof cfg.space.obs, "%s", obs);
    snprintf(cfg.space.action, sizeof cfg.space.action, "discrete(3)");
    snprintf(cfg.network.encoder, sizeof cfg.network.encoder, "%s", words);
    cfg.space.divisor = 255;
    cfg.network.shared = true;
    return cfg;
}

static tt_net_spec_t s_net(const tt_train_cfg_t *cfg)
{
    TT_AUTO(tt_columns) columns = NULL;
    assert_ok(tt_train_columns(&columns, cfg));
    const tt_net_spec_t net = tt_train_net(cfg, columns);
    assert_ok(tt_spec_check(&net));
    assert_int_equal(tt_net_row_bytes(&net), columns->row);
    return net;
}

static tt_net_spec_t s_read(const char *obs, const char *words)
{
    const tt_train_cfg_t cfg = s_cfg(obs, words);
    return s_net(&cfg);
}

static void s_expect(const tt_layer_t *layer, tt_layer_kind_t kind, uint32_t units, uint32_t kernel, uint32_t stride,
    uint32_t pad, tt_nn_activation_t activation)
{
    assert_int_equal(layer->kind, kind);
    assert_int_equal(layer->units, units);
    assert_true(layer->kernel[0] == kernel && layer->kernel[1] == kernel);
    assert_true(layer->stride[0] == stride && layer->stride[1] == stride);
    assert_true(layer->pad[0] == pad && layer->pad[1] == pad);
    assert_int_equal(layer->activation, activation);
}

/* ---- words ------------------------------------------------------------------------------------------------------------ */

static void test_a_list(void **state)
{
    (void)state;
    const tt_net_spec_t net = s_read("uint8[84, 84, 4]",
        "conv 32 8x8 /4 relu, conv 16 3x5 /2x1 pad 0x2 tanh,max_pool 2x2 /2 ,avg_pool 3x3 pad 1, "
        "layer_norm tanh, dense 64, relu");
    const tt_layer_t *l = net.layer;
    assert_int_equal(net.layers, 7);
    s_expect(&l[0], TT_LAYER_CONV2D, 32, 8, 4, 0, TT_NN_RELU);
    assert_int_equal(l[1].kind, TT_LAYER_CONV2D);
    assert_true(l[1].kernel[0] == 3 && l[1].kernel[1] == 5 && l[1].stride[0] == 2 && l[1].stride[1] == 1);
    assert_true(l[1].pad[0] == 0 && l[1].pad[1] == 2 && l[1].activation == TT_NN_TANH);
    s_expect(&l[2], TT_LAYER_MAX_POOL, 0, 2, 2, 0, TT_NN_NONE);
    s_expect(&l[3], TT_LAYER_AVG_POOL, 0, 3, 1, 1, TT_NN_NONE);
    s_expect(&l[4], TT_LAYER_LAYER_NORM, 0, 0, 0, 0, TT_NN_TANH);
    s_expect(&l[5], TT_LAYER_DENSE, 64, 0, 0, 0, TT_NN_NONE);
    s_expect(&l[6], TT_LAYER_ACTIVATION, 0, 0, 0, 0, TT_NN_RELU);
}

static void test_residuals(void **state)
{
    (void)state;
    const tt_net_spec_t net =
        s_read("uint8[8, 8]", "conv 4 3x3 pad 1, residual 2 (relu, residual (tanh, conv 4 3x3 pad 1)), relu");
    static const tt_layer_kind_t kinds[] = {TT_LAYER_CONV2D, TT_LAYER_RESIDUAL, TT_LAYER_ACTIVATION, TT_LAYER_RESIDUAL,
        TT_LAYER_ACTIVATION, TT_LAYER_CONV2D, TT_LAYER_RESIDUAL, TT_LAYER_ACTIVATION, TT_LAYER_RESIDUAL,
        TT_LAYER_ACTIVATION, TT_LAYER_CONV2D, TT_LAYER_ACTIVATION};
    assert_int_equal(net.layers, TT_COUNT(kinds));
    for (uint32_t l = 0; l < net.layers; l++)
        assert_int_equal(net.layer[l].kind, kinds[l]);
    assert_int_equal(net.layer[1].span, 4);
    assert_int_equal(net.layer[3].span, 2);
    assert_int_equal(net.layer[6].span, 4);
    assert_int_equal(net.layer[8].span, 2);
}

/*  The networks of the papers, by the numbers of parameters that PyTorch counts for them. */
static void test_the_known_ones(void **state)
{
    (void)state;
    const uint64_t nature = 8224 + 32832 + 36928 + (3136 * 512 + 512);
    const uint64_t impala = (9 * 4 * 16 + 16) + 4 * (9 * 16 * 16 + 16) + (9 * 16 * 32 + 32) + 9 * (9 * 32 * 32 + 32) +
                            (11 * 11 * 32 * 256 + 256);
    const uint64_t minatar = (9 * 4 * 16 + 16) + (8 * 8 * 16 * 128 + 128);
    const struct {
        const char *name, *obs;
        uint64_t params, out;
    } cases[] = {{"nature", "uint8[4, 84, 84]", nature, 512}, {"nature", "uint8[84, 84, 4]", nature, 512},
        {"impala", "uint8[84, 84, 4]", impala, 256}, {"minatar", "bool[10, 10, 4]", minatar, 128}};
    for (size_t i = 0; i < TT_COUNT(cases); i++) {
        tt_train_cfg_t cfg = s_cfg(cases[i].obs, cases[i].name);
        cfg.actor.kind = TT_ACT_ARGMAX;
        const tt_net_spec_t net = s_net(&cfg);
        const uint64_t q = 3 * (cases[i].out + 1);
        assert_true(tt_net_param_count(&net) >= cases[i].params + q);
        assert_true(tt_net_param_count(&net) < cases[i].params + q + 64); /* zeros up to a cache line */
    }
    assert_int_equal(s_read("uint8[84, 84]", "nature, layer_norm").layers, 5);
}

static void s_refused_of(const tt_train_cfg_t *cfg, const char *message)
{
    assert_int_equal(tt_train_fit(NULL, cfg), TT_CONFIG);
    assert_string_equal(tt_err_text(), message);
}

static void s_refused(const char *words, const char *message)
{
    const tt_train_cfg_t cfg = s_cfg("{image: uint8[20, 20, 3], at: float32[2]}", words);
    char whole[512];
    snprintf(whole, sizeof whole, "network.encoder: %s", message);
    s_refused_of(&cfg, whole);
}

static void test_what_is_said(void **state)
{
    (void)state;
    s_refused("natur",
        "layer 1: 'natur' is no layer; did you mean 'nature'?: layers are conv, max_pool, avg_pool, dense, "
        "layer_norm, relu, tanh, residual, concat, embed; whole encoders are nature, impala, minatar");
    s_refused("conv 8 3x3 relu, dens 3",
        "layer 2: 'dens' is no layer; did you mean 'dense'?: layers are conv, max_pool, "
        "avg_pool, dense, layer_norm, relu, tanh, residual, concat, embed; whole encoders are nature, "
        "impala, minatar");
#define CONV "write 'conv 32 8x8 /4 pad 1 relu': channels, kernel; stride, pad and activation may be left away"
    s_refused("conv", "layer 1: 'conv' is not complete: " CONV);
    s_refused("conv 8x8 4", "layer 1: 'conv' does not go on with '8x8': " CONV);
    s_refused("conv 8 3", "layer 1: 'conv' does not go on with '3': " CONV);
    s_refused("conv 8 3x3 2", "layer 1: 'conv' does not go on with '2': " CONV);
    s_refused("conv 8 3x3 /0", "layer 1: 'conv' does not go on with '/0': " CONV);
    s_refused("conv 8 3x300", "layer 1: 'conv' does not go on with '3x300': " CONV);
    s_refused("conv 8 3x3 pad", "layer 1: 'conv' is not complete: " CONV);
    s_refused("conv 8 3x3 gelu", "layer 1: 'conv' does not go on with 'gelu': " CONV);
    s_refused("conv 99999999999999999999 3x3", "layer 1: 'conv' does not go on with '99999999999999999999': " CONV);
    s_refused("max_pool 2x2 relu",
        "layer 1: 'max_pool' does not go on with 'relu': write 'max_pool 3x3 /2 pad 1': window; "
        "stride and pad may be left away");
    s_refused("avg_pool 2", "layer 1: 'avg_pool' does not go on with '2': write 'avg_pool 2x2 /2 pad 1': window; "
                            "stride and pad may be left "
                            "away");
    s_refused("dense 0",
        "layer 1: 'dense' does not go on with '0': write 'dense 512 relu': units; the activation may be "
        "left away");
    s_refused("relu tanh", "layer 1: 'relu' does not go on with 'tanh': write 'relu' alone");
    s_refused("conv 8 3x3,, relu", "layer 2: a layer expected at ', relu'");
    s_refused("conv 8 3x3,", "layer 2: a layer expected");
    s_refused("conv 8 3x3)", "layer 1: a comma or the end expected at ')'");
#define RESIDUAL "write 'residual 2 (relu, conv 16 3x3 pad 1)': how often, and a list in brackets"
    s_refused("residual 2", "layer 1: 'residual' is not complete: " RESIDUAL);
    s_refused("residual two (relu)", "layer 1: 'residual' does not go on with 'two': " RESIDUAL);
    s_refused("relu, residual (relu, tanh", "layer 2: 'residual (' is not closed: " RESIDUAL);
    s_refused("residual (residual (residual (residual (relu))))", "layer 4: brackets in more than 3 others");
    s_refused("residual 64 (relu, relu)", "layer 3: an encoder has more than 128 layers");
    s_refused(
        "dense 4, concat where", "layer 2: the observation has no part 'where'; it has image [20, 20, 3], at [2]");
    s_refused("dense 4, concat", "layer 2: 'concat' is not complete: write 'concat KEY': a part of the observation");
#define EMBED "write 'embed KEY 16': a part of the observation, and how many numbers each of its choices becomes"
    s_refused("embed", "layer 1: 'embed' is not complete: " EMBED);
    s_refused("embed where 4", "layer 1: the observation has no part 'where'; it has image [20, 20, 3], at [2]");
    s_refused("embed at 4", "layer 1: 'at' is no choice (discrete or multi_discrete) that could be embedded; the "
                            "observation has image [20, 20, 3], at [2]");
}

/* ---- what is read ------------------------------------------------------------------------------------------------------ */

static void s_expect_picture(const char *obs, uint32_t height, uint32_t width, uint32_t channels, bool first)
{
    const tt_net_spec_t net = s_read(obs, "conv 4 2x2 relu");
    const tt_tower_t *encoder = &net.tower[tt_net_tower(&net, "encoder")];
    assert_true(encoder->height == height && encoder->width == width && encoder->channels == channels);
    assert_int_equal(encoder->planes, first ? channels : 1);
}

/*  Channels first where the smallest dimension is the first; of as many channels as the picture has lines, the last are. */
static void test_where_channels_are(void **state)
{
    (void)state;
    s_expect_picture("uint8[84, 84]", 84, 84, 1, false);
    s_expect_picture("uint8[84, 96, 3]", 84, 96, 3, false);
    s_expect_picture("uint8[4, 84, 96]", 84, 96, 4, true);
    s_expect_picture("bool[10, 10, 4]", 10, 10, 4, false);
    s_expect_picture("bool[10, 10, 10]", 10, 10, 10, false);
    s_expect_picture("multi_binary[3, 5, 5]", 5, 5, 3, true);
}

/*  The channels of all frames, those of the oldest first: as planes where a frame has them last. */
static void test_stacked_pictures(void **state)
{
    (void)state;
    static const struct {
        const char *obs;
        uint32_t frames, height, width, channels, planes;
    } cases[] = {
        {"uint8[84, 84]", 4, 84, 84, 4, 4},
        {"uint8[84, 96, 3]", 4, 84, 96, 12, 4},
        {"uint8[3, 84, 96]", 2, 84, 96, 6, 6},
        {"{at: float32[2], image: bool[10, 10, 4]}", 3, 10, 10, 12, 3},
    };
    for (size_t i = 0; i < TT_COUNT(cases); i++) {
        tt_train_cfg_t cfg = s_cfg(cases[i].obs, "conv 4 2x2 relu");
        cfg.stack.frames = cases[i].frames;
        const tt_net_spec_t net = s_net(&cfg);
        const tt_tower_t *encoder = &net.tower[tt_net_tower(&net, "encoder")];
        assert_true(encoder->height == cases[i].height && encoder->width == cases[i].width);
        assert_int_equal(encoder->channels, cases[i].channels);
        assert_int_equal(encoder->planes, cases[i].planes);
        assert_int_equal(net.stack.frames, cases[i].frames);
        assert_ok(tt_train_fit(NULL, &cfg));
    }
}

/*  All other parts behind the picture, in their order, unless the list has a word of its own about it. */
static void test_parts_behind_a_picture(void **state)
{
    (void)state;
    const char *obs = "{at: float32[2], image: bool[6, 6, 2], mode: discrete(3)}";
    tt_net_spec_t net = s_read(obs, "conv 4 3x3 relu, dense 8 relu");
    assert_int_equal(net.layers, 4);
    assert_true(net.layer[2].kind == TT_LAYER_CONCAT && net.layer[2].part == 0);
    assert_true(net.layer[3].kind == TT_LAYER_CONCAT && net.layer[3].part == 2);
    assert_int_equal(net.tower[0].part, 1);
    assert_true(net.parts == 3 && net.part[1].bytes && net.part[1].divisor == 255 && net.part[0].divisor == 1);
    net = s_read(obs, "conv 4 3x3 relu, concat mode, dense 8 relu");
    assert_int_equal(net.layers, 3);
    assert_true(net.layer[1].kind == TT_LAYER_CONCAT && net.layer[1].part == 2);
}

static void s_expect_embed(const tt_net_spec_t *net, uint32_t l, uint32_t part, uint32_t units, uint32_t first_choice)
{
    assert_int_equal(net->layer[l].kind, TT_LAYER_EMBED);
    assert_int_equal(net->layer[l].part, part);
    assert_int_equal(net->layer[l].units, units);
    assert_int_equal(net->choice[net->layer[l].choice], first_choice);
}

/*  A list that begins with what it embeds knows nothing else but what it appends; what nobody embeds comes behind. */
static void test_embedded(void **state)
{
    (void)state;
    const char *obs = "{at: float32[2], item: multi_discrete(5, 2), mode: discrete(3)}";
    uint32_t shape[3];
    tt_net_spec_t net = s_read(obs, "embed mode 4, embed item 6, dense 8 relu");
    assert_true(net.layers == 4 && net.choices == 3 && net.tower[0].blank);
    s_expect_embed(&net, 0, 2, 4, 3);
    s_expect_embed(&net, 1, 1, 6, 5);
    assert_int_equal(net.choice[2], 2);
    assert_true(net.layer[3].kind == TT_LAYER_CONCAT && net.layer[3].part == 0);
    tt_net_layer_shape(&net, 0, 1, shape);
    assert_int_equal(shape[2], 4 + 2 * 6);
    net = s_read(obs, "concat at, embed mode 4, dense 8 relu");
    assert_true(net.layers == 3 && net.tower[0].blank);
    net = s_read(obs, "dense 8 relu, embed mode 4"); /* of the whole, one-hot, and of the choice once more */
    assert_true(net.layers == 2 && !net.tower[0].blank);
    net = s_read("discrete(500)", "embed obs 16");
    assert_true(net.layers == 1 && net.tower[0].blank);
    s_expect_embed(&net, 0, 0, 16, 500);
    net = s_read("{image: bool[6, 6, 2], mode: discrete(3), x: float32}", "conv 4 3x3 relu, embed mode 2");
    assert_true(net.layers == 3 && !net.tower[0].blank && net.layer[2].part == 2);
}

/*  Frames share a table. */
static void test_embedded_stack(void **state)
{
    (void)state;
    uint32_t shape[3];
    tt_train_cfg_t cfg = s_cfg("multi_discrete(5, 2)", "embed obs 3");
    cfg.stack.frames = 4;
    const tt_net_spec_t net = s_net(&cfg);
    tt_net_layer_shape(&net, 0, 0, shape);
    assert_int_equal(shape[2], 4 * 2 * 3);
    assert_true(tt_spec_tower_params(&net, 0) == 7 * 3);
}

static void test_embedded_too_many(void **state)
{
    (void)state;
    tt_train_cfg_t cfg = s_cfg("multi_binary[3]", "embed obs 3");
    s_refused_of(&cfg, "network.encoder: layer 1: 'obs' is no choice (discrete or multi_discrete) that could be "
                       "embedded; the observation has obs [3]");
    char words[2048] = "(";
    for (int i = 0; i < 257; i++)
        snprintf(words + strlen(words), sizeof words - strlen(words), "%s2", i ? ", " : "");
    snprintf(cfg.space.obs, sizeof cfg.space.obs, "multi_discrete%s)", words);
    s_refused_of(&cfg, "network.encoder: layer 1: with the 257 elements of 'obs' an encoder embeds more than 256");
}

/*  Without a word that needs a picture the whole observation is one vector. */
static void test_vectors(void **state)
{
    (void)state;
    const tt_net_spec_t net = s_read("(float32[2], uint8[4, 4], int64)", "dense 32 tanh, layer_norm");
    assert_true(net.layers == 2 && net.tower[0].height == 0);
    assert_true(s_read("float32[4]", "dense 32 relu").tower[0].height == 0);
    assert_true(s_read("float32[4, 4]", "dense 32 relu").tower[0].height == 0);
}

static void test_which_picture(void **state)
{
    (void)state;
    tt_train_cfg_t cfg = s_cfg("{left: uint8[9, 9], right: uint8[9, 9], depth: float32[9, 9], x: float32}", "minatar");
    s_refused_of(&cfg,
        "network.encoder: more than one picture to convolve: the observation has left [9, 9], right [9, 9], "
        "depth [9, 9], x; network.picture: KEY names one");
    snprintf(cfg.network.picture, sizeof cfg.network.picture, "right");
    assert_int_equal(s_net(&cfg).tower[0].part, 1);
    snprintf(cfg.network.picture, sizeof cfg.network.picture, "depth");
    assert_int_equal(s_net(&cfg).tower[0].part, 2);
    snprintf(cfg.network.picture, sizeof cfg.network.picture, "x");
    s_refused_of(&cfg, "network.picture: 'x' is no picture, which is a box of uint8, bool or float32 with two or three "
                       "dimensions; the observation has left [9, 9], right [9, 9], depth [9, 9], x");
    snprintf(cfg.network.picture, sizeof cfg.network.picture, "up");
    s_refused_of(
        &cfg, "network.picture: the observation has no part 'up'; it has left [9, 9], right [9, 9], depth [9, 9], x");
    cfg = s_cfg("{picture: uint8[9, 9], x: float32}", "avg_pool 2x2");
    assert_true(s_net(&cfg).tower[0].height == 9 && s_net(&cfg).layers == 2);
    cfg = s_cfg("float32[4]", "minatar");
    s_refused_of(&cfg, "network.encoder: no picture of bytes (uint8 or bool, two or three dimensions) to convolve: the "
                       "observation has obs [4]; network.picture: KEY names one");
    cfg = s_cfg("uint8[9, 9]", "none");
    snprintf(cfg.network.picture, sizeof cfg.network.picture, "obs");
    s_refused_of(&cfg, "network.picture: network.encoder is none: nothing reads a picture");
    snprintf(cfg.network.encoder, sizeof cfg.network.encoder, "minatar");
    assert_int_equal(s_net(&cfg).tower[0].part, 0);
}

/* ---- who reads it ------------------------------------------------------------------------------------------------------ */

static void test_shared_or_one_each(void **state)
{
    (void)state;
    tt_train_cfg_t cfg = s_cfg("uint8[9, 9]", "minatar");
    tt_net_spec_t net = s_net(&cfg);
    assert_int_equal(net.towers, 3);
    assert_true(net.tower[1].from == 1 && net.tower[2].from == 1);
    cfg.network.hidden = (tt_cfg_list_t){.count = 1, .at = {32}};
    net = s_net(&cfg);
    assert_int_equal(net.towers, 4); /* a trunk of the hidden layers behind it */
    assert_true(net.tower[1].from == 1 && net.tower[2].from == 2 && net.tower[3].from == 2);
    cfg.network.shared = false;
    net = s_net(&cfg);
    assert_int_equal(net.towers, 4);
    assert_true(tt_net_tower(&net, "actor_encoder") < 4 && tt_net_tower(&net, "critic_encoder") < 4);
    cfg.actor.kind = TT_ACT_ARGMAX;
    net = s_net(&cfg);
    assert_int_equal(net.towers, 2);
    cfg.actor.dueling = true;
    cfg.network.hidden.count = 0;
    net = s_net(&cfg);
    assert_int_equal(net.towers, 4);
    assert_true(net.tower[1].from == 1 && net.tower[2].from == 1 && net.tower[3].kind == TT_TOWER_DUELING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_list),
        cmocka_unit_test(test_residuals),
        cmocka_unit_test(test_the_known_ones),
        cmocka_unit_test(test_what_is_said),
        cmocka_unit_test(test_where_channels_are),
        cmocka_unit_test(test_stacked_pictures),
        cmocka_unit_test(test_parts_behind_a_picture),
        cmocka_unit_test(test_embedded),
        cmocka_unit_test(test_embedded_stack),
        cmocka_unit_test(test_embedded_too_many),
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_which_picture),
        cmocka_unit_test(test_shared_or_one_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
