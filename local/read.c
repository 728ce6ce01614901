/*  read - a manifest for this machine: what can be run, what is wrong with it (file:line), and what means nothing here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/config/config.h"
#include "common/job/job.h"
#include "k8s/api/dump.h"
#include "common/config/fields.h"
#include "common/config/manifest.h"
#include "k8s/front/front.h"
#include "local/local.h"
#include "local/needs.h"
#include "local/volumes.h"
#include "k8s/front/spec.h"

typedef struct {
    tt_manifest_t *manifest;
    const front_t *front; /* the job's kind; NULL = there was none so far */
    size_t index;         /* of the job                            */
    json_t *unused;       /* {"nodeSelector": true}: said at the end */
    char path[256];       /* where we are                          */
} reader_t;

#define WRONG(self, at, ...) s_wrong(self, at, tt_sprintf(__VA_ARGS__))

/*  Takes words. `at` (may be "") is a path below where we are. */
static tt_status_t s_wrong(const reader_t *self, const char *at, char *words)
{
    char path[400];
    snprintf(path, sizeof path, "%s%s%s", self->path, *at && *self->path ? "." : "", at);
    const tt_status_t status =
        tt_err(TT_CONFIG, "%s: %s: %s", tt_manifest_where(self->manifest, self->index, path), path, words);
    free(words);
    return status;
}

/* ---- what means nothing here --------------------------------------------------------------------------------------------------- */

static bool s_in(const char *word, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(word, *words) == 0)
            return true;
    return false;
}

static void s_note_unused(reader_t *self, const json_t *object, const char *const *used)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        if (!s_in(key, used) && !(json_is_string(value) && !*json_string_value(value)))
            json_object_set_new(self->unused, key, json_true());
    }
}

static const char *const s_pod_used[] = {"containers", "initContainers", "volumes", "restartPolicy",
    "terminationGracePeriodSeconds", "hostname", "subdomain", NULL};
static const char *const s_container_used[] = {"name", "command", "args", "env", "envFrom", "workingDir", "ports",
    "resources", "volumeMounts", "restartPolicy", NULL};

static void s_say_unused(const reader_t *self, local_say_fn say, void *ctx)
{
    tt_buf_t text;
    const char *key;
    json_t *value;
    if (!say || json_object_size(self->unused) == 0)
        return;
    tt_buf_init(&text, 65536);
    (void)tt_buf_str(&text, "without meaning on this machine: ");
    const size_t begin = text.size;
    json_object_foreach(self->unused, key, value)
    {
        (void)tt_buf_printf(&text, "%s%s", text.size > begin ? ", " : "", key);
    }
    say(ctx, tt_buf_text(&text));
    tt_buf_free(&text);
}

/* ---- names: files and folders are made of them ------------------------------------------------------------------------------ */

/*  What Kubernetes asks of names of objects: labels with dots between them, however long each is. */
static bool s_is_subdomain(const char *name)
{
    enum { MOST = 253 };
    char label[MOST + 1];
    if (strlen(name) > MOST)
        return false;
    for (const char *at = name;; at++) {
        const size_t size = strcspn(at, ".");
        snprintf(label, sizeof label, "%.*s", (int)size, at);
        if (!spec_is_label(label, MOST, false))
            return false;
        at += size;
        if (!*at)
            return true;
    }
}

static tt_status_t s_label(const reader_t *self, const char *at, const char *name)
{
    if (spec_is_label(name, 63, false))
        return TT_OK;
    return WRONG(
        self, at, "'%.80s': expected at most 63 lower case letters, digits and dashes, no dash at an end", name);
}

static tt_status_t s_object_name(const reader_t *self, const char *at, const char *name)
{
    if (s_is_subdomain(name))
        return TT_OK;
    return WRONG(
        self, at, "'%.80s': expected lower case letters, digits, dashes and dots, none of these at an end", name);
}

