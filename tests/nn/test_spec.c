/*  Shapes that are refused, the layout of the flat vector, orthogonal initial weights. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/nn/tensor.h"
#include "tests/nn/recurrent_fixture.h"

#define ACTING_(name_, from_) .name = name_, .from = from_, .hidden_count = 1, .hidden = {3}, .out = 1, .action = true
#define ACTING(name_, from_)  \
    {                         \
        ACTING_(name_, from_) \
    }

#define ATOMS(name_, out_, head_, low_, high_)                                                               \
    {                                                                                                        \
        .name = name_, .kind = TT_TOWER_ATOMS, .out = out_, .value = head_, .advantage = head_, .low = low_, \
        .high = high_                                                                                        \
    }

static void test_bad_shapes(void **state)
{
    const tt_tower_t a4 = {.name = "a4", .out = 4};
    const tt_tower_t v = {.name = "v", .out = 1}, trunk = {.name = "trunk", .hidden_count = 1, .hidden = {4}};
    const tt_tower_t r = {.name = "r", .kind = TT_TOWER_GRU, .hidden_count = 1, .hidden = {4}};
    const tt_tower_t trunk2 = {.name = "trunk2", .hidden_count = 1, .hidden = {4}};
    const tt_tower_t a = {.name = "a", .out = 3}, q = {.name = "q", .kind = TT_TOWER_DUELING, .out = 3, .advantage = 1};
    const struct {
        tt_net_spec_t spec;
        const char *text; /* what the message says */
    } bad[] = {
        {{.obs = 0, .towers = 1, .tower = {v}}, "the observation has 0 units"},
        {{.obs = UINT32_MAX, .towers = 1, .tower = {v}}, "the observation has 4294967295 units"},
        {{.obs = 1}, "0 towers"},
        {{.obs = 1, .towers = 1, .tower = {v}, .parts = TT_PARTS_MAX + 1}, "an observation of 65 parts; at most 64"},
        {{.obs = 1, .towers = 1, .tower = {v}, .parts = 1}, "part 0 of the observation has 0 elements"},
        {{.obs = 3, .towers = 1, .tower = {v}, .parts = 2, .part = {{.elements = 1}, {.elements = UINT32_MAX}}},
            "part 1 of the observation has"},
        {{.obs = 3, .towers = 1, .tower = {v}, .parts = 2, .part = {{.elements = 1}, {.elements = 1}}},
            "has 3 numbers, and its parts have 2"},
        {{.obs = 3, .towers = 1, .tower = {v}, .parts = 1, .part = {{.bytes = true, .elements = 3, .divisor = 2}}},
            "is divided by 2; 1 and 255"},
        {{.obs = 1, .towers = TT_TOWERS_MAX + 1, .tower = {v}}, "9 towers"},
        {{.obs = 1, .towers = 1, .tower = {v}, .sets = TT_SETS_MAX + 1}, "5 sets"},
        {{.obs = 1, .towers = 1, .tower = {v}, .ride = TT_RIDE_MAX + 1}, "1048577 floats ride"},
        {{.obs = 1, .towers = 1, .tower = {{.name = "v"}}}, "v has neither hidden layers nor an output"},
        {{.obs = 1, .towers = 1, .tower = {{.name = "v", .out = 65537}}}, "v: the output has 65537 units"},
        {{.obs = 1, .towers = 1, .tower = {{.name = "v", .out = 1, .hidden_count = 1}}},
            "v: hidden layer 1 has 0 units"},
        {{.obs = 1, .towers = 1, .tower = {{.name = "v", .out = 1, .hidden_count = TT_HIDDEN_MAX + 1}}}, "v: 9 hidden"},
        {{.obs = 1, .towers = 1, .tower = {{.name = "v", .out = 1, .hidden_count = 2, .hidden = {65536, 65536}}}},
            "4295229441 parameters"},
        {{.obs = 1, .towers = 1, .tower = {{.name = "v", .out = 1, .activation = (tt_nn_activation_t)7}}},
            "v: activation 7 is unknown"},
        {{.obs = 1, .towers = 1, .tower = {{.name = "v", .out = 1, .log_std = 2}}}, "v: 2 deviations for 1 outputs"},
        {{.obs = 1, .towers = 1, .tower = {{.out = 1}}}, "tower 0 needs a name"},
        {{.obs = 1, .towers = 1, .tower = {{.name = "a.b", .out = 1}}}, "tower 0 needs a name"},
        {{.obs = 1, .towers = 1, .tower = {{.name = "twenty_four_letters_even", .out = 1}}},
            "not 'twenty_four_letters_even'"},
        {{.obs = 1, .towers = 2, .tower = {v, v}}, "two towers are called 'v'"},
        {{.obs = 1, .towers = 2, .tower = {v, {.name = "w", .out = 1, .from = 1}}}, "w reads v, which has a head"},
        {{.obs = 1, .towers = 2, .tower = {trunk, {.name = "w", .out = 1, .from = 2}}}, "w reads tower 2, which"},
        {{.obs = 1, .towers = 1, .tower = {{.name = "w", .out = 1, .group = 1}}}, "w is in group 1; 0 would be next"},
        {{.obs = 1, .towers = 2, .tower = {v, {.name = "w", .out = 1, .group = 2}}}, "0 or one more would be next"},
        {{.obs = 1,
             .towers = 3,
             .tower = {v, {.name = "w", .out = 1, .group = 1}, {.name = "x", .out = 1, .group = 0}}},
            "x is in group 0; 1 or one more"},
        {{.obs = 1, .towers = 1, .tower = {{.name = "v", .out = 1, .kind = (tt_tower_kind_t)7}}},
            "v: kind 7 is unknown"},
        {{.obs = 1, .towers = 1, .tower = {{.name = "r", .kind = TT_TOWER_LSTM}}}, "r has neither"},
        {{.obs = 1, .towers = 1, .tower = {{.name = "r", .kind = TT_TOWER_LSTM, .hidden_count = 2, .hidden = {4, 4}}}},
            "r recurs: it has one number of units, and no head"},
        {{.obs = 1, .towers = 1, .tower = {{.name = "r", .kind = TT_TOWER_GRU, .hidden_count = 1, .out = 1}}},
            "r recurs: it has one number of units, and no head"},
        {{.obs = 1, .towers = 1, .tower = {{.name = "r", .kind = TT_TOWER_GRU, .hidden_count = 1}}}, "r has 0 units"},
        {{.obs = 1, .towers = 1, .tower = {{.name = "r", .kind = TT_TOWER_GRU, .hidden_count = 1, .noise = 1}}},
            "r: noise 1; "},
        {{.obs = 0, .towers = 1, .tower = {r}}, "the observation has 0 units"},
        {{.obs = TT_UNITS_MAX + 1, .towers = 1, .tower = {r}}, "the observation has 65537 units"},
        {{.obs = 1,
             .towers = 2,
             .tower = {v, {.name = "s", .kind = TT_TOWER_LSTM, .from = 1, .hidden_count = 1, .hidden = {4}}}},
            "s reads v, which has a head"},
        {{.obs = 1,
             .towers = 3,
             .tower = {r, {.name = "trunk", .from = 1, .hidden_count = 1, .hidden = {4}},
                 {.name = "s", .kind = TT_TOWER_LSTM, .from = 2, .hidden_count = 1, .hidden = {4}}}},
            "s reads r, and both recur"},
        {{.obs = 1, .towers = 1, .tower = {q}}, "q: its value is tower 0, which does not come before it"},
        {{.obs = 1, .towers = 2, .tower = {v, q}}, "q: its advantage is tower 1, which does not"},
        {{.obs = 1, .towers = 2, .tower = {v, {.name = "q", .kind = TT_TOWER_DUELING, .out = 1}}},
            "q: its value and its advantage are both v"},
        {{.obs = 1, .towers = 3, .tower = {trunk, a, q}}, "q: its value trunk has 0 outputs and not 1"},
        {{.obs = 1, .towers = 3, .tower = {v, a, {.name = "q", .kind = TT_TOWER_DUELING, .out = 2, .advantage = 1}}},
            "q: its advantage a has 3 outputs and not 2"},
        {{.obs = 1, .towers = 3, .tower = {v, a, {.name = "q", .kind = TT_TOWER_DUELING}}}, "q has neither"},
        {{.obs = 1, .towers = 2, .tower = {a, {.name = "m", .kind = TT_TOWER_MEAN, .out = 2}}},
            "m: a has 3 outputs, which is no multiple of 2"},
        {{.obs = 1, .towers = 1, .tower = {{.name = "m", .kind = TT_TOWER_MEAN, .out = 2}}},
            "m: its head is tower 0, which does not come before it"},
        {{.obs = 1, .towers = 3, .tower = {v, a, {.name = "m", .kind = TT_TOWER_MEAN, .out = 1, .advantage = 1}}},
            "m is made of one head, and not of two"},
        {{.obs = 1, .towers = 2, .tower = {a, {.name = "m", .kind = TT_TOWER_MEAN, .out = 3, .from = 1}}},
            "m is made of a head: it has no trunk"},
        {{.obs = 1, .towers = 2, .tower = {trunk, {.name = "m", .kind = TT_TOWER_MEAN, .out = 3}}},
            "m: its head trunk has 0 outputs and not 3"},
        {{.obs = 1, .towers = 2, .tower = {a, {.name = "m", .kind = TT_TOWER_MEAN, .out = 1, .group = 1}}},
            "m has no parameters, and cannot begin group 1"},
        {{.obs = 1,
             .towers = 3,
             .tower = {v, a, {.name = "q", .kind = TT_TOWER_DUELING, .out = 3, .value = 1, .advantage = 1}}},
            "q: its value and its advantage are both a"},
        {{.obs = 1, .towers = 3, .tower = {a, a4, {.name = "q", .kind = TT_TOWER_DUELING, .out = 4, .advantage = 1}}},
            "q: its value a has 3 outputs, of which 4 is no multiple"},
        {{.obs = 1, .towers = 3, .tower = {a, ATOMS("m", 1, 0, 0, 1), ATOMS("n", 1, 1, 0, 1)}},
            "n: its head m has no layers of its own"},
        {{.obs = 1, .towers = 2, .tower = {a, ATOMS("m", 2, 0, 0, 1)}},
            "m: a has 3 outputs, which is no multiple of 2"},
        {{.obs = 1, .towers = 2, .tower = {a, ATOMS("m", 3, 0, 0, 1)}}, "m has 1 atoms; 2 to 200 are possible"},
        {{.obs = 1, .towers = 2, .tower = {{.name = "b", .out = 201}, ATOMS("m", 1, 0, 0, 1)}}, "m has 201 atoms"},
        {{.obs = 1, .towers = 2, .tower = {a, ATOMS("m", 1, 0, 1, 1)}},
            "m: its atoms lie from 1 to 1, which is no range"},
        {{.obs = 1, .towers = 2, .tower = {a, ATOMS("m", 1, 0, -FLT_MAX, FLT_MAX)}}, "which is no range"},
        {{.obs = 1, .towers = 2, .tower = {a, ATOMS("m", 1, 0, 0, NAN)}}, "m: its atoms lie from 0 to"},
        {{.obs = 1,
             .towers = 3,
             .tower = {v, a, {.name = "q", .kind = TT_TOWER_DUELING, .out = 3, .advantage = 1, .hidden_count = 1}}},
            "q is made of two heads"},
        {{.obs = 1,
             .towers = 3,
             .tower = {v, a, {.name = "q", .kind = TT_TOWER_DUELING, .out = 3, .advantage = 1, .log_std = 1}}},
            "q is made of two heads"},
        {{.obs = 1,
             .towers = 3,
             .tower = {v, a, {.name = "q", .kind = TT_TOWER_DUELING, .out = 3, .advantage = 1, .group = 1}}},
            "q has no parameters, and cannot begin group 1"},
        {{.obs = 1, .towers = 4, .tower = {v, a, q, {.name = "r", .kind = TT_TOWER_DUELING, .out = 3, .advantage = 2}}},
            "q and r both read the head of v"},
        {{.obs = 1,
             .towers = 5,
             .tower = {v, a, q, {.name = "w", .out = 1},
                 {.name = "r", .kind = TT_TOWER_DUELING, .out = 3, .value = 3, .advantage = 2}}},
            "r: its advantage q has no layers of its own"},
        {{.obs = 1, .towers = 4, .tower = {v, a, q, {.name = "w", .out = 1, .from = 3}}},
            "w reads q, which has a head"},
        {{.obs = 1, .action = 2, .towers = 3, .tower = {trunk, ACTING("x", 1), ACTING("y", 0)}},
            "x reads an action behind trunk, and y one behind the observation; all must read the same"},
        {{.obs = 1, .action = 2, .towers = 4, .tower = {trunk, ACTING("x", 1), trunk2, ACTING("y", 3)}},
            "x reads an action behind trunk, and y one behind trunk2; all must read the same"},
        {{.obs = 1, .action = 2, .towers = 2, .tower = {v, ACTING("x", 1)}}, "x reads v, which has a head"},
        {{.obs = 1, .towers = 2, .tower = {trunk, ACTING("x", 1)}},
            "x reads trunk of 4 numbers and an action of 0; 1 to 65536 of both"},
        {{.obs = 1, .action = TT_UNITS_MAX - 3, .towers = 2, .tower = {trunk, ACTING("x", 1)}},
            "x reads trunk of 4 numbers and an action of 65533; 1 to 65536 of both"},
        {{.obs = TT_UNITS_MAX + 1,
             .action = 2,
             .layers = 1,
             .layer = {{.kind = TT_LAYER_ACTIVATION}},
             .towers = 2,
             .tower = {{.name = "large", .kind = TT_TOWER_ENCODER, .layers = 1}, ACTING("x", 1)}},
            "x reads large of 65537 numbers and an action of 2; 1 to 65536 of both"},
        {{.obs = TT_UNITS_MAX + 1, .action = 2, .towers = 1, .tower = {ACTING("x", 0)}},
            "the observation has 65537 units"},
        {{.obs = 1, .action = 2, .towers = 2, .tower = {trunk, {.name = "x", .from = 1, .out = 1, .action = true}}},
            "x reads an action: it needs hidden layers and a head"},
        {{.obs = 1,
             .action = 2,
             .towers = 2,
             .tower = {trunk, {.name = "x", .from = 1, .hidden_count = 1, .hidden = {3}, .action = true}}},
            "x reads an action: it needs hidden layers and a head"},
        {{.obs = 1, .action = 2, .towers = 2, .tower = {trunk, {ACTING_("x", 1), .noise = 1}}},
            "x reads an action: it needs hidden layers and a head, and has no noisy layers"},
        {{.obs = 1, .action = 2, .towers = 2, .tower = {r, ACTING("x", 1)}},
            "x reads an action, and r recurs; one network has not both"},
        {{.obs = 1,
             .action = 2,
             .towers = 3,
             .tower = {r, {.name = "trunk", .from = 1, .hidden_count = 1, .hidden = {4}}, ACTING("x", 2)}},
            "x reads an action, and r recurs; one network has not both"},
        {{.obs = 1, .action = 2, .towers = 2, .tower = {ACTING("x", 0), r}},
            "x reads an action, and r recurs; one network has not both"},
        {{.obs = 1,
             .action = 2,
             .towers = 2,
             .tower = {ACTING("x", 0), {.name = "m", .kind = TT_TOWER_MEAN, .out = 1}}},
            "m: its head x reads an action"},
    };
    (void)state;
    place_t place;
    tt_net_t *net = NULL;
    fixture_open(&place, 1);
    for (size_t i = 0; i < TT_COUNT(bad); i++) {
        assert_int_equal(tt_net_new(&net, place.device, &bad[i].spec), TT_INVALID);
        assert_null(net);
        assert_int_equal(tt_net_param_count(&bad[i].spec), 0);
        assert_true(strncmp(tt_err_text(), "network: ", 9) == 0);
        if (!strstr(tt_err_text(), bad[i].text))
            fail_msg("'%s' does not say '%s'", tt_err_text(), bad[i].text);
    }
    fixture_close(&place);
    assert_null(place.device);
}

