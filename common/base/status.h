/*  status - what a call says of itself, and the words for a person.
 *
 *  Every fallible call returns tt_status_t and writes its out parameters only on TT_OK. The function that first
 *  decides that something is wrong says so once, in words, with tt_err(); callers that know something more prefix it
 *  with tt_err_wrap(). The words are kept per thread until the next tt_err().
 *
 *  Threads: the error text is thread-local; everything else is pure. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdnoreturn.h>

/* X(NAME, value, exit code (sysexits.h; 79: no program's but ours), text) */
#define TT_STATUS_MAP(X)                          \
    X(OK, 0, 0, "ok")                             \
    X(AGAIN, -1, 75, "not ready yet")             \
    X(TIMEOUT, -2, 75, "deadline passed")         \
    X(INVALID, -3, 65, "bad value")               \
    X(CONFIG, -4, 78, "bad configuration")        \
    X(USAGE, -5, 64, "bad usage")                 \
    X(NOT_FOUND, -6, 66, "not found")             \
    X(DATA, -7, 65, "damaged or foreign data")    \
    X(UNAVAILABLE, -8, 69, "service unavailable") \
    X(IO, -9, 74, "input or output failed")       \
    X(OS, -10, 71, "system error")                \
    X(EXISTS, -11, 73, "exists or in use")        \
    X(PROTOCOL, -12, 76, "protocol violated")     \
    X(DENIED, -13, 77, "permission denied")       \
    X(INTERNAL, -14, 70, "internal error")        \
    X(UNSUPPORTED, -15, 69, "not supported")      \
    X(STOPPED, -16, 130, "stopped")               \
    X(DEVICE, -17, 74, "device failed")           \
    X(DIVERGED, -18, 79, "training has diverged")

typedef enum {
#define X(name, value, exit_code, text) TT_##name = value,
    TT_STATUS_MAP(X)
#undef X
} tt_status_t;

/*  "CONFIG", and "bad configuration". Never NULL. */
const char *tt_status_name(tt_status_t status);
const char *tt_status_text(tt_status_t status);

/*  The process exit code of a status (sysexits.h; 0 for TT_OK). */
int tt_status_exit_code(tt_status_t status);

/*  Exit codes as users know them (docs/guide/troubleshooting.md). X(code, final, WORD, text); final: the same again would come
 *  of starting it again. */
#define TT_EXIT_MAP(X)                                   \
    X(64, true, "BadUsage", "bad usage")                 \
    X(65, true, "BadData", "damaged or foreign data")    \
    X(66, true, "NotFound", "not found")                 \
    X(69, false, "NotAvailable", "not available")        \
    X(70, true, "InternalError", "internal error")       \
    X(71, false, "SystemError", "system error")          \
    X(73, true, "InUse", "exists or in use")             \
    X(74, false, "IOError", "input or output failed")    \
    X(75, false, "DeadlinePassed", "a deadline passed")  \
    X(76, false, "ProtocolError", "protocol violated")   \
    X(77, true, "PermissionDenied", "permission denied") \
    X(78, true, "BadConfiguration", "bad configuration") \
    X(79, true, "Diverged", "training has diverged")

/*  "BadConfiguration", and "bad configuration"; NULL where the code is none of these. */
const char *tt_exit_word(int code);
const char *tt_exit_text(int code);
bool tt_exit_is_final(int code);

/*  Record what went wrong, in one line without a newline, and return status, so that one can write
 *  `return tt_err(TT_CONFIG, "%s:%d: ...", file, line);`. Cut after 2047 bytes. */
tt_status_t tt_err(tt_status_t status, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*  The same, with ": " and strerror(errno) behind it. */
tt_status_t tt_err_errno(tt_status_t status, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*  Prefix the recorded text with "<fmt>: " and return status. */
tt_status_t tt_err_wrap(tt_status_t status, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*  The recorded text of this thread, "" if none. Borrowed until the next tt_err of this thread. */
const char *tt_err_text(void);

/*  Pass a failure on. */
#define TT_TRY(call)                         \
    do {                                     \
        tt_status_t tt_try_status_ = (call); \
        if (tt_try_status_ != TT_OK)         \
            return tt_try_status_;           \
    } while (0)

/*  We went wrong: in every build, prints file and line and aborts. Even so no side effects in x (suite.test_checks). */
#define TT_CHECK(x) ((x) ? (void)0 : tt_check_failed(#x, __FILE__, __LINE__))
noreturn void tt_check_failed(const char *expr, const char *file, int line);

/*  The same for hot inner loops: compiled in unless NDEBUG. */
#ifdef NDEBUG
#define TT_DCHECK(x) ((void)sizeof(x))
#else
#define TT_DCHECK(x) TT_CHECK(x)
#endif

/*  Destroy a local on every return path: TT_AUTO(foo) f = NULL; calls foo_destroy(&f). */
#define TT_AUTO(T) __attribute__((cleanup(T##_destroy))) T##_t *

#define TT_COUNT(array) (sizeof(array) / sizeof((array)[0]))
