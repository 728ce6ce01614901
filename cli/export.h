/*  export - a policy in the formats of other programs. A format is a function here and a line in the table of export.c.
 *
 *  Threads: pure. */
#pragma once
#include "collector/checkpoint.h"
#include "common/base/buf.h"

/*  The bytes of the file; out is empty, and large enough. */
tt_status_t export_onnx(const checkpoint_t *checkpoint, tt_buf_t *out);