static void test_unknown_devices(void **state)
{
    (void)state;
    tt_device_t *device = NULL;
    assert_int_equal(tt_device_open(&device, "abacus", 0, 1), TT_NOT_FOUND);
    assert_non_null(strstr(tt_err_text(), "no backend called 'abacus' in this build; there is 'cpu'"));
    assert_int_equal(tt_device_open(&device, NULL, 1, 1), TT_NOT_FOUND);
    assert_int_equal(tt_device_open(&device, NULL, 0, 0), TT_INVALID);
    assert_int_equal(tt_device_open(&device, NULL, 0, 1025), TT_INVALID);
    assert_int_equal(setenv("TT_CPU", "mmx", 1), 0);
    assert_int_equal(tt_device_open(&device, NULL, 0, 1), TT_UNSUPPORTED);
    assert_non_null(strstr(tt_err_text(), "TT_CPU=mmx"));
    assert_int_equal(unsetenv("TT_CPU"), 0);
    assert_null(device);
}

static void test_wishes(void **state)
{
    (void)state;
    const char *const good[] = {"cpu", "auto", "cuda", "cuda:0", "cuda:12", "cpu-strict"};
    const char *const bad[] = {"", "gpu", "cpu:1", "cuda:", "cuda:x", "cuda:-1", "cuda:1000", "cuda:0 ", ":0",
        "a name that is longer than any that there is"};
    tt_device_t *device = NULL;
    for (size_t i = 0; i < TT_COUNT(good); i++)
        assert_ok(tt_device_check_wish(good[i]));
    for (size_t i = 0; i < TT_COUNT(bad); i++) {
        assert_int_equal(tt_device_check_wish(bad[i]), TT_CONFIG);
        assert_int_equal(tt_device_open_wish(&device, bad[i], 0, 1), TT_CONFIG);
        assert_non_null(strstr(tt_err_text(), "there is cpu, cuda, cuda:N and auto"));
    }
    assert_null(device);
    assert_ok(tt_device_open_wish(&device, "auto", 3, 1)); /* a card where there is one, else the CPU */
    tt_device_close(&device);
}

