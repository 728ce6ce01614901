#include "k8s/api/dump.h"
#include <stdint.h>
#include <string.h>
#include "common/base/status.h"
#include "common/base/mem.h"

enum { FLAGS = JSON_COMPACT | JSON_SORT_KEYS };

char *kube_dump(const json_t *value)
{
    return json_dumps(value, FLAGS | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
}

char *kube_dump_secret(const json_t *secret)
{
    const size_t size = json_dumpb(secret, NULL, 0, FLAGS);
    char *text = tt_new0(size + 1);
    const size_t written = json_dumpb(secret, text, size, FLAGS);
    TT_CHECK(written == size);
    return text;
}

void kube_wipe_secret(json_t **secret_p)
{
    const char *key;
    json_t *value;
    json_object_foreach(json_object_get(*secret_p, "stringData"), key, value)
    {
        if (json_is_string(value))
            explicit_bzero((char *)(uintptr_t)json_string_value(value), json_string_length(value));
    }
    json_decref(*secret_p);
    *secret_p = NULL;
}
