/* Answers that are taken as they come, from server.py: whole, cut anywhere, silent, and ended from within. */
#include <stdlib.h>
#include <string.h>
#include "common/base/buf.h"
#include "common/base/mem.h"
#include "tests/k8s/api/client_fixture.h"

typedef struct {
    fixture_t *f;
    got_t end;
    tt_buf_t bytes;
    size_t stop_at;          /* end it by a status after so many bytes; 0 = no      */
    uint64_t cancel_at_once; /* cancelled when the first piece comes; 0 = none */
} stream_t;

static tt_status_t s_on_piece(void *ctx, const char *data, size_t size)
{
    stream_t *stream = ctx;
    assert_int_equal(stream->end.calls, 0);
    assert_ok(tt_buf_add(&stream->bytes, data, size));
    kube_client_cancel(stream->f->client, stream->cancel_at_once);
    if (stream->stop_at && stream->bytes.size >= stream->stop_at)
        return tt_err(TT_DATA, "enough of this");
    return TT_OK;
}

static void s_on_stream_done(void *ctx, const kube_reply_t *reply)
{
    got_reply(&((stream_t *)ctx)->end, reply);
}

static uint64_t s_stream(fixture_t *f, stream_t *stream, const char *path, int idle_ms)
{
    stream->f = f;
    tt_buf_init(&stream->bytes, 1 << 20);
    return kube_client_stream(
        f->client, &(kube_request_t){.method = "GET", .path = path}, idle_ms, s_on_piece, s_on_stream_done, stream);
}

static void s_stream_free(stream_t *stream)
{
    tt_buf_free(&stream->bytes);
    free(stream->end.body);
}

static char *s_lines(int count)
{
    tt_buf_t text;
    tt_buf_init(&text, 1 << 20);
    for (int i = 0; i < count; i++)
        assert_ok(tt_buf_printf(&text, "{\"line\":%d}\n", i));
    return text.data;
}

static void test_stream(void **state)
{
    fixture_t *f = *state;
    fixture_open(f, 1);
    stream_t stream = {0};
    s_stream(f, &stream, "/stream?lines=500", 0);
    assert_int_equal(kube_client_pending(f->client), 0); /* is not counted */
    fixture_wait(f, &stream.end.calls, 1);
    assert_int_equal(stream.end.code, 200);
    assert_int_equal(stream.end.size, 0);
    char *expected = s_lines(500);
    assert_string_equal(stream.bytes.data, expected);
    free(expected);
    s_stream_free(&stream);
    stream = (stream_t){0};
    s_stream(f, &stream, "/fail?code=410&reason=Expired&message=too%20old", 0);
    fixture_wait(f, &stream.end.calls, 1);
    assert_int_equal(stream.end.code, 410);
    assert_string_equal(stream.end.reason, "Expired");
    assert_string_equal(stream.end.text, "too old");
    assert_int_equal(stream.bytes.size, 0); /* an error is not data */
    s_stream_free(&stream);
}

/* The connection ends after any number of bytes: what came before it came, and the end is no good one. */
static void test_stream_cut_anywhere(void **state)
{
    fixture_t *f = *state;
    fixture_open(f, 0);
    char *expected = s_lines(3);
    for (size_t cut = 0; cut <= strlen(expected); cut++) {
        stream_t closed = {0}, reset = {0};
        char *fin = tt_sprintf("/stream?lines=3&how=fin&cut=%zu", cut);
        char *rst = tt_sprintf("/stream?lines=3&how=rst&cut=%zu", cut);
        s_stream(f, &closed, fin, 0);
        s_stream(f, &reset, rst, 0);
        fixture_wait(f, &closed.end.calls, 1);
        fixture_wait(f, &reset.end.calls, 1);
        assert_int_equal(closed.end.code, 0);
        assert_int_equal(reset.end.code, 0);
        assert_true(closed.end.text[0] && reset.end.text[0]);
        assert_int_equal(closed.bytes.size, cut);
        assert_memory_equal(tt_buf_text(&closed.bytes), expected, cut);
        assert_true(reset.bytes.size <= cut); /* what the kernel has not handed on is lost */
        assert_memory_equal(tt_buf_text(&reset.bytes), expected, reset.bytes.size);
        s_stream_free(&closed);
        s_stream_free(&reset);
        free(fin);
        free(rst);
    }
    free(expected);
}

