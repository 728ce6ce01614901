#define TT_LOG_COMPONENT "journal"
#include "coordinator/journal.h"
#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/log.h"
#include "common/base/mem.h"

#define MOVE_AWAY \
    "move it away, with its -wal, and `tutti resume` goes on from the newest snapshot in checkpoints/ that is whole"

enum { APPLICATION_ID = 0x74746a31 /* "ttj1" */, ROSTERS_MAX = 1000 };

/*  Structure of our class */
struct journal {
    sqlite3 *db;
    char *path;
};

static const char *const s_schema =
    "CREATE TABLE facts(key TEXT PRIMARY KEY, value) WITHOUT ROWID;"
    "CREATE TABLE rosters(epoch INTEGER PRIMARY KEY, era INTEGER, generation INTEGER, fresh INTEGER, restore TEXT,"
    "  rolled_back INTEGER);"
    "CREATE TABLE members(epoch INTEGER, role INTEGER, number INTEGER, instance INTEGER, rank INTEGER,"
    "  env_lo INTEGER, env_count INTEGER);"
    "CREATE INDEX members_by_epoch ON members(epoch);"
    "CREATE TABLE snapshots(id INTEGER PRIMARY KEY, path TEXT UNIQUE, era INTEGER, updates INTEGER, env_steps INTEGER,"
    "  return_mean REAL);";

/* ---- SQLite, with our errors --------------------------------------------------------------------------------------- */

/*  What SQLite leaves out of "disk I/O error", and does not keep either when it was the WAL; errno has it still. Of errors that
 *  only a file's write can have left there; NULL: none of them. */
static const char *s_refusal(void)
{
    return errno == EFBIG || errno == EDQUOT || errno == EROFS || errno == EIO ? strerror(errno) : NULL;
}

static tt_status_t s_fail(const journal_t *self)
{
    const int code = sqlite3_errcode(self->db) & 0xff;
    const char *text = sqlite3_errmsg(self->db);
    if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT)
        return tt_err(TT_DATA, "%s: damaged, or not a journal of tutti (%s); " MOVE_AWAY, self->path, text);
    if (code == SQLITE_BUSY || code == SQLITE_LOCKED)
        return tt_err(TT_EXISTS, "%s: in use by another process (%s)", self->path, text);
    if (code == SQLITE_FULL)
        return tt_err(TT_IO, "%s: the disk is full; make room, then `tutti resume` goes on", self->path);
    const char *why = code == SQLITE_IOERR ? s_refusal() : NULL;
    return tt_err(TT_IO, "%s: %s%s%s", self->path, text, why ? ": " : "", why ? why : "");
}

static tt_status_t s_ok(const journal_t *self, int code)
{
    return code == SQLITE_OK ? TT_OK : s_fail(self);
}

static tt_status_t s_exec(journal_t *self, const char *sql)
{
    return s_ok(self, sqlite3_exec(self->db, sql, NULL, NULL, NULL));
}

static tt_status_t s_prepare(journal_t *self, const char *sql, sqlite3_stmt **out)
{
    return s_ok(self, sqlite3_prepare_v2(self->db, sql, -1, out, NULL));
}

/*  The next row, if there is one: *row. An error is not the same as no more rows. */
static tt_status_t s_step(journal_t *self, sqlite3_stmt *statement, bool *row)
{
    const int code = sqlite3_step(statement);
    *row = code == SQLITE_ROW;
    return *row || code == SQLITE_DONE ? TT_OK : s_fail(self);
}

/*  Free it; `status` is what became of it. What finalize returns is that again. */
static tt_status_t s_close(sqlite3_stmt *statement, tt_status_t status)
{
    (void)sqlite3_finalize(statement);
    return status;
}

typedef tt_status_t (*row_fn)(void *ctx, sqlite3_stmt *row, bool *more);

