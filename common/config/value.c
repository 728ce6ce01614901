/*  value - one entry to one typed value, with its range checked, and back to text. */
#include "common/config/parts.h"
#include "common/base/mem.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static tt_status_t s_err(const entry_t *entry, const char *what)
{
    return tt_err(TT_CONFIG, "%s: %s: %s", entry->origin, entry->key, what);
}

/*  "'<text>' <what>", the text cut to a sane length. */
static tt_status_t s_err_text(const entry_t *entry, const char *what)
{
    return tt_err(TT_CONFIG, "%s: %s: '%.80s' %s", entry->origin, entry->key, entry->text, what);
}

bool value_is_null(const entry_t *entry)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL"};
    if (entry->kind != ENTRY_PLAIN && entry->kind != ENTRY_OWN)
        return false;
    for (size_t i = 0; i < TT_COUNT(words); i++)
        if (strcmp(entry->text, words[i]) == 0)
            return true;
    return false;
}

static bool s_null_allowed(const tt_cfg_field_t *field)
{
    return field->null || (field->def && strcmp(field->def, "null") == 0);
}

/*  ---- whole numbers ---- */

static int s_scale(char suffix)
{
    return suffix == 'k' ? 3 : suffix == 'M' ? 6 : suffix == 'G' ? 9 : -1;
}

/*  Digits with single underscores between them, a fraction, and e<exponent> or one of k M G: whole number exactly.
 *  Returns 0, -1: not such a number, 1: too large. */
static int s_whole(const char *text, uint64_t *out)
{
    uint64_t value = 0;
    int digits = 0, fraction = 0, exponent = 0;
    bool point = false, large = false;
    const char *at = text;
    if (at[0] == '0' && at[1] >= '0' && at[1] <= '9')
        return -1; /* octal in some YAML, decimal in others */
    for (;; at++) {
        const bool digit = *at >= '0' && *at <= '9';
        if (*at == '.' && !point && digits) {
            point = true;
            continue;
        }
        if (*at == '_' && digits && at[-1] >= '0' && at[-1] <= '9' && at[1] >= '0' && at[1] <= '9')
            continue;
        if (!digit)
            break;
        digits++;
        fraction += point;
        large |= __builtin_mul_overflow(value, (uint64_t)10, &value) ||
                 __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value);
    }
    if (!digits || (point && !fraction))
        return -1;
    if (*at == 'e' || *at == 'E') {
        char *end;
        const long power = strtol(at + 1, &end, 10);
        if (end == at + 1 || at[1] == ' ' || power < -99 || power > 99)
            return -1;
        exponent = (int)power;
        at = end;
    } else if (s_scale(*at) >= 0) {
        exponent = s_scale(*at++);
    }
    if (*at)
        return -1;
    for (exponent -= fraction; exponent < 0; exponent++) {
        if (!large && value % 10 != 0)
            return -1;
        value /= 10;
    }
    for (; exponent > 0 && value; exponent--)
        large |= __builtin_mul_overflow(value, (uint64_t)10, &value);
    *out = value;
    return large;
}

/*  A double in the shortest decimal form that reads back to it; single: to the same float. */
static void s_shortest(char *out, size_t room, double value, bool single)
{
    if (isnan(value)) {
        snprintf(out, room, "null");
    } else if (value == floor(value) && fabs(value) < 1e15) {
        snprintf(out, room, "%.0f", value);
    } else {
        for (int precision = 1; precision <= 17; precision++) {
            snprintf(out, room, "%.*g", precision, value);
            if (single ? strtof(out, NULL) == (float)value : strtod(out, NULL) == value)
                return;
        }
    }
}

static bool s_has_range(const tt_cfg_field_t *field)
{
    return field->min < field->max;
}

static tt_status_t s_err_range(const entry_t *entry, const tt_cfg_field_t *field)
{
    char min[40], max[40], what[128];
    s_shortest(min, sizeof min, field->min, false);
    s_shortest(max, sizeof max, field->max, false);
    snprintf(what, sizeof what, "is outside %s .. %s", min, max);
    return s_err_text(entry, what);
}

/*  Where nothing may be meant: "None" is Python's word for it. */
static const char *s_meant_null(char out[TT_MEANT_MAX], const entry_t *entry, const tt_cfg_field_t *field)
{
    const bool none = strcasecmp(entry->text, "none") == 0 || strcasecmp(entry->text, "nil") == 0;
    return tt_meant(out, none ? "null" : entry->text, s_null_allowed(field) ? "null" : "");
}

