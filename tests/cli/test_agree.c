/*  What `check` accepts no role refuses: configs made at random, many of them at a limit of something, are given to setup
 *  (what `check` and `run` do), and those that pass to what every role asks of its settings when it starts. Whatever
 *  comes then, it is not that the configuration is bad. Seeded: a failure repeats, and prints its config. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/setup.h"
#include "collector/vec.h"
#include "common/base/limits.h"
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/http/bind.h"
#include "common/job/fit.h"
#include "common/job/train_job.h"
#include "common/net/net.h"
#include "common/nn/tree.h"
#include "coordinator/roster.h"
#include "learner/memory.h"
#include "learner/model.h"
#include "tests/test.h"

enum {
    CONFIGS = 2000,
    SETS_MAX = 8,
    FIXED = 3, /* settings of a config beside those that are drawn: the algorithm, an environment for it, a memory */
    ACCEPTED_LEAST = CONFIGS / 8,
    REMEMBERING = 8, /* one of so many configs has a policy that remembers, at least */
    SMALL_ROWS = 4096,
    SMALL_PARAMS = 1 << 16,
    SMALL_REPLAY = 64 << 20
};

static const char *const s_envs[] = {
    "CartPole-v1", "Acrobot-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Pendulum-v1"};
static const char *const s_listen[] = {"", "tcp://*:0", "tcp://*:*", "tcp://127.0.0.1:0", "tcp://[::1]:0",
    "tcp://nosuch0:0", "tcp://203.0.113.7:0", "tcp://nowhere.example:1", "tcp://127.0.0.1", "ipc:///x", "tcp://:1",
    "tcp://1.2.3:1", "tcp://*:65536", "udp://*:1", "tcp://a b:1", "tcp://[::]:*"};
static const char *const s_http[] = {"", "127.0.0.1:0", "localhost:0", "[::1]:0", "0.0.0.0:0", "203.0.113.7:0", "*:0",
    "127.0.0.1:*", "nowhere:80", "127.0.0.1", ":0", "127.0.0.1:65536", "127.0.0.1:-1", "eth0:0", "1.2.3:0"};
static const char *const s_names[] = {"a", "a.b", "0-_.", ".a", "-a", "a/b", "a b",
    "sixty-three-letters-are-what-a-name-may-have-and-not-one-more-x",
    "sixty-four-letters-are-one-more-than-a-name-may-have-and-not-good"};

/* ---- making one -------------------------------------------------------------------------------------------------------- */

typedef struct {
    uint32_t config, draw;
    const tt_algorithm_t *algorithm;
    char set[SETS_MAX + FIXED][256];
    const char *sets[SETS_MAX + FIXED];
    size_t count;
} sample_t;

static uint32_t s_below(sample_t *self, uint32_t n)
{
    uint32_t words[4];
    tt_draw(words, 20, TT_STREAM_TEST, self->config, self->draw++);
    return tt_below(words[0], n);
}

#define PICK(self, list) list[s_below(self, (uint32_t)TT_COUNT(list))]

/*  Arguments that Pendulum-v1 has, that others have, that nobody has; numbers and what is none. */
static void s_map(sample_t *self, char *out, size_t size)
{
    static const char *const maps[] = {"{}", "{g: 9.81}", "{g: 1e400}", "{g: fast}", "{g: null}", "{G: 1}",
        "{goal_velocity: 0.01}", "{g: [1, 2]}", "{g: \"-1\"}", "{g: {x: 1}}", "3"};
    snprintf(out, size, "%s", PICK(self, maps));
}

/*  A whole number: at an end of the range or one beside it, a power of two, or any. */
static void s_whole(sample_t *self, const tt_cfg_field_t *field, char *out, size_t size)
{
    const bool bounded = field->min < field->max;
    const double min = bounded ? field->min : 0, max = bounded ? field->max : 1e18;
    const double at[] = {min, min + 1, max - 1, max, max + 1, (double)((uint64_t)1 << s_below(self, 27)),
        (double)s_below(self, 64), (double)s_below(self, 5000)};
    const double value = PICK(self, at);
    snprintf(out, size, "%.0f", value < 0 ? 0 : value);
}

static void s_real(sample_t *self, const tt_cfg_field_t *field, char *out, size_t size)
{
    const bool bounded = field->min < field->max;
    const double min = bounded ? field->min : -1e6, max = bounded ? field->max : 1e6;
    const double at[] = {min, max, min + (max - min) * 1e-6, (min + max) / 2, max * 1.0001};
    snprintf(out, size, "%.9g", PICK(self, at));
}

