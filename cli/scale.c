/*  scale - change the number of replicas of a running job. */
#include <stdlib.h>
#include <string.h>
#include "cli/client.h"
#include "cli/cmd.h"

const tt_option_t tt_opt_scale[] = {{0}};

/*  "collector=3" into {"collector": 3}. The coordinator knows the roles and their limits. */
static tt_status_t s_add(json_t *body, const char *text)
{
    const char *equals = strchr(text, '=');
    char *end = NULL;
    const unsigned long count = equals ? strtoul(equals + 1, &end, 10) : 0;
    if (!equals || equals == text || equals[1] < '0' || equals[1] > '9' || *end || count > 65535)
        return tt_err(TT_USAGE, "'%s' is not ROLE=N, such as collector=3", text);
    if (json_object_getn(body, text, (size_t)(equals - text)))
        return tt_err(TT_USAGE, "'%s': %.*s is there already", text, (int)(equals - text), text);
    json_t *value = json_integer((json_int_t)count);
    return json_object_setn_new(body, text, (size_t)(equals - text), value) == 0
               ? TT_OK
               : tt_err(TT_USAGE, "'%s' is not a role", text);
}

/*  What is asked for from now on, and what is there yet. */
static void s_print(const json_t *counts)
{
    const char *role;
    json_t *count;
    json_object_foreach((json_t *)counts, role, count) printf("%-12s %.0f of %.0f\n", role,
        json_number_value(json_object_get(count, "ready")), json_number_value(json_object_get(count, "desired")));
}

int tt_cmd_scale(int argc, char **argv)
{
    int code;
    TT_AUTO(tt_args) args = tt_args_new(&code, "scale", argc, argv);
    if (!args)
        return code;
    tt_rundir_t run;
    tt_status_t status = tt_rundir_find(&run, tt_operand(args, 0));
    json_t *body = json_object(), *reply = NULL;
    for (size_t i = 1; status == TT_OK && tt_operand(args, i); i++)
        status = s_add(body, tt_operand(args, i));
    if (status == TT_OK) {
        char *text = json_dumps(body, JSON_COMPACT);
        status = tt_client_ask(&run, "scale", text, 10000, &reply);
        free(text);
        status = status == TT_INVALID ? TT_USAGE : status; /* what it found bad was typed here */
    }
    json_decref(body);
    if (status == TT_OK)
        s_print(reply);
    json_decref(reply);
    return status == TT_OK ? 0 : tt_args_fail(args, status);
}