static tt_status_t s_err_no_number(const entry_t *entry, const tt_cfg_field_t *field, const char *kind)
{
    char what[256 + TT_MEANT_MAX], min[40] = "", max[40] = "", meant[TT_MEANT_MAX];
    if (s_has_range(field)) {
        s_shortest(min, sizeof min, field->min, false);
        s_shortest(max, sizeof max, field->max, false);
    }
    const bool range = s_has_range(field);
    if (entry->kind == ENTRY_LIST)
        snprintf(what, sizeof what, "a list is not %s", kind);
    else
        snprintf(what, sizeof what, "'%.60s' is %snot %s%s%s%s%s%s", entry->text,
            entry->kind == ENTRY_QUOTED ? "text in quotes, " : "", kind, range ? " from " : "", min,
            range ? " to " : "", max, s_meant_null(meant, entry, field));
    return s_err(entry, what);
}

/*  It is a whole number, and too small for any of our settings. */
static tt_status_t s_err_negative(const entry_t *entry, const tt_cfg_field_t *field)
{
    return s_has_range(field) ? s_err_range(entry, field) : s_err_text(entry, "is below 0, which is the least");
}

static tt_status_t s_read_whole(const entry_t *entry, const tt_cfg_field_t *field, uint64_t limit, uint64_t *out)
{
    *out = 0;
    if (value_is_null(entry) && s_null_allowed(field))
        return TT_OK;
    uint64_t value = 0;
    const bool plain = entry->kind != ENTRY_LIST && entry->kind != ENTRY_QUOTED;
    const int bad = plain ? s_whole(entry->text, &value) : -1;
    if (plain && entry->text[0] == '-' && s_whole(entry->text + 1, &value) >= 0)
        return s_err_negative(entry, field);
    if (bad < 0)
        return s_err_no_number(entry, field, "a whole number");
    const bool outside = s_has_range(field) && ((double)value < field->min || (double)value > field->max);
    if (outside || (bad > 0 && s_has_range(field)))
        return s_err_range(entry, field);
    if (bad > 0 || value > limit) {
        char what[64];
        snprintf(what, sizeof what, "is larger than %llu", (unsigned long long)limit);
        return s_err_text(entry, what);
    }
    *out = value;
    return TT_OK;
}

/*  ---- fractions ---- */

/*  Decimal notation only: what strtod takes beyond it (hex, inf, nan, leading blanks) is refused. */
static bool s_is_decimal(const char *text)
{
    return *text && strspn(text, "0123456789.eE+-") == strlen(text);
}

static tt_status_t s_read_real(const entry_t *entry, const tt_cfg_field_t *field, bool single, double *out)
{
    *out = (double)NAN;
    if (value_is_null(entry) && s_null_allowed(field))
        return TT_OK;
    if (entry->kind == ENTRY_LIST || entry->kind == ENTRY_QUOTED || !s_is_decimal(entry->text))
        return s_err_no_number(entry, field, "a number");
    char *end;
    const double value = strtod(entry->text, &end);
    if (*end || end == entry->text)
        return s_err_no_number(entry, field, "a number");
    if (s_has_range(field) && (value < field->min || value > field->max))
        return s_err_range(entry, field); /* before rounding to float: 0.1 is inside 0 .. 0.1 */
    *out = single ? (double)strtof(entry->text, NULL) : value;
    if (!isfinite(*out))
        return s_err_text(entry, "is too large");
    return TT_OK;
}

/*  ---- the other types ---- */

/*  What other readers of YAML take for one: "yes", "Off". */
static const char *s_meant_bool(char out[TT_MEANT_MAX], const char *text)
{
    static const char *const words[][2] = {{"yes", "true"}, {"on", "true"}, {"no", "false"}, {"off", "false"}};
    for (size_t i = 0; i < TT_COUNT(words); i++)
        if (strcasecmp(text, words[i][0]) == 0)
            return tt_meant(out, words[i][1], "true|false");
    return tt_meant(out, text, "true|false");
}

static tt_status_t s_err_bool(const entry_t *entry)
{
    char what[TT_MEANT_MAX + 32], meant[TT_MEANT_MAX];
    snprintf(what, sizeof what, "is not true or false%s", s_meant_bool(meant, entry->text));
    return s_err_text(entry, what);
}

