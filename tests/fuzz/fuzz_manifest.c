/*  Any text as a manifest: objects or an error, and what is dumped reads back to the same. */
#include <stdlib.h>
#include "k8s/dijob/dijob.h"
#include "common/config/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tt_manifest_t *self = NULL;
    if (tt_manifest_parse(&self, (const char *)data, size, "fuzz") != TT_OK) {
        if (!*tt_err_text())
            abort();
        return 0;
    }
    for (size_t i = 0; i < tt_manifest_count(self); i++) {
        char *text = kube_dump(tt_manifest_at(self, i));
        json_t *again = text ? json_loads(text, 0, NULL) : NULL;
        if (!again)
            abort();
        tt_manifest_where(self, i, "spec.coordinator[0].template");
        json_decref(again);
        free(text);
    }
    tt_manifest_destroy(&self);
    return 0;
}
