/*  install - this program and what it needs, copied into a folder from which it runs in any image: by its own dynamic linker.
 *
 *      DIR/ld.so --library-path DIR DIR/tutti pod-agent ...
 *
 *  Threads: one. */
#pragma once
#include "common/base/status.h"

/*  Files of those names are replaced. TT_NOT_FOUND: no such folder; TT_UNSUPPORTED: a program without a dynamic linker; TT_IO. */
tt_status_t elasticdl_install(const char *dir);
