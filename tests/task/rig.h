/*  rig - a registry and a folder of a test's own, in a temporary directory that goes with it. */
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "task/names.h"
#include "task/store.h"
#include "../folder.h"
#include "../test.h"

static char rig_dir[FOLDER_MAX];

static inline int rig_set_up(void **state)
{
    (void)state;
    return folder_make(rig_dir, "task") || setenv("XDG_STATE_HOME", rig_dir, 1);
}

static inline int rig_tear_down(void **state)
{
    (void)state;
    return folder_remove(rig_dir);
}

/*  "user.<me>.NAME", in one of eight buffers. */
static inline const char *rig_name(const char *name)
{
    static char names[8][512];
    static unsigned next;
    char user[128];
    names_user(user, sizeof user);
    char *out = names[next++ % 8];
    snprintf(out, sizeof names[0], "user.%s.%s", user, name);
    return out;
}

/*  DIR/NAME, in one of many buffers. */
static inline const char *rig_path(const char *name)
{
    static char paths[64][512];
    static unsigned next;
    char *out = paths[next++ % 64];
    snprintf(out, sizeof paths[0], "%s/%s", rig_dir, name);
    return out;
}

static inline void rig_write(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static inline void rig_folder(const char *path, int files)
{
    char name[600];
    assert_int_equal(mkdir(path, 0755), 0);
    for (int i = 0; i < files; i++) {
        snprintf(name, sizeof name, "%s/cfg%d", path, i);
        rig_write(name, "x\n");
    }
}
