/*  A request of the replicas API from any bytes: line 1 method, 2 path, 3 query, the rest the body. Never a crash; what is
 *  refused has words and can be answered. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "k8s/replicas/replicas.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = tt_new0(size + 1), *parts[4] = {text};
    memcpy(text, data, size);
    char *end = text + size;
    for (size_t i = 1; i < 4; i++) {
        char *line = memchr(parts[i - 1], '\n', (size_t)(end - parts[i - 1]));
        parts[i] = line ? line + 1 : end;
        if (line)
            *line = '\0';
    }
    replicas_request_t *request = NULL;
    const tt_status_t status =
        replicas_parse(&request, parts[0], parts[1], parts[2], parts[3], (size_t)(end - parts[3]));
    if ((status == TT_OK) != (request != NULL) || (status != TT_OK && !*tt_err_text()))
        abort();
    tt_buf_t out;
    tt_buf_init(&out, 1 << 20);
    if (status != TT_OK && (replicas_refuse(&out, parts[0], status) < 400 || out.size == 0))
        abort();
    tt_buf_free(&out);
    replicas_request_destroy(&request);
    free(text);
    return 0;
}