/*  Which keys of a ConfigMap or Secret a volume shows, and as which files. */
static tt_status_t s_items(const reader_t *self, const json_t *volume, size_t index, const char *kind)
{
    const json_t *items = json_object_get(json_object_get(volume, kind), "items");
    char at[96];
    size_t i;
    json_t *item;
    json_array_foreach((json_t *)(uintptr_t)items, i, item)
    {
        snprintf(at, sizeof at, "volumes[%zu].%s.items[%zu].key", index, kind, i);
        if (!*parts_text(item, "key", ""))
            return WRONG(self, at, "expected the name of a key");
        snprintf(at, sizeof at, "volumes[%zu].%s.items[%zu].path", index, kind, i);
        if (!volume_is_below(parts_text(item, "path", "")))
            return WRONG(self, at, "'%.80s': expected the path of a file in the volume", parts_text(item, "path", ""));
    }
    return TT_OK;
}

/*  Of a template or of the job. What an object that a volume shows is called is no file's name, but that of a claim is. */
static tt_status_t s_volumes(const reader_t *self, const json_t *spec)
{
    char at[96];
    size_t i;
    json_t *volume;
    json_array_foreach(json_object_get(spec, "volumes"), i, volume)
    {
        const json_t *claim = json_object_get(volume, "persistentVolumeClaim");
        snprintf(at, sizeof at, "volumes[%zu].name", i);
        TT_TRY(s_label(self, at, parts_text(volume, "name", "")));
        snprintf(at, sizeof at, "volumes[%zu].persistentVolumeClaim.claimName", i);
        if (claim)
            TT_TRY(s_object_name(self, at, parts_text(claim, "claimName", "")));
        TT_TRY(s_items(self, volume, i, "configMap"));
        TT_TRY(s_items(self, volume, i, "secret"));
    }
    return TT_OK;
}

/* ---- containers ------------------------------------------------------------------------------------------------------------------ */

static tt_status_t s_words(const reader_t *self, const json_t *container, const char *key)
{
    const json_t *list = json_object_get(container, key);
    char at[64];
    size_t i;
    json_t *word;
    if (list && !json_is_array(list))
        return WRONG(self, key, "expected a list of words");
    json_array_foreach((json_t *)(uintptr_t)list, i, word)
    {
        snprintf(at, sizeof at, "%s[%zu]", key, i);
        if (!json_is_string(word))
            return WRONG(self, at, "expected text: put it in quotes");
    }
    return TT_OK;
}

static tt_status_t s_env(const reader_t *self, const json_t *container)
{
    const json_t *list = json_object_get(container, "env");
    char at[64];
    size_t i;
    json_t *entry;
    if (list && !json_is_array(list))
        return WRONG(self, "env", "expected a list of names and values");
    json_array_foreach((json_t *)(uintptr_t)list, i, entry)
    {
        const json_t *value = json_object_get(entry, "value");
        snprintf(at, sizeof at, "env[%zu]", i);
        if (!*parts_text(entry, "name", ""))
            return WRONG(self, at, "expected a name");
        snprintf(at, sizeof at, "env[%zu].value", i);
        if (value && !json_is_string(value))
            return WRONG(self, at, "expected text: put it in quotes");
    }
    return TT_OK;
}

/*  A volume of the template or of the job by that name? */
static bool s_has_volume(const reader_t *self, const json_t *pod_spec, const char *name)
{
    const json_t *job_spec = json_object_get(tt_manifest_at(self->manifest, self->index), "spec");
    return parts_named(json_object_get(pod_spec, "volumes"), "name", name) ||
           parts_named(json_object_get(job_spec, "volumes"), "name", name);
}

static tt_status_t s_mounts(const reader_t *self, const json_t *pod_spec, const json_t *container)
{
    char at[64];
    size_t i;
    json_t *mount;
    json_array_foreach(json_object_get(container, "volumeMounts"), i, mount)
    {
        snprintf(at, sizeof at, "volumeMounts[%zu]", i);
        if (parts_text(mount, "mountPath", "")[0] != '/')
            return WRONG(self, at, "expected an absolute mountPath");
        if (!s_has_volume(self, pod_spec, parts_text(mount, "name", "")))
            return WRONG(self, at, "there is no volume '%s'", parts_text(mount, "name", ""));
    }
    return TT_OK;
}

