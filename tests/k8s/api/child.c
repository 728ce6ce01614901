#include "tests/k8s/api/child.h"
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "tests/test.h"

extern char **environ;

void child_start(child_t *self, const char *script, const char *argument)
{
    int in[2], out[2];
    assert_int_equal(pipe2(in, O_CLOEXEC), 0); /* what else a test starts must not keep the server's input open */
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    char *path = tt_sprintf("%s/tests/k8s/api/%s", TT_SOURCE_DIR, script);
    char *const args[] = {"python3", path, (char *)argument, NULL};
    pid_t pid = 0;
    assert_int_equal(posix_spawnp(&pid, args[0], &actions, NULL, args, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    free(path);
    close(in[0]);
    close(out[1]);
    self->pid = pid;
    self->in = in[1];
    FILE *said = fdopen(out[0], "r");
    assert_int_equal(fscanf(said, "%d", &self->port), 1);
    fclose(said);
}

int child_stop(child_t *self)
{
    close(self->in);
    int status = 0;
    assert_int_equal(waitpid(self->pid, &status, 0), self->pid);
    return status;
}
