#include "common/base/log.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/status.h"
#include "common/base/text.h"
#include "common/base/when.h"
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COMPONENTS_MAX = 16, NAME_MAX_ = 24, LINE_MAX_ = 4096 };

static const char *const s_level_names[] = {"error", "warn", "info", "debug", "trace"};

static struct {
    char role[32];
    bool json;
    tt_log_level_t level; /* of every component not named below */
    size_t count;
    struct {
        char name[NAME_MAX_];
        tt_log_level_t level;
    } components[COMPONENTS_MAX];
} s_log = {.level = TT_LOG_INFO};

static _Atomic int64_t s_version = -1;
static atomic_bool s_torn; /* the last line lacks its end */

static bool s_level_of(const char *text, size_t length, tt_log_level_t *out)
{
    for (size_t i = 0; i < TT_COUNT(s_level_names); i++) {
        if (strlen(s_level_names[i]) == length && memcmp(s_level_names[i], text, length) == 0) {
            *out = (tt_log_level_t)i;
            return true;
        }
    }
    return false;
}

/*  What an item of TT_LOG says; name of length 0: of every component that is not named. */
typedef struct {
    const char *name;
    size_t length;
    tt_log_level_t level;
} item_t;

static bool s_parse_item(const char *item, size_t length, item_t *out)
{
    const char *colon = memchr(item, ':', length);
    const size_t name = colon ? (size_t)(colon - item) : 0, from = colon ? name + 1 : 0;
    *out = (item_t){item, name, TT_LOG_INFO};
    return (!colon || name) && name < NAME_MAX_ && s_level_of(item + from, length - from, &out->level);
}

static bool s_take_item(const char *text, size_t length)
{
    item_t item;
    if (!s_parse_item(text, length, &item) || (item.length && s_log.count == COMPONENTS_MAX))
        return false;
    if (!item.length) {
        s_log.level = item.level;
        return true;
    }
    memcpy(s_log.components[s_log.count].name, item.name, item.length);
    s_log.components[s_log.count].name[item.length] = '\0';
    s_log.components[s_log.count++].level = item.level;
    return true;
}

#define ITEM_WRONG "'%.*s' is not LEVEL or COMPONENT:LEVEL with LEVEL one of error, warn, info, debug, trace"

static tt_status_t s_check_levels(const char *spec)
{
    for (size_t length, named = 0; spec && *spec; spec += length + (spec[length] == ',')) {
        item_t item;
        length = strcspn(spec, ",");
        if (!length)
            continue;
        if (!s_parse_item(spec, length, &item))
            return tt_err(TT_CONFIG, "TT_LOG: " ITEM_WRONG, (int)length, spec);
        named += item.length > 0;
        if (named > COMPONENTS_MAX)
            return tt_err(TT_CONFIG, "TT_LOG: more than %d components", COMPONENTS_MAX);
    }
    return TT_OK;
}

tt_status_t tt_log_check(void)
{
    const char *format = getenv("TT_LOG_FORMAT");
    if (format && *format && strcmp(format, "json") != 0 && strcmp(format, "text") != 0)
        return tt_err(TT_CONFIG, "TT_LOG_FORMAT: '%s' is not one of text, json", format);
    return s_check_levels(getenv("TT_LOG"));
}

void tt_log_init(const char *role, int index)
{
    s_log.level = TT_LOG_INFO;
    s_log.count = 0;
    memset(s_log.components, 0, sizeof s_log.components);
    if (index >= 0)
        snprintf(s_log.role, sizeof s_log.role, "%s/%d", role, index);
    else
        snprintf(s_log.role, sizeof s_log.role, "%s", role);
    const char *format = getenv("TT_LOG_FORMAT");
    s_log.json = format && strcmp(format, "json") == 0;
    const char *spec = getenv("TT_LOG");
    while (spec && *spec) {
        const size_t length = strcspn(spec, ",");
        if (length && !s_take_item(spec, length))
            tt_log("log", TT_LOG_WARN, "TT_LOG: " ITEM_WRONG "; ignored", (int)length, spec);
        spec += length + (spec[length] == ',');
    }
}

