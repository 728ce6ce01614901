/*  init - first weights. Orthogonal, as PyTorch's nn.init.orthogonal_ gives them: Q of a QR decomposition of a matrix of
 *  normals, its signs fixed by R's diagonal. Uniform, as PyTorch's nn.Linear has them if nobody says otherwise.
 *
 *  A convolution's kernel is a matrix of [kh x kw x in] inputs and [out] units, as PyTorch flattens it too.
 *
 *  Source:  Saxe et al. 2013, arXiv:1312.6120; Box and Muller 1958; orthonormal.h;
 *           LeCun et al. 1998 for the uniform ones: PyTorch's kaiming_uniform_(a=sqrt(5)) comes to their bound
 *  The same bits everywhere: libm's log and sin may differ in the last bit between processors, so they are our own
 *  here; everything is double, in a written order, and rounded to float at the end. */
#include <math.h>
#include <stdlib.h>
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/nn/backend.h"
#include "common/nn/orthonormal.h"
#include "common/nn/spec.h"

/*  log(x), x > 0 and normal: x = m 2^e with m in [sqrt 1/2, sqrt 2), log m = 2 atanh((m - 1) / (m + 1)) by its series;
 *  t^2 < 0.0295, so that 12 terms leave 1e-19. */
static double s_log_of(double x)
{
    int e = 0;
    double m = frexp(x, &e);
    if (m < 0.70710678118654752440) {
        m *= 2.0;
        e--;
    }
    const double t = (m - 1.0) / (m + 1.0), z = t * t;
    double sum = 0.0;
    for (int k = 23; k >= 1; k -= 2)
        sum = sum * z + 1.0 / k;
    return 2.0 * t * sum + e * 0.69314718055994530942;
}

/*  cos(2 pi u), 0 <= u < 1: folded to the first eighth, where Taylor's series of sine and cosine need nine terms. */
static double s_cos_turn(double u)
{
    double sign = 1.0;
    if (u > 0.5)
        u = 1.0 - u;
    if (u > 0.25) {
        u = 0.5 - u;
        sign = -1.0;
    }
    const bool sine = u > 0.125;
    const double x = 6.28318530717958647693 * (sine ? 0.25 - u : u), z = x * x;
    double sum = 1.0;
    for (int k = 18; k >= 2; k -= 2)
        sum = 1.0 - sum * z / (sine ? (k + 1.0) * k : k * (k - 1.0));
    return sign * (sine ? x * sum : sum);
}

static double s_normal(uint64_t seed, uint32_t tensor, uint64_t element)
{
    uint32_t word[4];
    tt_draw(word, seed, TT_STREAM_INIT, tensor, element);
    const double u = 1.0 - tt_unit_f64(word[0], word[1]); /* (0, 1] */
    return sqrt(-2.0 * s_log_of(u)) * s_cos_turn(tt_unit_f64(word[2], word[3]));
}

/* ---- a layer -------------------------------------------------------------------------------------------------------- */

/*  What a layer starts with: its weight and bias, the number of the weight in the network (the bias has the next), and the gain. A
 *  table has no bias. */
typedef struct {
    const tt_tensor_t *weight;
    float *values, *bias; /* [in][out], [out]; zeros at first */
    uint64_t seed;
    uint32_t number;
    bool head;
    double gain;     /* of a head; a recurrent tower's is 1 */
    uint32_t inputs; /* by which UNIFORM goes               */
    tt_progress_t progress;
} layer_t;

/*  The shorter side gives the number of orthonormal vectors, the longer their length. */
static void s_orthogonal(const layer_t *layer)
{
    const size_t in = layer->weight->rows, out = layer->weight->cols;
    const size_t count = in < out ? in : out, n = in < out ? out : in;
    const double gain = layer->head ? layer->gain : 1.41421356237309504880;
    double *vectors = tt_array0(tt_mul(count, n), sizeof *vectors);
    for (size_t i = 0; i < count * n; i++)
        vectors[i] = s_normal(layer->seed, layer->number, i);
    tt_orthonormalise(vectors, count, n, layer->progress);
    for (size_t i = 0; i < in; i++)
        for (size_t o = 0; o < out; o++)
            layer->values[i * out + o] = (float)(gain * (in < out ? vectors[i * n + o] : vectors[o * n + i]));
    free(vectors);
}

/*  Evenly within -bound .. bound. */
static void s_spread(float *out, size_t count, uint64_t seed, uint32_t tensor, double bound)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t word[4];
        tt_draw(word, seed, TT_STREAM_INIT, tensor, i);
        out[i] = (float)(bound * (2.0 * tt_unit_f64(word[0], word[1]) - 1.0));
    }
}

