/*  log - one line for a person or a machine, on stderr.
 *
 *  TT_LOG=learner:debug,net:trace,info sets levels (a name alone sets all components). Text on a terminal; with
 *  TT_LOG_FORMAT=json one JSON object a line. Every line carries time, level, role and number of the process,
 *  component, and the policy version where one was set.
 *
 *  Threads: any thread may log; a line is written by one write(2). */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "common/base/status.h"

typedef enum {
    TT_LOG_ERROR, /* cannot go on           */
    TT_LOG_WARN,  /* goes on                */
    TT_LOG_INFO,  /* life cycle             */
    TT_LOG_DEBUG, /* per object             */
    TT_LOG_TRACE  /* per message            */
} tt_log_level_t;

/*  Are TT_LOG and TT_LOG_FORMAT understood? For who starts others that read them. TT_CONFIG: what is not. */
tt_status_t tt_log_check(void);

/*  Read TT_LOG and TT_LOG_FORMAT and remember who we are ("learner", 1). Call once, before threads start.
 *  An unreadable TT_LOG is reported on stderr and ignored. Without a call: info, text, no role. */
void tt_log_init(const char *role, int index);

/*  The policy version that lines carry from now on (any thread; -1 = none). */
void tt_log_version(int64_t policy_version);

/*  Would a line of this component and level be written? For callers whose arguments cost something. */
bool tt_log_on(const char *component, tt_log_level_t level);

void tt_log(const char *component, tt_log_level_t level, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/*  Whole lines, with their newline, go there instead of to stderr from now on (NULL = to stderr again). fn is
 *  called by whatever thread logs, one at a time, and must not log. When the call returns the one before has its last line. */
typedef void (*tt_log_sink_fn)(void *ctx, const char *line);
void tt_log_sink(tt_log_sink_fn fn, void *ctx);

/*  A file defines TT_LOG_COMPONENT before it includes this header, then says log_info("joined as rank %d", rank). */
#ifdef TT_LOG_COMPONENT
#define log_error(...) tt_log(TT_LOG_COMPONENT, TT_LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  tt_log(TT_LOG_COMPONENT, TT_LOG_WARN, __VA_ARGS__)
#define log_info(...)  tt_log(TT_LOG_COMPONENT, TT_LOG_INFO, __VA_ARGS__)
#define log_debug(...) \
    (tt_log_on(TT_LOG_COMPONENT, TT_LOG_DEBUG) ? tt_log(TT_LOG_COMPONENT, TT_LOG_DEBUG, __VA_ARGS__) : (void)0)
#define log_trace(...) \
    (tt_log_on(TT_LOG_COMPONENT, TT_LOG_TRACE) ? tt_log(TT_LOG_COMPONENT, TT_LOG_TRACE, __VA_ARGS__) : (void)0)
#endif
