#include "elasticdl/local.h"
#include <arpa/inet.h>
#include <jansson.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/base/buf.h"
#include "common/base/file.h"
#include "common/base/mem.h"
#include "controller/process.h"

enum { AGENT_JSON = 4096, KILL_AFTER_MS = 5000, LOOK_MS = 100, PORT_MIN = 10000, PORTS = 6000, TRIES = 256 };

/*  A member's agent. */
typedef struct {
    uint64_t id;
    char *folder;
    int port_fd, port; /* port_fd: -1 = let go */
    bool ending;
} agent_t;

typedef struct {
    edl_place_t base;
    tt_substrate_t *substrate;
    char *dir, *program, *python;
    int grace_s;
    agent_t *agents;
    size_t count;
} local_place_t;

static void s_drop(local_place_t *self, size_t i)
{
    if (self->agents[i].port_fd >= 0)
        close(self->agents[i].port_fd);
    free(self->agents[i].folder);
    self->agents[i] = self->agents[--self->count];
}

static void s_destroy(edl_place_t **self_p)
{
    local_place_t *self = (local_place_t *)*self_p;
    if (!self)
        return;
    if (self->substrate)
        self->substrate->ops->destroy(&self->substrate);
    while (self->count)
        s_drop(self, self->count - 1);
    free(self->agents);
    free(self->base.run_dir);
    free(self->dir);
    free(self->program);
    free(self->python);
    free(self);
    *self_p = NULL;
}

/* ---- a member is made ---------------------------------------------------------------------------------------------------- */

/*  The program binds its port long after it was let go, so it is none of those that Linux gives out by itself (ip_local_port_range), and none of
 *  a run's (local/place.c). 0: any, where those are taken. */
static uint16_t s_port(int tries)
{
    return tries < TRIES ? (uint16_t)(PORT_MIN + randombytes_uniform(PORTS)) : 0;
}

static bool s_bind(int fd, uint16_t port, int *out)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    socklen_t size = sizeof at;
    if (bind(fd, (struct sockaddr *)&at, size) != 0 || getsockname(fd, (struct sockaddr *)&at, &size) != 0)
        return false;
    *out = ntohs(at.sin_port);
    return true;
}

/*  A port that is free on every address, bound and not listened at: nobody else gets it. */
static tt_status_t s_hold_port(int *fd_out, int *port)
{
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool bound = false;
    for (int tries = 0; fd >= 0 && !bound && tries <= TRIES; tries++)
        bound = s_bind(fd, s_port(tries), port);
    if (bound) {
        *fd_out = fd;
        return TT_OK;
    }
    const tt_status_t status = tt_err_errno(TT_OS, "a port for the program");
    if (fd >= 0)
        close(fd);
    return status;
}

static tt_status_t s_start(local_place_t *self, const char *log, const char *member, const char *folder, uint64_t *id)
{
    char grace[16], *output = tt_sprintf("%s/outputs.log", folder), *token = tt_sprintf("%s/token", self->base.run_dir);
    snprintf(grace, sizeof grace, "%d", self->grace_s);
    const char *const words[] = {"pod-agent", "--listen", "127.0.0.1:0", "--announce", folder, "--member", member,
        "--token", token, "--dir", self->dir, "--program", self->program, "--output", output, "--grace", grace,
        self->python ? "--python" : NULL, self->python};
    char *args[TT_COUNT(words) + 1] = {0};
    for (size_t i = 0; i < TT_COUNT(words) && words[i]; i++)
        args[i] = tt_expand_literal(words[i]);
    const tt_template_t template_ = {.args = args};
    const tt_replica_spec_t spec = {.job = "elasticdl", .role = "agent", .template_ = &template_, .log = log};
    const tt_status_t status = self->substrate->ops->start(self->substrate, &spec, id);
    for (size_t i = 0; i < TT_COUNT(words); i++)
        free(args[i]);
    free(output);
    free(token);
    return status;
}

static tt_status_t s_make(edl_place_t *base, const edl_task_t *task, int i, uint64_t *id)
{
    local_place_t *self = (local_place_t *)base;
    agent_t agent = {.port_fd = -1};
    char folder[EDL_TASK_FOLDER], member[16];
    edl_task_folder(task, folder);
    edl_task_member_name(task, i, member);
    agent.folder = tt_sprintf("%s/%s/%s", self->base.run_dir, folder, member);
    char *log = tt_sprintf("%s-%s", folder, member);
    tt_status_t status = tt_file_make_path(agent.folder, 0755);
    if (status == TT_OK)
        status = s_hold_port(&agent.port_fd, &agent.port);
    if (status == TT_OK)
        status = s_start(self, log, member, agent.folder, &agent.id);
    free(log);
    self->agents = tt_realloc(self->agents, tt_mul(self->count + 1, sizeof *self->agents));
    self->agents[self->count++] = agent;
    if (status != TT_OK) {
        s_drop(self, self->count - 1);
        return status;
    }
    *id = agent.id;
    return TT_OK;
}

