/*  spec - members of a job's spec as they come from outside, checked; the first that is wrong is the reason why the job is not run.
 *
 *  `wrong` is where that reason is kept, the caller's, NULL at first. `where` is the path of what holds a member:
 *  "spec.tfReplicaSpecs.PS". An absent or null member is not wrong, and reads as what is said of it. Threads: pure. */
#pragma once
#include "common/base/mem.h"
#include "k8s/front/object.h"

/*  The first reason stays. */
#define SPEC_WRONG(wrong, ...)                  \
    do {                                        \
        if (!*(wrong))                          \
            *(wrong) = tt_sprintf(__VA_ARGS__); \
    } while (0)

/*  "" = it is not given. Borrowed. */
const char *spec_text(char **wrong, const json_t *holder, const char *where, const char *key);
/*  Within min..max; `otherwise` = it is not given. */
int64_t spec_number(char **wrong, const json_t *holder, const char *where, const char *key, int64_t otherwise,
    int64_t min, int64_t max);
/*  false = it is not given. */
bool spec_flag(char **wrong, const json_t *holder, const char *where, const char *key);
/*  Which of these words; the first of them, the empty one, is the default. Their count: it is none of them. */
size_t spec_word(
    char **wrong, const json_t *holder, const char *where, const char *key, const char *const *words, size_t count);

/*  A DNS label of RFC 1123, of RFC 1035 with `letter`: lower case letters, digits and dashes, no dash at an end, a letter first. */
bool spec_is_label(const char *text, size_t most, bool letter);

/*  Is the object a job of this kind and group, and what is said of it beside its spec? Absent kind and version are as if they were
 *  right. TT_DATA. meta is the caller's. */
tt_status_t spec_head(
    const json_t *object, const char *kind, const char *group, kube_meta_t *meta, int64_t *generation, bool *deleting);
/*  The JSON of a job, "a DIJob". TT_DATA: it is none, or has a member twice. A new reference. */
tt_status_t spec_load(json_t **out, const char *what, const char *json, size_t size);
