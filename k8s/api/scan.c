/*  One pass over the bytes with a stack of what is open. What is kept goes to `out` as it is read, white space left out;
 *  a member's key is written there before we know whether it is wanted, and taken back when it is not. Numbers and
 *  literals are passed on unread (the parser of the object looks at them). */
#include "k8s/api/scan.h"
#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/base/members.h"
#include <stdlib.h>
#include <string.h>

enum {
    MAX_DEPTH = 64,
    MAX_WORD = 16 << 10, /* of a key or value of the envelope that we read ourselves */
    KEEP_ROOM = 64 << 10 /* a larger buffer is given back after its object           */
};

/*  What an open bracket is to us. */
typedef enum { IN_TOP, IN_META, IN_ITEMS, IN_OBJECT, IN_DROPPED } in_t;

/*  What may come next. */
typedef enum {
    AT_START, /* of a document, or the end of the body */
    AT_FIRST_KEY,
    AT_KEY,
    AT_COLON,
    AT_FIRST_VALUE,
    AT_VALUE,
    AT_NEXT, /* a comma, or the closing bracket */
    AT_STRING,
    AT_SCALAR,
    AT_OVER /* the list is complete: only white space */
} at_t;

typedef struct {
    in_t in;
    bool array;
    bool any;           /* something of it is in `out`: a comma goes before the next */
    tt_members_at_t at; /* the rules that hold for its members                       */
} level_t;

struct kube_scan {
    kube_scan_kind_t kind;
    kube_object_fn fn;
    void *ctx;
    tt_members_t *rules;
    tt_status_t failed;
    at_t at;
    bool key, escape;  /* AT_STRING: it is a key; the byte before was a backslash */
    bool keep, listen; /* the string or scalar goes to out; to word               */
    char **capture;    /* where a value that we listen to goes; NULL = nowhere    */
    size_t mark;       /* length of out before the key                            */
    in_t next;         /* what the value of the key just read is to us            */
    tt_members_at_t next_rules;
    size_t depth;
    level_t levels[MAX_DEPTH];
    tt_buf_t out, word;
    bool object; /* of a watch event: out holds it; of a list: it has items */
    char *type, *version, *more;
    uint64_t offset; /* of the piece being fed in the body */
};

/* ---- life --------------------------------------------------------------------------------------------------------- */

tt_status_t kube_scan_new(
    kube_scan_t **self_p, kube_scan_kind_t kind, kube_drop_t drop, size_t max_object, kube_object_fn fn, void *ctx)
{
    tt_members_t *rules = NULL;
    TT_TRY(tt_members_new(&rules, drop));
    kube_scan_t *self = tt_new0(sizeof *self);
    self->kind = kind;
    self->fn = fn;
    self->ctx = ctx;
    self->rules = rules;
    tt_buf_init(&self->out, max_object);
    tt_buf_init(&self->word, MAX_WORD);
    *self_p = self;
    return TT_OK;
}

void kube_scan_destroy(kube_scan_t **self_p)
{
    kube_scan_t *self = *self_p;
    if (!self)
        return;
    tt_members_destroy(&self->rules);
    tt_buf_free(&self->out);
    tt_buf_free(&self->word);
    free(self->type);
    free(self->version);
    free(self->more);
    free(self);
    *self_p = NULL;
}

const char *kube_scan_version(const kube_scan_t *self)
{
    return self->version ? self->version : "";
}

const char *kube_scan_continue(const kube_scan_t *self)
{
    return self->more ? self->more : "";
}

/* ---- output ------------------------------------------------------------------------------------------------------- */

static tt_status_t s_put(tt_buf_t *out, const char *data, size_t size)
{
    if (size < out->room - out->size && size <= out->max - out->size) { /* nearly always; room counts the last 0 */
        memcpy(out->data + out->size, data, size);
        out->size += size;
        return TT_OK;
    }
    if (tt_buf_add(out, data, size) != TT_OK)
        return tt_err(TT_DATA, "more than %zu bytes in one object", out->max);
    return TT_OK;
}