/* ---- and found, and ended -------------------------------------------------------------------------------------------------- */

static agent_t *s_agent(const local_place_t *self, uint64_t id)
{
    for (size_t i = 0; i < self->count; i++)
        if (self->agents[i].id == id)
            return &self->agents[i];
    return NULL;
}

/*  Where agent.json says. */
static tt_status_t s_read_url(char url[128], const char *folder)
{
    char *path = tt_sprintf("%s/agent.json", folder);
    tt_buf_t text;
    tt_buf_init(&text, AGENT_JSON);
    tt_status_t status = tt_buf_read_file(&text, path);
    json_t *told = status == TT_OK ? json_loads(tt_buf_text(&text), 0, NULL) : NULL;
    const char *said = json_string_value(json_object_get(told, "url"));
    if (status == TT_NOT_FOUND)
        status = TT_AGAIN;
    else if (status == TT_OK && (!said || strlen(said) > 127))
        status = tt_err(TT_DATA, "%s: no url", path);
    else if (status == TT_OK)
        snprintf(url, 128, "%s", said);
    json_decref(told);
    tt_buf_free(&text);
    free(path);
    return status;
}

static tt_status_t s_find(
    edl_place_t *base, uint64_t id, char url[128], char address[ELASTICDL_ADDRESS], char waits[EDL_TASK_WAITS])
{
    const agent_t *agent = s_agent((local_place_t *)base, id);
    waits[0] = '\0';
    if (!agent)
        return tt_err(TT_NOT_FOUND, "the agent has ended");
    TT_TRY(s_read_url(url, agent->folder));
    snprintf(address, ELASTICDL_ADDRESS, "127.0.0.1:%d", agent->port);
    return TT_OK;
}

static void s_release(edl_place_t *base, uint64_t id)
{
    agent_t *agent = s_agent((local_place_t *)base, id);
    if (!agent || agent->port_fd < 0)
        return;
    close(agent->port_fd);
    agent->port_fd = -1;
}

/*  The agent gives the program its grace; it is killed itself when it does not end soon after that. */
static void s_end(edl_place_t *base, uint64_t id)
{
    local_place_t *self = (local_place_t *)base;
    agent_t *agent = s_agent(self, id);
    if (!agent)
        return;
    agent->ending = true;
    self->substrate->ops->stop(self->substrate, id, self->grace_s * 1000 + KILL_AFTER_MS);
}

static bool s_gone(edl_place_t *base, uint64_t *id, char reason[EDL_TASK_WAITS])
{
    local_place_t *self = (local_place_t *)base;
    tt_replica_event_t event;
    size_t count = 1;
    self->substrate->ops->poll(self->substrate, &event, &count);
    if (count == 0)
        return false;
    *id = event.id;
    snprintf(reason, EDL_TASK_WAITS, "its agent has ended: %.200s%s", event.reason, event.why);
    for (size_t i = 0; i < self->count; i++)
        if (self->agents[i].id == event.id) {
            s_drop(self, i);
            break;
        }
    return true;
}

/*  The substrate's graces are looked at so often; ends come as signals. */
static int64_t s_due_ms(const edl_place_t *base)
{
    const local_place_t *self = (const local_place_t *)base;
    for (size_t i = 0; i < self->count; i++)
        if (self->agents[i].ending)
            return LOOK_MS;
    return -1;
}

/* ---- life ---------------------------------------------------------------------------------------------------------------- */

static const edl_place_ops_t s_ops = {
    .make = s_make,
    .find = s_find,
    .release = s_release,
    .end = s_end,
    .gone = s_gone,
    .due_ms = s_due_ms,
    .destroy = s_destroy,
};

tt_status_t local_place_new(edl_place_t **self_p, const local_place_opts_t *opts)
{
    local_place_t *self = tt_new0(sizeof *self);
    edl_place_t *base = &self->base;
    self->base = (edl_place_t){.ops = &s_ops, .address = "127.0.0.1"};
    self->base.run_dir = realpath(opts->run_dir, NULL);
    self->dir = realpath(opts->dir, NULL);
    self->program = tt_strdup(opts->program ? opts->program : "exec.py");
    self->python = tt_strdup(opts->python);
    self->grace_s = opts->grace_s;
    tt_status_t status = TT_OK;
    if (!self->base.run_dir || !self->dir)
        status = tt_err_errno(TT_NOT_FOUND, "%s", self->base.run_dir ? opts->dir : opts->run_dir);
    if (status == TT_OK)
        status = token_take(self->base.token, self->base.run_dir);
    if (status == TT_OK)
        status = tt_process_substrate_new(&self->substrate, self->base.run_dir, tt_clock_or_real(opts->clock));
    if (status != TT_OK)
        s_destroy(&base);
    else
        *self_p = base;
    return status;
}
