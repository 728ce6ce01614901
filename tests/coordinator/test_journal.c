/*  journal: what comes back after a restart, after a kill in the middle of writing, and from a damaged file. */
#include "coordinator/journal.h"
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "tests/folder.h"
#include "tests/test.h"

typedef struct {
    char dir[FOLDER_MAX], path[128];
    journal_t *journal;
} place_t;

static int s_setup(void **state)
{
    place_t *place = tt_new0(sizeof *place);
    if (folder_make(place->dir, "journal") != 0)
        return -1;
    snprintf(place->path, sizeof place->path, "%s/journal.db", place->dir);
    *state = place;
    return 0;
}

static int s_teardown(void **state)
{
    place_t *place = *state;
    journal_close(&place->journal);
    const int code = folder_remove(place->dir);
    free(place);
    return code;
}

static void s_reopen(place_t *place)
{
    journal_close(&place->journal);
    assert_ok(journal_open(&place->journal, place->path));
}

static tt_status_t s_write_roster(journal_t *journal, uint64_t epoch)
{
    tt_rec_MEMBER_t members[] = {
        {.role = TT_PEER_LEARNER, .index = 1, .instance = UINT64_MAX - epoch, .rank = 0},
        {.role = TT_PEER_COLLECTOR, .index = 0, .instance = epoch, .env_count = 8},
    };
    char restore[] = "checkpoints/1.safetensors";
    const tt_msg_ROSTER_t roster = TT_MSG(ROSTER, .era = 2, .epoch = epoch, .generation = epoch / 2, .fresh = true,
        .restore = restore, .members = members, .members_count = TT_COUNT(members));
    return journal_roster(journal, &roster, 1);
}

static void test_a_new_journal_knows_nothing(void **state)
{
    place_t *place = *state;
    journal_past_t past;
    journal_snapshot_t snapshot;
    s_reopen(place);
    assert_ok(journal_load(place->journal, &past));
    assert_false(past.found);
    assert_int_equal(past.roster.epoch, 0);
    assert_int_equal(past.roster.member_count, 0);
    assert_int_equal(past.desired[TT_PEER_COLLECTOR], -1);
    assert_null(past.end);
    assert_int_equal(journal_find_snapshot(place->journal, "checkpoints/1.safetensors", &snapshot), TT_NOT_FOUND);
    journal_past_free(&past);
}

static void test_everything_comes_back(void **state)
{
    place_t *place = *state;
    journal_past_t past;
    s_reopen(place);
    assert_ok(journal_session(place->journal, 12345, "a boot", 64));
    assert_ok(s_write_roster(place->journal, 6));
    assert_ok(s_write_roster(place->journal, 7));
    assert_ok(journal_desired(place->journal, TT_PEER_COLLECTOR, 3));
    assert_ok(journal_first_step(place->journal, 20000));
    assert_ok(journal_solved(place->journal, 30000, 4096));
    s_reopen(place);
    assert_ok(journal_load(place->journal, &past));
    assert_true(past.found);
    assert_int_equal(past.start_ns, 12345);
    assert_string_equal(past.boot, "a boot");
    assert_int_equal(past.first_steps, 64);
    assert_int_equal(past.roster.era, 2);
    assert_int_equal(past.roster.epoch, 7);
    assert_int_equal(past.roster.generation, 3);
    assert_true(past.roster.fresh);
    assert_string_equal(past.roster.restore, "checkpoints/1.safetensors");
    assert_int_equal(past.roster.rolled_back, 1);
    assert_int_equal(past.roster.member_count, 2);
    assert_true(past.roster.members[0].instance == UINT64_MAX - 7);
    assert_int_equal(past.roster.members[0].role, TT_PEER_LEARNER);
    assert_int_equal(past.desired[TT_PEER_COLLECTOR], 3);
    assert_int_equal(past.desired[TT_PEER_LEARNER], -1);
    assert_int_equal(past.first_step_ns, 20000);
    assert_int_equal(past.solved_ns, 30000);
    assert_int_equal(past.solved_steps, 4096);
    assert_null(past.end);
    journal_past_free(&past);

    assert_ok(journal_count_from(place->journal, 4096, 40000)); /* a run that was another coordinator's until then */
    assert_ok(journal_load(place->journal, &past));
    assert_int_equal(past.first_steps, 4096);
    assert_int_equal(past.first_step_ns, 40000);
    journal_past_free(&past);
}

