/*  golden - what PyTorch recorded (tests/golden/torch), beside a network of the same parameters. */
#pragma once
#include "common/nn/nn.h"
#include "common/nn/safetensors.h"
#include "tests/nn/fixture.h"

typedef struct {
    tt_st_t *file;
    place_t place;
    tt_net_t *net;
    size_t count; /* parameters */
    float *flat;  /* [count] scratch */
} golden_t;

/*  Open tests/golden/torch/<name>; set 0 gets its parameters. */
void golden_open(golden_t *g, const char *name, const tt_net_spec_t *spec);
void golden_close(golden_t *g);

/*  A recorded array of so many floats. */
const float *golden_array(const golden_t *g, size_t count, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/*  A recorded array of observations, in its own order; fixture_rows_free it. */
rows_t golden_rows(const golden_t *g, const char *name, size_t obs, size_t rows);

/*  g->flat[i] of every tensor, from "<prefix><tensor>"; files hold what PyTorch does (common/nn/tensor.h). */
const float *golden_flatten(const golden_t *g, const char *prefix);

/*  Fails unless |got - expected| <= tolerance (1 + |expected|) everywhere. */
void golden_compare(const float *got, const float *expected, size_t count, double tolerance, const char *what);
