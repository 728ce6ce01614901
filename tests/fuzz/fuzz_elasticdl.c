/*  The query of /create from any bytes: never a crash; what is refused has words, what is taken can be written and read again as the
 *  same. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "elasticdl/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *query = tt_new0(size + 1), again[ELASTICDL_QUERY];
    memcpy(query, data, size);
    elasticdl_request_t request, back;
    memset(&request, 0, sizeof request);
    memset(&back, 0, sizeof back);
    const tt_status_t status = elasticdl_request_read(&request, query);
    if (status != TT_OK && !*tt_err_text())
        abort();
    if (status == TT_OK) {
        elasticdl_request_write(again, &request);
        if (elasticdl_request_read(&back, again) != TT_OK || memcmp(&request, &back, sizeof request) != 0)
            abort();
    }
    free(query);
    return 0;
}
