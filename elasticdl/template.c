#include "elasticdl/template.h"
#include <string.h>
#include "common/base/mem.h"
#include "elasticdl/objects.h"
#include "common/config/manifest.h"
#include "common/config/fields.h"
#include "k8s/front/object.h"

#define SPEC  "template.spec"
#define AGENT SPEC ".containers[0]"

/*  What the master says itself, NULL at the end of each. */
typedef const char *const names_t[];
static names_t s_of_pod = {"activeDeadlineSeconds", "automountServiceAccountToken", "enableServiceLinks",
    "ephemeralContainers", "hostNetwork", "hostname", "restartPolicy", "setHostnameAsFQDN", "subdomain",
    "terminationGracePeriodSeconds", NULL};
static names_t s_of_agent = {"args", "command", "image", "readinessProbe", "restartPolicy", NULL};
static names_t s_labels = {"app", "type", EDL_LABEL, NULL};
static names_t s_variables = {"NUM_WORKERS", "POD_NAME", "TF_CONFIG", NULL};
static names_t s_volumes = {EDL_AGENT, EDL_TOKEN, NULL};
static names_t s_init = {EDL_AGENT, EDL_CONTAINER, NULL};
static names_t s_paths = {EDL_AGENT_DIR, EDL_TOKEN_DIR, NULL};

/*  An object of the file. */
typedef struct {
    tt_manifest_t *file;
    size_t at;
} look_t;

/* ---- words --------------------------------------------------------------------------------------------------------------- */

static tt_status_t s_wrong(const look_t *self, const char *path, const char *words)
{
    return tt_err(TT_CONFIG, "%s: %s: %s", tt_manifest_where(self->file, self->at, path), path, words);
}

/*  The value at the end of the path, in what holds it; NULL where it is not there. */
static tt_status_t s_get(const look_t *self, const json_t *holder, const char *path, json_type type, json_t **out)
{
    const char *dot = strrchr(path, '.');
    *out = json_object_get(holder, dot ? dot + 1 : path);
    if (*out && json_typeof(*out) != type)
        return s_wrong(self, path, type == JSON_ARRAY ? "expected a list" : "expected a mapping");
    return TT_OK;
}

static tt_status_t s_has_none(const look_t *self, const json_t *map, const char *path, const char *const *names)
{
    char at[160];
    for (; *names; names++)
        if (json_object_get(map, *names)) {
            snprintf(at, sizeof at, "%s.%s", path, *names);
            return s_wrong(self, at, "the master says this itself");
        }
    return TT_OK;
}

/*  The next part of a path, and how long it is; "//" and "/./" part as "/" does. */
static const char *s_part(const char *path, size_t *length)
{
    for (;; path += *length) {
        path += strspn(path, "/");
        *length = strcspn(path, "/");
        if (*length != 1 || *path != '.')
            return path;
    }
}

/*  Are two names the same, or the same directory? */
static bool s_is_same(const char *name, const char *own)
{
    if (*own != '/')
        return strcmp(name, own) == 0;
    for (size_t length, expected;; name += length, own += expected) {
        name = s_part(name, &length);
        own = s_part(own, &expected);
        if (length != expected || memcmp(name, own, length) != 0)
            return false;
        if (!length)
            return true;
    }
}

/*  Nothing in the list is called so. */
static tt_status_t s_is_free(
    const look_t *self, const json_t *holder, const char *path, const char *key, const char *const *names)
{
    json_t *list, *item;
    size_t i;
    char at[160];
    TT_TRY(s_get(self, holder, path, JSON_ARRAY, &list));
    json_array_foreach(list, i, item)
    {
        const char *name = parts_text(item, key, NULL);
        snprintf(at, sizeof at, "%s[%zu].%s", path, i, key);
        if (!name)
            return s_wrong(self, at, "expected a text");
        if (**names == '/' && strstr(name, ".."))
            return s_wrong(self, at, "a path here has no '..'");
        for (const char *const *own = names; *own; own++)
            if (s_is_same(name, *own))
                return s_wrong(self, at, "this one is the master's own");
    }
    return TT_OK;
}

/* ---- checked --------------------------------------------------------------------------------------------------------------- */

static tt_status_t s_check_agent(const look_t *self, const json_t *spec)
{
    json_t *containers;
    TT_TRY(s_get(self, spec, SPEC ".containers", JSON_ARRAY, &containers));
    const json_t *agent = json_array_get(containers, 0);
    if (!agent)
        return TT_OK;
    if (json_array_size(containers) > 1)
        return s_wrong(self, SPEC ".containers[1]", "a member has one container, " EDL_CONTAINER);
    if (!parts_is(agent, "name", EDL_CONTAINER))
        return s_wrong(self, AGENT ".name", "expected " EDL_CONTAINER ": a member has no other container");
    TT_TRY(s_has_none(self, agent, AGENT, s_of_agent));
    TT_TRY(s_is_free(self, agent, AGENT ".env", "name", s_variables));
    return s_is_free(self, agent, AGENT ".volumeMounts", "mountPath", s_paths);
}

