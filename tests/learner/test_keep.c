/*  Pieces and snapshots written by a thread: what is on disk is what was given, and what fails is given again. */
#include "learner/keep.h"
#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "tests/folder.h"
#include "tests/snapshot/sample.h"
#include "tests/test.h"

static char s_dir[FOLDER_MAX];
static int s_wall_off; /* seconds that the wall clock is off */

/*  In place of the C library's, for all of this program. */
int clock_gettime(clockid_t id, struct timespec *out)
{
    const int failed = (int)syscall(SYS_clock_gettime, id, out);
    if (!failed && id == CLOCK_REALTIME)
        out->tv_sec += s_wall_off;
    return failed;
}

static int s_setup(void **state)
{
    (void)state;
    return folder_make(s_dir, "keep");
}

static int s_teardown(void **state)
{
    (void)state;
    return folder_remove(s_dir);
}

static keep_t *s_new(uint64_t file_bytes)
{
    keep_t *keep = NULL;
    assert_ok(keep_new(&keep, &(keep_cfg_t){.folder = s_dir, .instance = 7, .file_bytes = file_bytes}));
    return keep;
}

/*  A piece that says which batch it is. */
static void s_give(keep_t *keep, uint32_t era, uint64_t batch)
{
    tt_buf_t bytes;
    tt_buf_init(&bytes, 100);
    assert_ok(tt_buf_printf(&bytes, "batch %llu", (unsigned long long)batch));
    keep_piece(keep, &bytes, era, 100, batch, batch + 1);
    assert_null(bytes.data);
}

/*  A sample, whose own mean return is 123.5. */
static void s_give_snapshot_like(keep_t *keep, keep_snapshot_t what)
{
    const uint64_t update = what.update;
    tt_buf_t bytes;
    size_t pieces;
    const tt_piece_t *piece = keep_pieces(keep, 0, &pieces);
    tt_checkpoint_name(what.name, update);
    sample_write_pieces(s_dir, "sample", update, piece, pieces);
    char path[128];
    snprintf(path, sizeof path, "%s/sample", s_dir);
    tt_buf_init(&bytes, 1 << 20);
    assert_ok(tt_buf_read_file(&bytes, path));
    assert_int_equal(unlink(path), 0);
    keep_snapshot(keep, &bytes, &what);
}

static void s_give_snapshot(keep_t *keep, uint64_t update)
{
    s_give_snapshot_like(
        keep, (keep_snapshot_t){.keep = 5, .update = update, .env_steps = 10 * update, .return_mean = 3});
}

/*  Until all is done, or something is to be told. */
static tt_status_t s_await(keep_t *keep, keep_snapshot_t *out, uint64_t *disk)
{
    tt_status_t status;
    while ((status = keep_take(keep, out, disk)) == TT_AGAIN && keep_under_way(keep)) {
        struct pollfd rung = {.fd = keep_fd(keep), .events = POLLIN};
        uint64_t count;
        assert_int_equal(poll(&rung, 1, 20000), 1);
        assert_int_equal(read(keep_fd(keep), &count, sizeof count), sizeof count);
    }
    return status;
}

static void s_check_pieces(keep_t *keep, uint64_t oldest, uint64_t next)
{
    size_t pieces;
    char wanted[32];
    tt_buf_t bytes;
    tt_buf_init(&bytes, 1000);
    const tt_piece_t *piece = keep_pieces(keep, oldest, &pieces);
    assert_int_equal(pieces, next - oldest);
    for (size_t i = 0; i < pieces; i++) {
        assert_int_equal(piece[i].first, oldest + i);
        assert_ok(tt_piece_read(s_dir, &piece[i], &bytes));
        snprintf(wanted, sizeof wanted, "batch %llu", (unsigned long long)(oldest + i));
        assert_string_equal(tt_buf_text(&bytes), wanted);
    }
    tt_buf_free(&bytes);
}

static size_t s_files(void)
{
    tt_piece_files_t files = {0};
    tt_piece_files_list(s_dir, &files);
    const size_t count = files.count;
    tt_piece_files_free(&files);
    return count;
}

