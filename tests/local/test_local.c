/*  Whole runs, in this process: a manifest, pods as processes, and what is left of them in job.json. */
#include "local/local.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/client.h"
#include "common/base/buf.h"
#include "common/base/mem.h"
#include "tests/folder.h"
#include "tests/test.h"

static char s_root[FOLDER_MAX], s_said[16384];

static void s_say(void *ctx, const char *text)
{
    (void)ctx;
    snprintf(s_said + strlen(s_said), sizeof s_said - strlen(s_said), "%s\n", text);
}

static int s_open(void **state)
{
    (void)state;
    return folder_make(s_root, "local") || setenv("XDG_STATE_HOME", s_root, 1);
}

static int s_close(void **state)
{
    (void)state;
    return folder_remove(s_root);
}

/*  Asked for once the job runs, in a thread of its own. */
typedef struct {
    tt_rundir_t run;
    pthread_t thread;
    tt_status_t bad, good;
    char words[128];
} orders_t;

static orders_t *s_orders; /* NULL: nobody orders anything */

static void *s_order(void *ctx)
{
    orders_t *self = ctx;
    self->bad = tt_client_ask(&self->run, "stop", "{\"now\": \"yes\"}", 10000, NULL);
    snprintf(self->words, sizeof self->words, "%s", tt_err_text());
    self->good = tt_client_ask(&self->run, "stop", "{\"reason\": \"enough\", \"now\": true}", 10000, NULL);
    return NULL;
}

static void s_started(void *ctx)
{
    (void)ctx;
    if (s_orders)
        assert_int_equal(pthread_create(&s_orders->thread, NULL, s_order, s_orders), 0);
}

/*  The job with its status; the caller's. front: whose job it is taken for. */
static json_t *s_run_as(const front_t *front, const char *name, const char *spec, local_outcome_t *out)
{
    char *path = tt_sprintf("%s/%s.yaml", s_root, name), *dir = tt_sprintf("%s/%s", s_root, name);
    FILE *file = fopen(path, "w");
    fprintf(
        file, "apiVersion: diengine.opendilab.org/v1alpha1\nkind: DIJob\nmetadata: {name: %s}\nspec:\n%s", name, spec);
    fclose(file);
    local_manifest_t manifest = {0};
    tt_rundir_t run;
    int lock = -1;
    s_said[0] = '\0';
    assert_ok(local_read(&manifest, path, s_say, NULL));
    assert_ptr_equal(manifest.front, &dijob_front);
    manifest.front = front;
    assert_ok(tt_rundir_create(&run, dir, name));
    assert_ok(tt_rundir_lock(&run, &lock));
    assert_ok(tt_rundir_open_sockets(&run));
    if (s_orders)
        s_orders->run = run;
    const local_opts_t opts = {
        .run = &run, .manifest = &manifest, .say = s_say, .started = s_started, .no_limits = true};
    assert_ok(local_run(out, &opts));
    tt_rundir_close_sockets(&run);
    close(lock);
    json_t *job = json_incref(manifest.job);
    local_manifest_clear(&manifest);
    free(path);
    free(dir);
    return job;
}

static json_t *s_run(const char *name, const char *spec, local_outcome_t *out)
{
    return s_run_as(&dijob_front, name, spec, out);
}

static const char *s_phase(const json_t *job)
{
    return json_string_value(json_object_get(json_object_get(job, "status"), "phase"));
}

static int s_count(const json_t *job, const char *role, const char *what)
{
    const json_t *counts = json_object_get(json_object_get(job, "status"), "replicaStatus");
    return (int)json_integer_value(json_object_get(json_object_get(counts, role), what));
}

#define ROLE(name, script) \
    "  " name ":\n    template: {spec: {containers: [{name: di-container, command: [/bin/sh, -c, '" script "']}]}}\n"

