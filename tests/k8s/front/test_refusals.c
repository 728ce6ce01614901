/*  What could not be made, and for how long that is remembered. */
#include "k8s/front/refusals.h"
#include <stdio.h>
#include "tests/test.h"

static void s_refuse(front_refusals_t *self, int group, const char *words, int64_t until_ms)
{
    char own[16]; /* words are copied */
    snprintf(own, sizeof own, "%s", words);
    front_refuse(self, &(front_refusal_t){.group = group, .words = own, .until_ms = until_ms});
    own[0] = '?';
}

static void test_the_newest_words_of_a_group_count(void **state)
{
    (void)state;
    front_refusals_t self = {0};
    assert_int_equal(front_refused_until(&self, 0), INT64_MAX);
    s_refuse(&self, 1, "a", 10);
    s_refuse(&self, 2, "b", 10);
    s_refuse(&self, 1, "c", 20);
    assert_int_equal(self.count, 2);
    assert_string_equal(self.list[1].words, "c");
    assert_null(self.list[1].reason);
    front_allow(&self, 1);
    assert_int_equal(self.count, 1);
    assert_string_equal(self.list[0].words, "b");
    front_allow(&self, 7);
    front_refusals_clear(&self);
    assert_int_equal(self.count, 0);
}

static void test_a_time_passes(void **state)
{
    (void)state;
    front_refusals_t self = {0};
    s_refuse(&self, 1, "never", INT64_MAX);
    s_refuse(&self, 2, "late", 200);
    s_refuse(&self, 3, "soon", 100);
    assert_int_equal(front_refused_until(&self, 99), 100);
    assert_int_equal(front_refused_until(&self, 100), 200);
    assert_int_equal(self.count, 2);
    assert_int_equal(front_refused_until(&self, 1000), INT64_MAX);
    assert_int_equal(self.count, 1);
    front_refusals_clear(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_newest_words_of_a_group_count), cmocka_unit_test(test_a_time_passes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