static void s_uniform(const layer_t *layer)
{
    const size_t in = layer->weight->rows, out = layer->weight->cols;
    const double bound = (layer->head ? layer->gain : 1.0) / sqrt((double)layer->inputs);
    s_spread(layer->values, in * out, layer->seed, layer->number, bound);
    s_spread(layer->bias, out, layer->seed, layer->number + 1, bound);
}

/*  A gain of 1 and a bias of 0 for each number. */
static void s_norm(const layer_t *layer)
{
    for (size_t i = 0; i < layer->weight->cols; i++)
        layer->values[i] = 1.0f;
}

/*  Normals, as PyTorch's nn.Embedding has them: numbers of the size that the layers behind expect, however many choices there are. */
static void s_table(const layer_t *layer)
{
    const size_t count = (size_t)layer->weight->rows * layer->weight->cols;
    for (size_t i = 0; i < count; i++)
        layer->values[i] = (float)s_normal(layer->seed, layer->number, i);
}

static void (*const s_inits[])(const layer_t *layer) = {
    [TT_NN_ORTHOGONAL] = s_orthogonal,
    [TT_NN_UNIFORM] = s_uniform,
};

/* ---- a network ------------------------------------------------------------------------------------------------------ */

/*  The deviations of a weight and its bias: all alike. */
static void s_deviate(const tt_tensor_t *weight, const tt_tensor_t *pair, float noise, float *params)
{
    const float deviation = (float)((double)noise / sqrt((double)weight->rows));
    for (size_t i = 0; i < (size_t)weight->rows * weight->cols; i++)
        params[pair[0].offset + i] = deviation;
    for (size_t o = 0; o < weight->cols; o++)
        params[pair[1].offset + o] = deviation;
}

static void s_init_layer(const layer_t *layer, tt_nn_init_t init)
{
    if (layer->weight->kind == TT_TENSOR_NORM)
        s_norm(layer);
    else if (layer->weight->kind == TT_TENSOR_TABLE)
        s_table(layer);
    else
        s_inits[init](layer);
}

/*  One tower from its first tensor on, which is number `first` of the network: streams of Philox are numbered so. */
static size_t s_init_tower(
    const tt_net_t *self, uint32_t t, size_t first, uint64_t seed, float gain, float *params, tt_progress_t progress)
{
    const tt_tower_t *tower = &self->spec.tower[t];
    const bool recurs = tt_tower_recurs(tower->kind); /* both layers by its units, as PyTorch */
    size_t number = first;
    for (uint32_t l = 0; l < tt_spec_layers(&self->spec, t); l++) {
        const tt_tensor_t *weight = &self->tensors[number];
        const uint32_t count = tt_layer_tensors(weight->kind);
        const layer_t layer = {.weight = weight,
            .values = params + weight->offset,
            .bias = count > 1 ? params + weight[1].offset : NULL,
            .seed = seed,
            .number = (uint32_t)number,
            .head = recurs || (tower->kind == TT_TOWER_MLP && l == tower->hidden_count),
            .gain = recurs ? 1 : (double)gain,
            .inputs = recurs ? tower->hidden[0] : weight->rows,
            .progress = progress};
        s_init_layer(&layer, self->spec.init);
        tt_progress(progress);
        if (tower->noise > 0)
            s_deviate(weight, weight + tt_spec_deviations(&self->spec, t), tower->noise, params);
        number += count;
    }
    return first + tt_spec_tower_tensors(&self->spec, t);
}

tt_status_t tt_net_init(
    tt_net_t *self, tt_stream_t *stream, uint64_t seed, const float *gain, float log_std0, tt_progress_t progress)
{
    if ((uint32_t)self->spec.init >= TT_COUNT(s_inits))
        return tt_err(TT_INVALID, "init %d: there are %zu", (int)self->spec.init, TT_COUNT(s_inits));
    float *params = tt_array0(self->param_count, sizeof *params);
    size_t at = 0;
    for (uint32_t t = 0; t < self->spec.towers; t++) {
        at = s_init_tower(self, t, at, seed, gain[t], params, progress);
        for (uint32_t a = 0; a < self->spec.tower[t].log_std; a++)
            params[self->log_std_at[t] + a] = log_std0;
    }
    tt_status_t status = TT_OK;
    for (uint32_t set = 0; status == TT_OK && set < self->sets; set++)
        status = tt_net_put(self, stream, set, params);
    free(params);
    return status;
}