/*  Call fn for each row, until it sets *more to false; then free the statement. */
static tt_status_t s_each(journal_t *self, sqlite3_stmt *statement, row_fn fn, void *ctx)
{
    bool row = true, more = true;
    tt_status_t status = TT_OK;
    while (status == TT_OK && more) {
        status = s_step(self, statement, &row);
        if (status != TT_OK || !row)
            break;
        status = fn(ctx, statement, &more);
    }
    return s_close(statement, status);
}

static tt_status_t s_skip(void *ctx, sqlite3_stmt *row, bool *more)
{
    (void)ctx;
    (void)row;
    (void)more;
    return TT_OK;
}

/*  Run a statement whose values were bound (`bound`: how that went) to its end, and free it. */
static tt_status_t s_finish(journal_t *self, sqlite3_stmt *statement, tt_status_t bound)
{
    return bound == TT_OK ? s_each(self, statement, s_skip, NULL) : s_close(statement, bound);
}

static tt_status_t s_bind_text(journal_t *self, sqlite3_stmt *statement, int at, const char *text)
{
    return s_ok(self, sqlite3_bind_text(statement, at, text, -1, SQLITE_STATIC));
}

/*  Values at..at + count - 1, all integers. */
static tt_status_t s_bind(journal_t *self, sqlite3_stmt *statement, int at, const int64_t *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        TT_TRY(s_ok(self, sqlite3_bind_int64(statement, at + (int)i, values[i])));
    return TT_OK;
}

/*  The values of one row, all integers. */
static tt_status_t s_insert(journal_t *self, const char *sql, const int64_t *values, size_t count)
{
    sqlite3_stmt *statement = NULL;
    TT_TRY(s_prepare(self, sql, &statement));
    return s_finish(self, statement, s_bind(self, statement, 1, values, count));
}

static const char *const s_put_sql = "INSERT OR REPLACE INTO facts VALUES(?, ?)";

static tt_status_t s_put_text(journal_t *self, const char *key, const char *value)
{
    sqlite3_stmt *statement = NULL;
    TT_TRY(s_prepare(self, s_put_sql, &statement));
    tt_status_t status = s_bind_text(self, statement, 1, key);
    if (status == TT_OK)
        status = s_bind_text(self, statement, 2, value);
    return s_finish(self, statement, status);
}

static tt_status_t s_put(journal_t *self, const char *key, int64_t value)
{
    sqlite3_stmt *statement = NULL;
    TT_TRY(s_prepare(self, s_put_sql, &statement));
    tt_status_t status = s_bind_text(self, statement, 1, key);
    if (status == TT_OK)
        status = s_bind(self, statement, 2, &value, 1);
    return s_finish(self, statement, status);
}

static tt_status_t s_take_number(void *ctx, sqlite3_stmt *row, bool *more)
{
    *(int64_t *)ctx = sqlite3_column_int64(row, 0);
    *more = false;
    return TT_OK;
}

/*  *out stays as it is when there is no row. */
static tt_status_t s_number(journal_t *self, const char *sql, int64_t *out)
{
    sqlite3_stmt *statement = NULL;
    TT_TRY(s_prepare(self, sql, &statement));
    return s_each(self, statement, s_take_number, out);
}

/* ---- life ---------------------------------------------------------------------------------------------------------- */

static tt_status_t s_create(journal_t *self)
{
    /* Nothing is there that a power failure could damage: no need to wait for the disk before the run has begun. */
    TT_TRY(s_exec(self, "PRAGMA synchronous=OFF; PRAGMA journal_mode=WAL;"));
    char sql[2048];
    snprintf(sql, sizeof sql, "BEGIN; %s PRAGMA application_id=%d; COMMIT;", s_schema, APPLICATION_ID);
    return s_exec(self, sql);
}

