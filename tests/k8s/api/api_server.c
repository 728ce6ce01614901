#include "tests/k8s/api/api_server.h"
#include <stdio.h>
#include <stdlib.h>
#include "common/base/buf.h"
#include "common/base/mem.h"
#include "tests/folder.h"
#include "tests/test.h"

void api_server_start(api_server_t *self)
{
    assert_int_equal(folder_make(self->folder, "api"), 0);
    child_start(&self->child, "server.py", self->folder);
}

void api_server_stop(api_server_t *self)
{
    assert_int_equal(child_stop(&self->child), 0);
    assert_int_equal(folder_remove(self->folder), 0);
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
    config->server = tt_sprintf("https://127.0.0.1:%d", self->child.port);
    config->namespace_ = tt_strdup("default");
    config->ca_pem = api_server_read(self, "ca.crt");
    return config;
}