static void test_a_job_that_succeeds(void **state)
{
    (void)state;
    local_outcome_t out;
    char *spec = tt_sprintf(
        "  collector:\n    replicas: 2\n    template: {spec: {containers: [{name: di-container, command: [/bin/sh, "
        "-c, 'echo >%s/up-$KUBERNETES_POD_NAME; exec sleep 100']}]}}\n" ROLE(
            "coordinator", "until [ $(ls %s/up-* 2>/dev/null | wc -l) = 2 ]; do sleep 0.02; done"),
        s_root, s_root);
    json_t *job = s_run("well", spec, &out);
    assert_int_equal(out.phase, TT_JOB_SUCCEEDED);
    assert_int_equal(out.exit_code, 0);
    assert_string_equal(out.reason, "DIJob well succeeded because coordinator succeeded");
    assert_string_equal(s_phase(job), "Succeeded");
    assert_int_equal(s_count(job, "Coordinator", "succeeded"), 1);
    assert_int_equal(s_count(job, "Collector", "succeeded"), 2); /* active ones count so at the end */
    assert_non_null(strstr(s_said, "Normal DIJobSucceeded"));
    json_decref(job);
    free(spec);
}

static void test_a_coordinator_that_fails(void **state)
{
    (void)state;
    local_outcome_t out;
    json_t *job = s_run("ill", ROLE("coordinator", "exit 7") ROLE("collector", "true"), &out);
    assert_int_equal(out.phase, TT_JOB_FAILED);
    assert_int_equal(out.exit_code, 7);
    assert_string_equal(s_phase(job), "Failed");
    assert_int_equal(s_count(job, "Coordinator", "failed"), 1);
    assert_non_null(strstr(s_said, "Failed (exit code 7)"));
    json_decref(job);
}

/*  An init container that fails is the end of a pod that is not restarted. */
static void test_an_init_container_that_fails(void **state)
{
    (void)state;
    local_outcome_t out;
    json_t *job = s_run("early",
        "  coordinator:\n    template:\n      spec:\n"
        "        initContainers: [{name: a, command: ['true']}, {name: b, command: ['false']}, {name: c, command: "
        "[touch, never]}]\n"
        "        containers: [{name: di-container, command: ['true']}]\n",
        &out);
    assert_int_equal(out.phase, TT_JOB_FAILED);
    assert_int_equal(out.exit_code, 1);
    assert_string_equal(s_phase(job), "Failed");
    assert_int_not_equal(access("never", F_OK), 0);
    json_decref(job);
}

/*  A sidecar among the init containers stays beside, and goes with the last of the others. */
static void test_a_sidecar(void **state)
{
    (void)state;
    local_outcome_t out;
    char *spec = tt_sprintf(
        "  coordinator:\n    template:\n      spec:\n"
        "        initContainers: [{name: side, restartPolicy: Always, command: [sh, -c, 'echo >%s/side; exec sleep "
        "100']}]\n"
        "        containers: [{name: di-container, command: [sh, -c, 'until [ -e %s/side ]; do sleep 0.02; done']}]\n",
        s_root, s_root);
    json_t *job = s_run("side", spec, &out);
    assert_int_equal(out.exit_code, 0);
    json_decref(job);
    free(spec);
}

static void test_what_cannot_be_started(void **state)
{
    (void)state;
    local_outcome_t out;
    json_t *job = s_run("no-program",
        "  coordinator: {template: {spec: {containers: [{name: di-container, command: [/no/such/program]}]}}}\n", &out);
    assert_int_equal(out.exit_code, 128);
    assert_non_null(strstr(s_said, "cannot start '/no/such/program'"));
    json_decref(job);
    job = s_run(
        "no-command", "  coordinator: {template: {spec: {containers: [{name: di-container, image: x}]}}}\n", &out);
    assert_int_equal(out.exit_code, 128);
    assert_non_null(
        strstr(s_said, "container di-container has no command: what its image would run is not known on this machine"));
    json_decref(job);
    job = s_run("no-place",
        "  engine: tutti\n  coordinator: {template: {spec: {volumes: [{name: v, hostPath: {path: /no/such, type: "
        "Directory}}], "
        "containers: [{name: di-container, volumeMounts: [{name: v, mountPath: /v}]}]}}}\n",
        &out);
    assert_int_equal(out.phase, TT_JOB_FAILED);
    assert_string_equal(
        out.reason, "no-place-coordinator: volume v: hostPath /no/such (Directory) is not on this machine");
    json_decref(job);
}