static tt_status_t s_quantities(const reader_t *self, const json_t *container, const char *which)
{
    const char *name;
    json_t *value;
    char at[128];
    double amount;
    json_object_foreach(json_object_get(json_object_get(container, "resources"), which), name, value)
    {
        snprintf(at, sizeof at, "resources.%s.%.60s", which, name);
        if (!json_is_number(value) &&
            (!json_is_string(value) || tt_quantity(&amount, json_string_value(value)) != TT_OK))
            return WRONG(self, at, "expected a quantity, such as 2, 500m or 1.5Gi");
    }
    return TT_OK;
}

static tt_status_t s_container(reader_t *self, const json_t *pod_spec, const json_t *container)
{
    s_note_unused(self, container, s_container_used);
    TT_TRY(s_label(self, "name", parts_text(container, "name", "")));
    TT_TRY(s_words(self, container, "command"));
    TT_TRY(s_words(self, container, "args"));
    TT_TRY(s_env(self, container));
    TT_TRY(s_quantities(self, container, "limits"));
    TT_TRY(s_quantities(self, container, "requests"));
    return s_mounts(self, pod_spec, container);
}

static tt_status_t s_containers(reader_t *self, const json_t *pod_spec, const char *key)
{
    const size_t length = strlen(self->path);
    size_t i;
    json_t *container;
    json_array_foreach(json_object_get(pod_spec, key), i, container)
    {
        snprintf(self->path + length, sizeof self->path - length, ".%s[%zu]", key, i);
        TT_TRY(s_container(self, pod_spec, container));
    }
    self->path[length] = '\0';
    return TT_OK;
}

static tt_status_t s_restart_policy(const reader_t *self, const json_t *pod_spec)
{
    static const char *const policies[] = {"", "Always", "OnFailure", "Never", NULL};
    const char *policy = parts_text(pod_spec, "restartPolicy", "");
    char meant[TT_MEANT_MAX];
    if (!s_in(policy, policies))
        return WRONG(self, "restartPolicy", "'%s' is none of Always, OnFailure, Never%s", policy,
            tt_meant(meant, policy, "Always|OnFailure|Never"));
    return TT_OK;
}

static tt_status_t s_template(void *ctx, const front_template_t *template_)
{
    reader_t *self = ctx;
    const json_t *spec = json_object_get(json_object_get(template_->holder, "template"), "spec");
    if (!spec)
        return TT_OK;
    snprintf(self->path, sizeof self->path, "%s.template.spec", template_->path);
    s_note_unused(self, spec, s_pod_used);
    TT_TRY(s_restart_policy(self, spec));
    TT_TRY(s_volumes(self, spec));
    TT_TRY(s_containers(self, spec, "initContainers"));
    return s_containers(self, spec, "containers");
}

/* ---- the job ------------------------------------------------------------------------------------------------------------------------ */

/*  The words of the schema's rules; they name a path where they are about one. */
static tt_status_t s_invalid(const reader_t *self, const char *words)
{
    const char *path = strstr(words, "spec");
    char at[128] = "spec";
    if (path)
        snprintf(at, sizeof at, "%.*s", (int)strcspn(path, " :,"), path);
    else if (strstr(words, "CleanPodPolicy"))
        snprintf(at, sizeof at, "spec.cleanPodPolicy");
    else if (strncmp(words, "Invalid name", 12) == 0)
        snprintf(at, sizeof at, "metadata.name");
    return tt_err(TT_CONFIG, "%s: %s", tt_manifest_where(self->manifest, self->index, at), words);
}

static tt_status_t s_decode(const reader_t *self, const json_t *object, void **job)
{
    char *text = kube_dump(object);
    const tt_status_t status = self->front->job_decode(job, text, strlen(text));
    free(text);
    return status == TT_OK
               ? TT_OK
               : tt_err(TT_CONFIG, "%s: %s", tt_manifest_where(self->manifest, self->index, "metadata"), tt_err_text());
}

/*  What YAML makes of an unquoted word (n, 123) and what only a server can do: the decoder would say that there is no name. */
static tt_status_t s_named(const reader_t *self, const json_t *metadata)
{
    const json_t *name = json_object_get(metadata, "name");
    if (name && !json_is_string(name))
        return WRONG(self, "metadata.name", "expected text: put it in quotes");
    if (!name && json_object_get(metadata, "generateName"))
        return WRONG(self, "metadata.generateName", "only a cluster makes a name of it: write metadata.name");
    return TT_OK;
}

