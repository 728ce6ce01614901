/*  names - what data sets, tasks, outputs and paths may be called. All of it comes from outside, and ends up in paths and, by way of
 *  %DATA, %IN and %OUT, in a shell's line: so a name is a word of plain characters, and a path is refused that a shell would
 *  read as anything but one word, in quotes or out of them.
 *
 *  Threads: pure. */
#pragma once
#include <stddef.h>
#include "common/base/status.h"

enum {
    TASK_NAME_MAX = 200, /* of a data set, a task, a file of a data set */
    TASK_PATH_MAX = 3072
};

/*  Who calls: the login name of this process's user, "uid1000" where it has none. */
void names_user(char *out, size_t size);
/*  user.<username>.<something>, of letters, digits and . _ -; what: "data set", "task". TT_USAGE says what is wrong. */
tt_status_t names_check(const char *what, const char *name);
/*  One part of a path: of the same characters and + = @ , : %, no leading '-' or '.'. TT_INVALID. */
tt_status_t names_check_part(const char *what, const char *name);
/*  An absolute path of such characters and '/'. TT_INVALID. */
tt_status_t names_check_path(const char *what, const char *path);