/*  The file of a volume of the run's coordinator, which ended and is there. */
static void s_check_file(const char *run, const char *name, const char *text, mode_t mode)
{
    char path[FOLDER_MAX + 128], seen[64] = "";
    struct stat info;
    snprintf(path, sizeof path, "%s/%s/pods/%s-coordinator/volumes/%s", s_root, run, run, name);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 07777, mode);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_true(fread(seen, 1, sizeof seen - 1, file) == strlen(text));
    assert_string_equal(seen, text);
    fclose(file);
}

#define MOUNTS(volumes)                                                                                                \
    "  coordinator: {template: {spec: {volumes: [" volumes "], containers: [{name: di-container, command: ['true'],\n" \
    "    volumeMounts: [{name: v, mountPath: /v}, {name: w, mountPath: /w}]}]}}}\n"
#define OBJECTS                                                                                                  \
    "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {run.sh: 'echo'}\nbinaryData: {b: Yg==}\n" \
    "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {p: cA==, q: cQ==}\nstringData: {q: other}\n"

static void test_keys_of_objects_as_files(void **state)
{
    (void)state;
    local_outcome_t out;
    json_t *job = s_run("all",
        MOUNTS("{name: v, configMap: {name: c, defaultMode: 0755}}, {name: w, secret: {secretName: s}}") OBJECTS, &out);
    assert_int_equal(out.exit_code, 0);
    json_decref(job);
    s_check_file("all", "v/run.sh", "echo", 0755);
    s_check_file("all", "v/b", "b", 0755);
    s_check_file("all", "w/p", "p", 0600);
    s_check_file("all", "w/q", "other", 0600);
    job = s_run("some",
        MOUNTS("{name: v, configMap: {name: c, items: [{key: run.sh, path: bin/run, mode: 0555}]}},\n"
               "    {name: w, secret: {secretName: s, optional: true, defaultMode: 0440,\n"
               "      items: [{key: none, path: x}, {key: p, path: z}, {key: q, path: x, mode: 0750}]}}") OBJECTS,
        &out);
    assert_int_equal(out.exit_code, 0);
    json_decref(job);
    char path[FOLDER_MAX + 128];
    snprintf(path, sizeof path, "%s/some/pods/some-coordinator/volumes/v/run.sh", s_root);
    assert_int_equal(access(path, F_OK), -1);
    s_check_file("some", "v/bin/run", "echo", 0555);
    s_check_file("some", "w/z", "p", 0400); /* nobody else's, whatever a cluster needs */
    s_check_file("some", "w/x", "other", 0700);
}

static void s_check_refused(const char *name, const char *spec, const char *words)
{
    local_outcome_t out;
    json_t *job = s_run(name, spec, &out);
    assert_int_equal(out.phase, TT_JOB_FAILED);
    assert_non_null(strstr(s_said, words));
    json_decref(job);
}

static void test_keys_that_are_no_files(void **state)
{
    (void)state;
    s_check_refused("no-key",
        MOUNTS("{name: v, configMap: {name: c, items: [{key: none, path: x}]}}, {name: w, emptyDir: {}}") OBJECTS,
        "volume v: the manifest's ConfigMap has no key none");
}

