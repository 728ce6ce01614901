/*  png_lib - libpng, loaded when the first frame is written: no other command needs it.
 *
 *  Threads: load from any; the table is read-only afterwards. */
#pragma once
#include <png.h>
#include "common/base/status.h"

typedef struct {
    __typeof__(png_image_write_to_memory) *write_to_memory;
} png_lib_t;

/*  The table; it stays loaded until the process ends. TT_UNSUPPORTED: the library is not installed. */
tt_status_t png_lib_load(const png_lib_t **out);
