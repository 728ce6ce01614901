/*  Environments from shared objects: the example of the guide, and one object for each way to misbehave. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "collector/registry.h"
#include "tests/collector/load.h"
#include "tests/collector/range.h"

static const tt_env_ops_t *find(const char *name)
{
    char path[512];
    const tt_env_ops_t *ops = NULL;
    snprintf(path, sizeof path, PLUGINS "%s.so", name);
    assert_ok(tt_env_find(&ops, path));
    return ops;
}

/*  --- the good ones --- */

static void test_the_example_runs(void **state)
{
    (void)state;
    const tt_env_ops_t *ops = find("drift");
    assert_string_equal(ops->id, "Drift-v0");
    assert_ptr_equal(find("drift"), ops); /* loaded once */
    float rudder[4] = {0, 0.5f, -0.5f, 9}, reward[4];
    uint8_t terminated[4], truncated[4];
    unsigned ended = 0, cut = 0;
    char bytes[256];
    assert_true(tt_vec_save_size(ops, 1) > 0 && tt_vec_save_size(ops, 1) <= sizeof bytes);
    RANGE range = range_open(ops, 3, 0, 4);
    RANGE moved = range_open(ops, 3, 1, 1);
    for (int t = 0; t < 1000; t++) {
        assert_ok(range_step(&range, rudder, reward, terminated, truncated));
        ended += terminated[1];
        cut += truncated[0];
    }
    assert_true(ended > 0 && cut > 0);
    tt_vec_save(range.vec, 1, bytes);
    assert_ok(vec_load(moved.vec, 0, bytes));
    for (int t = 0; t < 300; t++) { /* gusts and all */
        assert_ok(range_step(&range, rudder, reward, terminated, truncated));
        assert_ok(range_step(&moved, rudder + 1, reward, terminated, truncated));
        assert_memory_equal(range_obs(&moved), range_obs(&range) + 2, 2 * sizeof(float));
    }
}

/*  --- Connect Four: by a reading of the whole board, after each step --- */

enum { ROWS = 6, COLUMNS = 7 };

static bool has_four(uint8_t board[ROWS][COLUMNS])
{
    static const int lines[4][2] = {{0, 1}, {1, 0}, {1, 1}, {1, -1}};
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLUMNS; c++)
            for (int i = 0; i < 4; i++) {
                int count = 0;
                for (int k = 0; k < 4; k++) {
                    const int row = r + k * lines[i][0], column = c + k * lines[i][1];
                    count += row < ROWS && column >= 0 && column < COLUMNS && board[row][column];
                }
                if (count == 4)
                    return true;
            }
    return false;
}

/*  Mine and theirs alternate, lie on one another, and the mask is what is not full. Returns how many there are. */
static int check_board(uint8_t board[2][ROWS][COLUMNS], const float *heights, const uint8_t *mask)
{
    int mine = 0, theirs = 0;
    for (int c = 0; c < COLUMNS; c++) {
        int height = 0;
        for (int r = 0; r < ROWS; r++) {
            assert_true(board[0][r][c] + board[1][r][c] <= 1);
            if (board[0][r][c] + board[1][r][c] == 1)
                assert_int_equal(r, height++);
            mine += board[0][r][c];
            theirs += board[1][r][c];
        }
        assert_true(heights[c] == (float)height / ROWS && mask[c] == (height < ROWS));
    }
    assert_in_range(theirs - mine + 1, 0, 2);
    return mine + theirs;
}

static uint32_t count_up(tt_env_rng_t *rng)
{
    rng->seed = rng->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(rng->seed >> 32);
}