static tt_status_t s_check_spec(const look_t *self, const json_t *template_)
{
    json_t *spec;
    TT_TRY(s_get(self, template_, SPEC, JSON_OBJECT, &spec));
    TT_TRY(s_has_none(self, spec, SPEC, s_of_pod));
    TT_TRY(s_is_free(self, spec, SPEC ".volumes", "name", s_volumes));
    TT_TRY(s_is_free(self, spec, SPEC ".initContainers", "name", s_init));
    return s_check_agent(self, spec);
}

/*  Of its metadata labels and annotations come with a pod, and nothing else does. */
static tt_status_t s_check_metadata(const look_t *self, const json_t *template_)
{
    static names_t kept = {"labels", "annotations", NULL};
    json_t *metadata, *values;
    const char *key;
    char at[160];
    TT_TRY(s_get(self, template_, "template.metadata", JSON_OBJECT, &metadata));
    json_object_foreach(metadata, key, values)
    {
        snprintf(at, sizeof at, "template.metadata.%.64s", key);
        if (strcmp(key, kept[0]) != 0 && strcmp(key, kept[1]) != 0)
            return s_wrong(self, at, "only labels and annotations come with a pod");
        if (!json_is_object(values))
            return s_wrong(self, at, "expected a mapping");
    }
    return s_has_none(self, json_object_get(metadata, "labels"), "template.metadata.labels", s_labels);
}

static tt_status_t s_check(const look_t *self, const json_t *object)
{
    tt_fields_unknown_t unknown;
    json_t *template_;
    if (!parts_is(object, "apiVersion", "v1") || !parts_is(object, "kind", "PodTemplate"))
        return s_wrong(self, "kind", "expected a PodTemplate of v1");
    if (tt_fields_unknown(&unknown, object, NULL))
        return tt_fields_err(&unknown, tt_manifest_where(self->file, self->at, unknown.path));
    TT_TRY(s_get(self, object, "template", JSON_OBJECT, &template_));
    if (!template_)
        return s_wrong(self, "template", "is missing");
    TT_TRY(s_check_metadata(self, template_));
    return s_check_spec(self, template_);
}

/* ---- read ------------------------------------------------------------------------------------------------------------------ */

static tt_status_t s_take(const look_t *self, edl_templates_t *out)
{
    const json_t *object = tt_manifest_at(self->file, self->at);
    const json_t *metadata = parts_object(object, "metadata");
    const char *name = parts_text(metadata, "name", NULL);
    bool any = false;
    TT_TRY(s_check(self, object));
    if (!name && json_object_get(metadata, "name"))
        return s_wrong(self, "metadata.name", "expected a text");
    for (int type = 0; type < EDL_TYPES; type++) {
        if (name && strcmp(name, elasticdl_type_name((elasticdl_type_t)type)) != 0)
            continue;
        if (out->of[type])
            return s_wrong(self, "metadata.name", "another one has said what these members get");
        out->of[type] = json_deep_copy(json_object_get(object, "template"));
        any = true;
    }
    return any ? TT_OK : s_wrong(self, "metadata.name", "expected worker or ps, or no name for both");
}

/*  Takes the file. */
static tt_status_t s_take_all(edl_templates_t *out, tt_manifest_t *file)
{
    edl_templates_t made = {0};
    look_t look = {.file = file};
    tt_status_t status =
        tt_manifest_count(file) > 0 ? TT_OK : tt_err(TT_CONFIG, "%s: nothing in it", tt_manifest_name(file));
    for (; status == TT_OK && look.at < tt_manifest_count(file); look.at++)
        status = s_take(&look, &made);
    tt_manifest_destroy(&file);
    if (status == TT_OK)
        *out = made;
    else
        edl_templates_clear(&made);
    return status;
}

tt_status_t edl_templates_read(edl_templates_t *out, const char *path)
{
    tt_manifest_t *file = NULL;
    TT_TRY(tt_manifest_load(&file, path));
    return s_take_all(out, file);
}

tt_status_t edl_templates_parse(edl_templates_t *out, const char *text, size_t size, const char *name)
{
    tt_manifest_t *file = NULL;
    TT_TRY(tt_manifest_parse(&file, text, size, name));
    return s_take_all(out, file);
}

void edl_templates_clear(edl_templates_t *self)
{
    for (int type = 0; type < EDL_TYPES; type++)
        json_decref(self->of[type]);
    *self = (edl_templates_t){0};
}

/* ---- merged ------------------------------------------------------------------------------------------------------------------ */

static void s_merge(json_t *ours, json_t *theirs)
{
    const char *key;
    json_t *value;
    json_object_foreach(theirs, key, value)
    {
        json_t *own = json_object_get(ours, key);
        if (json_is_object(own) && json_is_object(value))
            s_merge(own, value);
        else if (json_is_array(own) && json_is_array(value))
            json_array_extend(own, value);
        else
            json_object_set(ours, key, value);
    }
}

void edl_template_merge(json_t *ours, const json_t *theirs)
{
    if (!theirs)
        return;
    json_t *copy = json_deep_copy(theirs), *spec = json_object_get(copy, "spec");
    json_t *agent = json_array_get(json_object_get(json_object_get(ours, "spec"), "containers"), 0);
    s_merge(agent, json_array_get(json_object_get(spec, "containers"), 0));
    json_object_del(spec, "containers");
    s_merge(ours, copy);
    json_decref(copy);
}
