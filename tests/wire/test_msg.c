/*  Round trips of every message, limits, and headers that are wrong in every way we could think of. */
#include "common/wire/msg.h"
#include "common/base/mem.h"
#include "tests/test.h"
#include "tests/wire/fill.h"
#include <math.h>
#include <msgpack.h>
#include <stdlib.h>
#include <string.h>

enum { MAX = 8 << 20 };

static void s_round_trip(const tt_msg_info_t *info, fill_t how, uint64_t seed)
{
    tt_msg_t sent, got;
    tt_buf_t bytes;
    const char *where;
    tt_buf_init(&bytes, MAX);
    fill_message(&sent, info, how, seed);
    assert_ok(tt_msg_pack(&bytes, &sent));
    assert_ok(tt_msg_unpack(&got, bytes.data, bytes.size));
    if (!fill_equal(&sent, &got, &where))
        fail_msg("%s.%s of seed %llu came back changed", info->record.name, where, (unsigned long long)seed);
    tt_msg_clear(&sent);
    tt_msg_clear(&got);
    tt_buf_free(&bytes);
}

static void test_every_message_round_trips(void **state)
{
    (void)state;
    size_t count;
    const tt_msg_info_t *infos = tt_msg_infos(&count);
    assert_true(count >= 20);
    for (size_t i = 0; i < count; i++) {
        s_round_trip(&infos[i], FILL_ZERO, 0);
        s_round_trip(&infos[i], FILL_SMALL, 0);
        s_round_trip(&infos[i], FILL_LIMIT, 0);
        for (uint64_t seed = 1; seed <= 200; seed++)
            s_round_trip(&infos[i], FILL_RANDOM, seed);
    }
}

/*  In an exact allocation, so that AddressSanitizer sees a read behind the end. */
static tt_status_t s_unpack_exact(const void *data, size_t size)
{
    tt_msg_t got;
    uint8_t *copy = malloc(size ? size : 1);
    memcpy(copy, data, size);
    const tt_status_t status = tt_msg_unpack(&got, copy, size);
    free(copy);
    if (status == TT_OK)
        tt_msg_clear(&got);
    return status;
}

static void test_no_prefix_is_a_message(void **state)
{
    (void)state;
    size_t count;
    const tt_msg_info_t *infos = tt_msg_infos(&count);
    for (size_t i = 0; i < count; i++) {
        tt_msg_t sent;
        tt_buf_t bytes;
        tt_buf_init(&bytes, MAX);
        fill_message(&sent, &infos[i], FILL_SMALL, 0);
        assert_ok(tt_msg_pack(&bytes, &sent));
        for (size_t size = 0; size < bytes.size; size++)
            assert_int_equal(s_unpack_exact(bytes.data, size), TT_PROTOCOL);
        tt_msg_clear(&sent);
        tt_buf_free(&bytes);
    }
}

/*  msgpack-c reads the same bytes as we do, and would write the same. */
static void test_msgpack_c_agrees(void **state)
{
    (void)state;
    size_t count;
    const tt_msg_info_t *infos = tt_msg_infos(&count);
    for (size_t i = 0; i < count; i++) {
        tt_msg_t sent;
        tt_buf_t bytes;
        tt_buf_init(&bytes, MAX);
        fill_message(&sent, &infos[i], FILL_RANDOM, 7 + i);
        assert_ok(tt_msg_pack(&bytes, &sent));
        msgpack_unpacked tree;
        msgpack_unpacked_init(&tree);
        size_t used = 0;
        assert_int_equal(msgpack_unpack_next(&tree, bytes.data, bytes.size, &used), MSGPACK_UNPACK_SUCCESS);
        assert_int_equal(used, bytes.size);
        msgpack_sbuffer again;
        msgpack_sbuffer_init(&again);
        msgpack_packer packer;
        msgpack_packer_init(&packer, &again, msgpack_sbuffer_write);
        assert_int_equal(msgpack_pack_object(&packer, tree.data), 0);
        assert_int_equal(again.size, bytes.size);
        assert_memory_equal(again.data, bytes.data, bytes.size);
        msgpack_sbuffer_destroy(&again);
        msgpack_unpacked_destroy(&tree);
        tt_msg_clear(&sent);
        tt_buf_free(&bytes);
    }
}

