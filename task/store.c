#include "task/store.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/file.h"
#include "common/base/home.h"
#include "common/base/mem.h"

enum { APPLICATION_ID = 0x74747431 /* "ttt1" */, SCHEMA_VERSION = 1, BUSY_MS = 10000 };

/*  Structure of our class */
struct store {
    sqlite3 *db;
    char folder[PATH_MAX];
    char path[PATH_MAX + 16];
};

static const char *const s_schema =
    "CREATE TABLE facts(key TEXT PRIMARY KEY, value) WITHOUT ROWID;"
    "CREATE TABLE datasets(id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, path TEXT NOT NULL, folder INTEGER NOT "
    "NULL,"
    "  added INTEGER NOT NULL);"
    "CREATE TABLE files(dataset INTEGER NOT NULL REFERENCES datasets(id) ON DELETE CASCADE, name TEXT NOT NULL,"
    "  PRIMARY KEY(dataset, name)) WITHOUT ROWID;"
    "CREATE TABLE tasks(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE NOT NULL, username TEXT NOT NULL, dir "
    "TEXT NOT NULL,"
    "  exec TEXT NOT NULL, output TEXT NOT NULL, image TEXT, gpu INTEGER NOT NULL, et INTEGER, eta INTEGER,"
    "  state TEXT NOT NULL, bypass INTEGER NOT NULL, testers INTEGER NOT NULL, pass INTEGER NOT NULL, retries INTEGER "
    "NOT NULL,"
    "  created INTEGER NOT NULL);"
    "CREATE TABLE uses(task INTEGER NOT NULL REFERENCES tasks(id) ON DELETE CASCADE, dataset TEXT NOT NULL, key TEXT "
    "NOT NULL,"
    "  PRIMARY KEY(task, key)) WITHOUT ROWID;"
    "CREATE TABLE jobs(id INTEGER PRIMARY KEY AUTOINCREMENT, task INTEGER NOT NULL REFERENCES tasks(id) ON DELETE "
    "CASCADE,"
    "  config_id INTEGER NOT NULL, config TEXT NOT NULL, state TEXT NOT NULL,"
    "  tried INTEGER NOT NULL DEFAULT 0, attempt INTEGER NOT NULL DEFAULT 0, slot TEXT, exit_code INTEGER, reason TEXT,"
    "  started INTEGER, ended INTEGER, UNIQUE(task, config_id));"
    "CREATE INDEX jobs_by_state ON jobs(state);";

/* ---- SQLite, with our errors --------------------------------------------------------------------------------------- */

static tt_status_t s_fail(const store_t *self)
{
    const int code = sqlite3_errcode(self->db) & 0xff;
    const char *text = sqlite3_errmsg(self->db);
    if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT)
        return tt_err(TT_DATA, "%s: damaged, or no registry of tasks (%s); move it away, with its -wal, to begin anew",
            self->path, text);
    if (code == SQLITE_BUSY || code == SQLITE_LOCKED)
        return tt_err(
            TT_EXISTS, "%s: another process has held it for %d s (%s); try again", self->path, BUSY_MS / 1000, text);
    if (code == SQLITE_FULL)
        return tt_err(TT_IO, "%s: the disk is full; make room and try again", self->path);
    return tt_err(TT_IO, "%s: %s", self->path, text);
}

static tt_status_t s_ok(const store_t *self, int code)
{
    return code == SQLITE_OK ? TT_OK : s_fail(self);
}

static tt_status_t s_exec(store_t *self, const char *sql)
{
    return s_ok(self, sqlite3_exec(self->db, sql, NULL, NULL, NULL));
}

static tt_status_t s_bind(store_t *self, sqlite3_stmt *statement, const char *types, va_list values)
{
    for (int at = 1; *types; types++, at++) {
        TT_CHECK(*types == 'i' || *types == 's');
        if (*types == 'i')
            TT_TRY(s_ok(self, sqlite3_bind_int64(statement, at, va_arg(values, int64_t))));
        else
            TT_TRY(s_ok(self, sqlite3_bind_text(statement, at, va_arg(values, const char *), -1, SQLITE_TRANSIENT)));
    }
    return TT_OK;
}

static tt_status_t s_rows(store_t *self, sqlite3_stmt *statement, store_row_fn fn, void *ctx)
{
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW)
        if (fn)
            TT_TRY(fn(ctx, statement));
    return code == SQLITE_DONE ? TT_OK : s_fail(self);
}

tt_status_t store_run(store_t *self, const char *sql, store_row_fn fn, void *ctx, const char *types, ...)
{
    sqlite3_stmt *statement = NULL;
    TT_TRY(s_ok(self, sqlite3_prepare_v2(self->db, sql, -1, &statement, NULL)));
    va_list values;
    va_start(values, types);
    tt_status_t status = s_bind(self, statement, types, values);
    va_end(values);
    if (status == TT_OK)
        status = s_rows(self, statement, fn, ctx);
    (void)sqlite3_finalize(statement); /* what it returns is that again */
    return status;
}

int64_t store_last_id(const store_t *self)
{
    return sqlite3_last_insert_rowid(self->db);
}

const char *store_text(sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    return text ? text : "";
}

