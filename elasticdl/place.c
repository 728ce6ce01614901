#include "elasticdl/place.h"
#include <stdlib.h>
#include "common/base/file.h"
#include "common/base/mem.h"

tt_status_t edl_place_log(const edl_place_t *self, const edl_task_t *task, const char *member, int *fd)
{
    char folder[EDL_TASK_FOLDER];
    edl_task_folder(task, folder);
    char *path = tt_sprintf("%s/%s/%s/outputs.log", self->run_dir, folder, member);
    const tt_status_t status = tt_file_open(fd, path);
    free(path);
    return status == TT_NOT_FOUND ? tt_err(TT_NOT_FOUND, "%s has written nothing yet", member) : status;
}
