#include "common/nn/tensor.h"
#include <string.h>

size_t tt_tensor_count(const tt_tensor_t *tensor)
{
    return (size_t)tensor->rows * tensor->cols;
}

static size_t s_pixels(const tt_tensor_t *tensor)
{
    return (size_t)tensor->picture[0] * tensor->picture[1];
}

/*  Number i of a file's [channels][height][width] | the rest, in the order [height][width][channels] | the rest. */
static size_t s_pictured(const tt_tensor_t *tensor, size_t i)
{
    const size_t pixels = s_pixels(tensor), channels = tensor->picture[2];
    return i < pixels * channels ? i % pixels * channels + i / pixels : i;
}

static size_t s_dense(const tt_tensor_t *tensor, size_t i)
{
    return s_pictured(tensor, i % tensor->rows) * tensor->cols + i / tensor->rows;
}

/*  [out][in][kh x kw] to [kh x kw][in][out]. */
static size_t s_kernel(const tt_tensor_t *tensor, size_t i)
{
    const size_t area = (size_t)tensor->kernel[0] * tensor->kernel[1], in = tensor->rows / area;
    const size_t o = i / tensor->rows, c = i % tensor->rows / area, k = i % area;
    return (k * in + c) * tensor->cols + o;
}

size_t tt_tensor_at(const tt_tensor_t *tensor, size_t i)
{
    switch (tensor->kind) {
    case TT_TENSOR_DENSE:
        return s_dense(tensor, i);
    case TT_TENSOR_KERNEL:
        return s_kernel(tensor, i);
    case TT_TENSOR_NORM:
        return s_pictured(tensor, i);
    default:
        return i;
    }
}

uint32_t tt_tensor_shape(const tt_tensor_t *tensor, uint64_t shape[4])
{
    const uint64_t in = tensor->rows, out = tensor->cols;
    const bool picture = tensor->picture[2] && s_pixels(tensor) * tensor->picture[2] == tt_tensor_count(tensor);
    switch (tensor->kind) {
    case TT_TENSOR_TABLE:
        memcpy(shape, (const uint64_t[4]){in, out}, sizeof(uint64_t[4]));
        return 2;
    case TT_TENSOR_DENSE:
        memcpy(shape, (const uint64_t[4]){out, in}, sizeof(uint64_t[4]));
        return 2;
    case TT_TENSOR_KERNEL:
        memcpy(shape,
            (const uint64_t[4]){
                out, in / (tensor->kernel[0] * tensor->kernel[1]), tensor->kernel[0], tensor->kernel[1]},
            sizeof(uint64_t[4]));
        return 4;
    case TT_TENSOR_NORM:
        if (picture) {
            memcpy(shape, (const uint64_t[4]){tensor->picture[2], tensor->picture[0], tensor->picture[1]},
                sizeof(uint64_t[4]));
            return 3;
        }
        break;
    default:
        break;
    }
    memcpy(shape, (const uint64_t[4]){out}, sizeof(uint64_t[4]));
    return 1;
}
