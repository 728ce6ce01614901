#include "controller/view.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/mem.h"

enum { MIRRORS_MAX = 8, ENTRIES_MAX = 4096, MOUNTS_MAX = 256 };

/*  A folder of this machine that is shown as a copy made of mounts. */
typedef struct {
    char *path; /* "/" or "/usr/local" */
    char *copy; /* below scratch      */
} mirror_t;

typedef struct {
    tt_steps_t *steps;
    const view_want_t *want;
    view_mount_t sorted[MOUNTS_MAX];
    size_t done; /* of sorted: those that stand */
    mirror_t mirrors[MIRRORS_MAX];
    size_t mirror_count;
    bool scratch_is_memory;
} plan_t;

/* ---- paths ----------------------------------------------------------------------------------------------------------------- */

static bool s_good(const char *path)
{
    if (path[0] != '/' || strlen(path) >= PATH_MAX / 2)
        return false;
    for (const char *at = strstr(path, ".."); at; at = strstr(at + 2, ".."))
        if (at[-1] == '/' && (!at[2] || at[2] == '/'))
            return false;
    return true;
}

/*  Below `folder`, or it: what comes behind, with its slash; else NULL. */
static const char *s_below(const char *path, const char *folder)
{
    const size_t length = strcmp(folder, "/") == 0 ? 0 : strlen(folder);
    if (strncmp(path, folder, length) != 0 || (path[length] && path[length] != '/'))
        return NULL;
    return path + length;
}

static bool s_is_dir(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool s_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

/*  Without a slash at the end or a double one. Caller frees. */
static char *s_clean(const char *path)
{
    char *out = tt_strdup(path), *to = out;
    for (const char *c = path; *c; c++)
        if (*c != '/' || (to == out || to[-1] != '/'))
            *to++ = *c;
    while (to > out + 1 && to[-1] == '/')
        to--;
    *to = '\0';
    return out;
}

/*  The folder above. Caller frees. */
static char *s_parent(const char *path)
{
    char *out = tt_strdup(path), *slash = strrchr(out, '/');
    slash[slash == out] = '\0';
    return out;
}

/* ---- copies made of mounts --------------------------------------------------------------------------------------------------- */

/*  One entry of a folder, in its copy: what it is, where it is shown now, where to. Sockets and devices are files to bind
 *  to. */
static void s_copy_entry(plan_t *self, const char *from, const char *shown, const char *to)
{
    struct stat info;
    char text[PATH_MAX];
    if (lstat(from, &info) != 0)
        return;
    if (S_ISLNK(info.st_mode)) {
        const ssize_t length = readlink(from, text, sizeof text - 1);
        text[length > 0 ? length : 0] = '\0';
        tt_steps_add(self->steps, TT_STEP_LINK, to, text);
        return;
    }
    tt_steps_add(self->steps, S_ISDIR(info.st_mode) ? TT_STEP_MKDIR : TT_STEP_TOUCH, to, NULL);
    tt_steps_add(self->steps, TT_STEP_BIND, to, shown);
}

/*  Taken of what the root's copy shows there: mounts that stand already are in it. */
static tt_status_t s_copy(plan_t *self, const char *path, const char *copy)
{
    const bool is_root = strcmp(path, "/") == 0;
    const char *root = is_root ? "" : self->mirrors[0].copy;
    DIR *dir = opendir(path);
    size_t count = 0;
    if (!dir)
        return tt_err_errno(TT_IO, "%s", path);
    tt_steps_add(self->steps, TT_STEP_MKDIR, copy, NULL);
    for (struct dirent *entry; (entry = readdir(dir)) && count <= ENTRIES_MAX; count++) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        char *from = tt_sprintf("%s/%s", is_root ? "" : path, entry->d_name), *shown = tt_sprintf("%s%s", root, from);
        char *to = tt_sprintf("%s/%s", copy, entry->d_name);
        s_copy_entry(self, from, shown, to);
        free(shown);
        free(from);
        free(to);
    }
    closedir(dir);
    if (count > ENTRIES_MAX)
        return tt_err(TT_UNSUPPORTED, "%s has more than %d entries: a folder cannot be shown in it", path, ENTRIES_MAX);
    return TT_OK;
}

