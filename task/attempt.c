#include "task/attempt.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/buf.h"
#include "common/base/mem.h"
#include "task/cluster.h"
#include "task/place.h"
#include "task/survivors.h"

enum { LINE_MAX_BYTES = 1 << 20, MARK_MAX = 4200 };

/*  $1: the command, $2: the file for its exit code, $3: its log. SIGTERM goes to all that the command started, and says that its
 *  end is not its own doing; then only success counts.
 *
 *  $4: on a cluster, the working directory. There an attempt can begin twice: a Job that its queue takes back, or whose pod makes
 *  room or leaves with its node, is given another pod. One that had ended has ended; what another wrote is put aside, as that of
 *  attempts is. The substrate replaces $(NAME) of the pod's own variables only: arithmetic stays what it is. */
static const char s_shell[] =
    "exec >>\"$3\" 2>&1 || exit 74\n"
    "if [ -n \"$4\" ]; then\n"
    "    [ -f \"$2\" ] && read -r code <\"$2\" && exit \"$code\"\n"
    "    before=\n"
    "    for entry in .[!.]* ..?* *; do\n"
    "        if [ -e \"$entry\" ] || [ -L \"$entry\" ]; then before=1; fi\n"
    "    done\n"
    "    if [ -n \"$before\" ]; then\n"
    "        while [ -e \"$4.attempt$TT_TASK_ATTEMPT.$before\" ]; do before=$((before + 1)); done\n"
    "        mv \"$4\" \"$4.attempt$TT_TASK_ATTEMPT.$before\" && mkdir \"$4\" && cd \"$4\" || exit 74\n"
    "    fi\n"
    "    unset before entry\n"
    "fi\n"
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

/*  What an attempt is started with; the template points into the rest. */
typedef struct {
    char log[PLACE_MAX], exit_file[PLACE_MAX], dir[PLACE_MAX], volume[PLACE_MAX];
    char number[16], attempt[16], et[32], eta[32], mark[48];
    char *command[9];
    tt_env_var_t env[16];
    tt_template_t template_;
} start_t;

/*  As the job sees them. */
static void s_paths(start_t *self, const task_t *task, size_t at, const char *root)
{
    const size_t above = strlen(root) - strlen(task->name);
    place_log_path(self->log, root, (uint32_t)at);
    place_exit_path(self->exit_file, root, (uint32_t)at, task->rows[at].attempt);
    place_job_path(self->dir, root, (uint32_t)at);
    snprintf(self->volume, sizeof self->volume, "%.*s", above > 1 ? (int)above - 1 : 1, root);
}

static void s_numbers(start_t *self, const task_t *task, size_t at)
{
    snprintf(self->number, sizeof self->number, "%zu", at);
    snprintf(self->mark, sizeof self->mark, "%lld.%u", (long long)task->states.jobs[at].id, task->rows[at].attempt);
    snprintf(self->attempt, sizeof self->attempt, "%u", task->rows[at].attempt);
    snprintf(self->et, sizeof self->et, "%lld", (long long)task->et);
    snprintf(self->eta, sizeof self->eta, "%lld", (long long)task->eta);
}

/*  On a cluster a card is given by the node, and said by its container's runtime. */
static void s_environment(start_t *self, const attempt_place_t *place, const task_t *task, const char *slot)
{
    tt_template_t *out = &self->template_;
    if (!place->cluster) {
        s_env(out, SURVIVORS_OF_REGISTRY, place->registry);
        s_env(out, SURVIVORS_OF_ATTEMPT, self->mark);
    }
    s_env(out, "TT_TASK", task->name);
    s_env(out, "TT_TASK_JOB", self->number);
    s_env(out, "TT_TASK_ATTEMPT", self->attempt);
    s_env(out, "VOLUME", self->volume);
    s_env(out, "CUDA_DEVICE_ORDER", "PCI_BUS_ID");
    if (!task->gpu || !place->cluster)
        s_env(out, "CUDA_VISIBLE_DEVICES", task->gpu ? slot + strlen("gpu:") : "-1");
    if (task->et >= 0)
        s_env(out, "TT_ET", self->et);
    if (task->eta >= 0)
        s_env(out, "TT_ETA", self->eta);
}

static tt_status_t s_start_on(
    const attempt_place_t *place, const task_t *task, size_t at, const start_t *start, tt_replica_id_t *out)
{
    if (place->cluster) {
        const cluster_job_t job = {.job = task->states.jobs[at].id,
            .attempt = task->rows[at].attempt,
            .task = task->name,
            .image = task->image,
            .template_ = &start->template_,
            .gpu = task->gpu};
        return cluster_start(place->substrate, &job, out);
    }
    const tt_replica_spec_t spec = {
        .job = task->name, .role = "job", .index = (uint32_t)at, .template_ = &start->template_, .log = "shells"};
    return place->substrate->ops->start(place->substrate, &spec, out);
}

static tt_status_t s_start_line(const attempt_place_t *place, const task_t *task, size_t at, const char *slot,
    const char *root, const char *line, tt_replica_id_t *out)
{
    start_t *self = tt_new0(sizeof *self);
    s_paths(self, task, at, root);
    s_numbers(self, task, at);
    char *const command[] = {"/bin/sh", "-c", (char *)s_shell, "tutti-job", (char *)line, self->exit_file, self->log,
        place->cluster ? self->dir : "", NULL};
    memcpy(self->command, command, sizeof command);
    self->template_ = (tt_template_t){.command = self->command, .working_dir = self->dir, .env = self->env};
    s_environment(self, place, task, slot);
    const tt_status_t status = s_start_on(place, task, at, self, out);
    free(self);
    return status;
}

tt_status_t attempt_start(
    const attempt_place_t *place, const task_t *task, size_t at, const char *slot, bool again, tt_replica_id_t *out)
{
    char inside[PLACE_MAX];
    tt_buf_t line, shielded;
    tt_buf_init(&line, LINE_MAX_BYTES);
    tt_buf_init(&shielded, 2 * LINE_MAX_BYTES);
    snprintf(inside, sizeof inside, CLUSTER_VOLUME "/%s", task->name);
    const char *root = place->cluster ? inside : task->dir;
    tt_status_t status = again ? TT_OK : place_attempt(task->dir, (uint32_t)at, task->rows[at].attempt);
    if (status == TT_OK)
        status = task_line(task, at, root, &line);
    if (status == TT_OK)
        status = s_shield(&shielded, tt_buf_text(&line));
    if (status == TT_OK)
        status = s_start_line(place, task, at, slot, root, tt_buf_text(&shielded), out);
    tt_buf_free(&line);
    tt_buf_free(&shielded);
    return status;
}

tt_status_t attempt_end(const char *registry, int64_t job, uint32_t attempt, int patience_ms)
{
    char all[MARK_MAX], own[64];
    snprintf(all, sizeof all, SURVIVORS_OF_REGISTRY "=%s", registry);
    snprintf(own, sizeof own, SURVIVORS_OF_ATTEMPT "=%lld.%u", (long long)job, attempt);
    return survivors_end(all, own, patience_ms);
}
