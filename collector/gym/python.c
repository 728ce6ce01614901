#include "collector/gym/python.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/mem.h"

static bool s_is_program(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

/*  A name without a folder is looked for in PATH. NULL: it is nowhere. */
static char *s_in_path(const char *name)
{
    const char *at = getenv("PATH");
    for (at = at ? at : "/usr/local/bin:/usr/bin:/bin"; *at;) {
        const size_t length = strcspn(at, ":");
        char *path = length ? tt_sprintf("%.*s/%s", (int)length, at, name) : tt_sprintf("./%s", name);
        if (s_is_program(path))
            return path;
        free(path);
        at += length + (at[length] == ':');
    }
    return NULL;
}

/*  Where its links lead, as far as they can be read: realpath(3) says nothing of what may not be looked at. */
static char *s_end_of_links(const char *path)
{
    enum { LINKS_MAX = 16 };
    char *at = tt_strdup(path), target[PATH_MAX];
    for (int i = 0; i < LINKS_MAX; i++) {
        const ssize_t length = readlink(at, target, sizeof target - 1);
        if (length <= 0)
            break;
        target[length] = '\0';
        char *slash = target[0] == '/' ? NULL : strrchr(at, '/'),
             *next = tt_sprintf("%.*s%s", slash ? (int)(slash + 1 - at) : 0, at, target);
        free(at);
        at = next;
    }
    return at;
}

static tt_status_t s_err_named(const char *name, const char *who, const char *path, bool shut)
{
    char *end = path ? s_end_of_links(path) : NULL;
    const bool leads = end && strcmp(end, path) != 0;
    const char *which = leads ? ", which leads to " : "", *where = leads ? end : "";
    if (shut)
        tt_err(TT_DENIED, "%s names the Python interpreter %s%s%s, %s may not be run: Permission denied", who, name,
            which, where, leads ? "and that" : "which");
    else
        tt_err(TT_NOT_FOUND, "%s names the Python interpreter %s%s%s, and there is no such program", who, name, which,
            where);
    free(end);
    return shut ? TT_DENIED : TT_NOT_FOUND;
}

static tt_status_t s_named(char **out, const char *name, const char *who)
{
    char *path = strchr(name, '/') ? tt_strdup(name) : s_in_path(name);
    if (path && s_is_program(path)) {
        *out = path;
        return TT_OK;
    }
    const bool shut = path && access(path, X_OK) != 0 && errno == EACCES;
    const tt_status_t status = s_err_named(name, who, path, shut);
    free(path);
    return status;
}

/*  What an environment that is active would give; it may have been removed since, or its own interpreter may have been. */
static bool s_active(char **out, const char *variable, char **passed)
{
    const char *home = getenv(variable);
    if (!home || !*home)
        return false;
    char *path = tt_sprintf("%s/bin/python3", home), *before = *passed;
    const bool found = s_named(out, path, variable) == TT_OK;
    if (!found)
        *passed = tt_sprintf("%s%s%s", before ? before : "", before ? "; " : "", tt_err_text());
    if (!found)
        free(before);
    free(path);
    return found;
}

tt_status_t gym_python(char **out, const char *wanted, char **passed)
{
    static const char *const homes[] = {"VIRTUAL_ENV", "CONDA_PREFIX"};
    const char *named = getenv("TT_PYTHON");
    *passed = NULL;
    if (wanted && *wanted)
        return s_named(out, wanted, "env.python");
    if (named && *named)
        return s_named(out, named, "TT_PYTHON");
    for (size_t i = 0; i < TT_COUNT(homes); i++)
        if (s_active(out, homes[i], passed))
            return TT_OK;
    *out = s_in_path("python3");
    if (*out)
        return TT_OK;
    tt_err(TT_NOT_FOUND,
        "%s%sthere is no python3 in PATH; env.python or TT_PYTHON names an interpreter that has gymnasium",
        *passed ? *passed : "", *passed ? "; " : "");
    free(*passed);
    *passed = NULL;
    return TT_NOT_FOUND;
}

/*  "" when the binary's place is not known. */
static void s_folder_of_binary(char *out, size_t size)
{
    const ssize_t length = readlink("/proc/self/exe", out, size - 1);
    out[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(out, '/');
    if (slash)
        *slash = '\0';
}

tt_status_t gym_package(char **out)
{
    char folder[4096];
    const char *share = getenv("TT_SHARE");
    s_folder_of_binary(folder, sizeof folder);
    char *path = share && *share ? tt_sprintf("%s/python/tutti_env", share)
                                 : tt_sprintf("%s/../share/tutti/python/tutti_env", folder);
    if (access(path, R_OK | X_OK) != 0) {
        tt_err_errno(TT_NOT_FOUND, "the package that plays Gymnasium's environments is missing: %s", path);
        free(path);
        return TT_NOT_FOUND;
    }
    *out = path;
    return TT_OK;
}
