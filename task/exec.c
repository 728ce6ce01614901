#include "task/exec.h"
#include <stdio.h>
#include <string.h>

#define KEY_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
#define BLANKS      " \t\r\n"

static const char *const s_own[] = {"%DATA", "%IN", "%OUT"};

/* ---- secondary data ---------------------------------------------------------------------------------------------------- */

static tt_status_t s_wrong(const char *text, const char *at, const char *wanted)
{
    return tt_err(TT_USAGE, "secondary data '%.200s': %s expected at character %zu; such as {'%%REF': 'user.me.ref'}",
        text, wanted, (size_t)(at - text) + 1);
}

/*  A quoted word at *at. */
static tt_status_t s_word(const char *text, const char **at, char *out, size_t size)
{
    *at += strspn(*at, BLANKS);
    const char quote = **at;
    if (quote != '\'' && quote != '"')
        return s_wrong(text, *at, "a quoted word");
    const char *end = strchr(*at + 1, quote);
    if (!end || (size_t)(end - *at - 1) >= size || memchr(*at, '\\', (size_t)(end - *at)))
        return s_wrong(text, *at, "a quoted word, of few and plain characters");
    snprintf(out, size, "%.*s", (int)(end - *at - 1), *at + 1);
    *at = end + 1;
    return TT_OK;
}

static tt_status_t s_token(const char *text, const char **at, char token)
{
    *at += strspn(*at, BLANKS);
    if (**at != token)
        return s_wrong(text, *at, token == ':' ? "':'" : token == '}' ? "'}'" : "'{'");
    ++*at;
    return TT_OK;
}

static tt_status_t s_check_key(const exec_secondary_t *all, size_t count)
{
    const char *key = all[count].key;
    if (key[0] != '%' || !key[1] || 1 + strspn(key + 1, KEY_LETTERS) < strlen(key))
        return tt_err(
            TT_USAGE, "secondary data: the key '%s' has to be a '%%' with letters, digits or '_' behind it", key);
    for (size_t i = 0; i < TT_COUNT(s_own); i++)
        if (strcmp(key, s_own[i]) == 0)
            return tt_err(TT_USAGE, "secondary data: %s has its meaning already; choose another key", key);
    for (size_t i = 0; i < count; i++)
        if (strcmp(key, all[i].key) == 0)
            return tt_err(TT_USAGE, "secondary data: the key %s is there twice", key);
    return TT_OK;
}

tt_status_t exec_secondary(const char *text, exec_secondary_t *out, size_t *count)
{
    const char *at = text + strspn(text, BLANKS);
    size_t used = 0;
    *count = 0;
    if (!*at)
        return TT_OK;
    TT_TRY(s_token(text, &at, '{'));
    at += strspn(at, BLANKS);
    while (*at && *at != '}') {
        if (used == EXEC_SECONDARY_MAX)
            return tt_err(TT_USAGE, "secondary data: over %d keys", EXEC_SECONDARY_MAX);
        TT_TRY(s_word(text, &at, out[used].key, sizeof out[used].key));
        TT_TRY(s_check_key(out, used));
        TT_TRY(s_token(text, &at, ':'));
        TT_TRY(s_word(text, &at, out[used].value, sizeof out[used].value));
        used++;
        at += strspn(at, BLANKS);
        if (*at == ',')
            at += 1 + strspn(at + 1, BLANKS);
        else if (*at != '}')
            return s_wrong(text, at, "',' or '}'");
    }
    TT_TRY(s_token(text, &at, '}'));
    at += strspn(at, BLANKS);
    if (*at)
        return s_wrong(text, at, "the end");
    *count = used;
    return TT_OK;
}

/* ---- the line ---------------------------------------------------------------------------------------------------------- */

/*  The longest of the pairs whose key stands at `at`; NULL: none does. */
static const exec_pair_t *s_at(const char *at, const exec_pair_t *pairs, size_t count)
{
    const exec_pair_t *best = NULL;
    for (size_t i = 0; i < count; i++)
        if (strncmp(at, pairs[i].key, strlen(pairs[i].key)) == 0 && (!best || strlen(pairs[i].key) > strlen(best->key)))
            best = &pairs[i];
    return best;
}

