#include "local/volumes.h"
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/beside.h"
#include "common/base/file.h"
#include "common/base/mem.h"
#include "common/job/job.h"
#include "common/base/base64.h"
#include "k8s/front/object.h"

typedef struct {
    place_t *place;
    const json_t *pod, *volume;
    const char *name; /* of the volume */
} volume_t;

static const char *s_pod_name(const volume_t *self)
{
    return parts_text(json_object_get(self->pod, "metadata"), "name", "");
}

/* ---- kinds ----------------------------------------------------------------------------------------------------------------- */

/*  "size=134217728" of a sizeLimit; caller frees. */
static char *s_memory(const json_t *empty)
{
    const json_t *limit = json_object_get(empty, "sizeLimit");
    double bytes = json_number_value(limit);
    if (json_is_string(limit) && tt_quantity(&bytes, json_string_value(limit)) != TT_OK)
        bytes = 0;
    return bytes > 0 ? tt_sprintf("size=%.0f", bytes) : tt_strdup("size=50%");
}

static tt_status_t s_empty(const volume_t *self, char **source, char **tmpfs, bool alone)
{
    const json_t *empty = json_object_get(self->volume, "emptyDir");
    const bool memory = strcmp(parts_text(empty, "medium", ""), "Memory") == 0;
    if (memory && self->place->kind && alone)
        *tmpfs = s_memory(empty);
    *source = place_folder(self->place, "pods/%s/volumes/%s", s_pod_name(self), self->name);
    return TT_OK;
}

static bool s_make_path(const char *path)
{
    char partial[PATH_MAX];
    snprintf(partial, sizeof partial, "%s/", path);
    for (char *slash = partial + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        if (mkdir(partial, 0755) != 0 && errno != EEXIST && access(partial, F_OK) != 0)
            return false;
        *slash = '/';
    }
    return true;
}

static tt_status_t s_touch(const char *path)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        return tt_err_errno(TT_IO, "%s", path);
    close(fd);
    return TT_OK;
}

static tt_status_t s_host(const volume_t *self, char **source)
{
    const json_t *host = json_object_get(self->volume, "hostPath");
    const char *path = parts_text(host, "path", ""), *type = parts_text(host, "type", "");
    if (path[0] != '/')
        return tt_err(TT_INVALID, "volume %s: hostPath.path '%s' is not absolute", self->name, path);
    if (strcmp(type, "FileOrCreate") == 0)
        TT_TRY(s_touch(path));
    const bool create = !*type || strcmp(type, "DirectoryOrCreate") == 0; /* none: docker's way, as kubelets have it */
    if (access(path, F_OK) == 0 || (create && s_make_path(path))) {
        *source = tt_strdup(path);
        return TT_OK;
    }
    if (!create)
        return tt_err(TT_NOT_FOUND, "volume %s: hostPath %s (%s) is not on this machine", self->name, path, type);
    *source = place_folder(self->place, "host%s", path);
    place_say(self->place, "hostPath %s cannot be made here (%s): it is %s", path, strerror(errno), *source);
    return TT_OK;
}

/* ---- objects ---------------------------------------------------------------------------------------------------------------- */

/*  A ConfigMap or Secret as a volume shows it. */
typedef struct {
    const char *volume, *kind, *folder;
    const json_t *object, *items; /* items: which keys, and where; none: all, as they are called */
    bool optional;
    mode_t mode;
} shown_t;

bool volume_is_below(const char *path)
{
    for (const char *part = path; part; part = strchr(part, '/'), part = part ? part + 1 : NULL)
        if (strcspn(part, "/") == 0 || (strncmp(part, "..", 2) == 0 && strcspn(part, "/") == 2))
            return false;
    return true;
}

/*  In place of what another container of the pod was shown, with that mode whatever the umask is. */
static tt_status_t s_write_file(const shown_t *self, const char *name, const void *data, size_t size, mode_t mode)
{
    if (!volume_is_below(name))
        return tt_err(TT_INVALID, "volume %s: '%.80s' is not the name of a file in it", self->volume, name);
    char *path = tt_sprintf("%s/%s", self->folder, name), *slash = strrchr(path, '/');
    tt_beside_t beside = {.fd = -1};
    *slash = '\0';
    tt_status_t status = s_make_path(path) ? TT_OK : tt_err_errno(TT_IO, "%s", path);
    *slash = '/';
    if (status == TT_OK)
        status = tt_beside_file(&beside, path, 0600);
    if (status == TT_OK && (!tt_file_write(beside.fd, data, size, NULL) || fchmod(beside.fd, mode) != 0))
        status = tt_err_errno(TT_IO, "%s", path);
    if (status == TT_OK)
        status = tt_beside_finish(&beside, true);
    tt_beside_drop(&beside);
    free(path);
    return status;
}

