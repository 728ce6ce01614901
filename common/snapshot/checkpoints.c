#define TT_LOG_COMPONENT "checkpoint"
#include "common/snapshot/checkpoints.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/beside.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/snapshot/parts.h"

tt_status_t tt_checkpoints_open(const char *run_dir, char *out, size_t size)
{
    if (snprintf(out, size, "%s/" TT_CHECKPOINTS, run_dir) >= (int)size)
        return tt_err(TT_INVALID, "%.64s...: path too long", run_dir);
    if (mkdir(out, 0777) != 0 && errno != EEXIST)
        return tt_err_errno(TT_IO, "%s", out);
    return TT_OK;
}

void tt_checkpoint_name(char out[TT_CHECKPOINT_NAME], uint64_t update)
{
    snprintf(out, TT_CHECKPOINT_NAME, "%08llu.safetensors", (unsigned long long)update);
}

bool tt_checkpoint_update(const char *name, uint64_t *out)
{
    const size_t digits = strspn(name, "0123456789");
    if (digits < 8 || digits > 19 || strcmp(name + digits, ".safetensors") != 0)
        return false;
    *out = strtoull(name, NULL, 10);
    return true;
}

bool tt_checkpoint_is_name(const char *name)
{
    uint64_t update;
    return strcmp(name, TT_CHECKPOINT_FINAL) == 0 || tt_checkpoint_update(name, &update);
}

tt_status_t tt_checkpoint_exceeds_best(const char *folder, double return_mean, bool *exceeds)
{
    char path[4300];
    tt_snapshot_info_t info;
    snprintf(path, sizeof path, "%s/%s", folder, TT_CHECKPOINT_BEST);
    const tt_status_t status = tt_snapshot_inspect(path, &info);
    if (status != TT_OK && !snapshot_is_lost(status)) /* it may be better, and would be gone */
        return tt_err_wrap(status, "%s stays", path);
    *exceeds = status != TT_OK || !(info.return_mean >= return_mean);
    if (status == TT_OK)
        tt_snapshot_info_free(&info);
    return TT_OK;
}

tt_status_t tt_checkpoint_alias(const char *folder, const char *name, const char *alias)
{
    char from[4300], to[4300];
    snprintf(from, sizeof from, "%s/%s", folder, name);
    snprintf(to, sizeof to, "%s/%s", folder, alias);
    return tt_beside_link(from, to);
}

tt_status_t tt_checkpoint_alias_best(const char *folder, const char *name, double return_mean)
{
    bool exceeds = false;
    if (tt_checkpoint_exceeds_best(folder, return_mean, &exceeds) != TT_OK)
        log_warn("%s", tt_err_text());
    return exceeds ? tt_checkpoint_alias(folder, name, TT_CHECKPOINT_BEST) : TT_OK;
}

static int s_descending(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

/*  What a writer of tutti 0.1 left that was killed. */
static void s_sweep(void *folder, const char *name)
{
    const size_t length = strlen(name), ending = strlen(".safetensors.tmp");
    char path[4600];
    if (length <= ending || strcmp(name + length - ending, ".safetensors.tmp") != 0)
        return;
    snprintf(path, sizeof path, "%s/%s", (const char *)folder, name);
    unlink(path);
}

void tt_checkpoint_updates_free(tt_checkpoint_updates_t *self)
{
    free(self->at);
    *self = (tt_checkpoint_updates_t){0};
}

static void s_list_one(void *ctx, const char *name)
{
    tt_checkpoint_updates_t *self = ctx;
    uint64_t update;
    if (!tt_checkpoint_update(name, &update))
        return;
    self->at = tt_realloc(self->at, tt_mul(self->count + 1, sizeof *self->at));
    self->at[self->count++] = update;
}

tt_status_t tt_checkpoints_list(const char *folder, tt_checkpoint_updates_t *out)
{
    tt_checkpoint_updates_free(out);
    const tt_status_t status = snapshot_each(folder, s_list_one, out);
    if (status != TT_OK)
        tt_checkpoint_updates_free(out);
    if (out->count)
        qsort(out->at, out->count, sizeof *out->at, s_descending);
    return status;
}

static void s_remove(const char *folder, uint64_t update)
{
    char name[TT_CHECKPOINT_NAME], path[4300];
    tt_checkpoint_name(name, update);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (unlink(path) != 0)
        log_warn("%s: %s", path, strerror(errno));
}

static bool s_has(const tt_checkpoint_updates_t *self, uint64_t update)
{
    for (size_t i = 0; i < self->count; i++)
        if (self->at[i] == update)
            return true;
    return false;
}

void tt_checkpoints_keep(const char *folder, uint32_t keep, uint64_t update, const tt_checkpoint_updates_t *found)
{
    tt_checkpoint_updates_t now = {0};
    size_t kept = 0;
    const size_t most = keep < TT_CHECKPOINTS_LEAST ? TT_CHECKPOINTS_LEAST : keep;
    tt_beside_sweep(folder, ".safetensors");
    if (snapshot_each(folder, s_sweep, (char *)(uintptr_t)folder) != TT_OK ||
        tt_checkpoints_list(folder, &now) != TT_OK)
        log_warn("no snapshot is removed: %s", tt_err_text());
    for (size_t i = 0; i < now.count; i++) {
        const bool goes = now.at[i] > update ? !found || s_has(found, now.at[i]) : kept++ >= most;
        if (goes)
            s_remove(folder, now.at[i]);
    }
    tt_checkpoint_updates_free(&now);
}

tt_status_t tt_checkpoints_below(const char *folder, uint64_t below, char out[TT_CHECKPOINT_NAME])
{
    tt_checkpoint_updates_t now = {0};
    size_t i = 0;
    TT_TRY(tt_checkpoints_list(folder, &now));
    while (i < now.count && now.at[i] >= below)
        i++;
    const bool found = i < now.count;
    if (found)
        tt_checkpoint_name(out, now.at[i]);
    tt_checkpoint_updates_free(&now);
    return found ? TT_OK
                 : tt_err(TT_NOT_FOUND, "%s: no snapshot before update %llu", folder, (unsigned long long)below);
}
