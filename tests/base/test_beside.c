/*  What is being written when its process is killed with -9: nothing of it stays, and nothing else goes. */
#include "common/base/beside.h"
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/file.h"
#include "common/base/mem.h"
#include "tests/folder.h"
#include "tests/test.h"

static char s_dir[FOLDER_MAX];

static int s_setup(void **state)
{
    (void)state;
    return folder_make(s_dir, "beside") != 0 || chdir(s_dir) != 0;
}

static int s_teardown(void **state)
{
    (void)state;
    return chdir("/") || folder_remove(s_dir);
}

static int s_entries(void)
{
    int count = 0;
    DIR *list = opendir(".");
    assert_non_null(list);
    for (const struct dirent *entry; (entry = readdir(list));)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(list);
    return count;
}

static void s_holds(const char *path, const char *expected)
{
    char text[64] = "";
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof text - 1, file) == strlen(expected));
    assert_string_equal(text, expected);
    fclose(file);
}

typedef tt_status_t (*begin_fn)(tt_beside_t *self, const char *path);

static tt_status_t s_file(tt_beside_t *self, const char *path)
{
    return tt_beside_file(self, path, 0640);
}

static tt_status_t s_named(tt_beside_t *self, const char *path)
{
    return tt_beside_named(self, path, 0640);
}

/*  Half of it. */
static void s_write(const tt_beside_t *self)
{
    const int fd =
        self->folder ? openat(self->fd, "000001.png", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : self->fd;
    assert_true(fd >= 0 && tt_file_write(fd, "half", 4, NULL));
    if (self->folder)
        close(fd);
}

/*  A process that has written half of `path`: it lives, until it is told to go on to its own kill -9. */
static pid_t s_writer(begin_fn begin, const char *path, int go[2], char beside[PATH_MAX])
{
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(go), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        char byte;
        tt_beside_t self;
        close(go[1]);
        if (begin(&self, path) != TT_OK)
            _exit(1);
        s_write(&self);
        if (write(ready[1], self.beside, sizeof self.beside) < 0 || read(go[0], &byte, 1) < 0)
            _exit(1);
        raise(SIGKILL);
    }
    close(go[0]);
    close(ready[1]);
    size_t have = 0;
    for (ssize_t got; have < PATH_MAX && (got = read(ready[0], beside + have, PATH_MAX - have)) > 0;)
        have += (size_t)got;
    assert_int_equal(have, PATH_MAX);
    close(ready[0]);
    return pid;
}

static void s_kill(pid_t pid, const int go[2])
{
    int code;
    close(go[1]);
    assert_int_equal(waitpid(pid, &code, 0), pid);
    assert_true(WIFSIGNALED(code) && WTERMSIG(code) == SIGKILL);
}

static void test_a_killed_writer_of_a_file_leaves_nothing(void **state)
{
    (void)state;
    int go[2];
    char beside[PATH_MAX];
    tt_beside_t probe;
    assert_ok(tt_beside_file(&probe, "probe", 0600));
    const bool nameless = !probe.named;
    tt_beside_drop(&probe);
    const pid_t pid = s_writer(s_file, "a", go, beside);
    s_kill(pid, go);
    if (nameless)
        assert_int_equal(s_entries(), 0);
    assert_ok(tt_file_save("a", "whole", 5, false));
    s_holds("a", "whole");
    assert_int_equal(s_entries(), 1);
}

/*  With a name: as long as its writer lives nobody takes it, and then the next does. */
static void s_check_left(begin_fn begin)
{
    int go[2];
    char beside[PATH_MAX];
    struct stat info;
    tt_beside_t next;
    const pid_t pid = s_writer(begin, "place", go, beside);
    assert_int_equal(stat(beside, &info), 0);
    assert_ok(begin(&next, "place"));
    s_write(&next);
    assert_int_equal(stat(beside, &info), 0);
    tt_beside_drop(&next);
    assert_int_equal(s_entries(), 1);
    s_kill(pid, go);
    assert_int_equal(stat(beside, &info), 0);
    assert_ok(begin(&next, "place"));
    assert_int_equal(stat(beside, &info), -1);
    s_write(&next);
    assert_ok(tt_beside_finish(&next, false));
    tt_beside_drop(&next);
    assert_int_equal(s_entries(), 1);
    assert_int_equal(stat("place", &info), 0);
}

static void test_what_a_killed_writer_left_goes_with_the_next(void **state)
{
    (void)state;
    s_check_left(s_named);
}

static void test_a_folder_too(void **state)
{
    (void)state;
    s_check_left(tt_beside_folder);
    assert_int_equal(access("place/000001.png", F_OK), 0);
}