static tt_status_t s_write_base64(const shown_t *self, const char *name, const char *text, mode_t mode)
{
    size_t size;
    char *data = tt_base64_decode(text, &size);
    if (!data)
        return tt_err(TT_INVALID, "data of %s is not base64", name);
    const tt_status_t status = s_write_file(self, name, data, size, mode);
    sodium_memzero(data, size);
    free(data);
    return status;
}

/*  What is under a key. stringData of a Secret wins, as where the API server writes it into data. */
static const json_t *s_value(const shown_t *self, const char *key, bool *base64)
{
    const json_t *plain = json_object_get(json_object_get(self->object, "stringData"), key);
    const json_t *data = json_object_get(json_object_get(self->object, "data"), key);
    *base64 = !plain && (!data || strcmp(self->kind, "Secret") == 0);
    return plain ? plain : data ? data : json_object_get(json_object_get(self->object, "binaryData"), key);
}

static tt_status_t s_write_key(const shown_t *self, const char *key, const char *name, mode_t mode)
{
    bool base64;
    const json_t *value = s_value(self, key, &base64);
    if (!value && self->optional)
        return TT_OK;
    if (!value)
        return tt_err(TT_NOT_FOUND, "volume %s: the manifest's %s has no key %.80s", self->volume, self->kind, key);
    if (!json_is_string(value))
        return tt_err(TT_INVALID, "data of %s: expected text", key);
    return base64 ? s_write_base64(self, name, json_string_value(value), mode)
                  : s_write_file(self, name, json_string_value(value), json_string_length(value), mode);
}

/*  In a cluster a Secret's file is root's, and a pod that is another reads it as one of its group. Here all pods are this user, and others of that
 *  user's group none of the job's: who reads a key asks that it be nobody else's. */
static mode_t s_mode(const shown_t *self, const json_t *object, const char *key)
{
    const bool secret = strcmp(self->kind, "Secret") == 0;
    const json_t *mode = json_object_get(object, key);
    const mode_t said = json_is_integer(mode) ? (mode_t)json_integer_value(mode) & 0777 : self->mode;
    return secret ? said & 0700 : said;
}

static tt_status_t s_write_items(const shown_t *self)
{
    size_t i;
    json_t *item;
    json_array_foreach(self->items, i, item) TT_TRY(
        s_write_key(self, parts_text(item, "key", ""), parts_text(item, "path", ""), s_mode(self, item, "mode")));
    return TT_OK;
}

static tt_status_t s_write_all(const shown_t *self)
{
    static const char *const maps[] = {"data", "binaryData", "stringData"};
    const char *key;
    json_t *value;
    for (size_t m = 0; m < TT_COUNT(maps); m++)
        json_object_foreach(json_object_get(self->object, maps[m]), key, value)
        {
            if (strchr(key, '/'))
                return tt_err(TT_INVALID, "'%.80s' is not the name of a file", key);
            TT_TRY(s_write_key(self, key, key, self->mode));
        }
    return TT_OK;
}

static tt_status_t s_object(const volume_t *self, char **source, const char *kind, const char *name)
{
    const json_t *of = json_object_get(self->volume, strcmp(kind, "Secret") == 0 ? "secret" : "configMap");
    shown_t shown = {.volume = self->name,
        .kind = kind,
        .object = place_object(self->place, kind, name),
        .items = json_object_get(of, "items"),
        .optional = json_is_true(json_object_get(of, "optional")),
        .mode = strcmp(kind, "Secret") == 0 ? 0600 : 0644};
    shown.mode = s_mode(&shown, of, "defaultMode");
    if (!shown.object && !shown.optional)
        return tt_err(TT_NOT_FOUND, "volume %s: the manifest has no %s %s", self->name, kind, name);
    *source = place_folder(self->place, "pods/%s/volumes/%s", s_pod_name(self), self->name);
    shown.folder = *source;
    const tt_status_t status = json_array_size(shown.items) > 0 ? s_write_items(&shown) : s_write_all(&shown);
    if (status != TT_OK)
        free(*source);
    return status;
}

/*  Does only one container of the pod mount it? A file system in memory is of one mount namespace. */
static bool s_is_alone(const json_t *pod, const char *name)
{
    static const char *const lists[] = {"containers", "initContainers"};
    size_t i, k, count = 0;
    json_t *container, *mount;
    for (size_t l = 0; l < TT_COUNT(lists); l++)
        json_array_foreach(json_object_get(json_object_get(pod, "spec"), lists[l]), i, container)
        {
            json_array_foreach(json_object_get(container, "volumeMounts"), k, mount)
            {
                count += strcmp(parts_text(mount, "name", ""), name) == 0;
            }
        }
    return count == 1;
}

