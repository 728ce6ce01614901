/*  Any two lines as a task's secondary data and its command: refused, or all keys are found, replaced, and none is left by itself. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "task/exec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    exec_secondary_t secondary[EXEC_SECONDARY_MAX];
    exec_pair_t pairs[3 + EXEC_SECONDARY_MAX] = {{"%DATA", "/d"}, {"%IN", "/i"}, {"%OUT", "/o"}};
    size_t count = 0;
    char *text = tt_new0(size + 1);
    memcpy(text, data, size);
    char *line = strchr(text, '\n');
    if (line)
        *line++ = '\0';
    if (line && exec_secondary(text, secondary, &count) == TT_OK) {
        TT_CHECK(count <= EXEC_SECONDARY_MAX);
        for (size_t i = 0; i < count; i++)
            pairs[3 + i] = (exec_pair_t){secondary[i].key, "/s"};
        const bool good = exec_check(line, true, secondary, count) == TT_OK;
        tt_buf_t out;
        tt_buf_init(&out, 2 * size + 16);
        TT_CHECK(exec_fill(&out, line, pairs, 3 + count) == TT_OK); /* a value is no longer than its key */
        for (size_t i = 0; good && i < 3 + count; i++)
            TT_CHECK(strstr(line, pairs[i].key) && strstr(tt_buf_text(&out), pairs[i].value));
        tt_buf_free(&out);
    }
    free(text);
    return 0;
}
