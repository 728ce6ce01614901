/*  Key files: made once, for us alone; what is not one is refused with its name. */
#include <fcntl.h>
#include <stdio.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include "tests/net/net_help.h"

typedef struct {
    char *dir, *path;
} fixture_t;

static int s_setup(void **state)
{
    fixture_t *f = tt_new0(sizeof *f);
    f->dir = help_mkdir();
    f->path = tt_sprintf("%s/job.key", f->dir);
    *state = f;
    return 0;
}

static int s_teardown(void **state)
{
    fixture_t *f = *state;
    help_rmdir(f->dir);
    free(f->path);
    free(f);
    return 0;
}

static void test_written_and_read(void **state)
{
    fixture_t *f = *state;
    tt_keys_t made, read, other;
    struct stat info;
    const mode_t mask = umask(0022);
    assert_ok(tt_keys_create(&made, f->path));
    assert_int_equal(umask(mask), 0022); /* as it was */
    assert_int_equal(stat(f->path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_ok(tt_keys_read(&read, f->path));
    assert_string_equal(made.public_key, read.public_key);
    assert_string_equal(made.secret_key, read.secret_key);
    assert_int_equal(strlen(made.public_key), 40);
    assert_string_not_equal(made.public_key, made.secret_key);
    assert_int_equal(tt_keys_create(&other, f->path), TT_EXISTS);
    assert_ok(tt_keys_read(&read, f->path)); /* untouched */
    assert_string_equal(made.secret_key, read.secret_key);
}

static void test_a_file_that_others_can_read(void **state)
{
    fixture_t *f = *state;
    tt_keys_t keys;
    assert_ok(tt_keys_create(&keys, f->path));
    assert_int_equal(chmod(f->path, 0644), 0);
    assert_int_equal(tt_keys_read(&keys, f->path), TT_DENIED);
    assert_non_null(strstr(tt_err_text(), "chmod 600"));
}

/*  As the kubelet mounts a Secret for a pod that is not root: root's, and the group of the volume may read it. */
static void test_a_file_of_root_that_its_group_can_read(void **state)
{
    fixture_t *f = *state;
    tt_keys_t keys;
    assert_ok(tt_keys_create(&keys, f->path));
    assert_int_equal(chmod(f->path, 0440), 0);
    assert_int_equal(tt_keys_read(&keys, f->path), geteuid() == 0 ? TT_OK : TT_DENIED);
}

static void s_write(const char *path, const char *text)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

/*  What keeps it elsewhere writes is what we read. */
static void test_a_pair_as_text(void **state)
{
    fixture_t *f = *state;
    tt_keys_t made, read;
    char text[TT_KEYS_TEXT];
    assert_ok(tt_keys_make(&made));
    tt_keys_text(&made, text);
    s_write(f->path, text);
    assert_ok(tt_keys_read(&read, f->path));
    assert_string_equal(made.public_key, read.public_key);
    assert_string_equal(made.secret_key, read.secret_key);
}

static void test_what_is_not_a_key(void **state)
{
    fixture_t *f = *state;
    tt_keys_t keys;
    assert_int_equal(tt_keys_read(&keys, f->path), TT_NOT_FOUND);
    assert_int_equal(tt_keys_read(&keys, f->dir), TT_DATA);
    assert_int_equal(tt_keys_create(&keys, "/nonexistent/job.key"), TT_IO);
    const char *const texts[] = {"", "rubbish", "curve\n    public-key = \"short\"\n",
        "curve\n    public-key = \"Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID\"\n", /* no secret key */
        ("curve\n    public-key = \"Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID\"\n" /* one that does not fit */
         "    secret-key = \"JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6\"\n")};
    for (size_t i = 0; i < TT_COUNT(texts); i++) {
        s_write(f->path, texts[i]);
        assert_int_equal(tt_keys_read(&keys, f->path), TT_DATA);
        assert_non_null(strstr(tt_err_text(), f->path));
    }
    assert_int_equal(truncate(f->path, (off_t)1 << 40), 0); /* not taken into memory first */
    assert_int_equal(tt_keys_read(&keys, f->path), TT_DATA);
}

/*  A disk that takes 20 bytes: an error, and no half of a key stays behind. */
static void test_full_disk(void **state)
{
    fixture_t *f = *state;
    tt_keys_t keys;
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 20;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    const tt_status_t status = tt_keys_create(&keys, f->path);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(status, TT_IO);
    assert_non_null(strstr(tt_err_text(), "is the disk full?"));
    assert_int_not_equal(access(f->path, F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_written_and_read, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_file_that_others_can_read, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_file_of_root_that_its_group_can_read, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_pair_as_text, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_what_is_not_a_key, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_full_disk, s_setup, s_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
