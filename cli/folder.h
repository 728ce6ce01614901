/*  folder - a folder where a config or a manifest is wanted: what its user may have meant.
 *
 *  Threads: pure but for the file system. */
#pragma once
#include "common/base/status.h"

/*  TT_USAGE: a folder with a kustomization, which is kubectl's, or with files that can be run, which are named. TT_OK: anything else. */
tt_status_t folder_refuse(const char *path);
