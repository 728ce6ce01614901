/*  The table of kinds of jobs: who is found in it, and who is looked after. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "k8s/front/front.h"
#include "tests/test.h"

static const front_t *s_of(const char *api_version, const char *kind)
{
    json_t *object = json_pack("{s:s, s:s}", "apiVersion", api_version, "kind", kind);
    const front_t *front = front_of(object);
    json_decref(object);
    return front;
}

static void test_every_kind_is_found_by_what_its_objects_say(void **state)
{
    (void)state;
    for (size_t i = 0; i < front_end_count; i++) {
        const front_t *front = front_ends[i];
        char *ours = tt_sprintf("%s/v1", front->group), *others = tt_sprintf("%s.org/v1", front->group);
        assert_ptr_equal(s_of(ours, front->kind), front);
        assert_null(s_of(others, front->kind));
        assert_null(s_of(front->group, front->kind));
        assert_null(s_of(ours, "Pod"));
        free(ours);
        free(others);
    }
}

static void check_picked(const char *names, size_t count)
{
    const front_t *fronts[FRONT_ENDS_MAX];
    size_t picked = 0;
    assert_ok(front_pick(names, fronts, &picked));
    assert_int_equal(picked, count);
    assert_ptr_equal(fronts[0], front_ends[0]);
}

static void test_the_first_is_looked_after_and_who_is_named(void **state)
{
    (void)state;
    check_picked(NULL, 1);
    check_picked("", 1);
    check_picked("dijob,DIJob", 1);
    char all[32 * FRONT_ENDS_MAX] = "";
    for (size_t i = 0; i < front_end_count; i++)
        strcat(strcat(all, front_ends[i]->kind), ",");
    check_picked(all, front_end_count);
}

static void test_a_name_that_none_has_is_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"dijo", "dijobs", "dijob, dijob", ",", "dijob,,dijob", "x"};
    const front_t *fronts[FRONT_ENDS_MAX];
    size_t picked;
    for (size_t i = 0; i < TT_COUNT(names); i++) {
        assert_int_equal(front_pick(names[i], fronts, &picked), TT_INVALID);
        assert_non_null(strstr(tt_err_text(), "there are: dijob"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind_is_found_by_what_its_objects_say),
        cmocka_unit_test(test_the_first_is_looked_after_and_who_is_named),
        cmocka_unit_test(test_a_name_that_none_has_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
