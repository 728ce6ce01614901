#include "cli/bench_nets.h"
#include <string.h>
#include "common/base/mem.h"
#include "common/base/rng.h"

#define CONV(units_, side, step, border, activation_)                                             \
    {                                                                                             \
        .kind = TT_LAYER_CONV2D, .units = units_, .kernel = {side, side}, .stride = {step, step}, \
        .pad = {border, border}, .activation = activation_                                        \
    }
#define POOL                                                                                                   \
    {                                                                                                          \
        .kind = TT_LAYER_MAX_POOL, .kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1}, .activation = TT_NN_NONE \
    }
#define DENSE(units_)                                                     \
    {                                                                     \
        .kind = TT_LAYER_DENSE, .units = units_, .activation = TT_NN_RELU \
    }
#define RELU                                                  \
    {                                                         \
        .kind = TT_LAYER_ACTIVATION, .activation = TT_NN_RELU \
    }
#define BLOCK(c)                                                                                          \
    {.kind = TT_LAYER_RESIDUAL, .span = 3, .activation = TT_NN_NONE}, RELU, CONV(c, 3, 1, 1, TT_NN_RELU), \
        CONV(c, 3, 1, 1, TT_NN_NONE)
#define STAGE(c) CONV(c, 3, 1, 1, TT_NN_NONE), POOL, BLOCK(c), BLOCK(c)

typedef struct {
    const char *name;
    uint32_t side, channels, layers;
    float divisor;
    tt_layer_t layer[40];
} net_t;

static const net_t s_nets[] = {
    {"nature", 84, 4, 4, 255,
        {CONV(32, 8, 4, 0, TT_NN_RELU), CONV(64, 4, 2, 0, TT_NN_RELU), CONV(64, 3, 1, 0, TT_NN_RELU), DENSE(512)}},
    {"impala", 84, 4, 32, 255, {STAGE(16), STAGE(32), STAGE(32), RELU, DENSE(256)}},
    {"minatar", 10, 4, 2, 1, {CONV(16, 3, 1, 0, TT_NN_RELU), DENSE(128)}},
};

static void s_fill(const net_t *net, uint32_t out, tt_net_spec_t *spec)
{
    const uint32_t elements = net->side * net->side * net->channels;
    const tt_tower_t encoder = {
        .name = "encoder", .layers = net->layers, .height = net->side, .width = net->side, .channels = net->channels};
    *spec = tt_net_actor_critic(elements, NULL, 0, TT_NN_TANH, out, 0);
    spec->parts = 1;
    spec->part[0] = (tt_part_t){.bytes = true, .elements = elements, .divisor = net->divisor};
    spec->layers = net->layers;
    memcpy(spec->layer, net->layer, sizeof net->layer);
    tt_net_put_encoder(spec, &encoder, false);
}

tt_status_t bench_net(const char *name, uint32_t out, tt_net_spec_t *spec)
{
    for (size_t i = 0; i < TT_COUNT(s_nets); i++)
        if (strcmp(s_nets[i].name, name) == 0) {
            s_fill(&s_nets[i], out, spec);
            return TT_OK;
        }
    return tt_err(TT_USAGE, "--net: no network is called '%s'; there are nature, impala and minatar", name);
}

void *bench_net_rows(const tt_net_spec_t *spec, size_t rows)
{
    const bool bits = spec->part[0].divisor == 1.0f;
    const size_t bytes = tt_mul(rows, tt_net_row_bytes(spec));
    uint8_t *memory = tt_new0(bytes);
    for (size_t i = 0; i < bytes; i += 4) {
        uint32_t word[4];
        tt_draw(word, 1, TT_STREAM_TEST, 1, i);
        for (size_t k = 0; k < 4 && i + k < bytes; k++)
            memory[i + k] = bits ? (uint8_t)(word[k] % 5 == 0) : (uint8_t)word[k];
    }
    return memory;
}
