/*  st_file - a whole safetensors file, read and parsed. */
#pragma once
#include "common/base/buf.h"
#include "common/nn/safetensors.h"

static inline tt_status_t st_file(tt_st_t **file_p, const char *path)
{
    tt_buf_t bytes;
    tt_buf_init(&bytes, (size_t)1 << 30);
    tt_status_t status = tt_buf_read_file(&bytes, path);
    if (status == TT_OK)
        status = tt_st_decode(file_p, tt_buf_text(&bytes), bytes.size);
    tt_buf_free(&bytes);
    return status;
}
