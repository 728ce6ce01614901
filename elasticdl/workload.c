#include "elasticdl/workload.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/json.h"
#include "common/base/mem.h"
#include "controller/process.h"
#include "elasticdl/request.h"
#define TT_LOG_COMPONENT "workload"
#include "common/base/log.h"

struct workload {
    tt_substrate_t *substrate;
    const tt_clock_t *clock;
    char *dir, *program, *python, *output;
    char *num_workers, *tf_config; /* NULL: not configured */
    tt_replica_id_t id;            /* 0 = does not run     */
    bool ended, stopping;
    int64_t kill_at_ms;
    int exit_code;
    char reason[560];
};

/* ---- life ------------------------------------------------------------------------------------------------------------ */

/*  Is there a program of this name in the PATH? */
static bool s_in_path(const char *name)
{
    bool found = false;
    char *path = tt_strdup(getenv("PATH")), *rest = path;
    for (char *folder; !found && (folder = strsep(&rest, ":")) != NULL;) {
        char *file = tt_sprintf("%s/%s", *folder ? folder : ".", name);
        found = access(file, X_OK) == 0;
        free(file);
    }
    free(path);
    return found;
}

tt_status_t workload_new(workload_t **self_p, const workload_opts_t *opts)
{
    workload_t *self = tt_new0(sizeof *self);
    self->clock = tt_clock_or_real(opts->clock);
    self->dir = realpath(opts->dir, NULL);
    if (!self->dir) {
        free(self);
        return tt_err_errno(TT_NOT_FOUND, "working directory %s", opts->dir);
    }
    self->program = tt_strdup(opts->program);
    self->python = tt_strdup(opts->python ? opts->python : s_in_path("python") ? "python" : "python3");
    self->output = opts->output ? tt_strdup(opts->output) : tt_sprintf("%s/outputs.log", self->dir);
    const tt_status_t status = tt_process_substrate_new(&self->substrate, NULL, self->clock);
    if (status != TT_OK)
        workload_destroy(&self);
    else
        *self_p = self;
    return status;
}

void workload_destroy(workload_t **self_p)
{
    workload_t *self = *self_p;
    if (!self)
        return;
    if (self->substrate)
        self->substrate->ops->destroy(&self->substrate);
    free(self->dir);
    free(self->program);
    free(self->python);
    free(self->output);
    free(self->num_workers);
    free(self->tf_config);
    free(self);
    *self_p = NULL;
}

/* ---- what it is told --------------------------------------------------------------------------------------------------- */

static tt_status_t s_num_workers(char **out, const json_t *value)
{
    char number[32] = "";
    if (json_is_integer(value))
        snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    const char *text = json_is_string(value) ? json_string_value(value) : number;
    char *end = NULL;
    const long count = strtol(text, &end, 10);
    if (!value)
        return tt_err(TT_INVALID, "NUM_WORKERS is missing");
    if (text[0] < '1' || text[0] > '9' || *end || count > ELASTICDL_MEMBERS)
        return tt_err(TT_INVALID, "NUM_WORKERS: expected a number from 1 to %d", ELASTICDL_MEMBERS);
    *out = tt_strdup(text);
    return TT_OK;
}

/*  Text stays as it came. */
static tt_status_t s_tf_config(char **out, const json_t *value)
{
    if (!value)
        return tt_err(TT_INVALID, "TF_CONFIG is missing");
    if (!json_is_object(value) && !json_is_string(value))
        return tt_err(TT_INVALID, "TF_CONFIG: expected an object, or its text");
    char *text = json_is_string(value) ? tt_strdup(json_string_value(value)) : json_dumps(value, JSON_COMPACT);
    TT_CHECK(text != NULL);
    if (strlen(text) > WORKLOAD_TF_CONFIG) {
        free(text);
        return tt_err(TT_INVALID, "TF_CONFIG: expected text of at most %d bytes", WORKLOAD_TF_CONFIG);
    }
    *out = text;
    return TT_OK;
}

static tt_status_t s_configure(workload_t *self, const json_t *body)
{
    char *num_workers = NULL, *tf_config = NULL;
    if (!json_is_object(body))
        return tt_err(TT_INVALID, "the body is not a JSON object");
    tt_status_t status = s_num_workers(&num_workers, json_object_get(body, "NUM_WORKERS"));
    if (status == TT_OK)
        status = s_tf_config(&tf_config, json_object_get(body, "TF_CONFIG"));
    if (status != TT_OK) {
        free(num_workers);
        return status;
    }
    free(self->num_workers);
    free(self->tf_config);
    self->num_workers = num_workers;
    self->tf_config = tf_config;
    return TT_OK;
}

tt_status_t workload_configure(workload_t *self, const char *body, size_t size)
{
    json_error_t error;
    if (self->id)
        return tt_err(TT_EXISTS, "%s runs: it was started with the config before", self->program);
    json_t *object = json_loadb(body, size, 0, &error);
    if (!object)
        return tt_err(TT_INVALID, "the body is not JSON: line %d: %s", error.line, error.text);
    const tt_status_t status = s_configure(self, object);
    json_decref(object);
    return status;
}

