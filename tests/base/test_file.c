/*  Files written with care: whole or not at all, on a line of their own, and never through a link. */
#include "common/base/file.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/buf.h"
#include "common/base/log.h"
#include "tests/folder.h"
#include "tests/test.h"

static char s_dir[FOLDER_MAX];
static struct rlimit s_usual;

static int s_setup(void **state)
{
    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    return folder_make(s_dir, "file") != 0 || chdir(s_dir) != 0 || getrlimit(RLIMIT_FSIZE, &s_usual) != 0;
}

static int s_teardown(void **state)
{
    (void)state;
    return setrlimit(RLIMIT_FSIZE, &s_usual) || chdir("/") || folder_remove(s_dir);
}

static void s_limit(rlim_t bytes)
{
    const struct rlimit limit = {.rlim_cur = bytes, .rlim_max = s_usual.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void s_holds(const char *path, const char *expected)
{
    tt_buf_t text;
    tt_buf_init(&text, 65536);
    assert_ok(tt_buf_read_file(&text, path));
    assert_string_equal(tt_buf_text(&text), expected);
    tt_buf_free(&text);
}

static void s_count(void *ctx)
{
    (*(int *)ctx)++;
}

/*  Who waits hears of every piece that is there; of one that is not, nothing. */
static void test_written_in_pieces(void **state)
{
    (void)state;
    enum { SIZE = 2 * TT_FILE_PIECE + 5 };
    char *bytes = calloc(1, SIZE);
    int told = 0;
    struct stat info;
    const int fd = open("pieces", O_RDWR | O_CREAT, 0600);
    assert_true(bytes && fd >= 0);
    bytes[SIZE - 1] = 'e';
    assert_true(tt_file_write_pieces(fd, bytes, SIZE, true, (tt_progress_t){s_count, &told}));
    assert_int_equal(told, 3);
    assert_int_equal(fstat(fd, &info), 0);
    assert_int_equal(info.st_size, SIZE);
    char last = 0;
    assert_int_equal(pread(fd, &last, 1, SIZE - 1), 1);
    assert_int_equal(last, 'e');
    assert_true(tt_file_write_pieces(fd, bytes, 0, true, (tt_progress_t){s_count, &told}));
    assert_int_equal(told, 3);
    const struct rlimit small = {SIZE + TT_FILE_PIECE + 1, s_usual.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_false(tt_file_write_pieces(fd, bytes, SIZE, false, (tt_progress_t){s_count, &told}));
    assert_int_equal(told, 4);
    close(fd);
    free(bytes);
}

static void test_replaced_as_a_whole_or_not_at_all(void **state)
{
    (void)state;
    struct stat info;
    assert_ok(tt_file_replace(".", "note", "one", 0600));
    assert_int_equal(stat("note", &info), 0);
    assert_int_equal(info.st_mode & 07777, 0600);
    s_limit(5);
    assert_int_equal(tt_file_replace(".", "note", "rather long", 0600), TT_IO);
    assert_non_null(strstr(tt_err_text(), "File too large"));
    s_limit(s_usual.rlim_cur);
    s_holds("note", "one");
    assert_ok(tt_file_replace(".", "other", "precious", 0600));
    assert_int_equal(symlink("other", "link"), 0);
    assert_ok(tt_file_replace(".", "link", "new", 0600));
    s_holds("other", "precious");
    s_holds("link", "new");
    assert_int_equal(tt_file_replace("nowhere", "note", "x", 0600), TT_IO);
}

/*  How many entries the folder has. */
static int s_entries(void)
{
    int count = 0;
    FILE *list = popen("ls -A | wc -l", "r");
    assert_non_null(list);
    assert_int_equal(fscanf(list, "%d", &count), 1);
    pclose(list);
    return count;
}

static void test_saved_as_a_whole_and_over_nothing_unless_told(void **state)
{
    (void)state;
    const int before = s_entries();
    assert_ok(tt_file_is_free("saved"));
    assert_ok(tt_file_save("saved", "one", 3, false));
    assert_int_equal(tt_file_is_free("saved"), TT_EXISTS);
    assert_int_equal(tt_file_save("saved", "two", 3, false), TT_EXISTS);
    assert_non_null(strstr(tt_err_text(), "saved"));
    s_holds("saved", "one");
    s_limit(5);
    assert_int_equal(tt_file_save("saved", "rather long", 11, true), TT_IO);
    assert_int_equal(tt_file_save("other_saved", "rather long", 11, false), TT_IO);
    s_limit(s_usual.rlim_cur);
    s_holds("saved", "one");
    assert_int_equal(symlink("saved", "saved_link"), 0);
    assert_int_equal(tt_file_save("saved_link", "x", 1, false), TT_EXISTS);
    assert_ok(tt_file_save("saved", "three", 5, true));
    s_holds("saved", "three");
    assert_int_equal(tt_file_save("nowhere/saved", "x", 1, true), TT_IO);
    assert_int_equal(s_entries(), before + 2);
}

static void test_appended_to_on_a_line_of_its_own(void **state)
{
    (void)state;
    static const char *const pieces[] = {"one\n", "half", "two\n"};
    for (size_t i = 0; i < TT_COUNT(pieces); i++) {
        int fd = -1;
        assert_ok(tt_file_append(&fd, "log", 0644));
        assert_true(tt_file_write(fd, pieces[i], strlen(pieces[i]), NULL));
        assert_int_equal(fcntl(fd, F_GETFL) & (O_APPEND | O_NONBLOCK), O_APPEND);
        close(fd);
    }
    s_holds("log", "one\nhalf\ntwo\n");
    int fd = -1;
    assert_int_equal(symlink("log", "link"), 0);
    assert_int_equal(mkfifo("fifo", 0600), 0);
    assert_int_equal(tt_file_append(&fd, "link", 0644), TT_IO);
    assert_int_equal(tt_file_append(&fd, "fifo", 0644), TT_IO);
    assert_int_equal(tt_file_append(&fd, ".", 0644), TT_IO);
}

static void test_paths_are_made(void **state)
{
    (void)state;
    struct stat info;
    const mode_t mask = umask(022);
    assert_ok(tt_file_make_path("a/b//c/d", 0700));
    assert_ok(tt_file_make_path("a/b/c/d/", 0700));
    umask(mask);
    assert_int_equal(stat("a/b", &info), 0);
    assert_int_equal(info.st_mode & 07777, 0755);
    assert_int_equal(stat("a/b/c/d", &info), 0);
    assert_int_equal(info.st_mode & 07777, 0700);
    assert_ok(tt_file_replace(".", "file", "x", 0600));
    assert_int_equal(tt_file_make_path("file/d", 0700), TT_IO);
    assert_int_equal(tt_file_make_path("file", 0700), TT_IO);
}

/*  A process that logs 60 lines into a file that may not grow beyond a limit for the first 20. */
static void s_log_lines(void)
{
    const int fd = open("err", O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(fd, STDERR_FILENO);
    tt_log_init("test", 0);
    s_limit(1000);
    for (int i = 0; i < 60; i++) {
        if (i == 20)
            s_limit(s_usual.rlim_cur);
        tt_log("test", TT_LOG_INFO, "line %d is whole", i);
    }
    _exit(0);
}

static void test_a_torn_line_of_the_log_stays_the_only_one(void **state)
{
    (void)state;
    int code, whole = 0, torn = 0;
    char line[256];
    const pid_t pid = fork();
    if (pid == 0)
        s_log_lines();
    assert_int_equal(waitpid(pid, &code, 0), pid);
    FILE *file = fopen("err", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        const bool ok = strstr(line, " is whole\n") && strstr(line, "info");
        whole += ok;
        torn += !ok;
    }
    fclose(file);
    assert_int_equal(torn, 1);
    assert_true(whole >= 40 && whole < 60);
}

/*  Before the first of several directories is made, and only where one is. */
static void test_a_umask_that_shuts_out_its_owner(void **state)
{
    static const mode_t masks[] = {0777, 0700, 0100, 0200, 0400};
    (void)state;
    assert_ok(tt_file_make_path("there", 0755));
    const mode_t usual = umask(0077);
    assert_ok(tt_file_check_umask());
    for (size_t i = 0; i < TT_COUNT(masks); i++) {
        umask(masks[i]);
        assert_int_equal(tt_file_check_umask(), TT_DENIED);
        assert_int_equal(tt_file_make_path("a/b/c", 0755), TT_DENIED);
        assert_non_null(strstr(tt_err_text(), "umask 0"));
        assert_true(access("a", F_OK) != 0);
        assert_ok(tt_file_make_path("there", 0755));
    }
    umask(usual);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_written_in_pieces, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_replaced_as_a_whole_or_not_at_all, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_saved_as_a_whole_and_over_nothing_unless_told, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_appended_to_on_a_line_of_its_own, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_paths_are_made, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_torn_line_of_the_log_stays_the_only_one, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_umask_that_shuts_out_its_owner, s_setup, s_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
