/*  The bytes of every message, kept in tests/golden/wire: a change of the format is a diff that somebody must want. */
#include <stdio.h>
#include "tests/golden.h"
#include "tests/wire/fill.h"

enum { MAX = 1 << 20 };

static void s_vector(tt_buf_t *out, const tt_msg_info_t *info, fill_t how, const char *name)
{
    tt_msg_t msg;
    tt_buf_t bytes;
    tt_buf_init(&bytes, MAX);
    fill_message(&msg, info, how, 0);
    assert_ok(tt_msg_pack(&bytes, &msg));
    assert_ok(tt_buf_printf(out, "%s ", name));
    for (size_t i = 0; i < bytes.size; i++)
        assert_ok(tt_buf_printf(out, "%02x", (unsigned char)bytes.data[i]));
    assert_ok(tt_buf_str(out, "\n"));
    tt_buf_free(&bytes);
    tt_msg_clear(&msg);
}

static void test_every_message_has_its_bytes(void **state)
{
    (void)state;
    size_t count;
    const tt_msg_info_t *infos = tt_msg_infos(&count);
    for (size_t i = 0; i < count; i++) {
        char path[128];
        tt_buf_t made;
        tt_buf_init(&made, MAX);
        s_vector(&made, &infos[i], FILL_ZERO, "zero");
        s_vector(&made, &infos[i], FILL_SMALL, "small");
        s_vector(&made, &infos[i], FILL_LIMIT, "limit");
        snprintf(path, sizeof path, "tests/golden/wire/%s.hex", infos[i].record.name);
        assert_golden(path, &made);
        tt_buf_free(&made);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_message_has_its_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
