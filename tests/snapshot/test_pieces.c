/*  Snapshots that refer to ranges of files beside them: what is read back, what is refused, which files stay. */
#include "common/snapshot/pieces.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "common/snapshot/checkpoints.h"
#include "common/snapshot/names.h"
#include "common/snapshot/seal.h"
#include "tests/folder.h"
#include "tests/snapshot/sample.h"
#include "tests/test.h"

static char s_dir[FOLDER_MAX];

static int s_setup(void **state)
{
    (void)state;
    return folder_make(s_dir, "pieces");
}

static int s_teardown(void **state)
{
    (void)state;
    return folder_remove(s_dir);
}

static bool s_is_there(const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", s_dir, name);
    return access(path, F_OK) == 0;
}

/*  A file of era 3, number `number`, that says `text`; the piece is all but its first and last byte. */
static tt_piece_t s_file(uint32_t number, const char *text)
{
    const size_t size = strlen(text);
    tt_piece_t piece = {.offset = 1, .bytes = size - 2, .first = 10 * number, .next = 10 * number + 5};
    tt_piece_name(piece.file, 3, 0xfedcba9876543210, number);
    tt_piece_hash(text + 1, size - 2, piece.hash);
    sample_save(s_dir, piece.file, text, size);
    return piece;
}

static void test_names(void **state)
{
    (void)state;
    char name[TT_PIECE_FILE];
    tt_piece_name(name, UINT32_MAX, UINT64_MAX, UINT32_MAX);
    assert_true(tt_piece_is_name(name));
    tt_piece_name(name, 3, 0xfedcba9876543210, 7);
    assert_string_equal(name, "replay-00000003-fedcba9876543210-000007.bin");
    const char *bad[] = {"", "replay-.bin", "replay-1.bin.", "replay-../x.bin", "replay-1/2.bin", "xreplay-1.bin",
        "00000003.safetensors", "replay-000000000000000000000000000000000000000000000000000000000000000.bin"};
    for (size_t i = 0; i < TT_COUNT(bad); i++)
        assert_false(tt_piece_is_name(bad[i]));
}

static void test_read_and_damaged(void **state)
{
    (void)state;
    const char text[] = "all that was played";
    tt_piece_t piece = s_file(1, text);
    tt_buf_t bytes;
    tt_buf_init(&bytes, 1 << 20);
    assert_ok(tt_piece_read(s_dir, &piece, &bytes));
    assert_ok(tt_piece_read(s_dir, &piece, &bytes)); /* instead of what was there */
    assert_string_equal(tt_buf_text(&bytes), "ll that was playe");
    for (size_t i = 0; i < sizeof text - 1; i++) { /* each byte of the piece counts, those around it do not */
        char other[sizeof text];
        memcpy(other, text, sizeof text);
        other[i] ^= 4;
        sample_save(s_dir, piece.file, other, sizeof text - 1);
        assert_int_equal(tt_piece_read(s_dir, &piece, &bytes), i && i < sizeof text - 2 ? TT_DATA : TT_OK);
        sample_save(s_dir, piece.file, text, i); /* torn */
        if (i < sizeof text - 2)
            assert_int_equal(tt_piece_read(s_dir, &piece, &bytes), TT_DATA);
        if (i < sizeof text - 2)
            assert_non_null(strstr(tt_err_text(), piece.file));
    }
    piece.bytes = UINT64_MAX; /* nothing of that size is allocated */
    assert_int_equal(tt_piece_read(s_dir, &piece, &bytes), TT_DATA);
    piece.offset = UINT64_MAX;
    assert_int_equal(tt_piece_read(s_dir, &piece, &bytes), TT_DATA);
    tt_piece_name(piece.file, 3, 1, 1);
    assert_int_equal(tt_piece_read(s_dir, &piece, &bytes), TT_NOT_FOUND);
    tt_buf_free(&bytes);
}

static tt_snapshot_t s_expect(void)
{
    tt_snapshot_t expect = sample_expect();
    expect.replays = true;
    return expect;
}

static void s_path(const char *name, char out[512])
{
    snprintf(out, 512, "%s/%s", s_dir, name);
}

static void test_referred_to(void **state)
{
    (void)state;
    const tt_piece_t piece[] = {s_file(1, "the first"), s_file(2, "the second"), s_file(1, "the first")};
    tt_snapshot_t got = s_expect();
    char path[512];
    sample_write_pieces(s_dir, "00000005.safetensors", 5, piece, 3);
    s_path("00000005.safetensors", path);
    assert_ok(tt_snapshot_read(&got, path));
    assert_int_equal(got.replay_bytes, 5);
    assert_int_equal(got.pieces, 3);
    assert_memory_equal(got.piece, piece, sizeof piece);
    tt_snapshot_close(&got);
    sample_write_pieces(s_dir, "00000005.safetensors", 5, NULL, 0);
    got = s_expect();
    assert_ok(tt_snapshot_read(&got, path));
    assert_int_equal(got.pieces, 0);
    tt_snapshot_close(&got);
    sample_write(s_dir, "00000005.safetensors", 5); /* it was not kept */
    got = s_expect();
    assert_ok(tt_snapshot_read(&got, path));
    assert_null(got.replay);
    tt_snapshot_close(&got);
}

