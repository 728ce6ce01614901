#include "cli/fields.h"
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
        [TT_CFG_LIST] = "list"};
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

static bool s_is_filled_in(const tt_cfg_field_t *field)
{
    return strncmp(field->key, "space.", 6) == 0;
}

void fields_print(FILE *out, const tt_cfg_field_t *fields)
{
    fprintf(out, "%-28s %-12s %-22s %s\n", "KEY", "DEFAULT", "RANGE", "WHAT");
    for (; fields->key; fields++) {
        char range[64];
        s_range(range, sizeof range, fields);
        if (!s_is_filled_in(fields))
            fprintf(out, "%-28s %-12s %-22s %s\n", fields->key, s_default(fields), range, fields->help);
    }
}

json_t *fields_json(const tt_cfg_field_t *fields)
{
    json_t *array = json_array();
    for (; fields->key; fields++) {
        char range[64];
        s_range(range, sizeof range, fields);
        if (!s_is_filled_in(fields))
            json_array_append_new(array, json_pack("{s:s, s:s?, s:s, s:s}", "key", fields->key, "default", fields->def,
                                             "range", range, "help", fields->help));
    }
    return array;
}