/*  TT_DEVICE is for those who name no backend. */
static void test_device_of_the_environment(void **state)
{
    (void)state;
    char *kept = getenv("TT_DEVICE") ? tt_strdup(getenv("TT_DEVICE")) : NULL;
    tt_device_t *device = NULL;
    assert_int_equal(setenv("TT_DEVICE", "abacus", 1), 0);
    assert_int_equal(tt_device_open(&device, NULL, 0, 1), TT_NOT_FOUND);
    assert_ok(tt_device_open(&device, "cpu", 0, 1));
    tt_device_close(&device);
    assert_int_equal(setenv("TT_DEVICE", "", 1), 0);
    assert_ok(tt_device_open(&device, NULL, 0, 1));
    assert_true(strncmp(tt_device_name(device), "cpu/", 4) == 0);
    tt_device_close(&device);
    assert_null(device);
    assert_int_equal(kept ? setenv("TT_DEVICE", kept, 1) : unsetenv("TT_DEVICE"), 0);
    free(kept);
}

/*  As many as the tower has, and not one more. */
static void check_log_std(const place_t *place, const tt_net_t *net, uint32_t tower)
{
    const uint32_t L = tt_net_spec(net)->tower[tower].log_std;
    float got[65];
    for (uint32_t i = 0; i <= L; i++)
        got[i] = 77;
    assert_ok(tt_net_get_log_std(net, place->stream, 0, tower, got));
    for (uint32_t i = 0; i < L; i++)
        assert_true(fabsf(got[i] + 0.3f) <= 0.2f);
    assert_true(got[L] == 77);
}