/*  Bytes of a string or scalar to where they are wanted. */
static tt_status_t s_pass(kube_scan_t *self, const char *data, size_t size)
{
    if (self->keep)
        return s_put(&self->out, data, size);
    return self->listen ? s_put(&self->word, data, size) : TT_OK;
}

static tt_status_t s_deliver(kube_scan_t *self, const char *type)
{
    self->out.data[self->out.size] = '\0';
    const tt_status_t status = self->fn(self->ctx, type, self->out.data, self->out.size);
    if (self->out.room > KEEP_ROOM)
        tt_buf_free(&self->out);
    self->out.size = 0;
    return status;
}

/* ---- values ------------------------------------------------------------------------------------------------------- */

static level_t *s_top(kube_scan_t *self)
{
    return self->depth ? &self->levels[self->depth - 1] : NULL;
}

static tt_status_t s_bad(const char *what)
{
    return tt_err(TT_DATA, "%s", what);
}

/*  What an element of this array is to us. */
static void s_element(kube_scan_t *self, const level_t *array)
{
    self->capture = NULL;
    self->next = array->in == IN_ITEMS || array->in == IN_OBJECT ? IN_OBJECT : IN_DROPPED;
    self->next_rules = array->in == IN_ITEMS ? tt_members_root(self->rules) : array->at;
}

static tt_status_t s_open(kube_scan_t *self, bool array)
{
    if (self->depth == MAX_DEPTH)
        return s_bad("nested more than 64 deep");
    const level_t *above = s_top(self);
    level_t level = {.in = above ? self->next : IN_TOP, .array = array, .at = self->next_rules};
    const bool envelope = !above || above->in == IN_TOP || above->in == IN_META;
    if (level.in == IN_META && array)
        level.in = IN_DROPPED;
    if (level.in == IN_ITEMS && !array)
        return s_bad("\"items\" is not an array");
    const bool root = level.in == IN_OBJECT && (envelope || above->in == IN_ITEMS);
    if (root && array)
        return s_bad("an array where an object belongs");
    if (root)
        self->out.size = 0;
    if (level.in == IN_OBJECT)
        TT_TRY(s_put(&self->out, array ? "[" : "{", 1));
    self->levels[self->depth++] = level;
    self->at = array ? AT_FIRST_VALUE : AT_FIRST_KEY;
    return TT_OK;
}

/*  The outermost bracket of the body or of an event has closed. */
static tt_status_t s_document_over(kube_scan_t *self)
{
    if (self->kind == KUBE_SCAN_LIST) {
        self->at = AT_OVER;
        return TT_OK;
    }
    self->at = AT_START;
    if (!self->type || !self->object)
        return s_bad("an event without a type or an object");
    const tt_status_t status = s_deliver(self, self->type);
    free(self->type);
    self->type = NULL;
    self->object = false;
    return status;
}

static tt_status_t s_close(kube_scan_t *self, bool array)
{
    const level_t *level = s_top(self);
    if (level->array != array)
        return s_bad("a closing bracket of the wrong kind");
    if (level->in == IN_OBJECT)
        TT_TRY(s_put(&self->out, array ? "]" : "}", 1));
    const bool object = level->in == IN_OBJECT;
    self->depth--;
    self->at = AT_NEXT;
    const level_t *above = s_top(self);
    if (!above)
        return s_document_over(self);
    if (object && above->in == IN_TOP)
        self->object = true;
    return object && above->in == IN_ITEMS ? s_deliver(self, NULL) : TT_OK;
}

