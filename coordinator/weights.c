#include "coordinator/weights.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/file.h"
#include "common/snapshot/checkpoints.h"
#include "coordinator/state.h"

#define BELOW "below="

static tt_status_t s_err_none(const char *which)
{
    return tt_err(TT_NOT_FOUND,
        "there are no %sweights yet: a run writes them every checkpoint.every_s seconds and at its end", which);
}

/*  The journal says which, and not the folder: that may have snapshots of a time that the run has gone back from. What a learner
 *  told of as its name is believed as a name only. */
static tt_status_t s_newest(const coordinator_t *self, char name[TT_CHECKPOINT_NAME])
{
    const char *slash = strrchr(self->snapshot.path, '/'), *last = slash ? slash + 1 : self->snapshot.path;
    if (!*last)
        return s_err_none("");
    if (!tt_checkpoint_is_name(last) || snprintf(name, TT_CHECKPOINT_NAME, "%s", last) >= TT_CHECKPOINT_NAME)
        return tt_err(TT_NOT_FOUND, "'%.64s' is no name of a snapshot", last);
    return TT_OK;
}

static tt_status_t s_below(const char *folder, const char *number, char name[TT_CHECKPOINT_NAME])
{
    const size_t digits = strspn(number, "0123456789");
    if (digits == 0 || digits > 19 || number[digits])
        return tt_err(TT_INVALID, "weights: " BELOW "N wants an update's number");
    return tt_checkpoints_below(folder, strtoull(number, NULL, 10), name);
}

static tt_status_t s_choose(
    const coordinator_t *self, const char *folder, const char *query, char name[TT_CHECKPOINT_NAME])
{
    if (!*query)
        return s_newest(self, name);
    if (strncmp(query, BELOW, sizeof BELOW - 1) == 0)
        return s_below(folder, query + sizeof BELOW - 1, name);
    if (strcmp(query, "best") != 0)
        return tt_err(TT_INVALID, "weights: there are /weights, /weights?best and /weights?" BELOW "N");
    snprintf(name, TT_CHECKPOINT_NAME, "%s", TT_CHECKPOINT_BEST);
    return TT_OK;
}

tt_status_t weights_open(const coordinator_t *self, const char *query, http_file_t *out)
{
    char folder[sizeof self->root + 32], path[sizeof folder + TT_CHECKPOINT_NAME];
    struct stat info;
    http_file_t file = {.fd = -1};
    snprintf(folder, sizeof folder, "%s/" TT_CHECKPOINTS, self->root);
    TT_TRY(s_choose(self, folder, query, file.name));
    snprintf(path, sizeof path, "%s/%s", folder, file.name);
    const tt_status_t status = tt_file_open(&file.fd, path);
    if (status == TT_NOT_FOUND && strcmp(query, "best") == 0)
        return s_err_none("best ");
    TT_TRY(status);
    if (fstat(file.fd, &info) != 0) {
        close(file.fd);
        return tt_err_errno(TT_IO, "%s", path);
    }
    file.size = (uint64_t)info.st_size;
    *out = file;
    return TT_OK;
}