/*  A header written by hand: pack(&b, "...") helpers of msgpack-c. */
typedef struct {
    msgpack_sbuffer bytes;
    msgpack_packer packer;
} raw_t;

static void s_raw(raw_t *self, size_t pairs, int id)
{
    msgpack_sbuffer_init(&self->bytes);
    msgpack_packer_init(&self->packer, &self->bytes, msgpack_sbuffer_write);
    msgpack_pack_map(&self->packer, pairs);
    msgpack_pack_str_with_body(&self->packer, "m", 1);
    msgpack_pack_int(&self->packer, id);
}

static void s_key(raw_t *self, const char *name)
{
    msgpack_pack_str_with_body(&self->packer, name, strlen(name));
}

static void s_expect(raw_t *self, tt_status_t status, const char *words)
{
    const tt_status_t got = s_unpack_exact(self->bytes.data, self->bytes.size);
    if (got != status)
        fail_msg("%s instead of %s: %s", tt_status_name(got), tt_status_name(status), tt_err_text());
    if (words && !strstr(tt_err_text(), words))
        fail_msg("'%s' does not say '%s'", tt_err_text(), words);
    msgpack_sbuffer_destroy(&self->bytes);
}

static void test_unknown_fields_are_ignored(void **state)
{
    (void)state;
    raw_t raw;
    s_raw(&raw, 4, TT_MSG_ACK);
    s_key(&raw, "of_a_later_version");
    msgpack_pack_array(&raw.packer, 2);
    msgpack_pack_nil(&raw.packer);
    msgpack_pack_map(&raw.packer, 1);
    msgpack_pack_int(&raw.packer, 1);
    msgpack_pack_double(&raw.packer, 2);
    s_key(&raw, "below");
    msgpack_pack_int(&raw.packer, 77);
    s_key(&raw, "era");
    msgpack_pack_int(&raw.packer, 3);
    tt_msg_t got;
    assert_ok(tt_msg_unpack(&got, raw.bytes.data, raw.bytes.size));
    assert_int_equal(got.type, TT_MSG_ACK);
    assert_int_equal(got.ACK.era, 3);
    assert_int_equal(got.ACK.below, 77);
    tt_msg_clear(&got);
    s_expect(&raw, TT_OK, NULL);
}

static void test_unknown_messages_are_refused(void **state)
{
    (void)state;
    const int ids[] = {0, -1, 27, 255, 256, 70000};
    for (size_t i = 0; i < TT_COUNT(ids); i++) {
        raw_t raw;
        s_raw(&raw, 1, ids[i]);
        s_expect(&raw, TT_PROTOCOL, "unknown message");
    }
}

