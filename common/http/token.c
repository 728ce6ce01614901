#include "common/http/token.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/file.h"

enum { RANDOM = 32 };

static tt_status_t s_make(char out[TOKEN_SIZE], const char *run_dir)
{
    unsigned char bytes[RANDOM];
    char line[2 * RANDOM + 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return tt_err_errno(TT_OS, "getrandom");
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(line + 2 * i, 3, "%02x", bytes[i]);
    snprintf(out, TOKEN_SIZE, "%s", line);
    strcat(line, "\n");
    return tt_file_replace(run_dir, "token", line, 0600);
}

bool token_is(const char *text)
{
    const size_t length = strlen(text);
    return length >= 16 && length < TOKEN_SIZE &&
           text[strspn(text, "0123456789abcdefABCDEFghijklmnopqrstuvwxyzGHIJKLMNOPQRSTUVWXYZ-_.")] == '\0';
}

/*  A Secret that is mounted in a pod is root's, and its group's to read: as keys.c. or: what else helps. */
static tt_status_t s_read(char out[TOKEN_SIZE], int fd, const char *path, const char * or)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return tt_err_errno(TT_IO, "%s", path);
    if (info.st_mode & (info.st_uid == 0 ? 037 : 077))
        return tt_err(TT_DENIED, "%s: others may read it; chmod 600 it%s", path, or);
    const ssize_t got = read(fd, out, TOKEN_SIZE - 1);
    if (got < 0)
        return tt_err_errno(TT_IO, "%s", path);
    out[got] = '\0';
    out[strcspn(out, "\r\n")] = '\0';
    if (!token_is(out))
        return tt_err(TT_DATA, "%s: not a token (16 to 128 letters and digits)%s", path, or);
    return TT_OK;
}

static tt_status_t s_read_file(char out[TOKEN_SIZE], const char *path, const char * or)
{
    int fd = -1;
    TT_TRY(tt_file_open(&fd, path));
    const tt_status_t status = s_read(out, fd, path, or);
    close(fd);
    return status;
}

tt_status_t token_read(char out[TOKEN_SIZE], const char *path)
{
    return s_read_file(out, path, "");
}

tt_status_t token_take(char out[TOKEN_SIZE], const char *run_dir)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/token", run_dir) >= (int)sizeof path)
        return tt_err(TT_INVALID, "%s: path too long", run_dir);
    const tt_status_t status = s_read_file(out, path, ", or remove it for a new one");
    return status == TT_NOT_FOUND ? s_make(out, run_dir) : status;
}

bool token_matches(const char *token, const char *header)
{
    static const char scheme[] = "Bearer ";
    if (!header || strncasecmp(header, scheme, sizeof scheme - 1) != 0)
        return false;
    const char *given = header + sizeof scheme - 1;
    const size_t length = strlen(token);
    if (strlen(given) != length)
        return false;
    unsigned char differs = 0;
    for (size_t i = 0; i < length; i++)
        differs = (unsigned char)(differs | (given[i] ^ token[i]));
    return differs == 0;
}
