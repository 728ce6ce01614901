/*  The checksum: any one bit of a snapshot that changes is seen, whichever it is, by whoever reads it and however. */
#include "common/snapshot/seal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "common/snapshot/snapshot.h"
#include "tests/snapshot/sample.h"
#include "tests/test.h"

/*  The digits are those of SHA-256 over the file with zeros in their place, and anybody can compute that. */
static void test_the_digits_are_sha256_with_zeros_in_their_place(void **state)
{
    (void)state;
    tt_buf_t bytes;
    bool sealed = false;
    char digits[TT_SEAL_DIGITS + 1] = {0}, wanted[TT_SEAL_DIGITS + 1];
    unsigned char hash[32];
    sample_encode(&bytes, 41);
    assert_ok(tt_seal_check(bytes.data, bytes.size, &sealed));
    assert_true(sealed);
    memcpy(digits, bytes.data + TT_SEAL_AT, TT_SEAL_DIGITS);
    memset(bytes.data + TT_SEAL_AT, '0', TT_SEAL_DIGITS);
    crypto_hash_sha256(hash, (const unsigned char *)bytes.data, bytes.size);
    sodium_bin2hex(wanted, sizeof wanted, hash, sizeof hash);
    assert_string_equal(digits, wanted);
    tt_buf_free(&bytes);
}

static void test_every_bit_counts(void **state)
{
    (void)state;
    tt_buf_t bytes;
    tt_snapshot_t back = sample_expect();
    sample_encode(&bytes, 41);
    assert_ok(tt_snapshot_decode(&back, bytes.data, bytes.size));
    tt_snapshot_close(&back);
    for (size_t bit = 0; bit < 8 * bytes.size; bit++) {
        bytes.data[bit / 8] ^= (char)(1 << bit % 8);
        back = sample_expect();
        if (tt_snapshot_decode(&back, bytes.data, bytes.size) != TT_DATA)
            fail_msg("bit %zu of %zu is not missed", bit, 8 * bytes.size);
        bytes.data[bit / 8] ^= (char)(1 << bit % 8);
    }
    tt_buf_free(&bytes);
}

/*  inspect reads in pieces and keeps the header only: it comes to the same. */
static void test_inspect_sees_the_same(void **state)
{
    (void)state;
    char dir[] = "/tmp/tt-seal-XXXXXX", path[64];
    tt_buf_t bytes;
    tt_snapshot_info_t info = {0};
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/a.safetensors", dir);
    sample_encode(&bytes, 41);
    sample_save(dir, "a.safetensors", bytes.data, bytes.size);
    assert_ok(tt_snapshot_inspect(path, &info));
    assert_int_equal(info.update, 41);
    assert_true(info.sealed);
    assert_true(info.return_mean == 123.5);
    assert_string_equal(info.config, "name: x\nseed: 3\n");
    tt_snapshot_info_free(&info);
    for (size_t bit = 0; bit < 8 * bytes.size; bit += 7) {
        bytes.data[bit / 8] ^= (char)(1 << bit % 8);
        sample_save(dir, "a.safetensors", bytes.data, bytes.size);
        if (tt_snapshot_inspect(path, &info) != TT_DATA)
            fail_msg("bit %zu of %zu is not missed", bit, 8 * bytes.size);
        bytes.data[bit / 8] ^= (char)(1 << bit % 8);
    }
    for (size_t size = 0; size < bytes.size; size += 5) {
        sample_save(dir, "a.safetensors", bytes.data, size);
        assert_int_equal(tt_snapshot_inspect(path, &info), TT_DATA);
    }
    assert_int_equal(tt_snapshot_inspect(dir, &info), TT_DATA);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(tt_snapshot_inspect(path, &info), TT_NOT_FOUND);
    assert_int_equal(rmdir(dir), 0);
    tt_buf_free(&bytes);
}

/*  Pieces of any size: what a coordinator checks while a file comes in. */
static void test_pieces(void **state)
{
    (void)state;
    tt_buf_t bytes;
    sample_encode(&bytes, 41);
    for (size_t piece = 1; piece < 200; piece += 13) {
        tt_seal_check_t check;
        bool sealed = false;
        tt_seal_begin(&check);
        for (size_t at = 0; at < bytes.size; at += piece)
            tt_seal_add(&check, bytes.data + at, bytes.size - at < piece ? bytes.size - at : piece);
        assert_ok(tt_seal_end(&check, &sealed));
        assert_true(sealed);
    }
    tt_buf_free(&bytes);
}

/*  As tutti 0.1 wrote it: no checksum, and the weights have a hash of their own. */
static void s_as_0_1(const tt_buf_t *sealed, tt_buf_t *out)
{
    tt_st_t *file = NULL;
    char sha[65];
    size_t arrays = 0;
    assert_ok(tt_st_decode(&file, sealed->data, sealed->size));
    const tt_st_array_t *array = tt_st_arrays(file, &arrays);
    tt_weights_sha256(sample_params, TT_COUNT(sample_params), sha);
    const tt_st_meta_t meta[] = {{"format", (char *)"tutti-1"}, {"config", (char *)"seed: 3\n"},
        {"update", (char *)"41"}, {"return_mean", (char *)"nan"}, {"weights_sha256", sha}};
    tt_buf_init(out, 1 << 20);
    assert_ok(tt_st_encode(out, array, arrays, meta, TT_COUNT(meta)));
    tt_st_destroy(&file);
}

static void test_a_file_of_0_1_is_read_and_its_weights_are_checked(void **state)
{
    (void)state;
    tt_buf_t bytes, old;
    tt_snapshot_t back = sample_expect();
    tt_st_t *file = NULL;
    bool sealed = true;
    sample_encode(&bytes, 41);
    s_as_0_1(&bytes, &old);
    assert_ok(tt_seal_check(old.data, old.size, &sealed));
    assert_false(sealed);
    assert_ok(tt_snapshot_decode(&back, old.data, old.size));
    assert_int_equal(back.update, 41);
    tt_snapshot_close(&back);
    assert_ok(tt_st_decode(&file, old.data, old.size));
    float *weight = memmem(old.data, old.size, &(float[]){1, 3, 2, 4}, 4 * sizeof(float));
    assert_non_null(weight);
    *(char *)weight ^= 1;
    back = sample_expect();
    assert_int_equal(tt_snapshot_decode(&back, old.data, old.size), TT_DATA);
    assert_non_null(strstr(tt_err_text(), "weights_sha256"));
    tt_st_destroy(&file);
    tt_buf_free(&bytes);
    tt_buf_free(&old);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_digits_are_sha256_with_zeros_in_their_place),
        cmocka_unit_test(test_every_bit_counts),
        cmocka_unit_test(test_inspect_sees_the_same),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_a_file_of_0_1_is_read_and_its_weights_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
