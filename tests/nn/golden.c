#include "tests/nn/golden.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/nn/tensor.h"
#include "tests/test.h"
#include "tests/nn/st_file.h"

void golden_open(golden_t *g, const char *name, const tt_net_spec_t *spec)
{
    char path[512];
    snprintf(path, sizeof path, "%s/tests/golden/torch/%s", TT_SOURCE_DIR, name);
    assert_ok(st_file(&g->file, path));
    assert_non_null(tt_st_meta(g->file, "torch"));
    fixture_open(&g->place, 1);
    assert_ok(tt_net_new(&g->net, g->place.device, spec));
    g->count = tt_net_param_count(spec);
    g->flat = tt_array0(g->count, sizeof *g->flat);
    assert_ok(tt_net_put(g->net, g->place.stream, 0, golden_flatten(g, "")));
}

void golden_close(golden_t *g)
{
    tt_net_destroy(&g->net);
    fixture_close(&g->place);
    tt_st_destroy(&g->file);
    free(g->flat);
}

const float *golden_array(const golden_t *g, size_t count, const char *fmt, ...)
{
    char name[96];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    const tt_st_array_t *found = tt_st_find(g->file, name);
    if (!found)
        fail_msg("no array %s in the recorded file", name);
    assert_int_equal(found->type, TT_ST_F32);
    assert_int_equal(found->bytes, count * sizeof(float));
    return found->data;
}

rows_t golden_rows(const golden_t *g, const char *name, size_t obs, size_t rows)
{
    rows_t self = fixture_rows(&(tt_net_spec_t){.obs = (uint32_t)obs}, rows);
    memcpy(self.data, golden_array(g, rows * obs, "%s", name), rows * obs * sizeof(float));
    for (uint32_t r = 0; r < rows; r++) {
        self.row[r] = r;
        self.obs[r] = self.by_number[r];
    }
    return self;
}

const float *golden_flatten(const golden_t *g, const char *prefix)
{
    size_t tensor_count = 0;
    const tt_tensor_t *tensors = tt_net_tensors(g->net, &tensor_count);
    for (size_t t = 0; t < tensor_count; t++) {
        const size_t count = tt_tensor_count(&tensors[t]);
        const float *from = golden_array(g, count, "%s%s", prefix, tensors[t].name);
        for (size_t i = 0; i < count; i++)
            g->flat[tensors[t].offset + tt_tensor_at(&tensors[t], i)] = from[i];
    }
    return g->flat;
}

void golden_compare(const float *got, const float *expected, size_t count, double tolerance, const char *what)
{
    for (size_t i = 0; i < count; i++) {
        const double error = fabs((double)got[i] - (double)expected[i]);
        if (!(error <= tolerance * (1 + fabs((double)expected[i]))))
            fail_msg("%s[%zu]: %.9g, PyTorch says %.9g", what, i, (double)got[i], (double)expected[i]);
    }
}