static tt_status_t s_take_number(void *ctx, sqlite3_stmt *row)
{
    *(int64_t *)ctx = sqlite3_column_int64(row, 0);
    return TT_OK;
}

tt_status_t store_version(store_t *self, int64_t *out)
{
    return store_run(self, "PRAGMA data_version", s_take_number, out, "");
}

static tt_status_t s_take_word(void *ctx, sqlite3_stmt *row)
{
    snprintf(ctx, STORE_WORD, "%.16s", store_text(row, 0));
    return TT_OK;
}

tt_status_t store_word(store_t *self, char out[STORE_WORD])
{
    TT_TRY(store_run(self, "INSERT OR IGNORE INTO facts VALUES('word', lower(hex(randomblob(8))))", NULL, NULL, ""));
    return store_run(self, "SELECT value FROM facts WHERE key = 'word'", s_take_word, out, "");
}

tt_status_t store_tx(store_t *self, tt_status_t (*fn)(void *ctx, store_t *store), void *ctx)
{
    TT_TRY(s_exec(self, "BEGIN IMMEDIATE"));
    tt_status_t status = fn(ctx, self);
    if (status == TT_OK)
        status = s_exec(self, "COMMIT");
    if (status != TT_OK && !sqlite3_get_autocommit(self->db)) /* some errors have rolled back already */
        (void)sqlite3_exec(self->db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

/* ---- life ---------------------------------------------------------------------------------------------------------- */

/*  Not in /tmp, where runs of who has no home have their names: tasks would be gone with the next boot. */
static tt_status_t s_find_folder(store_t *self)
{
    TT_TRY(tt_home_state(self->folder, sizeof self->folder, "tasks", NULL));
    const tt_status_t status = tt_file_make_path(self->folder, 0700);
    if (status != TT_OK)
        return tt_err_wrap(status, "no registry of tasks (XDG_STATE_HOME chooses another place)");
    snprintf(self->path, sizeof self->path, "%s/tasks.db", self->folder);
    return TT_OK;
}

/*  What lies there decides which commands run: a folder that somebody else may write to is not believed. */
static tt_status_t s_check_folder(const store_t *self)
{
    struct stat info;
    if (stat(self->folder, &info) != 0)
        return tt_err_errno(TT_IO, "%s", self->folder);
    if (info.st_uid == geteuid() && !(info.st_mode & 022))
        return TT_OK;
    return tt_err(TT_DENIED, "%s belongs to another user, or others may write to it; set XDG_STATE_HOME", self->folder);
}

/*  Of two processes that come first, the second finds the tables made. */
static tt_status_t s_create(void *ctx, store_t *self)
{
    (void)ctx;
    int64_t tables = 0;
    TT_TRY(store_run(self, "SELECT count(*) FROM sqlite_master", s_take_number, &tables, ""));
    if (tables > 0)
        return TT_OK;
    TT_TRY(s_exec(self, s_schema));
    char sql[128];
    snprintf(sql, sizeof sql, "PRAGMA application_id=%d; PRAGMA user_version=%d", APPLICATION_ID, SCHEMA_VERSION);
    return s_exec(self, sql);
}

static tt_status_t s_check(store_t *self)
{
    int64_t id = 0, version = 0;
    TT_TRY(store_run(self, "PRAGMA application_id", s_take_number, &id, ""));
    if (id != APPLICATION_ID)
        return tt_err(TT_DATA, "%s: a database, but no registry of tasks; move it away", self->path);
    TT_TRY(store_run(self, "PRAGMA user_version", s_take_number, &version, ""));
    if (version != SCHEMA_VERSION)
        return tt_err(TT_DATA, "%s: of version %lld, and this tutti reads version %d; use the tutti that made it",
            self->path, (long long)version, SCHEMA_VERSION);
    return TT_OK;
}

static tt_status_t s_open(store_t *self)
{
    TT_TRY(s_find_folder(self));
    TT_TRY(s_check_folder(self));
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW;
    char folder[PATH_MAX];
    if (!realpath(self->folder, folder)) /* SQLITE_OPEN_NOFOLLOW minds links on the way, too */
        return tt_err_errno(TT_IO, "%s", self->folder);
    snprintf(self->folder, sizeof self->folder, "%s", folder);
    snprintf(self->path, sizeof self->path, "%s/tasks.db", self->folder);
    if (sqlite3_open_v2(self->path, &self->db, flags, NULL) != SQLITE_OK)
        return s_fail(self);
    TT_TRY(s_ok(self, sqlite3_extended_result_codes(self->db, 1)));
    TT_TRY(s_ok(self, sqlite3_busy_timeout(self->db, BUSY_MS)));
    TT_TRY(s_exec(self, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;"));
    TT_TRY(store_tx(self, s_create, NULL));
    return s_check(self);
}

tt_status_t store_open(store_t **self_p)
{
    store_t *self = tt_new0(sizeof *self);
    const tt_status_t status = s_open(self);
    if (status != TT_OK) {
        store_destroy(&self);
        return status;
    }
    *self_p = self;
    return TT_OK;
}

void store_destroy(store_t **self_p)
{
    if (*self_p)
        (void)sqlite3_close_v2((*self_p)->db);
    free(*self_p);
    *self_p = NULL;
}

const char *store_folder(const store_t *self)
{
    return self->folder;
}
