#define TT_LOG_COMPONENT "kube"
#include "k8s/api/recorder.h"
#include "common/base/words.h"
#include <inttypes.h>
#include <jansson.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "common/base/when.h"
#include "common/base/dict.h"

enum {
    SAME_MS = 600000,    /* an event that comes again within this time is the same one       */
    MESSAGES = 10,       /* different ones of an (object, reason), before they are combined  */
    BURST = 25,          /* of an object at once ...                                          */
    SPEND_MS = 300000,   /* ... and one more after each of these                              */
    REMEMBERED = 4096,   /* events; and objects; and groups of events                         */
    NAME_MAX_SIZE = 230, /* of the object's in the event's */
    TRIES = 3,
    RETRY_MS = 2000,
    TELLING = 32,    /* at once: the others wait here, where they need less room than in the client */
    TURN_MS = 300000 /* they go after all else: a thousand jobs at once keep them waiting */
};

/*  What an event says, as the lines of its key: nothing else is kept of it, for thousands may wait or be remembered. The
 *  last may have lines of its own, and is not there in the key of a combined one. */
typedef enum { API_VERSION, KIND, NAMESPACE, NAME, UID, TYPE, REASON, MESSAGE } line_t;

/*  An event that the server knows, or is being told of. */
typedef struct event event_t;
struct event {
    kube_recorder_t *recorder;
    const char *key;         /* the dictionary's                                               */
    char *message;           /* the latest, of a combined one; else NULL                       */
    uint64_t random;         /* of its own name                                                */
    uint64_t version;        /* of the object; 0 = left out                                    */
    int64_t first_s, last_s; /* when it came first and last, Unix                              */
    int count, told;         /* how often it came; what the server was told last, and got      */
    int telling;             /* what it is being told                                          */
    int tries;               /* that failed in a row                                           */
    int64_t last_ms;         /* when it came last, by the loop's clock                         */
    uint64_t request, timer; /* 0 = none */
    bool made;               /* the server has it                                              */
    bool waits;              /* in the line to be told                                         */
    event_t *next;
};

/*  The messages of an object with one type and reason. */
typedef struct {
    int64_t until_ms;        /* first, as a purse has it: it tells nothing after that */
    uint32_t seen[MESSAGES]; /* hashes */
    int count;
} group_t;

/*  What an object may spend: all of BURST when full_ms has passed. */
typedef struct {
    int64_t full_ms; /* first: it tells nothing after that */
} purse_t;

struct kube_recorder {
    kube_client_t *client;
    tt_reactor_t *loop;
    char *component;
    tt_dict_t events, groups, purses;
    event_t *first, **last; /* those that wait to be told */
    int telling;
};

static void s_tell(void *ctx);

static int64_t s_now_ms(const kube_recorder_t *self)
{
    return tt_now_ms(tt_reactor_clock(self->loop));
}

/* ---- life --------------------------------------------------------------------------------------------------------- */

tt_status_t kube_recorder_new(kube_recorder_t **self_p, kube_client_t *client, const char *component)
{
    kube_recorder_t *self = tt_new0(sizeof *self);
    self->client = client;
    self->loop = kube_client_loop(client);
    self->last = &self->first;
    self->component = tt_strdup(component);
    *self_p = self;
    return TT_OK;
}

static void s_leave_line(event_t *event)
{
    kube_recorder_t *self = event->recorder;
    event_t **at = &self->first;
    while (*at != event)
        at = &(*at)->next;
    *at = event->next;
    if (self->last == &event->next)
        self->last = at;
    event->waits = false;
}

static void s_free_event(event_t *event)
{
    if (event->waits)
        s_leave_line(event);
    event->recorder->telling -= event->request != 0;
    kube_client_cancel(event->recorder->client, event->request);
    tt_reactor_forget_timer(event->recorder->loop, event->timer);
    free(event->message);
    free(event);
}

static int s_drop_event(void *ctx, void *value)
{
    (void)ctx;
    s_free_event(value);
    return 1;
}

static int s_drop_any(void *ctx, void *value)
{
    (void)ctx;
    free(value);
    return 1;
}

