#include "local/place.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/buf.h"
#include "common/base/file.h"
#include "common/base/mem.h"

enum {
    HOSTS_MAX = 1 << 22,
    TRIES = 64,
    NET_MIN = 16,
    NET_MAX = 250,
    PORT_MIN = 16000, /* below those that Linux gives out by itself (ip_local_port_range) */
    PORTS = 64        /* of a run, before it takes any                                     */
};

/* ---- folders and words ---------------------------------------------------------------------------------------------------- */

char *place_folder(const place_t *self, const char *fmt, ...)
{
    char name[PATH_MAX / 2];
    va_list args;
    va_start(args, fmt);
    vsnprintf(name, sizeof name, fmt, args);
    va_end(args);
    char *path = tt_sprintf("%s/%s", self->run_dir, name);
    for (char *slash = path + strlen(self->run_dir) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        (void)mkdir(path, 0755); /* who uses it sees when it is not there */
        *slash = '/';
    }
    (void)mkdir(path, 0755);
    return path;
}

void place_say(place_t *self, const char *fmt, ...)
{
    char text[2048];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (json_object_get(self->said, text) || json_object_set_new(self->said, text, json_true()) != 0)
        return;
    if (self->say)
        self->say(self->ctx, text);
}

/* ---- addresses ------------------------------------------------------------------------------------------------------------- */

/*  Where a run begins to look for a net of its own. */
static unsigned s_first_net(void)
{
    return NET_MIN + (unsigned)getpid() % (NET_MAX - NET_MIN);
}

void place_address(const place_t *self, unsigned n, char out[16])
{
    snprintf(out, 16, "127.%u.%u.%u", self->net & 255, n % 254 + 1, n / 254 % 254 + 1);
}

static bool s_bindable(uint16_t *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(*port)};
    socklen_t size = sizeof address;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool ok = fd >= 0 && bind(fd, (struct sockaddr *)&address, size) == 0 &&
                    getsockname(fd, (struct sockaddr *)&address, &size) == 0;
    if (fd >= 0)
        close(fd);
    *port = ntohs(address.sin_port);
    return ok;
}

/*  port: 0 = any. */
static bool s_bindable_row(uint16_t *port, unsigned count)
{
    bool ok = s_bindable(port) && *port + count <= 65536;
    for (unsigned i = 1; ok && i < count; i++) {
        uint16_t next = (uint16_t)(*port + i);
        ok = s_bindable(&next);
    }
    return ok;
}

/*  A pod binds its port long after it was chosen, so the run's own come first: the kernel gives those to nobody else. */
tt_status_t place_ports(place_t *self, uint16_t *first, unsigned count)
{
    while (self->next_port + count <= PORTS) {
        uint16_t port = (uint16_t)(PORT_MIN + (self->net - NET_MIN) * PORTS + self->next_port);
        const bool ok = s_bindable_row(&port, count);
        self->next_port += ok ? count : 1;
        if (ok) {
            *first = port;
            return TT_OK;
        }
    }
    for (int tries = 0; tries < TRIES; tries++) {
        uint16_t port = 0;
        if (s_bindable_row(&port, count)) {
            *first = port;
            return TT_OK;
        }
    }
    return tt_err(TT_UNAVAILABLE, "no %u free ports in a row", count);
}

bool place_next_net(place_t *self)
{
    self->net = self->net + 1 < NET_MAX ? self->net + 1 : NET_MIN;
    return self->net != s_first_net();
}

/* ---- names ----------------------------------------------------------------------------------------------------------------- */

char *place_hosts_file(const place_t *self)
{
    return tt_sprintf("%s/hosts", self->run_dir);
}

