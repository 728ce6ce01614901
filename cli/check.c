/*  check - the config as a run would see it, where every value comes from, and what it comes to. */
#include "cli/cmd.h"
#include "cli/comes_to.h"
#include "cli/devices.h"
#include "cli/updates.h"
#include "cli/variables.h"
#include "cli/job.h"
#include "cli/members.h"
#include "cli/setup.h"
#include "common/base/json.h"
#include "common/base/text.h"
#include "common/config/manifest.h"
#include "local/local.h"
#include <jansson.h>
#include <stdio.h>

const tt_option_t tt_opt_check[] = {
    {"set", 's', "KEY=VALUE", "override a setting; may be repeated"},
    {"seed", 0, "N", "as --set seed=N"},
    {"env", 0, "ENV", "as --set env=ENV"},
    {"output", 'o', "text|json", "text (default): YAML with origins as comments"},
    {0},
};

static void s_json_string(FILE *out, const char *text)
{
    json_t *json = tt_json_text(text);
    json_dumpf(json, out, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
    json_decref(json);
}

/*  The YAML text of a value is JSON already, but for plain strings, which lack quotes. Passing it through keeps every
 *  digit. */
static void s_json_member(void *ctx, const tt_cfg_field_t *field, const char *value, const char *origin)
{
    const bool text = field->type == TT_CFG_STR || field->type == TT_CFG_WORDS || field->type == TT_CFG_ENUM;
    const char *quote = text && *value != '"' ? "\"" : "";
    const char **separator = ctx;
    printf("%s\"%s\":{\"value\":%s%s%s,\"origin\":", *separator, field->key, quote, value, quote);
    s_json_string(stdout, origin);
    putchar('}');
    *separator = ",";
}

static int s_print_json(const tt_setup_t *setup, const json_t *notes)
{
    const char *separator = "";
    fputs("{\"valid\":true,\"config\":{", stdout);
    tt_config_each(tt_setup_config(setup), s_json_member, &separator);
    fputs("},\"comes_to\":", stdout);
    json_t *sums = comes_to_json(setup);
    const tt_train_cfg_t *train = tt_setup_train(setup);
    json_object_set_new(
        sums, "updates", train->stop.env_steps ? json_integer((json_int_t)updates_of(train)) : json_null());
    json_dumpf(sums, stdout, JSON_COMPACT);
    json_decref(sums);
    fputs(",\"notes\":", stdout);
    json_dumpf(notes, stdout, JSON_COMPACT);
    puts("}");
    return 0;
}

static void s_print_json_error(void)
{
    fputs("{\"valid\":false,\"error\":", stdout);
    s_json_string(stdout, tt_err_text());
    puts("}");
}

static int s_print_yaml(const tt_setup_t *setup)
{
    tt_buf_t out;
    tt_buf_init(&out, 1 << 20);
    const tt_status_t status = tt_config_dump(tt_setup_config(setup), &out, true);
    if (status == TT_OK)
        fputs(tt_buf_text(&out), stdout);
    tt_buf_free(&out);
    if (status == TT_OK) {
        comes_to_print(stdout, setup);
        updates_print(stdout, tt_setup_train(setup));
    }
    return tt_status_exit_code(status);
}

/*  The manifest of a job of Kubernetes (local/). */
static void s_note(void *ctx, const char *text)
{
    if (!*(const bool *)ctx)
        puts(text);
}

static int s_check_manifest(const tt_args_t *args, bool json)
{
    local_manifest_t manifest = {0};
    tt_status_t status = tt_job_refuse_settings(args);
    if (status == TT_OK)
        status = local_read(&manifest, tt_operand(args, 0), s_note, &json);
    if (status == TT_OK)
        status = members_check(&manifest, s_note, &json);
    if (status == TT_OK && json)
        printf("{\"valid\":true,\"complete\":%s}\n", manifest.lacks ? "false" : "true");
    else if (status == TT_OK && manifest.lacks)
        printf("the %s is good, but this machine lacks what stands above\n", manifest.front->kind);
    else if (status == TT_OK)
        printf("the %s can be run\n", manifest.front->kind);
    else if (json)
        s_print_json_error();
    local_manifest_clear(&manifest);
    return status == TT_OK ? 0 : tt_args_fail(args, status);
}

static void s_print_notes(const json_t *notes)
{
    const json_t *note;
    size_t i;
    json_array_foreach(notes, i, note) fprintf(stderr, "tutti check: note: %s\n", tt_shown(json_string_value(note)));
}

int tt_cmd_check(int argc, char **argv)
{
    int code;
    TT_AUTO(tt_args) args = tt_args_new(&code, "check", argc, argv);
    if (!args)
        return code;
    const bool json = tt_arg_is(args, "output", "json");
    tt_status_t status = variables_check();
    if (status != TT_OK && json)
        s_print_json_error();
    if (status != TT_OK)
        return tt_args_fail(args, status);
    if (tt_manifest_is(tt_operand(args, 0)))
        return s_check_manifest(args, json);
    TT_AUTO(tt_setup) setup = NULL;
    status = tt_setup_from_args(&setup, args, tt_operand(args, 0), NULL);
    if (status != TT_OK && json)
        s_print_json_error();
    if (status != TT_OK)
        return tt_args_fail(args, status);
    if (*tt_setup_note(setup))
        fprintf(stderr, "tutti check: %s\n", tt_shown(tt_setup_note(setup)));
    updates_warn(stderr, "tutti check", tt_setup_train(setup));
    json_t *notes = devices_lacking(tt_setup_train(setup));
    s_print_notes(notes);
    code = json ? s_print_json(setup, notes) : s_print_yaml(setup);
    json_decref(notes);
    return code;
}
