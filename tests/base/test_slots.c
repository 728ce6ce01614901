/*  slots: things that come and go at random are found by their numbers while they are there, and never by an old one. */
#include "common/base/slots.h"
#include <string.h>
#include "tests/test.h"

enum { THINGS = 300, TURNS = 20000 };

static void at_random(void **state)
{
    (void)state;
    tt_slots_t slots = {0};
    uint64_t ids[THINGS] = {0}, old[THINGS] = {0}, last = 0;
    uint32_t seed = 1;
    for (int turn = 0; turn < TURNS; turn++) {
        seed = seed * 1664525u + 1013904223u;
        const size_t i = (size_t)((uint64_t)seed * THINGS >> 32);
        if (ids[i]) {
            assert_ptr_equal(tt_slots_find(&slots, ids[i])->thing, &ids[i]);
            tt_slots_remove(&slots, ids[i]);
            old[i] = ids[i];
            ids[i] = 0;
        } else {
            ids[i] = tt_slots_add(&slots, &ids[i]);
            assert_true(ids[i] >> 24 > last >> 24); /* no number twice, whatever its slot */
            last = ids[i];
        }
        assert_null(old[i] ? tt_slots_find(&slots, old[i]) : NULL);
    }
    size_t there = 0;
    for (size_t i = 0; i < THINGS; i++)
        there += ids[i] != 0;
    assert_int_equal(slots.count - slots.free_count, there);
    assert_true(slots.count <= THINGS);
    tt_slots_free(&slots);
}

static void what_is_not_there(void **state)
{
    (void)state;
    tt_slots_t slots = {0};
    assert_null(tt_slots_find(&slots, 0));
    const uint64_t id = tt_slots_add(&slots, &slots);
    assert_int_not_equal(id, 0);
    assert_null(tt_slots_find(&slots, 0));
    assert_null(tt_slots_find(&slots, id + 1));
    tt_slots_remove(&slots, id);
    assert_null(tt_slots_find(&slots, id));
    assert_null(tt_slots_find(&slots, 0));
    tt_slots_free(&slots);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(at_random), cmocka_unit_test(what_is_not_there)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
