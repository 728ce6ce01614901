/*  checkpoint - snapshots as files: RUN_DIR/checkpoints/<update>.safetensors, best.safetensors, final.safetensors. */
#define TT_LOG_COMPONENT "checkpoint"
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/log.h"
#include "common/base/mem.h"
#include "learner/core.h"

/*  The directory of checkpoints, made when it is not there. TT_IO: no place to write. */
static tt_status_t s_directory(const core_t *self, char *out, size_t size)
{
    snprintf(out, size, "%s/checkpoints", self->run_dir);
    if (mkdir(out, 0777) != 0 && errno != EEXIST)
        return tt_err_errno(TT_IO, "%s", out);
    return TT_OK;
}

/* ---- the newest K ------------------------------------------------------------------------------------------------ */

static int s_descending(const void *a, const void *b)
{
    const unsigned long long x = *(const unsigned long long *)a, y = *(const unsigned long long *)b;
    return (x < y) - (x > y);
}

/*  Update numbers of the files in the directory, newest first; the caller frees. */
static unsigned long long *s_list(const char *directory, size_t *count)
{
    unsigned long long *updates = NULL;
    *count = 0;
    DIR *dir = opendir(directory);
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        char *end;
        const unsigned long long update = strtoull(entry->d_name, &end, 10);
        if (end == entry->d_name || strcmp(end, ".safetensors") != 0)
            continue;
        updates = tt_realloc(updates, tt_mul(*count + 1, sizeof *updates));
        updates[(*count)++] = update;
    }
    if (dir)
        closedir(dir);
    if (*count)
        qsort(updates, *count, sizeof *updates, s_descending);
    return updates;
}

static void s_name(char *out, size_t size, const char *directory, unsigned long long update)
{
    snprintf(out, size, "%s/%08llu.safetensors", directory, update);
}

static void s_keep_newest(const char *directory, uint32_t keep)
{
    size_t count = 0;
    unsigned long long *updates = s_list(directory, &count);
    for (size_t i = keep ? keep : 1; i < count; i++) {
        char path[4200];
        s_name(path, sizeof path, directory, updates[i]);
        if (unlink(path) != 0)
            log_warn("%s: %s", path, strerror(errno));
    }
    free(updates);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/*  A second name for a file, put in place at once. */
static tt_status_t s_alias(const char *path, const char *directory, const char *name)
{
    char to[4200], tmp[4300];
    snprintf(to, sizeof to, "%s/%s", directory, name);
    snprintf(tmp, sizeof tmp, "%s.tmp", to);
    unlink(tmp);
    if (link(path, tmp) != 0 || rename(tmp, to) != 0)
        return tt_err_errno(TT_IO, "%s", to);
    unlink(tmp); /* rename leaves it when both are already one file */
    return TT_OK;
}

static tt_status_t s_write(core_t *self, const char *directory, const char *path)
{
    snapshot_t snapshot;
    const double mean = tt_episodes_return_mean(self->episodes);
    const bool best = !isnan(mean) && (isnan(self->best) || mean > self->best);
    if (best)
        self->best = mean;
    state_capture(self, &snapshot);
    const tt_status_t status = snapshot_write(&snapshot, path);
    state_release(&snapshot);
    TT_TRY(status);
    self->checkpoint_ns = tt_now_ns(tt_clock_real());
    if (best)
        TT_TRY(s_alias(path, directory, "best.safetensors"));
    report_event(self, "snapshot", path, mean);
    log_info("%s", path);
    return TT_OK;
}

/*  A full disk is no reason to lose the run: say so and try again at the next one. */
tt_status_t checkpoint_when_due(core_t *self)
{
    const double every_s = self->model.train.checkpoint.every_s;
    if (isnan(every_s) || (double)(tt_now_ns(tt_clock_real()) - self->checkpoint_ns) < every_s * 1e9)
        return TT_OK;
    char directory[4100], path[4200];
    tt_status_t status = s_directory(self, directory, sizeof directory);
    if (status == TT_OK) {
        s_name(path, sizeof path, directory, (unsigned long long)self->update);
        status = s_write(self, directory, path);
    }
    if (status == TT_OK) {
        s_keep_newest(directory, self->model.train.checkpoint.keep);
        return TT_OK;
    }
    self->checkpoint_ns = tt_now_ns(tt_clock_real());
    log_error("no checkpoint: %s", tt_err_text());
    report_event(self, "warning", tt_err_text(), 0);
    return TT_OK;
}

/*  A learner on another host than the run directory has no place to write: the run keeps what rank 0 wrote before. */
static bool s_is_elsewhere(const core_t *self)
{
    return !self->seat->dir[0] && access(self->run_dir, W_OK) != 0;
}

tt_status_t checkpoint_final(core_t *self, char *path, size_t size)
{
    char directory[4100];
    path[0] = '\0';
    if (s_is_elsewhere(self)) {
        report_event(self, "warning", "the final checkpoint was not written: rank 0 is on another host", 0);
        return TT_OK;
    }
    tt_status_t status = s_directory(self, directory, sizeof directory);
    if (status == TT_OK) {
        snprintf(path, size, "%s/final.safetensors", directory);
        status = s_write(self, directory, path);
    }
    return status == TT_OK ? TT_OK : tt_err_wrap(status, "the final checkpoint could not be written");
}
