/*  json - JSON of a test's text, with ' for " so that C can be read; comparing prints both sides. */
#pragma once
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "k8s/dijob/build.h"
#include "tests/test.h"

/*  The labels that Kubernetes recommends, as k8s/dijob/labels.c makes them. */
#define RECOMMENDED_OF_JOB(job)                                                                                    \
    "'app.kubernetes.io/name':'dijob','app.kubernetes.io/instance':'" job "','app.kubernetes.io/part-of':'tutti'," \
    "'app.kubernetes.io/managed-by':'tutti-operator'"
#define RECOMMENDED(job, component) RECOMMENDED_OF_JOB(job) ",'app.kubernetes.io/component':'" component "'"

static inline json_t *json_of(const char *text)
{
    json_error_t error;
    char *copy = tt_strdup(text);
    for (char *c = copy; *c; c++)
        *c = *c == '\'' ? '"' : *c;
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
