#include <stdlib.h>
#include "common/base/mem.h"
#include "k8s/api/call.h"

enum { SLOT_BITS = 24 }; /* as in timers.c: the rest of a number counts */

static size_t s_slot(uint64_t id)
{
    return (size_t)(id & ((UINT64_C(1) << SLOT_BITS) - 1)) - 1;
}

static size_t s_free_slot(kube_client_t *client)
{
    if (client->free_count)
        return client->free[--client->free_count];
    TT_CHECK(client->slot_count < (1u << SLOT_BITS) - 1);
    if (client->slot_count == client->slot_room) {
        client->slot_room = client->slot_room ? 2 * client->slot_room : 64;
        client->calls = tt_realloc(client->calls, tt_mul(client->slot_room, sizeof(kube_call_t *)));
        client->free = tt_realloc(client->free, tt_mul(client->slot_room, sizeof *client->free));
    }
    return client->slot_count++;
}

void kube_calls_add(kube_client_t *client, kube_call_t *call)
{
    const size_t slot = s_free_slot(client);
    client->calls[slot] = call;
    call->id = ++client->uses << SLOT_BITS | (slot + 1);
}

void kube_calls_remove(kube_client_t *client, kube_call_t *call)
{
    const size_t slot = s_slot(call->id);
    client->calls[slot] = NULL;
    client->free[client->free_count++] = (uint32_t)slot;
}

kube_call_t *kube_calls_find(const kube_client_t *client, uint64_t id)
{
    const size_t slot = s_slot(id);
    kube_call_t *call = slot < client->slot_count ? client->calls[slot] : NULL;
    return call && call->id == id ? call : NULL;
}

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
