/*  parts - what the files of this folder share; nobody else includes it. */
#pragma once
#include <stdbool.h>
#include "common/nn/safetensors.h"

/*  Does its metadata's format fit, and does it have a checksum as that says? sealed: one was found and is right. TT_DATA. */
tt_status_t snapshot_identify(const tt_st_t *file, bool sealed);
/*  The update that a file's header names, which may be damaged, and whether it is bare. */
tt_status_t snapshot_peek(const char *path, uint64_t *update, bool *bare);
