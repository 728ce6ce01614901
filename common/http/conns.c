#include "common/http/conns.h"
#include <stdlib.h>
#include <sys/socket.h>
#include "common/base/mem.h"

conn_t *conns_add(conns_t *self, int fd, int64_t now_ms)
{
    conn_t *conn = tt_new0(sizeof *conn);
    *conn = (conn_t){.fd = fd, .since_ms = now_ms, .next = self->first};
    self->first = conn;
    self->open++;
    return conn;
}

void conns_remove(conns_t *self, conn_t **conn_p)
{
    conn_t *conn = *conn_p;
    *conn_p = NULL;
    if (!conn)
        return;
    conn_t **at = &self->first;
    while (*at != conn)
        at = &(*at)->next;
    *at = conn->next;
    self->open -= conn->phase != CONN_CUT;
    free(conn);
}

void conn_enter(conn_t *self, conn_phase_t phase, int64_t now_ms)
{
    if (self->phase == CONN_CUT)
        return;
    self->phase = phase;
    self->since_ms = now_ms;
}

void conn_write(conn_t *self, uint64_t size, int64_t now_ms)
{
    conn_enter(self, CONN_WRITING, now_ms);
    self->write_ms = CONN_WRITE_MS + (int64_t)(size / CONN_WRITE_BYTES) * 1000;
}

static void s_cut(conns_t *self, conn_t *conn)
{
    shutdown(conn->fd, SHUT_RDWR);
    conn->phase = CONN_CUT;
    self->open--;
}

static int64_t s_due_ms(const conn_t *conn)
{
    switch (conn->phase) {
    case CONN_READING:
        return conn->since_ms + CONN_READ_MS;
    case CONN_WRITING:
        return conn->since_ms + conn->write_ms;
    case CONN_WAITING:
    case CONN_CUT:
        break;
    }
    return INT64_MAX;
}

void conns_expire(conns_t *self, int64_t now_ms)
{
    for (conn_t *conn = self->first; conn; conn = conn->next)
        if (s_due_ms(conn) <= now_ms)
            s_cut(self, conn);
}

void conns_make_room(conns_t *self, size_t most)
{
    while (self->open > most) {
        conn_t *oldest = NULL;
        for (conn_t *conn = self->first; conn; conn = conn->next)
            if ((conn->phase == CONN_READING || conn->phase == CONN_WRITING) &&
                (!oldest || conn->since_ms <= oldest->since_ms)) /* of equals the one that came first: it lies behind */
                oldest = conn;
        if (!oldest)
            return;
        s_cut(self, oldest);
    }
}

int64_t conns_due_ms(const conns_t *self)
{
    int64_t due = INT64_MAX;
    for (const conn_t *conn = self->first; conn; conn = conn->next)
        if (s_due_ms(conn) < due)
            due = s_due_ms(conn);
    return due;
}
