/*  files - small files of the run directory, replaced as a whole or not at all.
 *
 *  Threads: pure. */
#pragma once
#include <sys/types.h>
#include "common/base/status.h"

/*  Write DIR/NAME with this text, as a whole or not at all. TT_IO. */
tt_status_t files_replace(const char *dir, const char *name, const char *text, mode_t mode);
/*  Remove DIR/NAME if it is there. */
void files_remove(const char *dir, const char *name);
