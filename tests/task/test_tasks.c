/*  Rows of tasks: which of them an engine has to look at, and how they go. */
#include "rig.h"
#include "task/place.h"
#include "task/tasks.h"

static tt_status_t s_add(store_t *store, const char *name, task_state_t state, job_state_t job)
{
    TT_TRY(store_run(store,
        "INSERT INTO tasks(name, username, dir, exec, output, gpu, state, bypass, testers, pass, retries, created)"
        " VALUES(?, 'me', '/nowhere', 'true', 'out', 0, ?, 0, 10, 80, 0, 0)",
        NULL, NULL, "ss", name, task_state_name(state)));
    return store_run(store, "INSERT INTO jobs(task, config_id, config, state) VALUES(?, 0, 'cfg0', ?)", NULL, NULL,
        "is", store_last_id(store), job_state_name(job));
}

static bool s_is_in(const task_list_t *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->tasks[i]->name, name) == 0)
            return true;
    return false;
}

/*  Every state of a task with every state of a job. */
static void s_living(void **state)
{
    (void)state;
    TT_AUTO(store) store = NULL;
    task_list_t living, all;
    char name[64];
    size_t expected = 0;
    assert_ok(store_open(&store));
    for (unsigned t = 0; t < TASK_STATES; t++)
        for (unsigned j = 0; j < JOB_STATES; j++) {
            snprintf(name, sizeof name, "task-%u-%u", t, j);
            assert_ok(s_add(store, name, (task_state_t)t, (job_state_t)j));
        }
    assert_ok(task_list_living(store, &living));
    for (unsigned t = 0; t < TASK_STATES; t++)
        for (unsigned j = 0; j < JOB_STATES; j++) {
            const bool wanted = !task_state_ended((task_state_t)t) || j == JOB_RUNNING || j == JOB_KILL;
            snprintf(name, sizeof name, "task-%u-%u", t, j);
            assert_int_equal(s_is_in(&living, name), wanted);
            expected += wanted;
        }
    assert_int_equal(living.count, expected);
    assert_ok(task_list_load(store, &all, NULL));
    assert_int_equal(all.count, TASK_STATES * JOB_STATES);
    task_list_free(&all);
    task_list_free(&living);
    assert_ok(task_list_load(store, &all, "task-3-1"));
    assert_int_equal(all.count, 1);
    task_list_free(&all);
    assert_int_equal(task_list_load(store, &all, "task-33-1"), TT_NOT_FOUND);
    assert_non_null(strstr(tt_err_text(), "did you mean 'task-3-1'?"));
}

static tt_status_t s_join(void *ctx, const char *name)
{
    strcat(strcat(ctx, name), " ");
    return TT_OK;
}

static void s_names(void **state)
{
    (void)state;
    TT_AUTO(store) store = NULL;
    char names[64] = "";
    assert_ok(store_open(&store));
    assert_ok(s_add(store, "b", TASK_DONE, JOB_DONE));
    assert_ok(s_add(store, "a", TASK_RUNNING, JOB_RUNNING));
    assert_ok(task_each_name(store, s_join, names));
    assert_string_equal(names, "b a ");
}

/*  Folders in folders, more of them than are removed. */
static void s_dig(const char *dir)
{
    char path[4096];
    size_t length = (size_t)snprintf(path, sizeof path, "%s/", dir);
    for (int depth = 0; depth < 300; depth++) {
        memcpy(path + length, "d/", 3);
        length += 2;
        assert_int_equal(mkdir(path, 0755), 0);
    }
}

/*  Back to what can be removed. */
static void s_fill(const char *dir)
{
    char path[4096];
    size_t length = (size_t)snprintf(path, sizeof path, "%s/", dir);
    for (int depth = 0; depth < 300; depth++, length += 2)
        memcpy(path + length, "d/", 3);
    for (int depth = 0; depth < 300; depth++, length -= 2) {
        path[length] = '\0';
        assert_int_equal(rmdir(path), 0);
    }
}

/*  While files are removed the store is anybody's, and nobody begins their task; what stays can be tried again. */
static void s_deleted(void **state)
{
    (void)state;
    TT_AUTO(store) store = NULL;
    TT_AUTO(store) other = NULL;
    task_list_t list;
    assert_ok(store_open(&store));
    assert_ok(store_open(&other));
    assert_ok(s_add(store, "a", TASK_FINALIZED, JOB_FAILED));
    assert_ok(store_run(store, "UPDATE tasks SET dir = ?", NULL, NULL, "s", rig_path("a")));
    assert_ok(place_make(rig_path("a"), "a", NULL, 0));
    s_dig(rig_path("a/logs"));
    assert_int_equal(task_delete(store, "a", true), TT_IO);
    assert_ok(task_list_load(other, &list, "a"));
    assert_int_equal(list.tasks[0]->states.state, TASK_REMOVING);
    task_list_free(&list);
    assert_int_equal(task_retry(other, "a"), TT_INVALID);
    s_fill(rig_path("a/logs"));
    assert_ok(task_delete(other, "a", true));
    assert_int_equal(access(rig_path("a"), F_OK), -1);
    assert_int_equal(task_delete(store, "a", true), TT_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(s_living, rig_set_up, rig_tear_down),
        cmocka_unit_test_setup_teardown(s_names, rig_set_up, rig_tear_down),
        cmocka_unit_test_setup_teardown(s_deleted, rig_set_up, rig_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
