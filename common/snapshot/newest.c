/*  newest - which snapshot of a folder to go on from. The folder decides and not a list of what was once written there: it
 *  is all that is left when the list is lost. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "common/base/mem.h"
#include "common/snapshot/checkpoints.h"
#include "common/snapshot/parts.h"

typedef struct {
    char name[TT_CHECKPOINT_NAME];
    uint64_t update; /* as the name or the header says; UINT64_MAX: neither does */
    bool named;      /* the name said it                                         */
    bool seen;       /* device and inode are known                               */
    dev_t device;
    ino_t inode; /* best.safetensors is a second name of another one */
} candidate_t;

typedef struct {
    const char *folder;
    candidate_t *item;
    size_t count;
    char unread[512]; /* the first whose update is not known because it could not be read, which may pass; "" = none */
} folder_t;

static void s_path(const folder_t *self, const char *name, char out[4400])
{
    snprintf(out, 4400, "%s/%s", self->folder, name);
}

bool snapshot_is_lost(tt_status_t status)
{
    return status == TT_DATA || status == TT_INVALID || status == TT_NOT_FOUND;
}

/*  One that cannot be looked at is listed all the same, perhaps as the newest of all: it is to be tried, and named. */
static bool s_look_at(folder_t *self, candidate_t *item, const char *path)
{
    struct stat info;
    bool bare = false;
    const tt_status_t status = item->named ? TT_OK : snapshot_peek(path, &item->update, &bare);
    if (status != TT_OK)
        item->update = UINT64_MAX;
    if (status != TT_OK && !snapshot_is_lost(status) && !self->unread[0])
        snprintf(self->unread, sizeof self->unread, "%s: %.400s", item->name, tt_err_text());
    item->seen = stat(path, &info) == 0;
    if (item->seen) {
        item->device = info.st_dev;
        item->inode = info.st_ino;
    }
    const bool gone = !item->seen && errno == ENOENT; /* since it was listed */
    return !bare && !gone;                            /* a bare one is nothing to go on from */
}

static void s_add(void *ctx, const char *name)
{
    folder_t *self = ctx;
    candidate_t item = {.update = UINT64_MAX};
    char path[4400];
    if (!tt_checkpoint_is_name(name) && strcmp(name, TT_CHECKPOINT_BEST) != 0)
        return;
    s_path(self, name, path);
    snprintf(item.name, sizeof item.name, "%.*s", TT_CHECKPOINT_NAME - 1, name);
    item.named = tt_checkpoint_update(name, &item.update);
    if (!s_look_at(self, &item, path))
        return;
    self->item = tt_realloc(self->item, tt_mul(self->count + 1, sizeof *self->item));
    self->item[self->count++] = item;
}

/*  Of the same update: the end of a run before a step on its way; best.safetensors, a second name, last. */
static int s_rank(const candidate_t *item)
{
    return strcmp(item->name, TT_CHECKPOINT_BEST) == 0 ? 0 : item->named ? 1 : 2;
}

static int s_descending(const void *a, const void *b)
{
    const candidate_t *x = a, *y = b;
    if (x->update != y->update)
        return x->update < y->update ? 1 : -1;
    return s_rank(y) - s_rank(x);
}

static void s_free(folder_t *self)
{
    free(self->item);
    *self = (folder_t){0};
}

static tt_status_t s_list(folder_t *self, const char *folder)
{
    *self = (folder_t){.folder = folder};
    const tt_status_t status = snapshot_each(folder, s_add, self);
    if (status != TT_OK)
        s_free(self);
    if (self->count)
        qsort(self->item, self->count, sizeof *self->item, s_descending);
    return status;
}

/*  best.safetensors, and the same file has its own name still? */
static bool s_is_alias(const folder_t *self, const candidate_t *item)
{
    if (!item->seen || strcmp(item->name, TT_CHECKPOINT_BEST) != 0)
        return false;
    for (size_t i = 0; i < self->count; i++) {
        const candidate_t *other = &self->item[i];
        if (other != item && other->seen && other->device == item->device && other->inode == item->inode)
            return true;
    }
    return false;
}

static tt_status_t s_look(const folder_t *self, const candidate_t *item, tt_checkpoint_t *out)
{
    char path[4400];
    s_path(self, item->name, path);
    TT_TRY(tt_snapshot_inspect(path, &out->info));
    if (item->named && out->info.update != item->update) {
        const tt_status_t status =
            tt_err(TT_DATA, "it holds update %llu and not what its name says", (unsigned long long)out->info.update);
        tt_snapshot_info_free(&out->info);
        return status;
    }
    snprintf(out->name, sizeof out->name, "%s", item->name);
    return TT_OK;
}

static tt_status_t s_nth(const folder_t *self, uint64_t update, size_t i, char out[TT_CHECKPOINT_NAME])
{
    if (self->unread[0])
        return tt_err(TT_IO, "%s/%s", self->folder, self->unread);
    for (size_t k = 0; k < self->count; k++) {
        if (s_is_alias(self, &self->item[k]) || self->item[k].update > update || i-- > 0)
            continue;
        snprintf(out, TT_CHECKPOINT_NAME, "%s", self->item[k].name);
        return TT_OK;
    }
    return TT_NOT_FOUND;
}

tt_status_t snapshot_nth(const char *folder, uint64_t update, size_t i, char out[TT_CHECKPOINT_NAME])
{
    folder_t self;
    TT_TRY(s_list(&self, folder));
    const tt_status_t status = s_nth(&self, update, i, out);
    s_free(&self);
    return status;
}

static tt_status_t s_judge(
    const folder_t *self, const candidate_t *item, tt_checkpoint_t *out, tt_checkpoint_known_fn known, void *ctx)
{
    const char *why = known ? known(ctx, item->name) : NULL;
    return why ? tt_err(TT_DATA, "%s", why) : s_look(self, item, out);
}

tt_status_t tt_checkpoints_newest_but(
    const char *folder, tt_checkpoint_t *out, tt_checkpoint_known_fn known, tt_checkpoint_bad_fn bad, void *ctx)
{
    folder_t self;
    char first[512] = "";
    bool found = false;
    TT_TRY(s_list(&self, folder));
    for (size_t i = 0; i < self.count && !found; i++) {
        if (s_is_alias(&self, &self.item[i]))
            continue;
        found = s_judge(&self, &self.item[i], out, known, ctx) == TT_OK;
        if (!found && !first[0])
            snprintf(first, sizeof first, "%s: %.400s", self.item[i].name, tt_err_text());
        if (!found && bad)
            bad(ctx, self.item[i].name, tt_err_text());
    }
    const bool any = self.count > 0;
    s_free(&self);
    if (found)
        return TT_OK;
    return any ? tt_err(TT_DATA, "%s: no snapshot is whole: %s", folder, first)
               : tt_err(TT_NOT_FOUND, "%s: no snapshot", folder);
}

tt_status_t tt_checkpoints_newest(const char *folder, tt_checkpoint_t *out, tt_checkpoint_bad_fn bad, void *ctx)
{
    return tt_checkpoints_newest_but(folder, out, NULL, bad, ctx);
}
