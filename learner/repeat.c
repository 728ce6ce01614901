#include "learner/repeat.h"
#include <stdio.h>
#include <string.h>

static const char *s_behind_digits(const char *text)
{
    return text + strspn(text, "0123456789");
}

static bool s_is_same(const char *a, const char *b)
{
    for (;; a++, b++) {
        a = s_behind_digits(a);
        b = s_behind_digits(b);
        if (*a != *b)
            return false;
        if (!*a)
            return true;
    }
}

bool repeat_due(repeat_t *self, const char *text, int64_t now_ns)
{
    char cut[sizeof self->text];
    snprintf(cut, sizeof cut, "%s", text);
    if (self->text[0] && s_is_same(self->text, cut) && now_ns - self->said_ns < REPEAT_NS)
        return false;
    memcpy(self->text, cut, sizeof cut);
    self->said_ns = now_ns;
    return true;
}

void repeat_forget(repeat_t *self)
{
    self->text[0] = '\0';
}