static tt_status_t s_check(journal_t *self)
{
    int64_t id = 0;
    TT_TRY(s_number(self, "PRAGMA application_id", &id));
    if (id != APPLICATION_ID)
        return tt_err(TT_DATA, "%s: a database, but not a journal of this version of tutti; move it away", self->path);
    sqlite3_stmt *statement = NULL;
    bool row = false;
    TT_TRY(s_prepare(self, "PRAGMA quick_check(1)", &statement));
    tt_status_t status = s_step(self, statement, &row);
    const char *text = row ? (const char *)sqlite3_column_text(statement, 0) : NULL;
    if (status == TT_OK && (!text || strcmp(text, "ok") != 0))
        status = tt_err(TT_DATA, "%s: damaged (%s); " MOVE_AWAY, self->path, text ? text : "no answer");
    return s_close(statement, status);
}

/*  Numbers can be damaged where the pages still are those of a database: counting on from such a one would wrap around. Of
 *  the members only those of the newest roster are read. */
#define COUNTED "BETWEEN 0 AND 1073741824"
#define SMALL   "BETWEEN 0 AND 65535"
#define LARGE   "BETWEEN 0 AND 4611686018427387904" /* 2^62: times and steps, which are added up */
static const struct {
    const char *rows, *sound;
} s_rules[] = {
    {"facts WHERE key IN ('start_ns', 'first_step_ns', 'solved_ns', 'first_steps', 'solved_steps')", "value " LARGE},
    {"facts WHERE key = 'end_code'", "value BETWEEN 0 AND 255"},
    {"rosters WHERE true", "epoch " COUNTED " AND era " COUNTED " AND generation " COUNTED " AND rolled_back " COUNTED},
    {"members WHERE epoch = (SELECT max(epoch) FROM rosters)",
        "role BETWEEN 2 AND 4 AND number " SMALL " AND rank " SMALL},
    {"snapshots WHERE true", "era " COUNTED " AND updates " LARGE " AND env_steps " LARGE},
};
_Static_assert(ROSTER_NUMBER_MAX == 1073741824, "COUNTED is what a roster's numbers may be");

static tt_status_t s_check_numbers(journal_t *self)
{
    for (size_t i = 0; i < TT_COUNT(s_rules); i++) {
        char sql[512];
        int64_t wrong = 0;
        snprintf(sql, sizeof sql, "SELECT count(*) FROM %s AND (%s) IS NOT TRUE", s_rules[i].rows, s_rules[i].sound);
        TT_TRY(s_number(self, sql, &wrong));
        if (wrong > 0)
            return tt_err(TT_DATA, "%s: damaged (%.*s: a number that no run counts to); " MOVE_AWAY, self->path,
                (int)strcspn(s_rules[i].rows, " "), s_rules[i].rows);
    }
    return TT_OK;
}

static tt_status_t s_open(journal_t *self)
{
    enum {
        PATH_MOST = 504
    }; /* its MAX_PATHNAME, less what it puts behind the name; "unable to open", it says itself */
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    if (strlen(self->path) > PATH_MOST)
        return tt_err(TT_INVALID,
            "the path of journal.db has %zu bytes, and SQLite takes %d: the run's directory needs a shorter one",
            strlen(self->path), PATH_MOST);
    if (sqlite3_open_v2(self->path, &self->db, flags, NULL) != SQLITE_OK)
        return s_fail(self);
    TT_TRY(s_ok(self, sqlite3_extended_result_codes(self->db, 1)));
    TT_TRY(s_ok(self, sqlite3_busy_timeout(self->db, 2000)));
    /* A checkpoint waits for the disk, and `tutti run` for us. The log stays beside the database; the next one to open
     * it reads both. */
    TT_TRY(s_ok(self, sqlite3_db_config(self->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL)));
    int64_t tables = 0;
    TT_TRY(s_number(self, "SELECT count(*) FROM sqlite_master", &tables));
    if (tables == 0)
        TT_TRY(s_create(self));
    else
        TT_TRY(s_check(self));
    TT_TRY(s_check_numbers(self));
    /* no fsync at a commit: it outlives our death, and after a power failure nobody is left who knew the numbers */
    return s_exec(self, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;");
}

tt_status_t journal_open(journal_t **self_p, const char *path)
{
    journal_t *self = tt_new0(sizeof *self);
    self->path = tt_strdup(path);
    const tt_status_t status = s_open(self);
    if (status != TT_OK) {
        journal_close(&self);
        return status;
    }
    *self_p = self;
    return TT_OK;
}

void journal_close(journal_t **self_p)
{
    journal_t *self = *self_p;
    if (!self)
        return;
    if (sqlite3_close(self->db) != SQLITE_OK)
        log_error("%s: %s", self->path, sqlite3_errmsg(self->db));
    free(self->path);
    free(self);
    *self_p = NULL;
}

/* ---- reading ------------------------------------------------------------------------------------------------------- */

static char *s_text(sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column); /* NULL for NULL */
    return tt_strdup(text ? text : "");
}

