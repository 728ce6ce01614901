#define TT_LOG_COMPONENT "roster"
#include "coordinator/peer.h"
#include <stdio.h>
#include <stdlib.h>
#include "common/base/log.h"
#include "common/base/mem.h"

/*  Does what a transition needs; true: the roster must be made anew. */
typedef bool (*action_fn)(peer_t *self, int64_t now_ns);

static bool s_ignore(peer_t *self, int64_t now_ns)
{
    (void)self;
    (void)now_ns;
    return false;
}

static bool s_touch(peer_t *self, int64_t now_ns)
{
    self->seen_ns = now_ns;
    return false;
}

static bool s_admit(peer_t *self, int64_t now_ns)
{
    self->seen_ns = self->came_ns = self->moved_ns = now_ns;
    return true;
}

/*  It has no roster (any more) that it could act on. */
static bool s_again(peer_t *self, int64_t now_ns)
{
    self->seen_ns = now_ns;
    self->told = 0;
    return false;
}

static bool s_place(peer_t *self, int64_t now_ns)
{
    self->moved_ns = now_ns;
    return false;
}

static bool s_spare(peer_t *self, int64_t now_ns)
{
    (void)now_ns;
    self->rank = UINT32_MAX;
    self->env_lo = self->env_count = 0;
    return false;
}

static bool s_drain(peer_t *self, int64_t now_ns)
{
    s_spare(self, now_ns);
    return true;
}

static bool s_leave(peer_t *self, int64_t now_ns)
{
    (void)self;
    (void)now_ns;
    return true;
}

typedef struct {
    action_fn action;
    peer_state_t next;
} cell_t;

static const cell_t s_table[PEER_STATES][PEER_EVENTS] = {
    [PEER_NEW] =
        {
            [PEER_HELLO] = {s_admit, PEER_WAITING},
            [PEER_HEARD] = {s_ignore, PEER_NEW},
            [PEER_PLACED] = {s_ignore, PEER_NEW},
            [PEER_LEFT_OUT] = {s_ignore, PEER_NEW},
            [PEER_VICTIM] = {s_ignore, PEER_NEW},
            [PEER_DRAINED] = {s_ignore, PEER_GONE},
            [PEER_ENDED] = {s_ignore, PEER_GONE},
            [PEER_SILENT] = {s_ignore, PEER_GONE},
        },
    [PEER_WAITING] =
        {
            [PEER_HELLO] = {s_again, PEER_WAITING},
            [PEER_HEARD] = {s_touch, PEER_WAITING},
            [PEER_PLACED] = {s_place, PEER_ACTIVE},
            [PEER_LEFT_OUT] = {s_spare, PEER_WAITING},
            [PEER_VICTIM] = {s_drain, PEER_DRAINING},
            [PEER_DRAINED] = {s_ignore, PEER_GONE},
            [PEER_ENDED] = {s_ignore, PEER_GONE},
            [PEER_SILENT] = {s_ignore, PEER_GONE},
        },
    [PEER_ACTIVE] =
        {
            [PEER_HELLO] = {s_again, PEER_ACTIVE},
            [PEER_HEARD] = {s_touch, PEER_ACTIVE},
            [PEER_PLACED] = {s_place, PEER_ACTIVE},
            [PEER_LEFT_OUT] = {s_spare, PEER_WAITING},
            [PEER_VICTIM] = {s_drain, PEER_DRAINING},
            [PEER_DRAINED] = {s_leave, PEER_GONE},
            [PEER_ENDED] = {s_leave, PEER_GONE},
            [PEER_SILENT] = {s_leave, PEER_GONE},
        },
    [PEER_DRAINING] =
        {
            [PEER_HELLO] = {s_again, PEER_DRAINING},
            [PEER_HEARD] = {s_touch, PEER_DRAINING},
            [PEER_PLACED] = {s_ignore, PEER_DRAINING},
            [PEER_LEFT_OUT] = {s_ignore, PEER_DRAINING},
            [PEER_VICTIM] = {s_ignore, PEER_DRAINING},
            [PEER_DRAINED] = {s_ignore, PEER_GONE},
            [PEER_ENDED] = {s_ignore, PEER_GONE},
            [PEER_SILENT] = {s_ignore, PEER_GONE},
        },
    [PEER_GONE] =
        {
            [PEER_HELLO] = {s_ignore, PEER_GONE},
            [PEER_HEARD] = {s_ignore, PEER_GONE},
            [PEER_PLACED] = {s_ignore, PEER_GONE},
            [PEER_LEFT_OUT] = {s_ignore, PEER_GONE},
            [PEER_VICTIM] = {s_ignore, PEER_GONE},
            [PEER_DRAINED] = {s_ignore, PEER_GONE},
            [PEER_ENDED] = {s_ignore, PEER_GONE},
            [PEER_SILENT] = {s_ignore, PEER_GONE},
        },
};

bool peer_cell(peer_state_t state, peer_event_t event, peer_state_t *next)
{
    *next = s_table[state][event].next;
    return s_table[state][event].action != NULL;
}

const char *peer_state_name(peer_state_t state)
{
    static const char *const names[PEER_STATES] = {"new", "waiting", "active", "draining", "gone"};
    return names[state];
}

static const char *s_event_name(peer_event_t event)
{
    static const char *const names[PEER_EVENTS] = {
        "HELLO", "HEARD", "PLACED", "LEFT_OUT", "VICTIM", "DRAINED", "ENDED", "SILENT"};
    return names[event];
}

bool peer_fire(peer_t *self, peer_event_t event, int64_t now_ns)
{
    const cell_t *cell = &s_table[self->state][event];
    if (cell->next != self->state)
        log_debug("%s/%u: %s: %s -> %s", tt_peer_role_name(self->role), self->index, s_event_name(event),
            peer_state_name(self->state), peer_state_name(cell->next));
    const bool dirty = cell->action(self, now_ns);
    self->state = cell->next;
    return dirty;
}

static char *s_copy(const char *text)
{
    return tt_strdup(text ? text : "");
}

void peer_new(peer_t **self_p, const char *identity, uint32_t index, const tt_msg_HELLO_t *hello)
{
    peer_t *self = tt_new0(sizeof *self);
    snprintf(self->identity, sizeof self->identity, "%s", identity);
    self->role = (tt_peer_role_t)hello->role;
    self->index = index;
    self->pid = hello->pid;
    self->memory = hello->memory;
    self->instance = hello->instance;
    self->host = s_copy(hello->host);
    self->pod = s_copy(hello->pod);
    self->data_ipc = s_copy(hello->data_ipc);
    self->data_tcp = s_copy(hello->data_tcp);
    self->weights_ipc = s_copy(hello->weights_ipc);
    self->weights_tcp = s_copy(hello->weights_tcp);
    self->rank = UINT32_MAX;
    *self_p = self;
}

void peer_destroy(peer_t **self_p)
{
    peer_t *self = *self_p;
    if (!self)
        return;
    free(self->host);
    free(self->pod);
    free(self->data_ipc);
    free(self->data_tcp);
    free(self->weights_ipc);
    free(self->weights_tcp);
    free(self);
    *self_p = NULL;
}
