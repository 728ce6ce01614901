#include "collector/gym/python.h"
#include <errno.h>
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

static tt_status_t s_named(char **out, const char *name, const char *who)
{
    char *path = strchr(name, '/') ? tt_strdup(name) : s_in_path(name);
    if (path && s_is_program(path)) {
        *out = path;
        return TT_OK;
    }
    const bool shut = path && access(path, X_OK) != 0 && errno == EACCES;
    free(path);
    if (shut)
        return tt_err(
            TT_DENIED, "%s names the Python interpreter %s, which may not be run: Permission denied", who, name);
    return tt_err(TT_NOT_FOUND, "%s names the Python interpreter %s, and there is no such program", who, name);
}

tt_status_t gym_python(char **out, const char *wanted)
{
    static const char *const homes[] = {"VIRTUAL_ENV", "CONDA_PREFIX"};
    const char *named = getenv("TT_PYTHON");
    if (wanted && *wanted)
        return s_named(out, wanted, "env.python");
    if (named && *named)
        return s_named(out, named, "TT_PYTHON");
    for (size_t i = 0; i < TT_COUNT(homes); i++) {
        const char *home = getenv(homes[i]);
        char *path = tt_sprintf("%s/bin/python3", home ? home : "");
        if (home && *home && s_is_program(path)) {
            *out = path;
            return TT_OK;
        }
        free(path);
    }
    *out = s_in_path("python3");
    return *out ? TT_OK
                : tt_err(TT_NOT_FOUND, "there is no python3 in PATH; env.python or TT_PYTHON names an interpreter that "
                                       "has gymnasium");
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
