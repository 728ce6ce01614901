/*  Snapshots of a learner on another host: piece by piece, over a socket of their own. */
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "common/base/file.h"
#include "tests/coordinator/crew.h"
#include "tests/snapshot/sample.h"

/*  A socket as a learner's for files, and the answer to what is sent on it; false: none comes. */
static tt_sock_t *s_files(const run_t *run)
{
    tt_sock_t *sock = NULL;
    assert_ok(tt_sock_new(&sock, TT_DEALER, &(tt_sock_opts_t){.name = "files", .identity = "learner/0/x/files"}));
    assert_ok(tt_sock_connect(sock, run->endpoint));
    return sock;
}

static void s_send_piece(tt_sock_t *sock, const void *msg, const char *bytes, size_t size)
{
    zmq_msg_t frame;
    tt_frame_new(&frame, size);
    memcpy(zmq_msg_data(&frame), bytes, size);
    assert_ok(tt_sock_send(sock, NULL, msg, &frame, 1));
    tt_frame_close(&frame);
}

static bool s_answered(tt_sock_t *sock, tt_packet_t *out)
{
    const int64_t until = tt_now_ms(tt_clock_real()) + PATIENCE_MS;
    while (tt_now_ms(tt_clock_real()) < until) {
        if (tt_sock_recv(sock, out) == TT_OK)
            return true;
        poll(NULL, 0, 1);
    }
    return false;
}

/*  What STORED says of a piece: bytes that are there; UINT64_MAX: refused, with these words. */
static uint64_t s_store(tt_sock_t *sock, const tt_msg_STORE_t *msg, const char *bytes, size_t size, const char *words)
{
    tt_packet_t packet = {0};
    s_send_piece(sock, msg, bytes, size);
    assert_true(s_answered(sock, &packet));
    assert_int_equal(packet.msg.type, TT_MSG_STORED);
    const char *refused = packet.msg.STORED.refused;
    const uint64_t have = refused ? UINT64_MAX : packet.msg.STORED.have;
    if (words && (!refused || !strstr(refused, words)))
        fail_msg("'%s' does not say '%s'", refused ? refused : "taken", words);
    tt_packet_clear(&packet);
    return have;
}

static void s_expect_file(const run_t *run, const char *name, const tt_buf_t *bytes)
{
    char path[512];
    tt_buf_t there;
    tt_buf_init(&there, 1 << 20);
    snprintf(path, sizeof path, "%s/checkpoints/%s", run->dir, name);
    assert_ok(tt_buf_read_file(&there, path));
    assert_int_equal(there.size, bytes->size);
    assert_memory_equal(there.data, bytes->data, bytes->size);
    tt_buf_free(&there);
}