/*  The copy of a folder that is there, made when it is first wanted. */
static tt_status_t s_mirror(plan_t *self, const char *path, const char **copy)
{
    for (size_t i = 0; i < self->mirror_count; i++)
        if (strcmp(self->mirrors[i].path, path) == 0) {
            *copy = self->mirrors[i].copy;
            return TT_OK;
        }
    if (self->mirror_count == MIRRORS_MAX)
        return tt_err(TT_UNSUPPORTED, "mounts in more than %d folders that are not there", MIRRORS_MAX);
    if (!self->scratch_is_memory)
        tt_steps_add(self->steps, TT_STEP_TMPFS, self->want->scratch, "mode=755");
    self->scratch_is_memory = true;
    mirror_t *mirror = &self->mirrors[self->mirror_count++];
    *mirror = (mirror_t){tt_strdup(path), tt_sprintf("%s/%zu", self->want->scratch, self->mirror_count)};
    *copy = mirror->copy;
    return s_copy(self, path, mirror->copy);
}

static int s_mirror_by_length(const void *a, const void *b)
{
    const size_t x = strlen(((const mirror_t *)a)->path), y = strlen(((const mirror_t *)b)->path);
    return x < y ? -1 : x > y;
}

/*  In the end the copies go into the root's, outer ones first: an inner one then goes into the outer one's. */
static void s_show_mirrors(plan_t *self)
{
    qsort(self->mirrors, self->mirror_count, sizeof *self->mirrors, s_mirror_by_length);
    const char *root = self->mirrors[0].copy;
    for (size_t i = 1; i < self->mirror_count; i++) {
        char *where = tt_sprintf("%s%s", root, self->mirrors[i].path);
        tt_steps_add(self->steps, TT_STEP_BIND, where, self->mirrors[i].copy);
        free(where);
    }
    tt_steps_add(self->steps, TT_STEP_CHROOT, root, NULL);
}

/* ---- one mount ---------------------------------------------------------------------------------------------------------------- */

/*  mkdir for every part of rest below base. */
static void s_make_path(plan_t *self, const char *base, const char *rest, bool file)
{
    char *path = tt_sprintf("%s%s", base, rest);
    for (char *slash = path + strlen(base) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        tt_steps_add(self->steps, TT_STEP_MKDIR, path, NULL);
        *slash = '/';
    }
    tt_steps_add(self->steps, file ? TT_STEP_TOUCH : TT_STEP_MKDIR, path, NULL);
    free(path);
}

static void s_put(plan_t *self, const view_mount_t *mount, const char *where)
{
    tt_steps_add(
        self->steps, mount->tmpfs ? TT_STEP_TMPFS : TT_STEP_BIND, where, mount->tmpfs ? mount->tmpfs : mount->source);
    if (mount->read_only && !mount->tmpfs)
        tt_steps_add(self->steps, TT_STEP_READ_ONLY, where, NULL);
}

/*  The mount that it is to be inside of, which stands already; NULL: there is none. */
static const view_mount_t *s_outer(const plan_t *self, const view_mount_t *mount)
{
    for (size_t i = self->done; i-- > 0;) {
        const char *rest = s_below(mount->target, self->sorted[i].target);
        if (rest && *rest)
            return &self->sorted[i];
    }
    return NULL;
}

/*  A mount on a path that is there, or inside another, goes into every copy that shows it. Its place is made in the other's source; one in
 *  memory has none, and is empty in each copy. */
