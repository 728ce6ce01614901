/*  home - a test of run directories: a folder of its own to work in, with a registry of its own. */
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "tests/test.h"

static char s_dir[64];

static int s_setup(void **state)
{
    (void)state;
    char home[96];
    snprintf(s_dir, sizeof s_dir, "/tmp/tt-rundir-XXXXXX");
    if (!mkdtemp(s_dir) || chdir(s_dir) != 0)
        return -1;
    snprintf(home, sizeof home, "%s/state", s_dir);
    return setenv("XDG_STATE_HOME", home, 1);
}

static int s_teardown(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", s_dir);
    return chdir("/") || system(command);
}
