/*  fetch - the trained weights of a run as one file, checked before anything of it is handed out: from here, or through
 *  `kubectl exec` from a coordinator's pod, which has no shell and no cp. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/cmd.h"
#include "cli/weights.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/mem.h"
#include "common/base/signals.h"
#include "common/snapshot/checkpoints.h"
#include "controller/rundir.h"
#include <jansson.h>

const tt_option_t tt_opt_fetch[] = {
    {"output", 'o', "FILE", "where to; - is stdout (default: the run's name with .safetensors, in this folder)"},
    {"best", 0, NULL, "the weights with the best mean return at a checkpoint, in place of the last ones"},
    {"stay", 0, "S", "fetch nothing, but stay until S seconds after the run's end: keeps a pod there to fetch from"},
    {0},
};

enum { LOOK_MS = 500, SHA_HEX = 2 * crypto_hash_sha256_BYTES + 1 };

typedef struct {
    tt_rundir_t run;
    char path[4300];
    tt_buf_t bytes;
    char update[32], mean[32], file_sha[SHA_HEX];
} fetch_t;

/* ---- is it whole? -------------------------------------------------------------------------------------------------- */

static void s_sha256(char out[SHA_HEX], const void *data, size_t size)
{
    unsigned char hash[crypto_hash_sha256_BYTES];
    crypto_hash_sha256(hash, data, size);
    sodium_bin2hex(out, SHA_HEX, hash, sizeof hash);
}

static const char *s_meta(const tt_st_t *file, const char *key)
{
    const char *text = tt_st_meta(file, key);
    return text ? text : "?";
}

static const char *s_name(const fetch_t *self)
{
    return strrchr(self->path, '/') + 1;
}

/*  The final ones are those that the run's summary tells of. */
static tt_status_t s_check_summary(const fetch_t *self, const char *told)
{
    tt_buf_t text;
    tt_buf_init(&text, 1 << 20);
    json_t *summary =
        tt_rundir_read(&self->run, "result.json", &text) == TT_OK ? json_loads(tt_buf_text(&text), 0, NULL) : NULL;
    const char *wanted = json_string_value(json_object_get(summary, "weights_sha256"));
    tt_status_t status = TT_OK;
    if (wanted && strcmp(wanted, told) != 0)
        status =
            tt_err(TT_DATA, "%s has weights %s, but %s/result.json tells of %s: try again if the run ends just now",
                self->path, told, self->run.path, wanted);
    json_decref(summary);
    tt_buf_free(&text);
    return status;
}

static tt_status_t s_check(fetch_t *self)
{
    tt_st_t *file = NULL;
    tt_status_t status = tt_snapshot_open(&file, tt_buf_text(&self->bytes), self->bytes.size);
    if (status != TT_OK)
        return tt_err_wrap(status, "%s", self->path);
    if (strcmp(s_name(self), TT_CHECKPOINT_FINAL) == 0)
        status = s_check_summary(self, s_meta(file, "weights_sha256"));
    snprintf(self->update, sizeof self->update, "%s", s_meta(file, "update"));
    snprintf(self->mean, sizeof self->mean, "%s", s_meta(file, "return_mean"));
    tt_st_destroy(&file);
    s_sha256(self->file_sha, tt_buf_text(&self->bytes), self->bytes.size);
    return status;
}

/* ---- to where it is wanted ------------------------------------------------------------------------------------------- */

static tt_status_t s_write(const fetch_t *self, int fd, const char *where)
{
    if (tt_file_write(fd, tt_buf_text(&self->bytes), self->bytes.size, NULL))
        return TT_OK;
    return tt_err_errno(TT_IO, "%s", where);
}

