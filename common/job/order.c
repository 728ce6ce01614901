#include "common/job/order.h"
#include <string.h>

tt_status_t tt_order_parse(json_t **out, const char *verb, const char *body)
{
    json_error_t error;
    json_t *object = body && body[0] ? json_loads(body, JSON_REJECT_DUPLICATES, &error) : json_object();
    if (!object)
        return tt_err(TT_INVALID, "not JSON (line %d: %s)", error.line, error.text);
    if (json_is_object(object)) {
        *out = object;
        return TT_OK;
    }
    json_decref(object);
    return tt_err(TT_INVALID, "expected a JSON object, for example %s",
        strcmp(verb, "stop") == 0 ? "{\"reason\": \"enough\"}" : "{\"collector\": 2}");
}

static tt_status_t s_check_key(const char *key, const json_t *value, bool code)
{
    if (strcmp(key, "reason") == 0)
        return json_is_string(value) ? TT_OK : tt_err(TT_INVALID, "reason must be a string");
    if (strcmp(key, "now") == 0)
        return json_is_boolean(value) ? TT_OK : tt_err(TT_INVALID, "now must be true or false");
    if (!code || strcmp(key, "code") != 0)
        return tt_err(TT_INVALID, "no key '%.60s'; there are reason and now", key);
    return json_is_integer(value) && json_integer_value(value) >= 0 && json_integer_value(value) <= 255
               ? TT_OK
               : tt_err(TT_INVALID, "code must be a number from 0 to 255");
}

tt_status_t tt_order_check_stop(json_t *body, bool code)
{
    const char *key;
    json_t *value;
    json_object_foreach(body, key, value) TT_TRY(s_check_key(key, value, code));
    return TT_OK;
}