void kube_recorder_destroy(kube_recorder_t **self_p)
{
    kube_recorder_t *self = *self_p;
    if (!self)
        return;
    tt_dict_filter(&self->events, s_drop_event, NULL);
    tt_dict_filter(&self->groups, s_drop_any, NULL);
    tt_dict_filter(&self->purses, s_drop_any, NULL);
    tt_dict_free(&self->events);
    tt_dict_free(&self->groups);
    tt_dict_free(&self->purses);
    free(self->component);
    free(self);
    *self_p = NULL;
}

static int s_drop_untold(void *ctx, void *value)
{
    const event_t *event = value;
    return event->request || event->timer || event->waits ? s_drop_event(ctx, value) : 0;
}

void kube_recorder_forget(kube_recorder_t *self)
{
    tt_dict_filter(&self->events, s_drop_untold, NULL);
}

/* ---- forgetting --------------------------------------------------------------------------------------------------- */

/*  Not under way, and older than *ctx. */
static int s_drop_old_event(void *ctx, void *value)
{
    const event_t *event = value;
    if (event->request || event->timer || event->waits || event->last_ms > *(const int64_t *)ctx)
        return 0;
    return s_drop_event(NULL, value);
}

/*  A group, or a purse, that tells nothing since *ctx. */
static int s_drop_over(void *ctx, void *value)
{
    return *(const int64_t *)value > *(const int64_t *)ctx ? 0 : s_drop_any(NULL, value);
}

/*  Make room for one more: first of what tells nothing any more, then of all. False: everything is under way. */
static bool s_room(tt_dict_t *dict, int (*drop)(void *ctx, void *value), int64_t old_ms)
{
    int64_t all = INT64_MAX;
    if (dict->count >= REMEMBERED)
        tt_dict_filter(dict, drop, &old_ms);
    if (dict->count >= REMEMBERED)
        tt_dict_filter(dict, drop, &all);
    return dict->count < REMEMBERED;
}

/*  The group, or purse, of a key, made where there is none. */
static void *s_remembered(const kube_recorder_t *self, tt_dict_t *dict, const char *key, size_t size)
{
    void *value = tt_dict_get(dict, key);
    if (value)
        return value;
    (void)s_room(dict, s_drop_over, s_now_ms(self));
    value = tt_new0(size);
    tt_dict_set(dict, key, value);
    return value;
}

/* ---- telling the server ------------------------------------------------------------------------------------------- */

/*  Unix time as metav1.Time. */
static json_t *s_time(int64_t unix_s)
{
    char text[TT_WHEN];
    return json_string(tt_when_text(text, unix_s));
}

/*  One line of the event's key, and its length. */
static const char *s_line(const event_t *event, line_t which, size_t *size)
{
    const char *at = event->key;
    for (int i = 0; i < (int)which; i++)
        at += strcspn(at, "\n") + (at[strcspn(at, "\n")] != '\0');
    *size = which == MESSAGE ? strlen(at) : strcspn(at, "\n");
    return at;
}

/*  NULL for an empty one. */
static json_t *s_text(const event_t *event, line_t which)
{
    size_t size;
    const char *text = s_line(event, which, &size);
    return size ? json_stringn(text, size) : NULL;
}

/*  Where the event lies. */
static const char *s_space(const event_t *event, size_t *size)
{
    const char *space = s_line(event, NAMESPACE, size);
    if (*size)
        return space;
    *size = strlen("default");
    return "default";
}

/*  "job.0123456789abcdef". Caller frees. */
static char *s_name(const event_t *event)
{
    size_t size;
    const char *name = s_line(event, NAME, &size);
    return tt_sprintf("%.*s.%016" PRIx64, (int)(size < NAME_MAX_SIZE ? size : NAME_MAX_SIZE), name, event->random);
}

static void s_failed(event_t *event, const kube_reply_t *reply)
{
    const bool passing = !reply->code || reply->code == 429 || reply->code >= 500;
    if (passing && ++event->tries < TRIES) {
        event->timer = tt_reactor_timer(event->recorder->loop, RETRY_MS, s_tell, event);
        return;
    }
    char *name = s_name(event);
    log_warn("event %s: not recorded: %s", name, reply->text);
    free(name);
    event->tries = 0;
    event->told = event->count; /* until it comes again */
}

