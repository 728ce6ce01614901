/*  recorded - a file of numbers that PyTorch came to (tests/golden/torch/<name>.bin), read from one end to the other.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/nn/nn.h"
#include "tests/test.h"

enum { RECORDED_MAX = 1 << 20 };

typedef struct {
    char *file, *at, *end;
} recorded_t;

static inline void recorded_open(recorded_t *self, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, TT_SOURCE_DIR "/tests/golden/torch/%s.bin", name);
    FILE *in = fopen(path, "rb");
    assert_non_null(in);
    self->at = self->file = tt_new0(RECORDED_MAX);
    self->end = self->file + fread(self->file, 1, RECORDED_MAX, in);
    fclose(in);
}

static inline void recorded_close(recorded_t *self)
{
    free(self->file);
}

/*  The next `count` things of `size` bytes, where they lie. */
static inline void *recorded_take(recorded_t *self, size_t count, size_t size)
{
    assert_true((size_t)(self->end - self->at) >= count * size);
    void *here = self->at;
    self->at += count * size;
    return here;
}

/*  A parameter vector in the order of the tensor table, `in`, as one in the places the network gave them, `out`: how long it is. */
static inline size_t recorded_place(const tt_net_t *net, const float *in, float *out)
{
    size_t count, at = 0;
    const tt_tensor_t *tensor = tt_net_tensors(net, &count);
    for (size_t i = 0; i < count; i++) {
        const size_t size = (size_t)tensor[i].rows * tensor[i].cols;
        memcpy(out + tensor[i].offset, in + at, size * sizeof(float));
        at += size;
    }
    return at;
}
