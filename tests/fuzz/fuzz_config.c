/*  Any bytes: a config or an error, never a crash. What was claimed must survive dump -> parse -> claim -> dump. */
#include "common/config/train.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*  The resolved text of a text; false: refused, with words. */
static bool s_resolve(tt_buf_t *out, const char *text, size_t size)
{
    tt_config_t *config = NULL;
    tt_train_cfg_t cfg;
    tt_status_t status = tt_config_parse(&config, text, size, "fuzz");
    if (status == TT_OK)
        status = tt_config_set(config, "seed=3");
    if (status == TT_OK) {
        tt_config_ignore(config, "algorithm.");
        status = tt_config_claim(config, tt_train_fields, &cfg);
    }
    if (status == TT_OK)
        status = tt_config_finish(config);
    if (status == TT_OK)
        status = tt_train_check(config, &cfg);
    if (status != TT_OK && !*tt_err_text())
        abort();
    const bool resolved = status == TT_OK && tt_config_dump(config, out, true) == TT_OK;
    tt_config_destroy(&config);
    return resolved;
}

/*  Origins differ between the two texts, values must not: cut the comments off. */
static void s_cut_comments(tt_buf_t *text)
{
    char *to = text->data;
    for (const char *at = text->data; at && *at;) {
        const char *end = strchr(at, '\n');
        const size_t length = (size_t)(end - at);
        const char *comment = memmem(at, length, "  # ", 4);
        const size_t keep = comment ? (size_t)(comment - at) : length;
        memmove(to, at, keep);
        to += keep;
        *to++ = '\n';
        at = end + 1;
    }
    if (to)
        *to = '\0';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tt_buf_t first, second;
    tt_buf_init(&first, 1 << 22);
    tt_buf_init(&second, 1 << 22);
    if (s_resolve(&first, (const char *)data, size)) {
        if (!s_resolve(&second, first.data, first.size))
            abort();
        s_cut_comments(&first);
        s_cut_comments(&second);
        if (strcmp(first.data, second.data) != 0)
            abort();
    }
    char assignment[256];
    if (size < sizeof assignment) {
        tt_config_t *config = NULL;
        memcpy(assignment, data, size);
        assignment[size] = '\0';
        if (tt_config_parse(&config, "", 0, "fuzz") == TT_OK)
            (void)tt_config_set(config, assignment);
        tt_config_destroy(&config);
    }
    tt_buf_free(&first);
    tt_buf_free(&second);
    return 0;
}
