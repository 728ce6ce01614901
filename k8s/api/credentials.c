#define TT_LOG_COMPONENT "kube"
#include "k8s/api/credentials.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "common/base/buf.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "k8s/api/exec.h"

enum {
    LOOK_MS = 1000, /* at the token file, at most so often             */
    TOKEN_MAX = 64 << 10,
    AGAIN_MS = 1000,   /* a plug-in is not run again before               */
    REFUSED_MS = 5000, /* nor one whose answer to a refusal was refused   */
    EARLY_S = 10,      /* an answer of a plug-in is old before its expiry */
};

struct kube_credentials {
    tt_reactor_t *loop;
    const kube_config_t *config;
    void (*changed)(void *ctx);
    void *ctx;
    uint64_t version;
    /* token file */
    char *token;
    struct stat seen;  /* of the file that token is from        */
    int64_t looked_ms; /* when we last looked at it             */
    /* plug-in */
    kube_exec_run_t *run; /* NULL = none is under way              */
    kube_exec_credential_t given;
    bool has;           /* given is good, its expiry apart       */
    bool anew;          /* the next run answers a refusal        */
    int64_t renewed_ms; /* when the last such run was over       */
    int64_t over_ms;    /* when the last run was over            */
    tt_status_t failed; /* how; and why                          */
    char *why;
};

static int64_t s_now_ms(const kube_credentials_t *self)
{
    return tt_now_ms(tt_reactor_clock(self->loop));
}

/* ---- token file -------------------------------------------------------------------------------------------------- */

static bool s_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static void s_take_token(kube_credentials_t *self, const char *text)
{
    char *token = tt_sprintf("%.*s", (int)strcspn(text, " \t\r\n"), text);
    self->version += !self->token || strcmp(self->token, token) != 0;
    tt_free_secret(self->token);
    self->token = token;
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
    tt_status_t status =
        S_ISREG(now.st_mode) ? tt_buf_read_file(&text, path) : tt_err(TT_DENIED, "token file %s", path);
    if (status == TT_OK && strcspn(tt_buf_text(&text), " \t\r\n") == 0)
        status = tt_err(TT_DENIED, "token file %s is empty", path);
    if (status == TT_OK) {
        s_take_token(self, tt_buf_text(&text));
        self->seen = now;
    }
    tt_buf_free(&text);
    return status;
}

/* A file that cannot be read for a moment leaves the token that we have. */
static tt_status_t s_token(kube_credentials_t *self, bool at_once)
{
    const int64_t now_ms = s_now_ms(self);
    if (!at_once && self->token && now_ms - self->looked_ms < LOOK_MS)
        return TT_OK;
    self->looked_ms = now_ms;
    const tt_status_t status = s_read_token(self);
    if (status == TT_OK || !self->token)
        return status;
    log_warn("%s; the token that we have stays in use", tt_err_text());
    return TT_OK;
}

/* ---- plug-in ----------------------------------------------------------------------------------------------------- */

static void s_on_exec(void *ctx, tt_status_t status, kube_exec_credential_t *credential)
{
    kube_credentials_t *self = ctx;
    kube_exec_destroy(&self->run);
    self->over_ms = s_now_ms(self);
    self->renewed_ms = self->anew ? self->over_ms : self->renewed_ms;
    self->anew = false;
    self->failed = status;
    if (status == TT_OK) {
        kube_exec_credential_clear(&self->given);
        self->given = *credential;
        self->has = true;
        self->version++;
    } else {
        log_warn("%s", tt_err_text());
        free(self->why);
        self->why = tt_strdup(tt_err_text());
    }
    self->changed(self->ctx);
}

static bool s_expired(const kube_credentials_t *self)
{
    return self->given.expires_s && tt_wall_ns() / 1000000000 >= self->given.expires_s - EARLY_S;
}

/* What the last run said holds for a second in any case, or a plug-in that fails, or whose answer is old at birth, would
 * be run without end. */
static tt_status_t s_plugin(kube_credentials_t *self)
{
    if (self->run)
        return TT_AGAIN;
    const bool just_now = s_now_ms(self) - self->over_ms < AGAIN_MS;
    if (self->has && (!s_expired(self) || just_now))
        return TT_OK;
    if (self->failed != TT_OK && just_now)
        return tt_err(self->failed, "%s", self->why);
    self->has = false;
    TT_TRY(kube_exec_start(&self->run, self->loop, self->config, s_on_exec, self));
    return TT_AGAIN;
}

/* ---- all kinds --------------------------------------------------------------------------------------------------- */

tt_status_t kube_credentials_new(
    kube_credentials_t **self_p, tt_reactor_t *loop, const kube_config_t *config, void (*changed)(void *ctx), void *ctx)
{
    kube_credentials_t *self = tt_new0(sizeof *self);
    self->loop = loop;
    self->config = config;
    self->changed = changed;
    self->ctx = ctx;
    self->version = 1;
    self->renewed_ms = -REFUSED_MS;
    self->over_ms = -AGAIN_MS;
    *self_p = self;
    return TT_OK;
}

void kube_credentials_destroy(kube_credentials_t **self_p)
{
    kube_credentials_t *self = *self_p;
    if (!self)
        return;
    kube_exec_destroy(&self->run);
    kube_exec_credential_clear(&self->given);
    free(self->why);
    tt_free_secret(self->token);
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
    if (config->exec) {
        TT_TRY(s_plugin(self));
        identity.token = self->given.token ? self->given.token : identity.token;
        identity.cert_pem = self->given.cert_pem ? self->given.cert_pem : identity.cert_pem;
        identity.key_pem = self->given.key_pem ? self->given.key_pem : identity.key_pem;
    }
    identity.version = self->version;
    *out = identity;
    return TT_OK;
}

bool kube_credentials_refused(kube_credentials_t *self, uint64_t version)
{
    if (version != self->version || self->run)
        return true; /* there are newer ones already, or will be */
    if (self->config->token_file)
        (void)s_token(self, true);
    if (self->config->exec && s_now_ms(self) - self->renewed_ms >= REFUSED_MS) {
        self->has = false;
        self->anew = true;
        return true;
    }
    return version != self->version;
}
