#include "local/start.h"
#include <stdio.h>
#include <stdlib.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "local/environment.h"
#include "local/volumes.h"
#include "k8s/front/object.h"

/* ---- names ----------------------------------------------------------------------------------------------------------------- */

static bool s_is_main(const json_t *pod, const json_t *container)
{
    const json_t *containers = json_object_get(json_object_get(pod, "spec"), "containers");
    const char *name = parts_text(container, "name", "");
    const char *role = parts_text(json_object_get(json_object_get(pod, "metadata"), "labels"), "replica-type", "");
    return strcmp(name, "di-container") == 0 || strcmp(name, role) == 0 ||
           (json_array_size(containers) == 1 && json_array_get(containers, 0) == container);
}

char *start_name(const place_t *place, const json_t *pod, const json_t *container)
{
    const char *name = parts_text(json_object_get(pod, "metadata"), "name", "");
    const size_t length = strlen(place->job);
    if (strncmp(name, place->job, length) == 0 && name[length] == '-')
        name += length + 1;
    return s_is_main(pod, container) ? tt_strdup(name) : tt_sprintf("%s.%s", name, parts_text(container, "name", ""));
}

/* ---- command --------------------------------------------------------------------------------------------------------------- */

/*  The substrate expands $(NAME) from all it passes on; ours is expanded already: every dollar is meant. Takes text. */
static char *s_literal(char *text)
{
    char *out = tt_expand_literal(text);
    free(text);
    return out;
}

static char **s_strings(const json_t *list, const environment_t *environment, size_t from)
{
    const size_t count = json_array_size(list);
    char **out = tt_array0(count + 1, sizeof *out);
    for (size_t i = from; i < count; i++) {
        const char *text = json_string_value(json_array_get(list, i));
        out[i - from] = s_literal(environment_expand(environment, text ? text : ""));
    }
    return out;
}

static size_t s_length(char **list)
{
    size_t length = 0;
    while (list && list[length])
        length++;
    return length;
}

/*  Is the first word this program? */
static bool s_is_tutti(const json_t *command)
{
    const char *word = json_string_value(json_array_get(command, 0));
    const char *slash = word ? strrchr(word, '/') : NULL;
    return word && strcmp(slash ? slash + 1 : word, "tutti") == 0;
}

static bool s_is_own(const start_t *self)
{
    const json_t *command = json_object_get(self->container, "command");
    return self->tutti && (json_array_size(command) == 0 || s_is_tutti(command));
}

static char **s_join(char **a, char **b)
{
    const size_t x = s_length(a), y = s_length(b);
    char **out = tt_array0(x + y + 1, sizeof *out);
    for (size_t i = 0; i < x + y; i++)
        out[i] = i < x ? a[i] : b[i - x];
    free(a);
    free(b);
    return out;
}

static tt_status_t s_command(const start_t *self, const environment_t *environment, tt_template_t *out)
{
    const json_t *command = json_object_get(self->container, "command"),
                 *args = json_object_get(self->container, "args");
    if (json_array_size(command) == 0 && !self->tutti)
        return tt_err(TT_UNSUPPORTED,
            "container %s has no command: what its image would run is not known on this machine",
            parts_text(self->container, "name", ""));
    const bool own = s_is_own(self);
    char **words = s_strings(command, environment, own ? 1 : 0), **more = s_strings(args, environment, 0);
    if (own)
        out->args = s_join(words, more);
    else {
        out->command = words;
        out->args = more;
    }
    return TT_OK;
}

/* ---- limits ----------------------------------------------------------------------------------------------------------------- */

static double s_limit(const json_t *container, const char *name)
{
    const json_t *resources = json_object_get(container, "resources");
    const json_t *value = json_object_get(json_object_get(resources, "limits"), name);
    double amount = json_number_value(value);
    if (json_is_string(value) && tt_quantity(&amount, json_string_value(value)) != TT_OK)
        amount = 0;
    return amount;
}

static void s_limits(const start_t *self, tt_steps_t *steps, const char *name)
{
    const double cpu = s_limit(self->container, "cpu"), memory = s_limit(self->container, "memory");
    if (self->place->limits && limits_add(self->place->limits, steps, name, cpu, memory) != TT_OK)
        place_say(self->place, "resource limits are not held: %s", tt_err_text());
    if (s_limit(self->container, "nvidia.com/gpu") > 0)
        place_say(self->place, "nvidia.com/gpu: locally every process sees every GPU");
}

