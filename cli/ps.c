/*  ps - the runs of this user, live and ended. */
#include <stdlib.h>
#include <string.h>
#include "cli/client.h"
#include "cli/cmd.h"
#include "cli/state.h"
#include "common/base/json.h"
#include "common/base/text.h"

const tt_option_t tt_opt_ps[] = {
    {"all", 'a', NULL, "ended runs too"}, {"output", 'o', "text|json", "json: an array on stdout"}, {0}};

typedef struct {
    bool all;
    json_t *rows;
} listing_t;

static void s_row(void *ctx, const tt_rundir_t *run)
{
    listing_t *listing = ctx;
    json_t *source = NULL;
    const char *state = tt_run_state(run, &source);
    const bool live = strcmp(state, "running") == 0;
    if (!live && !listing->all) {
        json_decref(source);
        return;
    }
    if (live && tt_client_ask(run, "status", "", 2000, &source) != TT_OK)
        source = NULL;
    json_t *row = json_object();
    json_object_set_new(row, "run", tt_json_text(run->name));
    json_object_set_new(row, "status", json_string(state));
    static const char *const keys[] = {"env_steps", "return_mean", "sps"};
    for (size_t i = 0; i < TT_COUNT(keys); i++)
        if (json_object_get(source, keys[i]))
            json_object_set(row, keys[i], json_object_get(source, keys[i]));
    if (strcmp(state, "failed") == 0 && json_is_string(json_object_get(source, "reason")))
        json_object_set(row, "reason", json_object_get(source, "reason"));
    json_object_set_new(row, "run_dir", tt_json_text(run->path));
    json_array_append_new(listing->rows, row);
    json_decref(source);
}

/*  Said once: the name is free from now on. */
static void s_gone(void *ctx, const char *name, const char *was)
{
    (void)ctx;
    fprintf(
        stderr, "tutti ps: run '%s' was at %s, which is gone: its name is forgotten\n", tt_shown(name), tt_shown(was));
}

static const char *s_text(const json_t *row, const char *key)
{
    return tt_shown(json_string_value(json_object_get(row, key)));
}

static void s_print(const json_t *rows)
{
    size_t i;
    json_t *row;
    printf("%-28s %-10s %12s %10s  %s\n", "RUN", "STATUS", "STEPS", "RETURN", "DIRECTORY");
    json_array_foreach((json_t *)rows, i, row)
    {
        char steps[32] = "-", mean[32] = "-";
        if (json_is_number(json_object_get(row, "env_steps")))
            snprintf(steps, sizeof steps, "%.0f", json_number_value(json_object_get(row, "env_steps")));
        if (json_is_number(json_object_get(row, "return_mean")))
            snprintf(mean, sizeof mean, "%.1f", json_number_value(json_object_get(row, "return_mean")));
        printf("%-28s %-10s %12s %10s  %s\n", s_text(row, "run"), s_text(row, "status"), steps, mean,
            s_text(row, "run_dir"));
        if (json_object_get(row, "reason"))
            printf("  %s\n", s_text(row, "reason"));
    }
}

int tt_cmd_ps(int argc, char **argv)
{
    int code;
    TT_AUTO(tt_args) args = tt_args_new(&code, "ps", argc, argv);
    if (!args)
        return code;
    listing_t listing = {.all = tt_arg_given(args, "all"), .rows = json_array()};
    tt_status_t status = tt_registry_sweep(s_gone, NULL);
    if (status == TT_OK)
        status = tt_registry_each(s_row, &listing);
    if (status == TT_OK && tt_arg_is(args, "output", "json")) {
        json_dumpf(listing.rows, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
        putchar('\n');
    } else if (status == TT_OK) {
        s_print(listing.rows);
    }
    json_decref(listing.rows);
    return status == TT_OK ? 0 : tt_args_fail(args, status);
}