static void test_wrong_types_are_refused(void **state)
{
    (void)state;
    raw_t raw;
    s_raw(&raw, 2, TT_MSG_ACK);
    s_key(&raw, "below");
    msgpack_pack_int(&raw.packer, -1);
    s_expect(&raw, TT_PROTOCOL, "ACK: below is not a u64");
    s_raw(&raw, 2, TT_MSG_REFUSED);
    s_key(&raw, "reason");
    msgpack_pack_int(&raw.packer, 1);
    s_expect(&raw, TT_PROTOCOL, "reason is not a str");
    s_raw(&raw, 2, TT_MSG_STATS);
    s_key(&raw, "return_mean");
    msgpack_pack_int(&raw.packer, 1);
    s_expect(&raw, TT_PROTOCOL, "return_mean is not a f64");
    s_raw(&raw, 2, TT_MSG_STATS);
    s_key(&raw, "time_ns");
    msgpack_pack_nil(&raw.packer);
    s_expect(&raw, TT_PROTOCOL, "time_ns is not a i64");
    s_raw(&raw, 2, TT_MSG_STATS);
    s_key(&raw, "time_ns");
    msgpack_pack_uint64(&raw.packer, UINT64_MAX);
    s_expect(&raw, TT_PROTOCOL, "time_ns does not fit 64 bits");
    s_raw(&raw, 2, TT_MSG_ROSTER);
    s_key(&raw, "fresh");
    msgpack_pack_int(&raw.packer, 1);
    s_expect(&raw, TT_PROTOCOL, "fresh is not a flag");
    s_raw(&raw, 2, TT_MSG_ROSTER);
    s_key(&raw, "members");
    msgpack_pack_map(&raw.packer, 0);
    s_expect(&raw, TT_PROTOCOL, "members is not a list");
    s_raw(&raw, 2, TT_MSG_ROSTER);
    s_key(&raw, "members");
    msgpack_pack_array(&raw.packer, 1);
    msgpack_pack_int(&raw.packer, 1);
    s_expect(&raw, TT_PROTOCOL, "members[0] is not a map");
}

static void test_limits_hold_both_ways(void **state)
{
    (void)state;
    raw_t raw;
    s_raw(&raw, 2, TT_MSG_SEGMENT);
    s_key(&raw, "steps");
    msgpack_pack_int(&raw.packer, 1048577);
    s_expect(&raw, TT_PROTOCOL, "SEGMENT: steps is over its limit of 65536");
    s_raw(&raw, 2, TT_MSG_SEGMENT);
    s_key(&raw, "finals");
    msgpack_pack_uint64(&raw.packer, (uint64_t)1 << 32);
    s_expect(&raw, TT_PROTOCOL, "finals does not fit 32 bits");
    s_raw(&raw, 2, TT_MSG_HELLO);
    s_key(&raw, "index");
    msgpack_pack_int64(&raw.packer, INT64_MIN);
    s_expect(&raw, TT_PROTOCOL, "index is over its limit");
    char text[2048];
    memset(text, 'x', sizeof text);
    s_raw(&raw, 2, TT_MSG_REFUSED);
    s_key(&raw, "reason");
    msgpack_pack_str_with_body(&raw.packer, text, 1024);
    s_expect(&raw, TT_PROTOCOL, "reason is over its limit of 1023");

    tt_buf_t bytes;
    tt_buf_init(&bytes, MAX);
    assert_ok(tt_buf_str(&bytes, "kept"));
    text[1024] = '\0';
    const tt_msg_REFUSED_t refused = TT_MSG(REFUSED, .reason = text);
    assert_int_equal(tt_msg_pack(&bytes, &refused), TT_INVALID);
    assert_non_null(strstr(tt_err_text(), "REFUSED: reason is over its limit"));
    assert_int_equal(bytes.size, 4); /* nothing half-written */
    text[1023] = '\0';
    assert_ok(tt_msg_pack(&bytes, &refused));
    const tt_msg_SEGMENT_t segment = TT_MSG(SEGMENT, .steps = 1048577);
    assert_int_equal(tt_msg_pack(&bytes, &segment), TT_INVALID);
    const tt_rec_MEMBER_t members[] = {{.role = 1}, {.role = 8}};
    const tt_msg_ROSTER_t roster = TT_MSG(ROSTER, .members = (tt_rec_MEMBER_t *)(uintptr_t)members, .members_count = 2);
    assert_int_equal(tt_msg_pack(&bytes, &roster), TT_INVALID);
    assert_string_equal(tt_err_text(), "packing ROSTER: members[1]: role is over its limit of 7");
    const tt_msg_id_t unknown = (tt_msg_id_t)99;
    assert_int_equal(tt_msg_pack(&bytes, &unknown), TT_INVALID);
    tt_buf_free(&bytes);
    tt_buf_init(&bytes, 100);
    assert_int_equal(tt_msg_pack(&bytes, &refused), TT_INVALID);
    assert_int_equal(bytes.size, 0);
    tt_buf_free(&bytes);
}