/*  Tensors fill their group without overlap; groups begin at multiples of 64 floats and zeros lie between. */
static void check_layout(const place_t *place, const tt_net_spec_t *spec)
{
    const size_t params = tt_net_param_count(spec);
    size_t count = 0, total = 0, end = 0;
    tt_net_t *net = fixture_net(place, spec);
    const tt_tensor_t *tensors = tt_net_tensors(net, &count);
    char *seen = tt_new0(params);
    for (size_t t = 0; t < count; t++)
        for (size_t i = 0; i < (size_t)tensors[t].rows * tensors[t].cols; i++, total++) {
            assert_true(tensors[t].offset + i < params);
            assert_int_equal(seen[tensors[t].offset + i]++, 0);
        }
    for (uint32_t g = 0; g < tt_net_groups(spec); g++) {
        size_t first = 0, floats = 0;
        tt_net_group_span(spec, g, &first, &floats);
        assert_int_equal(first, (end + 63) / 64 * 64);
        for (size_t i = first; i < first + floats; i++)
            assert_int_equal(seen[i], 1);
        end = first + floats;
        total -= floats;
    }
    assert_int_equal(total, 0);
    assert_int_equal(end, params);
    assert_int_equal(tt_net_stats_offset(spec), params);
    assert_true(tt_net_grad_count(spec) >= params + TT_LOSS_STATS + spec->ride);
    assert_int_equal(tt_net_grad_count(spec) % 16, 0);
    for (uint32_t t = 0; t < spec->towers; t++)
        check_log_std(place, net, t);
    free(seen);
    tt_net_destroy(&net);
}

