/*  json - JSON of a test's text, with ' for " so that C can be read; comparing prints both sides.
 *
 *  Threads: pure. */
#pragma once
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "k8s/api/dump.h"
#include "tests/test.h"

/*  In place: " for each '. NULL stays NULL. */
static inline char *json_quote(char *text)
{
    for (char *c = text; c && *c; c++)
        *c = *c == '\'' ? '"' : *c;
    return text;
}

/*  The caller's. */
static inline json_t *json_of(const char *text)
{
    json_error_t error;
    char *copy = json_quote(tt_strdup(text));
    json_t *value = json_loads(copy, 0, &error);
    if (!value)
        fail_msg("%s in %s", error.text, copy);
    free(copy);
    return value;
}

/*  Takes `got`. */
static inline void assert_json(json_t *got, const char *want_text)
{
    json_t *want = json_of(want_text);
    char *is = kube_dump(got), *should = kube_dump(want);
    assert_string_equal(is, should);
    free(is);
    free(should);
    json_decref(want);
    json_decref(got);
}