/*  "desired/collector" */
static void s_take_count(journal_past_t *out, const char *key, int64_t value)
{
    const char *slash = strchr(key, '/');
    const tt_peer_role_t role = slash ? tt_peer_role_find(slash + 1) : TT_PEER_NONE;
    if ((uint32_t)role >= ROSTER_ROLES)
        return;
    if (strncmp(key, "desired/", 8) == 0)
        out->desired[role] = value;
    else if (strncmp(key, "configured/", 11) == 0)
        out->configured[role] = value;
}

static void s_take_fact(journal_past_t *out, const char *key, sqlite3_stmt *row)
{
    const int64_t value = sqlite3_column_int64(row, 1);
    if (strcmp(key, "start_ns") == 0)
        out->start_ns = value;
    else if (strcmp(key, "first_steps") == 0)
        out->first_steps = (uint64_t)value;
    else if (strcmp(key, "first_step_ns") == 0)
        out->first_step_ns = value;
    else if (strcmp(key, "solved_ns") == 0)
        out->solved_ns = value;
    else if (strcmp(key, "solved_steps") == 0)
        out->solved_steps = (uint64_t)value;
    else if (strcmp(key, "end_code") == 0)
        out->end_code = (uint32_t)value;
    else if (strcmp(key, "boot") == 0)
        out->boot = s_text(row, 1);
    else if (strcmp(key, "end") == 0)
        out->end = s_text(row, 1);
    else if (strcmp(key, "restored") == 0)
        out->restored = s_text(row, 1);
    else
        s_take_count(out, key, value);
}

static tt_status_t s_on_fact(void *ctx, sqlite3_stmt *row, bool *more)
{
    journal_past_t *out = ctx;
    const char *key = (const char *)sqlite3_column_text(row, 0);
    (void)more;
    out->found = true;
    if (key)
        s_take_fact(out, key, row);
    return TT_OK;
}

static tt_status_t s_load_facts(journal_t *self, journal_past_t *out)
{
    sqlite3_stmt *statement = NULL;
    TT_TRY(s_prepare(self, "SELECT key, value FROM facts", &statement));
    return s_each(self, statement, s_on_fact, out);
}

static tt_status_t s_on_roster(void *ctx, sqlite3_stmt *row, bool *more)
{
    journal_past_t *out = ctx;
    (void)more;
    out->restore = s_text(row, 5);
    out->roster = (roster_past_t){.era = (uint32_t)sqlite3_column_int64(row, 0),
        .epoch = (uint64_t)sqlite3_column_int64(row, 1),
        .generation = (uint64_t)sqlite3_column_int64(row, 2),
        .fresh = sqlite3_column_int(row, 3) != 0,
        .rolled_back = (uint32_t)sqlite3_column_int64(row, 4),
        .restore = out->restore};
    return TT_OK;
}

