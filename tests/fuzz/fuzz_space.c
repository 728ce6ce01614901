/*  Any text as a space: refused, or one that passes its check, says itself in words that read back, and makes columns or says
 *  why not. */
#include <stdlib.h>
#include <string.h>
#include "common/base/limits.h"
#include "common/base/mem.h"
#include "common/rl/columns.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void s_use(const tt_space_t *space)
{
    static const int64_t two[] = {2};
    const tt_space_t choice = TT_CHOICES(two);
    tt_buf_t words;
    tt_space_t *again = NULL;
    tt_columns_t *columns = NULL;
    tt_buf_init(&words, 1 << 24);
    tt_status_t status = tt_space_text(space, &words);
    TT_CHECK(status == TT_OK);
    status = tt_space_parse(&again, tt_buf_text(&words));
    TT_CHECK(status == TT_OK);
    if (tt_columns_new(&columns, space, &choice, true, true) == TT_OK)
        TT_CHECK(columns->obs_count == tt_space_leaves(again, NULL, 0));
    tt_columns_destroy(&columns);
    if (tt_space_check(space, "action", true) == TT_OK &&
        tt_columns_new(&columns, &choice, space, true, false) == TT_OK)
        TT_CHECK(columns->mask_bits <= TT_CHOICES_MAX);
    tt_columns_destroy(&columns);
    tt_space_free(&again);
    tt_buf_free(&words);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tt_space_t *space = NULL;
    if (size >= TT_SPACE_TEXT_MAX)
        return 0;
    char *text = tt_new0(size + 1);
    memcpy(text, data, size);
    if (tt_space_parse(&space, text) == TT_OK)
        s_use(space);
    tt_space_free(&space);
    free(text);
    return 0;
}
