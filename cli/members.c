#include "cli/members.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/cmd.h"
#include "cli/setup.h"
#include "common/base/mem.h"

static const char *s_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* ---- what only the pod knows ---------------------------------------------------------------------------------------- */

static bool s_ends(const char *text, const char *end)
{
    const size_t a = strlen(text), b = strlen(end);
    return a >= b && strcmp(text + a - b, end) == 0;
}

static bool s_is_mounted(const json_t *container, const char *path)
{
    size_t i;
    json_t *mount;
    json_array_foreach(json_object_get(container, "volumeMounts"), i, mount)
    {
        const char *at = s_text(mount, "mountPath");
        if (*at && strncmp(path, at, strlen(at)) == 0)
            return true;
    }
    return false;
}

/*  FILE, and --set KEY=FILE. */
static bool s_is_of_the_pod(const json_t *container, const char *word)
{
    const char *equals = strrchr(word, '='), *path = equals ? equals + 1 : word;
    const bool file = s_ends(path, ".yaml") || s_ends(path, ".yml") || s_ends(path, ".so");
    return strstr(word, "$(") || (path[0] == '/' ? s_is_mounted(container, path) : file);
}

/*  A container may have another Python than this program, whose environments decide what a config comes to. */
static bool s_brings_its_own(const json_t *container)
{
    static const char *const begins[] = {"TT_", "PYTHON", "PATH", "VIRTUAL_ENV"};
    size_t i;
    json_t *entry;
    json_array_foreach(json_object_get(container, "env"), i, entry)
    {
        for (size_t b = 0; b < TT_COUNT(begins); b++)
            if (strncmp(s_text(entry, "name"), begins[b], strlen(begins[b])) == 0)
                return true;
    }
    return json_array_size(json_object_get(container, "envFrom")) > 0;
}

/* ---- a command line ------------------------------------------------------------------------------------------------- */

typedef struct {
    int count;
    char **word; /* borrowed words; NULL behind the last */
    bool open;   /* one of them is the pod's to know     */
} line_t;

static void s_add(line_t *self, const json_t *container, const char *list, size_t from)
{
    const json_t *words = json_object_get(container, list);
    for (size_t i = from; i < json_array_size(words); i++) {
        const char *word = json_string_value(json_array_get(words, i));
        self->word[self->count++] = (char *)(uintptr_t)word; /* that all are text was checked */
        self->open |= s_is_of_the_pod(container, word);
    }
}

/*  Are they words for this program? */
static bool s_line(line_t *self, const json_t *container)
{
    const json_t *command = json_object_get(container, "command");
    const char *program = json_string_value(json_array_get(command, 0));
    const char *slash = program ? strrchr(program, '/') : NULL;
    *self = (line_t){.open = s_brings_its_own(container)};
    if (program && strcmp(slash ? slash + 1 : program, "tutti") != 0)
        return false;
    self->word = tt_array0(
        json_array_size(command) + json_array_size(json_object_get(container, "args")) + 1, sizeof *self->word);
    s_add(self, container, "command", 1);
    s_add(self, container, "args", 0);
    return true;
}

/*  What is looked at, and who is told. */
typedef struct {
    const json_t *spec;
    local_say_fn say;
    void *ctx;
} look_t;

/*  On a cluster nobody who made them would hear of it: the coordinator logs it. */
static void s_say_spares(const look_t *self, const char *role, const char *key, uint32_t most)
{
    const json_int_t replicas = json_integer_value(json_object_get(json_object_get(self->spec, role), "replicas"));
    char text[256];
    snprintf(text, sizeof text, "spec.%s.replicas is %lld, but %s is %u: %lld will do nothing until others leave", role,
        (long long)replicas, key, most, (long long)replicas - most);
    if (replicas > most)
        self->say(self->ctx, text);
}

static tt_status_t s_check_settings(const look_t *self, const tt_args_t *args)
{
    TT_AUTO(tt_setup) setup = NULL;
    TT_TRY(tt_setup_from_args(&setup, args, tt_arg(args, "config"), NULL));
    s_say_spares(self, "learner", "learner.shards", tt_setup_train(setup)->learner.shards);
    s_say_spares(self, "collector", "num_envs", tt_setup_train(setup)->num_envs);
    return TT_OK;
}

static tt_status_t s_check_line(const look_t *look, const line_t *self)
{
    const char *name = self->count ? self->word[0] : "";
    if (!self->count)
        return tt_err(TT_USAGE, "no command for tutti; args begin with one, such as coordinator");
    if (!tt_command_find(name)) {
        const char *near = tt_command_nearest("", name);
        return tt_err(TT_USAGE, "tutti has no command '%s'%s%s%s", name, near ? "; did you mean '" : "",
            near ? near : "", near ? "'?" : "");
    }
    TT_AUTO(tt_args) args = NULL;
    const tt_status_t status = tt_args_read(&args, name, self->count, self->word);
    if (status != TT_OK)
        return status == TT_STOPPED ? TT_OK : status; /* --help */
    const bool settled = !self->open && strcmp(name, "coordinator") == 0 && tt_arg(args, "config");
    return settled ? s_check_settings(look, args) : TT_OK;
}

/* ---- the job -------------------------------------------------------------------------------------------------------- */

static tt_status_t s_template(void *ctx, const front_template_t *template_)
{
    const json_t *spec = json_object_get(json_object_get(template_->holder, "template"), "spec");
    size_t i;
    json_t *container;
    json_array_foreach(json_object_get(spec, "containers"), i, container)
    {
        line_t line;
        const tt_status_t status = s_line(&line, container) ? s_check_line(ctx, &line) : TT_OK;
        free(line.word);
        if (status != TT_OK)
            return tt_err_wrap(status, "%s.template.spec.containers[%zu]", template_->path, i);
    }
    return TT_OK;
}

tt_status_t members_check(const local_manifest_t *manifest, local_say_fn say, void *ctx)
{
    look_t look = {json_object_get(manifest->job, "spec"), say, ctx};
    const bool ours = strcmp(s_text(look.spec, "engine"), "tutti") == 0;
    return ours ? manifest->front->templates(manifest->job, s_template, &look) : TT_OK;
}
