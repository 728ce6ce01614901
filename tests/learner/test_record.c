/*  What a run has reached: what beats what, and what a snapshot brings along. */
#include "tests/test.h"
#include <math.h>
#include "learner/record.h"

static void test_better_is_strictly_more(void **state)
{
    (void)state;
    record_t self;
    record_reset(&self);
    assert_false(record_better(&self, NAN));
    assert_true(isnan(self.best));
    assert_true(record_better(&self, -200)); /* the first, whatever it is */
    assert_false(record_better(&self, -200));
    assert_false(record_better(&self, -201));
    assert_false(record_better(&self, NAN));
    assert_true(record_exceeds(&self, -199) && record_exceeds(&self, -199)); /* noted by the other alone */
    assert_true(record_better(&self, -199));
    assert_true(self.best == -199);
}

static void test_a_snapshot_brings_it_along(void **state)
{
    (void)state;
    record_t self;
    record_reset(&self);
    assert_int_equal(self.solved_steps, 0);
    record_solve(&self, 4096, 17, 480);
    record_t other;
    record_restore(&other, self.solved_steps, self.solved_mean, 490);
    assert_int_equal(other.solved_steps, 4096);
    assert_int_equal(other.solved_ns, 0); /* when, that is another clock's */
    assert_true(other.solved_mean == 480 && other.best == 490);
    record_reset(&self);
    assert_int_equal(self.solved_steps, 0);
    assert_true(isnan(self.best));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_better_is_strictly_more),
        cmocka_unit_test(test_a_snapshot_brings_it_along),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
