#include "common/net/net.h"
#include <czmq.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/beside.h"
#include "common/base/file.h"

enum { FILE_MAX = 65536 };

static void s_take(tt_keys_t *out, zcert_t *cert)
{
    snprintf(out->public_key, sizeof out->public_key, "%s", zcert_public_txt(cert));
    snprintf(out->secret_key, sizeof out->secret_key, "%s", zcert_secret_txt(cert));
}

static bool s_write(zcert_t *cert, const char *path)
{
    const mode_t mask = umask(0077);
    const int failed = zcert_save_secret(cert, path);
    umask(mask); /* czmq has its own idea of what it was */
    return !failed;
}

/*  Only ours to read? Root's file may be its group's too (PostgreSQL's libpq has the same rule for the same reason): a
 *  process that is not root gets a Secret by the group of its volume, and cannot change the mode. */
static tt_status_t s_check_file(const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return tt_err_errno(errno == ENOENT ? TT_NOT_FOUND : TT_IO, "key file %s", path);
    if (!S_ISREG(info.st_mode))
        return tt_err(TT_DATA, "key file %s is not a file", path);
    if (info.st_size > FILE_MAX) /* zcert takes it all into memory */
        return tt_err(TT_DATA, "key file %s is not a ZeroMQ certificate: it has more than %d bytes", path, FILE_MAX);
    if (info.st_mode & (info.st_uid == 0 ? 037 : 077))
        return tt_err(TT_DENIED, "key file %s can be read by others: chmod 600 it, or make a new one", path);
    if (access(path, R_OK) != 0)
        return tt_err_errno(TT_DENIED, "key file %s", path);
    return TT_OK;
}

tt_status_t tt_keys_read(tt_keys_t *out, const char *path)
{
    TT_TRY(s_check_file(path));
    zcert_t *cert = zcert_load(path);
    if (!cert)
        return tt_err(TT_DATA, "key file %s is not a ZeroMQ certificate", path);
    tt_keys_t keys;
    s_take(&keys, cert);
    zcert_destroy(&cert);
    char public_key[41];
    if (zmq_curve_public(public_key, keys.secret_key) != 0 || strcmp(public_key, keys.public_key) != 0)
        return tt_err(TT_DATA, "key file %s has no secret key that fits its public key", path);
    *out = keys;
    return TT_OK;
}

/*  zcert writes by name into what is there: a file for us alone to read, that nobody has heard of yet. It does not see a full disk. */
static tt_status_t s_create(tt_beside_t *beside, const char *path, tt_keys_t *out)
{
    zcert_t *cert = zcert_new();
    TT_CHECK(cert != NULL);
    const bool ok = s_write(cert, beside->beside) && tt_keys_read(out, beside->beside) == TT_OK;
    zcert_destroy(&cert);
    return ok ? tt_beside_finish(beside, false)
              : tt_err(TT_IO, "%s: the key could not be written; is the disk full?", path);
}

tt_status_t tt_keys_create(tt_keys_t *out, const char *path)
{
    tt_beside_t beside;
    TT_TRY(tt_file_is_free(path));
    TT_TRY(tt_beside_named(&beside, path, 0600));
    const tt_status_t status = s_create(&beside, path, out);
    tt_beside_drop(&beside);
    return status;
}

tt_status_t tt_keys_make(tt_keys_t *out)
{
    if (zmq_curve_keypair(out->public_key, out->secret_key) != 0)
        return tt_err(TT_UNSUPPORTED, "no key pair: %s", zmq_strerror(errno));
    return TT_OK;
}

void tt_keys_text(const tt_keys_t *self, char out[TT_KEYS_TEXT])
{
    snprintf(out, TT_KEYS_TEXT, "metadata\ncurve\n    public-key = \"%s\"\n    secret-key = \"%s\"\n", self->public_key,
        self->secret_key);
}
