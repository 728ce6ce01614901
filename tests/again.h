/*  again - a program that becomes itself again at once, and again: in the middle of an exec it has no environment for a moment.
 *
 *  It lies in a folder of its own, which goes with again_teardown. Threads: one. */
#pragma once
#include "tests/folder.h"
#include "tests/test.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static char again_dir[FOLDER_MAX], again_script[FOLDER_MAX + 8];

/*  For cmocka: before a test that starts such programs. */
static inline int again_setup(void **state)
{
    (void)state;
    assert_int_equal(folder_make(again_dir, "again"), 0);
    snprintf(again_script, sizeof again_script, "%s/again", again_dir);
    FILE *file = fopen(again_script, "w");
    assert_non_null(file);
    assert_true(fputs("#!/bin/sh\nexec \"$0\"\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
    return chmod(again_script, 0700);
}

/*  After it. The programs are the test's to end. */
static inline int again_teardown(void **state)
{
    (void)state;
    return folder_remove(again_dir);
}

/*  A process that has this environment from its first exec on, which closes the pipe. It ends with us, whatever comes. */
static inline pid_t again_start(char *const *env)
{
    char *const argv[] = {again_script, NULL};
    int ends[2];
    char none;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execve(again_script, argv, env);
        _exit(127);
    }
    assert_true(pid > 0);
    close(ends[1]);
    assert_int_equal(read(ends[0], &none, 1), 0);
    close(ends[0]);
    return pid;
}
