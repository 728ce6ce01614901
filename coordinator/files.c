#include "coordinator/files.h"
#include <limits.h>
#include <stdio.h>
#include <unistd.h>
#include "common/base/file.h"

tt_status_t files_replace(const char *dir, const char *name, const char *text, mode_t mode)
{
    return tt_file_replace(dir, name, text, mode);
}

void files_remove(const char *dir, const char *name)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", dir, name) < (int)sizeof path)
        unlink(path);
}
