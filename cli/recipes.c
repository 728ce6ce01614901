#include "cli/recipes.h"
#include "cli/folder.h"
#include "collector/gym/gym.h"
#include "collector/registry.h"
#include "common/base/mem.h"
#include "common/config/config.h"
#include "learner/algorithm.h"
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAMES_MAX = 256 };

typedef struct {
    const char *env, *config;
} recipe_line_t;

static const recipe_line_t s_recipes[] = {
#define RECIPE(env, config) {env, config},
#include "cli/recipes.def"
#undef RECIPE
};

/*  ---- bundled configs ---- */

/*  "" when the binary's place is not known. */
static void s_folder(char *out, size_t size)
{
    char exe[2048];
    const ssize_t length = readlink("/proc/self/exe", exe, sizeof exe - 1);
    exe[length > 0 ? length : 0] = '\0';
    *out = '\0';
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(exe, '/');
        if (!slash)
            return;
        *slash = '\0';
    }
    snprintf(out, size, "%s/share/tutti/configs", exe);
}

/*  "cartpole-ppo" of "cartpole-ppo.yaml"; 0: another file. */
static size_t s_stem(const char *file)
{
    const size_t length = strlen(file);
    return length > 5 && strcmp(file + length - 5, ".yaml") == 0 ? length - 5 : 0;
}

static int s_by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/*  Sorted; the caller frees each. */
static size_t s_names(char *names[NAMES_MAX])
{
    char folder[3072];
    size_t count = 0;
    s_folder(folder, sizeof folder);
    DIR *dir = *folder ? opendir(folder) : NULL;
    for (const struct dirent *entry; dir && count < NAMES_MAX && (entry = readdir(dir));)
        if (s_stem(entry->d_name))
            names[count++] = tt_sprintf("%.*s", (int)s_stem(entry->d_name), entry->d_name);
    if (dir)
        closedir(dir);
    qsort(names, count, sizeof *names, s_by_name);
    return count;
}

void recipe_print_names(FILE *out)
{
    char *names[NAMES_MAX];
    const size_t count = s_names(names);
    for (size_t i = 0; i < count; i++) {
        fprintf(out, "%s\n", names[i]);
        free(names[i]);
    }
}

static bool s_bundled(const char *name, char *out, size_t size)
{
    char folder[3072];
    s_folder(folder, sizeof folder);
    const int length = snprintf(out, size, "%s/%s.yaml", folder, name);
    return *folder && !strchr(name, '/') && length < (int)size && access(out, F_OK) == 0;
}

static bool s_is_algorithm(const char *word, size_t length)
{
    size_t count;
    const tt_algorithm_t *const *algorithms = tt_algorithms(&count);
    for (size_t i = 0; i < count; i++)
        if (strlen(algorithms[i]->name) == length && strncmp(algorithms[i]->name, word, length) == 0)
            return true;
    return false;
}

/*  A word of their names is their algorithm's. */
bool recipe_beside(const recipe_t *self, const char *algorithm, char *out)
{
    enum { NAME_SIZE = 256 };
    char path[sizeof self->path];
    const char *slash = strrchr(self->path, '/'), *name = slash ? slash + 1 : self->path;
    const size_t length = strcspn(name, ".");
    snprintf(out, NAME_SIZE, "%.*s", (int)length, name);
    if (!s_bundled(out, path, sizeof path) || strcmp(path, self->path) != 0)
        return false;
    size_t at = 0, word = strcspn(name, "-.");
    while (!s_is_algorithm(name + at, word) && name[at + word] == '-') {
        at += word + 1;
        word = strcspn(name + at, "-.");
    }
    const size_t behind = at + word;
    snprintf(out, NAME_SIZE, "%.*s%.64s%.*s", (int)at, name, algorithm, (int)(length - behind), name + behind);
    return s_bundled(out, path, sizeof path) && strcmp(path, self->path) != 0;
}

/*  ---- environments ---- */

static bool s_is_env(const char *id)
{
    size_t count;
    const tt_env_ops_t *const *envs = tt_envs(&count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(envs[i]->id, id) == 0)
            return true;
    return false;
}

bool recipe_is_object(const char *text)
{
    const size_t length = strlen(text);
    return length > 3 && strcmp(text + length - 3, ".so") == 0;
}