static tt_status_t s_read_bool(const entry_t *entry, bool *out)
{
    const bool plain = entry->kind == ENTRY_PLAIN || entry->kind == ENTRY_OWN;
    if (entry->kind == ENTRY_LIST)
        return s_err(entry, "a list is not true or false");
    if (!plain)
        return s_err_text(entry, "is text in quotes, not true or false");
    if (strcmp(entry->text, "true") != 0 && strcmp(entry->text, "false") != 0)
        return s_err_bool(entry);
    *out = entry->text[0] == 't';
    return TT_OK;
}

static tt_status_t s_read_str(const entry_t *entry, const tt_cfg_field_t *field, char *out)
{
    if (entry->kind == ENTRY_LIST)
        return s_err(entry, "a list is not a text");
    if (entry->kind == ENTRY_PLAIN && value_is_null(entry))
        return s_err(entry, "null is not a text; \"\" is the empty one");
    if (strlen(entry->text) >= field->size)
        return tt_err(TT_CONFIG, "%s: %s: a text of %zu bytes; %zu fit", entry->origin, entry->key, strlen(entry->text),
            field->size - 1);
    snprintf(out, field->size, "%s", entry->text);
    return TT_OK;
}

/*  A list's items, with commas between; too long: as far as it goes. The caller frees. */
static char *s_join(const entry_t *entry)
{
    tt_buf_t all;
    tt_buf_init(&all, TEXT_MAX);
    for (size_t i = 0; i < entry->item_count; i++)
        if (tt_buf_printf(&all, "%s%s", i ? ", " : "", entry->items[i]) != TT_OK)
            break;
    char *text = tt_strdup(tt_buf_text(&all));
    tt_buf_free(&all);
    return text;
}

static tt_status_t s_read_words(const entry_t *entry, const tt_cfg_field_t *field, char *out)
{
    if (entry->kind != ENTRY_LIST)
        return s_read_str(entry, field, out);
    entry_t joined = {.kind = ENTRY_QUOTED, .key = entry->key, .origin = entry->origin, .text = s_join(entry)};
    const tt_status_t status = s_read_str(&joined, field, out);
    free(joined.text);
    return status;
}

static tt_status_t s_err_choice(
    const entry_t *entry, const tt_cfg_field_t *field, const char *const *choices, size_t count)
{
    char list[256] = "", meant[TT_MEANT_MAX];
    for (size_t i = 0; i < count; i++) {
        const size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", choices[i]);
    }
    if (entry->kind == ENTRY_LIST)
        return tt_err(TT_CONFIG, "%s: %s: a list is not one of %s", entry->origin, entry->key, list);
    return tt_err(TT_CONFIG, "%s: %s: '%.60s' is not one of %s%s", entry->origin, entry->key, entry->text, list,
        tt_meant(meant, entry->text, field->choices));
}

static tt_status_t s_read_enum(const entry_t *entry, const tt_cfg_field_t *field, int *out)
{
    const char *choices[CHOICES_MAX];
    char *copy = tt_strdup(field->choices);
    const size_t count = choices_split(copy, choices);
    size_t at = count;
    for (size_t i = 0; i < count && entry->kind != ENTRY_LIST; i++)
        if (strcmp(choices[i], entry->text) == 0)
            at = i;
    const tt_status_t status = at < count ? TT_OK : s_err_choice(entry, field, choices, count);
    if (status == TT_OK)
        *out = (int)at;
    free(copy);
    return status;
}

static tt_status_t s_read_element(const entry_t *entry, const char *text, uint32_t *out)
{
    uint64_t value;
    if (s_whole(text, &value) != 0 || value < 1 || value > UINT32_MAX)
        return tt_err(
            TT_CONFIG, "%s: %s: '%.60s' in the list is not a positive whole number", entry->origin, entry->key, text);
    *out = (uint32_t)value;
    return TT_OK;
}

static tt_status_t s_check_length(const entry_t *entry, const tt_cfg_field_t *field, size_t count)
{
    const double max = s_has_range(field) ? field->max : 8, min = s_has_range(field) ? field->min : 0;
    if ((double)count < min || (double)count > max)
        return tt_err(TT_CONFIG, "%s: %s: a list of %zu values is outside %.0f .. %.0f", entry->origin, entry->key,
            count, min, max);
    return TT_OK;
}

