/*  dataset - add, list, rm: files under names (task/dataset.h). */
#include <stdio.h>
#include <time.h>
#include "cli/cmd.h"
#include "cli/sub.h"
#include "common/base/json.h"
#include "common/base/text.h"
#include "task/dataset.h"

const tt_option_t tt_opt_dataset[] = {{0}};
const tt_option_t tt_opt_dataset_add[] = {{"dataset", 'd', "NAME", "its name: user.<username>.<anything>, new"},
    {"path", 'p', "FILE", "the file, or the folder of files"}, {0}};
const tt_option_t tt_opt_dataset_list[] = {{"output", 'o', "text|json", "json: an array on stdout"}, {0}};
const tt_option_t tt_opt_dataset_rm[] = {{0}};

int tt_cmd_dataset(int argc, char **argv)
{
    return sub_dispatch("dataset", "command", argc, argv);
}

static tt_status_t s_add(const tt_args_t *args)
{
    const char *name = tt_arg(args, "dataset"), *path = tt_arg(args, "path");
    TT_AUTO(store) store = NULL;
    if (!name || !path)
        return tt_err(TT_USAGE, "%s is missing", name ? "--path" : "--dataset");
    TT_TRY(store_open(&store));
    return dataset_add(store, name, path);
}

int tt_cmd_dataset_add(int argc, char **argv)
{
    int code;
    TT_AUTO(tt_args) args = tt_args_new(&code, "dataset add", argc, argv);
    if (!args)
        return code;
    const tt_status_t status = s_add(args);
    return status == TT_OK ? 0 : tt_args_fail(args, status);
}

static void s_line(void *ctx, const dataset_t *set)
{
    (void)ctx;
    printf("%-40s %8lld  %s\n", set->name, (long long)set->files, tt_shown(set->path));
}

static void s_object(void *ctx, const dataset_t *set)
{
    json_array_append_new(
        ctx, json_pack("{s:o, s:o, s:b, s:I, s:I}", "dataset", tt_json_text(set->name), "path", tt_json_text(set->path),
                 "folder", set->folder, "files", (json_int_t)set->files, "added", (json_int_t)set->added));
}

static tt_status_t s_list(bool json)
{
    TT_AUTO(store) store = NULL;
    TT_TRY(store_open(&store));
    if (!json) {
        printf("%-40s %8s  %s\n", "DATASET", "FILES", "PATH");
        return dataset_each(store, s_line, NULL);
    }
    json_t *rows = json_array();
    const tt_status_t status = dataset_each(store, s_object, rows);
    if (status == TT_OK) {
        json_dumpf(rows, stdout, JSON_INDENT(2));
        putchar('\n');
    }
    json_decref(rows);
    return status;
}

int tt_cmd_dataset_list(int argc, char **argv)
{
    int code;
    TT_AUTO(tt_args) args = tt_args_new(&code, "dataset list", argc, argv);
    if (!args)
        return code;
    const tt_status_t status = s_list(tt_arg_is(args, "output", "json"));
    return status == TT_OK ? 0 : tt_args_fail(args, status);
}

int tt_cmd_dataset_rm(int argc, char **argv)
{
    int code, worst = 0;
    TT_AUTO(tt_args) args = tt_args_new(&code, "dataset rm", argc, argv);
    TT_AUTO(store) store = NULL;
    if (!args)
        return code;
    tt_status_t status = store_open(&store);
    if (status != TT_OK)
        return tt_args_fail(args, status);
    for (size_t i = 0; tt_operand(args, i); i++) {
        status = dataset_rm(store, tt_operand(args, i));
        if (status != TT_OK)
            worst = tt_args_fail(args, status);
    }
    return worst;
}