/*  *tmpfs: options where it is a file system in memory that only one container has. */
static tt_status_t s_source(const volume_t *self, char **source, char **tmpfs, bool alone)
{
    const json_t *volume = self->volume, *config = json_object_get(volume, "configMap");
    const json_t *secret = json_object_get(volume, "secret"), *claim = json_object_get(volume, "persistentVolumeClaim");
    if (json_object_get(volume, "hostPath"))
        return s_host(self, source);
    if (config)
        return s_object(self, source, "ConfigMap", parts_text(config, "name", ""));
    if (secret)
        return s_object(self, source, "Secret", parts_text(secret, "secretName", ""));
    if (claim) {
        *source = place_folder(self->place, "claims/%s", parts_text(claim, "claimName", ""));
        return TT_OK;
    }
    if (json_object_get(volume, "emptyDir") || json_object_size(volume) == 1)
        return s_empty(self, source, tmpfs, alone);
    return tt_err(TT_UNSUPPORTED,
        "volume %s: locally there are emptyDir, hostPath, persistentVolumeClaim, configMap and secret", self->name);
}

/* ---- mounts ------------------------------------------------------------------------------------------------------------------ */

static json_t *s_find(const json_t *pod, const char *name)
{
    return parts_named(json_object_get(json_object_get(pod, "spec"), "volumes"), "name", name);
}

static void s_append(volumes_t *self, view_mount_t mount)
{
    self->mounts = tt_realloc(self->mounts, tt_mul(self->count + 1, sizeof *self->mounts));
    self->mounts[self->count++] = mount;
}

static tt_status_t s_add(volumes_t *out, place_t *place, const json_t *pod, const json_t *mount)
{
    const volume_t volume = {place, pod, s_find(pod, parts_text(mount, "name", "")), parts_text(mount, "name", "")};
    const char *sub = parts_text(mount, "subPath", "");
    char *source = NULL, *tmpfs = NULL;
    if (!volume.volume)
        return tt_err(TT_NOT_FOUND, "volumeMount %s: the pod has no such volume", volume.name);
    if (strstr(sub, "..") || sub[0] == '/')
        return tt_err(TT_INVALID, "volumeMount %s: subPath '%s'", volume.name, sub);
    const bool alone = !*sub && s_is_alone(pod, volume.name);
    TT_TRY(s_source(&volume, &source, &tmpfs, alone));
    if (*sub) {
        char *below = tt_sprintf("%s/%s", source, sub);
        free(source);
        source = below;
        if (access(source, F_OK) != 0 && !s_make_path(source)) {
            free(source);
            return tt_err_errno(TT_IO, "volumeMount %s: subPath %s", volume.name, sub);
        }
    }
    s_append(out, (view_mount_t){.source = source,
                      .target = tt_strdup(parts_text(mount, "mountPath", "")),
                      .tmpfs = tmpfs,
                      .read_only = json_is_true(json_object_get(mount, "readOnly"))});
    return TT_OK;
}

tt_status_t volumes_mount(volumes_t *out, place_t *place, const json_t *pod, const json_t *container)
{
    size_t i;
    json_t *mount;
    volumes_t made = {0};
    json_array_foreach(json_object_get(container, "volumeMounts"), i, mount)
    {
        const tt_status_t status = s_add(&made, place, pod, mount);
        if (status != TT_OK) {
            volumes_clear(&made);
            return status;
        }
    }
    if (place->kind)
        s_append(&made,
            (view_mount_t){.source = place_hosts_file(place), .target = tt_strdup("/etc/hosts"), .read_only = true});
    *out = made;
    return TT_OK;
}

void volumes_show(volumes_t *self, const char *source, const char *target)
{
    bool hidden = false;
    for (size_t i = 0; i < self->count && !hidden; i++) {
        const size_t length = strlen(self->mounts[i].target);
        hidden = strncmp(target, self->mounts[i].target, length) == 0 && (target[length] == '/' || !target[length]);
    }
    if (hidden)
        s_append(self, (view_mount_t){.source = tt_strdup(source), .target = tt_strdup(target), .read_only = true});
}

void volumes_clear(volumes_t *self)
{
    for (size_t i = 0; i < self->count; i++) {
        free((char *)(uintptr_t)self->mounts[i].source);
        free((char *)(uintptr_t)self->mounts[i].target);
        free((char *)(uintptr_t)self->mounts[i].tmpfs);
    }
    free(self->mounts);
    *self = (volumes_t){0};
}

static int s_unlink(const char *path, const struct stat *info, int type, struct FTW *where)
{
    (void)info;
    (void)type;
    (void)where;
    (void)remove(path);
    return 0;
}

void volumes_remove(const place_t *place, const char *pod)
{
    char *path = tt_sprintf("%s/pods/%s", place->run_dir, pod);
    nftw(path, s_unlink, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    free(path);
}
