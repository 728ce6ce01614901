/*  client_fixture - a client, and the HTTPS server of server.py to ask; for the tests of the client. */
#pragma once
#include "k8s/api/client.h"
#include "tests/k8s/api/api_server.h"
#include "tests/test.h"

typedef struct {
    api_server_t server;
    kube_config_t *config;
    tt_reactor_t *loop;
    kube_client_t *client;
} fixture_t;

/*  What came of a request: how often it was answered (once is right), and how. The body is the caller's, to free. */
typedef struct {
    int calls, code;
    bool held_back;
    char text[512], reason[64];
    char *body;
    size_t size;
} got_t;

/*  A client of f->config, in a loop of its own; closed after the test, whoever opened it. */
void fixture_open(fixture_t *f, int max_in_flight);
void fixture_close(fixture_t *f);
/*  Run the loop until *calls is that. */
void fixture_wait(fixture_t *f, const int *calls, int until);
/*  A kube_done_fn for a got_t. */
void got_reply(void *ctx, const kube_reply_t *reply);
got_t fixture_ask(fixture_t *f, const kube_request_t *request);
/*  Its code; `words` (may be NULL) must be in the text for a person. */
int fixture_code(fixture_t *f, const kube_request_t *request, const char *words);
/*  The member "asked" of an answer: how often the server was asked for this. */
int got_asked(const char *body);
/*  GET /echo. */
extern const kube_request_t fixture_echo;

/*  One server for a group of tests, f->config as new for each (api_server_config):
 *      const struct CMUnitTest tests[] = {FIXTURE_TEST(test_x), FIXTURE_TEST(test_y)};
 *      return cmocka_run_group_tests(tests, fixture_start, fixture_stop); */
#define FIXTURE_TEST(fn) cmocka_unit_test_setup_teardown(fn, fixture_begin, fixture_end)
int fixture_start(void **state);
int fixture_stop(void **state);
int fixture_begin(void **state);
int fixture_end(void **state);