/*  Names that are nearly such, another place's, and what is a link. */
static void test_nothing_else_goes(void **state)
{
    (void)state;
    static const char *const names[] = {"a.12.tmp", "a.tutti-12.tmp", "a.tutti-12-.tmp", "a.tutti--1.tmp",
        "a.tutti-12-1.tmp.old", "a.tutti-x-1.tmp", "b.tutti-12-1.tmp", "xa.tutti-12-1.tmp"};
    for (size_t i = 0; i < TT_COUNT(names); i++)
        close(open(names[i], O_CREAT | O_WRONLY, 0600));
    assert_int_equal(mkdir("precious", 0700), 0);
    close(open("precious/file", O_CREAT | O_WRONLY, 0600));
    assert_int_equal(symlink("precious", "a.tutti-12-2.tmp"), 0);
    const int before = s_entries();
    assert_ok(tt_file_save("a", "x", 1, false));
    assert_ok(tt_file_save("./a", "y", 1, true));
    assert_int_equal(s_entries(), before + 1);
    assert_int_equal(access("precious/file", F_OK), 0);
    close(open("a.tutti-12-1.tmp", O_CREAT | O_WRONLY, 0600)); /* and one that is */
    assert_ok(tt_file_replace(".", "a", "z", 0600));
    s_holds("a", "z");
    assert_int_equal(s_entries(), before + 1);
}

/*  By who wants all of a kind gone: not what is still written, nor what merely looks so. */
static void test_swept(void **state)
{
    (void)state;
    static const char *const names[] = {
        "a.st.tmp", "a.st.tutti-12.tmp", "a.st2.tutti-12-0.tmp", "a.tutti-12-0.tmp", "b.st.tutti-12-0.tmp.st"};
    tt_beside_t living;
    for (size_t i = 0; i < TT_COUNT(names); i++)
        close(open(names[i], O_CREAT | O_WRONLY, 0600));
    assert_ok(tt_beside_named(&living, "c.st", 0600));
    const int before = s_entries();
    close(open("a.st.tutti-12-0.tmp", O_CREAT | O_WRONLY, 0600));
    close(open("a.st.b.st.tutti-1-23.tmp", O_CREAT | O_WRONLY, 0600));
    tt_beside_sweep(".", ".st");
    assert_int_equal(s_entries(), before);
    assert_int_equal(access("a.st.tutti-12-0.tmp", F_OK), -1);
    tt_beside_sweep("nowhere", ".st");
    assert_ok(tt_beside_finish(&living, false));
    tt_beside_drop(&living);
}

static void test_what_it_replaces(void **state)
{
    (void)state;
    const begin_fn begins[] = {s_file, s_named};
    struct stat info;
    const mode_t mask = umask(022);
    for (size_t i = 0; i < TT_COUNT(begins); i++) {
        tt_beside_t first, second, third;
        assert_ok(begins[i](&first, "a"));
        assert_ok(begins[i](&second, "a"));
        assert_ok(begins[i](&third, "a"));
        s_write(&first);
        assert_int_equal(access("a", F_OK), -1);
        assert_ok(tt_beside_finish(&first, false));
        s_holds("a", "half");
        assert_int_equal(stat("a", &info), 0);
        assert_int_equal(info.st_mode & 07777, 0640);
        assert_int_equal(tt_beside_finish(&second, false), TT_EXISTS);
        assert_non_null(strstr(tt_err_text(), "a is there already"));
        assert_true(tt_file_write(third.fd, "other", 5, NULL));
        assert_ok(tt_beside_finish(&third, true));
        s_holds("a", "other");
        tt_beside_drop(&first);
        tt_beside_drop(&second);
        tt_beside_drop(&third);
        assert_int_equal(s_entries(), 1);
        assert_int_equal(unlink("a"), 0);
    }
    umask(mask);
}

static void test_where_it_cannot_be(void **state)
{
    (void)state;
    char path[PATH_MAX + 8];
    tt_beside_t self;
    memset(path, 'x', sizeof path);
    path[sizeof path - 1] = '\0';
    assert_int_equal(tt_beside_file(&self, path, 0600), TT_INVALID);
    assert_int_equal(tt_beside_file(&self, "nowhere/a", 0600), TT_IO);
    assert_int_equal(tt_beside_folder(&self, "nowhere/a"), TT_IO);
    assert_non_null(strstr(tt_err_text(), "nowhere/a"));
    tt_beside_drop(&self);
    assert_int_equal(s_entries(), 0);
}

/*  Known before anything is written. */
static void test_a_folder_is_no_file(void **state)
{
    (void)state;
    tt_beside_t beside;
    assert_int_equal(mkdir("folder", 0700), 0);
    assert_int_not_equal(tt_beside_file(&beside, "folder", 0640), TT_OK);
    assert_string_equal(tt_err_text(), "cannot write folder: Is a directory");
    assert_int_not_equal(tt_beside_named(&beside, ".", 0640), TT_OK);
    assert_string_equal(tt_err_text(), "cannot write .: Is a directory");
    tt_beside_drop(&beside);
}