static void test_snapshots_come_in_pieces(void **state)
{
    run_t *run = *state;
    crew_t crew;
    char path[512];
    tt_packet_t packet = {0};
    crew_begin(run, &crew);
    tt_sock_t *sock = s_files(run);
    char name[] = "00000007.safetensors", damaged[] = "00000008.safetensors", outside[] = "../../etc/passwd";
    tt_buf_t bytes;
    sample_encode(&bytes, 7);
    const size_t half = bytes.size / 2, rest = bytes.size - half;
    tt_msg_STORE_t msg =
        TT_MSG(STORE, .instance = tt_link_instance(crew.learner), .name = name, .size = bytes.size, .best = true);
    assert_int_equal(s_store(sock, &msg, bytes.data, half, NULL), half);
    assert_int_equal(s_store(sock, &msg, bytes.data, half, NULL), half); /* begun anew */
    msg.offset = half + 2;
    assert_int_equal(s_store(sock, &msg, bytes.data + half + 2, rest - 2, NULL), half); /* not what comes next */
    msg.offset = half;
    assert_int_equal(s_store(sock, &msg, bytes.data + half, rest + 1, NULL), half); /* more than there is */
    assert_int_equal(s_store(sock, &msg, bytes.data + half, rest, NULL), bytes.size);
    s_expect_file(run, "best.safetensors", &bytes);

    msg.name = damaged; /* on its way: it gets no name */
    msg.offset = 0;
    bytes.data[half] ^= 1;
    assert_true(s_store(sock, &msg, bytes.data, bytes.size, "00000008.safetensors: damaged") == UINT64_MAX);
    bytes.data[half] ^= 1;
    s_expect_file(run, "best.safetensors", &bytes);
    snprintf(path, sizeof path, "%s/checkpoints/%s", run->dir, damaged);
    assert_int_equal(access(path, F_OK), -1);
    memset(bytes.data, ' ', bytes.size);
    assert_true(s_store(sock, &msg, bytes.data, bytes.size, "not a snapshot") == UINT64_MAX);
    tt_buf_free(&bytes);
    msg.offset = 0;
    msg.name = outside;
    assert_true(s_store(sock, &msg, "01234", 5, "no name of a snapshot") == UINT64_MAX);
    msg.name = name;
    msg.size = 0;
    assert_true(s_store(sock, &msg, "01234", 5, "STORE of 0 bytes") == UINT64_MAX);
    const tt_msg_LOAD_t load = TT_MSG(LOAD, .instance = tt_link_instance(crew.learner), .path = (char *)"/etc/passwd");
    assert_ok(tt_sock_send(sock, NULL, &load, NULL, 0));
    assert_true(s_answered(sock, &packet));
    assert_int_equal(packet.msg.type, TT_MSG_LOADED);
    assert_non_null(strstr(packet.msg.LOADED.refused, "not what the roster names"));
    tt_packet_clear(&packet);
    msg.size = 10;
    msg.instance++;
    s_send_piece(sock, &msg, "01234", 5);
    msg.instance--;
    assert_int_equal(s_store(sock, &msg, "012", 3, NULL), 3); /* the first answer: only rank 0's count */
    tt_sock_destroy(&sock);
    crew_leave(&crew);
}

/*  A bare sample, in one piece; refused with these words (NULL = it is kept). */
static void s_store_refused(
    const run_t *run, tt_sock_t *sock, tt_msg_STORE_t msg, uint64_t update, double return_mean, const char *refused)
{
    char folder[] = "/tmp/tt-best-XXXXXX", path[512];
    tt_buf_t bytes;
    tt_buf_init(&bytes, 1 << 20);
    assert_non_null(mkdtemp(folder));
    sample_write_best(folder, update, return_mean);
    snprintf(path, sizeof path, "%s/best.safetensors", folder);
    assert_ok(tt_buf_read_file(&bytes, path));
    msg.size = bytes.size;
    assert_int_equal(s_store(sock, &msg, bytes.data, bytes.size, refused), refused ? UINT64_MAX : bytes.size);
    tt_buf_free(&bytes);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
    snprintf(path, sizeof path, "%s/checkpoints/.%s.part", run->dir, msg.name);
    assert_int_equal(access(path, F_OK), -1);
}

static void s_store_bare(const run_t *run, tt_sock_t *sock, tt_msg_STORE_t msg, uint64_t update, double return_mean)
{
    s_store_refused(run, sock, msg, update, return_mean, NULL);
}

static void s_store_best(const run_t *run, tt_sock_t *sock, uint64_t instance, uint64_t update, double return_mean)
{
    const tt_msg_STORE_t msg = TT_MSG(STORE, .instance = instance, .name = (char *)"best.safetensors");
    s_store_bare(run, sock, msg, update, return_mean);
}

static void s_expect_bare(const run_t *run, const char *name, uint64_t update, double return_mean)
{
    char path[512];
    tt_snapshot_info_t info;
    snprintf(path, sizeof path, "%s/checkpoints/%s", run->dir, name);
    assert_ok(tt_snapshot_inspect(path, &info));
    assert_true(info.bare && info.update == update && info.return_mean == return_mean);
    tt_snapshot_info_free(&info);
}

