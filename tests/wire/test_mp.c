/*  Every format byte of msgpack, against msgpack-c's writer, and bytes that lie. */
#include "common/wire/mp.h"
#include <math.h>
#include <msgpack.h>
#include <stdlib.h>
#include <string.h>
#include "tests/test.h"

static tt_mp_token_t s_one(const void *data, size_t size)
{
    tt_mp_reader_t reader = {data, (const uint8_t *)data + size};
    tt_mp_token_t token;
    assert_ok(tt_mp_next(&reader, &token));
    assert_ptr_equal(reader.at, reader.end);
    return token;
}

static void test_integers_of_every_width(void **state)
{
    (void)state;
    const int64_t values[] = {0, 1, 127, 128, 255, 256, 65535, 65536, UINT32_MAX, (int64_t)UINT32_MAX + 1, INT64_MAX,
        -1, -32, -33, -128, -129, -32768, -32769, INT32_MIN, (int64_t)INT32_MIN - 1, INT64_MIN};
    for (size_t i = 0; i < TT_COUNT(values); i++) {
        msgpack_sbuffer bytes;
        msgpack_packer packer;
        msgpack_sbuffer_init(&bytes);
        msgpack_packer_init(&packer, &bytes, msgpack_sbuffer_write);
        msgpack_pack_int64(&packer, values[i]);
        const tt_mp_token_t token = s_one(bytes.data, bytes.size);
        assert_int_equal(token.kind, values[i] < 0 ? TT_MP_INT : TT_MP_UINT);
        assert_true((int64_t)token.number == values[i]);
        msgpack_sbuffer_destroy(&bytes);
    }
    assert_true(s_one("\xcf\xff\xff\xff\xff\xff\xff\xff\xff", 9).number == UINT64_MAX);
    assert_int_equal(s_one("\xd3\0\0\0\0\0\0\0\x05", 9).kind, TT_MP_UINT); /* a signed format with a positive value */
    assert_int_equal(s_one("\xd0\x05", 2).number, 5);
}

static void test_other_scalars(void **state)
{
    (void)state;
    assert_int_equal(s_one("\xc0", 1).kind, TT_MP_NIL);
    assert_int_equal(s_one("\xc2", 1).number, 0);
    assert_int_equal(s_one("\xc3", 1).number, 1);
    assert_int_equal(s_one("\xc3", 1).kind, TT_MP_FLAG);
    assert_true(s_one("\xca\x3f\xc0\0\0", 5).real == 1.5);
    assert_true(s_one("\xcb\xbf\xf8\0\0\0\0\0\0", 9).real == -1.5);
    assert_true(isnan(s_one("\xcb\x7f\xf8\0\0\0\0\0\0", 9).real));
}

static void test_texts_and_data(void **state)
{
    (void)state;
    const struct {
        const char *data;
        size_t size, length, head;
        tt_mp_kind_t kind;
    } cases[] = {
        {"\xa3"
         "abc",
            4, 3, 1, TT_MP_STR},
        {"\xa0", 1, 0, 1, TT_MP_STR},
        {"\xd9\x03"
         "abc",
            5, 3, 2, TT_MP_STR},
        {"\xda\0\x03"
         "abc",
            6, 3, 3, TT_MP_STR},
        {"\xdb\0\0\0\x03"
         "abc",
            8, 3, 5, TT_MP_STR},
        {"\xc4\x02zz", 4, 2, 2, TT_MP_BIN},
        {"\xc5\0\x02zz", 5, 2, 3, TT_MP_BIN},
        {"\xc6\0\0\0\x02zz", 7, 2, 5, TT_MP_BIN},
        {"\xd4\x01z", 3, 1, 2, TT_MP_EXT},
        {"\xd5\x01zz", 4, 2, 2, TT_MP_EXT},
        {"\xd6\x01zzzz", 6, 4, 2, TT_MP_EXT},
        {"\xd7\x01zzzzzzzz", 10, 8, 2, TT_MP_EXT},
        {"\xd8\x01zzzzzzzzzzzzzzzz", 18, 16, 2, TT_MP_EXT},
        {"\xc7\x03\x01zzz", 6, 3, 3, TT_MP_EXT},
        {"\xc8\0\x03\x01zzz", 7, 3, 4, TT_MP_EXT},
        {"\xc9\0\0\0\x03\x01zzz", 9, 3, 6, TT_MP_EXT},
    };
    for (size_t i = 0; i < TT_COUNT(cases); i++) {
        const tt_mp_token_t token = s_one(cases[i].data, cases[i].size);
        assert_int_equal(token.kind, cases[i].kind);
        assert_int_equal(token.number, cases[i].length);
        assert_ptr_equal(token.bytes, cases[i].data + cases[i].head);
        for (size_t size = 0; size < cases[i].size; size++) {
            tt_mp_reader_t reader = {(const uint8_t *)cases[i].data, (const uint8_t *)cases[i].data + size};
            tt_mp_token_t cut;
            assert_int_equal(tt_mp_next(&reader, &cut), TT_PROTOCOL);
        }
    }
}

static tt_status_t s_skip(const char *data, size_t size)
{
    tt_mp_reader_t reader = {(const uint8_t *)data, (const uint8_t *)data + size};
    TT_TRY(tt_mp_skip(&reader));
    assert_ptr_equal(reader.at, reader.end);
    return TT_OK;
}

static void test_collections(void **state)
{
    (void)state;
    assert_ok(s_skip("\x92\x01\x02", 3));
    assert_ok(s_skip("\xdc\0\x02\x01\x02", 5));
    assert_ok(s_skip("\xdd\0\0\0\x02\x01\x02", 7));
    assert_ok(s_skip("\x81\x01\x02", 3));
    assert_ok(s_skip("\xde\0\x01\x01\x02", 5));
    assert_ok(s_skip("\xdf\0\0\0\x01\x01\x02", 7));
    assert_ok(s_skip("\x82\xa1x\x93\x01\xc0\x81\x01\x02\xa1y\xc3", 12));
}

/*  The five bytes that make msgpack-c ask for 96 GB, and their kin: refused before anything is done. */
static void test_counts_that_lie(void **state)
{
    (void)state;
    const char *const lies[] = {"\xdd\xff\xff\xff\xff", "\xdf\xff\xff\xff\xff", "\xdb\xff\xff\xff\xff",
        "\xc6\xff\xff\xff\xff", "\xc9\xff\xff\xff\xff"};
    for (size_t i = 0; i < TT_COUNT(lies); i++)
        assert_int_equal(s_skip(lies[i], 5), TT_PROTOCOL);
    assert_int_equal(s_skip("\x92\x01", 2), TT_PROTOCOL);
    assert_int_equal(s_skip("\x82\x01\x02\x03", 4), TT_PROTOCOL);
    assert_int_equal(s_skip("\xc1", 1), TT_PROTOCOL);
    assert_int_equal(s_skip("", 0), TT_PROTOCOL);
}

static void test_depth_is_limited(void **state)
{
    (void)state;
    char nested[100000];
    memset(nested, '\x91', sizeof nested);
    assert_int_equal(s_skip(nested, sizeof nested), TT_PROTOCOL);
    nested[7] = '\x01';
    assert_ok(s_skip(nested, 8));
    nested[7] = '\x91';
    nested[8] = '\x01';
    assert_int_equal(s_skip(nested, 9), TT_PROTOCOL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integers_of_every_width),
        cmocka_unit_test(test_other_scalars),
        cmocka_unit_test(test_texts_and_data),
        cmocka_unit_test(test_collections),
        cmocka_unit_test(test_counts_that_lie),
        cmocka_unit_test(test_depth_is_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