/*  Whole or not at all. */
static tt_status_t s_save(const fetch_t *self, const char *path)
{
    char *beside = tt_sprintf("%s.%d.tmp", path, (int)getpid());
    const int fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    tt_status_t status = fd < 0 ? tt_err_errno(TT_IO, "%s", beside) : s_write(self, fd, beside);
    if (status == TT_OK && fsync(fd) != 0)
        status = tt_err_errno(TT_IO, "%s", beside);
    if (fd >= 0 && close(fd) != 0 && status == TT_OK)
        status = tt_err_errno(TT_IO, "%s", beside);
    if (status == TT_OK && rename(beside, path) != 0)
        status = tt_err_errno(TT_IO, "%s", path);
    if (status != TT_OK && fd >= 0)
        unlink(beside);
    free(beside);
    return status;
}

static tt_status_t s_hand_out(const fetch_t *self, const char *output)
{
    char path[sizeof self->run.name + 16];
    snprintf(path, sizeof path, "%s.safetensors", self->run.name);
    const char *to = output ? output : path;
    if (strcmp(to, "-") != 0)
        TT_TRY(s_save(self, to));
    else if (isatty(STDOUT_FILENO))
        return tt_err(TT_USAGE, "weights are not for a terminal: -o FILE, or send stdout to a file");
    else
        TT_TRY(s_write(self, STDOUT_FILENO, "stdout"));
    fprintf(stderr, "%s of %s: version %s, mean return %.6s, %zu bytes, sha256 %s%s%s\n", s_name(self), self->run.name,
        self->update, self->mean, self->bytes.size, self->file_sha, strcmp(to, "-") == 0 ? "" : " -> ",
        strcmp(to, "-") == 0 ? "" : to);
    return TT_OK;
}

static tt_status_t s_read(fetch_t *self, bool best)
{
    TT_TRY(weights_of_run(self->path, sizeof self->path, self->run.path, best));
    return tt_buf_read_file(&self->bytes, self->path);
}

static tt_status_t s_fetch(fetch_t *self, const tt_args_t *args)
{
    const bool best = tt_arg_given(args, "best");
    TT_TRY(tt_rundir_find(&self->run, tt_operand(args, 0)));
    tt_status_t status = s_read(self, best);
    if (status == TT_NOT_FOUND) /* a newer one has taken its place just now */
        status = s_read(self, best);
    TT_TRY(status);
    TT_TRY(s_check(self));
    return s_hand_out(self, tt_arg(args, "output"));
}

/* ---- a pod that stays ------------------------------------------------------------------------------------------------ */

/*  The run directory may not be there yet: the coordinator of the same pod makes it. */
static bool s_has_ended(const char *operand)
{
    char path[4300];
    snprintf(path, sizeof path, "%s/result.json", operand);
    return access(path, F_OK) == 0;
}

static tt_status_t s_stay(const char *operand, uint64_t seconds)
{
    int fd = -1;
    int64_t until_ms = INT64_MAX;
    TT_TRY(tt_signals_open(&fd));
    for (;;) {
        struct pollfd signals = {.fd = fd, .events = POLLIN};
        const int64_t now_ms = tt_now_ms(tt_clock_real());
        if (until_ms == INT64_MAX && s_has_ended(operand))
            until_ms = now_ms + (int64_t)seconds * 1000;
        if (now_ms >= until_ms || (poll(&signals, 1, LOOK_MS) > 0 && tt_signals_next(fd) != 0))
            break;
    }
    close(fd);
    return TT_OK;
}

int tt_cmd_fetch(int argc, char **argv)
{
    int code;
    uint64_t seconds = 0;
    TT_AUTO(tt_args) args = tt_args_new(&code, "fetch", argc, argv);
    if (!args)
        return code;
    fetch_t self = {0};
    tt_buf_init(&self.bytes, TT_SNAPSHOT_FILE_MAX);
    tt_status_t status = tt_arg_u64(args, "stay", &seconds, 0, 366 * 86400);
    if (status == TT_OK)
        status = tt_arg_given(args, "stay") ? s_stay(tt_operand(args, 0), seconds) : s_fetch(&self, args);
    tt_buf_free(&self.bytes);
    return status == TT_OK ? 0 : tt_args_fail(args, status);
}