static void test_layout(void **state)
{
    (void)state;
    place_t place;
    fixture_open(&place, 1);
    for (size_t s = 0; s < fixture_spec_count; s++)
        check_layout(&place, &fixture_specs[s]);
    for (size_t s = 0; s < recurrent_spec_count; s++)
        check_layout(&place, &recurrent_specs[s]);
    fixture_close(&place);
}

static const tt_tensor_t *find(const tt_net_t *net, const char *name)
{
    size_t count = 0;
    const tt_tensor_t *tensors = tt_net_tensors(net, &count);
    for (size_t t = 0; t < count; t++)
        if (strcmp(tensors[t].name, name) == 0)
            return &tensors[t];
    fail_msg("no tensor %s", name);
    return NULL;
}

/*  Names and shapes of a trunk and two groups, one by one. */
static void test_names(void **state)
{
    const struct {
        const char *name;
        uint32_t rows, cols;
    } want[] = {
        {"trunk.0.weight", 21, 30},
        {"trunk.2.bias", 1, 33},
        {"a.0.weight", 33, 20},
        {"a.2.weight", 20, 3},
        {"b.0.weight", 33, 5},
        {"c.4.bias", 1, 1},
    };
    (void)state;
    place_t place;
    fixture_open(&place, 1);
    tt_net_t *net = fixture_net(&place, &fixture_specs[12]);
    size_t first = 0, count = 0, tensors = 0;
    for (size_t i = 0; i < TT_COUNT(want); i++) {
        const tt_tensor_t *tensor = find(net, want[i].name);
        assert_int_equal(tensor->rows, want[i].rows);
        assert_int_equal(tensor->cols, want[i].cols);
    }
    tt_net_tensors(net, &tensors);
    assert_int_equal(tensors, 4 + 4 + 2 + 6);
    tt_net_group_span(&fixture_specs[12], 1, &first, &count);
    assert_int_equal(count, 34 * 7 + 8 * 17 + 18);
    assert_true(find(net, "c.0.weight")->offset >= first && find(net, "b.0.bias")->offset < first);
    tt_net_destroy(&net);
    fixture_close(&place);
}

/*  Critics that read an encoder and an action: put there by the function, of an observation that no MLP could read. In a file the numbers
 *  of the picture come channel by channel, and the action stands behind them. */
static void test_action_behind_a_picture(void **state)
{
    (void)state;
    enum { H = 2, W = 5, C = 3, NUMBERS = H * W * C, ACTION = 4 };
    const char *const names[] = {"actor_encoder", "actor", "critics_encoder", "q1", "q2"};
    const uint32_t from[] = {0, 1, 0, 3, 3};
    tt_net_spec_t spec = tt_net_soft_actor_critic(300 * 260, (const uint32_t[]){7}, 1, TT_NN_RELU, 2 * ACTION, ACTION);
    spec.layers = 1;
    spec.layer[0] = (tt_layer_t){.kind = TT_LAYER_CONV2D, .units = C, .kernel = {200, 220}, .stride = {100, 10}};
    tt_tower_t encoder = {.layers = 1, .height = 300, .width = 260, .channels = 1};
    for (uint32_t group = 0; group < 2; group++) {
        snprintf(encoder.name, sizeof encoder.name, "%s", names[2 * group]);
        tt_net_put_encoder_of(&spec, &encoder, group);
    }
    assert_int_equal(spec.towers, TT_COUNT(names));
    for (uint32_t t = 0; t < spec.towers; t++) {
        assert_string_equal(spec.tower[t].name, names[t]);
        assert_int_equal(spec.tower[t].from, from[t]);
        assert_int_equal(spec.tower[t].group, t / 2 > 0);
    }
    assert_int_equal(tt_spec_before_action(&spec), NUMBERS);
    assert_int_equal(tt_net_tower_work(&spec, 1), NUMBERS * 7 + 7 * 2 * ACTION);
    assert_int_equal(tt_net_tower_work(&spec, 3), (NUMBERS + ACTION) * 7 + 7);
    place_t place;
    fixture_open(&place, 1);
    tt_net_t *net = fixture_net(&place, &spec);
    const tt_tensor_t *weight = find(net, "q2.0.weight");
    uint64_t shape[4];
    assert_true(tt_tensor_shape(weight, shape) == 2 && shape[0] == 7 && shape[1] == NUMBERS + ACTION);
    for (uint32_t i = 0; i < weight->rows * weight->cols; i++) {
        const uint32_t o = i / weight->rows, at = i % weight->rows, c = at / (H * W), pixel = at % (H * W);
        assert_int_equal(tt_tensor_at(weight, i), (at < NUMBERS ? pixel * C + c : at) * weight->cols + o);
    }
    tt_net_destroy(&net);
    fixture_close(&place);
}