static void test_the_game_keeps_its_rules(void **state)
{
    (void)state;
    const tt_env_ops_t *ops = find("four");
    uint8_t board[2][ROWS][COLUMNS], mask[COLUMNS];
    float heights[COLUMNS];
    void *obs[2] = {board, heights};
    void *env = calloc(1, ops->state_size);
    tt_env_rng_t rng = {.next = count_up, .seed = 3};
    int ends[3] = {0}; /* lost, drawn, won */
    assert_null(ops->init(env, NULL));
    for (int game = 0; game < 3000; game++) {
        tt_env_out_t out = {.obs = obs, .mask = mask};
        ops->reset(env, &rng, &out);
        assert_in_range(check_board(board, heights, mask), 0, 1);
        while (!out.terminated) {
            int32_t column = (int32_t)(count_up(&rng) % COLUMNS);
            while (!mask[column])
                column = (column + 1) % COLUMNS;
            const void *action = &column;
            ops->step(env, &action, &rng, &out);
            const int discs = check_board(board, heights, mask);
            const bool won = has_four(board[0]), lost = has_four(board[1]);
            assert_true(out.reward == won - lost && !(won && lost));
            assert_int_equal(out.terminated, won || lost || discs == ROWS * COLUMNS);
        }
        ends[1 + (int)out.reward]++;
    }
    assert_true(ends[0] > ends[2] && ends[2] > 100); /* its opponent sees some threats, ours none */
    free(env);
}

static void test_what_init_made_is_saved_by_its_own_save(void **state)
{
    (void)state;
    const tt_env_ops_t *ops = find("bad_own_save");
    int32_t action[2] = {1, 0};
    float reward[2];
    uint8_t terminated[2], truncated[2];
    char bytes[128] = {0};
    RANGE a = range_open(ops, 1, 0, 2);
    RANGE b = range_open(ops, 1, 0, 1);
    for (int t = 0; t < 7; t++)
        assert_ok(range_step(&a, action, reward, terminated, truncated));
    tt_vec_save(a.vec, 0, bytes);
    assert_ok(vec_load(b.vec, 0, bytes));
    for (int t = 0; t < 7; t++) {
        assert_ok(range_step(&a, action, reward, terminated, truncated));
        assert_ok(range_step(&b, action, reward, terminated, truncated));
        assert_memory_equal(range_obs(&a), range_obs(&b), sizeof(float));
    }
    memcpy(bytes + tt_vec_save_size(ops, 1) - sizeof(float), &(float){NAN}, sizeof(float));
    assert_int_equal(vec_load(b.vec, 0, bytes), TT_DATA); /* its own load refuses */
    assert_non_null(strstr(tt_err_text(), "Bad-v0: load refused"));
    assert_int_equal(tt_vec_save_size(find("bad_nan_in_step"), 1), 0); /* init without save: cannot be moved */
}

/*  A batch comes out of a shared object as ordinary envs do, and is cut by its table's limit. */
static void test_a_batch_runs(void **state)
{
    (void)state;
    int32_t action[2] = {0, 1};
    float reward[2];
    uint8_t terminated[2], truncated[2];
    RANGE range = range_open(find("batch_good"), 1, 0, 2);
    for (int t = 1; t <= 7; t++) {
        assert_int_equal(range_step(&range, action, reward, terminated, truncated), TT_OK);
        assert_int_equal(truncated[1], t % 3 == 0);
        assert_true(range_obs(&range)[1] == (float)(t % 3));
    }
}

/*  --- refused when loaded --- */

static void refused(const char *name, const char *words)
{
    char path[512];
    const tt_env_ops_t *ops = NULL;
    snprintf(path, sizeof path, PLUGINS "%s.so", name);
    assert_int_equal(tt_env_find(&ops, path), TT_INVALID);
    assert_null(ops);
    if (!strstr(tt_err_text(), name) || !strstr(tt_err_text(), words))
        fail_msg("'%s' names not %s and '%s'", tt_err_text(), name, words);
}

