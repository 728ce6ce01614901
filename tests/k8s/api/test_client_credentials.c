/* Credentials that end and are made anew: token files, exec plug-ins; against server.py. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "tests/k8s/api/client_fixture.h"

static const kube_request_t s_secret = {.method = "GET", .path = "/secret"};

static void test_token_rotation(void **state)
{
    fixture_t *f = *state;
    f->config->token_file = api_server_path(&f->server, "token");
    api_server_write(&f->server, "token", "first\n");
    api_server_write(&f->server, "accepted", "first");
    fixture_open(f, 0);
    got_t got = fixture_ask(f, &s_secret);
    assert_int_equal(got.code, 200);
    const int before = got_asked(got.body);
    free(got.body);
    api_server_write(&f->server, "accepted", "second");
    api_server_write(&f->server, "token", "second\n");
    got = fixture_ask(
        f, &s_secret); /* goes with the first, as the file is looked at once a second; refused; then the second */
    assert_int_equal(got.code, 200);
    assert_in_range(got_asked(got.body), before + 1, before + 2);
    const int then = got_asked(got.body);
    free(got.body);
    api_server_write(&f->server, "accepted", "third"); /* and the file stays as it is */
    assert_int_equal(fixture_code(f, &s_secret, "Unauthorized"), 401);
    api_server_write(&f->server, "accepted", "second");
    got = fixture_ask(f, &s_secret);
    assert_int_equal(got_asked(got.body), then + 2); /* it was not tried again in vain */
    free(got.body);
    char *path = api_server_path(&f->server, "token");
    unlink(path);
    free(path);
    assert_int_equal(fixture_code(f, &s_secret, NULL), 200); /* what we have stays good */
    fixture_close(f);
    fixture_open(f, 0);
    assert_int_equal(fixture_code(f, &s_secret, "token"), 0); /* and who has none gets nowhere */
}

/* A plug-in that says the token in the file `give`, and leaves a line in `runs` each time. */
static void s_plugin(fixture_t *f, const char *script)
{
    char *text = tt_sprintf("#!/bin/sh\ncd '%s'\necho x >> runs\n%s\n", f->server.folder, script);
    char *path = api_server_path(&f->server, "plugin"), *runs = api_server_path(&f->server, "runs");
    unlink(runs);
    api_server_write(&f->server, "plugin", text);
    assert_int_equal(chmod(path, 0700), 0);
    kube_exec_t *exec = tt_new0(sizeof *exec);
    exec->api_version = tt_strdup("client.authentication.k8s.io/v1");
    exec->command = path;
    exec->install_hint = tt_strdup("It comes with the test.");
    exec->env = tt_array0(1, sizeof *exec->env);
    exec->env[exec->env_count++] = (kube_env_t){tt_strdup("WHO"), tt_strdup("me")};
    f->config->exec = exec;
    free(text);
    free(runs);
}

static size_t s_runs(fixture_t *f)
{
    char *runs = api_server_read(&f->server, "runs");
    const size_t count = runs ? strlen(runs) / 2 : 0;
    free(runs);
    return count;
}

#define SAY_TOKEN(more)                                                                           \
    "echo '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\"," more \
    "\"status\":{\"token\":\"'$(cat give)'\"'$EXPIRES'}}'"

static void test_plugin(void **state)
{
    fixture_t *f = *state;
    api_server_write(&f->server, "give", "one");
    api_server_write(&f->server, "accepted", "one");
    s_plugin(f, "test \"$WHO\" = me || exit 3\n"
                "case $KUBERNETES_EXEC_INFO in *'\"interactive\":false'*) ;; *) exit 4 ;; esac\n" SAY_TOKEN(""));
    tt_clock_t clock = tt_clock_fake(0);
    assert_ok(tt_reactor_new(&f->loop, &clock));
    assert_ok(kube_client_new(&f->client, f->loop, f->config, NULL));
    got_t a = {0}, b = {0};
    kube_client_send(f->client, &s_secret, got_reply, &a);
    kube_client_send(f->client, &s_secret, got_reply, &b);
    fixture_wait(f, &a.calls, 1);
    fixture_wait(f, &b.calls, 1);
    assert_int_equal(a.code, 200);
    assert_int_equal(b.code, 200);
    assert_int_equal(s_runs(f), 1); /* one run for both */
    free(a.body);
    free(b.body);
    api_server_write(&f->server, "give", "two");
    api_server_write(&f->server, "accepted", "two");
    assert_int_equal(fixture_code(f, &s_secret, NULL), 200);
    assert_int_equal(s_runs(f), 2); /* refused: run again, and the request repeated */
    api_server_write(&f->server, "accepted", "three");
    assert_int_equal(fixture_code(f, &s_secret, "Unauthorized"), 401);
    assert_int_equal(s_runs(f), 2); /* its last answer to a refusal was just refused */
    tt_clock_turn(&clock, INT64_C(5000000000));
    assert_int_equal(fixture_code(f, &s_secret, "Unauthorized"), 401);
    assert_int_equal(s_runs(f), 3);
    fixture_close(f);
}

static void test_plugin_with_certificate(void **state)
{
    fixture_t *f = *state;
    s_plugin(f,
        "python3 -c \"import json; r = lambda n: open(n).read()\n"
        "print(json.dumps({'apiVersion': 'client.authentication.k8s.io/v1', 'kind': 'ExecCredential', 'status':\n"
        "{'clientCertificateData': r('client.crt'), 'clientKeyData': r('client.key'),\n"
        "'expirationTimestamp': '2099-01-01T00:00:00Z'}}))\"");
    fixture_open(f, 0);
    got_t got = fixture_ask(f, &fixture_echo);
    assert_int_equal(got.code, 200);
    assert_non_null(strstr(got.body, "test-client"));
    free(got.body);
}