static void test_other_rules(void **state)
{
    (void)state;
    raw_t raw;
    s_raw(&raw, 3, TT_MSG_ACK);
    s_key(&raw, "era");
    msgpack_pack_int(&raw.packer, 1);
    s_key(&raw, "era");
    msgpack_pack_int(&raw.packer, 1);
    s_expect(&raw, TT_PROTOCOL, "era comes twice");
    s_raw(&raw, 2, TT_MSG_REFUSED);
    s_key(&raw, "reason");
    msgpack_pack_str_with_body(&raw.packer, "a\0b", 3);
    s_expect(&raw, TT_PROTOCOL, "zero byte");
    s_raw(&raw, 1, TT_MSG_ACK);
    msgpack_pack_nil(&raw.packer);
    s_expect(&raw, TT_PROTOCOL, "1 bytes behind the header");
    const char no_id[] = "\x81\xa3"
                         "era\x01";
    assert_int_equal(s_unpack_exact(no_id, sizeof no_id - 1), TT_PROTOCOL);
    assert_int_equal(s_unpack_exact("\x80", 1), TT_PROTOCOL);
    assert_int_equal(s_unpack_exact("\x93\x01\x02\x03", 4), TT_PROTOCOL);
}

/*  A list that says 4096 members and brings one byte each: memory stays bounded by the table, and is given back. */
static void test_lists_are_bounded(void **state)
{
    (void)state;
    raw_t raw;
    s_raw(&raw, 2, TT_MSG_ROSTER);
    s_key(&raw, "members");
    msgpack_pack_array(&raw.packer, 4097);
    for (int i = 0; i < 4097; i++)
        msgpack_pack_map(&raw.packer, 0);
    s_expect(&raw, TT_PROTOCOL, "members is over its limit");
    s_raw(&raw, 2, TT_MSG_ROSTER);
    s_key(&raw, "members");
    msgpack_pack_array(&raw.packer, 4096);
    for (int i = 0; i < 4096; i++)
        msgpack_pack_map(&raw.packer, 0);
    s_expect(&raw, TT_OK, NULL);
    s_raw(&raw, 2, TT_MSG_ROSTER);
    s_key(&raw, "members");
    msgpack_pack_array(&raw.packer, UINT32_MAX);
    s_expect(&raw, TT_PROTOCOL, "4294967295 elements in 0 bytes");
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(tt_msg_name(TT_MSG_SEGMENT), "SEGMENT");
    assert_string_equal(tt_msg_name((tt_msg_id_t)99), "?");
    assert_int_equal(tt_msg_frames(TT_MSG_WEIGHTS), 2);
    assert_int_equal(tt_msg_frames(TT_MSG_HELLO), 0);
    for (tt_peer_role_t role = TT_PEER_COORDINATOR; role <= TT_PEER_CLIENT; role++)
        assert_int_equal(tt_peer_role_find(tt_peer_role_name(role)), role);
    assert_int_equal(tt_peer_role_find("nobody"), TT_PEER_NONE);
    assert_string_equal(tt_peer_role_name((tt_peer_role_t)99), "none");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_message_round_trips),
        cmocka_unit_test(test_no_prefix_is_a_message),
        cmocka_unit_test(test_msgpack_c_agrees),
        cmocka_unit_test(test_unknown_fields_are_ignored),
        cmocka_unit_test(test_unknown_messages_are_refused),
        cmocka_unit_test(test_wrong_types_are_refused),
        cmocka_unit_test(test_limits_hold_both_ways),
        cmocka_unit_test(test_other_rules),
        cmocka_unit_test(test_lists_are_bounded),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
