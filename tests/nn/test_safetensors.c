/*  safetensors: round trip, and one file for each way in which bytes can fail to be one. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "common/nn/safetensors.h"
#include "tests/nn/st_file.h"
#include "tests/test.h"

static const float s_floats[6] = {0.0f, -1.5f, 3.25f, 1e-38f, 7.0f, -0.0f};
static const double s_doubles[2] = {3.141592653589793, -2.5};
static const int64_t s_counts[1] = {INT64_MAX};
static const int32_t s_ints[3] = {-1, 0, 1};
static const uint8_t s_bytes[5] = {1, 2, 3, 4, 5};

static const tt_st_array_t s_arrays[] = {
    {"actor.0.weight", TT_ST_F32, 2, {2, 3}, s_floats, sizeof s_floats},
    {"raw \"bytes\"\n", TT_ST_U8, 1, {5}, s_bytes, sizeof s_bytes},
    {"mean", TT_ST_F64, 4, {1, 2, 1, 1}, s_doubles, sizeof s_doubles},
    {"step", TT_ST_I64, 0, {0}, s_counts, sizeof s_counts},
    {"none", TT_ST_F32, 2, {0, 4}, s_floats, 0},
    {"ints", TT_ST_I32, 1, {3}, s_ints, sizeof s_ints},
};
static char s_version[] = "17", s_text[] = "a \\ \"quoted\" caf\xc3\xa9";
static const tt_st_meta_t s_meta[] = {{"policy_version", s_version}, {"text", s_text}};

static void check_contents(const tt_st_t *file)
{
    size_t count = 0;
    tt_st_arrays(file, &count);
    assert_int_equal(count, TT_COUNT(s_arrays));
    for (size_t i = 0; i < count; i++) {
        const tt_st_array_t *got = tt_st_find(file, s_arrays[i].name), *expected = &s_arrays[i];
        assert_non_null(got);
        assert_int_equal(got->type, expected->type);
        assert_int_equal(got->rank, expected->rank);
        assert_int_equal(got->bytes, expected->bytes);
        assert_memory_equal(got->shape, expected->shape, got->rank * sizeof got->shape[0]);
        assert_memory_equal(got->data, expected->data, got->bytes);
        assert_int_equal((uintptr_t)got->data % 64, 0);
    }
    assert_string_equal(tt_st_meta(file, "policy_version"), "17");
    assert_string_equal(tt_st_meta(file, "text"), s_text);
    assert_null(tt_st_meta(file, "absent"));
    assert_null(tt_st_find(file, "absent"));
}

static void test_round_trip(void **state)
{
    (void)state;
    tt_buf_t out;
    tt_st_t *file = NULL;
    tt_buf_init(&out, 1 << 16);
    assert_ok(tt_st_encode(&out, s_arrays, TT_COUNT(s_arrays), s_meta, TT_COUNT(s_meta)));
    assert_int_equal((unsigned char)out.data[0] % 8, 0); /* the data begin at a multiple of 8 */
    assert_ok(tt_st_decode(&file, out.data, out.size));
    check_contents(file);
    tt_st_destroy(&file);
    assert_null(file);
    for (size_t size = 0; size < out.size; size++) /* cut anywhere, it is refused */
        assert_int_equal(tt_st_decode(&file, out.data, size), TT_DATA);
    tt_buf_free(&out);
}

static tt_status_t write_file(const char *path, size_t arrays, size_t metas, bool sync)
{
    tt_buf_t out;
    tt_buf_init(&out, 1 << 16);
    tt_status_t status = tt_st_encode(&out, s_arrays, arrays, s_meta, metas);
    if (status == TT_OK)
        status = tt_st_save(&out, path, sync, TT_NO_PROGRESS);
    tt_buf_free(&out);
    return status;
}

static void test_files(void **state)
{
    (void)state;
    char dir[] = "/tmp/tt-st-XXXXXX";
    assert_non_null(mkdtemp(dir));
    char *path = tt_sprintf("%s/a.safetensors", dir), *beside = tt_sprintf("%s.tmp", path);
    tt_st_t *file = NULL;
    struct stat st;
    for (int sync = 0; sync < 2; sync++) {
        assert_ok(write_file(path, TT_COUNT(s_arrays), TT_COUNT(s_meta), sync));
        assert_int_equal(stat(beside, &st), -1);
        assert_ok(st_file(&file, path));
        check_contents(file);
        tt_st_destroy(&file);
    }
    assert_int_equal(st_file(&file, beside), TT_NOT_FOUND);
    assert_int_equal(truncate(path, 100), 0);
    assert_int_equal(st_file(&file, path), TT_DATA);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0); /* renaming over a directory fails, and nothing is left */
    assert_int_equal(write_file(path, 1, 0, false), TT_IO);
    assert_int_equal(stat(beside, &st), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(dir), 0);
    assert_int_equal(write_file(path, 1, 0, false), TT_IO);
    free(path);
    free(beside);
}