static void s_expect_best(const run_t *run, uint64_t update, double return_mean)
{
    s_expect_bare(run, "best.safetensors", update, return_mean);
}

/*  Who leads now may not know what was best before it did. */
static void test_the_best_stays_until_there_is_a_better_one(void **state)
{
    run_t *run = *state;
    crew_t crew;
    crew_begin(run, &crew);
    tt_sock_t *sock = s_files(run);
    const uint64_t instance = tt_link_instance(crew.learner);
    s_store_best(run, sock, instance, 10, 5);
    s_expect_best(run, 10, 5);
    s_store_best(run, sock, instance, 20, 4);
    s_expect_best(run, 10, 5);
    s_store_best(run, sock, instance, 30, 5);
    s_expect_best(run, 10, 5);
    s_store_best(run, sock, instance, 40, 6);
    s_expect_best(run, 40, 6);
    tt_msg_STORE_t both = TT_MSG(STORE, .instance = instance, .name = (char *)"00000050.safetensors", .best = true);
    s_store_bare(run, sock, both, 50, 5.5); /* a checkpoint that its sender takes for the best */
    s_expect_bare(run, "00000050.safetensors", 50, 5.5);
    s_expect_best(run, 40, 6);
    both.name = (char *)"00000060.safetensors";
    s_store_bare(run, sock, both, 60, 6.5);
    s_expect_best(run, 60, 6.5);
    tt_sock_destroy(&sock);
    crew_leave(&crew);
}

/*  Its sender must not take it for kept: the next may be worse, and still better than what is there. */
static void test_a_best_that_cannot_be_read_stays_and_is_said(void **state)
{
    run_t *run = *state;
    crew_t crew;
    char path[512];
    crew_begin(run, &crew);
    tt_sock_t *sock = s_files(run);
    tt_msg_STORE_t msg =
        TT_MSG(STORE, .instance = tt_link_instance(crew.learner), .name = (char *)"00000005.safetensors");
    s_store_bare(run, sock, msg, 5, 5);
    snprintf(path, sizeof path, "%s/checkpoints/best.safetensors", run->dir);
    assert_int_equal(symlink("best.safetensors", path), 0);
    msg.name = (char *)"best.safetensors";
    s_store_refused(run, sock, msg, 10, 6, "best.safetensors stays: cannot read");
    msg.name = (char *)"00000020.safetensors";
    msg.best = true;
    s_store_bare(run, sock, msg, 20, 7);
    s_expect_bare(run, "00000020.safetensors", 20, 7);
    assert_int_equal(unlink(path), 0);
    s_store_best(run, sock, msg.instance, 10, 6);
    s_expect_best(run, 10, 6);
    tt_sock_destroy(&sock);
    crew_leave(&crew);
}

/*  What can be gone on from stays, by its number, where weights alone take its place. */
static void test_the_final_one_of_an_earlier_life(void **state)
{
    run_t *run = *state;
    crew_t crew;
    char path[512];
    tt_buf_t bytes;
    crew_begin(run, &crew);
    tt_sock_t *sock = s_files(run);
    tt_msg_STORE_t msg = TT_MSG(STORE, .instance = tt_link_instance(crew.learner), .name = (char *)"final.safetensors");
    s_store_bare(run, sock, msg, 6, 1);
    for (uint64_t update = 7; update <= 8; update++) { /* one that can be gone on from, too, needs no other */
        sample_encode(&bytes, update);
        msg.size = bytes.size;
        assert_int_equal(s_store(sock, &msg, bytes.data, bytes.size, NULL), bytes.size);
        s_expect_file(run, "final.safetensors", &bytes);
        if (update < 8)
            tt_buf_free(&bytes);
    }
    s_store_bare(run, sock, msg, 9, 1);
    s_expect_bare(run, "final.safetensors", 9, 1);
    s_expect_file(run, "00000008.safetensors", &bytes);
    tt_buf_free(&bytes);
    for (uint64_t update = 6; update <= 7; update++) {
        snprintf(path, sizeof path, "%s/checkpoints/%08d.safetensors", run->dir, (int)update);
        assert_int_equal(access(path, F_OK), -1);
    }
    tt_sock_destroy(&sock);
    crew_leave(&crew);
}