/*  Another run of this machine may have the addresses that this one would take first. */
static void test_two_runs_have_addresses_of_their_own(void **state)
{
    (void)state;
    int fds[3];
    for (unsigned i = 0; i < TT_COUNT(fds); i++) {
        const unsigned net = 16 + ((unsigned)getpid() % 234 + i) % 234;
        const struct sockaddr_in theirs = {
            .sin_family = AF_INET, .sin_port = htons(8080), .sin_addr.s_addr = htonl(127u << 24 | net << 16 | 1)};
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        (void)(bind(fds[i], (const struct sockaddr *)&theirs, sizeof theirs) == 0 && listen(fds[i], 1) == 0);
    }
    local_outcome_t out;
    char *spec = tt_sprintf(
        ROLE("coordinator", "at=${KUBERNETES_SERVER_URL#http://}; grep \"^${at%%:8080} di-server.di-system \" "
                            "%s/nets/hosts; test $? = 0 -a $COORDINATOR_PORT -lt 32768"),
        s_root);
    json_t *job = s_run("nets", spec, &out);
    assert_int_equal(out.exit_code, 0);
    json_decref(job);
    free(spec);
    for (size_t i = 0; i < TT_COUNT(fds); i++)
        close(fds[i]);
}

/*  A body that is not understood is not done; at once is at once, whatever grace the pods have. */
static void test_stop_is_read_strictly(void **state)
{
    (void)state;
    local_outcome_t out;
    orders_t orders = {.bad = TT_OK, .good = TT_AGAIN};
    s_orders = &orders;
    json_t *job = s_run("deaf",
        "  coordinator:\n    template:\n      spec:\n        terminationGracePeriodSeconds: 3000\n"
        "        containers: [{name: di-container, command: [sh, -c, 'trap \"\" TERM; while :; do sleep 0.05; "
        "done']}]\n",
        &out);
    s_orders = NULL;
    assert_int_equal(pthread_join(orders.thread, NULL), 0);
    assert_int_equal(orders.bad, TT_INVALID);
    assert_non_null(strstr(orders.words, "now must be true or false"));
    assert_int_equal(orders.good, TT_OK);
    assert_int_equal(out.phase, TT_JOB_STOPPED);
    json_decref(job);
}

#define TEMPLATE                                                                                               \
    "    template: {spec: {containers: [{name: di-container, ports: [{name: di-port, containerPort: 5555}],\n" \
    "      command: [/bin/sh, -c, '%s']}]}}\n"

/*  Of a kind that settles nothing a pod has an address of its own, the manifest's ports and the cluster's name:
 *  here two pods take one port. */
static void test_a_kind_that_is_known_by_its_table_alone(void **state)
{
    (void)state;
    local_outcome_t out;
    front_local_t local = *dijob_front.local;
    local.settle = NULL;
    front_t other = dijob_front;
    other.local = &local;
    char *collects = tt_sprintf("echo $COLLECTOR_PORT >%s/port; exec sleep 100", s_root);
    char *coordinates = tt_sprintf("until grep 5555 %s/port; do sleep 0.02; done; test $COORDINATOR_PORT = 5555 -a "
                                   "$(grep -c \" by-table-co.*[.]svc\" %s/by-table/hosts) = 2",
        s_root, s_root);
    tt_buf_t text;
    tt_buf_init(&text, 4096);
    (void)tt_buf_str(&text, "  collector:\n    replicas: 1\n");
    (void)tt_buf_printf(&text, TEMPLATE, collects);
    (void)tt_buf_str(&text, "  coordinator:\n");
    (void)tt_buf_printf(&text, TEMPLATE, coordinates);
    json_t *job = s_run_as(&other, "by-table", tt_buf_text(&text), &out);
    assert_int_equal(out.exit_code, 0);
    assert_string_equal(s_phase(job), "Succeeded");
    json_decref(job);
    tt_buf_free(&text);
    free(collects);
    free(coordinates);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_job_that_succeeds),
        cmocka_unit_test(test_a_coordinator_that_fails),
        cmocka_unit_test(test_an_init_container_that_fails),
        cmocka_unit_test(test_a_sidecar),
        cmocka_unit_test(test_what_cannot_be_started),
        cmocka_unit_test(test_keys_of_objects_as_files),
        cmocka_unit_test(test_keys_that_are_no_files),
        cmocka_unit_test(test_two_runs_have_addresses_of_their_own),
        cmocka_unit_test(test_stop_is_read_strictly),
        cmocka_unit_test(test_a_kind_that_is_known_by_its_table_alone),
    };
    return cmocka_run_group_tests(tests, s_open, s_close);
}