static tt_status_t s_job(reader_t *self)
{
    const json_t *object = tt_manifest_at(self->manifest, self->index), *spec = json_object_get(object, "spec");
    void *job = NULL;
    TT_TRY(s_named(self, json_object_get(object, "metadata")));
    TT_TRY(s_decode(self, object, &job));
    const char *refusal = self->front->job(job).refusal;
    const tt_status_t valid = refusal ? s_invalid(self, refusal) : TT_OK;
    self->front->job_destroy(job);
    TT_TRY(valid);
    s_note_unused(self, spec, self->front->local->used);
    snprintf(self->path, sizeof self->path, "spec");
    TT_TRY(s_volumes(self, spec));
    return self->front->templates(object, s_template, self);
}

/*  What a cluster does with the object and this machine with none: said, and taken out, so that the plan has nothing to wait
 *  for. */
static void s_ignore(json_t *spec, local_say_fn say, void *ctx)
{
    const json_t *ttl = json_object_get(spec, "ttlSecondsAfterFinished");
    if (say && ttl && !json_is_null(ttl))
        say(ctx, "ttlSecondsAfterFinished has no effect on this machine: the run's files stay till 'tutti rm'");
    if (say && json_is_true(json_object_get(spec, "suspend")))
        say(ctx, "suspend has no effect on this machine: the job runs");
    json_object_del(spec, "ttlSecondsAfterFinished");
    json_object_del(spec, "suspend");
}

/* ---- objects ------------------------------------------------------------------------------------------------------------------------ */

/*  "DIJob" and whatever there is beside, with `between`. */
static void s_kinds(char out[256], const char *between)
{
    size_t size = 0;
    out[0] = '\0';
    for (size_t i = 0; i < front_end_count && size < 200; i++)
        if (front_ends[i]->local)
            size += (size_t)snprintf(out + size, 256 - size, "%s%s", size ? between : "", front_ends[i]->kind);
}

/*  By the name of the kind alone. */
static const front_t *s_front(const char *kind)
{
    for (size_t i = 0; i < front_end_count; i++)
        if (front_ends[i]->local && strcmp(front_ends[i]->kind, kind) == 0)
            return front_ends[i];
    return NULL;
}

/*  What a kind was called before it had its name is one of its kind. */
static void s_rename(json_t *object)
{
    for (size_t i = 0; i < front_end_count; i++) {
        const front_t *front = front_ends[i];
        if (!front->old_kind || strcmp(front->old_kind, parts_text(object, "kind", "")) != 0 ||
            strcmp(front->old_api, parts_text(object, "apiVersion", "")) != 0)
            continue;
        json_object_set_new(object, "kind", json_string(front->kind));
        json_object_set_new(object, "apiVersion", json_sprintf("%s/%s", front->group, front->version));
    }
}

/*  By the kind of the configs that say how its pods are made. */
static const front_t *s_of_config(const char *kind)
{
    for (size_t i = 0; i < front_end_count; i++) {
        const front_local_t *local = front_ends[i]->local;
        if (local && local->config_kind && strcmp(local->config_kind, kind) == 0)
            return front_ends[i];
    }
    return NULL;
}

/*  A field that is misspelled would mean nothing, silently. */
static tt_status_t s_known_fields(const reader_t *self, size_t index)
{
    tt_fields_unknown_t wrong;
    const char *kind = parts_text(tt_manifest_at(self->manifest, index), "kind", "");
    const front_t *front = s_front(kind) ? s_front(kind) : s_of_config(kind);
    if (!tt_fields_unknown(&wrong, tt_manifest_at(self->manifest, index), front ? front->local->fields : NULL))
        return TT_OK;
    return tt_fields_err(&wrong, tt_manifest_where(self->manifest, index, wrong.path));
}

/*  A cluster has no such kind. known: what would do, the last one behind "or". */
static tt_status_t s_no_version(const reader_t *self, size_t index, const char *known)
{
    const json_t *object = tt_manifest_at(self->manifest, index);
    return tt_err(TT_CONFIG, "%s: apiVersion: there is no %s of '%.80s': expected %s",
        tt_manifest_where(self->manifest, index, "apiVersion"), parts_text(object, "kind", ""),
        parts_text(object, "apiVersion", ""), known);
}