/*  With a checksum made good: any byte of the arrays changed, it is refused, or what it says could be. */
static void test_forged(void **state)
{
    (void)state;
    const tt_piece_t piece[] = {s_file(1, "the first"), s_file(2, "the second")};
    char path[512];
    tt_buf_t bytes;
    uint32_t refused = 0, taken = 0;
    tt_buf_init(&bytes, 1 << 20);
    sample_write_pieces(s_dir, "00000005.safetensors", 5, piece, 2);
    s_path("00000005.safetensors", path);
    assert_ok(tt_buf_read_file(&bytes, path));
    for (size_t i = 8; i < bytes.size; i++) {
        tt_snapshot_t got = s_expect();
        bytes.data[i] = (char)(bytes.data[i] ^ 0x81);
        const tt_status_t sealed = tt_seal(bytes.data, bytes.size);
        const tt_status_t status = tt_snapshot_decode(&got, bytes.data, bytes.size);
        bytes.data[i] = (char)(bytes.data[i] ^ 0x81);
        refused += status != TT_OK;
        if (sealed != TT_OK || status != TT_OK)
            continue;
        taken++;
        for (size_t k = 0; k < got.pieces; k++)
            assert_true(tt_piece_is_name(got.piece[k].file) && got.piece[k].first < got.piece[k].next);
        tt_snapshot_close(&got);
    }
    assert_true(refused > 100 && taken > 100);
    tt_buf_free(&bytes);
}

/*  What neither of the newest two refers to goes; a snapshot of a time that is void does not count. */
static void test_swept(void **state)
{
    (void)state;
    tt_piece_t piece[6];
    tt_piece_files_t files = {0};
    char text[16];
    for (uint32_t i = 0; i < TT_COUNT(piece); i++) {
        snprintf(text, sizeof text, "file %u", i);
        piece[i] = s_file(i, text);
    }
    sample_save(s_dir, "replay.txt", "mine", 4);
    sample_write_pieces(s_dir, "00000010.safetensors", 10, &piece[0], 2);
    sample_write_pieces(s_dir, "00000020.safetensors", 20, &piece[1], 2);
    sample_write_pieces(s_dir, "00000030.safetensors", 30, &piece[2], 2);
    sample_write_pieces(s_dir, "00000040.safetensors", 40, &piece[4], 1); /* void */
    sample_write_best(s_dir, 35, 100);                                    /* nothing to go on from */
    assert_ok(tt_piece_files_list(s_dir, &files));
    assert_int_equal(files.count, 6);
    assert_int_equal(tt_checkpoints_sweep(s_dir, 30, &files, piece[5].file), 4 * 6);
    const bool stays[] = {false, true, true, true, false, true};
    for (size_t i = 0; i < TT_COUNT(piece); i++) {
        assert_int_equal(s_is_there(piece[i].file), stays[i]);
        assert_int_equal(tt_piece_files_has(&files, piece[i].file), stays[i]);
    }
    sample_damage(s_dir, "00000030.safetensors"); /* which it refers to is not known: those of the two before stay */
    assert_int_equal(tt_checkpoints_sweep(s_dir, 30, &files, NULL), 2 * 6);
    assert_true(s_is_there(piece[1].file) && s_is_there(piece[2].file) && s_is_there("replay.txt"));
    tt_piece_files_free(&files);
}

static void s_expect_all(tt_piece_files_t *files, const tt_piece_t *piece, size_t count)
{
    assert_int_equal(tt_checkpoints_sweep(s_dir, 30, files, NULL), count * 6);
    assert_int_equal(files->count, count);
    for (size_t i = 0; i < count; i++)
        assert_true(s_is_there(piece[i].file) && tt_piece_files_has(files, piece[i].file));
}

/*  In place of what has that name: a link to itself, which no one can open. */
static void s_shut(const char *name)
{
    char path[512];
    s_path(name, path);
    unlink(path);
    assert_int_equal(symlink(name, path), 0);
}

/*  What is needed is not known where a snapshot, or the folder, cannot be read: that may pass, and what is gone is gone. */
static void test_nothing_is_swept_in_the_dark(void **state)
{
    (void)state;
    const tt_piece_t piece[] = {s_file(0, "file 0"), s_file(1, "file 1"), s_file(2, "file 2"), s_file(3, "file 3")};
    tt_piece_files_t files = {0};
    struct rlimit limit;
    for (uint32_t i = 0; i < 3; i++) {
        char name[TT_CHECKPOINT_NAME];
        tt_checkpoint_name(name, 10 * (i + 1));
        sample_write_pieces(s_dir, name, 10 * (i + 1), &piece[i], 1);
    }
    assert_ok(tt_piece_files_list(s_dir, &files));
    assert_int_equal(files.count, 4);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const struct rlimit none = {.rlim_cur = 0, .rlim_max = limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_int_equal(tt_piece_files_list(s_dir, &(tt_piece_files_t){0}), TT_IO);
    s_expect_all(&files, piece, 4);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    s_shut("final.safetensors"); /* of which update, nobody knows */
    s_expect_all(&files, piece, 4);
    char path[512];
    s_path("final.safetensors", path);
    assert_int_equal(unlink(path), 0);
    s_shut("00000020.safetensors");
    s_expect_all(&files, piece, 4);
    s_shut("00000010.safetensors");
    sample_write_pieces(s_dir, "00000020.safetensors", 20, &piece[1], 1);
    assert_int_equal(tt_checkpoints_sweep(s_dir, 30, &files, NULL), 2 * 6); /* the two that count are there */
    assert_true(s_is_there(piece[1].file) && s_is_there(piece[2].file));
    tt_piece_files_free(&files);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_names, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_read_and_damaged, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_referred_to, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_forged, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_swept, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_nothing_is_swept_in_the_dark, s_setup, s_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
