#include "task/attempt.h"
#include <stdio.h>
#include <string.h>
#include "common/base/buf.h"
#include "task/place.h"
#include "task/survivors.h"

enum { LINE_MAX_BYTES = 1 << 20, MARK_MAX = 4200 };

typedef struct {
    tt_substrate_t *substrate;
    const char *registry, *slot;
} start_t;

/*  $1: the command, $2: the file for its exit code, $3: its log. SIGTERM goes to all that the command started, and says that its
 *  end is not its own doing; then only success counts. */
static const char s_shell[] = "exec >>\"$3\" 2>&1 || exit 74\n"
                              "unset TT_RUN_DIR TT_ROLE TT_INDEX told\n"
                              "/bin/sh -c \"$1\" &\n"
                              "child=$!\n"
                              "trap 'told=1; trap \"\" TERM; kill -TERM 0' TERM\n"
                              "wait $child; code=$?\n"
                              "while kill -0 $child 2>/dev/null; do wait $child; code=$?; done\n"
                              "if [ $code = 0 ] || [ -z \"$told\" ]; then\n"
                              "    echo $code >\"$2.new\" && mv -f \"$2.new\" \"$2\"\n"
                              "fi\n"
                              "exit $code\n";

/*  The substrate replaces $(NAME) and $$ in arguments; a shell's line is to stay what it is. */
static tt_status_t s_shield(tt_buf_t *out, const char *line)
{
    for (; *line; line++) {
        TT_TRY(tt_buf_add(out, line, 1));
        if (*line == '$')
            TT_TRY(tt_buf_add(out, "$", 1));
    }
    return TT_OK;
}

static void s_env(tt_template_t *out, const char *name, const char *value)
{
    out->env[out->env_count++] = (tt_env_var_t){(char *)name, (char *)value};
}

static tt_status_t s_start_line(
    const start_t *self, const task_t *task, size_t at, const char *line, tt_replica_id_t *out)
{
    char log[PLACE_MAX], exit_file[PLACE_MAX], dir[PLACE_MAX], number[16], attempt[16], et[32], eta[32], mark[48],
        volume[PLACE_MAX];
    char *command[] = {"/bin/sh", "-c", (char *)s_shell, "tutti-job", (char *)line, exit_file, log, NULL};
    tt_env_var_t env[16];
    place_log_path(log, task->dir, (uint32_t)at);
    place_exit_path(exit_file, task->dir, (uint32_t)at, task->rows[at].attempt);
    place_job_path(dir, task->dir, (uint32_t)at);
    snprintf(volume, sizeof volume, "%.*s", (int)(strlen(task->dir) - strlen(task->name)), task->dir);
    snprintf(number, sizeof number, "%zu", at);
    snprintf(mark, sizeof mark, "%lld.%u", (long long)task->states.jobs[at].id, task->rows[at].attempt);
    snprintf(attempt, sizeof attempt, "%u", task->rows[at].attempt);
    snprintf(et, sizeof et, "%lld", (long long)task->et);
    snprintf(eta, sizeof eta, "%lld", (long long)task->eta);
    tt_template_t template_ = {.command = command, .working_dir = dir, .env = env};
    s_env(&template_, SURVIVORS_OF_REGISTRY, self->registry);
    s_env(&template_, SURVIVORS_OF_ATTEMPT, mark);
    s_env(&template_, "TT_TASK", task->name);
    s_env(&template_, "TT_TASK_JOB", number);
    s_env(&template_, "TT_TASK_ATTEMPT", attempt);
    s_env(&template_, "VOLUME", volume);
    s_env(&template_, "CUDA_DEVICE_ORDER", "PCI_BUS_ID");
    s_env(&template_, "CUDA_VISIBLE_DEVICES", task->gpu ? self->slot + strlen("gpu:") : "-1");
    if (task->et >= 0)
        s_env(&template_, "TT_ET", et);
    if (task->eta >= 0)
        s_env(&template_, "TT_ETA", eta);
    const tt_replica_spec_t spec = {
        .job = task->name, .role = "job", .index = (uint32_t)at, .template_ = &template_, .log = "shells"};
    return self->substrate->ops->start(self->substrate, &spec, out);
}

tt_status_t attempt_start(tt_substrate_t *substrate, const char *registry, const task_t *task, size_t at,
    const char *slot, tt_replica_id_t *out)
{
    const start_t self = {substrate, registry, slot};
    tt_buf_t line, shielded;
    tt_buf_init(&line, LINE_MAX_BYTES);
    tt_buf_init(&shielded, 2 * LINE_MAX_BYTES);
    tt_status_t status = place_attempt(task->dir, (uint32_t)at, task->rows[at].attempt);
    if (status == TT_OK)
        status = task_line(task, at, &line);
    if (status == TT_OK)
        status = s_shield(&shielded, tt_buf_text(&line));
    if (status == TT_OK)
        status = s_start_line(&self, task, at, tt_buf_text(&shielded), out);
    tt_buf_free(&line);
    tt_buf_free(&shielded);
    return status;
}

tt_status_t attempt_end(const char *registry, int64_t job, uint32_t attempt)
{
    char all[MARK_MAX], own[64];
    snprintf(all, sizeof all, SURVIVORS_OF_REGISTRY "=%s", registry);
    snprintf(own, sizeof own, SURVIVORS_OF_ATTEMPT "=%lld.%u", (long long)job, attempt);
    return survivors_end(all, own);
}
