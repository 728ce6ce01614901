#include <stdlib.h>
#include "common/base/mem.h"
#include "k8s/api/call.h"

void kube_call_push(kube_call_list_t *list, kube_call_t *call, bool first)
{
    call->prev = first ? NULL : list->last;
    call->next = first ? list->first : NULL;
    *(call->prev ? &call->prev->next : &list->first) = call;
    *(call->next ? &call->next->prev : &list->last) = call;
}

void kube_call_unlink(kube_call_list_t *list, kube_call_t *call)
{
    *(call->prev ? &call->prev->next : &list->first) = call->next;
    *(call->next ? &call->next->prev : &list->last) = call->prev;
    call->prev = call->next = NULL;
}

void kube_call_free(kube_call_t *call)
{
    free(call->method);
    free(call->path);
    if (call->secret)
        tt_free_secret(call->body);
    else
        free(call->body);
    free(call->content_type);
    free(call->accept);
    free(call);
}
