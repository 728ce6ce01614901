/*  algorithms - the algorithms there are, and the options of one. */
#include "cli/cmd.h"
#include "cli/fields.h"
#include "cli/setup.h"

const tt_option_t tt_opt_algorithms[] = {
    {"output", 'o', "text|json", "text (default) or one JSON object"},
    {0},
};

static json_t *s_json(const tt_algorithm_t *algorithm)
{
    return json_pack("{s:s, s:s, s:o}", "name", algorithm->name, "summary", algorithm->summary, "options",
        fields_json(algorithm->fields));
}

static int s_print_json(const tt_algorithm_t *only)
{
    size_t count;
    const tt_algorithm_t *const *algorithms = tt_algorithms(&count);
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++)
        if (!only || algorithms[i] == only)
            json_array_append_new(array, s_json(algorithms[i]));
    json_t *all = json_pack("{s:o}", "algorithms", array);
    json_dumpf(all, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(all);
    return 0;
}

static int s_print_list(void)
{
    size_t count;
    const tt_algorithm_t *const *algorithms = tt_algorithms(&count);
    for (size_t i = 0; i < count; i++)
        printf("%-8s %s\n", algorithms[i]->name, algorithms[i]->summary);
    printf("\n'tutti algorithms NAME' lists the options of one.\n");
    return 0;
}

int tt_cmd_algorithms(int argc, char **argv)
{
    int code;
    TT_AUTO(tt_args) args = tt_args_new(&code, "algorithms", argc, argv);
    if (!args)
        return code;
    const tt_algorithm_t *only = NULL;
    if (tt_operand(args, 0)) {
        const tt_status_t status = tt_setup_find_algorithm(&only, tt_operand(args, 0));
        if (status != TT_OK)
            return tt_args_fail(args, status);
    }
    if (tt_arg_is(args, "output", "json"))
        return s_print_json(only);
    if (!only)
        return s_print_list();
    printf("%s - %s\n\n", only->name, only->summary);
    fields_print(stdout, only->fields);
    return 0;
}
