/*  config - every key that a config may have. */
#include "cli/cmd.h"
#include "cli/fields.h"
#include "learner/algorithm.h"

const tt_option_t tt_opt_config[] = {
    {"output", 'o', "text|json", "text (default) or one JSON object"},
    {0},
};

static int s_json(void)
{
    size_t count;
    const tt_algorithm_t *const *algorithms = tt_algorithms(&count);
    json_t *all = json_pack("{s:o}", "job", fields_json(tt_train_fields));
    for (size_t i = 0; i < count; i++)
        json_object_set_new(all, algorithms[i]->name, fields_json(algorithms[i]->fields));
    json_dumpf(all, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(all);
    return 0;
}

int tt_cmd_config(int argc, char **argv)
{
    int code;
    TT_AUTO(tt_args) args = tt_args_new(&code, "config", argc, argv);
    if (!args)
        return code;
    if (tt_arg_is(args, "output", "json"))
        return s_json();
    fields_print(stdout, tt_train_fields);
    size_t count;
    const tt_algorithm_t *const *algorithms = tt_algorithms(&count);
    for (size_t i = 0; i < count; i++) {
        printf("\nOptions of the algorithm %s:\n", algorithms[i]->name);
        fields_print(stdout, algorithms[i]->fields);
    }
    return 0;
}
