/* kubeconfig: which file says what, how it is merged, and what is said of a wrong one. */
#include "k8s/api/kubeconfig.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "common/base/base64.h"
#include "k8s/api/kubeconfig_parts.h"
#include "tests/folder.h"
#include "tests/test.h"

static char s_folder[FOLDER_MAX];

static char *s_file(const char *name, const char *text)
{
    char *path = tt_sprintf("%s/%s", s_folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    return path;
}

static int s_setup(void **state)
{
    (void)state;
    assert_int_equal(folder_make(s_folder, "kubeconfig"), 0);
    setenv("HOME", s_folder, 1);
    unsetenv("KUBECONFIG");
    unsetenv("KUBERNETES_SERVICE_HOST");
    return 0;
}

static int s_teardown(void **state)
{
    (void)state;
    return folder_remove(s_folder);
}

/* "LS0t..." is "-----BEGIN CERTIFICATE-----\nCA\n" and the like. */
static char *s_data(const char *what)
{
    char *pem = tt_sprintf("-----BEGIN CERTIFICATE-----\n%s\n", what);
    char *data = tt_base64_encode(pem, strlen(pem));
    free(pem);
    return data;
}

/* Load the text as a file of its own. */
static tt_status_t s_load(kube_config_t **config, const char *text, const char *context)
{
    char *path = s_file("one", text);
    const tt_status_t status = kube_config_load(config, &(kube_config_opts_t){.path = path, .context = context});
    free(path);
    return status;
}

static const char s_two[] = "apiVersion: v1\n"
                            "kind: Config\n"
                            "preferences: {colors: true}\n"
                            "current-context: blue\n"
                            "contexts:\n"
                            "- name: blue\n"
                            "  context: {cluster: east, user: ann, namespace: team}\n"
                            "- name: green\n"
                            "  context:\n"
                            "    cluster: west\n"
                            "    user: bob\n"
                            "clusters:\n"
                            "- name: east\n"
                            "  cluster: {server: 'https://10.0.0.1:6443/'}\n"
                            "- name: west\n"
                            "  cluster:\n"
                            "    server: https://west.example\n"
                            "    insecure-skip-tls-verify: true\n"
                            "    tls-server-name: kubernetes\n"
                            "    proxy-url: http://proxy:3128\n"
                            "users:\n"
                            "- name: ann\n"
                            "  user: {token: secret}\n"
                            "- name: bob\n"
                            "  user: {username: bob, password: \"p w\"}\n";

static void test_contexts(void **state)
{
    (void)state;
    kube_config_t *config = NULL;
    assert_ok(s_load(&config, s_two, NULL));
    assert_string_equal(config->context, "blue");
    assert_string_equal(config->server, "https://10.0.0.1:6443");
    assert_string_equal(config->namespace_, "team");
    assert_string_equal(config->token, "secret");
    assert_false(config->insecure);
    kube_config_destroy(&config);
    assert_ok(s_load(&config, s_two, "green"));
    assert_string_equal(config->server, "https://west.example");
    assert_string_equal(config->namespace_, "default");
    assert_string_equal(config->username, "bob");
    assert_string_equal(config->password, "p w");
    assert_string_equal(config->tls_server_name, "kubernetes");
    assert_string_equal(config->proxy_url, "http://proxy:3128");
    assert_true(config->insecure);
    assert_null(config->token);
    kube_config_destroy(&config);
    kube_config_destroy(&config);
    char *path = s_file("one", s_two);
    assert_ok(kube_config_load(&config, &(kube_config_opts_t){.path = path, .namespace_ = "mine"}));
    assert_string_equal(config->namespace_, "mine");
    kube_config_destroy(&config);
    free(path);
}

/* kubectl's own rule: of what two files say of one name, the first's word holds, whole. */
static void test_merge(void **state)
{
    (void)state;
    char *a = s_file("a", "contexts:\n- {name: x, context: {cluster: c, user: u}}\n"
                          "clusters:\n- {name: c, cluster: {server: 'https://first'}}\n");
    char *b = s_file("b", s_two);
    char *c = s_file("c", "current-context: other\n"
                          "clusters:\n- {name: c, cluster: {server: 'https://second', tls-server-name: lost}}\n"
                          "users:\n- {name: u, user: {token: t}}\n");
    char *list = tt_sprintf("%s:%s/nowhere::%s:%s", a, s_folder, b, c);
    setenv("KUBECONFIG", list, 1);
    kube_config_t *config = NULL;
    assert_ok(kube_config_load(&config, NULL));
    assert_string_equal(config->context, "blue"); /* the first that has one */
    kube_config_destroy(&config);
    assert_ok(kube_config_load(&config, &(kube_config_opts_t){.context = "x"}));
    assert_string_equal(config->server, "https://first");
    assert_null(config->tls_server_name);
    assert_string_equal(config->token, "t"); /* from a third file */
    kube_config_destroy(&config);
    assert_int_equal(kube_config_load(&config, &(kube_config_opts_t){.context = "none"}), TT_CONFIG);
    assert_non_null(strstr(tt_err_text(), "no context 'none'"));
    char *nowhere = tt_sprintf("%s/nowhere", s_folder);
    setenv("KUBECONFIG", nowhere, 1);
    assert_int_equal(kube_config_load(&config, NULL), TT_NOT_FOUND);
    assert_non_null(strstr(tt_err_text(), nowhere));
    unsetenv("KUBECONFIG");
    free(nowhere);
    free(list);
    free(a);
    free(b);
    free(c);
}

static char *s_user(const char *user)
{
    return tt_sprintf("current-context: x\ncontexts:\n- {name: x, context: {cluster: c, user: u}}\n"
                      "clusters:\n- {name: c, cluster: {server: 'https://h'}}\n"
                      "users:\n- name: u\n  user:\n%s",
        user);
}

static void test_data_and_paths(void **state)
{
    (void)state;
    char *cert = s_data("CERT"), *key = s_data("KEY");
    char *user = tt_sprintf("    client-certificate: no-such-file\n    client-certificate-data: %s\n"
                            "    client-key: sub/key.pem\n    tokenFile: sub/token\n",
        cert);
    char *text = s_user(user), *sub = tt_sprintf("%s/sub", s_folder);
    assert_int_equal(mkdir(sub, 0700), 0);
    free(s_file("sub/key.pem", "-----BEGIN KEY-----\nKEY\n"));
    kube_config_t *config = NULL;
    assert_ok(s_load(&config, text, NULL));
    assert_string_equal(config->cert_pem, "-----BEGIN CERTIFICATE-----\nCERT\n"); /* the data wins */
    assert_string_equal(config->key_pem, "-----BEGIN KEY-----\nKEY\n");
    char *token = tt_sprintf("%s/sub/token", s_folder);
    assert_string_equal(config->token_file, token);
    kube_config_destroy(&config);
    free(token);
    free(sub);
    free(text);
    free(user);
    free(cert);
    free(key);
}

static void test_exec(void **state)
{
    (void)state;
    char *text = s_user("    exec:\n      apiVersion: client.authentication.k8s.io/v1\n      command: bin/login\n"
                        "      args: [get-token, \"--for=a b\"]\n      env:\n      - {name: A, value: b}\n"
                        "      - {name: B}\n      installHint: install it\n      interactiveMode: IfAvailable\n"
                        "      provideClusterInfo: true\n");
    kube_config_t *config = NULL;
    assert_ok(s_load(&config, text, NULL));
    char *command = tt_sprintf("%s/bin/login", s_folder);
    assert_string_equal(config->exec->command, command);
    assert_string_equal(config->exec->args[0], "get-token");
    assert_string_equal(config->exec->args[1], "--for=a b");
    assert_null(config->exec->args[2]);
    assert_int_equal(config->exec->env_count, 2);
    assert_string_equal(config->exec->env[0].name, "A");
    assert_string_equal(config->exec->env[0].value, "b");
    assert_string_equal(config->exec->env[1].value, "");
    assert_string_equal(config->exec->install_hint, "install it");
    assert_true(config->exec->provide_cluster_info);
    kube_config_destroy(&config);
    free(command);
    free(text);
    text =
        s_user("    exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: login, args: null, env: null}\n");
    assert_ok(s_load(&config, text, NULL));
    assert_string_equal(config->exec->command, "login"); /* to be looked for in PATH */
    kube_config_destroy(&config);
    free(text);
}

/* What is wrong, where it is wrong, and which kind of wrong. `line` is that of the file. */
static void s_wrong(const char *text, tt_status_t status, int line, const char *words)
{
    kube_config_t *config = NULL;
    assert_int_equal(s_load(&config, text, NULL), status);
    assert_null(config);
    char *where = tt_sprintf("%s/one:%d: ", s_folder, line);
    if (line && !strstr(tt_err_text(), where))
        fail_msg("'%s' is not in '%s'", where, tt_err_text());
    if (!strstr(tt_err_text(), words))
        fail_msg("'%s' is not in '%s'", words, tt_err_text());
    free(where);
}

static void s_wrong_user(const char *user, tt_status_t status, int line, const char *words)
{
    char *text = s_user(user);
    s_wrong(text, status, line, words);
    free(text);
}

static void test_errors_name_line_and_key(void **state)
{
    (void)state;
    s_wrong("", TT_CONFIG, 0, "no current-context");
    s_wrong("a: [\n", TT_CONFIG, 2, "");
    s_wrong("contexts: 3\ncurrent-context: x\n", TT_CONFIG, 1, "contexts must be a list");
    s_wrong("current-context: [x]\n", TT_CONFIG, 1, "current-context must be a text");
    s_wrong("current-context: x\n", TT_CONFIG, 0, "no context 'x'");
    s_wrong("current-context: x\ncontexts:\n- name: x\n  context: {user: u}\n", TT_CONFIG, 4, "names no cluster");
    s_wrong("current-context: x\ncontexts:\n- {name: x, context: {cluster: c}}\n", TT_CONFIG, 0, "no cluster 'c'");
    s_wrong("current-context: x\ncontexts:\n- {name: x, context: {cluster: c}}\n"
            "clusters:\n- name: c\n  cluster:\n    server: ftp://x\n",
        TT_CONFIG, 7, "server 'ftp://x' is not a URL");
    s_wrong("current-context: x\ncontexts:\n- {name: x, context: {cluster: c}}\n"
            "clusters:\n- name: c\n  cluster: {insecure-skip-tls-verify: perhaps, server: 'https://x'}\n",
        TT_CONFIG, 6, "must be true or false");
    s_wrong("current-context: x\ncontexts:\n- {name: x, context: {cluster: c}}\n"
            "clusters:\n- name: c\n  cluster: {server: 'https://x', certificate-authority-data: '!!'}\n",
        TT_CONFIG, 6, "certificate-authority-data is not a PEM text in base64");
    s_wrong("current-context: x\ncontexts:\n- {name: x, context: {cluster: c}}\n"
            "clusters:\n- name: c\n  cluster: {server: 'https://x', certificate-authority: none.crt}\n",
        TT_NOT_FOUND, 6, "none.crt");
    s_wrong("current-context: x\ncontexts:\n- {name: x, context: {cluster: c}}\n"
            "clusters:\n- name: c\n  cluster: {server: 'https://x', certificate-authority: /dev/zero}\n",
        TT_CONFIG, 6, "/dev/zero is not a file");
    char *cert = s_data("X"), *alone = tt_sprintf("    client-certificate-data: %s\n", cert);
    s_wrong_user(alone, TT_CONFIG, 9, "need each other");
    free(alone);
    free(cert);
    s_wrong_user("    auth-provider: {name: gcp}\n", TT_UNSUPPORTED, 9, "auth-provider is not supported");
    s_wrong_user("    token: t\n    as: system:admin\n", TT_UNSUPPORTED, 10, "as is not supported");
    s_wrong_user("    exec:\n      command: x\n", TT_UNSUPPORTED, 10, "apiVersion");
    s_wrong_user("    exec:\n      apiVersion: client.authentication.k8s.io/v1\n", TT_CONFIG, 10, "no command");
    s_wrong_user("    exec:\n      apiVersion: client.authentication.k8s.io/v1\n      command: x\n      args: [[]]\n",
        TT_CONFIG, 12, "args must be");
    s_wrong_user("    exec:\n      apiVersion: client.authentication.k8s.io/v1\n      command: x\n"
                 "      env: [{name: A=, value: b}]\n",
        TT_CONFIG, 12, "env must be");
    s_wrong_user("    exec:\n      apiVersion: client.authentication.k8s.io/v1\n      command: x\n"
                 "      interactiveMode: Always\n",
        TT_UNSUPPORTED, 10, "interactiveMode");
    s_wrong_user("    token: \"a\\0b\"\n", TT_CONFIG, 9, "zero byte");
}

/* Each was given to kubectl 1.32 (kubectl --kubeconfig FILE config view --raw), which said the same; but of a key that is there twice it takes
   the last, without a word. */
static void test_values_are_what_kubectl_makes_of_them(void **state)
{
    (void)state;
    kube_config_t *config = NULL;
    char *text = s_user("    {token: '5', username: null, password: \"\"}\n");
    assert_ok(s_load(&config, text, NULL));
    assert_string_equal(config->token, "5");
    assert_null(config->username);
    assert_null(config->password);
    kube_config_destroy(&config);
    free(text);
    text = tt_sprintf("current-context: &x x\ncontexts:\n- {name: *x, context: {cluster: c}}\n"
                      "clusters:\n- {name: c, cluster: {server: 'https://h', insecure-skip-tls-verify: yes}}\n"
                      "---\ncurrent-context: y\n");
    assert_ok(s_load(&config, text, NULL));
    assert_string_equal(config->context, "x");
    assert_true(config->insecure);
    kube_config_destroy(&config);
    free(text);
    s_wrong_user("    {username: me, password: 0123}\n", TT_CONFIG, 9, "password must be a text: put it in quotes");
    s_wrong("current-context: 12\n", TT_CONFIG, 1, "current-context must be a text: put it in quotes");
    s_wrong("current-context: x\ncontexts:\n- {name: x, context: {cluster: c}}\n"
            "clusters:\n- name: c\n  cluster: {insecure-skip-tls-verify: 'true', server: 'https://x'}\n",
        TT_CONFIG, 6, "must be true or false");
    s_wrong("current-context: x\ncurrent-context: y\n", TT_CONFIG, 2, "key 'current-context' is there twice");
}

static void test_in_cluster(void **state)
{
    (void)state;
    kube_config_t *config = NULL;
    char *folder = tt_sprintf("%s/account", s_folder), *token = tt_sprintf("%s/token", folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    const kube_config_opts_t none = {0};
    assert_int_equal(kube_config_in_cluster(&config, "10.96.0.1", "443", folder, &none), TT_NOT_FOUND);
    free(s_file("account/ca.crt", "-----BEGIN CERTIFICATE-----\nCA\n"));
    free(s_file("account/token", "t"));
    assert_ok(kube_config_in_cluster(&config, "10.96.0.1", "443", folder, &none));
    assert_string_equal(config->server, "https://10.96.0.1:443");
    assert_string_equal(config->token_file, token);
    assert_string_equal(config->context, "in-cluster");
    assert_string_equal(config->namespace_, "default");
    assert_string_equal(config->ca_pem, "-----BEGIN CERTIFICATE-----\nCA\n");
    kube_config_destroy(&config);
    free(s_file("account/namespace", "di-system\n"));
    assert_ok(kube_config_in_cluster(&config, "fd00::1", "6443", folder, &none));
    assert_string_equal(config->server, "https://[fd00::1]:6443");
    assert_string_equal(config->namespace_, "di-system");
    kube_config_destroy(&config);
    free(token);
    free(folder);
}

static void test_where_it_is_looked_for(void **state)
{
    (void)state;
    kube_config_t *config = NULL;
    assert_int_equal(kube_config_load(&config, NULL), TT_NOT_FOUND);
    assert_non_null(strstr(tt_err_text(), "/.kube/config"));
    char *folder = tt_sprintf("%s/.kube", s_folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    free(s_file(".kube/config", s_two));
    assert_ok(kube_config_load(&config, NULL));
    assert_string_equal(config->context, "blue");
    kube_config_destroy(&config);
    assert_int_equal(kube_config_load(&config, &(kube_config_opts_t){.path = "/nowhere/at/all"}), TT_NOT_FOUND);
    free(folder);
}

/*  A pod's account, as far as anybody looks whether there is one. */
static bool s_is_pod;
int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode);

int __wrap_access(const char *path, int mode)
{
    return s_is_pod && strstr(path, "/serviceaccount") ? 0 : __real_access(path, mode);
}

static int s_setup_pod(void **state)
{
    s_is_pod = true;
    const int failed = s_setup(state);
    setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1", 1);
    return failed;
}

static int s_teardown_pod(void **state)
{
    s_is_pod = false;
    return s_teardown(state);
}

/*  Whoever names a context means one of a file, in a pod, too: its account has none. */
static void test_a_context_is_one_of_a_file(void **state)
{
    (void)state;
    kube_config_t *config = NULL;
    char *folder = tt_sprintf("%s/.kube", s_folder);
    assert_int_equal(kube_config_load(&config, &(kube_config_opts_t){.context = "green"}), TT_NOT_FOUND);
    assert_null(strstr(tt_err_text(), "service account"));
    assert_int_equal(mkdir(folder, 0700), 0);
    free(s_file(".kube/config", s_two));
    assert_ok(kube_config_load(&config, &(kube_config_opts_t){.context = "green"}));
    assert_string_equal(config->server, "https://west.example");
    kube_config_destroy(&config);
    const tt_status_t status = kube_config_load(&config, NULL); /* what a true account has, if this is a pod */
    assert_true(status == TT_OK ? strcmp(config->context, "in-cluster") == 0 : status == TT_NOT_FOUND);
    kube_config_destroy(&config);
    free(folder);
}

static void test_base64(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"foobar", "Zm9vYmFy"}};
    size_t size = 0;
    for (size_t i = 0; i < TT_COUNT(pairs); i++) { /* RFC 4648 section 10 */
        char *text = tt_base64_encode(pairs[i][0], strlen(pairs[i][0]));
        assert_string_equal(text, pairs[i][1]);
        char *back = tt_base64_decode(text, &size);
        assert_int_equal(size, strlen(pairs[i][0]));
        assert_memory_equal(back, pairs[i][0], size + 1);
        free(text);
        free(back);
    }
    static const char *const wrong[] = {"Zg", "Zg=", "=", "Z===", "====", "Zg==Zg==", "Z g=", "Zm9v!", "Zg=a"};
    for (size_t i = 0; i < TT_COUNT(wrong); i++)
        assert_null(tt_base64_decode(wrong[i], &size));
    char *lines = tt_base64_decode("Zm9v\r\n YmFy\n", &size);
    assert_string_equal(lines, "foobar");
    free(lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_contexts, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_merge, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_data_and_paths, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_exec, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_errors_name_line_and_key, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_values_are_what_kubectl_makes_of_them, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_in_cluster, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_where_it_is_looked_for, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_context_is_one_of_a_file, s_setup_pod, s_teardown_pod),
        cmocka_unit_test(test_base64),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