static void test_stream_that_is_silent(void **state)
{
    fixture_t *f = *state;
    tt_clock_t clock = tt_clock_fake(0); /* goes on when something has come */
    assert_ok(tt_reactor_new(&f->loop, &clock));
    assert_ok(kube_client_new(&f->client, f->loop, f->config, NULL));
    stream_t silent = {0}, lively = {0};
    s_stream(f, &silent, "/stream?lines=2&gap=60000", 500);
    while (silent.bytes.size == 0)
        assert_ok(tt_reactor_poll(f->loop, 1000));
    tt_clock_turn(&clock, INT64_C(499000000));
    assert_ok(tt_reactor_poll(f->loop, 0));
    assert_int_equal(silent.end.calls, 0);
    tt_clock_turn(&clock, INT64_C(1000000));
    fixture_wait(f, &silent.end.calls, 1);
    assert_int_equal(silent.end.code, 0);
    assert_non_null(strstr(silent.end.text, "nothing came for 0.5 s"));
    assert_string_equal(silent.bytes.data, "{\"line\":0}\n");
    s_stream(f, &lively, "/stream?lines=20&gap=20", 2000);
    for (size_t had = 0; lively.end.calls == 0;) { /* long in all, but never silent for long */
        if (lively.bytes.size > had)
            tt_clock_turn(&clock, INT64_C(1900000000));
        had = lively.bytes.size;
        assert_ok(tt_reactor_poll(f->loop, 1000));
    }
    assert_int_equal(lively.end.code, 200);
    s_stream_free(&silent);
    s_stream_free(&lively);
    fixture_close(f);
}

static void test_stream_ended_by_its_reader(void **state)
{
    fixture_t *f = *state;
    fixture_open(f, 0);
    stream_t stream = {.stop_at = 20};
    s_stream(f, &stream, "/stream?lines=1000&gap=1", 0);
    fixture_wait(f, &stream.end.calls, 1);
    assert_int_equal(stream.end.code, 0);
    assert_string_equal(stream.end.text, "enough of this");
    s_stream_free(&stream);
}

/* From within a piece of data: itself, and another one that is on the wire. */
static void test_cancel_from_within(void **state)
{
    fixture_t *f = *state;
    fixture_open(f, 0);
    stream_t other = {0}, killer = {0}, self = {0};
    const uint64_t victim = s_stream(f, &other, "/stream?lines=2&gap=60000", 0);
    while (other.bytes.size == 0)
        assert_ok(tt_reactor_poll(f->loop, 1000));
    killer.cancel_at_once = victim;
    s_stream(f, &killer, "/stream?lines=5", 0);
    fixture_wait(f, &killer.end.calls, 1);
    assert_int_equal(killer.end.code, 200);
    self.cancel_at_once = s_stream(f, &self, "/stream?lines=50&gap=1", 0);
    while (self.bytes.size == 0)
        assert_ok(tt_reactor_poll(f->loop, 1000));
    assert_int_equal(fixture_code(f, &fixture_echo, NULL), 200);
    assert_int_equal(self.end.calls + other.end.calls, 0);
    assert_string_equal(self.bytes.data, "{\"line\":0}\n");
    s_stream_free(&other);
    s_stream_free(&killer);
    s_stream_free(&self);
}

/* A call that ends begins the next; and what is under way when the client goes is dropped in silence. */
typedef struct {
    fixture_t *f;
    int left;
} chain_t;

static void s_on_link(void *ctx, const kube_reply_t *reply)
{
    chain_t *chain = ctx;
    assert_int_equal(reply->code, 200);
    if (--chain->left > 0)
        kube_client_send(chain->f->client, &fixture_echo, s_on_link, chain);
}

static void test_chain_and_destroy(void **state)
{
    fixture_t *f = *state;
    fixture_open(f, 2);
    chain_t chain = {f, 20};
    kube_client_send(f->client, &fixture_echo, s_on_link, &chain);
    while (chain.left > 0)
        assert_ok(tt_reactor_poll(f->loop, 1000));
    got_t never = {0};
    stream_t stream = {0};
    s_stream(f, &stream, "/stream?lines=2&gap=60000", 60000);
    for (int i = 0; i < 10; i++)
        kube_client_send(f->client, &(kube_request_t){.method = "GET", .path = "/slow?ms=60000"}, got_reply, &never);
    while (stream.bytes.size == 0)
        assert_ok(tt_reactor_poll(f->loop, 1000));
    fixture_close(f);
    assert_int_equal(never.calls + stream.end.calls, 0);
    s_stream_free(&stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_stream),
        FIXTURE_TEST(test_stream_cut_anywhere),
        FIXTURE_TEST(test_stream_that_is_silent),
        FIXTURE_TEST(test_stream_ended_by_its_reader),
        FIXTURE_TEST(test_cancel_from_within),
        FIXTURE_TEST(test_chain_and_destroy),
    };
    return cmocka_run_group_tests(tests, fixture_start, fixture_stop);
}