/*  Held while a line is handed over: whoever took the sink away has heard the last of it. */
static struct {
    pthread_mutex_t mutex;
    tt_log_sink_fn fn;
    void *ctx;
} s_sink = {.mutex = PTHREAD_MUTEX_INITIALIZER};

void tt_log_sink(tt_log_sink_fn fn, void *ctx)
{
    pthread_mutex_lock(&s_sink.mutex);
    s_sink.fn = fn;
    s_sink.ctx = ctx;
    pthread_mutex_unlock(&s_sink.mutex);
}

void tt_log_version(int64_t policy_version)
{
    s_version = policy_version;
}

bool tt_log_on(const char *component, tt_log_level_t level)
{
    for (size_t i = 0; i < s_log.count; i++)
        if (strcmp(s_log.components[i].name, component) == 0)
            return level <= s_log.components[i].level;
    return level <= s_log.level;
}

/*  One character, escaped where JSON wants that; '?' for what is none. */
static size_t s_json_character(char *out, size_t room, const char *text, size_t length, uint32_t code)
{
    if (length == 0)
        return (size_t)snprintf(out, room, "?");
    if (code == '"' || code == '\\')
        return (size_t)snprintf(out, room, "\\%c", (int)code);
    if (code < 0x20)
        return (size_t)snprintf(out, room, "\\u%04x", code);
    memcpy(out, text, length);
    return length;
}

static size_t s_json_text(char *out, size_t room, const char *text)
{
    size_t used = 0;
    while (*text && used + 8 < room) {
        uint32_t code = 0;
        const size_t length = tt_utf8_next(text, &code);
        used += s_json_character(out + used, room - used, text, length, code);
        text += length > 0 ? length : 1;
    }
    out[used] = '\0';
    return used;
}

static size_t s_json_line(
    char *line, size_t room, const char *component, tt_log_level_t level, const char *when, const char *text)
{
    char escaped[LINE_MAX_ - 512];
    s_json_text(escaped, sizeof escaped, text);
    return (size_t)snprintf(line, room,
        "{\"time\":\"%s\",\"level\":\"%s\",\"role\":\"%s\",\"component\":\"%s\",\"policy_version\":%lld,"
        "\"text\":\"%s\"}\n",
        when, s_level_names[level], s_log.role, component, (long long)s_version, escaped);
}

static size_t s_text_line(
    char *line, size_t room, const char *component, tt_log_level_t level, const char *when, const char *text)
{
    char version[32] = "";
    if (s_version >= 0)
        snprintf(version, sizeof version, " v%lld", (long long)s_version);
    return (size_t)snprintf(line, room, "%s %-5s %s%s%s: %s%s\n", when, s_level_names[level], s_log.role,
        s_log.role[0] ? " " : "", component, tt_shown(text), version);
}

/*  A line on a full disk may be torn, and there is nobody to complain to; but the next one begins anew. */
static void s_put(const char *line, size_t length)
{
    size_t done = 0;
    if (atomic_exchange(&s_torn, false) && !tt_file_write(STDERR_FILENO, "\n", 1, NULL))
        atomic_store(&s_torn, true);
    else if (!tt_file_write(STDERR_FILENO, line, length, &done) && done > 0)
        atomic_store(&s_torn, true);
}

void tt_log(const char *component, tt_log_level_t level, const char *fmt, ...)
{
    if (!tt_log_on(component, level))
        return;
    char text[LINE_MAX_ - 1024], line[LINE_MAX_], when[TT_WHEN];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    tt_when_text_us(when, tt_wall_ns());
    size_t length = s_log.json ? s_json_line(line, sizeof line, component, level, when, text)
                               : s_text_line(line, sizeof line, component, level, when, text);
    if (length >= sizeof line) {
        length = sizeof line - 1;
        line[length - 1] = '\n';
    }
    pthread_mutex_lock(&s_sink.mutex);
    const bool taken = s_sink.fn;
    if (taken)
        s_sink.fn(s_sink.ctx, line);
    pthread_mutex_unlock(&s_sink.mutex);
    if (!taken)
        s_put(line, length);
}
