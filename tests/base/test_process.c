/*  What the kernel counts of this process, against what else it says. */
#include "common/base/process.h"
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "tests/test.h"

enum { BYTES = 64 << 20 };

static void test_memory(void **state)
{
    (void)state;
    const tt_process_memory_t before = tt_process_memory();
    assert_true(before.resident > 0 && before.addressed >= before.resident);
    char *more = tt_new0(BYTES);
    memset(more, 1, BYTES);
    const tt_process_memory_t after = tt_process_memory();
    assert_true(after.resident >= before.resident + BYTES / 2);
    assert_true(more[BYTES - 1] == 1);
    free(more);
}

static void test_processor_time(void **state)
{
    (void)state;
    struct rusage usage;
    const double before_s = tt_process_cpu_s();
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    const double after_s = tt_process_cpu_s();
    const double used_s = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                          (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
    assert_true(before_s > 0 && used_s >= before_s - 1e-5 && used_s <= after_s + 1e-5);
}

static void test_start(void **state)
{
    (void)state;
    const int64_t start_ns = tt_process_start_ns(), now_ns = tt_now_ns(tt_clock_real());
    assert_true(start_ns < now_ns);
    assert_true(now_ns - start_ns < INT64_C(600) * 1000000000); /* the test's own life */
    const double ago_s = (double)tt_wall_ns() * 1e-9 - tt_process_started_s();
    assert_true(ago_s > 0 && ago_s < 600);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_processor_time),
        cmocka_unit_test(test_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
