/*  home - a test of run directories: a folder of its own to work in, with a registry of its own. */
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "tests/folder.h"
#include "tests/test.h"

static char s_dir[FOLDER_MAX];

static int s_setup(void **state)
{
    (void)state;
    char home[96];
    if (folder_make(s_dir, "rundir") != 0 || chdir(s_dir) != 0)
        return -1;
    snprintf(home, sizeof home, "%s/state", s_dir);
    return setenv("XDG_STATE_HOME", home, 1);
}

static int s_teardown(void **state)
{
    (void)state;
    return chdir("/") || folder_remove(s_dir);
}
