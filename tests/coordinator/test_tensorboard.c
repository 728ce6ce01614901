/*  tensorboard: CRC32C vectors, and the framing read back by a second decoder. With TT_EVENTS_DIR set, the file stays
 *  there for read_events.sh, which reads it with TensorBoard itself. */
#include "coordinator/tensorboard.h"
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/buf.h"
#include "coordinator/crc32c.h"
#include "tests/test.h"

static void test_crc32c_vectors(void **state)
{
    (void)state;
    unsigned char bytes[32];
    crc32c_init();
    assert_true(crc32c("", 0) == 0);
    assert_true(crc32c("123456789", 9) == 0xE3069283u);
    memset(bytes, 0, sizeof bytes); /* RFC 3720, B.4 */
    assert_true(crc32c(bytes, sizeof bytes) == 0x8A9136AAu);
    memset(bytes, 0xff, sizeof bytes);
    assert_true(crc32c(bytes, sizeof bytes) == 0x62A8AB43u);
    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)i;
    assert_true(crc32c(bytes, sizeof bytes) == 0x46DD794Eu);
}

static uint32_t s_unmask(uint32_t masked)
{
    const uint32_t rotated = masked - 0xa282ead8u;
    return rotated >> 17 | rotated << 15;
}

static void s_write(const char *dir)
{
    tensorboard_t *tb = NULL;
    char loss[] = "losses/policy_loss", nan[] = "losses/nan";
    assert_ok(tensorboard_open(&tb, dir));
    for (uint64_t update = 1; update <= 100; update++) {
        tt_rec_METRIC_t records[] = {{.name = loss, .value = 1.0 / (double)update}, {.name = nan, .value = NAN}};
        const tt_msg_STATS_t stats =
            TT_MSG(STATS, .era = 1, .update = update, .env_steps = update * 1000, .return_mean = (double)update,
                .length_mean = 2 * (double)update, .metrics = records, .metrics_count = TT_COUNT(records));
        assert_ok(tensorboard_add(tb, &stats, 1700000000.0 + (double)update, 12345));
    }
    tensorboard_close(&tb);
}

/*  Records of the file, each checked; their data one after the other in *out. */
static size_t s_decode(const char *dir, tt_buf_t *out)
{
    char pattern[256];
    glob_t found;
    tt_buf_t file;
    snprintf(pattern, sizeof pattern, "%s/events.out.tfevents.*.tutti", dir);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    tt_buf_init(&file, 1 << 20);
    assert_ok(tt_buf_read_file(&file, found.gl_pathv[0]));
    globfree(&found);
    size_t at = 0, records = 0;
    while (at < file.size) {
        uint64_t length;
        uint32_t crc;
        assert_true(file.size - at >= 12);
        memcpy(&length, file.data + at, sizeof length);
        memcpy(&crc, file.data + at + 8, sizeof crc);
        assert_true(s_unmask(crc) == crc32c(&length, sizeof length));
        assert_true(file.size - at >= length + 16);
        memcpy(&crc, file.data + at + 12 + length, sizeof crc);
        assert_true(s_unmask(crc) == crc32c(file.data + at + 12, length));
        assert_ok(tt_buf_add(out, file.data + at + 12, length));
        at += length + 16;
        records++;
    }
    tt_buf_free(&file);
    return records;
}

static void test_a_file_reads_back(void **state)
{
    (void)state;
    char made[] = "/tmp/tt-events-XXXXXX", command[128];
    const char *given = getenv("TT_EVENTS_DIR"), *dir = given ? given : mkdtemp(made);
    tt_buf_t data;
    tt_buf_init(&data, 1 << 20);
    s_write(dir);
    assert_int_equal(s_decode(dir, &data), 101); /* the version, and an event each */
    assert_non_null(memmem(data.data, data.size, "brain.Event:2", 13));
    assert_non_null(memmem(data.data, data.size, "charts/episodic_return", 22));
    assert_non_null(memmem(data.data, data.size, "losses/policy_loss", 18));
    assert_null(memmem(data.data, data.size, "losses/nan", 10));
    tt_buf_free(&data);
    snprintf(command, sizeof command, "rm -rf '%s'", made);
    if (!given)
        assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crc32c_vectors),
        cmocka_unit_test(test_a_file_reads_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
