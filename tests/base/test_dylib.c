/*  A library that is loaded late: its functions, what is said when something is missing, and many at once. */
#include "common/base/dylib.h"
#include <pthread.h>
#include <string.h>
#include "tests/test.h"

/* Found without being linked to: every system with glibc has it. */
#define MATHS "libm.so.6"

static struct {
    double (*floor)(double);
    double (*fmax)(double, double);
} s_maths;

static const tt_symbol_t s_symbols[] = {{"floor", &s_maths.floor}, {"fmax", &s_maths.fmax}};

static void test_the_functions_work(void **state)
{
    (void)state;
    static tt_dylib_t library = TT_DYLIB(MATHS, "", s_symbols, NULL);
    assert_ok(tt_dylib_load(&library));
    assert_true(s_maths.floor(2.75) == 2.0);
    assert_true(s_maths.fmax(3.0, 4.0) == 4.0);
    assert_ok(tt_dylib_load(&library));
}

static void test_a_library_that_is_missing_is_named_with_the_advice(void **state)
{
    (void)state;
    static tt_dylib_t library = TT_DYLIB("libtutti-nowhere.so.7", "install nowhere7", s_symbols, NULL);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tt_dylib_load(&library), TT_UNSUPPORTED);
        assert_non_null(strstr(tt_err_text(), "libtutti-nowhere.so.7"));
        assert_non_null(strstr(tt_err_text(), "; install nowhere7"));
    }
}

static void test_a_symbol_that_is_missing_is_named(void **state)
{
    (void)state;
    static void (*nothing)(void);
    static const tt_symbol_t symbols[] = {{"floor", &s_maths.floor}, {"tutti_nothing", &nothing}};
    static tt_dylib_t library = TT_DYLIB(MATHS, "", symbols, NULL);
    assert_int_equal(tt_dylib_load(&library), TT_UNSUPPORTED);
    assert_string_equal(tt_err_text(), MATHS " has no tutti_nothing");
    assert_null(nothing);
}

static int s_inits;

static tt_status_t s_init_at_second(void)
{
    assert_non_null(s_maths.fmax); /* all symbols are there before */
    return ++s_inits < 2 ? tt_err(TT_UNAVAILABLE, "not yet") : TT_OK;
}

static void test_a_load_that_failed_is_tried_again_and_one_that_did_not_is_not(void **state)
{
    (void)state;
    static tt_dylib_t library = TT_DYLIB(MATHS, "", s_symbols, s_init_at_second);
    s_inits = 0;
    memset(&s_maths, 0, sizeof s_maths);
    assert_int_equal(tt_dylib_load(&library), TT_UNAVAILABLE);
    assert_string_equal(tt_err_text(), "not yet");
    assert_ok(tt_dylib_load(&library));
    assert_ok(tt_dylib_load(&library));
    assert_int_equal(s_inits, 2);
}

static tt_status_t s_init_count(void)
{
    s_inits++; /* not atomic: the library's lock is what is tested */
    return TT_OK;
}

static tt_dylib_t s_shared = TT_DYLIB(MATHS, "", s_symbols, s_init_count);

static void *s_load_and_call(void *start)
{
    pthread_barrier_wait(start);
    return tt_dylib_load(&s_shared) == TT_OK && s_maths.floor(1.5) == 1.0 ? start : NULL;
}

static void test_threads_that_load_at_once_all_find_it_loaded_once(void **state)
{
    (void)state;
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    pthread_barrier_t start;
    s_inits = 0;
    memset(&s_maths, 0, sizeof s_maths);
    assert_int_equal(pthread_barrier_init(&start, NULL, THREADS), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, s_load_and_call, &start), 0);
    for (int i = 0; i < THREADS; i++) {
        void *good = NULL;
        assert_int_equal(pthread_join(threads[i], &good), 0);
        assert_non_null(good);
    }
    pthread_barrier_destroy(&start);
    assert_int_equal(s_inits, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_functions_work),
        cmocka_unit_test(test_a_library_that_is_missing_is_named_with_the_advice),
        cmocka_unit_test(test_a_symbol_that_is_missing_is_named),
        cmocka_unit_test(test_a_load_that_failed_is_tried_again_and_one_that_did_not_is_not),
        cmocka_unit_test(test_threads_that_load_at_once_all_find_it_loaded_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