/* ---- it runs ------------------------------------------------------------------------------------------------------------ */

static bool s_is_python(const workload_t *self)
{
    const size_t length = strlen(self->program);
    return length > 3 && strcmp(self->program + length - 3, ".py") == 0;
}

/*  A program that is a file of the working directory is meant, though "." is not in the PATH. Caller frees. */
static char *s_path(const workload_t *self)
{
    char *inside = tt_sprintf("%s/%s", self->dir, self->program);
    if (self->program[0] != '/' && (strchr(self->program, '/') || access(inside, F_OK) == 0))
        return inside;
    free(inside);
    return tt_strdup(self->program);
}

/*  As `>` does. */
static tt_status_t s_truncate(const char *path)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
    if (fd < 0)
        return tt_err_errno(errno == EACCES ? TT_DENIED : TT_IO, "%s", path);
    close(fd);
    return TT_OK;
}

static tt_status_t s_start(workload_t *self)
{
    char *path = s_path(self), *dir = tt_expand_literal(self->dir), *file = tt_expand_literal(path),
         *python = tt_expand_literal(self->python), *program = tt_expand_literal(self->program);
    char *with_python[] = {python, program, NULL}, *alone[] = {file, NULL};
    tt_env_var_t env[] = {
        {"NUM_WORKERS", self->num_workers}, {"TF_CONFIG", self->tf_config},
        {"PYTHONUNBUFFERED", "1"}, /* what it prints is in the file when it is printed */
    };
    const tt_template_t template_ = {.command = s_is_python(self) ? with_python : alone,
        .working_dir = dir,
        .env = env,
        .env_count = TT_COUNT(env) - (getenv("PYTHONUNBUFFERED") != NULL)};
    const tt_replica_spec_t spec = {.role = "exec", .template_ = &template_, .output = self->output};
    tt_status_t status = TT_OK;
    if (s_is_python(self) && access(path, R_OK) != 0)
        status = tt_err_errno(TT_NOT_FOUND, "%s", path);
    if (status == TT_OK)
        status = s_truncate(self->output);
    if (status == TT_OK)
        status = self->substrate->ops->start(self->substrate, &spec, &self->id);
    free(path);
    free(dir);
    free(file);
    free(python);
    free(program);
    return status;
}

tt_status_t workload_run(workload_t *self)
{
    if (self->stopping)
        return tt_err(TT_STOPPED, "%s is not started: the agent ends", self->program);
    if (!self->num_workers)
        return tt_err(TT_STOPPED, "%s is not configured yet: POST /config first", self->program);
    if (self->id)
        return tt_err(TT_EXISTS, "%s runs already", self->program);
    TT_TRY(s_start(self));
    self->ended = false;
    log_info("%s runs in %s, its output is in %s", self->program, self->dir, self->output);
    return TT_OK;
}

void workload_stop(workload_t *self, int grace_ms)
{
    self->stopping = true;
    if (!self->id)
        return;
    self->kill_at_ms = tt_now_ms(self->clock) + grace_ms;
    self->substrate->ops->stop(self->substrate, self->id, grace_ms);
}

bool workload_poll(workload_t *self)
{
    tt_replica_event_t event;
    size_t count = 1;
    self->substrate->ops->poll(self->substrate, &event, &count);
    if (count == 0)
        return false;
    self->id = 0;
    self->ended = true;
    self->exit_code = event.exit_code;
    snprintf(self->reason, sizeof self->reason, "%s%s", event.reason, event.why);
    log_info("%s has ended: %s", self->program, self->reason);
    return true;
}

int64_t workload_due_ms(const workload_t *self)
{
    if (!self->id || !self->stopping)
        return -1;
    const int64_t left = self->kill_at_ms - tt_now_ms(self->clock);
    return left > 0 ? left : 10; /* killed: its end is near */
}

bool workload_runs(const workload_t *self)
{
    return self->id != 0;
}

/* ---- what is said of it ---------------------------------------------------------------------------------------------------- */

/*  Caller frees. */
static char *s_tail(const workload_t *self, size_t tail)
{
    char *text = tt_new0(tail + 1);
    const int fd = self->id || self->ended ? open(self->output, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW) : -1;
    const off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : 0;
    const off_t from = size > (off_t)tail ? size - (off_t)tail : 0;
    const ssize_t got = fd >= 0 ? pread(fd, text, tail, from) : 0;
    if (fd >= 0)
        close(fd);
    for (ssize_t i = 0; i < got; i++)
        text[i] = text[i] ? text[i] : '?';
    return text;
}

json_t *workload_status(const workload_t *self, size_t tail)
{
    const char *state = self->id ? "running" : self->ended ? "ended" : self->num_workers ? "configured" : "idle";
    char *log = s_tail(self, tail < WORKLOAD_TAIL ? tail : WORKLOAD_TAIL);
    json_t *status = json_object();
    json_object_set_new(status, "state", json_string(state));
    json_object_set_new(status, "exit_code", self->ended ? json_integer(self->exit_code) : json_null());
    json_object_set_new(status, "reason", self->ended ? tt_json_text(self->reason) : json_null());
    json_object_set_new(status, "log", tt_json_text(log));
    free(log);
    return status;
}