static tt_status_t s_load_roster(journal_t *self, journal_past_t *out)
{
    sqlite3_stmt *statement = NULL;
    TT_TRY(s_prepare(self,
        "SELECT era, epoch, generation, fresh, rolled_back, restore FROM rosters ORDER BY epoch DESC LIMIT 1",
        &statement));
    return s_each(self, statement, s_on_roster, out);
}

static tt_status_t s_on_member(void *ctx, sqlite3_stmt *row, bool *more)
{
    journal_past_t *out = ctx;
    size_t *count = &out->roster.member_count;
    out->members = tt_realloc(out->members, tt_mul(*count + 1, sizeof *out->members));
    out->members[(*count)++] = (roster_past_member_t){.role = (tt_peer_role_t)sqlite3_column_int(row, 0),
        .index = (uint32_t)sqlite3_column_int64(row, 1),
        .instance = (uint64_t)sqlite3_column_int64(row, 2),
        .rank = (uint32_t)sqlite3_column_int64(row, 3)};
    *more = *count < TT_MEMBERS_MAX;
    return TT_OK;
}

static tt_status_t s_load_members(journal_t *self, journal_past_t *out)
{
    sqlite3_stmt *statement = NULL;
    const int64_t epoch = (int64_t)out->roster.epoch;
    TT_TRY(s_prepare(self, "SELECT role, number, instance, rank FROM members WHERE epoch = ?", &statement));
    tt_status_t status = s_bind(self, statement, 1, &epoch, 1);
    status = status == TT_OK ? s_each(self, statement, s_on_member, out) : s_close(statement, status);
    out->roster.members = out->members;
    return status;
}

tt_status_t journal_load(journal_t *self, journal_past_t *out)
{
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < ROSTER_ROLES; i++)
        out->desired[i] = out->configured[i] = -1;
    tt_status_t status = s_load_facts(self, out);
    if (status == TT_OK)
        status = s_load_roster(self, out);
    if (status == TT_OK)
        status = s_load_members(self, out);
    if (status != TT_OK) {
        journal_past_free(out);
        return status;
    }
    out->roster.ended = out->end != NULL;
    return status;
}

void journal_past_free(journal_past_t *self)
{
    free(self->boot);
    free(self->members);
    free(self->restore);
    free(self->end);
    free(self->restored);
    memset(self, 0, sizeof *self);
}

typedef struct {
    bool (*each)(void *ctx, const journal_snapshot_t *snapshot);
    void *ctx;
} visit_t;

static tt_status_t s_on_snapshot(void *ctx, sqlite3_stmt *row, bool *more)
{
    const visit_t *visit = ctx;
    const char *path = (const char *)sqlite3_column_text(row, 0);
    journal_snapshot_t snapshot = {.era = (uint32_t)sqlite3_column_int64(row, 1),
        .update = (uint64_t)sqlite3_column_int64(row, 2),
        .env_steps = (uint64_t)sqlite3_column_int64(row, 3),
        .return_mean = sqlite3_column_type(row, 4) == SQLITE_NULL ? NAN : sqlite3_column_double(row, 4)};
    snprintf(snapshot.path, sizeof snapshot.path, "%s", path ? path : "");
    *more = visit->each(visit->ctx, &snapshot);
    return TT_OK;
}

tt_status_t journal_snapshots(journal_t *self, bool (*each)(void *ctx, const journal_snapshot_t *snapshot), void *ctx)
{
    sqlite3_stmt *statement = NULL;
    visit_t visit = {each, ctx};
    TT_TRY(s_prepare(
        self, "SELECT path, era, updates, env_steps, return_mean FROM snapshots ORDER BY id DESC", &statement));
    return s_each(self, statement, s_on_snapshot, &visit);
}

typedef struct {
    const char *path;
    journal_snapshot_t *out;
    bool found;
} search_t;