/*  The usual pair, built by the function and by hand. */
static void test_actor_critic(void **state)
{
    (void)state;
    for (size_t s = 0; s < fixture_pair_count; s++) {
        const tt_tower_t *actor = &fixture_specs[s].tower[0];
        const tt_net_spec_t got = tt_net_actor_critic(
            fixture_specs[s].obs, actor->hidden, actor->hidden_count, actor->activation, actor->out, actor->log_std);
        assert_memory_equal(&got, &fixture_specs[s], sizeof got);
        assert_true(tt_net_tower(&got, "actor") == 0 && tt_net_tower(&got, "critic") == 1);
        assert_int_equal(tt_net_tower(&got, "q"), 2);
    }
}

/*  Streams have the last hidden layer each, and a trunk only what lies before it. */
static void test_dueling(void **state)
{
    (void)state;
    const uint32_t hidden[] = {32, 24, 16}, trunk[] = {2, 1, 0, 0}, own[] = {1, 1, 1, 0};
    for (uint32_t i = 0; i < 4; i++) {
        const tt_net_spec_t spec = tt_net_values(5, hidden, 3 - i, TT_NN_RELU, 4, &(tt_values_t){.dueling = true});
        const uint32_t first = trunk[i] ? 1 : 0;
        const tt_tower_t *value = &spec.tower[first], *advantage = value + 1, *q = value + 2;
        assert_true(spec.obs == 5 && spec.towers == first + 3 && tt_net_param_count(&spec) > 0);
        assert_true(!first || (spec.tower[0].hidden_count == trunk[i] && spec.tower[0].out == 0));
        assert_true(value->hidden_count == own[i] && value->out == 1 && value->from == first);
        assert_true(advantage->hidden_count == own[i] && advantage->out == 4 && advantage->from == first);
        assert_true(!own[i] || (value->hidden[0] == hidden[2 - i] && advantage->hidden[0] == hidden[2 - i]));
        assert_true(tt_net_tower(&spec, "value") == first && tt_net_tower(&spec, "advantage") == first + 1);
        assert_true(q->kind == TT_TOWER_DUELING && q->out == 4 && q->value == first && q->advantage == first + 1);
        assert_true(tt_spec_made_of(&spec, first) == first + 2 && tt_spec_made_of(&spec, first + 2) == spec.towers);
    }
}

static void test_quantiles(void **state)
{
    (void)state;
    const uint32_t hidden[] = {32, 24};
    const tt_values_t how = {.quantiles = 50};
    const tt_net_spec_t spec = tt_net_values(5, hidden, 2, TT_NN_RELU, 4, &how);
    const tt_tower_t *quantiles = &spec.tower[0], *q = &spec.tower[1];
    assert_true(spec.towers == 2 && tt_spec_check(&spec) == TT_OK);
    assert_true(tt_net_tower(&spec, "quantiles") == 0 && tt_net_tower(&spec, "q") == 1);
    assert_true(quantiles->hidden_count == 2 && quantiles->out == 200 && q->kind == TT_TOWER_MEAN && q->out == 4);
    assert_int_equal(tt_net_param_count(&spec), 5 * 32 + 32 + 32 * 24 + 24 + 24 * 200 + 200);
    assert_true(tt_spec_made_of(&spec, 0) == 1 && tt_spec_layers(&spec, 1) == 0);
    const tt_net_spec_t large = tt_net_values(5, hidden, 2, TT_NN_RELU, UINT32_MAX, &how);
    assert_int_equal(tt_spec_check(&large), TT_INVALID);
}

/*  What Rainbow has: streams with so many numbers a choice, and a value for each of them in both. */
static void test_dueling_atoms(void **state)
{
    (void)state;
    const uint32_t hidden[] = {32, 24};
    const tt_values_t how = {.dueling = true, .atoms = 51, .low = -10, .high = 10};
    const tt_net_spec_t spec = tt_net_values(5, hidden, 2, TT_NN_RELU, 4, &how);
    const uint32_t out[] = {0, 51, 204, 204, 4};
    const char *name[] = {"trunk", "value", "advantage", "atoms", "q"};
    assert_true(spec.towers == 5 && tt_spec_check(&spec) == TT_OK);
    for (uint32_t t = 0; t < spec.towers; t++)
        assert_true(spec.tower[t].out == out[t] && tt_net_tower(&spec, name[t]) == t);
    assert_true(spec.tower[3].kind == TT_TOWER_DUELING && spec.tower[4].kind == TT_TOWER_ATOMS);
    assert_true(spec.tower[4].low == -10 && spec.tower[4].high == 10 && spec.tower[4].value == 3);
    const tt_values_t means = {.dueling = true, .quantiles = 9};
    const tt_net_spec_t other = tt_net_values(5, hidden, 1, TT_NN_RELU, 4, &means);
    assert_true(other.towers == 4 && tt_spec_check(&other) == TT_OK && other.tower[3].kind == TT_TOWER_MEAN);
    assert_true(tt_net_tower(&other, "quantiles") == 2 && other.tower[2].out == 36 && other.tower[0].out == 9);
}

