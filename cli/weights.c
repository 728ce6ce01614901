#include "cli/weights.h"
#include "common/base/text.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/snapshot/checkpoints.h"
#include "controller/rundir.h"
#include "local/local.h"

static bool s_has_snapshots(const char *folder)
{
    tt_checkpoint_updates_t found = {0};
    char path[4200];
    snprintf(path, sizeof path, "%s/" TT_CHECKPOINT_FINAL, folder);
    tt_checkpoints_list(folder, &found);
    const bool any = found.count > 0 || access(path, F_OK) == 0;
    tt_checkpoint_updates_free(&found);
    return any;
}

static void s_folder(char *out, size_t size, const char *run_dir)
{
    char *of_job = local_checkpoints(run_dir);
    if (of_job)
        snprintf(out, size, "%s", of_job);
    else
        snprintf(out, size, "%s/" TT_CHECKPOINTS, run_dir);
    if (access(out, F_OK) != 0 && s_has_snapshots(run_dir))
        snprintf(out, size, "%s", run_dir); /* it is that folder itself, or a copy of it */
    free(of_job);
}

/*  said: a file of which that has been said. */
static void s_say_bad(void *said, const char *name, const char *why)
{
    if (!said || strcmp(said, name) != 0)
        fprintf(stderr, "%s is passed over: %s\n", tt_shown(name), tt_shown(why));
}

static tt_status_t s_newest(char *path, size_t size, const char *folder, const char *run_dir)
{
    tt_checkpoint_t newest;
    TT_TRY(tt_checkpoints_newest(folder, &newest, s_say_bad, NULL));
    snprintf(path, size, "%s/%s", folder, newest.name);
    tt_snapshot_info_free(&newest.info);
    fprintf(stderr, "%s has no final checkpoint: its newest is taken\n", tt_shown(run_dir));
    return TT_OK;
}

/*  Above that of the final one, which is whole: a run that is resumed has that of its life before until its end. */
static bool s_went_on(const char *folder, uint64_t update)
{
    tt_checkpoint_updates_t found = {0};
    tt_checkpoints_list(folder, &found);
    const bool beyond = found.count > 0 && found.at[0] > update;
    tt_checkpoint_updates_free(&found);
    return beyond;
}

static void s_since_final(char *path, size_t size, const char *folder, const char *run_dir, uint64_t update)
{
    tt_checkpoint_t newest;
    if (!s_went_on(folder, update) || tt_checkpoints_newest(folder, &newest, s_say_bad, NULL) != TT_OK)
        return;
    if (newest.info.update > update) { /* else what was beyond it is damaged */
        snprintf(path, size, "%s/%s", folder, newest.name);
        fprintf(stderr, "%s has gone on since its final checkpoint: its newest is taken\n", tt_shown(run_dir));
    }
    tt_snapshot_info_free(&newest.info);
}

/*  The final one is damaged: the newest of the others that is whole, however much older, and no word is lost of either. */
static tt_status_t s_before_final(char *path, size_t size, const char *folder, const char *run_dir)
{
    char why[512], name[] = TT_CHECKPOINT_FINAL;
    tt_checkpoint_t newest;
    snprintf(why, sizeof why, "%.500s", tt_err_text());
    s_say_bad(NULL, name, why);
    const tt_status_t status = tt_checkpoints_newest(folder, &newest, s_say_bad, name);
    if (status == TT_NOT_FOUND)
        return tt_err(TT_DATA, "%s: %s, and there is no other", path, why);
    TT_TRY(status);
    snprintf(path, size, "%s/%s", folder, newest.name);
    tt_snapshot_info_free(&newest.info);
    fprintf(stderr, "%s: %s, its newest that is whole, is taken\n", tt_shown(run_dir), tt_shown(newest.name));
    return TT_OK;
}

static tt_status_t s_err_none(const char *run_dir, const char *which)
{
    return tt_err(TT_NOT_FOUND,
        "%s has no %sweights yet: a run writes them every checkpoint.every_s seconds and at its end", run_dir, which);
}

static tt_status_t s_best(const char *path, const char *run_dir)
{
    if (access(path, F_OK) == 0)
        return TT_OK;
    return errno == ENOENT ? s_err_none(run_dir, "best ") : tt_err_errno(TT_IO, "%s", path);
}

tt_status_t weights_of_run(char *path, size_t size, const char *run_dir, bool best)
{
    char folder[3600];
    tt_snapshot_info_t final;
    s_folder(folder, sizeof folder, run_dir);
    snprintf(path, size, "%s/%s", folder, best ? TT_CHECKPOINT_BEST : TT_CHECKPOINT_FINAL);
    if (best)
        return s_best(path, run_dir);
    tt_status_t status = tt_snapshot_inspect(path, &final);
    if (status == TT_OK) {
        s_since_final(path, size, folder, run_dir, final.update);
        tt_snapshot_info_free(&final);
    } else if (status == TT_NOT_FOUND) {
        status = s_newest(path, size, folder, run_dir);
    } else {
        status = s_before_final(path, size, folder, run_dir);
    }
    return status == TT_NOT_FOUND ? s_err_none(run_dir, "") : status;
}

/*  A copy of a run's is one, too, whatever it lacks besides. */
static tt_status_t s_of_directory(char *path, size_t size, const char *operand, bool best)
{
    char folder[3600];
    tt_rundir_t run;
    s_folder(folder, sizeof folder, operand);
    if (access(folder, F_OK) != 0)
        TT_TRY(tt_rundir_find(&run, operand));
    return weights_of_run(path, size, operand, best);
}

tt_status_t weights_of(char *path, size_t size, const char *operand, bool best)
{
    struct stat info;
    const bool there = stat(operand, &info) == 0, file = strchr(operand, '/') || strstr(operand, ".safetensors");
    if (there && S_ISDIR(info.st_mode))
        return s_of_directory(path, size, operand, best);
    if ((there || file) && best)
        return tt_err(TT_USAGE, "--best goes with a run, and %s is a file", operand);
    if (there || file) {
        snprintf(path, size, "%s", operand);
        return TT_OK;
    }
    tt_rundir_t run;
    TT_TRY(tt_rundir_find(&run, operand));
    return weights_of_run(path, size, run.path, best);
}
