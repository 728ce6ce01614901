/*  golden - a file of the tree that a test compares what it made with. TT_UPDATE_GOLDEN=1 writes it instead: look at the
 *  diff before you commit it. */
#pragma once
#include <stdlib.h>
#include <string.h>
#include "common/base/buf.h"
#include "tests/test.h"

/*  `path` is relative to the root of the source tree. */
static inline void assert_golden(const char *path, const tt_buf_t *made)
{
    char full[4096];
    snprintf(full, sizeof full, "%s/%s", TT_SOURCE_DIR, path);
    if (getenv("TT_UPDATE_GOLDEN")) {
        FILE *file = fopen(full, "w");
        assert_non_null(file);
        assert_int_equal(fwrite(made->data, 1, made->size, file), made->size);
        assert_int_equal(fclose(file), 0);
        return;
    }
    tt_buf_t kept;
    tt_buf_init(&kept, (size_t)16 << 20);
    assert_ok(tt_buf_read_file(&kept, full));
    if (kept.size != made->size || memcmp(kept.data, made->data, kept.size) != 0)
        fail_msg("%s is not what the code makes now. If that is meant, run this test with TT_UPDATE_GOLDEN=1, look at "
                 "the diff and commit it",
            path);
    tt_buf_free(&kept);
}
