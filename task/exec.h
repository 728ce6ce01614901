/*  exec - the command of a task: a shell's line in which %DATA, %IN, %OUT and the keys of secondary data stand for paths.
 *
 *  Replacing is plain text, done in one pass from left to right, the longest key first: what was put in is not looked at again. Paths
 *  are of characters that no shell reads (names.h), so the line means the same inside quotes and outside of them.
 *  Threads: pure. */
#pragma once
#include "common/base/buf.h"

enum { EXEC_MAX = 65536, EXEC_SECONDARY_MAX = 32, EXEC_KEY_MAX = 64 };

typedef struct {
    char key[EXEC_KEY_MAX]; /* "%REF" */
    char value[256];        /* a data set's name */
} exec_secondary_t;

typedef struct {
    const char *key, *value;
} exec_pair_t;

/*  "{'%REF': 'user.me.ref'}", as Python or JSON write it; "" and "{}" are none. TT_USAGE. */
tt_status_t exec_secondary(const char *text, exec_secondary_t *out, size_t *count);
/*  Does the line hold %IN, %OUT, %DATA where there is data (and not where there is none), every one of the keys, and no other word in capitals behind
 *  a '%', which would be left as it is? TT_USAGE says what is wrong. */
tt_status_t exec_check(const char *line, bool data, const exec_secondary_t *secondary, size_t count);
/*  The line with the values in place of their keys, appended to out. TT_USAGE: it becomes too long for out. */
tt_status_t exec_fill(tt_buf_t *out, const char *line, const exec_pair_t *pairs, size_t count);
