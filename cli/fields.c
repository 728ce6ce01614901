#include "cli/fields.h"
#include "common/config/train.h"
#include <string.h>

/*  What a key takes: "1 .. 256", "tanh|relu", "true|false", "text", ... */
static void s_range(char *out, size_t room, const tt_cfg_field_t *field)
{
    static const char *const words[] = {[TT_CFG_BOOL] = "true|false",
        [TT_CFG_U32] = "whole number",
        [TT_CFG_U64] = "whole number",
        [TT_CFG_F32] = "number",
        [TT_CFG_F64] = "number",
        [TT_CFG_STR] = "text",
        [TT_CFG_ENUM] = "",
        [TT_CFG_LIST] = "list",
        [TT_CFG_WORDS] = "words",
        [TT_CFG_TEXTS] = "list",
        [TT_CFG_MAP] = "keys and values"};
    if (field->type == TT_CFG_ENUM)
        snprintf(out, room, "%s", field->choices);
    else if (field->min < field->max && field->type == TT_CFG_LIST)
        snprintf(out, room, "%g .. %g in a list", field->min, field->max);
    else if (field->min < field->max)
        snprintf(out, room, "%.10g .. %.10g", field->min, field->max);
    else
        snprintf(out, room, "%s", words[field->type]);
}

static const char *s_default(const tt_cfg_field_t *field)
{
    if (!field->def)
        return "(required)";
    return field->type == TT_CFG_STR && !*field->def ? "\"\"" : field->def;
}

static int s_max(int a, size_t b)
{
    return (size_t)a < b ? (int)b : a;
}

void fields_print(FILE *out, const tt_cfg_field_t *fields)
{
    char range[64];
    int keys = 3, defaults = 7, ranges = 5;
    for (const tt_cfg_field_t *field = fields; field->key; field++) {
        s_range(range, sizeof range, field);
        keys = s_max(keys, strlen(field->key));
        defaults = s_max(defaults, strlen(s_default(field)));
        ranges = s_max(ranges, strlen(range));
    }
    fprintf(out, "%-*s  %-*s  %-*s  %s\n", keys, "KEY", defaults, "DEFAULT", ranges, "RANGE", "WHAT");
    for (const tt_cfg_field_t *field = fields; field->key; field++) {
        s_range(range, sizeof range, field);
        if (!tt_train_fills_in(field->key))
            fprintf(out, "%-*s  %-*s  %-*s  %s\n", keys, field->key, defaults, s_default(field), ranges, range,
                field->help);
    }
}

static const char *s_resume(const tt_cfg_field_t *field)
{
    static const char *const names[] = {[TT_CFG_FIXED] = "fixed", [TT_CFG_GIVEN] = "given", [TT_CFG_FREE] = "free"};
    return names[field->resume];
}

json_t *fields_json(const tt_cfg_field_t *fields)
{
    json_t *array = json_array();
    for (; fields->key; fields++) {
        char range[64];
        s_range(range, sizeof range, fields);
        if (!tt_train_fills_in(fields->key))
            json_array_append_new(
                array, json_pack("{s:s, s:s?, s:s, s:s, s:s}", "key", fields->key, "default", fields->def, "range",
                           range, "resume", s_resume(fields), "help", fields->help));
    }
    return array;
}