/*  Times of another clock go, and what was counted stays. */
static void test_a_clock_begins_anew(void **state)
{
    place_t *place = *state;
    journal_past_t past;
    s_reopen(place);
    assert_ok(journal_session(place->journal, 12345, "a boot", 64));
    assert_ok(journal_first_step(place->journal, 20000));
    assert_ok(journal_solved(place->journal, 30000, 4096));
    assert_ok(journal_clock(place->journal, 7, "another"));
    assert_ok(journal_load(place->journal, &past));
    assert_int_equal(past.start_ns, 7);
    assert_string_equal(past.boot, "another");
    assert_int_equal(past.first_step_ns, 0);
    assert_int_equal(past.solved_ns, 0);
    assert_int_equal(past.solved_steps, 4096);
    assert_int_equal(past.first_steps, 64);
    journal_past_free(&past);
}

static void test_a_roster_that_cannot_begin_is_not_fresh(void **state)
{
    place_t *place = *state;
    journal_past_t past;
    s_reopen(place);
    assert_ok(s_write_roster(place->journal, 6));
    assert_ok(journal_not_fresh(place->journal));
    assert_ok(journal_load(place->journal, &past));
    assert_int_equal(past.roster.epoch, 6);
    assert_false(past.roster.fresh);
    journal_past_free(&past);
}

static void test_a_new_session_forgets_the_end(void **state)
{
    place_t *place = *state;
    journal_past_t past;
    s_reopen(place);
    assert_ok(journal_session(place->journal, 1, "", 0));
    assert_ok(journal_solved(place->journal, 9, 64));
    assert_ok(journal_end(place->journal, "{\"reason\":\"return_mean\"}", 3));
    assert_ok(journal_load(place->journal, &past));
    assert_string_equal(past.end, "{\"reason\":\"return_mean\"}");
    assert_int_equal(past.end_code, 3);
    assert_true(past.roster.ended);
    journal_past_free(&past);
    assert_ok(journal_session(place->journal, 2, "", 100));
    assert_ok(journal_load(place->journal, &past));
    assert_null(past.end);
    assert_false(past.roster.ended);
    assert_int_equal(past.solved_ns, 0); /* a time of another process */
    assert_int_equal(past.solved_steps, 64);
    assert_ok(journal_unsolved(place->journal));
    journal_past_free(&past);
    assert_ok(journal_load(place->journal, &past));
    assert_int_equal(past.solved_steps, 0);
    journal_past_free(&past);
}

/*  Bring the log into the database, as SQLite does by itself when the log has grown. */
static void s_checkpoint(const char *path)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA journal_mode=DELETE", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void test_snapshots_are_found_by_their_path(void **state)
{
    place_t *place = *state;
    journal_snapshot_t snapshot = {.path = "a", .era = 1, .update = 10, .env_steps = 1000, .return_mean = 5.5}, found;
    s_reopen(place);
    assert_ok(journal_snapshot(place->journal, &snapshot));
    snprintf(snapshot.path, sizeof snapshot.path, "b");
    snapshot.update = 20;
    snapshot.return_mean = NAN;
    assert_ok(journal_snapshot(place->journal, &snapshot));
    assert_ok(journal_find_snapshot(place->journal, "a", &found));
    assert_int_equal(found.update, 10);
    assert_true(found.return_mean == 5.5);
    assert_ok(journal_find_snapshot(place->journal, "b", &found));
    assert_int_equal(found.update, 20);
    assert_true(isnan(found.return_mean));
    assert_int_equal(journal_find_snapshot(place->journal, "c", &found), TT_NOT_FOUND);
}

static bool s_count(void *ctx, const journal_snapshot_t *snapshot)
{
    (void)snapshot;
    ++*(int *)ctx;
    return true;
}

/*  Overwrite all of a file but its beginning. */
static void s_ruin(const char *path)
{
    char junk[4096];
    struct stat info;
    const int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &info), 0);
    memset(junk, 0xa5, sizeof junk);
    for (off_t at = 16384; at < info.st_size; at += (off_t)sizeof junk)
        assert_int_equal(pwrite(fd, junk, sizeof junk, at), sizeof junk);
    close(fd);
}

/*  A disk that fails while rows are read: that is no end of the rows. More of them than SQLite keeps in memory. */
static void test_an_error_is_not_the_end_of_the_rows(void **state)
{
    enum { ROWS = 2000 };
    place_t *place = *state;
    journal_snapshot_t snapshot = {.era = 1}, found;
    int count = 0;
    s_reopen(place);
    memset(snapshot.path, 'x', 3000);
    for (int i = 0; i < ROWS; i++) {
        snprintf(snapshot.path + 3000, 16, "%d", i);
        assert_ok(journal_snapshot(place->journal, &snapshot));
    }
    journal_close(&place->journal);
    s_checkpoint(place->path);
    s_reopen(place);
    assert_ok(journal_snapshots(place->journal, s_count, &count));
    assert_int_equal(count, ROWS);
    s_ruin(place->path);
    assert_int_equal(journal_snapshots(place->journal, s_count, &count), TT_DATA);
    assert_non_null(strstr(tt_err_text(), place->path));
    assert_int_equal(journal_find_snapshot(place->journal, "none", &found), TT_DATA);
}