/*  The program's own notation: "[64, 64]". */
static tt_status_t s_read_own_list(const entry_t *entry, tt_cfg_list_t *out)
{
    char *copy = tt_strdup(entry->text);
    tt_status_t status = TT_OK;
    for (char *save = NULL, *word = strtok_r(copy, "[], ", &save); word && status == TT_OK;
         word = strtok_r(NULL, "[], ", &save)) {
        TT_CHECK(out->count < TT_COUNT(out->at));
        status = s_read_element(entry, word, &out->at[out->count++]);
    }
    free(copy);
    return status;
}

static tt_status_t s_read_list(const entry_t *entry, const tt_cfg_field_t *field, tt_cfg_list_t *out)
{
    tt_cfg_list_t list = {0};
    if (entry->kind == ENTRY_OWN) {
        TT_TRY(s_read_own_list(entry, &list));
    } else if (entry->kind == ENTRY_LIST) {
        TT_TRY(s_check_length(entry, field, entry->item_count));
        for (; list.count < entry->item_count; list.count++)
            TT_TRY(s_read_element(entry, entry->items[list.count], &list.at[list.count]));
    } else {
        return s_err_text(entry, "is not a list; write [64, 64]");
    }
    *out = list;
    return TT_OK;
}

static tt_status_t s_read_texts(const entry_t *entry, tt_cfg_texts_t *out)
{
    tt_cfg_texts_t texts = {0};
    if (entry->kind != ENTRY_LIST && *entry->text)
        return s_err_text(entry, "is not a list; write [ONE, OTHER]");
    const size_t count = entry->kind == ENTRY_LIST ? entry->item_count : 0;
    if (count > TT_COUNT(texts.at))
        return tt_err(TT_CONFIG, "%s: %s: a list of %zu texts; at most %zu", entry->origin, entry->key, count,
            TT_COUNT(texts.at));
    for (; texts.count < count; texts.count++) {
        const char *text = entry->items[texts.count];
        if (!*text || strlen(text) >= sizeof texts.at[0])
            return tt_err(TT_CONFIG, "%s: %s: '%.60s': a text must be 1 to %zu bytes", entry->origin, entry->key, text,
                sizeof texts.at[0] - 1);
        snprintf(texts.at[texts.count], sizeof texts.at[0], "%s", text);
    }
    *out = texts;
    return TT_OK;
}

tt_status_t value_read(const entry_t *entry, const tt_cfg_field_t *field, void *target)
{
    void *member = (char *)target + field->offset;
    uint64_t whole;
    double real;
    switch (field->type) {
    case TT_CFG_BOOL:
        return s_read_bool(entry, member);
    case TT_CFG_U32:
        TT_TRY(s_read_whole(entry, field, UINT32_MAX, &whole));
        *(uint32_t *)member = (uint32_t)whole;
        return TT_OK;
    case TT_CFG_U64:
        return s_read_whole(entry, field, UINT64_MAX, member);
    case TT_CFG_F32:
        TT_TRY(s_read_real(entry, field, true, &real));
        *(float *)member = (float)real;
        return TT_OK;
    case TT_CFG_F64:
        return s_read_real(entry, field, false, member);
    case TT_CFG_STR:
        return s_read_str(entry, field, member);
    case TT_CFG_ENUM:
        return s_read_enum(entry, field, member);
    case TT_CFG_LIST:
        return s_read_list(entry, field, member);
    case TT_CFG_WORDS:
        return s_read_words(entry, field, member);
    case TT_CFG_TEXTS:
        return s_read_texts(entry, member);
    case TT_CFG_MAP:
        break; /* map.c */
    }
    return tt_err(TT_INTERNAL, "%s: a field of type %d", field->key, (int)field->type);
}

/*  ---- and back ---- */

/*  Would every YAML reader take it for the same text without quotes? */
static bool s_is_plain(const char *text)
{
    static const char *const words[] = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"};
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:+-";
    for (size_t i = 0; i < TT_COUNT(words); i++)
        if (strcasecmp(text, words[i]) == 0)
            return false;
    const size_t length = strlen(text);
    return length && (strchr(letters, *text) || *text == '/') && strspn(text, safe) == length &&
           text[length - 1] != ':';
}

