#include "common/base/home.h"
#include <stdio.h>
#include <stdlib.h>

static const char *s_absolute(const char *name)
{
    const char *path = getenv(name);
    return path && path[0] == '/' ? path : NULL;
}

tt_status_t tt_home_state(char *out, size_t size, const char *name, const char *otherwise)
{
    const char *state = s_absolute("XDG_STATE_HOME"), *home = s_absolute("HOME");
    int length;
    if (state)
        length = snprintf(out, size, "%s/tutti/%s", state, name);
    else if (home)
        length = snprintf(out, size, "%s/.local/state/tutti/%s", home, name);
    else if (otherwise)
        length = snprintf(out, size, "%s/%s", otherwise, name);
    else
        return tt_err(TT_CONFIG,
            "there is no place for the registry of %s: set HOME or XDG_STATE_HOME to an absolute path", name);
    return length >= 0 && (size_t)length < size
               ? TT_OK
               : tt_err(TT_CONFIG, "%s is too long for a path", state ? "XDG_STATE_HOME" : "HOME");
}