tt_status_t exec_fill(tt_buf_t *out, const char *line, const exec_pair_t *pairs, size_t count)
{
    while (*line) {
        const size_t plain = strcspn(line, "%");
        TT_TRY(tt_buf_add(out, line, plain));
        line += plain;
        if (!*line)
            break;
        const exec_pair_t *pair = s_at(line, pairs, count);
        TT_TRY(pair ? tt_buf_str(out, pair->value) : tt_buf_add(out, line, 1));
        line += pair ? strlen(pair->key) : 1;
    }
    return TT_OK;
}

/*  As exec_fill reads it: %DATA does not stand in %DATASET where that is a key, too. */
static bool s_holds(const char *line, const exec_pair_t *pairs, size_t count, size_t wanted)
{
    for (const char *at = strchr(line, '%'); at; at = strchr(at, '%')) {
        const exec_pair_t *pair = s_at(at, pairs, count);
        if (pair == &pairs[wanted])
            return true;
        at += pair ? strlen(pair->key) : 1;
    }
    return false;
}

/*  Letters of a shell's own: ${NAME%SUFFIX}, and a doubled one is a plain one to printf and date. */
static bool s_is_the_shells(const char *line, const char *at)
{
    const char *before = at;
    while (before > line && strchr(KEY_LETTERS, before[-1]))
        before--;
    return (at > line && at[-1] == '%') || (before - line >= 2 && before[-1] == '{' && before[-2] == '$');
}

/*  A word in capitals that nothing stands for: meant to be one of ours. Two letters are not enough, as in `date +%FT%T`. */
static size_t s_unknown(const char *line, const exec_pair_t *pairs, size_t count, const char **at)
{
    enum { LEAST = 3 };
    for (*at = strchr(line, '%'); *at; *at = strchr(*at + 1, '%')) {
        const size_t length = strspn(*at + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
        if (length >= LEAST && !s_at(*at, pairs, count) && !s_is_the_shells(line, *at))
            return 1 + strspn(*at + 1, KEY_LETTERS);
    }
    return 0;
}

static tt_status_t s_check_words(const char *line, bool data, const exec_pair_t *pairs, size_t count)
{
    const char *at;
    const size_t length = s_unknown(line, pairs, count, &at);
    char known[2048] = "";
    if (!length)
        return TT_OK;
    for (size_t i = data ? 0 : 1; i < count; i++) {
        const size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", pairs[i].key);
    }
    return tt_err(TT_USAGE, "the command holds %.*s, which stands for nothing; there are %s", (int)length, at, known);
}

tt_status_t exec_check(const char *line, bool data, const exec_secondary_t *secondary, size_t count)
{
    exec_pair_t pairs[TT_COUNT(s_own) + EXEC_SECONDARY_MAX];
    TT_CHECK(count <= EXEC_SECONDARY_MAX);
    if (strlen(line) > EXEC_MAX)
        return tt_err(TT_USAGE, "the command has over %d characters; put it into a script", EXEC_MAX);
    for (size_t i = 0; i < TT_COUNT(s_own); i++)
        pairs[i] = (exec_pair_t){s_own[i], ""};
    for (size_t i = 0; i < count; i++)
        pairs[TT_COUNT(s_own) + i] = (exec_pair_t){secondary[i].key, ""};
    const size_t all = TT_COUNT(s_own) + count;
    TT_TRY(s_check_words(line, data, pairs, all));
    if (!data && s_holds(line, pairs, all, 0))
        return tt_err(TT_USAGE, "the command holds %%DATA, and there is no data: --dataFile names it");
    for (size_t i = data ? 0 : 1; i < all; i++)
        if (!s_holds(line, pairs, all, i))
            return tt_err(TT_USAGE, "the command does not hold %s: %s", pairs[i].key,
                i < TT_COUNT(s_own) ? "%IN, %OUT and, with --dataFile, %DATA have to stand in it"
                                    : "every key of the secondary data has to");
    return TT_OK;
}
