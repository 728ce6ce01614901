/*  A network on a device of its own: the heads and the log_std of one that was opened by hand. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/nn/inference.h"
#include "tests/nn/fixture.h"

static void check_spec(const place_t *place, const tt_net_spec_t *spec)
{
    enum { ROWS = 35 };
    tt_net_t *net = fixture_net(place, spec);
    tt_inference_t *own = NULL;
    rows_t rows = fixture_rows(spec, ROWS);
    const size_t outs = ROWS * (size_t)fixture_outs(spec);
    float *params = fixture_params(place, net, 0), *want = tt_array0(outs, sizeof *want);
    float *got = tt_array0(outs, sizeof *got), log_std[2][64] = {{0}}, *at[TT_TOWERS_MAX] = {NULL}, *out = got;
    for (uint32_t t = 0; t < spec->towers; out += ROWS * spec->tower[t++].out)
        at[t] = out;
    assert_ok(tt_inference_new(&own, "cpu", 0, spec));
    assert_ok(tt_inference_put(own, params));
    assert_ok(tt_net_noise(tt_inference_net(own), tt_inference_stream(own), 0, &fixture_noise));
    assert_ok(tt_inference_run(own, (const void *const *)rows.obs, ROWS, NULL, at));
    fixture_forward(place, net, 0, rows.obs, ROWS, want);
    assert_memory_equal(got, want, outs * sizeof *got);
    for (uint32_t t = 0; t < spec->towers; t++) {
        assert_ok(tt_inference_log_std(own, t, log_std[0]));
        assert_ok(tt_net_get_log_std(net, place->stream, 0, t, log_std[1]));
        assert_memory_equal(log_std[0], log_std[1], sizeof log_std[0]);
    }
    assert_ok(tt_net_get(tt_inference_net(own), tt_inference_stream(own), 0, params));
    free(params);
    free(want);
    free(got);
    fixture_rows_free(&rows);
    tt_inference_destroy(&own);
    assert_null(own);
    tt_net_destroy(&net);
}

static void test_heads(void **state)
{
    (void)state;
    place_t place;
    fixture_open(&place, 1);
    for (size_t s = 0; s < fixture_spec_count; s++)
        check_spec(&place, &fixture_specs[s]);
    fixture_close(&place);
}

/*  Rows that are made of frames, with parts of bytes and of floats, against the same rows as a whole: in a plain network and in one
 *  that convolves frames with channels of their own. */
static void test_frames(void **state)
{
    (void)state;
    enum { ROWS = 35, FRAMES = 3, BYTES = 5 * 4 * 2, FLOATS = 3, FRAME = BYTES + 4 * FLOATS };
    static union {
        float align;
        unsigned char at[ROWS + FRAMES][FRAME];
    } frame;
    static _Alignas(16) unsigned char whole[ROWS][FRAMES * FRAME];
    const void *list[ROWS][FRAMES], *rows[ROWS];
    const tt_stack_t stack = {
        .frames = FRAMES, .parts = 2, .part = {{0, 0, BYTES}, {BYTES, FRAMES * BYTES, sizeof(float) * FLOATS}}};
    const tt_tower_t encoder = {.name = "encoder",
        .kind = TT_TOWER_ENCODER,
        .layers = 2,
        .height = 5,
        .width = 4,
        .channels = 2 * FRAMES,
        .planes = FRAMES};
    for (size_t i = 0; i < ROWS + FRAMES; i++) {
        for (size_t b = 0; b < BYTES; b++)
            frame.at[i][b] = (unsigned char)(i * 31 + b * 7);
        memcpy(&frame.at[i][BYTES], (const float[FLOATS]){(float)i, 0.5f, -(float)i}, sizeof(float) * FLOATS);
    }
    for (size_t r = 0; r < ROWS; r++) {
        rows[r] = whole[r];
        for (size_t k = 0; k < FRAMES; k++) {
            list[r][k] = frame.at[r + k];
            memcpy(whole[r] + k * BYTES, frame.at[r + k], BYTES);
            memcpy(whole[r] + FRAMES * BYTES + k * sizeof(float) * FLOATS, &frame.at[r + k][BYTES],
                sizeof(float) * FLOATS);
        }
    }
    for (int pictures = 0; pictures <= 1; pictures++) {
        tt_net_spec_t spec =
            tt_net_actor_critic(FRAMES * (BYTES + FLOATS), (const uint32_t[]){16}, 1, TT_NN_TANH, 3, 0);
        spec.parts = 2;
        spec.part[0] = (tt_part_t){.bytes = true, .elements = FRAMES * BYTES, .divisor = 255};
        spec.part[1] = (tt_part_t){.elements = FRAMES * FLOATS};
        spec.layers = pictures ? 2 : 0;
        spec.layer[0] = (tt_layer_t){
            .kind = TT_LAYER_CONV2D, .activation = TT_NN_RELU, .units = 4, .kernel = {2, 2}, .stride = {1, 1}};
        spec.layer[1] = (tt_layer_t){.kind = TT_LAYER_CONCAT, .activation = TT_NN_NONE, .part = 1};
        if (pictures)
            tt_net_put_encoder(&spec, &encoder, false);
        float want[ROWS * 3], got[ROWS * 3];
        for (int framed = 0; framed <= 1; framed++) {
            tt_inference_t *net = NULL;
            float *out[TT_TOWERS_MAX] = {NULL};
            if (framed)
                spec.stack = stack;
            assert_ok(tt_inference_new(&net, "cpu", 0, &spec));
            assert_ok(tt_net_init(
                tt_inference_net(net), tt_inference_stream(net), 7, (const float[]){1, 1, 1}, 0, TT_NO_PROGRESS));
            out[tt_net_tower(&spec, "actor")] = framed ? got : want;
            assert_ok(tt_inference_run(net, framed ? list[0] : rows, ROWS, NULL, out));
            tt_inference_destroy(&net);
        }
        assert_memory_equal(got, want, sizeof want);
        assert_true(want[0] != want[3]);
    }
}

static void test_bad_spec(void **state)
{
    (void)state;
    tt_inference_t *own = NULL;
    assert_int_equal(tt_inference_new(&own, "cpu", 0, &(tt_net_spec_t){.obs = 0}), TT_INVALID);
    assert_null(own);
    tt_inference_destroy(&own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_heads),
        cmocka_unit_test(test_frames),
        cmocka_unit_test(test_bad_spec),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