static void test_what_is_no_env_of_ours_is_refused(void **state)
{
    (void)state;
    refused("bad_no_entry", "exports no function tutti_env()");
    refused("bad_null_table", "returned NULL");
    refused("bad_other_abi", "env ABI 3, this is ABI 2");
    refused("bad_first_abi",
        "abi 1: it was built against an older collector/env.h. In ABI 2 reset and step take tt_env_out_t");
    refused("bad_first_abi", "docs/guide/add-an-env.md");
    refused("bad_no_id", "id must be");
    refused("bad_oversize", "obs: has more than 1048576 elements");
    refused("bad_bounds_crossed", "obs: low[0] = -1e+09 is not below high[0] = -2e+09");
    refused("bad_choices_absent", "action: n must point to");
    refused("bad_key_twice", "obs: the key \"left\" is there twice");
    refused("bad_mask_alone", "mask: 0 choices in an action");
    refused("bad_options_alone", "options are set without init");
    refused("bad_plain_fini", "plain is set, but there is a fini");
    refused("bad_save_alone", "save and load");
    refused("batch_send_absent", "open, send, recv and close of a batch must not be NULL");
    refused("batch_step_too", "the functions for one env must be NULL");
    refused("batch_save_alone", "save and load");
    refused("batch_state_large", "save_size is 8388609");
    const tt_env_ops_t *ops = NULL;
    assert_int_equal(tt_env_find(&ops, TT_SOURCE_DIR "/README.md"), TT_INVALID); /* no object at all */
    assert_int_equal(tt_env_find(&ops, "nothing.so"), TT_NOT_FOUND);             /* here, not in the system */
    assert_non_null(strstr(tt_err_text(), "./nothing.so: No such file"));
}

/*  --- found out when moved --- */

/*  Two envs of a plug-in, which fail when they are made. */
static void fails(const char *name, const tt_env_arg_t *args, const char *words)
{
    RANGE range = {0};
    assert_int_equal(range_try(&range, find(name), args, (tt_vec_cfg_t){.seed = 1, .count = 2}), TT_INTERNAL);
    if (!strstr(tt_err_text(), words))
        fail_msg("'%s' lacks '%s'", tt_err_text(), words);
}

static void test_numbers_that_are_none_are_found_out(void **state)
{
    (void)state;
    int32_t action[2] = {0, 1};
    float reward[2];
    uint8_t terminated[2], truncated[2];
    static const tt_env_arg_t told[] = {{"fail", "as told"}, {0}};
    fails("bad_init_fails", NULL, "Bad-v0: init of env 0 failed: no simulator at localhost");
    fails("bad_own_save", told, "Bad-v0: init of env 0 failed: as told");
    fails("bad_nan_in_reset", NULL, "Bad-v0: observation[0]");
    RANGE step = range_open(find("bad_nan_in_step"), 1, 0, 2);
    assert_int_equal(range_step(&step, action, reward, terminated, truncated), TT_INTERNAL);
    assert_non_null(strstr(tt_err_text(), "Bad-v0: observation[0] of env 0"));
    RANGE forgotten = range_open(find("bad_reward_forgotten"), 1, 0, 2);
    assert_int_equal(range_step(&forgotten, action, reward, terminated, truncated), TT_INTERNAL);
    assert_non_null(strstr(tt_err_text(), "Bad-v0: reward"));
}

/*  --- those that take the process with them: in a process of its own, because cmocka catches signals, too --- */

static void live_and_die(const char *path)
{
    const tt_env_ops_t *ops = NULL;
    range_t range;
    int32_t action[1] = {0};
    float reward[1];
    uint8_t terminated[1], truncated[1];
    if (tt_env_find(&ops, path) == TT_OK &&
        range_try(&range, ops, NULL, (tt_vec_cfg_t){.seed = 1, .count = 1}) == TT_OK)
        (void)range_step(&range, action, reward, terminated, truncated);
    _exit(0); /* not reached by those that crash */
}

enum { SAID = 4096 };

