/*  The folder of checkpoints: which names belong there, which go, and the second name of the best. */
#include "common/job/checkpoints.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "tests/test.h"

static void test_names(void **state)
{
    (void)state;
    char name[TT_CHECKPOINT_NAME];
    tt_checkpoint_name(name, 123);
    assert_string_equal(name, "00000123.safetensors");
    assert_true(tt_checkpoint_is_name(name));
    tt_checkpoint_name(name, 123456789012);
    assert_true(tt_checkpoint_is_name(name));
    assert_true(tt_checkpoint_is_name("final.safetensors"));
    const char *const wrong[] = {"", "best.safetensors", "123.safetensors", "00000123.safetensors.part",
        "../00000123.safetensors", "00000123", "00000123/.safetensors", "final.safetensors/",
        "00000000000000000000000123.safetensors"};
    for (size_t i = 0; i < TT_COUNT(wrong); i++)
        assert_false(tt_checkpoint_is_name(wrong[i]));
}

static void s_touch(const char *folder, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static bool s_is_there(const char *folder, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static void test_the_newest_stay(void **state)
{
    (void)state;
    char dir[] = "/tmp/tt-checkpoints-XXXXXX", folder[256], text[16] = {0}, path[512];
    assert_non_null(mkdtemp(dir));
    assert_ok(tt_checkpoints_open(dir, folder, sizeof folder));
    assert_ok(tt_checkpoints_open(dir, folder, sizeof folder)); /* there already */
    for (uint64_t update = 9; update <= 12; update++) {
        char name[TT_CHECKPOINT_NAME];
        tt_checkpoint_name(name, update);
        s_touch(folder, name, "x");
    }
    s_touch(folder, "final.safetensors", "the end");
    s_touch(folder, ".00000013.safetensors.part", "half");
    tt_checkpoints_keep(folder, 2);
    assert_false(s_is_there(folder, "00000009.safetensors"));
    assert_false(s_is_there(folder, "00000010.safetensors"));
    assert_true(s_is_there(folder, "00000011.safetensors"));
    assert_true(s_is_there(folder, "00000012.safetensors"));
    assert_true(s_is_there(folder, "final.safetensors"));
    assert_true(s_is_there(folder, ".00000013.safetensors.part"));
    tt_checkpoints_keep(folder, 0);
    assert_true(s_is_there(folder, "00000012.safetensors"));

    assert_ok(tt_checkpoint_alias(folder, "00000012.safetensors", TT_CHECKPOINT_BEST));
    assert_ok(tt_checkpoint_alias(folder, "final.safetensors", TT_CHECKPOINT_BEST));
    assert_ok(tt_checkpoint_alias(folder, "final.safetensors", TT_CHECKPOINT_BEST)); /* one file already */
    snprintf(path, sizeof path, "%s/%s", folder, TT_CHECKPOINT_BEST);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fread(text, 1, sizeof text - 1, file), 7);
    fclose(file);
    assert_string_equal(text, "the end");
    assert_false(s_is_there(folder, "best.safetensors.tmp"));
    assert_int_equal(tt_checkpoint_alias(folder, "none", TT_CHECKPOINT_BEST), TT_IO);
    assert_int_equal(tt_checkpoints_open("/nonexistent", folder, sizeof folder), TT_IO);

    char *command = tt_sprintf("rm -rf '%s'", dir);
    assert_int_equal(system(command), 0);
    free(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names), cmocka_unit_test(test_the_newest_stay)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