static void s_told(kube_recorder_t *self, event_t *event, const kube_reply_t *reply)
{
    if (reply->code == 404 && event->made) { /* somebody removed it: what comes next is a new one */
        tt_dict_remove(&self->events, event->key);
        s_free_event(event);
        return;
    }
    if (reply->code / 100 != 2 && (event->made || reply->code != 409)) { /* 409: an answer was lost */
        s_failed(event, reply);
        return;
    }
    event->made = true;
    event->tries = 0;
    event->told = reply->code == 409 ? 0 : event->telling;
    if (event->told < event->count)
        s_tell(event);
}

static void s_on_told(void *ctx, const kube_reply_t *reply)
{
    event_t *event = ctx;
    kube_recorder_t *self = event->recorder;
    event->request = 0;
    self->telling--;
    s_told(self, event, reply);
    if (!self->first || self->telling >= TELLING)
        return;
    event_t *next = self->first;
    s_leave_line(next);
    s_tell(next);
}

/*  The object that it is about, for involvedObject. */
static json_t *s_object(const event_t *event)
{
    json_t *object = json_pack("{s:o*, s:o*, s:o*, s:o*, s:o*}", "apiVersion", s_text(event, API_VERSION), "kind",
        s_text(event, KIND), "namespace", s_text(event, NAMESPACE), "name", s_text(event, NAME), "uid",
        s_text(event, UID));
    if (event->version) {
        char version[24];
        (void)snprintf(version, sizeof version, "%" PRIu64, event->version);
        json_object_set_new(object, "resourceVersion", json_string(version));
    }
    return object;
}

/*  What creates it, but for count and last time. */
static json_t *s_body(const event_t *event, const char *name)
{
    size_t size;
    const char *space = s_space(event, &size), *component = event->recorder->component;
    return json_pack("{s:s, s:s, s:{s:s, s:s%}, s:o*, s:o*, s:o*, s:o*, s:{s:s}, s:s, s:o}", "apiVersion", "v1", "kind",
        "Event", "metadata", "name", name, "namespace", space, size, "involvedObject", s_object(event), "type",
        s_text(event, TYPE), "reason", s_text(event, REASON), "message", s_text(event, MESSAGE), "source", "component",
        component, "reportingComponent", component, "firstTimestamp", s_time(event->first_s));
}

static void s_wait(kube_recorder_t *self, event_t *event)
{
    event->waits = true;
    event->next = NULL;
    *self->last = event;
    self->last = &event->next;
}

static void s_send(kube_recorder_t *self, event_t *event, json_t *body, const char *name)
{
    size_t size;
    const char *space = s_space(event, &size), *made = event->made ? name : "";
    char *path = tt_sprintf("/api/v1/namespaces/%.*s/events%s%s", (int)size, space, *made ? "/" : "", made);
    char *text = json_dumps(body, JSON_COMPACT);
    const kube_request_t request = {.method = event->made ? "PATCH" : "POST",
        .path = path,
        .body = text,
        .content_type = event->made ? "application/merge-patch+json" : NULL,
        .timeout_ms = TURN_MS,
        .priority = KUBE_EVENTS};
    event->request = kube_client_send(self->client, &request, s_on_told, event);
    free(text);
    free(path);
}

/*  Create it, or say how often it has come by now; when it is its turn. */
static void s_tell(void *ctx)
{
    event_t *event = ctx;
    kube_recorder_t *self = event->recorder;
    event->timer = 0;
    if (self->telling >= TELLING) {
        s_wait(self, event);
        return;
    }
    self->telling++;
    event->telling = event->count;
    char *name = s_name(event);
    json_t *body = event->made ? json_object() : s_body(event, name);
    json_object_set_new(body, "count", json_integer(event->count));
    json_object_set_new(body, "lastTimestamp", s_time(event->last_s));
    if (event->message)
        json_object_set_new(body, "message", json_string(event->message));
    s_send(self, event, body, name);
    json_decref(body);
    free(name);
}

/* ---- what comes in ------------------------------------------------------------------------------------------------ */