/*  All tensors of a recurrent tower behind a trunk, and what it carries and multiplies. */
static void test_recurrent(void **state)
{
    (void)state;
    const struct {
        const char *name;
        uint32_t rows, cols;
    } want[] = {{"lstm.weight_ih_l0", 13, 4 * 19}, {"lstm.bias_ih_l0", 1, 4 * 19}, {"lstm.weight_hh_l0", 19, 4 * 19},
        {"lstm.bias_hh_l0", 1, 4 * 19}, {"high.0.weight", 19, 11}};
    place_t place;
    fixture_open(&place, 1);
    tt_net_t *net = fixture_net(&place, &recurrent_specs[4]);
    size_t count = 0;
    const tt_tensor_t *tensors = tt_net_tensors(net, &count), *first = find(net, want[0].name);
    for (size_t i = 0; i < TT_COUNT(want); i++) {
        assert_string_equal(first[i].name, want[i].name);
        assert_int_equal(first[i].rows, want[i].rows);
        assert_int_equal(first[i].cols, want[i].cols);
        assert_int_equal(first[i].kind, i % 2 ? TT_TENSOR_VECTOR : TT_TENSOR_DENSE);
    }
    assert_ptr_equal(first, tensors + 8); /* two layers of "low", two of "apart" */
    assert_int_equal(count, 8 + 4 + 2 + 2 + 2);
    assert_int_equal(tt_net_carry(&recurrent_specs[4]), 2 * 19);
    assert_int_equal(tt_net_carry(&recurrent_specs[6]), 2 * 17 + 33);
    assert_int_equal(tt_net_carry(&fixture_specs[0]), 0);
    assert_int_equal(tt_net_tower_work(&recurrent_specs[4], 2), (13 + 19) * 4 * 19);
    assert_int_equal(tt_net_tower_work(&recurrent_specs[6], 2), (9 + 33) * 3 * 33);
    tt_net_destroy(&net);
    fixture_close(&place);
}

/*  Who read the observation or an encoder reads it, and it reads that; nobody else is touched. */
static void test_put_recurrent(void **state)
{
    (void)state;
    const uint32_t hidden[] = {8, 6};
    tt_net_spec_t spec = tt_net_shared(4, hidden, 2, TT_NN_TANH, 2, 2);
    tt_net_put_recurrent(&spec, TT_TOWER_LSTM, 12, false);
    assert_int_equal(spec.towers, 4);
    assert_string_equal(spec.tower[0].name, "lstm");
    assert_true(spec.tower[0].kind == TT_TOWER_LSTM && spec.tower[0].hidden[0] == 12 && spec.tower[0].from == 0);
    assert_true(spec.tower[1].from == 1 && spec.tower[2].from == 2 && spec.tower[3].from == 2);
    assert_true(tt_net_param_count(&spec) > 0);
    spec = tt_net_actor_critic(4, hidden, 1, TT_NN_TANH, 2, 2);
    spec.tower[1].group = 1;
    const tt_tower_t encoder = {.name = "encoder", .layers = 1};
    spec.layers = 1;
    spec.layer[0] = (tt_layer_t){.kind = TT_LAYER_DENSE, .units = 5};
    tt_net_put_encoder(&spec, &encoder, true);
    tt_net_put_recurrent(&spec, TT_TOWER_GRU, 3, true);
    const char *const names[] = {"actor_encoder", "actor_gru", "actor", "critic_encoder", "critic_gru", "critic"};
    assert_int_equal(spec.towers, TT_COUNT(names));
    for (uint32_t t = 0; t < spec.towers; t++) {
        assert_string_equal(spec.tower[t].name, names[t]);
        assert_int_equal(spec.tower[t].from, t % 3 ? t : 0);
        assert_int_equal(spec.tower[t].group, t / 3);
    }
    assert_true(tt_net_param_count(&spec) > 0 && tt_net_carry(&spec) == 6);
}

/*  w^T w, or w w^T of a wide one, is gain^2 times the identity. */
static void check_orthogonal(const float *w, const tt_tensor_t *tensor, double gain)
{
    const size_t in = tensor->rows, out = tensor->cols, count = in < out ? in : out, n = in < out ? out : in;
    const size_t step = in < out ? 1 : out, next = in < out ? out : 1;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j <= i; j++) {
            double dot = 0;
            for (size_t k = 0; k < n; k++)
                dot += (double)w[i * next + k * step] * (double)w[j * next + k * step];
            const double expected = i == j ? gain * gain : 0;
            if (fabs(dot - expected) > 1e-6)
                fail_msg("%s: vectors %zu and %zu: %.9g, not %.9g", tensor->name, i, j, dot, expected);
        }
}

