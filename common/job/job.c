#include "common/job/job.h"
#include <stdlib.h>
#include <string.h>

/*  ---- freeing: everything belongs to the job ---- */

static void s_free_words(char **words)
{
    for (char **word = words; words && *word; word++)
        free(*word);
    free(words);
}

static void s_free_template(tt_template_t *self)
{
    for (size_t i = 0; i < self->env_count; i++) {
        free(self->env[i].name);
        free(self->env[i].value);
    }
    s_free_words(self->command);
    s_free_words(self->args);
    free(self->working_dir);
    free(self->env);
}

void tt_job_destroy(tt_job_t **self_p)
{
    tt_job_t *self = *self_p;
    *self_p = NULL;
    if (!self)
        return;
    for (size_t i = 0; i < self->role_count; i++) {
        free(self->roles[i].name);
        s_free_words(self->roles[i].depends_on);
        s_free_template(&self->roles[i].template_);
    }
    free(self->roles);
    free(self->name);
    free(self);
}

const char *tt_job_end_name(tt_job_phase_t phase)
{
    return phase == TT_JOB_SUCCEEDED ? "succeeded" : phase == TT_JOB_STOPPED ? "stopped" : "failed";
}

/*  ---- checking ---- */

static size_t s_index(const tt_job_t *self, const char *name)
{
    size_t i = 0;
    while (i < self->role_count && strcmp(self->roles[i].name, name) != 0)
        i++;
    return i;
}

static tt_status_t s_check_role(const tt_job_t *self, size_t at)
{
    const tt_role_t *role = &self->roles[at];
    if (!role->name || !*role->name)
        return tt_err(TT_CONFIG, "job '%s': role %zu has no name", self->name, at);
    if (s_index(self, role->name) != at)
        return tt_err(TT_CONFIG, "job '%s': two roles are named '%s'", self->name, role->name);
    if (role->min_replicas > role->max_replicas || role->replicas < role->min_replicas ||
        role->replicas > role->max_replicas)
        return tt_err(TT_CONFIG, "job '%s': role '%s': %u replicas are outside %u .. %u", self->name, role->name,
            role->replicas, role->min_replicas, role->max_replicas);
    for (char **dependency = role->depends_on; dependency && *dependency; dependency++)
        if (s_index(self, *dependency) == self->role_count)
            return tt_err(TT_CONFIG, "job '%s': role '%s' depends on '%s', which is no role of this job", self->name,
                role->name, *dependency);
    return TT_OK;
}

/*  Could the role start, given those that have started? */
static bool s_can_start(const tt_job_t *self, size_t at, const bool *started)
{
    for (char **dependency = self->roles[at].depends_on; dependency && *dependency; dependency++)
        if (!started[s_index(self, *dependency)])
            return false;
    return true;
}

/*  Start roles for as long as one can; what is left waits in a circle. */
static tt_status_t s_check_order(const tt_job_t *self)
{
    bool *started = calloc(self->role_count, sizeof *started);
    TT_CHECK(started);
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t i = 0; i < self->role_count; i++) {
            if (!started[i] && s_can_start(self, i, started))
                started[i] = moved = true;
        }
    }
    size_t left = 0;
    while (left < self->role_count && started[left])
        left++;
    free(started);
    if (left < self->role_count)
        return tt_err(TT_CONFIG, "job '%s': role '%s' can never start: its depends_on leads round in a circle",
            self->name, self->roles[left].name);
    return TT_OK;
}

tt_status_t tt_job_check(const tt_job_t *self)
{
    if (!self->name || !*self->name)
        return tt_err(TT_CONFIG, "the job has no name");
    if (self->role_count == 0)
        return tt_err(TT_CONFIG, "job '%s' has no role", self->name);
    for (size_t i = 0; i < self->role_count; i++)
        TT_TRY(s_check_role(self, i));
    return s_check_order(self);
}
