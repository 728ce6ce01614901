/*  A log that became too large keeps its beginning and its newest lines, and says how much is missing. */
#include "controller/logfile.h"
#include "tests/folder.h"
#include "tests/test.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LIMIT = 1 << 20, LINE = 100 };

static char s_dir[FOLDER_MAX], s_path[FOLDER_MAX + 16];

static int s_setup(void **state)
{
    (void)state;
    const int made = folder_make(s_dir, "logfile");
    snprintf(s_path, sizeof s_path, "%s/a.log", s_dir);
    return made;
}

static int s_teardown(void **state)
{
    (void)state;
    return folder_remove(s_dir);
}

/*  Lines first .. next - 1, each of LINE bytes with its number. */
static void s_write(int fd, int first, int next)
{
    char line[LINE + 1];
    for (int i = first; i < next; i++) {
        snprintf(line, sizeof line, "%-99d\n", i);
        assert_int_equal(write(fd, line, LINE), LINE);
    }
}

static char *s_text(size_t *size)
{
    struct stat info;
    const int fd = open(s_path, O_RDONLY);
    assert_int_equal(fstat(fd, &info), 0);
    *size = (size_t)info.st_size;
    char *text = calloc(1, *size + 1);
    assert_int_equal(read(fd, text, *size), *size);
    close(fd);
    return text;
}

/*  Lines from 0 on, the gap, lines up to next - 1, and nothing else; what is missing is what the gap says. */
static void s_check(int next)
{
    size_t size;
    char *text = s_text(&size);
    const int fd = open(s_path, O_RDONLY);
    const tt_logfile_gap_t gap = tt_logfile_gap(fd);
    close(fd);
    assert_true(gap.at > 0 && gap.at % LINE == 0 && gap.after > gap.at && gap.dropped % LINE == 0);
    const int before = (int)(gap.at / LINE), missing = (int)(gap.dropped / LINE);
    assert_int_equal(size, (size_t)gap.after + (size_t)(next - before - missing) * LINE);
    for (int i = 0; i < before; i++)
        assert_int_equal(atoi(text + (size_t)i * LINE), i);
    for (int i = before + missing; i < next; i++)
        assert_int_equal(atoi(text + gap.after + (size_t)(i - before - missing) * LINE), i);
    assert_non_null(strstr(text, "--- tutti: "));
    assert_null(strstr(strstr(text, "--- tutti: ") + 1, "--- tutti: "));
    free(text);
}

static void test_beginning_and_newest_stay(void **state)
{
    (void)state;
    size_t size;
    const int fd = open(s_path, O_WRONLY | O_CREAT | O_APPEND, 0644);
    s_write(fd, 0, LIMIT / LINE);
    tt_logfile_trim(s_path, LIMIT);
    free(s_text(&size));
    assert_int_equal(size, LIMIT / LINE * LINE); /* not yet */
    s_write(fd, LIMIT / LINE, LIMIT / LINE + 2);
    tt_logfile_trim(s_path, LIMIT);
    free(s_text(&size));
    assert_true(size < LIMIT / 2 && size > LIMIT / 4);
    s_check(LIMIT / LINE + 2);
    int next = LIMIT / LINE + 2; /* the same file goes on */
    for (int times = 0; times < 3; times++, next += 20000) {
        s_write(fd, next, next + 20000);
        tt_logfile_trim(s_path, LIMIT);
        s_check(next + 20000);
    }
    close(fd);
}

/*  A log that is written as fast as it can be and becomes too large all the time: nothing in it, and nothing that its reader is given, is out
 *  of turn, whoever of the three gets no processor for how long. */
enum { TRIMS = 40 };
static _Atomic(bool) s_over;

/*  It waits for the trim before the file is twice as large as its limit, from where on nobody waits for readers. */
static void *s_write_on(void *ctx)
{
    int *lines = ctx;
    struct stat info;
    const int fd = open(s_path, O_WRONLY | O_CREAT | O_APPEND, 0644);
    while (!s_over) {
        assert_int_equal(fstat(fd, &info), 0);
        if (info.st_size < 3 * LIMIT / 2)
            s_write(fd, *lines, *lines + 1), (*lines)++;
    }
    s_write(fd, *lines, *lines + 1); /* behind the last trim, which may have lost the one before */
    close(fd);
    return NULL;
}

/*  What lacks its beginning, where a reader was ahead of what a trim has left, or is the line for what is missing, has no number. */
static bool s_number(const char *line, size_t size, int *out)
{
    char *end;
    if (size != LINE || line[0] < '0' || line[0] > '9')
        return false;
    *out = (int)strtol(line, &end, 10);
    return end[0] == ' ';
}