static void s_on_existing(plan_t *self, const view_mount_t *mount, const view_mount_t *outer, bool file)
{
    const char *below = outer ? s_below(mount->target, outer->target) : NULL;
    if (outer && !outer->tmpfs)
        s_make_path(self, outer->source, below, file);
    for (size_t i = 0; i < self->mirror_count; i++) {
        const char *rest = s_below(mount->target, self->mirrors[i].path);
        const bool in_memory = outer && outer->tmpfs;
        if (!rest || !*rest || (in_memory && strlen(rest) < strlen(below))) /* the last: a copy of what it hides */
            continue;
        char *inside = tt_sprintf("%s%s", self->mirrors[i].copy, rest);
        if (in_memory) {
            char *base = tt_sprintf("%.*s", (int)(strlen(inside) - strlen(below)), inside);
            s_make_path(self, base, below, file);
            free(base);
        }
        s_put(self, mount, inside);
        free(inside);
    }
}

static tt_status_t s_on_missing(plan_t *self, const view_mount_t *mount, bool file)
{
    char *folder = s_parent(mount->target);
    const char *copy = NULL;
    while (!s_exists(folder)) {
        char *above = s_parent(folder);
        free(folder);
        folder = above;
    }
    char real[PATH_MAX];
    tt_status_t status = realpath(folder, real) ? s_mirror(self, real, &copy) : tt_err_errno(TT_IO, "%s", folder);
    if (status == TT_OK) {
        const char *rest = s_below(mount->target, folder);
        char *inside = tt_sprintf("%s%s", copy, rest);
        s_make_path(self, copy, rest, file);
        s_put(self, mount, inside);
        free(inside);
    }
    free(folder);
    return status;
}

static tt_status_t s_mount(plan_t *self, const view_mount_t *mount)
{
    const bool file = !mount->tmpfs && !s_is_dir(mount->source);
    const view_mount_t *outer = s_outer(self, mount);
    if (!s_exists(mount->target) && !outer)
        return s_on_missing(self, mount, file);
    s_on_existing(self, mount, outer, file);
    return TT_OK;
}

static int s_by_length(const void *a, const void *b)
{
    const size_t x = strlen(((const view_mount_t *)a)->target), y = strlen(((const view_mount_t *)b)->target);
    return x < y ? -1 : x > y;
}

static tt_status_t s_sort(plan_t *self)
{
    if (self->want->count > MOUNTS_MAX - 1)
        return tt_err(TT_INVALID, "more than %d volumeMounts", MOUNTS_MAX - 1);
    for (size_t i = 0; i < self->want->count; i++) {
        self->sorted[i] = self->want->mounts[i];
        self->sorted[i].target = s_clean(self->want->mounts[i].target);
    }
    qsort(self->sorted, self->want->count, sizeof *self->sorted, s_by_length);
    for (size_t i = 0; i < self->want->count; i++)
        if (!s_good(self->sorted[i].target) || strcmp(self->sorted[i].target, "/") == 0)
            return tt_err(TT_INVALID, "mountPath '%s': expected an absolute path without '..', not the root",
                self->sorted[i].target);
    return TT_OK;
}

/* ---- the working directory ---------------------------------------------------------------------------------------------------- */

/*  The mount that a path lies in, the deepest one; rest behind it. */
static const view_mount_t *s_holder(const plan_t *self, const char *path, const char **rest)
{
    for (size_t i = self->want->count; i-- > 0;) {
        *rest = s_below(path, self->sorted[i].target);
        if (*rest)
            return &self->sorted[i];
    }
    return NULL;
}

static void s_make_here(const char *base, const char *rest)
{
    char *path = tt_sprintf("%s%s/", base, rest);
    for (char *slash = path + strlen(base) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        (void)mkdir(path, 0755);
        *slash = '/';
    }
    free(path);
}