static tt_status_t s_value_start(kube_scan_t *self, char c)
{
    level_t *level = s_top(self);
    if (level->array)
        s_element(self, level);
    if (level->in == IN_ITEMS && c != '{')
        return s_bad("an item that is not an object");
    if (level->array && level->in == IN_OBJECT) {
        if (level->any)
            TT_TRY(s_put(&self->out, ",", 1));
        level->any = true;
    }
    if (c == '{' || c == '[')
        return s_open(self, c == '[');
    if (self->next == IN_OBJECT && level->in == IN_TOP)
        return s_bad("\"object\" is not an object");
    if (self->next == IN_ITEMS && c != 'n') /* null: an empty list of a Go program */
        return s_bad("\"items\" is not an array");
    self->keep = self->next == IN_OBJECT;
    self->listen = c == '"' && self->capture;
    self->word.size = 0;
    self->key = self->escape = false;
    if (c != '"' && !memchr("-0123456789tfn", c, strlen("-0123456789tfn"))) /* strchr would take a zero */
        return s_bad("a value that begins with neither bracket, quote, digit nor letter");
    self->at = c == '"' ? AT_STRING : AT_SCALAR;
    return s_pass(self, &c, self->keep ? 1 : 0);
}

/* ---- keys --------------------------------------------------------------------------------------------------------- */

static tt_status_t s_key_start(kube_scan_t *self)
{
    level_t *level = s_top(self);
    self->key = true;
    self->escape = false;
    self->keep = level->in == IN_OBJECT;
    self->listen = level->in == IN_TOP || level->in == IN_META;
    self->word.size = 0;
    self->mark = self->out.size;
    self->at = AT_STRING;
    return self->keep ? s_put(&self->out, level->any ? ",\"" : "\"", 1u + level->any) : TT_OK;
}

/*  A key of an object: wanted or not. */
static tt_status_t s_take_key(kube_scan_t *self, level_t *level)
{
    const size_t start = self->mark + 1u + level->any;
    const char *key = self->out.data ? self->out.data + start : "";
    if (!tt_members_wanted(self->rules, level->at, key, self->out.size - start, &self->next_rules)) {
        self->out.size = self->mark;
        self->next = IN_DROPPED;
        return TT_OK;
    }
    level->any = true;
    self->next = IN_OBJECT;
    return s_put(&self->out, "\":", 2);
}

static bool s_word_is(const kube_scan_t *self, const char *text)
{
    const size_t size = strlen(text);
    return self->word.size == size && memcmp(self->word.data, text, size) == 0;
}

/*  A key of the envelope: what is its value to us? */
static void s_key_of_envelope(kube_scan_t *self, const level_t *level)
{
    self->next = IN_DROPPED;
    if (level->in == IN_META) {
        if (s_word_is(self, "resourceVersion"))
            self->capture = &self->version;
        else if (s_word_is(self, "continue"))
            self->capture = &self->more;
    } else if (self->kind == KUBE_SCAN_LIST) {
        self->next = s_word_is(self, "metadata") ? IN_META : s_word_is(self, "items") ? IN_ITEMS : IN_DROPPED;
        self->object |= self->next == IN_ITEMS;
    } else if (s_word_is(self, "type")) {
        self->capture = self->type ? NULL : &self->type; /* of two the first: its object is read by it */
    } else if (s_word_is(self, "object")) { /* an ERROR's object is a Status, which the rules are not about */
        const bool error = self->type && strcmp(self->type, "ERROR") == 0;
        self->next = IN_OBJECT;
        self->next_rules = error ? TT_MEMBERS_NONE : tt_members_root(self->rules);
    }
}

static tt_status_t s_string_over(kube_scan_t *self)
{
    if (self->key) {
        level_t *level = s_top(self);
        self->capture = NULL;
        self->at = AT_COLON;
        if (level->in == IN_OBJECT)
            return s_take_key(self, level);
        s_key_of_envelope(self, level);
        return TT_OK;
    }
    self->at = AT_NEXT;
    if (self->keep)
        return s_put(&self->out, "\"", 1);
    if (self->capture) {
        free(*self->capture);
        *self->capture = tt_sprintf("%.*s", (int)self->word.size, tt_buf_text(&self->word));
    }
    return TT_OK;
}

/* ---- bytes -------------------------------------------------------------------------------------------------------- */

static bool s_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static bool s_scalar_goes_on(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '+' ||
           c == '-';
}