static bool s_is_it(void *ctx, const journal_snapshot_t *snapshot)
{
    search_t *search = ctx;
    search->found = strcmp(snapshot->path, search->path) == 0;
    if (search->found)
        *search->out = *snapshot;
    return !search->found;
}

tt_status_t journal_find_snapshot(journal_t *self, const char *path, journal_snapshot_t *out)
{
    search_t search = {.path = path, .out = out};
    TT_TRY(journal_snapshots(self, s_is_it, &search));
    return search.found ? TT_OK : tt_err(TT_NOT_FOUND, "%s: not in the journal", path);
}

/* ---- writing ------------------------------------------------------------------------------------------------------- */

/*  BEGIN is already done: keep what was written, or nothing of it. */
static tt_status_t s_commit(journal_t *self, tt_status_t written)
{
    if (written == TT_OK)
        written = s_exec(self, "COMMIT");
    /* Some errors have rolled back already, and the next BEGIN tells of any other: the first error is the one to say. */
    if (written != TT_OK && !sqlite3_get_autocommit(self->db) &&
        sqlite3_exec(self->db, "ROLLBACK", NULL, NULL, NULL) != SQLITE_OK)
        log_error("%s: %s", self->path, sqlite3_errmsg(self->db));
    return written;
}

static tt_status_t s_begin(journal_t *self)
{
    return s_exec(self, "BEGIN IMMEDIATE");
}

static tt_status_t s_write_clock(journal_t *self, int64_t start_ns, const char *boot)
{
    TT_TRY(s_exec(self, "DELETE FROM facts WHERE key IN ('first_step_ns', 'solved_ns')"));
    TT_TRY(s_put_text(self, "boot", boot));
    return s_put(self, "start_ns", start_ns);
}

tt_status_t journal_clock(journal_t *self, int64_t start_ns, const char *boot)
{
    TT_TRY(s_begin(self));
    return s_commit(self, s_write_clock(self, start_ns, boot));
}

static tt_status_t s_write_session(journal_t *self, int64_t start_ns, const char *boot, uint64_t first_steps)
{
    TT_TRY(s_exec(self, "DELETE FROM facts WHERE key IN ('end', 'end_code', 'restored')"));
    TT_TRY(s_put(self, "first_steps", (int64_t)first_steps));
    return s_write_clock(self, start_ns, boot);
}

tt_status_t journal_session(journal_t *self, int64_t start_ns, const char *boot, uint64_t first_steps)
{
    TT_TRY(s_begin(self));
    return s_commit(self, s_write_session(self, start_ns, boot, first_steps));
}

static tt_status_t s_write_roster(journal_t *self, const tt_msg_ROSTER_t *roster, uint32_t rolled_back)
{
    sqlite3_stmt *statement = NULL;
    const int64_t numbers[] = {(int64_t)roster->epoch, roster->era, (int64_t)roster->generation, roster->fresh};
    const int64_t rolled = rolled_back;
    TT_TRY(s_prepare(self, "INSERT INTO rosters VALUES(?, ?, ?, ?, ?, ?)", &statement));
    tt_status_t status = s_bind(self, statement, 1, numbers, TT_COUNT(numbers));
    if (status == TT_OK)
        status = s_bind_text(self, statement, 5, roster->restore ? roster->restore : "");
    if (status == TT_OK)
        status = s_bind(self, statement, 6, &rolled, 1);
    TT_TRY(s_finish(self, statement, status));
    for (size_t i = 0; i < roster->members_count; i++) {
        const tt_rec_MEMBER_t *m = &roster->members[i];
        const int64_t values[] = {
            (int64_t)roster->epoch, m->role, m->index, (int64_t)m->instance, m->rank, m->env_lo, m->env_count};
        TT_TRY(s_insert(self, "INSERT INTO members VALUES(?, ?, ?, ?, ?, ?, ?)", values, TT_COUNT(values)));
    }
    const int64_t oldest = (int64_t)roster->epoch - ROSTERS_MAX;
    TT_TRY(s_insert(self, "DELETE FROM members WHERE epoch <= ?", &oldest, 1));
    return s_insert(self, "DELETE FROM rosters WHERE epoch <= ?", &oldest, 1);
}

