#include "common/base/members.h"
#include "common/base/mem.h"
#include <stdlib.h>
#include <string.h>

typedef struct {
    char *key;
    size_t size;
    int child, sibling; /* -1 = none */
    bool drop, star;
    bool plus, keep; /* a "+" path goes through here; ends here */
} node_t;

struct tt_members {
    node_t *nodes;
    int count, room;
};

static int s_node(tt_members_t *self, const char *key, size_t size)
{
    if (self->count == self->room) {
        self->room = self->room ? 2 * self->room : 16;
        self->nodes = tt_realloc(self->nodes, tt_mul((size_t)self->room, sizeof *self->nodes));
    }
    node_t *node = &self->nodes[self->count];
    *node = (node_t){.key = tt_sprintf("%.*s", (int)size, key), .size = size, .child = -1, .sibling = -1};
    return self->count++;
}

static int s_find(const tt_members_t *self, int parent, const char *key, size_t size)
{
    int at = self->nodes[parent].child;
    while (at >= 0 && (self->nodes[at].size != size || memcmp(self->nodes[at].key, key, size) != 0))
        at = self->nodes[at].sibling;
    return at;
}

static int s_child(tt_members_t *self, int parent, const char *key, size_t size)
{
    int at = s_find(self, parent, key, size);
    if (at < 0) {
        at = s_node(self, key, size);
        self->nodes[at].sibling = self->nodes[parent].child;
        self->nodes[parent].child = at;
    }
    return at;
}

/*  The next part of a path: "a" of "a.b", "a" of "a[b.c]", "b.c" of "[b.c]". */
static tt_status_t s_part(const char **path, const char **part, size_t *size)
{
    const char *p = *path;
    const bool bracket = *p == '[';
    *part = p + bracket;
    *size = bracket ? strcspn(*part, "]") : strcspn(p, ".[");
    *path = *part + *size;
    if (bracket) {
        if ((*path)[0] != ']' || (*path)[1])
            return TT_INVALID;
        ++*path;
    } else if (**path == '.') {
        ++*path;
        if (!**path)
            return TT_INVALID;
    }
    return *size ? TT_OK : TT_INVALID;
}

static tt_status_t s_add(tt_members_t *self, const char *rule)
{
    const bool plus = *rule == '+';
    const char *path = rule + plus, *part = NULL;
    int at = 0;
    if (!*path)
        return tt_err(TT_INVALID, "an empty path");
    while (*path) {
        size_t size = 0;
        if (s_part(&path, &part, &size) != TT_OK)
            return tt_err(TT_INVALID, "cannot read the path \"%s\"", rule);
        if (size == 1 && *part == '*' && part[1] != ']') {
            if (plus || *path)
                return tt_err(TT_INVALID, "\"*\" must be the last part of a path without \"+\": \"%s\"", rule);
            self->nodes[at].star = true;
            return TT_OK;
        }
        at = s_child(self, at, part, size);
        self->nodes[at].plus |= plus;
    }
    self->nodes[at].drop |= !plus;
    self->nodes[at].keep |= plus;
    return TT_OK;
}

tt_status_t tt_members_new(tt_members_t **self_p, const char *const *paths)
{
    tt_members_t *self = tt_new0(sizeof *self);
    s_node(self, "", 0);
    tt_status_t status = TT_OK;
    for (; paths && *paths && status == TT_OK; paths++)
        status = s_add(self, *paths);
    if (status == TT_OK)
        *self_p = self;
    else
        tt_members_destroy(&self);
    return status;
}

void tt_members_destroy(tt_members_t **self_p)
{
    tt_members_t *self = *self_p;
    if (!self)
        return;
    for (int i = 0; i < self->count; i++)
        free(self->nodes[i].key);
    free(self->nodes);
    free(self);
    *self_p = NULL;
}

tt_members_at_t tt_members_root(const tt_members_t *self)
{
    return (tt_members_at_t){.node = 0, .star = self->nodes[0].star};
}

static int s_hex4(const char *text, const char *end)
{
    int value = 0;
    for (int i = 0; i < 4; i++) {
        static const char digits[] = "0123456789abcdef0123456789ABCDEF";
        const char *digit = text + i < end && text[i] ? strchr(digits, text[i]) : NULL;
        if (!digit)
            return -1;
        value = value * 16 + (int)((digit - digits) & 15);
    }
    return value;
}

/*  A character of the basic plane in UTF-8, at most three bytes. */
static size_t s_utf8(char *out, int c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    out[0] = (char)(0xe0 | c >> 12);
    out[1] = (char)(0x80 | (c >> 6 & 0x3f));
    out[2] = (char)(0x80 | (c & 0x3f));
    return 3;
}

/*  Undo the escapes. False: it is too long for a rule, or has characters beyond the basic plane, which none has. */
static bool s_plain(char *out, size_t room, const char *key, size_t size, size_t *length)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    const char *end = key + size;
    size_t n = 0;
    while (key < end) {
        if (n + 3 > room)
            return false;
        if (*key != '\\') {
            out[n++] = *key++;
            continue;
        }
        const char *name = key + 1 < end && key[1] ? strchr(names, key[1]) : NULL;
        const int c = name ? values[name - names] : key + 1 < end && key[1] == 'u' ? s_hex4(key + 2, end) : -1;
        if (c < 0 || (c >= 0xd800 && c < 0xe000))
            return false;
        n += s_utf8(out + n, c);
        key += name ? 2 : 6;
    }
    *length = n;
    return true;
}

static int s_find_escaped(const tt_members_t *self, int parent, const char *key, size_t size)
{
    char plain[256];
    size_t length = 0;
    return s_plain(plain, sizeof plain, key, size, &length) ? s_find(self, parent, plain, length) : -1;
}

bool tt_members_wanted(
    const tt_members_t *self, tt_members_at_t at, const char *key, size_t size, tt_members_at_t *below)
{
    *below = TT_MEMBERS_NONE;
    if (at.node < 0)
        return !at.star;
    const bool escaped = memchr(key, '\\', size) != NULL;
    const int found = escaped ? s_find_escaped(self, at.node, key, size) : s_find(self, at.node, key, size);
    if (found < 0)
        return !at.star;
    const node_t *node = &self->nodes[found];
    if (node->drop || (at.star && !node->plus))
        return false;
    below->star = node->star || (at.star && !node->keep);
    below->node = node->child >= 0 || below->star ? found : -1;
    return true;
}
