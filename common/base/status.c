#include "common/base/status.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 2048 };
static _Thread_local char s_text[TEXT_MAX];

const char *tt_status_name(tt_status_t status)
{
    switch (status) {
#define X(name, value, exit_code, text) \
    case TT_##name:                     \
        return #name;
        TT_STATUS_MAP(X)
#undef X
    }
    return "UNKNOWN";
}

const char *tt_status_text(tt_status_t status)
{
    switch (status) {
#define X(name, value, exit_code, text) \
    case TT_##name:                     \
        return text;
        TT_STATUS_MAP(X)
#undef X
    }
    return "unknown status";
}

int tt_status_exit_code(tt_status_t status)
{
    switch (status) {
#define X(name, value, exit_code, text) \
    case TT_##name:                     \
        return exit_code;
        TT_STATUS_MAP(X)
#undef X
    }
    return 70;
}

typedef struct {
    int code;
    bool final;
    const char *word, *text;
} exit_t;

/*  NULL: none of them. */
static const exit_t *s_exit(int code)
{
    static const exit_t all[] = {
#define X(code, final, word, text) {code, final, word, text},
        TT_EXIT_MAP(X)
#undef X
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].code == code)
            return &all[i];
    return NULL;
}

const char *tt_exit_word(int code)
{
    const exit_t *found = s_exit(code);
    return found ? found->word : NULL;
}

const char *tt_exit_text(int code)
{
    const exit_t *found = s_exit(code);
    return found ? found->text : NULL;
}

bool tt_exit_is_final(int code)
{
    const exit_t *found = s_exit(code);
    return found && found->final;
}

tt_status_t tt_err(tt_status_t status, const char *fmt, ...)
{
    char text[TEXT_MAX]; /* the arguments may point into s_text */
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    memcpy(s_text, text, sizeof text);
    return status;
}

tt_status_t tt_err_errno(tt_status_t status, const char *fmt, ...)
{
    const int code = errno;
    char text[TEXT_MAX], cause[128];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    const size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, ": %s", strerror_r(code, cause, sizeof cause));
    memcpy(s_text, text, sizeof text);
    errno = code;
    return status;
}

tt_status_t tt_err_wrap(tt_status_t status, const char *fmt, ...)
{
    char text[2 * TEXT_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    const size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, ": %s", s_text);
    text[TEXT_MAX - 1] = '\0';
    memcpy(s_text, text, TEXT_MAX);
    return status;
}

const char *tt_err_text(void)
{
    return s_text;
}

noreturn void tt_check_failed(const char *expr, const char *file, int line)
{
    fprintf(stderr, "tutti: internal error at %s:%d: %s does not hold; please report this\n", file, line, expr);
    fflush(NULL);
    abort();
}