/*  Numbers above *last. */
static void s_in_turn(const char *text, size_t size, int *last)
{
    for (const char *at = text, *end = NULL; at < text + size; at = end + 1) {
        int number = 0;
        end = memchr(at, '\n', size - (size_t)(at - text));
        assert_non_null(end);
        if (!s_number(at, (size_t)(end + 1 - at), &number))
            continue;
        if (number <= *last)
            fail_msg("%d comes behind %d", number, *last);
        *last = number;
    }
}

static void *s_follow(void *ctx)
{
    int last = -1, *lines = ctx;
    char *text = malloc(1 << 16);
    const int fd = open(s_path, O_RDONLY);
    tt_logfile_reader_t reader = {0};
    for (bool over = false; !over;) {
        over = s_over;
        for (size_t size; (size = tt_logfile_next(&reader, fd, text, 1 << 16, false)); *lines += (int)(size / LINE))
            s_in_turn(text, size, &last);
    }
    close(fd);
    free(text);
    return NULL;
}

static void test_written_trimmed_and_followed_at_once(void **state)
{
    (void)state;
    size_t size;
    int written = 0, followed = 0, last = -1;
    struct stat info;
    pthread_t writer, reader;
    s_over = false;
    close(open(s_path, O_WRONLY | O_CREAT, 0644));
    assert_int_equal(pthread_create(&writer, NULL, s_write_on, &written), 0);
    assert_int_equal(pthread_create(&reader, NULL, s_follow, &followed), 0);
    for (int trims = 0; trims < TRIMS;) {
        assert_int_equal(stat(s_path, &info), 0);
        trims += info.st_size > LIMIT;
        tt_logfile_trim(s_path, LIMIT);
    }
    s_over = true;
    assert_int_equal(pthread_join(writer, NULL), 0);
    assert_int_equal(pthread_join(reader, NULL), 0);
    char *text = s_text(&size);
    s_in_turn(text, size, &last);
    assert_true(last == written && followed > 0);
    free(text);
}

/*  Neither lines nor an end of them: the newest bytes stay. */
static void test_a_line_without_end(void **state)
{
    (void)state;
    size_t size;
    char *much = malloc(3 * LIMIT);
    memset(much, 'x', 3 * LIMIT);
    much[3 * LIMIT - 1] = 'y';
    const int fd = open(s_path, O_WRONLY | O_CREAT | O_APPEND, 0644);
    assert_int_equal(write(fd, much, 3 * LIMIT), 3 * LIMIT);
    close(fd);
    free(much);
    tt_logfile_trim(s_path, LIMIT);
    char *text = s_text(&size);
    assert_true(size > LIMIT / 4 && size < LIMIT);
    assert_int_equal(strncmp(text, "--- tutti: ", 11), 0);
    assert_int_equal(text[size - 1], 'y');
    free(text);
}

/*  What a program prints that looks like it is no gap. */
static void test_what_is_no_gap(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "", "--- tutti: ", "--- tutti: 12\n", "--- tutti: x bytes are missing here\n", "\n\n"};
    for (size_t i = 0; i < TT_COUNT(texts); i++) {
        const int fd = open(s_path, O_RDWR | O_CREAT | O_TRUNC, 0644);
        assert_int_equal(write(fd, texts[i], strlen(texts[i])), strlen(texts[i]));
        assert_int_equal(tt_logfile_gap(fd).dropped, 0);
        close(fd);
    }
}

static void test_what_is_no_file(void **state)
{
    (void)state;
    tt_logfile_trim(s_path, 0); /* not there */
    assert_int_equal(mkfifo(s_path, 0600), 0);
    tt_logfile_trim(s_path, 0);
}

static void test_the_limit(void **state)
{
    (void)state;
    static const char *const wrong[] = {"0", "-1", "32M", "x", " 1", "1048577"};
    assert_int_equal(unsetenv("TT_LOG_MB"), 0);
    assert_ok(tt_logfile_check());
    assert_int_equal(tt_logfile_limit(), 32 << 20);
    assert_int_equal(setenv("TT_LOG_MB", "5", 1), 0);
    assert_ok(tt_logfile_check());
    assert_int_equal(tt_logfile_limit(), 5 << 20);
    for (size_t i = 0; i < TT_COUNT(wrong); i++) {
        assert_int_equal(setenv("TT_LOG_MB", wrong[i], 1), 0);
        assert_int_equal(tt_logfile_check(), TT_CONFIG);
        assert_int_equal(tt_logfile_limit(), 32 << 20);
    }
    assert_int_equal(unsetenv("TT_LOG_MB"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_beginning_and_newest_stay, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_written_trimmed_and_followed_at_once, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_line_without_end, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_what_is_no_gap, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_what_is_no_file, s_setup, s_teardown),
        cmocka_unit_test(test_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