/*  Mean 0 and variance 1, within six deviations of what so many numbers have. */
static void check_normal(const float *w, const tt_tensor_t *tensor)
{
    const double n = (double)tensor->rows * tensor->cols;
    double sum = 0, squares = 0;
    for (size_t i = 0; i < (size_t)n; i++) {
        sum += (double)w[i];
        squares += (double)w[i] * (double)w[i];
    }
    if (fabs(sum) > 6 * sqrt(n) || fabs(squares - n) > 6 * sqrt(2 * n) || w[0] == w[1])
        fail_msg("%s: %g numbers have mean %.9g, mean square %.9g", tensor->name, n, sum / n, squares / n);
}

static void check_weight(const float *w, const tt_tensor_t *tensor, double gain)
{
    for (uint32_t i = 0; tensor->kind == TT_TENSOR_NORM && i < tensor->cols; i++)
        assert_true(w[i] == 1.0f);
    if (tensor->kind == TT_TENSOR_TABLE)
        check_normal(w, tensor);
    else if (tensor->kind != TT_TENSOR_NORM)
        check_orthogonal(w, tensor, gain);
}

static void check_init(const place_t *place, const tt_net_spec_t *spec)
{
    const float gain[TT_TOWERS_MAX] = {0.01f, 1.0f, 0.5f, 2.0f, 1.0f, 3.0f, 1.0f, 0.25f};
    tt_net_t *net = fixture_net(place, spec);
    float *params = tt_array0(2 * tt_net_param_count(spec), sizeof *params), *other = params + tt_net_param_count(spec);
    assert_ok(tt_net_init(net, place->stream, 5, gain, -0.5f, TT_NO_PROGRESS));
    assert_ok(tt_net_get(net, place->stream, 0, params));
    size_t count = 0;
    const tt_tensor_t *tensor = tt_net_tensors(net, &count);
    for (uint32_t t = 0; t < spec->towers; t++) {
        const tt_tower_t *tower = &spec->tower[t];
        for (uint32_t l = 0; l < tt_spec_layers(spec, t); l++) {
            const bool head = tower->kind == TT_TOWER_MLP && l == tower->hidden_count;
            const double hidden = tt_tower_recurs(tower->kind) ? 1 : sqrt(2.0);
            check_weight(params + tensor->offset, tensor, head ? (double)gain[t] : hidden);
            for (uint32_t i = 0; tensor->kind != TT_TENSOR_TABLE && i < tensor[1].cols; i++)
                assert_true(params[tensor[1].offset + i] == 0.0f);
            tensor += tt_layer_tensors(tensor->kind);
        }
        for (uint32_t a = 0; a < tower->log_std; a++)
            assert_true(params[tensor->offset + a] == -0.5f);
        tensor += tower->log_std > 0;
        tensor += tt_spec_tower_tensors(spec, t) - tt_spec_deviations(spec, t);
    }
    for (uint32_t set = 1; set < spec->sets; set++) {
        assert_ok(tt_net_get(net, place->stream, set, other));
        assert_memory_equal(params, other, tt_net_param_count(spec) * sizeof *params);
    }
    free(params);
    tt_net_destroy(&net);
}

static void test_init(void **state)
{
    (void)state;
    place_t place;
    fixture_open(&place, 1);
    for (size_t s = 0; s < fixture_spec_count; s++)
        check_init(&place, &fixture_specs[s]);
    for (size_t s = 0; s < recurrent_spec_count; s++)
        check_init(&place, &recurrent_specs[s]);
    fixture_close(&place);
}

/*  A fixed fingerprint: initial weights are part of what a seed means, on every machine. */
static void test_init_is_the_same_everywhere(void **state)
{
    (void)state;
    place_t place;
    tt_net_t *net = NULL;
    float params[9155];
    fixture_open(&place, 1);
    assert_ok(tt_net_new(&net, place.device, &fixture_specs[0]));
    assert_int_equal(tt_net_param_count(&fixture_specs[0]), TT_COUNT(params));
    uint64_t hash[2];
    for (uint64_t seed = 1; seed <= 2; seed++) {
        assert_ok(tt_net_init(net, place.stream, seed, (const float[]){0.01f, 1.0f}, 0.0f, TT_NO_PROGRESS));
        assert_ok(tt_net_get(net, place.stream, 0, params));
        const unsigned char *bytes = (const unsigned char *)params;
        hash[seed - 1] = 0xcbf29ce484222325u; /* FNV-1a */
        for (size_t i = 0; i < sizeof params; i++)
            hash[seed - 1] = (hash[seed - 1] ^ bytes[i]) * 0x100000001b3u;
    }
    assert_int_equal(hash[0], 0x5d733b71bbd6b22du);
    assert_true(hash[0] != hash[1]);
    tt_net_destroy(&net);
    fixture_close(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_shapes),
        cmocka_unit_test(test_unknown_devices),
        cmocka_unit_test(test_wishes),
        cmocka_unit_test(test_device_of_the_environment),
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_action_behind_a_picture),
        cmocka_unit_test(test_actor_critic),
        cmocka_unit_test(test_dueling),
        cmocka_unit_test(test_quantiles),
        cmocka_unit_test(test_dueling_atoms),
        cmocka_unit_test(test_recurrent),
        cmocka_unit_test(test_put_recurrent),
        cmocka_unit_test(test_init),
        cmocka_unit_test(test_init_is_the_same_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
