#define TT_LOG_COMPONENT "kube"
#include "k8s/api/credentials.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "common/base/buf.h"
#include "common/base/log.h"
#include "common/base/mem.h"

enum { LOOK_MS = 1000, TOKEN_MAX = 64 << 10 };

struct kube_credentials {
    kube_loop_t *loop;
    const kube_config_t *config;
    void (*changed)(void *ctx);
    void *ctx;
    uint64_t version;
    /* token file */
    char *token;
    struct stat seen;  /* of the file that token is from          */
    int64_t looked_ms; /* when we last looked at it; -1 = never   */
};

/* ---- token file -------------------------------------------------------------------------------------------------------- */

static bool s_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static tt_status_t s_read_token(kube_credentials_t *self)
{
    const char *path = self->config->token_file;
    struct stat now;
    if (stat(path, &now) != 0)
        return tt_err_errno(TT_DENIED, "token file %s", path);
    if (self->token && s_same_file(&now, &self->seen))
        return TT_OK;
    tt_buf_t text;
    tt_buf_init(&text, TOKEN_MAX);
    tt_status_t status = tt_buf_read_file(&text, path);
    if (status == TT_OK && strcspn(tt_buf_text(&text), " \t\r\n") == 0)
        status = tt_err(TT_DENIED, "token file %s is empty", path);
    if (status == TT_OK) {
        char *token = tt_sprintf("%.*s", (int)strcspn(text.data, " \t\r\n"), text.data);
        self->version += !self->token || strcmp(self->token, token) != 0;
        free(self->token);
        self->token = token;
        self->seen = now;
    }
    tt_buf_free(&text);
    return status;
}

/* A file that cannot be read for a moment leaves the token that we have. */
static tt_status_t s_token(kube_credentials_t *self, bool now)
{
    const int64_t now_ms = tt_now_ms(kube_loop_clock(self->loop));
    if (!now && self->token && now_ms - self->looked_ms < LOOK_MS)
        return TT_OK;
    self->looked_ms = now_ms;
    const tt_status_t status = s_read_token(self);
    if (status != TT_OK && self->token) {
        log_warn("%s; the old token stays in use", tt_err_text());
        return TT_OK;
    }
    return status;
}

/* ---- all kinds --------------------------------------------------------------------------------------------------------- */

tt_status_t kube_credentials_new(
    kube_credentials_t **self_p, kube_loop_t *loop, const kube_config_t *config, void (*changed)(void *ctx), void *ctx)
{
    if (config->exec)
        return tt_err(TT_UNSUPPORTED, "credential plug-in %s", config->exec->command);
    kube_credentials_t *self = tt_new0(sizeof *self);
    self->loop = loop;
    self->config = config;
    self->changed = changed;
    self->ctx = ctx;
    self->version = 1;
    *self_p = self;
    return TT_OK;
}

void kube_credentials_destroy(kube_credentials_t **self_p)
{
    kube_credentials_t *self = *self_p;
    if (!self)
        return;
    free(self->token);
    free(self);
    *self_p = NULL;
}

tt_status_t kube_credentials_get(kube_credentials_t *self, kube_identity_t *out)
{
    const kube_config_t *config = self->config;
    kube_identity_t identity = {.username = config->username,
        .password = config->password,
        .cert_pem = config->cert_pem,
        .key_pem = config->key_pem,
        .token = config->token};
    if (config->token_file) {
        TT_TRY(s_token(self, false));
        identity.token = self->token;
    }
    identity.version = self->version;
    *out = identity;
    return TT_OK;
}

bool kube_credentials_refused(kube_credentials_t *self, uint64_t version)
{
    if (self->config->token_file && version == self->version)
        (void)s_token(self, true);
    return version != self->version;
}
