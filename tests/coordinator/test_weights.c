/*  weights: which file a client gets, and that nothing else of the machine can be asked for. */
#include "coordinator/weights.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "coordinator/files.h"
#include "coordinator/state.h"
#include "tests/folder.h"
#include "tests/test.h"

static int s_setup(void **state)
{
    coordinator_t *self = tt_new0(sizeof *self);
    char folder[4200];
    *state = self;
    if (folder_make(self->root, "weights") != 0)
        return -1;
    snprintf(folder, sizeof folder, "%s/checkpoints", self->root);
    if (mkdir(folder, 0755) != 0 || files_replace(self->root, "secret", "secret", 0600) != TT_OK ||
        files_replace(folder, "00000003.safetensors", "three", 0644) != TT_OK ||
        files_replace(folder, "00000007.safetensors", "seven", 0644) != TT_OK)
        return -1;
    return 0;
}

static int s_teardown(void **state)
{
    coordinator_t *self = *state;
    const int code = folder_remove(self->root);
    free(self);
    return code;
}

static void s_expect(const coordinator_t *self, const char *query, const char *name, const char *text)
{
    http_file_t file;
    char got[16] = "";
    assert_ok(weights_open(self, query, &file));
    assert_string_equal(file.name, name);
    assert_int_equal(file.size, strlen(text));
    assert_int_equal(read(file.fd, got, sizeof got - 1), (ssize_t)strlen(text));
    assert_string_equal(got, text);
    close(file.fd);
}

static void s_newest_is(coordinator_t *self, const char *path)
{
    snprintf(self->snapshot.path, sizeof self->snapshot.path, "%s", path);
}

static void test_which(void **state)
{
    coordinator_t *self = *state;
    http_file_t file;
    char folder[4200];
    assert_int_equal(weights_open(self, "", &file), TT_NOT_FOUND); /* files there are, and the journal knows of none */
    assert_non_null(strstr(tt_err_text(), "no weights yet"));
    assert_int_equal(weights_open(self, "best", &file), TT_NOT_FOUND);
    s_newest_is(self, "checkpoints/00000003.safetensors"); /* 7 is of a time that the run has gone back from */
    s_expect(self, "", "00000003.safetensors", "three");
    s_newest_is(self, "checkpoints/00000007.safetensors");
    s_expect(self, "", "00000007.safetensors", "seven");
    s_expect(self, "below=7", "00000003.safetensors", "three");
    s_expect(self, "below=9999999999999999999", "00000007.safetensors", "seven");
    assert_int_equal(weights_open(self, "below=3", &file), TT_NOT_FOUND);
    snprintf(folder, sizeof folder, "%s/checkpoints", self->root);
    assert_ok(files_replace(folder, "best.safetensors", "best", 0644));
    s_expect(self, "best", "best.safetensors", "best");
}

static void test_nothing_else(void **state)
{
    coordinator_t *self = *state;
    http_file_t file;
    s_newest_is(self, "checkpoints/00000007.safetensors");
    static const char *const wrong[] = {"worst", "best=1", "below", "below=", "below=-1", "below=1&best", "below=0x10",
        "below=99999999999999999999", "below=../secret", "../secret"};
    for (size_t i = 0; i < TT_COUNT(wrong); i++)
        assert_int_equal(weights_open(self, wrong[i], &file), TT_INVALID);
    static const char *const named[] = {"secret", "checkpoints/../secret", "/etc/passwd", "checkpoints/",
        "checkpoints/.00000007.safetensors.part"}; /* what a learner said */
    for (size_t i = 0; i < TT_COUNT(named); i++) {
        s_newest_is(self, named[i]);
        assert_int_equal(weights_open(self, "", &file), TT_NOT_FOUND);
    }
    s_newest_is(self, "/etc/00000007.safetensors"); /* the run's own, whatever folder was named */
    s_expect(self, "", "00000007.safetensors", "seven");
    s_newest_is(self, "checkpoints/00000008.safetensors"); /* it is gone */
    assert_int_equal(weights_open(self, "", &file), TT_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_which, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_nothing_else, s_setup, s_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