static void test_old_rosters_are_dropped(void **state)
{
    place_t *place = *state;
    journal_past_t past;
    s_reopen(place);
    for (uint64_t epoch = 1; epoch <= 1100; epoch++)
        assert_ok(s_write_roster(place->journal, epoch));
    assert_ok(journal_load(place->journal, &past));
    assert_int_equal(past.roster.epoch, 1100);
    assert_int_equal(past.roster.member_count, 2);
    journal_past_free(&past);
}

/*  A child writes rosters and says each number once it is written; killed at any moment, none that was said is lost. */
static void s_write_until_killed(const char *path, int out)
{
    journal_t *journal = NULL;
    if (journal_open(&journal, path) != TT_OK)
        _exit(1);
    journal_past_t past;
    if (journal_load(journal, &past) != TT_OK)
        _exit(2);
    for (uint64_t epoch = past.roster.epoch + 1;; epoch++)
        if (s_write_roster(journal, epoch) != TT_OK || write(out, &epoch, sizeof epoch) != (ssize_t)sizeof epoch)
            _exit(3);
}

static void test_kill_9_while_writing_loses_nothing_that_was_told(void **state)
{
    place_t *place = *state;
    for (int round = 0; round < 5; round++) {
        int ends[2];
        assert_int_equal(pipe(ends), 0);
        const pid_t child = fork();
        if (child == 0) {
            close(ends[0]); /* so that it ends with us, whatever comes */
            s_write_until_killed(place->path, ends[1]);
        }
        close(ends[1]);
        uint64_t told = 0, epoch = 0;
        for (int i = 0; i < 20 + round * 7; i++)
            assert_int_equal(read(ends[0], &told, sizeof told), sizeof told);
        kill(child, SIGKILL);
        while (read(ends[0], &epoch, sizeof epoch) == (ssize_t)sizeof epoch)
            told = epoch;
        close(ends[0]);
        assert_int_equal(waitpid(child, NULL, 0), child);
        journal_past_t past;
        s_reopen(place);
        assert_ok(journal_load(place->journal, &past));
        assert_true(past.roster.epoch == told || past.roster.epoch == told + 1);
        assert_int_equal(past.roster.member_count, 2);
        journal_past_free(&past);
        journal_close(&place->journal);
    }
}

static void s_expect_data_error(place_t *place)
{
    journal_t *journal = NULL;
    assert_int_equal(journal_open(&journal, place->path), TT_DATA);
    assert_null(journal);
    assert_non_null(strstr(tt_err_text(), place->path));
    assert_non_null(strstr(tt_err_text(), "move it away"));
}

static void test_a_damaged_file_is_named(void **state)
{
    place_t *place = *state;
    FILE *file = fopen(place->path, "w");
    for (int i = 0; i < 1000; i++)
        fputs("this is not a database\n", file);
    fclose(file);
    s_expect_data_error(place);
}

static void test_a_page_overwritten_is_noticed(void **state)
{
    place_t *place = *state;
    s_reopen(place);
    for (uint64_t epoch = 1; epoch <= 200; epoch++)
        assert_ok(s_write_roster(place->journal, epoch));
    journal_close(&place->journal);
    s_checkpoint(place->path);
    const int fd = open(place->path, O_RDWR);
    char junk[4096];
    memset(junk, 0xa5, sizeof junk);
    assert_int_equal(pwrite(fd, junk, sizeof junk, 4096), sizeof junk);
    close(fd);
    s_expect_data_error(place);
}

