/*  Rows made of frames that a device keeps. */
#include "tests/nn/store_fixture.h"

static void test_rows(void **state)
{
    (void)state;
    place_t place;
    fixture_open(&place, 1);
    store_check(&place);
    fixture_close(&place);
}

/*  Only a device whose memory is its own says that some is free. */
static void test_room(void **state)
{
    (void)state;
    static const char *const apart[] = {"cpu", "cpu-strict"};
    for (size_t i = 0; i < TT_COUNT(apart); i++) {
        place_t place;
        fixture_open_on(&place, apart[i], 1);
        assert_int_equal(tt_device_free(place.device) > 0, i);
        fixture_close(&place);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_room)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