static void test_plugin_that_expires(void **state)
{
    fixture_t *f = *state;
    api_server_write(&f->server, "give", "old");
    api_server_write(&f->server, "accepted", "old");
    s_plugin(f, "EXPIRES=',\"expirationTimestamp\":\"2020-01-01T00:00:00Z\"'\n" SAY_TOKEN(""));
    tt_clock_t clock = tt_clock_fake(0);
    assert_ok(tt_reactor_new(&f->loop, &clock));
    assert_ok(kube_client_new(&f->client, f->loop, f->config, NULL));
    assert_int_equal(fixture_code(f, &s_secret, NULL), 200); /* used once, though it is old at birth */
    assert_int_equal(fixture_code(f, &s_secret, NULL), 200); /* and for a second */
    assert_int_equal(s_runs(f), 1);
    tt_clock_turn(&clock, INT64_C(1000000000));
    assert_int_equal(fixture_code(f, &s_secret, NULL), 200);
    assert_int_equal(s_runs(f), 2);
    fixture_close(f);
}

static void s_plugin_fails(fixture_t *f, const char *script, const char *words)
{
    s_plugin(f, script);
    fixture_open(f, 0);
    assert_int_equal(fixture_code(f, &fixture_echo, words), 0);
    fixture_close(f);
    kube_config_destroy(&f->config);
    f->config = api_server_config(&f->server);
}

static void test_plugins_that_fail(void **state)
{
    fixture_t *f = *state;
    s_plugin_fails(f, "echo 'log in first' >&2; exit 2", "exit code 2: log in first");
    s_plugin_fails(f, "kill -9 $$", "killed by signal 9");
    s_plugin_fails(f, "echo hello", "not JSON");
    s_plugin_fails(f, "echo '{\"kind\":\"Pod\"}'", "not an ExecCredential");
    s_plugin_fails(f, "echo '{\"kind\":\"ExecCredential\",\"apiVersion\":\"v9\"}'", "apiVersion v9");
    s_plugin_fails(f, "EXPIRES=,; : > give;" SAY_TOKEN(""), "not JSON");
    s_plugin_fails(f, ": > give;" SAY_TOKEN(""), "neither token");
    s_plugin_fails(f, "echo 'a b' > give;" SAY_TOKEN(""), "white space");
    s_plugin_fails(
        f, "EXPIRES=',\"expirationTimestamp\":\"soon\"'; echo a > give;" SAY_TOKEN(""), "'soon' is not a time");
    s_plugin_fails(f, "EXPIRES=',\"clientKeyData\":\"k\"'; echo a > give;" SAY_TOKEN(""), "need each other");
    s_plugin_fails(f, "head -c 2000000 /dev/zero", "more than 1048576 bytes");
    s_plugin(f, "");
    char *path = api_server_path(&f->server, "plugin");
    unlink(path);
    free(path);
    fixture_open(f, 0);
    assert_int_equal(fixture_code(f, &fixture_echo, "No such file or directory. It comes with the test."), 0);
}

/* It runs for ever: the loop runs on, the minute passes, and it is gone with all that it began. */
static void test_plugin_that_hangs(void **state)
{
    fixture_t *f = *state;
    s_plugin(f, "sleep 1000 & echo $! > child\nmv child child.pid\nwait");
    tt_clock_t clock = tt_clock_fake(0);
    assert_ok(tt_reactor_new(&f->loop, &clock));
    assert_ok(kube_client_new(&f->client, f->loop, f->config, NULL));
    got_t got = {0}, impatient = {0};
    kube_request_t request = fixture_echo;
    request.timeout_ms = 100000;
    kube_client_send(f->client, &request, got_reply, &got);
    request.timeout_ms = 1000;
    kube_client_send(f->client, &request, got_reply, &impatient);
    char *pid_file = api_server_path(&f->server, "child.pid");
    while (access(pid_file, F_OK) != 0)
        assert_ok(tt_reactor_poll(f->loop, 5));
    char *child = api_server_read(&f->server, "child.pid");
    const int pidfd = (int)syscall(SYS_pidfd_open, atoi(child), 0); /* its number may be another's when it is gone */
    assert_true(pidfd >= 0);
    tt_clock_turn(&clock, INT64_C(1000000000));
    fixture_wait(f, &impatient.calls, 1);
    assert_non_null(strstr(impatient.text, "no credentials yet"));
    tt_clock_turn(&clock, INT64_C(58990000000));
    assert_ok(tt_reactor_poll(f->loop, 0));
    assert_int_equal(got.calls, 0);
    tt_clock_turn(&clock, INT64_C(10000000));
    fixture_wait(f, &got.calls, 1);
    assert_int_equal(got.code, 0);
    assert_non_null(strstr(got.text, "no answer within 60 s"));
    struct pollfd ended = {.fd = pidfd, .events = POLLIN};
    assert_int_equal(poll(&ended, 1, 60000), 1); /* killed; somebody else reaps it */
    close(pidfd);
    free(child);
    free(pid_file);
    free(got.body);
    free(impatient.body);
    fixture_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_token_rotation),
        FIXTURE_TEST(test_plugin),
        FIXTURE_TEST(test_plugin_with_certificate),
        FIXTURE_TEST(test_plugin_that_expires),
        FIXTURE_TEST(test_plugins_that_fail),
        FIXTURE_TEST(test_plugin_that_hangs),
    };
    return cmocka_run_group_tests(tests, fixture_start, fixture_stop);
}