static void s_change(place_t *place, const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(place->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/*  A number that is damaged inside a sound page: counting on from it would wrap around. */
static void test_a_number_that_cannot_be_is_noticed(void **state)
{
    place_t *place = *state;
    static const struct {
        const char *table, *bad, *good;
    } cases[] = {
        {"rosters", "UPDATE rosters SET era = 4294967295", "UPDATE rosters SET era = 2"},
        {"rosters", "UPDATE rosters SET epoch = -9223372036854775808", "UPDATE rosters SET epoch = 7"},
        {"rosters", "UPDATE rosters SET epoch = 9223372036854775807", "UPDATE rosters SET epoch = 7"},
        {"rosters", "UPDATE rosters SET generation = -1", "UPDATE rosters SET generation = 3"},
        {"rosters", "UPDATE rosters SET generation = 'x'", "UPDATE rosters SET generation = 3"},
        {"rosters", "UPDATE rosters SET rolled_back = NULL", "UPDATE rosters SET rolled_back = 0"},
        {"members", "UPDATE members SET role = -2147483648", "UPDATE members SET role = 2"},
        {"members", "UPDATE members SET number = 65536", "UPDATE members SET number = 1"},
        {"members", "UPDATE members SET rank = 1e9", "UPDATE members SET rank = 0"},
        {"facts", "UPDATE facts SET value = -9223372036854775808 WHERE key = 'start_ns'",
            "UPDATE facts SET value = 5 WHERE key = 'start_ns'"},
        {"facts", "INSERT OR REPLACE INTO facts VALUES('solved_ns', 9223372036854775807)",
            "INSERT OR REPLACE INTO facts VALUES('solved_ns', 1)"},
        {"facts", "INSERT OR REPLACE INTO facts VALUES('end_code', 256)",
            "INSERT OR REPLACE INTO facts VALUES('end_code', 255)"},
        {"snapshots", "UPDATE snapshots SET updates = -1", "UPDATE snapshots SET updates = 1"},
        {"snapshots", "UPDATE snapshots SET era = 1e300", "UPDATE snapshots SET era = 1"},
    };
    const journal_snapshot_t snapshot = {.path = "checkpoints/1.safetensors", .era = 1, .update = 1, .env_steps = 8};
    s_reopen(place);
    assert_ok(journal_session(place->journal, 5, "", 0));
    assert_ok(s_write_roster(place->journal, 7));
    assert_ok(journal_snapshot(place->journal, &snapshot));
    journal_close(&place->journal);
    for (size_t i = 0; i < TT_COUNT(cases); i++) {
        s_change(place, cases[i].bad);
        s_expect_data_error(place);
        assert_non_null(strstr(tt_err_text(), cases[i].table));
        s_change(place, cases[i].good);
        s_reopen(place);
        journal_close(&place->journal);
    }
}

static void test_a_foreign_database_is_refused(void **state)
{
    place_t *place = *state;
    char command[256];
    snprintf(command, sizeof command,
        "python3 -c \"import sqlite3; sqlite3.connect('%s').execute('CREATE TABLE t(x)')\"", place->path);
    if (system(command) != 0)
        skip();
    s_expect_data_error(place);
}

/*  SQLite says "disk I/O error" of whatever went wrong; what that was, the system says. */
static void test_what_the_system_refused_is_said(void **state)
{
    place_t *place = *state;
    struct rlimit usual, limit;
    tt_status_t status = TT_OK;
    s_reopen(place);
    assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &usual), 0);
    limit = (struct rlimit){.rlim_cur = 100000, .rlim_max = usual.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    for (uint64_t epoch = 1; epoch < 1000 && status == TT_OK; epoch++)
        status = s_write_roster(place->journal, epoch);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &usual), 0);
    assert_int_equal(status, TT_IO);
    assert_non_null(strstr(tt_err_text(), "journal.db"));
    assert_non_null(strstr(tt_err_text(), "File too large"));
}

/*  A path that SQLite takes at the most, and one that is a letter longer: no file system's limit, so the words say whose. */
static void test_a_path_too_long_for_sqlite(void **state)
{
    const place_t *place = *state;
    enum { MOST = 504, PART = 100 };
    char path[MOST + 2];
    size_t used = (size_t)snprintf(path, sizeof path, "%s", place->dir);
    while (used + PART + 20 < MOST) {
        memset(path + used, 'd', PART);
        path[used] = '/';
        path[used += PART] = '\0';
        assert_int_equal(mkdir(path, 0700), 0);
    }
    memset(path + used, 'j', sizeof path - used);
    path[used] = '/';
    path[MOST + 1] = '\0';
    journal_t *journal = NULL;
    assert_int_equal(journal_open(&journal, path), TT_INVALID);
    assert_string_equal(tt_err_text(),
        "the path of journal.db has 505 bytes, and SQLite takes 504: the run's directory needs a shorter one");
    path[MOST] = '\0';
    assert_ok(journal_open(&journal, path));
    journal_close(&journal);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_new_journal_knows_nothing, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_everything_comes_back, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_clock_begins_anew, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_roster_that_cannot_begin_is_not_fresh, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_new_session_forgets_the_end, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_snapshots_are_found_by_their_path, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_an_error_is_not_the_end_of_the_rows, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_old_rosters_are_dropped, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_kill_9_while_writing_loses_nothing_that_was_told, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_damaged_file_is_named, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_page_overwritten_is_noticed, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_number_that_cannot_be_is_noticed, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_foreign_database_is_refused, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_what_the_system_refused_is_said, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_path_too_long_for_sqlite, s_setup, s_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