/*  In double quotes, with escapes that YAML and JSON share (what is not printable lies below 0x10000). */
static tt_status_t s_write_quoted(tt_buf_t *out, const char *key, const char *text)
{
    TT_TRY(tt_buf_str(out, "\""));
    while (*text) {
        uint32_t code = 0;
        const size_t length = tt_utf8_next(text, &code);
        if (!length)
            return tt_err(TT_INVALID, "%s: '%.200s' is not UTF-8 and cannot stand in a config", key, text);
        if (code == '"' || code == '\\')
            TT_TRY(tt_buf_printf(out, "\\%c", (int)code));
        else if (utf8_printable(code))
            TT_TRY(tt_buf_add(out, text, length));
        else
            TT_TRY(tt_buf_printf(out, "\\u%04x", code));
        text += length;
    }
    return tt_buf_str(out, "\"");
}

static tt_status_t s_write_str(tt_buf_t *out, const char *key, const char *text)
{
    return s_is_plain(text) ? tt_buf_str(out, text) : s_write_quoted(out, key, text);
}

/*  Behind the digits; NULL: there are none. */
static const char *s_digits(const char *text)
{
    const size_t length = text ? strspn(text, "0123456789") : 0;
    return length ? text + length : NULL;
}

/*  JSON's number: then YAML's, too. */
static bool s_is_number(const char *text)
{
    text += *text == '-';
    const char *at = s_digits(text);
    if (at && *text == '0' && at > text + 1)
        return false;
    if (at && *at == '.')
        at = s_digits(at + 1);
    if (at && (*at == 'e' || *at == 'E'))
        at = s_digits(at + 1 + (at[1] == '-' || at[1] == '+'));
    return at && !*at;
}

tt_status_t value_write_scalar(tt_buf_t *out, const char *key, const char *text)
{
    if (s_is_number(text) || strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
        return tt_buf_str(out, text);
    return s_write_str(out, key, text);
}

static tt_status_t s_write_real(tt_buf_t *out, double value, bool single)
{
    char text[40];
    s_shortest(text, sizeof text, value, single);
    return tt_buf_str(out, text);
}

static tt_status_t s_write_whole(tt_buf_t *out, const tt_cfg_field_t *field, uint64_t value)
{
    if (value == 0 && s_null_allowed(field))
        return tt_buf_str(out, "null");
    return tt_buf_printf(out, "%llu", (unsigned long long)value);
}

static tt_status_t s_write_enum(tt_buf_t *out, const tt_cfg_field_t *field, int value)
{
    const char *at = field->choices;
    for (int i = 0; i < value; i++)
        at += strcspn(at, "|") + 1;
    return tt_buf_add(out, at, strcspn(at, "|"));
}

static tt_status_t s_write_list(tt_buf_t *out, const tt_cfg_list_t *list)
{
    TT_TRY(tt_buf_str(out, "["));
    for (uint32_t i = 0; i < list->count; i++)
        TT_TRY(tt_buf_printf(out, "%s%u", i ? ", " : "", list->at[i]));
    return tt_buf_str(out, "]");
}

static tt_status_t s_write_texts(tt_buf_t *out, const char *key, const tt_cfg_texts_t *texts)
{
    TT_TRY(tt_buf_str(out, "["));
    for (uint32_t i = 0; i < texts->count; i++) {
        TT_TRY(tt_buf_str(out, i ? ", " : ""));
        TT_TRY(s_write_quoted(out, key, texts->at[i])); /* JSON, too */
    }
    return tt_buf_str(out, "]");
}

tt_status_t value_write(tt_buf_t *out, const tt_cfg_field_t *field, const void *target)
{
    const void *member = (const char *)target + field->offset;
    switch (field->type) {
    case TT_CFG_BOOL:
        return tt_buf_str(out, *(const bool *)member ? "true" : "false");
    case TT_CFG_U32:
        return s_write_whole(out, field, *(const uint32_t *)member);
    case TT_CFG_U64:
        return s_write_whole(out, field, *(const uint64_t *)member);
    case TT_CFG_F32:
        return s_write_real(out, (double)*(const float *)member, true);
    case TT_CFG_F64:
        return s_write_real(out, *(const double *)member, false);
    case TT_CFG_STR:
    case TT_CFG_WORDS:
        return s_write_str(out, field->key, member);
    case TT_CFG_ENUM:
        return s_write_enum(out, field, *(const int *)member);
    case TT_CFG_LIST:
        return s_write_list(out, member);
    case TT_CFG_TEXTS:
        return s_write_texts(out, field->key, member);
    case TT_CFG_MAP:
        break;
    }
    return tt_err(TT_INTERNAL, "%s: a field of type %d", field->key, (int)field->type);
}
