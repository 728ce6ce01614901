#include "common/base/words.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/status.h"
#include "common/base/mem.h"
#include "common/base/text.h"

static bool s_is_within(const char *at)
{
    return ((unsigned char)*at & 0xc0) == 0x80;
}

void tt_words(char *out, size_t size, const char *text)
{
    static const char gap[] = " ... ";
    char *whole = tt_text_dup(text);
    const size_t length = strlen(whole);
    TT_CHECK(size > 2 * sizeof gap);
    if (length < size) {
        memcpy(out, whole, length + 1);
        free(whole);
        return;
    }
    const size_t room = size - sizeof gap;
    size_t head = room / 2, from = length - (room - head);
    while (head > 0 && s_is_within(whole + head))
        head--;
    while (s_is_within(whole + from))
        from++;
    memcpy(out, whole, head);
    memcpy(out + head, gap, sizeof gap - 1);
    memcpy(out + head + sizeof gap - 1, whole + from, length - from + 1);
    free(whole);
}