static void test_what_was_given(void **state)
{
    (void)state;
    keep_snapshot_t what;
    uint64_t disk = 0;
    keep_t *keep = s_new(20);
    assert_int_equal(keep_next(keep, 3), 3);
    for (uint64_t batch = 3; batch < 10; batch++)
        s_give(keep, 1, batch);
    assert_int_equal(keep_next(keep, 3), 10);
    assert_int_equal(s_await(keep, &what, &disk), TT_AGAIN);
    s_check_pieces(keep, 3, 10);
    assert_int_equal(s_files(), 3); /* of three pieces each: the third makes it full */
    const uint64_t moved = keep_moved(keep);
    s_give_snapshot(keep, 10);
    assert_ok(s_await(keep, &what, &disk));
    assert_int_equal(keep_moved(keep), moved + 2); /* its only piece, and that it is in place */
    assert_string_equal(what.name, "00000010.safetensors");
    assert_int_equal(what.env_steps, 100);
    assert_int_equal(disk, 7 * 7);
    s_check_pieces(keep, 6, 10); /* batches before 6 are gone */
    s_give(keep, 2, 10);         /* of another era: another file */
    assert_int_equal(s_await(keep, &what, &disk), TT_AGAIN);
    assert_int_equal(s_files(), 4);
    s_give_snapshot(keep, 11);
    assert_ok(s_await(keep, &what, &disk));
    assert_int_equal(s_files(), 4); /* the one before still refers to the first */
    s_give_snapshot(keep, 12);
    assert_ok(s_await(keep, &what, &disk));
    assert_int_equal(s_files(), 3);
    keep_destroy(&keep);
}

static void test_failed(void **state)
{
    (void)state;
    keep_snapshot_t what;
    uint64_t disk = 0;
    keep_t *keep = s_new(10);
    s_give(keep, 1, 0);
    assert_int_equal(s_await(keep, &what, &disk), TT_AGAIN);
    s_give_snapshot(keep, 1);
    assert_ok(s_await(keep, &what, &disk));
    s_give(keep, 1, 1); /* on disk, but no snapshot's */
    assert_int_equal(s_await(keep, &what, &disk), TT_AGAIN);
    char away[80];
    snprintf(away, sizeof away, "%s.away", s_dir);
    assert_int_equal(rename(s_dir, away), 0);
    s_give(keep, 1, 2);
    s_give(keep, 1, 3);
    assert_int_equal(s_await(keep, &what, &disk), TT_IO);
    assert_non_null(strstr(tt_err_text(), s_dir));
    assert_int_equal(keep_next(keep, 0), 1);
    assert_int_equal(rename(away, s_dir), 0);
    for (uint64_t batch = 1; batch < 6; batch++)
        s_give(keep, 1, batch);
    assert_int_equal(s_await(keep, &what, &disk), TT_AGAIN);
    s_check_pieces(keep, 0, 6);
    keep_destroy(&keep);
}

/*  A new era: what is under way does not count, and files of others that nobody refers to are swept, but not those that came later. */
static void test_forgotten(void **state)
{
    (void)state;
    keep_snapshot_t what;
    uint64_t disk = 0;
    char before[TT_PIECE_FILE], later[TT_PIECE_FILE];
    tt_piece_name(before, 1, 5, 0);
    tt_piece_name(later, 2, 6, 0);
    sample_save(s_dir, before, "x", 1);
    keep_t *keep = s_new(1000);
    s_give(keep, 1, 0);
    s_give(keep, 1, 1);
    keep_forget(keep);
    assert_int_equal(keep_under_way(keep), 0);
    assert_int_equal(keep_next(keep, 0), 0);
    s_give(keep, 2, 0);
    assert_int_equal(s_await(keep, &what, &disk), TT_AGAIN);
    s_check_pieces(keep, 0, 1);
    sample_save(s_dir, later, "x", 1);
    s_give_snapshot(keep, 1);
    assert_ok(s_await(keep, &what, &disk));
    assert_int_equal(s_files(), 2);
    size_t pieces;
    const tt_piece_t adopted = keep_pieces(keep, 0, &pieces)[0];
    keep_adopt(keep, &adopted, 1);
    assert_int_equal(keep_next(keep, 0), 1);
    s_check_pieces(keep, 0, 1);
    keep_destroy(&keep);
}

enum { THREADS_MAX = 64 };

/*  Of this process; how many. */
static size_t s_threads(long thread[THREADS_MAX])
{
    size_t count = 0;
    DIR *dir = opendir("/proc/self/task");
    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir));)
        if (entry->d_name[0] != '.') {
            assert_true(count < THREADS_MAX);
            thread[count++] = strtol(entry->d_name, NULL, 10);
        }
    closedir(dir);
    return count;
}

/*  Is none there that was not there before? */
static bool s_are_threads_of(const long *before, size_t count)
{
    long now[THREADS_MAX];
    const size_t threads = s_threads(now);
    size_t known = 0;
    for (size_t i = 0; i < threads; i++)
        for (size_t k = 0; k < count; k++)
            known += now[i] == before[k];
    return known == threads;
}

/*  One that was joined is listed until the kernel has put it away: so may be one of the test before this one, and who counts them counts it. */
static void s_await_threads_of(const long *before, size_t count)
{
    const int64_t until_ms = tt_now_ms(tt_clock_real()) + 20000;
    while (!s_are_threads_of(before, count)) {
        assert_true(tt_now_ms(tt_clock_real()) < until_ms);
        assert_int_equal(usleep(1000), 0);
    }
}