static void s_list(sample_t *self, char *out, size_t size)
{
    static const uint32_t units[] = {1, 3, 64, 512, 4096, 16384, TT_UNITS_MAX, TT_UNITS_MAX + 1};
    const uint32_t count = s_below(self, TT_LAYERS_MAX + 2);
    size_t used = (size_t)snprintf(out, size, "[");
    for (uint32_t i = 0; i < count; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%u", i ? ", " : "", PICK(self, units));
    snprintf(out + used, size - used, "]");
}

static const char *const s_devices[] = {"cpu", "cpu", "cpu", "gpu", "cpu:0"};
static const char *const s_encoders[] = {"none", "none", "[dense 16 relu, layer_norm]", "dense 65536", "nature"};

static void s_text(sample_t *self, const tt_cfg_field_t *field, char *out, size_t size)
{
    const char *text = strcmp(field->key, "env") == 0                  ? PICK(self, s_envs)
                       : strcmp(field->key, "coordinator.listen") == 0 ? PICK(self, s_listen)
                       : strcmp(field->key, "coordinator.http") == 0   ? PICK(self, s_http)
                       : strcmp(field->key, "name") == 0               ? PICK(self, s_names)
                       : strcmp(field->key, "learner.device") == 0     ? PICK(self, s_devices)
                       : strcmp(field->key, "algorithm.name") == 0     ? self->algorithm->name
                                                                       : "";
    snprintf(out, size, "\"%s\"", text);
}

static void s_choice(sample_t *self, const char *choices, char *out, size_t size)
{
    uint32_t count = 1;
    for (const char *c = choices; *c; c++)
        count += *c == '|';
    for (uint32_t at = s_below(self, count); at > 0; at--)
        choices = strchr(choices, '|') + 1;
    snprintf(out, size, "%.*s", (int)strcspn(choices, "|"), choices);
}

static void s_value(sample_t *self, const tt_cfg_field_t *field, char *out, size_t size)
{
    switch (field->type) {
    case TT_CFG_BOOL:
        snprintf(out, size, "%s", s_below(self, 2) ? "true" : "false");
        return;
    case TT_CFG_U32:
    case TT_CFG_U64:
        s_whole(self, field, out, size);
        return;
    case TT_CFG_F32:
    case TT_CFG_F64:
        s_real(self, field, out, size);
        return;
    case TT_CFG_STR:
        s_text(self, field, out, size);
        return;
    case TT_CFG_ENUM:
        s_choice(self, field->choices, out, size);
        return;
    case TT_CFG_LIST:
        s_list(self, out, size);
        return;
    case TT_CFG_WORDS:
        snprintf(out, size, "%s", PICK(self, s_encoders));
        return;
    case TT_CFG_MAP:
        s_map(self, out, size);
        return;
    case TT_CFG_TEXTS:
        break; /* quiet ones only */
    }
}

/*  What the program fills in is not a user's; what only Python's environments and Atari's have belongs to none of those here. */
static bool s_is_asked(const tt_cfg_field_t *field)
{
    const bool other = field->quiet && strncmp(field->key, "env.stack", strlen("env.stack")) != 0 &&
                       strcmp(field->key, "learner.precision") != 0;
    return !tt_train_fills_in(field->key) && !other;
}

/*  Everybody's and its own, "replay." among them. */
static size_t s_fields(const tt_algorithm_t *algorithm, const tt_cfg_field_t **out, size_t room)
{
    size_t count = 0;
    for (const tt_cfg_field_t *field = tt_train_fields; field->key; field++)
        if (s_is_asked(field) && count < room)
            out[count++] = field;
    for (const tt_cfg_field_t *field = algorithm->fields; field->key && count < room; field++)
        out[count++] = field;
    assert_true(count < room);
    return count;
}

static void s_set(sample_t *self, const char *key, const char *value)
{
    char *set = self->set[self->count];
    snprintf(set, sizeof self->set[0], "%s=%s", key, value);
    self->sets[self->count++] = set;
}

/*  By turns, with an environment that it plays; what is drawn later may say otherwise. */
static void s_choose_algorithm(sample_t *self)
{
    static const char *const choices[] = {"CartPole-v1", "Acrobot-v1", "MountainCar-v0"};
    static const char *const numbers[] = {"Pendulum-v1", "MountainCarContinuous-v0"};
    size_t count;
    const tt_algorithm_t *const *all = tt_algorithms(&count);
    self->algorithm = all[self->config % count];
    const char *name = self->algorithm->name;
    const bool bounded = strcmp(name, "sac") == 0 || strcmp(name, "td3") == 0;
    s_set(self, "algorithm.name", name);
    s_set(self, "env",
        strcmp(name, "dqn") == 0 ? PICK(self, choices)
        : bounded                ? PICK(self, numbers)
                                 : PICK(self, s_envs));
}

static void s_make(sample_t *self, uint32_t config)
{
    const tt_cfg_field_t *fields[128];
    *self = (sample_t){.config = config};
    s_choose_algorithm(self);
    const size_t count = s_fields(self->algorithm, fields, TT_COUNT(fields));
    const size_t sets = 1 + s_below(self, SETS_MAX);
    if (s_below(self, REMEMBERING) == 0)
        s_set(self, "network.rnn", s_below(self, 2) ? "gru" : "lstm");
    for (size_t i = 0; i < sets; i++) {
        const tt_cfg_field_t *field = fields[s_below(self, (uint32_t)count)];
        char value[200];
        s_value(self, field, value, sizeof value);
        s_set(self, field->key, value);
    }
}

/* ---- asking the roles ---------------------------------------------------------------------------------------------------- */

static void s_fail(const sample_t *self, const char *who)
{
    fprintf(stderr, "config %u:", self->config);
    for (size_t i = 0; i < self->count; i++)
        fprintf(stderr, " --set '%s'", self->sets[i]);
    fprintf(stderr, "\n");
    fail_msg("check accepts what %s refuses: %s", who, tt_err_text());
}

#define AGREES(self, who, status) \
    do {                          \
        if ((status) != TT_OK)    \
            s_fail(self, who);    \
    } while (0)

/*  That a port is taken, or the address another host's, is not the config's fault. */
static bool s_is_blame(tt_status_t status)
{
    return status == TT_INVALID || status == TT_CONFIG || status == TT_USAGE || status == TT_DATA;
}

static void s_ask_addresses(const sample_t *self, const tt_train_cfg_t *cfg)
{
    int fd = -1;
    const tt_status_t http = *cfg->coordinator.http ? http_bind(&fd, cfg->coordinator.http) : TT_OK;
    if (fd >= 0)
        close(fd);
    if (s_is_blame(http))
        s_fail(self, "the HTTP server");
    if (!*cfg->coordinator.listen)
        return;
    tt_keys_t keys;
    tt_sock_t *sock = NULL;
    assert_ok(tt_keys_make(&keys));
    assert_ok(tt_sock_new(&sock, TT_ROUTER, &(tt_sock_opts_t){.name = "control", .keys = &keys}));
    if (s_is_blame(tt_sock_bind(sock, cfg->coordinator.listen, NULL, 0)))
        s_fail(self, "the control socket");
    tt_sock_destroy(&sock);
}

static void s_ask_wire(const sample_t *self, const char *text, const tt_train_cfg_t *cfg)
{
    tt_buf_t out;
    tt_buf_init(&out, 1 << 20);
    const tt_msg_WELCOME_t welcome = TT_MSG(WELCOME, .wire = TT_WIRE_VERSION, .beat_ms = cfg->net.beat_ms,
        .lease_ms = cfg->net.lease_ms, .config = (char *)(uintptr_t)text);
    AGREES(self, "WELCOME", tt_msg_pack(&out, &welcome));
    TT_AUTO(tt_columns) columns = NULL;
    AGREES(self, "who asks for columns", tt_train_columns(&columns, cfg));
    tt_segment_shape_t shape = tt_train_segment(cfg, columns);
    const tt_msg_SEGMENT_t segment =
        TT_MSG(SEGMENT, .env_count = shape.E, .steps = shape.T, .columns = columns->hash, .state_bytes = shape.S);
    AGREES(self, "SEGMENT", tt_msg_pack(&out, &segment));
    tt_buf_free(&out);
    size_t bytes;
    shape.K = shape.T * shape.E;
    AGREES(self, "a segment that is all truncations", tt_segment_size(&shape, &bytes));
}

static void s_ask_coordinator(const sample_t *self, const tt_train_cfg_t *cfg)
{
    tt_job_t *job = tt_train_job(cfg);
    AGREES(self, "the controller", tt_job_check(job));
    tt_job_destroy(&job);
    roster_t *roster = NULL;
    const roster_cfg_t opts = {
        .num_envs = cfg->num_envs, .shards = cfg->learner.shards, .lease_ns = (int64_t)cfg->net.lease_ms * 1000000};
    AGREES(self, "the roster", roster_new(&roster, &opts, tt_clock_real()));
    roster_destroy(&roster);
    const uint32_t aggregators = tt_train_aggregators(cfg, cfg->learner.replicas);
    if (cfg->collector.replicas + cfg->learner.replicas + aggregators > TT_MEMBERS_MAX)
        s_fail(self, "ROSTER");
}

static void s_ask_env(const sample_t *self, const tt_env_ops_t *env, const tt_train_cfg_t *cfg)
{
    tt_env_arg_t args[TT_ENV_ARGS_MAX + 1];
    TT_AUTO(tt_columns) columns = NULL;
    TT_AUTO(tt_vec) vec = NULL;
    tt_env_args_of(args, cfg);
    AGREES(self, "the collector", tt_train_columns(&columns, cfg));
    AGREES(self, "the environment",
        tt_vec_new(&vec, &(tt_vec_cfg_t){.ops = env, .args = args, .columns = columns, .seed = cfg->seed, .count = 2}));
}

/*  Its replay, where it has one: whether it fits at all, and, where it is small, the real thing. */
static void s_ask_memory(const sample_t *self, const model_t *model)
{
    const tt_feed_t *feed = &model->shape.feed;
    memory_t *memory = NULL;
    if (feed->source != TT_FEED_REPLAY)
        return;
    if (memory_copy_bytes(&model->train, model->columns, feed) == 0)
        s_fail(self, "the replay");
    if (feed->capacity > SMALL_REPLAY)
        return;
    const double gamma = model->algorithm->gamma(model->cfg);
    AGREES(self, "the replay", memory_new(&memory, &model->train, model->columns, feed, gamma));
    memory_destroy(&memory);
}

/*  The real thing, where it is small. */
static void s_ask_learner(const sample_t *self, const char *text, const tt_train_cfg_t *cfg)
{
    AGREES(self, "the learner", model_check(text));
    TT_AUTO(tt_columns) columns = NULL;
    AGREES(self, "the learner", tt_train_columns(&columns, cfg));
    const tt_net_spec_t net = tt_train_net(cfg, columns);
    if (cfg->num_envs * cfg->num_steps > SMALL_ROWS || tt_net_param_count(&net) > SMALL_PARAMS)
        return;
    model_t model;
    AGREES(self, "the learner", model_open(&model, text, 0));
    assert_true(cfg->replays || model.algorithm->steps(model.algo) > 0);
    s_ask_memory(self, &model);
    model_close(&model);
}

static void s_ask(const sample_t *self, const tt_setup_t *setup)
{
    tt_train_cfg_t cfg;
    const char *text = tt_setup_yaml(setup);
    AGREES(self, "every role", tt_train_parse(&cfg, text, strlen(text)));
    AGREES(self, "the collector", tt_train_fit(NULL, &cfg));
    assert_true(tt_tree_shards_ok(cfg.learner.shards)); /* the aggregator */
    s_ask_coordinator(self, &cfg);
    s_ask_wire(self, text, &cfg);
    s_ask_env(self, tt_setup_env(setup), &cfg);
    s_ask_learner(self, text, &cfg);
    s_ask_addresses(self, &cfg);
}

static void test_what_check_accepts_no_role_refuses(void **state)
{
    (void)state;
    char path[] = "/tmp/tt-agree-XXXXXX";
    static const char yaml[] = "env: CartPole-v1\nstop: {env_steps: 100k}\n";
    const int fd = mkstemp(path);
    assert_int_equal(write(fd, yaml, sizeof yaml - 1), sizeof yaml - 1);
    close(fd);
    size_t accepted = 0, remember = 0, algorithms, of[16] = {0};
    const tt_algorithm_t *const *all = tt_algorithms(&algorithms);
    assert_true(algorithms < TT_COUNT(of));
    for (uint32_t i = 0; i < CONFIGS; i++) {
        sample_t sample;
        tt_setup_t *setup = NULL;
        s_make(&sample, i);
        const tt_status_t status = tt_setup_new(&setup, path, sample.sets, sample.count);
        if (status == TT_OK)
            s_ask(&sample, setup);
        else if (status != TT_CONFIG)
            s_fail(&sample, "check, as something else than bad configuration,");
        accepted += status == TT_OK;
        of[i % algorithms] += status == TT_OK;
        remember += status == TT_OK && tt_setup_train(setup)->network.rnn != TT_RNN_NONE;
        tt_setup_destroy(&setup);
    }
    unlink(path);
    print_message("%zu of %d configs accepted, %zu of them remember\n", accepted, CONFIGS, remember);
    for (size_t i = 0; i < algorithms; i++) {
        print_message("%s: %zu\n", all[i]->name, of[i]);
        assert_true(of[i] > ACCEPTED_LEAST / algorithms);
    }
    assert_true(accepted > ACCEPTED_LEAST && remember > ACCEPTED_LEAST / REMEMBERING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_what_check_accepts_no_role_refuses)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
