#include "tests/k8s/operator/prometheus.h"
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    prom_t *out;
    char helped[96], family[96], type[16]; /* of the lines before  */
    char seen[256][96];                    /* families so far      */
    size_t seen_count;
} reader_t;

static bool s_is_name(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:", text[i]) &&
            (i == 0 || !strchr("0123456789", text[i])))
            return false;
    return size > 0;
}

/*  A name of the line at *at, which moves behind it. */
static void s_name(char *out, size_t room, const char **at)
{
    const size_t size = strcspn(*at, " {=\n");
    if (!s_is_name(*at, size) || size >= room)
        fail_msg("no name: '%.80s'", *at);
    memcpy(out, *at, size);
    out[size] = '\0';
    *at += size;
}

static void s_comment(reader_t *self, const char *line)
{
    const bool help = strncmp(line, "# HELP ", 7) == 0;
    const char *at = line + 7;
    char name[96];
    if (!help && strncmp(line, "# TYPE ", 7) != 0)
        fail_msg("neither HELP nor TYPE: '%s'", line);
    s_name(name, sizeof name, &at);
    if (*at != ' ' || !at[1])
        fail_msg("nothing is said: '%s'", line);
    if (help) {
        memcpy(self->helped, name, sizeof name);
        return;
    }
    assert_string_equal(name, self->helped);
    for (size_t i = 0; i < self->seen_count; i++)
        assert_string_not_equal(self->seen[i], name); /* a family in two pieces */
    assert_true(self->seen_count < TT_COUNT(self->seen));
    memcpy(self->seen[self->seen_count++], name, sizeof name);
    memcpy(self->family, name, sizeof name);
    assert_true(strcmp(at + 1, "gauge") == 0 || strcmp(at + 1, "counter") == 0 || strcmp(at + 1, "histogram") == 0);
    snprintf(self->type, sizeof self->type, "%s", at + 1);
}

static void s_label(prom_sample_t *sample, const char **at)
{
    assert_true(sample->label_count < PROM_LABELS);
    char *key = sample->keys[sample->label_count], *value = sample->values[sample->label_count++];
    s_name(key, sizeof sample->keys[0], at);
    assert_memory_equal(*at, "=\"", 2);
    *at += 2;
    for (size_t i = 0; **at != '"'; i++) {
        assert_true(**at && **at != '\n' && i + 1 < sizeof sample->values[0]);
        *at += **at == '\\';
        value[i] = *(*at)++;
    }
    ++*at;
}

/*  Of a histogram the three that belong to it. */
static bool s_is_of_family(const reader_t *self, const char *name)
{
    static const char *const ends[] = {"_bucket", "_sum", "_count"};
    const size_t size = strlen(self->family);
    if (strcmp(self->type, "histogram") != 0)
        return strcmp(name, self->family) == 0;
    for (size_t i = 0; i < TT_COUNT(ends); i++)
        if (strncmp(name, self->family, size) == 0 && strcmp(name + size, ends[i]) == 0)
            return true;
    return false;
}

static bool s_has_label(const prom_sample_t *self, const char *key, const char *value)
{
    for (size_t i = 0; i < self->label_count; i++)
        if (strcmp(self->keys[i], key) == 0)
            return strcmp(self->values[i], value) == 0;
    return false;
}

static bool s_is_same_series(const prom_sample_t *a, const prom_sample_t *b)
{
    if (strcmp(a->name, b->name) != 0 || a->label_count != b->label_count)
        return false;
    for (size_t i = 0; i < a->label_count; i++)
        if (!s_has_label(b, a->keys[i], a->values[i]))
            return false;
    return true;
}

static void s_sample(reader_t *self, const char *line)
{
    prom_t *out = self->out;
    const char *at = line;
    char *end;
    assert_true(out->count < PROM_SAMPLES);
    prom_sample_t *sample = &out->samples[out->count];
    *sample = (prom_sample_t){0};
    s_name(sample->name, sizeof sample->name, &at);
    memcpy(sample->type, self->type, sizeof self->type);
    if (!s_is_of_family(self, sample->name))
        fail_msg("%s is not of %s", sample->name, self->family);
    if (*at == '{') {
        do {
            at++;
            s_label(sample, &at);
        } while (*at == ',');
        assert_int_equal(*at++, '}');
    }
    assert_int_equal(*at++, ' ');
    sample->value = strtod(at, &end);
    if (end == at || *end)
        fail_msg("no number: '%s'", line);
    assert_true(strcmp(self->type, "gauge") == 0 || sample->value >= 0);
    for (size_t i = 0; i < out->count; i++)
        if (s_is_same_series(&out->samples[i], sample))
            fail_msg("twice: %s", line);
    out->count++;
}

/* ---- histograms ----------------------------------------------------------------------------------------------------- */

/*  The buckets of a series follow each other, and its count comes behind them. */
static void s_check_histograms(const prom_t *self)
{
    double last_bound = -INFINITY, last = 0;
    for (size_t i = 0; i < self->count; i++) {
        const prom_sample_t *sample = &self->samples[i];
        const size_t size = strlen(sample->name);
        if (strcmp(sample->type, "histogram") != 0)
            continue;
        if (strcmp(sample->name + size - 7, "_bucket") == 0) {
            assert_string_equal(sample->keys[sample->label_count - 1], "le");
            const double bound = strtod(sample->values[sample->label_count - 1], NULL); /* "+Inf", too */
            assert_true(bound > last_bound && sample->value >= last);
            last_bound = bound;
            last = sample->value;
        } else if (strcmp(sample->name + size - 6, "_count") == 0) {
            assert_true(isinf(last_bound));
            assert_true(sample->value == last);
            last_bound = -INFINITY;
            last = 0;
        }
    }
    assert_true(last_bound == -INFINITY);
}

/* ---- all of it -------------------------------------------------------------------------------------------------------- */

void prom_read(prom_t *out, const char *text)
{
    reader_t reader = {.out = out};
    char line[512];
    out->count = 0;
    for (const char *at = text; *at; at++) {
        const size_t size = strcspn(at, "\n");
        assert_true(at[size] == '\n' && size < sizeof line); /* the last line ends, too */
        memcpy(line, at, size);
        line[size] = '\0';
        if (line[0] == '#')
            s_comment(&reader, line);
        else
            s_sample(&reader, line);
        at += size;
    }
    s_check_histograms(out);
}

double prom_get(const prom_t *self, const char *name, const char *labels)
{
    prom_sample_t want = {0};
    snprintf(want.name, sizeof want.name, "%s", name);
    for (const char *at = labels; *at; at += *at == ',')
        s_label(&want, &at);
    for (size_t i = 0; i < self->count; i++)
        if (s_is_same_series(&self->samples[i], &want))
            return self->samples[i].value;
    fail_msg("no series %s{%s}", name, labels);
    return 0;
}

double prom_sum(const prom_t *self, const char *name)
{
    double sum = 0;
    for (size_t i = 0; i < self->count; i++)
        sum += strcmp(self->samples[i].name, name) == 0 ? self->samples[i].value : 0;
    return sum;
}

size_t prom_count(const prom_t *self, const char *name)
{
    size_t count = 0;
    for (size_t i = 0; i < self->count; i++)
        count += strcmp(self->samples[i].name, name) == 0;
    return count;
}
