/*  One question to a running run's coordinator, which is a socket of the test here. */
#include "cli/client.h"
#include <pthread.h>
#include <stdio.h>
#include "tests/net/net_help.h"

typedef struct {
    char *dir;
    tt_rundir_t run;
    int lock;
    pthread_t thread;
    tt_msg_REPLY_t reply;
    char verb[32], body[64];
    bool has_left, ends; /* ends: the run does, before it answers */
} coordinator_t;

static int s_setup(void **state)
{
    coordinator_t *self = tt_new0(sizeof *self);
    char path[128];
    self->dir = help_mkdir();
    setenv("XDG_STATE_HOME", self->dir, 1);
    snprintf(path, sizeof path, "%s/run", self->dir);
    assert_ok(tt_rundir_create(&self->run, path, "job"));
    *state = self;
    return 0;
}

static int s_teardown(void **state)
{
    coordinator_t *self = *state;
    help_rmdir(self->dir);
    free(self);
    return 0;
}

static void s_answer(coordinator_t *self, tt_sock_t *sock, const tt_packet_t *packet)
{
    if (packet->msg.type == TT_MSG_HELLO) {
        help_send(sock, packet->peer, &TT_MSG(WELCOME, .wire = TT_WIRE_VERSION, .lease_ms = 5000));
    } else if (packet->msg.type == TT_MSG_REQUEST) {
        snprintf(self->verb, sizeof self->verb, "%s", packet->msg.REQUEST.verb);
        snprintf(self->body, sizeof self->body, "%s", packet->msg.REQUEST.body);
        if (self->ends)
            close(self->lock);
        else
            help_send(sock, packet->peer, &self->reply);
    }
}

/*  A socket belongs to one thread: it is made, used and closed here. Ends when the client has left. */
static void *s_serve(void *ctx)
{
    coordinator_t *self = ctx;
    char endpoint[4096];
    const tt_sock_opts_t opts = {.name = "control"};
    tt_sock_t *sock = NULL;
    tt_packet_t packet = {0};
    tt_rundir_control(&self->run, endpoint, sizeof endpoint);
    TT_CHECK(tt_sock_new(&sock, TT_ROUTER, &opts) == TT_OK);
    TT_CHECK(tt_sock_bind(sock, endpoint, NULL, 0) == TT_OK);
    while (!self->has_left && help_recv(sock, &packet) == TT_OK) {
        s_answer(self, sock, &packet);
        self->has_left = packet.msg.type == TT_MSG_DRAINED;
        tt_packet_clear(&packet);
    }
    tt_sock_destroy(&sock);
    return NULL;
}

static void s_start(coordinator_t *self, tt_status_t status, const char *body)
{
    self->reply = TT_MSG(REPLY, .id = 1, .status = status, .body = (char *)(uintptr_t)body);
    assert_ok(tt_rundir_lock(&self->run, &self->lock));
    assert_ok(tt_rundir_open_sockets(&self->run));
    assert_int_equal(pthread_create(&self->thread, NULL, s_serve, self), 0);
}

static void s_stop(coordinator_t *self)
{
    pthread_join(self->thread, NULL);
    tt_rundir_close_sockets(&self->run);
    if (!self->ends)
        close(self->lock);
}

/*  `tutti status` in a shell's loop must not fill the coordinator's list of clients until their leases are over. */
static void test_asks_and_leaves(void **state)
{
    coordinator_t *self = *state;
    json_t *answer = NULL;
    s_start(self, TT_OK, "{\"phase\": \"running\"}");
    assert_ok(tt_client_ask(&self->run, "scale", "{\"collector\": 2}", PATIENCE_MS, &answer));
    assert_string_equal(json_string_value(json_object_get(answer, "phase")), "running");
    json_decref(answer);
    s_stop(self);
    assert_string_equal(self->verb, "scale");
    assert_string_equal(self->body, "{\"collector\": 2}");
    assert_true(self->has_left);
}

static void test_a_refusal_is_in_its_words(void **state)
{
    coordinator_t *self = *state;
    s_start(self, TT_DENIED, "no such replica");
    assert_int_equal(tt_client_ask(&self->run, "scale", "", PATIENCE_MS, NULL), TT_DENIED);
    assert_string_equal(tt_err_text(), "no such replica");
    s_stop(self);
    assert_true(self->has_left);
}

/*  Exit code 130 would say that somebody pressed Ctrl-C. */
static void test_a_run_that_is_ending_is_not_available(void **state)
{
    coordinator_t *self = *state;
    s_start(self, TT_STOPPED, "the run is ending (enough)");
    assert_int_equal(tt_client_ask(&self->run, "scale", "", PATIENCE_MS, NULL), TT_UNAVAILABLE);
    assert_string_equal(tt_err_text(), "the run is ending (enough)");
    s_stop(self);
}

static void test_an_answer_that_is_no_json(void **state)
{
    coordinator_t *self = *state;
    json_t *answer = NULL;
    s_start(self, TT_OK, "{oh");
    assert_int_equal(tt_client_ask(&self->run, "status", "", PATIENCE_MS, &answer), TT_PROTOCOL);
    assert_null(answer);
    s_stop(self);
    assert_true(self->has_left);
}

static void test_a_run_that_does_not_run(void **state)
{
    coordinator_t *self = *state;
    assert_int_equal(tt_client_ask(&self->run, "status", "", PATIENCE_MS, NULL), TT_UNAVAILABLE);
    assert_non_null(strstr(tt_err_text(), "tutti resume run"));
}

/*  Two `tutti stop`, and the first one's has ended it: there is no answer to wait for, and no log to look at. */
static void test_a_run_that_ends_before_it_answers(void **state)
{
    coordinator_t *self = *state;
    self->ends = true;
    s_start(self, TT_OK, "{}");
    assert_int_equal(tt_client_ask(&self->run, "stop", "", PATIENCE_MS, NULL), TT_UNAVAILABLE);
    assert_string_equal(tt_err_text(), "run run has ended meanwhile; 'tutti resume run' continues it");
    s_stop(self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_asks_and_leaves, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_refusal_is_in_its_words, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_run_that_is_ending_is_not_available, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_run_that_ends_before_it_answers, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_an_answer_that_is_no_json, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_run_that_does_not_run, s_setup, s_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