/* ---- the whole -------------------------------------------------------------------------------------------------------------- */

static void s_note(void *ctx, const char *text)
{
    place_say(ctx, "%s", text);
}

/*  An image has our bundled configs beside the program. Here a volume may lie on the folder that they are in (/tmp): they are
 *  shown on top of it. */
static void s_bundled(volumes_t *volumes)
{
    char program[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
    for (int up = 0; up < 2; up++)
        *(strrchr(program, '/') ? strrchr(program, '/') : program) = '\0';
    char *folder = tt_sprintf("%s/share/tutti/configs", program), *real = realpath(folder, NULL);
    if (real)
        volumes_show(volumes, real, folder);
    if (real && strcmp(real, folder) != 0)
        volumes_show(volumes, real, real);
    free(real);
    free(folder);
}

/*  Where folders cannot be shown at their places, our program is told where they are (cli/pod.h). */
static void s_stand_ins(const volumes_t *volumes, environment_t *environment)
{
    for (size_t i = 0; i < volumes->count; i++) {
        const view_mount_t *mount = &volumes->mounts[i];
        if (strcmp(mount->target, "/var/lib/tutti") == 0)
            environment_set(environment, "TUTTI_POD_RUN", tt_strdup(mount->source));
        if (strcmp(mount->target, "/etc/tutti/curve") == 0)
            environment_set(environment, "TUTTI_POD_KEY", tt_sprintf("%s/curve.key", mount->source));
    }
}

static tt_status_t s_view(
    const start_t *self, tt_steps_t *steps, const char *name, environment_t *environment, char **working_dir)
{
    volumes_t volumes = {0};
    TT_TRY(volumes_mount(&volumes, self->place, self->pod, self->container));
    if (s_is_own(self) && self->place->kind)
        s_bundled(&volumes);
    else if (s_is_own(self))
        s_stand_ins(&volumes, environment);
    const char *pod = parts_text(json_object_get(self->pod, "metadata"), "name", "");
    const char *dir = json_string_value(json_object_get(self->container, "workingDir"));
    char *scratch = place_folder(self->place, "pods/%s/%s", pod, name);
    const view_want_t want = {.mounts = volumes.mounts,
        .count = volumes.count,
        .working_dir = dir && *dir ? dir : NULL,
        .scratch = scratch,
        .kind = self->place->kind};
    const tt_status_t status = view_plan(steps, working_dir, &want, s_note, self->place);
    free(scratch);
    volumes_clear(&volumes);
    return status;
}

static void s_free_strings(char **list)
{
    for (size_t i = 0; list && list[i]; i++)
        free(list[i]);
    free(list);
}

static tt_status_t s_start(const start_t *self, const char *name, environment_t *environment, tt_replica_id_t *id)
{
    tt_steps_t steps = {0};
    tt_template_t template_ = {0};
    TT_TRY(s_command(self, environment, &template_));
    s_limits(self, &steps, name);
    tt_status_t status = s_view(self, &steps, name, environment, &template_.working_dir);
    template_.env = environment->vars;
    template_.env_count = environment->count;
    if (status == TT_OK) {
        if (template_.working_dir)
            template_.working_dir = s_literal(template_.working_dir);
        const tt_replica_spec_t spec = {
            .job = self->place->job, .role = name, .template_ = &template_, .log = name, .steps = &steps};
        status = self->substrate->ops->start(self->substrate, &spec, id);
    }
    s_free_strings(template_.command);
    s_free_strings(template_.args);
    free(template_.working_dir);
    tt_steps_clear(&steps);
    return status;
}

tt_status_t start_container(const start_t *self, tt_replica_id_t *id)
{
    environment_t environment = {0};
    TT_TRY(environment_make(&environment, self->place, self->pod, self->container, self->ip));
    char *name = start_name(self->place, self->pod, self->container);
    const tt_status_t status = s_start(self, name, &environment, id);
    free(name);
    environment_clear(&environment);
    return status;
}