/*  Its own, or that of the first of its family: "MinAtar/Seaquest-v1" is played as MinAtar/Breakout-v1, "gym:ALE/Breakout-v5" as
 *  gym:ALE/Pong-v5. NULL: there is none. */
static const recipe_line_t *s_best(const char *env)
{
    const char *slash = strchr(env, '/');
    const size_t family = slash && (tt_env_is_native(env) || gym_is(env)) ? (size_t)(slash - env) + 1 : 0;
    const recipe_line_t *related = NULL;
    for (size_t i = 0; i < TT_COUNT(s_recipes); i++) {
        if (strcmp(s_recipes[i].env, env) == 0)
            return &s_recipes[i];
        if (!related && family && strncmp(s_recipes[i].env, env, family) == 0)
            related = &s_recipes[i];
    }
    return related;
}

static void s_take_env(recipe_t *out, const char *env)
{
    out->by_env = true;
    const recipe_line_t *best = s_best(env);
    const bool bundled = best && s_bundled(best->config, out->path, sizeof out->path);
    if (bundled && strcmp(best->env, env) == 0) {
        snprintf(out->note, sizeof out->note, "%s by the bundled config %s", env, best->config);
        return;
    }
    snprintf(out->env, sizeof out->env, "%s", env);
    if (bundled) {
        snprintf(
            out->note, sizeof out->note, "%s by the bundled config %s, which is for %s", env, best->config, best->env);
        return;
    }
    out->path[0] = '\0';
    snprintf(
        out->note, sizeof out->note, "no bundled config for %s: every setting at its default ('tutti config')", env);
}

/*  ---- which is it? ---- */

static bool s_is_file(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && !S_ISDIR(info.st_mode);
}

/*  Written as a file is: then a file is meant, whether it is there or not. */
static bool s_looks_like_file(const char *text)
{
    if (tt_env_is_native(text))
        return false;
    return strchr(text, '/') || strcmp(text, "-") == 0 || s_stem(text) || strstr(text, ".yml") || strstr(text, ".json");
}

static tt_status_t s_not_found(const char *operand)
{
    char *names[NAMES_MAX];
    const char *known[NAMES_MAX + NAMES_MAX];
    const size_t count = s_names(names);
    size_t all = 0, envs_count;
    const tt_env_ops_t *const *envs = tt_envs(&envs_count);
    for (size_t i = 0; i < envs_count && i < NAMES_MAX; i++)
        known[all++] = envs[i]->id;
    for (size_t i = 0; i < count; i++)
        known[all++] = names[i];
    const char *near = tt_nearest(operand, known, all);
    const bool gym = gym_could_be(operand) && !(near && gym_could_be(near));
    const char *otherwise = gym ? "" : "; 'tutti envs' lists the environments";
    const tt_status_t status =
        tt_err(TT_NOT_FOUND, "no file '%s', and no bundled config or environment is called that%s%s%s%s%s%s", operand,
            gym ? "; Gymnasium's is called 'gym:" : "", gym ? operand : "", gym ? "' here" : "",
            near ? "; did you mean '" : otherwise, near ? near : "", near ? "'?" : "");
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    return status;
}

static tt_status_t s_find(recipe_t *out, const char *operand)
{
    *out = (recipe_t){0};
    if (strlen(operand) >= sizeof out->env)
        return tt_err(TT_INVALID, "%.64s...: path too long", operand);
    if (gym_could_be(operand) && !s_is_env(operand) && access(operand, F_OK) != 0)
        return s_not_found(operand);
    if (recipe_is_object(operand) || gym_is(operand)) {
        s_take_env(out, operand);
    } else if (s_looks_like_file(operand) || s_is_file(operand)) {
        snprintf(out->path, sizeof out->path, "%s", operand);
        out->hides = s_is_env(operand);
        if (out->hides)
            snprintf(out->note, sizeof out->note, "%s is a file here, and taken as the config: not the environment",
                operand);
    } else if (!s_bundled(operand, out->path, sizeof out->path)) {
        if (s_is_env(operand))
            s_take_env(out, operand);
        else if (access(operand, F_OK) == 0)
            snprintf(out->path, sizeof out->path, "%s", operand); /* a directory */
        else
            return s_not_found(operand);
    }
    return TT_OK;
}

tt_status_t recipe_find(recipe_t *out, const char *operand)
{
    TT_TRY(s_find(out, operand));
    return folder_refuse(out->path);
}
