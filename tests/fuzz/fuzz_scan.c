/*  Any bytes as a list or a watch, in pieces of any size: the same objects and the same end as in one piece; what jansson
 *  reads as a list is accepted; what was dropped is in no object. First byte: kind and size of the pieces. */
#include "k8s/api/scan.h"
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/buf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const s_drop[] = {"metadata.managedFields", "a.*", "+a.b", "c[d.e]", "spec.*", "+spec.f.g", NULL};

static tt_status_t s_see(void *ctx, const char *type, const char *json, size_t size)
{
    TT_CHECK(strlen(json) == size);
    TT_CHECK(tt_buf_printf(ctx, "%s %s\n", type ? type : "-", json) == TT_OK);
    json_t *object = json_loadb(json, size, 0, NULL);
    if (object && !(type && strcmp(type, "ERROR") == 0)) {
        const json_t *a = json_object_get(object, "a");
        TT_CHECK(!json_object_get(json_object_get(object, "metadata"), "managedFields"));
        TT_CHECK(!json_is_object(a) || json_object_size(a) <= 1);
    }
    json_decref(object);
    return TT_OK;
}

static tt_status_t s_scan(kube_scan_kind_t kind, const char *data, size_t size, size_t cut, tt_buf_t *seen)
{
    tt_buf_init(seen, (size_t)64 << 20);
    kube_scan_t *scan = NULL;
    TT_CHECK(kube_scan_new(&scan, kind, s_drop, 4096, s_see, seen) == TT_OK);
    tt_status_t status = TT_OK;
    for (size_t at = 0; at < size && status == TT_OK; at += cut)
        status = kube_scan_feed(scan, data + at, cut < size - at ? cut : size - at);
    if (status == TT_OK)
        status = kube_scan_end(scan);
    TT_CHECK(tt_buf_printf(seen, "%s %s", kube_scan_version(scan), kube_scan_continue(scan)) == TT_OK);
    kube_scan_destroy(&scan);
    return status;
}

/*  A list by jansson's reading (which knows no key twice), flat enough for our limits. Without zeros: jansson 2.14 reads
 *  over one behind a number, where JSON has no place for it. Without \u: the scanner knows the names of the envelope as
 *  servers write them. */
static bool s_is_list(const char *data, size_t size)
{
    if (memchr(data, '\0', size) || memmem(data, size, "\\u", 2))
        return false;
    json_t *list = json_loadb(data, size, JSON_REJECT_DUPLICATES, NULL);
    const json_t *items = json_object_get(list, "items");
    bool good = json_is_object(list) && json_is_array(items);
    for (size_t i = 0; i < json_array_size(items); i++)
        good &= json_is_object(json_array_get(items, i));
    size_t brackets = 0;
    for (size_t i = 0; i < size; i++)
        brackets += data[i] == '[' || data[i] == '{';
    json_decref(list);
    return good && size < 4096 && brackets <= 64;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    const kube_scan_kind_t kind = data[0] & 1 ? KUBE_SCAN_WATCH : KUBE_SCAN_LIST;
    const size_t cut = 1 + (data[0] >> 1);
    const char *text = (const char *)data + 1;
    tt_buf_t whole, pieces;
    const tt_status_t one = s_scan(kind, text, size - 1, size, &whole);
    const tt_status_t many = s_scan(kind, text, size - 1, cut, &pieces);
    TT_CHECK(one == many && (one == TT_OK || one == TT_DATA));
    TT_CHECK(strcmp(tt_buf_text(&whole), tt_buf_text(&pieces)) == 0);
    if (kind == KUBE_SCAN_LIST && s_is_list(text, size - 1))
        TT_CHECK(one == TT_OK);
    tt_buf_free(&whole);
    tt_buf_free(&pieces);
    return 0;
}