/*  Gone in the middle of everything, whatever the wall clock is set to meanwhile. */
static void test_given_up(void **state)
{
    (void)state;
    long before[THREADS_MAX]; /* a sanitizer's, too */
    const size_t count = s_threads(before);
    for (s_wall_off = -7200; s_wall_off <= 7200; s_wall_off += 7200) {
        keep_t *keep = s_new(100);
        for (uint64_t batch = 0; batch < 200; batch++)
            s_give(keep, 1, batch);
        keep_destroy(&keep);
        assert_null(keep);
        s_await_threads_of(before, count);
    }
    s_wall_off = 0;
}

static bool s_is_there(const char *name)
{
    char path[FOLDER_MAX + 80];
    snprintf(path, sizeof path, "%s/%s", s_dir, name);
    return access(path, F_OK) == 0;
}

/*  It stood still while another took over, went on, and wrote; it does not know yet, and comes to its own snapshot. */
static void test_overtaken(void **state)
{
    (void)state;
    keep_snapshot_t what;
    uint64_t disk;
    char theirs[TT_PIECE_FILE];
    tt_piece_name(theirs, 1, 8, 0);
    sample_write(s_dir, "00000070.safetensors", 70); /* of before: the run has gone back from there */
    keep_t *keep = s_new(1000);
    sample_write(s_dir, "00000060.safetensors", 60);
    sample_save(s_dir, theirs, "pieces", 6);
    s_give_snapshot(keep, 50);
    assert_ok(s_await(keep, &what, &disk));
    assert_true(s_is_there("00000050.safetensors"));
    assert_true(s_is_there("00000060.safetensors"));
    assert_true(s_is_there(theirs));
    assert_false(s_is_there("00000070.safetensors"));
    keep_forget(keep); /* it has heard of it, and gone back with all: now that is void */
    s_give_snapshot(keep, 51);
    assert_ok(s_await(keep, &what, &disk));
    assert_false(s_is_there("00000060.safetensors"));
    assert_false(s_is_there(theirs));
    keep_destroy(&keep);
}

/*  One that led before us, and of whom we know nothing but who it was. What somebody else wrote meanwhile stays. */
static void test_inherited(void **state)
{
    (void)state;
    keep_snapshot_t what;
    uint64_t disk;
    char theirs[TT_PIECE_FILE], others[TT_PIECE_FILE];
    tt_piece_name(theirs, 1, 5, 0);
    tt_piece_name(others, 1, 6, 0);
    keep_t *keep = s_new(1000);
    sample_save(s_dir, theirs, "pieces", 6);
    sample_save(s_dir, others, "pieces", 6);
    keep_inherit(keep, 5);
    s_give(keep, 1, 0);
    assert_int_equal(s_await(keep, &what, &disk), TT_AGAIN);
    s_give_snapshot(keep, 1);
    assert_ok(s_await(keep, &what, &disk));
    assert_false(s_is_there(theirs));
    assert_true(s_is_there(others));
    s_check_pieces(keep, 0, 1);
    sample_save(s_dir, theirs, "pieces", 6);
    keep_inherit(keep, 5); /* when the folder was looked at long ago, too */
    s_give_snapshot(keep, 2);
    assert_ok(s_await(keep, &what, &disk));
    assert_false(s_is_there(theirs));
    s_check_pieces(keep, 0, 1);
    keep_destroy(&keep);
}

static void s_expect_best(uint64_t update)
{
    char path[FOLDER_MAX + 32];
    tt_snapshot_info_t info;
    snprintf(path, sizeof path, "%s/" TT_CHECKPOINT_BEST, s_dir);
    assert_ok(tt_snapshot_inspect(path, &info));
    assert_int_equal(info.update, update);
    tt_snapshot_info_free(&info);
}

/*  Who gives a snapshot knows what was best since it led, and the file what was best before. */
static void test_the_best(void **state)
{
    (void)state;
    keep_snapshot_t what;
    uint64_t disk;
    keep_t *keep = s_new(1000);
    sample_write_best(s_dir, 5, 4);
    s_give_snapshot_like(keep, (keep_snapshot_t){.best = true, .keep = 5, .update = 10, .return_mean = 3});
    assert_ok(s_await(keep, &what, &disk));
    s_expect_best(5);
    s_give_snapshot_like(keep, (keep_snapshot_t){.best = true, .keep = 5, .update = 11, .return_mean = 4.5});
    assert_ok(s_await(keep, &what, &disk));
    s_expect_best(11);
    keep_destroy(&keep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_was_given, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_failed, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_forgotten, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_given_up, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_overtaken, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_inherited, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_the_best, s_setup, s_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
