/*  Whole files and other input: what may be read, with what limit, and what is refused instead of waited for. */
#include "common/base/buf.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/file.h"
#include "tests/folder.h"
#include "tests/test.h"

enum { LIMIT = 100000, QUICK_MS = 50, LONG_MS = 60000 };

static char s_dir[FOLDER_MAX];

static int s_setup(void **state)
{
    (void)state;
    return folder_make(s_dir, "buf") != 0 || chdir(s_dir) != 0;
}

static int s_teardown(void **state)
{
    (void)state;
    return chdir("/") || folder_remove(s_dir);
}

static void s_make(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

typedef tt_status_t read_t(tt_buf_t *self, const char *path);

static tt_status_t s_input(tt_buf_t *self, const char *path)
{
    return tt_buf_read_input(self, path, QUICK_MS);
}

static read_t *const s_readers[] = {tt_buf_read_file, s_input};

static void s_refused(read_t *read_, const char *path, tt_status_t status, const char *words)
{
    tt_buf_t text;
    tt_buf_init(&text, LIMIT);
    assert_int_equal(read_(&text, path), status);
    if (!strstr(tt_err_text(), path) || !strstr(tt_err_text(), words))
        fail_msg("'%s' does not say '%s'", tt_err_text(), words);
    assert_true(text.room <= 4 * LIMIT);
    tt_buf_free(&text);
}

static void test_a_whole_file(void **state)
{
    (void)state;
    char *long_ = malloc(LIMIT + 1);
    assert_non_null(long_);
    memset(long_, 'x', LIMIT);
    long_[LIMIT] = '\0';
    s_make("file", long_);
    for (size_t i = 0; i < TT_COUNT(s_readers); i++) {
        tt_buf_t text;
        tt_buf_init(&text, LIMIT + 1);
        assert_ok(tt_buf_str(&text, "y"));
        assert_ok(s_readers[i](&text, "file"));
        assert_true(text.size == LIMIT + 1 && text.data[0] == 'y' && strcmp(text.data + 1, long_) == 0);
        tt_buf_free(&text);
        tt_buf_init(&text, LIMIT - 1);
        assert_int_equal(s_readers[i](&text, "file"), TT_INVALID);
        tt_buf_free(&text);
        assert_ok(s_readers[i](&text, "/proc/self/status")); /* says that it is empty, and is not */
        assert_true(text.size > 100);
        tt_buf_free(&text);
    }
    free(long_);
}

static void test_what_is_no_file(void **state)
{
    (void)state;
    assert_int_equal(mkfifo("fifo", 0600), 0);
    assert_int_equal(mkdir("folder", 0700), 0);
    assert_int_equal(symlink("/dev/zero", "link"), 0);
    const int sock = socket(AF_UNIX, SOCK_STREAM, 0);
    const struct sockaddr_un at = {.sun_family = AF_UNIX, .sun_path = "socket"};
    assert_int_equal(bind(sock, (const struct sockaddr *)&at, sizeof at), 0);
    s_refused(tt_buf_read_file, "fifo", TT_DATA, "not an ordinary file");
    s_refused(tt_buf_read_file, "/dev/zero", TT_DATA, "not an ordinary file");
    s_refused(tt_buf_read_file, "/dev/null", TT_DATA, "not an ordinary file");
    s_refused(tt_buf_read_file, "link", TT_DATA, "not an ordinary file");
    s_refused(tt_buf_read_file, "socket", TT_DATA, "not an ordinary file");
    for (size_t i = 0; i < TT_COUNT(s_readers); i++) {
        s_refused(s_readers[i], "folder", TT_IO, "irectory");
        s_refused(s_readers[i], "nowhere", TT_NOT_FOUND, "No such file");
    }
    close(sock);
    int fd;
    assert_int_equal(tt_file_check("fifo"), TT_DATA);
    assert_int_equal(tt_file_open(&fd, "nowhere"), TT_NOT_FOUND);
}

static void test_input_without_an_end(void **state)
{
    (void)state;
    assert_int_equal(mkfifo("fifo", 0600), 0);
    s_refused(s_input, "/dev/zero", TT_INVALID, "more than 100000 bytes");
    s_refused(s_input, "fifo", TT_TIMEOUT, "does anybody write to it?"); /* nobody has it open */
    const int writer = open("fifo", O_RDWR);
    s_refused(s_input, "fifo", TT_TIMEOUT, "does anybody write to it?"); /* who has says nothing */
    close(writer);
    tt_buf_t text;
    tt_buf_init(&text, LIMIT);
    assert_ok(s_input(&text, "/dev/null"));
    assert_int_equal(text.size, 0);
    tt_buf_free(&text);
}

/*  A process that writes 64 KiB into what it opens, piece by piece. */
static pid_t s_writer(const char *path)
{
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        const int fd = open(path, O_WRONLY);
        char piece[1024];
        memset(piece, 'z', sizeof piece);
        for (int i = 0; i < 64; i++)
            if (write(fd, piece, sizeof piece) != (ssize_t)sizeof piece)
                _exit(1);
        _exit(0);
    }
    return pid;
}

static void s_ends_well(pid_t pid)
{
    int code;
    assert_int_equal(waitpid(pid, &code, 0), pid);
    assert_int_equal(code, 0);
}

static void test_a_pipe_is_read_to_its_end(void **state)
{
    (void)state;
    tt_buf_t text;
    tt_buf_init(&text, LIMIT);
    assert_int_equal(mkfifo("fifo", 0600), 0);
    pid_t pid = s_writer("fifo");
    for (int i = 0; i < 100; i++)
        assert_int_equal(tt_file_check("fifo"), TT_DATA); /* who only looks does not set the writer going */
    assert_ok(tt_buf_read_input(&text, "fifo", LONG_MS)); /* whoever opens it first */
    s_ends_well(pid);
    assert_int_equal(text.size, 65536);
    tt_buf_clear(&text);

    int both[2];
    char path[64];
    assert_int_equal(pipe(both), 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", both[1]);
    pid = s_writer(path);
    close(both[1]);
    const int saved = dup(STDIN_FILENO);
    assert_int_equal(dup2(both[0], STDIN_FILENO), STDIN_FILENO);
    const tt_status_t status = tt_buf_read_input(&text, "-", LONG_MS);
    dup2(saved, STDIN_FILENO);
    close(saved);
    close(both[0]);
    assert_int_equal(status, TT_OK);
    s_ends_well(pid);
    assert_int_equal(text.size, 65536);
    tt_buf_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_whole_file, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_what_is_no_file, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_input_without_an_end, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_pipe_is_read_to_its_end, s_setup, s_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