tt_status_t journal_roster(journal_t *self, const tt_msg_ROSTER_t *roster, uint32_t rolled_back)
{
    TT_TRY(s_begin(self));
    return s_commit(self, s_write_roster(self, roster, rolled_back));
}

tt_status_t journal_not_fresh(journal_t *self)
{
    return s_exec(self, "UPDATE rosters SET fresh = 0 WHERE epoch = (SELECT max(epoch) FROM rosters)");
}

static tt_status_t s_put_count(journal_t *self, const char *kind, tt_peer_role_t role, uint32_t count)
{
    char key[64];
    snprintf(key, sizeof key, "%s/%s", kind, tt_peer_role_name(role));
    return s_put(self, key, count);
}

tt_status_t journal_desired(journal_t *self, tt_peer_role_t role, uint32_t count)
{
    return s_put_count(self, "desired", role, count);
}

tt_status_t journal_configured(journal_t *self, tt_peer_role_t role, uint32_t count)
{
    return s_put_count(self, "configured", role, count);
}

tt_status_t journal_snapshot(journal_t *self, const journal_snapshot_t *snapshot)
{
    sqlite3_stmt *statement = NULL;
    TT_TRY(s_prepare(self,
        "INSERT OR REPLACE INTO snapshots(path, era, updates, env_steps, return_mean) VALUES(?, ?, ?, ?, ?)",
        &statement));
    const int64_t numbers[] = {snapshot->era, (int64_t)snapshot->update, (int64_t)snapshot->env_steps};
    tt_status_t status = s_bind_text(self, statement, 1, snapshot->path);
    if (status == TT_OK)
        status = s_bind(self, statement, 2, numbers, TT_COUNT(numbers));
    if (status == TT_OK) /* NAN is stored as NULL */
        status = s_ok(self, sqlite3_bind_double(statement, 5, snapshot->return_mean));
    return s_finish(self, statement, status);
}

tt_status_t journal_first_step(journal_t *self, int64_t time_ns)
{
    return s_put(self, "first_step_ns", time_ns);
}

static tt_status_t s_write_count_from(journal_t *self, uint64_t env_steps, int64_t time_ns)
{
    TT_TRY(s_put(self, "first_steps", (int64_t)env_steps));
    return s_put(self, "first_step_ns", time_ns);
}

tt_status_t journal_count_from(journal_t *self, uint64_t env_steps, int64_t time_ns)
{
    TT_TRY(s_begin(self));
    return s_commit(self, s_write_count_from(self, env_steps, time_ns));
}

static tt_status_t s_write_solved(journal_t *self, int64_t time_ns, uint64_t env_steps)
{
    TT_TRY(s_put(self, "solved_ns", time_ns));
    return s_put(self, "solved_steps", (int64_t)env_steps);
}

tt_status_t journal_unsolved(journal_t *self)
{
    return s_exec(self, "DELETE FROM facts WHERE key IN ('solved_ns', 'solved_steps')");
}

tt_status_t journal_solved(journal_t *self, int64_t time_ns, uint64_t env_steps)
{
    TT_TRY(s_begin(self));
    return s_commit(self, s_write_solved(self, time_ns, env_steps));
}

tt_status_t journal_restored(journal_t *self, const char *json)
{
    return s_put_text(self, "restored", json);
}

static tt_status_t s_write_end(journal_t *self, const char *json, uint32_t code)
{
    TT_TRY(s_put(self, "end_code", code));
    return s_put_text(self, "end", json);
}

tt_status_t journal_end(journal_t *self, const char *json, uint32_t code)
{
    TT_TRY(s_begin(self));
    return s_commit(self, s_write_end(self, json, code));
}