static tt_status_t s_string(kube_scan_t *self, const char **at, const char *end)
{
    const char *from = *at, *p = from;
    for (;;) {
        if (self->escape && p < end) {
            self->escape = false;
            if ((unsigned char)*p++ < 0x20)
                return s_bad("a control character in a string");
        }
        while (p < end && (unsigned char)*p >= 0x20 && *p != '"' && *p != '\\')
            p++;
        if (p == end || *p != '\\')
            break;
        self->escape = true;
        p++;
    }
    *at = p;
    if (p > from)
        TT_TRY(s_pass(self, from, (size_t)(p - from)));
    if (p == end)
        return TT_OK;
    if (*p != '"')
        return s_bad("a control character in a string");
    *at = p + 1;
    return s_string_over(self);
}

static tt_status_t s_scalar(kube_scan_t *self, const char **at, const char *end)
{
    const char *p = *at;
    while (p < end && s_scalar_goes_on(*p))
        p++;
    if (p > *at)
        TT_TRY(s_pass(self, *at, (size_t)(p - *at)));
    *at = p;
    if (p < end)
        self->at = AT_NEXT;
    return TT_OK;
}

static tt_status_t s_next(kube_scan_t *self, char c)
{
    const bool array = s_top(self)->array;
    if (c == ']' || c == '}')
        return s_close(self, c == ']');
    if (c != ',')
        return s_bad("neither a comma nor a closing bracket after a value");
    self->at = array ? AT_VALUE : AT_KEY;
    return TT_OK;
}

/*  One byte that is neither white space nor within a string or scalar. */
static tt_status_t s_byte(kube_scan_t *self, char c)
{
    switch (self->at) {
    case AT_START:
        return c == '{' ? s_open(self, false) : s_bad("not a JSON object");
    case AT_FIRST_KEY:
        if (c == '}')
            return s_close(self, false);
        __attribute__((fallthrough));
    case AT_KEY:
        return c == '"' ? s_key_start(self) : s_bad("a key must be a string");
    case AT_COLON:
        self->at = AT_VALUE;
        return c == ':' ? TT_OK : s_bad("no colon after a key");
    case AT_FIRST_VALUE:
        if (c == ']')
            return s_close(self, true);
        __attribute__((fallthrough));
    case AT_VALUE:
        return s_value_start(self, c);
    case AT_NEXT:
        return s_next(self, c);
    case AT_STRING:
    case AT_SCALAR:
        break;
    case AT_OVER:
        return s_bad("something behind the end of the list");
    }
    return tt_err(TT_INTERNAL, "scan: state %d", (int)self->at);
}

static tt_status_t s_feed(kube_scan_t *self, const char **at, const char *end)
{
    while (*at < end) {
        if (self->at == AT_STRING)
            TT_TRY(s_string(self, at, end));
        else if (self->at == AT_SCALAR)
            TT_TRY(s_scalar(self, at, end));
        else if (s_space(**at))
            (*at)++;
        else
            TT_TRY(s_byte(self, *(*at)++));
    }
    return TT_OK;
}

tt_status_t kube_scan_feed(kube_scan_t *self, const char *data, size_t size)
{
    if (self->failed != TT_OK)
        return tt_err(self->failed, "this body was given up before");
    const char *at = data;
    const tt_status_t status = s_feed(self, &at, data + size);
    if (status == TT_DATA)
        tt_err_wrap(status, "byte %llu", (unsigned long long)(self->offset + (uint64_t)(at - data)));
    self->offset += size;
    self->failed = status;
    return status;
}

tt_status_t kube_scan_end(kube_scan_t *self)
{
    if (self->failed != TT_OK)
        return tt_err(self->failed, "this body was given up before");
    const at_t complete = self->kind == KUBE_SCAN_LIST ? AT_OVER : AT_START;
    if (self->at != complete)
        return tt_err(TT_DATA, "byte %llu: ends in the middle", (unsigned long long)self->offset);
    if (self->kind == KUBE_SCAN_LIST && !self->object) /* one object, say: not a list of none */
        return tt_err(TT_DATA, "byte %llu: a list without items", (unsigned long long)self->offset);
    return TT_OK;
}
