#include "tests/k8s/api/api_server.h"
#include <ftw.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/buf.h"
#include "common/base/mem.h"
#include "tests/test.h"

extern char **environ;

void api_server_start(api_server_t *self)
{
    snprintf(self->folder, sizeof self->folder, "/tmp/tutti-api-XXXXXX");
    assert_non_null(mkdtemp(self->folder));
    int in[2], out[2];
    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(out), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    for (int i = 0; i < 2; i++) {
        posix_spawn_file_actions_addclose(&actions, in[i]);
        posix_spawn_file_actions_addclose(&actions, out[i]);
    }
    char *const args[] = {"python3", TT_SOURCE_DIR "/tests/k8s/api/server.py", self->folder, NULL};
    pid_t pid = 0;
    assert_int_equal(posix_spawnp(&pid, args[0], &actions, NULL, args, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    self->pid = pid;
    self->in = in[1];
    FILE *said = fdopen(out[0], "r");
    assert_int_equal(fscanf(said, "%d", &self->port), 1);
    fclose(said);
}

static int s_remove(const char *path, const struct stat *info, int type, struct FTW *at)
{
    (void)info, (void)type, (void)at;
    return remove(path);
}

void api_server_stop(api_server_t *self)
{
    close(self->in);
    int status = 0;
    assert_int_equal(waitpid(self->pid, &status, 0), self->pid);
    assert_int_equal(status, 0);
    nftw(self->folder, s_remove, 8, FTW_DEPTH | FTW_PHYS);
}

char *api_server_path(const api_server_t *self, const char *name)
{
    return tt_sprintf("%s/%s", self->folder, name);
}

char *api_server_read(const api_server_t *self, const char *name)
{
    char *path = api_server_path(self, name);
    tt_buf_t text;
    tt_buf_init(&text, 1 << 20);
    assert_ok(tt_buf_read_file(&text, path));
    free(path);
    return text.data;
}

void api_server_write(const api_server_t *self, const char *name, const char *text)
{
    char *path = api_server_path(self, name), *fresh = tt_sprintf("%s.new", path);
    FILE *file = fopen(fresh, "w");
    assert_non_null(file);
    assert_int_equal(fputs(text, file) >= 0, 1);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(rename(fresh, path), 0);
    free(path);
    free(fresh);
}

kube_config_t *api_server_config(const api_server_t *self)
{
    kube_config_t *config = tt_new0(sizeof *config);
    config->server = tt_sprintf("https://127.0.0.1:%d", self->port);
    config->namespace_ = tt_strdup("default");
    config->ca_pem = api_server_read(self, "ca.crt");
    return config;
}
