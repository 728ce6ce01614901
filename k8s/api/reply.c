#include <stdlib.h>
#include <string.h>
#include <jansson.h>
#include "common/base/mem.h"
#include "common/base/text.h"
#include "k8s/api/call.h"

/* metav1.Status, as every part of the API server answers with. */
static bool s_status_object(kube_reply_t *reply)
{
    json_t *status = json_loadb(reply->body, reply->size, 0, NULL);
    const char *message = json_string_value(json_object_get(status, "message"));
    const char *reason = json_string_value(json_object_get(status, "reason"));
    if (message)
        tt_text_copy(reply->text, sizeof reply->text, message);
    if (reason)
        tt_text_copy(reply->reason, sizeof reply->reason, reason);
    const bool said = message && *message;
    json_decref(status);
    return said;
}

/* Its first line, of something else (a proxy's page, "404 page not found"). */
void kube_reply_words(kube_reply_t *reply)
{
    if (reply->size && s_status_object(reply))
        return;
    char line[200];
    size_t n = 0;
    for (; n < reply->size && n + 1 < sizeof line && (unsigned char)reply->body[n] >= ' ' && reply->body[n] != 127; n++)
        line[n] = reply->body[n];
    line[n] = 0;
    char *text = tt_sprintf("HTTP status %d%s%s", reply->code, n ? ": " : "", line);
    tt_text_copy(reply->text, sizeof reply->text, text);
    free(text);
}