/*  A device or a pipe would be gone for everybody, and as root so would /dev/stdout. */
static void test_what_is_no_file_is_not_replaced(void **state)
{
    (void)state;
    static const char *const names[] = {"pipe", "to_pipe", "stdout"};
    tt_beside_t beside;
    struct stat before, now;
    assert_int_equal(mkfifo("pipe", 0600), 0);
    assert_int_equal(symlink("pipe", "to_pipe"), 0);
    assert_ok(tt_file_replace(".", "a", "a", 0600));
    const int fd = open("a", O_RDWR | O_CLOEXEC), kept = dup(STDOUT_FILENO);
    assert_int_equal(symlink("/proc/self/fd/1", "stdout"), 0);
    assert_int_equal(dup2(fd, STDOUT_FILENO), STDOUT_FILENO); /* a file, by way of a link that is nobody's to replace */
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 2; k++) {
            assert_int_equal(lstat(names[i], &before), 0);
            assert_int_equal(k ? s_file(&beside, names[i]) : s_named(&beside, names[i]), TT_IO);
            assert_non_null(strstr(tt_err_text(), names[i]));
            assert_non_null(strstr(tt_err_text(), "no ordinary file"));
            tt_beside_drop(&beside);
            assert_int_equal(lstat(names[i], &now), 0);
            assert_int_equal(now.st_ino, before.st_ino);
        }
    assert_int_equal(dup2(kept, STDOUT_FILENO), STDOUT_FILENO);
    close(kept);
    close(fd);
    assert_int_equal(s_entries(), 4);
}

/*  A link to a file, or to nothing, is replaced as before. */
static void test_a_link_is_replaced(void **state)
{
    (void)state;
    struct stat info;
    assert_ok(tt_file_replace(".", "a", "a", 0600));
    assert_int_equal(symlink("a", "to_a"), 0);
    assert_int_equal(symlink("nowhere", "to_nowhere"), 0);
    assert_ok(tt_file_replace(".", "to_a", "b", 0600));
    assert_ok(tt_file_replace(".", "to_nowhere", "b", 0600));
    assert_true(lstat("to_a", &info) == 0 && S_ISREG(info.st_mode));
    assert_true(lstat("to_nowhere", &info) == 0 && S_ISREG(info.st_mode));
    assert_int_equal(s_entries(), 3);
}

/*  Many processes replace one file again and again: it is always one of theirs, whole. */
static void test_many_at_once(void **state)
{
    (void)state;
    enum { PROCESSES = 4, TIMES = 200, SIZE = 4096 };
    static char text[SIZE + 1], seen[SIZE + 1];
    memset(text, 'a', SIZE);
    assert_ok(tt_file_replace(".", "a", text, 0600));
    for (int p = 0; p < PROCESSES; p++)
        if (fork() == 0) {
            memset(text, 'a' + p, SIZE);
            for (int k = 0; k < TIMES; k++)
                if (tt_file_replace(".", "a", text, 0600) != TT_OK)
                    _exit(1);
            _exit(0);
        }
    int failed = 0;
    for (int left = PROCESSES, code; left;) {
        FILE *file = fopen("a", "r");
        assert_non_null(file);
        assert_int_equal(fread(seen, 1, sizeof seen, file), SIZE);
        for (int i = 1; i < SIZE; i++)
            assert_int_equal(seen[i], seen[0]);
        fclose(file);
        if (waitpid(-1, &code, WNOHANG) > 0) {
            failed += code != 0;
            left--;
        }
    }
    assert_int_equal(failed, 0);
    assert_int_equal(s_entries(), 1);
}

static void test_a_second_name(void **state)
{
    (void)state;
    struct stat first, second;
    assert_ok(tt_file_replace(".", "a", "a", 0600));
    assert_ok(tt_file_replace(".", "b", "b", 0600));
    assert_ok(tt_beside_link("a", "name"));
    assert_ok(tt_beside_link("b", "name"));
    assert_ok(tt_beside_link("b", "name")); /* one file already */
    assert_int_equal(stat("b", &first), 0);
    assert_int_equal(stat("name", &second), 0);
    assert_int_equal(first.st_ino, second.st_ino);
    assert_int_equal(tt_beside_link("none", "name"), TT_IO);
    assert_string_equal(tt_err_text(), "cannot write name: No such file or directory");
    assert_int_equal(s_entries(), 3);
}

/*  Two that give one name by turns: each operation of one right before the same of the other, which is what the lock of a folder makes of
 *  two processes on two processors. */
static void test_two_give_one_name(void **state)
{
    (void)state;
    enum { PROCESSES = 2, TIMES = 20000 };
    int code, failed = 0;
    assert_ok(tt_file_replace(".", "a", "a", 0600));
    for (int p = 0; p < PROCESSES; p++)
        if (fork() == 0) {
            for (int k = 0; k < TIMES; k++)
                if (tt_beside_link("a", "name") != TT_OK)
                    _exit(1);
            _exit(0);
        }
    for (int p = 0; p < PROCESSES; p++)
        failed |= waitpid(-1, &code, 0) <= 0 || code != 0;
    assert_false(failed);
    assert_int_equal(s_entries(), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_killed_writer_of_a_file_leaves_nothing, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_what_a_killed_writer_left_goes_with_the_next, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_folder_too, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_nothing_else_goes, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_swept, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_what_it_replaces, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_where_it_cannot_be, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_folder_is_no_file, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_what_is_no_file_is_not_replaced, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_link_is_replaced, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_many_at_once, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_second_name, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_two_give_one_name, s_setup, s_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