static void s_print_host(tt_buf_t *out, const place_t *self, const char *pod, const json_t *host)
{
    const char *ip = json_string_value(json_object_get(host, "ip")), *ns = self->namespace_;
    const char *subdomain = json_string_value(json_object_get(host, "subdomain"));
    (void)tt_buf_printf(out, "%s %s.%s %s %s.%s.svc %s.%s.svc.cluster.local", ip, pod, ns, pod, pod, ns, pod, ns);
    if (subdomain)
        (void)tt_buf_printf(out, " %s.%s %s.%s.%s.svc.cluster.local", pod, subdomain, pod, subdomain, ns);
    (void)tt_buf_str(out, "\n");
}

/*  Written in place, and cut to its length last: pods have this very file as their /etc/hosts, and may look at any time. */
static void s_write_hosts(place_t *self)
{
    tt_buf_t text;
    const char *pod;
    json_t *host;
    char *path = place_hosts_file(self);
    tt_buf_init(&text, HOSTS_MAX);
    (void)tt_buf_read_file(&text, "/etc/hosts");
    if (self->named)
        (void)tt_buf_printf(
            &text, "\n127.%u.0.1 di-server.di-system di-server.di-system.svc.cluster.local\n", self->net);
    json_object_foreach(self->hosts, pod, host)
    {
        s_print_host(&text, self, pod, host);
    }
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd >= 0 && (!tt_file_write(fd, tt_buf_text(&text), text.size, NULL) || ftruncate(fd, (off_t)text.size) != 0))
        place_say(self, "%s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    free(path);
    tt_buf_free(&text);
}

void place_name_server(place_t *self, bool there)
{
    self->named = there;
    s_write_hosts(self);
}

void place_host(place_t *self, const char *pod, const char *ip, const char *subdomain)
{
    json_t *host = json_pack("{s:s}", "ip", ip);
    if (subdomain)
        json_object_set_new(host, "subdomain", json_string(subdomain));
    json_object_set_new(self->hosts, pod, host);
    s_write_hosts(self);
}

void place_forget(place_t *self, const char *pod)
{
    if (json_object_del(self->hosts, pod) == 0)
        s_write_hosts(self);
}

char *place_url(const place_t *self, const char *pod, const char *ip, int port)
{
    return self->kind ? tt_sprintf("%s.%s:%d", pod, self->namespace_, port) : tt_sprintf("%s:%d", ip, port);
}

json_t *place_object(const place_t *self, const char *kind, const char *name)
{
    size_t i;
    json_t *object;
    json_array_foreach((json_t *)(uintptr_t)self->objects, i, object)
    {
        const char *is = json_string_value(json_object_get(object, "kind"));
        const char *called = json_string_value(json_object_get(json_object_get(object, "metadata"), "name"));
        if (is && called && name && strcmp(is, kind) == 0 && strcmp(called, name) == 0)
            return object;
    }
    return NULL;
}

/* ---- life ------------------------------------------------------------------------------------------------------------------ */

tt_status_t place_new(place_t **self_p, const char *run_dir, const char *namespace_, const char *job, bool namespaces,
    bool limits, local_say_fn say, void *ctx)
{
    place_t *self = tt_new0(sizeof *self);
    self->next = 1; /* 0 is for whom the kind says: front_machine_t */
    self->run_dir = tt_strdup(run_dir);
    self->namespace_ = tt_strdup(namespace_);
    self->job = tt_strdup(job);
    self->say = say;
    self->ctx = ctx;
    self->hosts = json_object();
    self->said = json_object();
    self->net = s_first_net();
    self->kind = namespaces ? tt_steps_allowed() : 0;
    char *name = tt_sprintf("%s-%d", job, (int)getpid());
    if (limits && limits_new(&self->limits, name) != TT_OK)
        place_say(self, "resource limits are not held: %s", tt_err_text());
    free(name);
    *self_p = self;
    return TT_OK;
}

void place_destroy(place_t **self_p)
{
    place_t *self = *self_p;
    if (!self)
        return;
    limits_destroy(&self->limits);
    json_decref(self->hosts);
    json_decref(self->said);
    free(self->run_dir);
    free(self->namespace_);
    free(self->job);
    free(self);
    *self_p = NULL;
}
