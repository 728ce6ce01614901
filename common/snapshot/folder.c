/*  folder - what is in a folder of snapshots. That one cannot be read is not that nothing is there: a run that believed so
 *  would begin anew, and sweep what is needed. */
#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include "common/snapshot/parts.h"

static tt_status_t s_err(const char *folder)
{
    return tt_err_errno(errno == EACCES || errno == EPERM ? TT_DENIED : TT_IO,
        "%s cannot be read, so what snapshots there are is not known; see to it that it can be, and try again", folder);
}

/*  A link to what is away (a disk that is not mounted) is not "none" either. */
static tt_status_t s_missing(const char *folder)
{
    struct stat info;
    if (lstat(folder, &info) != 0)
        return TT_OK;
    errno = ENOENT;
    return s_err(folder);
}

tt_status_t snapshot_each(const char *folder, void (*take)(void *ctx, const char *name), void *ctx)
{
    DIR *dir = opendir(folder);
    if (!dir)
        return errno == ENOENT ? s_missing(folder) : s_err(folder);
    const struct dirent *entry;
    while (errno = 0, (entry = readdir(dir)))
        take(ctx, entry->d_name);
    const tt_status_t status = errno == 0 ? TT_OK : s_err(folder);
    closedir(dir);
    return status;
}
