/*  Data sets: what may be registered, under which names; what is kept; that files are never touched; damaged and foreign registries. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "rig.h"
#include "task/dataset.h"

static tt_status_t s_join(void *ctx, const char *name)
{
    strcat(strcat(ctx, name), " ");
    return TT_OK;
}

static void s_folder_in_order(void **state)
{
    (void)state;
    TT_AUTO(store) store = NULL;
    dataset_t set;
    char names[512] = "";
    assert_ok(store_open(&store));
    rig_folder(rig_path("configs"), 12);
    assert_int_equal(mkdir(rig_path("configs/below"), 0755), 0);
    assert_int_equal(symlink("/etc/passwd", rig_path("configs/link")), 0);
    rig_write(rig_path("configs/.hidden"), "");
    assert_ok(dataset_add(store, rig_name("configs"), rig_path("configs")));
    store_destroy(&store);
    assert_ok(store_open(&store)); /* what was said lasts */
    assert_ok(dataset_find(store, rig_name("configs"), &set));
    assert_int_equal(set.files, 12);
    assert_true(set.folder);
    assert_ok(dataset_files(store, &set, s_join, names));
    assert_string_equal(names, "cfg0 cfg1 cfg2 cfg3 cfg4 cfg5 cfg6 cfg7 cfg8 cfg9 cfg10 cfg11 ");
    assert_ok(dataset_rm(store, set.name));
    assert_int_equal(dataset_find(store, set.name, &set), TT_NOT_FOUND);
    assert_int_equal(access(rig_path("configs/cfg3"), R_OK), 0); /* only forgotten */
}

static void s_refused(void **state)
{
    (void)state;
    TT_AUTO(store) store = NULL;
    char long_name[400];
    assert_ok(store_open(&store));
    rig_write(rig_path("data"), "x");
    const char *wrong[] = {"data", "user.", "user.nobody-else.data", rig_name(""), rig_name("a b"), rig_name("a/b"),
        rig_name("a;b"), rig_name("\xc3\xa4"), long_name};
    snprintf(long_name, sizeof long_name, "%s", rig_name("x"));
    memset(long_name + strlen(long_name), 'x', 250);
    for (size_t i = 0; i < TT_COUNT(wrong); i++)
        assert_int_equal(dataset_add(store, wrong[i], rig_path("data")), TT_USAGE);
    assert_int_equal(dataset_add(store, rig_name("x"), rig_path("missing")), TT_NOT_FOUND);
    assert_int_equal(dataset_add(store, rig_name("x"), "/dev/null"), TT_INVALID);
    assert_int_equal(mkdir(rig_path("empty"), 0755), 0);
    assert_int_equal(dataset_add(store, rig_name("x"), rig_path("empty")), TT_INVALID);
    rig_folder(rig_path("a b"), 1);
    assert_int_equal(dataset_add(store, rig_name("x"), rig_path("a b")), TT_INVALID);
    rig_folder(rig_path("names"), 1);
    rig_write(rig_path("names/$(id)"), "");
    assert_int_equal(dataset_add(store, rig_name("x"), rig_path("names")), TT_INVALID);
    assert_ok(dataset_add(store, rig_name("x"), rig_path("data")));
    assert_int_equal(dataset_add(store, rig_name("x"), rig_path("data")), TT_EXISTS);
    assert_int_equal(dataset_rm(store, rig_name("y")), TT_NOT_FOUND);
    assert_non_null(strstr(tt_err_text(), "did you mean"));
}

static tt_status_t s_half(void *ctx, store_t *store)
{
    (void)ctx;
    TT_TRY(store_run(store, "INSERT INTO facts VALUES('half', 1)", NULL, NULL, ""));
    return tt_err(TT_INVALID, "no");
}

static tt_status_t s_take(void *ctx, sqlite3_stmt *row)
{
    *(int64_t *)ctx = sqlite3_column_int64(row, 0);
    return TT_OK;
}

static void s_whole_or_not_at_all(void **state)
{
    (void)state;
    TT_AUTO(store) store = NULL;
    int64_t count = -1;
    assert_ok(store_open(&store));
    assert_int_equal(store_tx(store, s_half, NULL), TT_INVALID);
    assert_ok(store_run(store, "SELECT count(*) FROM facts", s_take, &count, ""));
    assert_int_equal(count, 0);
}

static void s_damaged(void **state)
{
    (void)state;
    TT_AUTO(store) store = NULL;
    assert_ok(store_open(&store));
    assert_ok(store_run(store, "PRAGMA user_version = 7", NULL, NULL, ""));
    store_destroy(&store);
    assert_int_equal(store_open(&store), TT_DATA);
    assert_non_null(strstr(tt_err_text(), "version 7"));
    rig_write(
        rig_path("tutti/tasks/tasks.db"), "this is no database, whatever it is called: not at all, it is a text\n");
    assert_int_equal(store_open(&store), TT_DATA);
    assert_int_equal(chmod(rig_path("tutti/tasks"), 0777), 0);
    assert_int_equal(store_open(&store), TT_DENIED);
}

static tt_status_t s_count(void *ctx, sqlite3_stmt *row)
{
    (void)row;
    ++*(int *)ctx;
    return TT_OK;
}

/*  All but the first page, in the middle of each of the rest. */
static void s_ruin(const char *path)
{
    static const char junk[64] = "nothing that SQLite has ever written";
    struct stat info;
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0 && fstat(fd, &info) == 0);
    for (off_t at = 4096 * 20; at < info.st_size; at += 4096)
        assert_int_equal(pwrite(fd, junk, sizeof junk, at), sizeof junk);
    close(fd);
}

/*  A step that fails is no end of the rows: tasks that are there would not be seen. */
static void s_an_error_is_not_the_end_of_the_rows(void **state)
{
    (void)state;
    enum { ROWS = 200 };
    store_t *store = NULL;
    char text[3001];
    int count = 0;
    assert_ok(store_open(&store));
    const char *sql = "SELECT abs(column1) FROM (VALUES(1), (2), (-9223372036854775807 - 1), (3))";
    assert_int_equal(store_run(store, sql, s_count, &count, ""), TT_IO);
    assert_int_equal(count, 2);
    assert_non_null(strstr(tt_err_text(), "tasks.db"));

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (int64_t i = 0; i < ROWS; i++)
        assert_ok(store_run(store, "INSERT INTO facts VALUES(?, ?)", NULL, NULL, "is", i, text));
    store_destroy(&store); /* the last one to close puts all into the file */
    s_ruin(rig_path("tutti/tasks/tasks.db"));
    assert_ok(store_open(&store));
    count = 0;
    assert_int_equal(store_run(store, "SELECT value FROM facts", s_count, &count, ""), TT_DATA);
    assert_true(count < ROWS);
    assert_non_null(strstr(tt_err_text(), "tasks.db"));
    store_destroy(&store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(s_folder_in_order, rig_set_up, rig_tear_down),
        cmocka_unit_test_setup_teardown(s_refused, rig_set_up, rig_tear_down),
        cmocka_unit_test_setup_teardown(s_whole_or_not_at_all, rig_set_up, rig_tear_down),
        cmocka_unit_test_setup_teardown(s_damaged, rig_set_up, rig_tear_down),
        cmocka_unit_test_setup_teardown(s_an_error_is_not_the_end_of_the_rows, rig_set_up, rig_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
