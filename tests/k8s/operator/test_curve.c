/*  The key of a job's Secret: once it has gone to the API server no memory of ours that is given back holds it. */
#include <jansson.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/k8s/operator/operator_bench.h"

#define JOBS JOBS_PATH "/namespaces/n/dijobs"

/*  The linker sends every malloc, realloc, free and json_delete of the program here (CMakeLists.txt). New memory is zeros: what
 *  libraries have given back without a word to us (docs/internals/k8s.md) is not taken for ours. */
void *__wrap_malloc(size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void __real_free(void *memory);
void __wrap_free(void *memory);
void __real_json_delete(json_t *value);
void __wrap_json_delete(json_t *value);

static size_t s_seen, s_found; /* Secrets and their texts that were given back; those with a key in them */

static bool s_has_key(const char *text, size_t size)
{
    const char *at = memmem(text, size, "secret-key = ", 13); /* then a quote, in JSON behind a backslash */
    return at && memchr(at, '"', size - (size_t)(at - text)) != NULL;
}

void *__wrap_malloc(size_t size)
{
    return calloc(1, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    const size_t before = memory ? malloc_usable_size(memory) : 0;
    char *out = __real_realloc(memory, size);
    const size_t after = out ? malloc_usable_size(out) : 0;
    if (after > before)
        memset(out + before, 0, after - before);
    return out;
}

void __wrap_free(void *memory)
{
    if (memory)
        s_found += s_has_key(memory, malloc_usable_size(memory));
    __real_free(memory);
}

void __wrap_json_delete(json_t *value)
{
    const json_t *file = json_object_get(json_object_get(value, "stringData"), "curve.key");
    s_seen += file != NULL;
    s_found += file && s_has_key(json_string_value(file), json_string_length(file));
    __real_json_delete(value);
}

static bool s_has_curve(void *ctx)
{
    const job_t *job = bench_job(ctx);
    return job && (job->notes.made & 1);
}

static bool s_is_quiet(void *ctx)
{
    operator_t *op = ctx;
    return !op->rounds && kube_client_pending(op->client) == 0;
}

static void test_the_key_is_wiped(void **state)
{
    bench_t *bench = *state;
    bench_make(bench, JOBS,
        "{'apiVersion':'" DIJOB_GROUP "/v1alpha1','kind':'DIJob','metadata':{'name':'j'},'spec':{'engine':'tutti',"
        "'coordinator':{'template':{'spec':{'containers':[{'name':'di-container','image':'x:1'}]}}}}}");
    tt_queue_pause(bench->op->queue, false);
    bench_until(bench, s_has_curve, bench->op);
    bench_until(bench, s_is_quiet, bench->op);
    assert_int_equal(s_seen, 1);
    assert_int_equal(s_found, 0);
    char *text = NULL;
    char *path = tt_sprintf("/api/v1/namespaces/n/secrets/j-curve-%.8s", bench_job(bench->op)->meta.uid);
    assert_ok(world_call(&bench->world, "GET", path, NULL, &text));
    free(path);
    assert_true(s_has_key(text, strlen(text))); /* it did go, and this is how it is found */
    free(text);
    assert_true(s_found > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_key_is_wiped, bench_setup, bench_teardown)};
    return cmocka_run_group_tests(tests, NULL, world_end);
}
