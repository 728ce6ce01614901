#include "task/names.h"
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
#define NAME    LETTERS "._-"
#define PART    NAME "+=@,:%"

void names_user(char *out, size_t size)
{
    const struct passwd *user = getpwuid(geteuid());
    if (user && user->pw_name[0] && strspn(user->pw_name, NAME) == strlen(user->pw_name))
        snprintf(out, size, "%s", user->pw_name);
    else
        snprintf(out, size, "uid%u", (unsigned)geteuid());
}

tt_status_t names_check(const char *what, const char *name)
{
    char user[128], prefix[160];
    names_user(user, sizeof user);
    snprintf(prefix, sizeof prefix, "user.%s.", user);
    const size_t length = strlen(name), good = strspn(name, NAME);
    if (strncmp(name, prefix, strlen(prefix)) != 0 || !name[strlen(prefix)])
        return tt_err(TT_USAGE, "%s '%.200s': the name has to begin with '%s' and go on", what, name, prefix);
    if (length > TASK_NAME_MAX)
        return tt_err(
            TT_USAGE, "%s '%.60s...': the name has %zu characters; %d are possible", what, name, length, TASK_NAME_MAX);
    if (good < length)
        return tt_err(TT_USAGE, "%s '%s': a name has letters, digits and . _ - only", what, name);
    return TT_OK;
}

tt_status_t names_check_part(const char *what, const char *name)
{
    if (!name[0] || name[0] == '.' || name[0] == '-')
        return tt_err(TT_INVALID, "%s '%.200s': it may not be empty, nor begin with '.' or '-'", what, name);
    if (strlen(name) > TASK_NAME_MAX)
        return tt_err(TT_INVALID, "%s '%.60s...': over %d characters", what, name, TASK_NAME_MAX);
    if (strspn(name, PART) < strlen(name))
        return tt_err(TT_INVALID,
            "%s '%s': letters, digits and . _ - + = @ , : %% only, as it becomes part of a shell's line", what, name);
    return TT_OK;
}

tt_status_t names_check_path(const char *what, const char *path)
{
    if (strlen(path) > TASK_PATH_MAX)
        return tt_err(TT_INVALID, "%s '%.60s...': over %d characters", what, path, TASK_PATH_MAX);
    if (path[0] != '/' || strspn(path, PART "/") < strlen(path))
        return tt_err(TT_INVALID,
            "%s '%s': letters, digits and . _ - + = @ , : %% / only, as it becomes part of a shell's line; use another "
            "folder",
            what, path);
    return TT_OK;
}