/*  What it said at its end, which is that of an env that fails. */
static void s_end(const char *name, char said[SAID])
{
    char path[512];
    int pipe_fd[2], status;
    memset(said, 0, SAID);
    snprintf(path, sizeof path, PLUGINS "%s.so", name);
    assert_int_equal(pipe(pipe_fd), 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(pipe_fd[1], STDERR_FILENO);
        execl("/proc/self/exe", "test_collector_plugin", path, (char *)NULL);
        _exit(127);
    }
    close(pipe_fd[1]);
    for (size_t used = 0; used < SAID - 1;) {
        const ssize_t n = read(pipe_fd[0], said + used, SAID - 1 - used);
        if (n <= 0)
            break;
        used += (size_t)n;
    }
    close(pipe_fd[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 70)
        fail_msg("%s: status %x, said '%s'", name, (unsigned)status, said);
}

static void dies(const char *name, const char *words)
{
    char said[SAID];
    s_end(name, said);
    if (!strstr(said, words))
        fail_msg("%s: said '%s'", name, said);
}

/*  `who` does, in `step`. A slow machine may take as long for one of the steps before it, where that is named rightly. */
static void hangs(const char *name, const char *who, const char *step)
{
    static const char *const before[] = {"its constructors", "tutti_env()"};
    char said[SAID], words[256], earlier[256];
    snprintf(words, sizeof words, "%s did not come back from %s within 1 s", who, step);
    for (;;) {
        bool slow = false;
        s_end(name, said);
        for (size_t i = 0; i < TT_COUNT(before) && strcmp(before[i], step) != 0; i++) {
            snprintf(earlier, sizeof earlier, " did not come back from %s within 1 s", before[i]);
            slow |= strstr(said, earlier) != NULL;
        }
        if (slow)
            continue;
        if (!strstr(said, words))
            fail_msg("%s: said '%s'", name, said);
        return;
    }
}

static void test_one_that_crashes_is_named(void **state)
{
    (void)state;
    dies("bad_crash_in_load", "bad_crash_in_load.so crashed in its constructors (SIGSEGV");
    dies("bad_crash_in_init", "env Bad-v0 crashed in init (SIGSEGV");
    dies("bad_crash_in_step", "env Bad-v0 crashed in step (SIGSEGV");
    dies("bad_abort_in_reset", "env Bad-v0 crashed in reset (SIGABRT");
    dies("bad_exit_in_step", "env Bad-v0 called exit() in step");
    dies("bad_overflow_stack", "env Bad-v0 crashed in step (SIGSEGV");
    dies("batch_crash_in_open", "env Batch-v0 crashed in open (SIGSEGV");
    dies("batch_crash_in_send", "env Batch-v0 crashed in step (SIGSEGV");
}

/*  One that never comes back from the beginning of its life is named as well, and ends. */
static void test_one_that_hangs_is_named(void **state)
{
    (void)state;
    assert_int_equal(setenv("TT_ENV_START_S", "1", 1), 0);
    hangs("bad_hang_in_load", "bad_hang_in_load.so", "its constructors");
    hangs("bad_hang_in_entry", "bad_hang_in_entry.so", "tutti_env()");
    hangs("bad_hang_in_init", "env Bad-v0", "init");
    hangs("batch_hang_in_open", "env Batch-v0", "open");
    assert_int_equal(unsetenv("TT_ENV_START_S"), 0);
}

/*  Outside of an env's code a signal keeps its meaning. */
static void test_other_crashes_stay_what_they_were(void **state)
{
    (void)state;
    int status;
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        execl("/proc/self/exe", "test_collector_plugin", PLUGINS "drift.so", "abort", (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

int main(int argc, char **argv)
{
    if (argc == 2)
        live_and_die(argv[1]);
    if (argc == 3) {
        find("drift"); /* arms the guard */
        abort();
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_example_runs),
        cmocka_unit_test(test_a_batch_runs),
        cmocka_unit_test(test_the_game_keeps_its_rules),
        cmocka_unit_test(test_what_init_made_is_saved_by_its_own_save),
        cmocka_unit_test(test_what_is_no_env_of_ours_is_refused),
        cmocka_unit_test(test_numbers_that_are_none_are_found_out),
        cmocka_unit_test(test_one_that_crashes_is_named),
        cmocka_unit_test(test_one_that_hangs_is_named),
        cmocka_unit_test(test_other_crashes_stay_what_they_were),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