/*  With half of a file: the next begins without it. */
static void test_the_coordinator_dies_with_a_part(void **state)
{
    run_t *run = *state;
    crew_t crew;
    char name[] = "00000007.safetensors", path[512];
    tt_packet_t reply = {0};
    tt_buf_t bytes;
    crew_begin(run, &crew);
    tt_sock_t *sock = s_files(run);
    sample_encode(&bytes, 7);
    const tt_msg_STORE_t msg =
        TT_MSG(STORE, .instance = tt_link_instance(crew.learner), .name = name, .size = bytes.size);
    assert_int_equal(s_store(sock, &msg, bytes.data, bytes.size / 2, NULL), bytes.size / 2);
    snprintf(path, sizeof path, "%s/checkpoints/.%s.part", run->dir, name);
    assert_int_equal(access(path, F_OK), 0);
    run_kill(run);
    assert_int_equal(access(path, F_OK), 0);
    run_start(run);
    tt_link_t *client = run_link(run, TT_PEER_CLIENT, -1);
    assert_ok(link_ask(client, "status", "", &reply));
    tt_packet_clear(&reply);
    assert_int_equal(access(path, F_OK), -1);
    tt_link_destroy(&client);
    tt_buf_free(&bytes);
    tt_sock_destroy(&sock);
    crew_leave(&crew);
}

/* ---- to the disk ------------------------------------------------------------------------------------------------------ */

static atomic_int s_syncs;
int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);

int __wrap_fdatasync(int fd)
{
    s_syncs++;
    return __real_fdatasync(fd);
}

/*  A large one is synced while it comes, so that the coordinator never waits for more than a piece. */
static void test_a_large_one_is_synced_piece_by_piece(void **state)
{
    enum { MESSAGE = 1 << 20, MESSAGES = 2 * TT_FILE_PIECE / MESSAGE + 1 };
    static const char bytes[MESSAGE];
    run_t *run = *state;
    crew_t crew;
    char name[] = "00000007.safetensors";
    crew_begin(run, &crew);
    tt_sock_t *sock = s_files(run);
    tt_msg_STORE_t msg = TT_MSG(
        STORE, .instance = tt_link_instance(crew.learner), .name = name, .size = (MESSAGES + 1) * (size_t)MESSAGE);
    s_syncs = 0;
    for (int i = 0; i < MESSAGES; i++) {
        msg.offset = (uint64_t)i * MESSAGE;
        assert_int_equal(s_store(sock, &msg, bytes, MESSAGE, NULL), msg.offset + MESSAGE);
        assert_int_equal(s_syncs, (int)((msg.offset + MESSAGE) / TT_FILE_PIECE));
    }
    assert_int_equal(s_syncs, 2);
    tt_sock_destroy(&sock);
    crew_leave(&crew);
}

static int s_setup_here(void **state)
{
    return run_setup_with(state, "", true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_snapshots_come_in_pieces, run_setup, run_teardown),
        cmocka_unit_test_setup_teardown(test_the_best_stays_until_there_is_a_better_one, run_setup, run_teardown),
        cmocka_unit_test_setup_teardown(test_a_best_that_cannot_be_read_stays_and_is_said, run_setup, run_teardown),
        cmocka_unit_test_setup_teardown(test_the_final_one_of_an_earlier_life, run_setup, run_teardown),
        cmocka_unit_test_setup_teardown(test_the_coordinator_dies_with_a_part, run_setup, run_teardown),
        cmocka_unit_test_setup_teardown(test_a_large_one_is_synced_piece_by_piece, s_setup_here, run_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