/*  Of a front end's jobs, and of what is configured beside them. */
static tt_status_t s_known_version(const reader_t *self, size_t index, const front_t *front)
{
    const char *version = parts_text(tt_manifest_at(self->manifest, index), "apiVersion", "");
    char known[256] = "", one[128];
    size_t size = 0;
    for (size_t i = 0; i <= TT_COUNT(front->also) && (i == 0 || front->also[i - 1]); i++) {
        snprintf(one, sizeof one, "%s/%s", front->group, i == 0 ? front->version : front->also[i - 1]);
        if (strcmp(version, one) == 0)
            return TT_OK;
        size += (size_t)snprintf(known + size, sizeof known - size, "%s%s", size ? " or " : "", one);
        TT_CHECK(size < sizeof known);
    }
    return s_no_version(self, index, known);
}

static tt_status_t s_found(reader_t *self, const front_t *front, size_t index, const char *where)
{
    if (self->front == front)
        return tt_err(TT_CONFIG, "%s: a second %s; run one file for each", where, front->kind);
    if (self->front)
        return tt_err(TT_CONFIG, "%s: a %s beside a %s; run one file for each", where, front->kind, self->front->kind);
    self->front = front;
    self->index = index;
    return TT_OK;
}

static tt_status_t s_object(reader_t *self, local_manifest_t *out, size_t index)
{
    json_t *object = tt_manifest_at(self->manifest, index);
    s_rename(object);
    const char *kind = parts_text(object, "kind", "");
    char kinds[256];
    TT_TRY(s_known_fields(self, index));
    const char *where = tt_manifest_where(self->manifest, index, "kind");
    if (strcmp(kind, "ConfigMap") == 0 || strcmp(kind, "Secret") == 0) {
        json_array_append(out->objects, object);
        return strcmp(parts_text(object, "apiVersion", ""), "v1") == 0 ? TT_OK : s_no_version(self, index, "v1");
    }
    const front_t *front = s_front(kind) ? s_front(kind) : s_of_config(kind);
    if (front)
        TT_TRY(s_known_version(self, index, front));
    if (s_of_config(kind)) {
        json_decref(out->config);
        out->config = json_incref(object);
        return TT_OK;
    }
    s_kinds(kinds, ", ");
    return front ? s_found(self, front, index, where)
                 : tt_err(TT_CONFIG,
                       "%s: kind '%.60s' means nothing on this machine: %s, AggregatorConfig, ConfigMap and Secret do",
                       where, kind, kinds);
}

static tt_status_t s_read(reader_t *self, local_manifest_t *out, const char *path)
{
    char kinds[256];
    s_kinds(kinds, " or ");
    TT_TRY(tt_manifest_load(&self->manifest, path));
    for (size_t i = 0; i < tt_manifest_count(self->manifest); i++)
        TT_TRY(s_object(self, out, i));
    if (!self->front)
        return tt_err(TT_CONFIG, "%s: no %s in it", path, kinds);
    TT_TRY(s_job(self));
    out->front = self->front;
    out->job = json_deep_copy(tt_manifest_at(self->manifest, self->index));
    json_object_del(out->job, "status");
    return TT_OK;
}

tt_status_t local_read(local_manifest_t *out, const char *path, local_say_fn say, void *ctx)
{
    reader_t reader = {.unused = json_object()};
    local_manifest_t made = {.objects = json_array()};
    const tt_status_t status = s_read(&reader, &made, path);
    if (status == TT_OK) {
        s_say_unused(&reader, say, ctx);
        s_ignore(json_object_get(made.job, "spec"), say, ctx);
        if (made.front->local->policy)
            s_ignore(json_object_get(json_object_get(made.job, "spec"), made.front->local->policy), say, ctx);
        if (say)
            made.lacks = needs_say(made.front, made.job, say, ctx) > 0;
        *out = made;
    } else
        local_manifest_clear(&made);
    tt_manifest_destroy(&reader.manifest);
    json_decref(reader.unused);
    return status;
}

void local_manifest_clear(local_manifest_t *self)
{
    json_decref(self->job);
    json_decref(self->config);
    json_decref(self->objects);
    *self = (local_manifest_t){0};
}
