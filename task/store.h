/*  store - the registry of data sets and tasks: $XDG_STATE_HOME/tutti/tasks/tasks.db (~/.local/state by default), SQLite in WAL mode.
 *
 *  Several processes use it at once: each writes in transactions that take the write lock first (store_tx), so what a command
 *  decides it decides on what there is. synchronous=FULL: what a command has said is on the disk, and outlives kill -9 and a
 *  power failure.
 *
 *  Errors: TT_IO, TT_DATA (damaged, foreign, or of a later version), TT_EXISTS (another process holds it for over ten seconds),
 *  always with the path and what to do. Threads: an instance belongs to one thread. */
#pragma once
#include <sqlite3.h>
#include <stdint.h>
#include "common/base/status.h"

typedef struct store store_t; /* opaque */

/*  Open or make. */
tt_status_t store_open(store_t **self_p);
void store_destroy(store_t **self_p);
/*  The folder it lies in: absolute, borrowed. */
const char *store_folder(const store_t *self);

/*  Hold the write lock, call fn, and keep all that it wrote (TT_OK) or nothing. */
tt_status_t store_tx(store_t *self, tt_status_t (*fn)(void *ctx, store_t *store), void *ctx);

typedef tt_status_t (*store_row_fn)(void *ctx, sqlite3_stmt *row);
/*  Run one statement; its values are bound from what follows `types`: 'i' an int64_t, 's' a const char * (NULL = null). fn (may be
 *  NULL) gets each row; what it returns, other than TT_OK, ends the statement and is passed on. */
tt_status_t store_run(store_t *self, const char *sql, store_row_fn fn, void *ctx, const char *types, ...);
/*  The number that the last new row got. */
int64_t store_last_id(const store_t *self);
/*  A column's text, "" for none; borrowed until the next row. */
const char *store_text(sqlite3_stmt *row, int column);
/*  A word of 16 hexadecimal digits that no other registry has; made when it is first asked for. */
enum { STORE_WORD = 17 };
tt_status_t store_word(store_t *self, char out[STORE_WORD]);
/*  A number that changes when another process has written. */
tt_status_t store_version(store_t *self, int64_t *out);