static tt_status_t decode_text(tt_st_t **file, const char *header, size_t data)
{
    const size_t length = strlen(header), size = 8 + length + data;
    char *bytes = tt_new0(size);
    for (int i = 0; i < 8; i++)
        bytes[i] = (char)(length >> (8 * i));
    memcpy(bytes + 8, header, length);
    const tt_status_t status = tt_st_decode(file, bytes, size);
    free(bytes);
    return status;
}

static void test_foreign_headers(void **state)
{
    (void)state;
    const struct {
        const char *header;
        size_t data;
        const char *says;
    } bad[] = {
        {"", 0, "not JSON"},
        {"[1, 2]", 0, "not an object"},
        {"{\"a\":3}", 0, "type"},
        {"{\"a\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[0,2]}}", 2, "F16"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":3,\"data_offsets\":[0,4]}}", 4, "shape"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1],\"data_offsets\":[0,4]}}", 4, "at most 4"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, "not a count"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1.0],\"data_offsets\":[0,4]}}", 4, "not a count"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,8]}}", 8, "data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 8, "data at"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}}", 8, "data at"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 4, "truncated"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, "shape does not fit"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 5, "behind the last"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8, "begins at"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
         "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[2,6]}}",
            6, "begins at"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,0]}}", 0, "shape"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
         "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
            1, "not JSON"},
        {"{\"__metadata__\":{\"a\":1}}", 0, "metadata"},
        {"{\"__metadata__\":[]}", 0, "__metadata__"},
    };
    tt_st_t *file = NULL;
    for (size_t i = 0; i < TT_COUNT(bad); i++) {
        assert_int_equal(decode_text(&file, bad[i].header, bad[i].data), TT_DATA);
        if (!strstr(tt_err_text(), bad[i].says))
            fail_msg("%s: says '%s', not '%s'", bad[i].header, tt_err_text(), bad[i].says);
        assert_null(file);
    }
    assert_ok(decode_text(&file, "{}", 0));
    tt_st_destroy(&file);
    const unsigned char huge[8] = {1, 0, 0, 1};
    assert_int_equal(tt_st_decode(&file, huge, sizeof huge), TT_DATA);
    assert_non_null(strstr(tt_err_text(), "16 MiB"));
}

static void test_wrong_arrays(void **state)
{
    (void)state;
    const tt_st_array_t short_one = {"a", TT_ST_F32, 1, {2}, s_floats, 4};
    const tt_st_array_t deep = {"a", TT_ST_F32, 5, {1, 1, 1, 1}, s_floats, 4};
    const tt_st_array_t twice[] = {s_arrays[0], s_arrays[0]};
    const tt_st_array_t latin = {"caf\xe9", TT_ST_F32, 1, {1}, s_floats, 4};
    tt_buf_t out, small;
    tt_buf_init(&out, 1 << 16);
    tt_buf_init(&small, 64);
    assert_int_equal(tt_st_encode(&out, &short_one, 1, NULL, 0), TT_INVALID);
    assert_int_equal(tt_st_encode(&out, &deep, 1, NULL, 0), TT_INVALID);
    assert_int_equal(tt_st_encode(&out, twice, 2, NULL, 0), TT_INVALID);
    assert_int_equal(tt_st_encode(&out, &latin, 1, NULL, 0), TT_INVALID);
    assert_int_equal(tt_st_encode(&small, s_arrays, 1, NULL, 0), TT_INVALID);
    tt_buf_free(&out);
    tt_buf_free(&small);
}

/*  test_safetensors write|check FILE: the two ends of the exchange with Python (python_safetensors.sh). */
static int exchange(const char *what, const char *path)
{
    if (strcmp(what, "write") == 0)
        return write_file(path, TT_COUNT(s_arrays), TT_COUNT(s_meta), false) != TT_OK;
    tt_st_t *file = NULL;
    if (st_file(&file, path) != TT_OK) {
        fprintf(stderr, "%s\n", tt_err_text());
        return 1;
    }
    check_contents(file); /* aborts outside a test, which is what the script looks for */
    tt_st_destroy(&file);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_foreign_headers),
        cmocka_unit_test(test_wrong_arrays),
    };
    if (argc == 3)
        return exchange(argv[1], argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