/*  A folder that is nowhere gets one of ours: as in a container, where it is made too. */
static tt_status_t s_working_dir(plan_t *self, char **out, void (*note)(void *ctx, const char *text), void *ctx)
{
    const view_want_t *want = self->want;
    char *path = s_clean(want->working_dir);
    const char *rest = NULL;
    const view_mount_t *holder = s_holder(self, path, &rest);
    tt_status_t status = TT_OK;
    if (holder && !holder->tmpfs)
        s_make_here(holder->source, rest);
    if (want->kind && !holder && !s_is_dir(path)) {
        char *ours = tt_sprintf("%s-cwd", want->scratch);
        (void)mkdir(ours, 0755);
        const view_mount_t mount = {.source = ours, .target = path};
        status = s_mount(self, &mount);
        free(ours);
    } else if (!want->kind && holder && !holder->tmpfs) {
        *out = tt_sprintf("%s%s", holder->source, rest);
    } else if (!want->kind && !s_is_dir(path)) {
        *out = tt_strdup(want->scratch);
        char *text = tt_sprintf("workingDir %s is not on this machine: it is %s", path, want->scratch);
        if (note)
            note(ctx, text);
        free(text);
    }
    if (!*out)
        *out = path;
    else
        free(path);
    return status;
}

/* ---- the whole ---------------------------------------------------------------------------------------------------------------- */

static void s_say_missing(const plan_t *self, void (*note)(void *ctx, const char *text), void *ctx)
{
    for (size_t i = 0; note && i < self->want->count; i++) {
        const view_mount_t *mount = &self->sorted[i];
        char a[PATH_MAX], b[PATH_MAX];
        if (!mount->source || (realpath(mount->source, a) && realpath(mount->target, b) && strcmp(a, b) == 0))
            continue;
        char *text = tt_sprintf(
            "%s cannot be shown to the process (no mount namespaces here): it is %s", mount->target, mount->source);
        note(ctx, text);
        free(text);
    }
}

/*  Everything is mounted in a copy of the root, which is entered last: a mount may hide the folder that another one's source
 *  is in, or we are (/tmp). */
static tt_status_t s_begin_root(plan_t *self)
{
    const char *root = NULL;
    tt_steps_namespace(self->steps, self->want->kind);
    return s_mirror(self, "/", &root);
}

static tt_status_t s_plan(plan_t *self, char **working_dir, void (*note)(void *ctx, const char *text), void *ctx)
{
    const view_want_t *want = self->want;
    TT_TRY(s_sort(self));
    if (!want->kind)
        s_say_missing(self, note, ctx);
    else
        TT_TRY(s_begin_root(self));
    for (; want->kind && self->done < want->count; self->done++)
        TT_TRY(s_mount(self, &self->sorted[self->done]));
    if (want->working_dir && !s_good(want->working_dir))
        return tt_err(TT_INVALID, "workingDir '%s': expected an absolute path without '..'", want->working_dir);
    if (want->working_dir)
        TT_TRY(s_working_dir(self, working_dir, note, ctx));
    if (want->kind)
        s_show_mirrors(self);
    return TT_OK;
}

/*  After a chroot we stand nowhere. A mount may hide where we were. */
static char *s_here(const plan_t *self)
{
    const char *rest = NULL;
    char *here = getcwd(NULL, 0);
    if (here && !s_holder(self, here, &rest))
        return here;
    free(here);
    return tt_strdup("/");
}

tt_status_t view_plan(tt_steps_t *steps, char **working_dir, const view_want_t *want,
    void (*note)(void *ctx, const char *text), void *ctx)
{
    plan_t *self = tt_new0(sizeof *self);
    char *begin = NULL;
    self->steps = steps;
    self->want = want;
    const tt_status_t status = s_plan(self, &begin, note, ctx);
    if (status == TT_OK && want->kind && !begin)
        begin = s_here(self);
    for (size_t i = 0; i < want->count && i < MOUNTS_MAX; i++)
        free((char *)(uintptr_t)self->sorted[i].target);
    for (size_t i = 0; i < self->mirror_count; i++) {
        free(self->mirrors[i].path);
        free(self->mirrors[i].copy);
    }
    free(self);
    if (status == TT_OK)
        *working_dir = begin;
    else
        free(begin);
    return status;
}