/*  May the object have one more? */
static bool s_spend(kube_recorder_t *self, const char *object)
{
    const int64_t now_ms = s_now_ms(self);
    purse_t *purse = s_remembered(self, &self->purses, object, sizeof *purse);
    const int64_t full_ms = (purse->full_ms > now_ms ? purse->full_ms : now_ms) + SPEND_MS;
    if (full_ms - now_ms > (int64_t)BURST * SPEND_MS)
        return false;
    purse->full_ms = full_ms;
    return true;
}

/*  Is it one of too many different messages? */
static bool s_combined(kube_recorder_t *self, const char *key, const char *message)
{
    const int64_t now_ms = s_now_ms(self);
    const uint32_t hash = tt_dict_hash(message, strlen(message));
    group_t *group = s_remembered(self, &self->groups, key, sizeof *group);
    if (now_ms >= group->until_ms)
        group->count = 0;
    group->until_ms = now_ms + SAME_MS;
    for (int i = 0; i < group->count; i++)
        if (group->seen[i] == hash)
            return false;
    if (group->count == MESSAGES)
        return true;
    group->seen[group->count++] = hash;
    return false;
}

static event_t *s_event(kube_recorder_t *self, const char *key, uint64_t version, int64_t wall_s)
{
    json_t *words = json_string(key); /* NULL: not UTF-8 */
    json_decref(words);
    if (!words || !s_room(&self->events, s_drop_old_event, s_now_ms(self) - SAME_MS))
        return NULL;
    event_t *event = tt_new0(sizeof *event);
    event->recorder = self;
    event->version = version;
    event->first_s = wall_s;
    randombytes_buf(&event->random, sizeof event->random);
    event->key = tt_dict_set(&self->events, key, event);
    return event;
}

static event_t *s_known(kube_recorder_t *self, const char *key)
{
    event_t *event = tt_dict_get(&self->events, key);
    if (!event || s_now_ms(self) - event->last_ms < SAME_MS)
        return event;
    tt_dict_remove(&self->events, key);
    s_free_event(event);
    return NULL;
}

static char *s_combined_text(const char *message)
{
    char *text = tt_sprintf("(combined from similar events): %s", message), words[KUBE_EVENT_WORDS + 1];
    tt_words(words, sizeof words, text);
    free(text);
    return tt_strdup(words);
}

/*  group: the lines but for the message. False: dropped. */
static bool s_record(kube_recorder_t *self, const char *group, const char *message, uint64_t version)
{
    const bool combined = s_combined(self, group, message);
    char *key = combined ? tt_strdup(group) : tt_sprintf("%s\n%s", group, message);
    event_t *event = s_known(self, key);
    const int64_t wall_s = tt_wall_ns() / 1000000000;
    if (!event)
        event = s_event(self, key, version, wall_s);
    free(key);
    if (!event)
        return false;
    event->count++;
    event->last_s = wall_s;
    event->last_ms = s_now_ms(self);
    if (combined) {
        free(event->message);
        event->message = s_combined_text(message);
    }
    if (!event->request && !event->timer && !event->waits)
        s_tell(event);
    return true;
}

static const char *s_or_empty(const char *text)
{
    return text ? text : "";
}

void kube_recorder_event(
    kube_recorder_t *self, const kube_ref_t *about, const char *type, const char *reason, const char *fmt, ...)
{
    char *words = NULL, message[KUBE_EVENT_WORDS + 1];
    va_list args;
    va_start(args, fmt);
    const int size = vasprintf(&words, fmt, args);
    TT_CHECK(size >= 0);
    va_end(args);
    tt_words(message, sizeof message, words);
    free(words);
    char *object = tt_sprintf("%s\n%s\n%s\n%s\n%s", about->api_version, about->kind, s_or_empty(about->namespace_),
        about->name, s_or_empty(about->uid));
    char *group = tt_sprintf("%s\n%s\n%s", object, type, reason);
    if (!s_spend(self, object))
        log_debug("event %s of %s: too many: %s", reason, about->name, message);
    else if (!s_record(self, group, message, about->version))
        log_warn("event %s of %s: dropped; too many are under way, or its names are no UTF-8", reason, about->name);
    free(object);
    free(group);
}
