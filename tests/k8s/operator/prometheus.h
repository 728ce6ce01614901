/*  prometheus - the text format 0.0.4 as its reader takes it: every line is understood, or the test fails. */
#pragma once
#include <stddef.h>
#include "tests/test.h"

enum { PROM_SAMPLES = 2048, PROM_LABELS = 4 };

typedef struct {
    char name[96], type[16]; /* type: of the family that the line belongs to */
    size_t label_count;
    char keys[PROM_LABELS][32], values[PROM_LABELS][96]; /* in the order of the line */
    double value;
} prom_sample_t;

typedef struct {
    prom_sample_t samples[PROM_SAMPLES];
    size_t count;
} prom_t;

/*  Fails the test where a line is none of the format: a sample without a type, a family in two pieces, a series twice, a counter
 *  below zero, a histogram whose buckets fall, do not end with +Inf, or do not make its count. */
void prom_read(prom_t *out, const char *text);
/*  labels: "code=\"200\",method=\"GET\"", in any order, all of them; "" = none. Fails where there is no such series. */
double prom_get(const prom_t *self, const char *name, const char *labels);
/*  The sum over all series of a name; how many there are of it. */
double prom_sum(const prom_t *self, const char *name);
size_t prom_count(const prom_t *self, const char *name);
