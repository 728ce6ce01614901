#include "cli/words.h"
#include "cli/cmd.h"
#include "cli/recipes.h"
#include "controller/rundir.h"
#include "learner/algorithm.h"
#include "collector/registry.h"
#include "task/dataset.h"
#include "task/tasks.h"
#include <string.h>

static void s_keys_of(FILE *out, const tt_cfg_field_t *fields)
{
    for (; fields->key; fields++)
        if (!tt_train_fills_in(fields->key))
            fprintf(out, fields->type == TT_CFG_MAP ? "%s.\n" : "%s=\n", fields->key);
}

static void s_keys(FILE *out)
{
    size_t count;
    const tt_algorithm_t *const *algorithms = tt_algorithms(&count);
    s_keys_of(out, tt_train_fields);
    for (size_t i = 0; i < count; i++)
        s_keys_of(out, algorithms[i]->fields);
}

static void s_algorithms(FILE *out)
{
    size_t count;
    const tt_algorithm_t *const *algorithms = tt_algorithms(&count);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "%s\n", algorithms[i]->name);
}

static void s_envs(FILE *out)
{
    size_t count;
    const tt_env_ops_t *const *envs = tt_envs(&count);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "%s\n", envs[i]->id);
}

/*  below "": the commands; below "bench ": the benchmarks. */
static void s_commands(FILE *out, const char *below)
{
    size_t count;
    const tt_command_t *commands = tt_commands(&count);
    for (size_t i = 0; i < count; i++) {
        const char *name = commands[i].name;
        if (*below ? strncmp(name, below, strlen(below)) == 0 : !strchr(name, ' '))
            fprintf(out, "%s\n", name + strlen(below));
    }
}

static void s_command_names(FILE *out)
{
    s_commands(out, "");
}

static void s_benchmarks(FILE *out)
{
    s_commands(out, "bench ");
}

static void s_run(void *ctx, const tt_rundir_t *run)
{
    fprintf(ctx, "%s\n", run->name);
}

static void s_runs(FILE *out)
{
    (void)tt_registry_each(s_run, out); /* no registry, no words */
}

static void s_dataset(void *ctx, const dataset_t *set)
{
    fprintf(ctx, "%s\n", set->name);
}

static void s_datasets(FILE *out)
{
    TT_AUTO(store) store = NULL;
    if (store_open(&store) == TT_OK)
        (void)dataset_each(store, s_dataset, out); /* no registry, no words */
}

static tt_status_t s_task(void *ctx, const char *name)
{
    return fprintf(ctx, "%s\n", name) < 0 ? TT_IO : TT_OK;
}

static void s_tasks(FILE *out)
{
    TT_AUTO(store) store = NULL;
    if (store_open(&store) == TT_OK)
        (void)task_each_name(store, s_task, out);
}

static void s_roles(FILE *out)
{
    fputs("collector\nlearner\naggregator\ncoordinator\n", out);
}

static void s_counts(FILE *out)
{
    fputs("collector=\nlearner=\naggregator=\n", out);
}

static const struct {
    const char *placeholder;
    void (*print)(FILE *out);
} s_lists[] = {
    {"KEY=VALUE", s_keys},
    {"ALGORITHM", s_algorithms},
    {"ENV", s_envs},
    {"CONFIG", recipe_print_names},
    {"COMMAND", s_command_names},
    {"BENCHMARK", s_benchmarks},
    {"RUN", s_runs},
    {"DATASET", s_datasets},
    {"TASK", s_tasks},
    {"ROLE", s_roles},
    {"ROLE=N", s_counts},
};

void words_print(FILE *out, const char *placeholder)
{
    for (size_t i = 0; i < TT_COUNT(s_lists); i++)
        if (strcmp(s_lists[i].placeholder, placeholder) == 0)
            s_lists[i].print(out);
}
