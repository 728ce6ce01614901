/*  writer: whole records in the file and each once, also when not all of it could be written. */
#include "coordinator/writer.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/folder.h"
#include "tests/test.h"

enum { LINE = 300 };

static char s_dir[FOLDER_MAX], s_path[96];
static struct rlimit s_usual;

static int s_setup(void **state)
{
    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    if (folder_make(s_dir, "writer") != 0)
        return -1;
    snprintf(s_path, sizeof s_path, "%s/file", s_dir);
    return getrlimit(RLIMIT_FSIZE, &s_usual);
}

static int s_teardown(void **state)
{
    (void)state;
    return setrlimit(RLIMIT_FSIZE, &s_usual) || folder_remove(s_dir);
}

/*  From now on no file grows beyond this: a write up to it is short, the next one fails. */
static void s_limit(rlim_t bytes)
{
    const struct rlimit limit = {.rlim_cur = bytes, .rlim_max = s_usual.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void s_add(writer_t *writer, int number)
{
    const size_t begun = writer_begin(writer);
    assert_ok(writer_end(writer, begun, tt_buf_printf(&writer->pending, "%*d\n", LINE - 1, number)));
}

/*  The file holds the lines 0, 1, ... count - 1 and nothing else. */
static void s_expect(int count)
{
    char line[2 * LINE];
    FILE *file = fopen(s_path, "r");
    assert_non_null(file);
    for (int i = 0; i < count; i++) {
        assert_non_null(fgets(line, sizeof line, file));
        assert_int_equal(strlen(line), LINE);
        assert_int_equal(atoi(line), i);
    }
    assert_null(fgets(line, sizeof line, file));
    fclose(file);
}

static void test_a_short_write_is_taken_back_and_repeated_whole(void **state)
{
    (void)state;
    writer_t writer;
    int added = 0;
    assert_ok(writer_open(&writer, s_path, false));
    s_add(&writer, added++);
    assert_ok(writer_flush(&writer));
    for (rlim_t limit = LINE; limit < 3 * LINE; limit += 77) { /* in the middle of a line, between two, at once */
        s_limit(limit);
        while (added < 4)
            s_add(&writer, added++);
        assert_int_equal(writer_flush(&writer), TT_IO);
        assert_non_null(strstr(tt_err_text(), "File too large"));
        s_expect(1);
    }
    s_limit(s_usual.rlim_cur);
    assert_ok(writer_flush(&writer));
    s_expect(4);
    s_add(&writer, added++);
    assert_ok(writer_close(&writer));
    s_expect(5);
}

static void test_closing_on_a_full_disk_leaves_whole_lines(void **state)
{
    (void)state;
    writer_t writer;
    assert_ok(writer_open(&writer, s_path, false));
    s_add(&writer, 0);
    assert_ok(writer_flush(&writer));
    s_add(&writer, 1);
    s_limit(LINE + LINE / 2);
    assert_int_equal(writer_close(&writer), TT_IO);
    s_expect(1);
    s_limit(s_usual.rlim_cur);
    assert_ok(writer_open(&writer, s_path, false)); /* who comes next goes on */
    s_add(&writer, 1);
    assert_ok(writer_close(&writer));
    s_expect(2);
}

static void test_a_record_that_does_not_fit_is_left_out_altogether(void **state)
{
    (void)state;
    writer_t writer;
    assert_ok(writer_open(&writer, s_path, false));
    s_add(&writer, 0);
    const size_t begun = writer_begin(&writer);
    tt_status_t status = TT_OK;
    while (status == TT_OK)
        status = tt_buf_str(&writer.pending, "one piece more of a record that has no end");
    assert_int_equal(writer_end(&writer, begun, status), TT_INVALID);
    s_add(&writer, 1);
    assert_ok(writer_close(&writer));
    s_expect(2);
}

static void test_a_full_disk_is_named(void **state)
{
    (void)state;
    writer_t writer;
    assert_ok(writer_open(&writer, "/dev/full", false));
    s_add(&writer, 0);
    assert_int_equal(writer_flush(&writer), TT_IO);
    assert_non_null(strstr(tt_err_text(), "/dev/full: the disk is full; make room"));
    assert_int_equal(writer_close(&writer), TT_IO);
}

static void test_what_is_no_file_of_ours(void **state)
{
    (void)state;
    writer_t writer;
    char other[128];
    snprintf(other, sizeof other, "%s/other", s_dir);
    assert_ok(writer_open(&writer, other, true));
    assert_ok(writer_close(&writer));
    assert_int_equal(writer_open(&writer, other, true), TT_EXISTS);
    assert_int_equal(symlink(other, s_path), 0);
    assert_int_equal(writer_open(&writer, s_path, false), TT_IO); /* where it leads is not ours to write to */
    assert_int_equal(unlink(s_path), 0);
    assert_int_equal(mkfifo(s_path, 0600), 0);
    assert_int_equal(writer_open(&writer, s_path, false), TT_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_short_write_is_taken_back_and_repeated_whole, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_closing_on_a_full_disk_leaves_whole_lines, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_record_that_does_not_fit_is_left_out_altogether, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_full_disk_is_named, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_what_is_no_file_of_ours, s_setup, s_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
