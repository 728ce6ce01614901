#include "learner/model.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/limits.h"
#include "common/base/mem.h"
#include "common/job/fit.h"

/*  Who acts in another way than the algorithm says makes other rows than it reads. */
static tt_status_t s_check_actor(const model_t *self)
{
    const tt_actor_t *here = &self->train.actor, said = self->shape.actor;
    const char *wrong = here->kind != said.kind                  ? "kind"
                        : here->dueling != said.dueling          ? "dueling"
                        : here->quantiles != said.quantiles      ? "quantiles"
                        : here->atoms != said.atoms              ? "atoms"
                        : here->v_min != said.v_min              ? "v_min"
                        : here->v_max != said.v_max              ? "v_max"
                        : here->noisy != said.noisy              ? "noisy"
                        : strcmp(here->groups, said.groups) != 0 ? "groups"
                                                                 : NULL;
    if (!wrong)
        return TT_OK;
    return tt_err(
        TT_CONFIG, "job: actor.%s is not what %s says: this is not a resolved config", wrong, self->algorithm->name);
}

static tt_status_t s_options(model_t *self)
{
    tt_config_t *config = NULL;
    TT_TRY(tt_config_parse(&config, self->text, strlen(self->text), "job"));
    self->cfg = tt_new0(self->algorithm->cfg_size);
    tt_status_t status = tt_config_claim(config, self->algorithm->fields, self->cfg);
    if (status == TT_OK)
        status = tt_algorithm_check(self->algorithm, config, &self->train, self->cfg);
    tt_config_destroy(&config);
    if (status == TT_OK)
        self->shape = tt_algorithm_shape(self->algorithm, &self->train, self->cfg);
    return status == TT_OK ? s_check_actor(self) : status;
}

static tt_status_t s_optimisers(model_t *self, const tt_net_spec_t *spec)
{
    TT_TRY(tt_groups_parse(&self->groups, self->train.actor.groups));
    for (uint32_t g = 0; g < tt_net_groups(spec); g++) {
        const tt_opt_spec_t *opt = self->algorithm->opt(self->algo, g);
        self->opt_count[g] = tt_opt_state_count(opt, spec, g);
        TT_TRY(tt_opt_new(&self->opt[g], self->net, g, opt));
        self->opts = g + 1;
    }
    return TT_OK;
}

static tt_status_t s_network(model_t *self, uint32_t place)
{
    tt_net_spec_t spec = tt_train_net(&self->train, self->columns);
    spec.sets = self->shape.sets;
    spec.ride = self->shape.ride;
    TT_TRY(tt_device_open_wish(&self->device, self->train.learner.device, place, self->threads));
    TT_TRY(tt_device_precision(self->device, (tt_precision_t)self->train.learner.precision));
    TT_TRY(tt_stream_new(&self->stream, self->device));
    TT_TRY(tt_net_new(&self->net, self->device, &spec));
    self->params = tt_net_param_count(&spec);
    self->grads = tt_net_grad_count(&spec);
    return s_optimisers(self, &spec);
}

static uint32_t s_threads(const tt_train_cfg_t *train)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (train->learner.threads)
        return train->learner.threads;
    return cores < 1 ? 1 : cores < TT_THREADS_MAX ? (uint32_t)cores : TT_THREADS_MAX;
}

/*  All that can be refused. Nothing large is made before. */
static tt_status_t s_read(model_t *self)
{
    TT_TRY(tt_train_parse(&self->train, self->text, strlen(self->text)));
    TT_TRY(tt_algorithm_find(&self->algorithm, self->train.algorithm.name));
    TT_TRY(s_options(self));
    TT_TRY(tt_train_columns(&self->columns, &self->train));
    return tt_train_fit(NULL, &self->train);
}

static tt_status_t s_open(model_t *self, uint32_t place)
{
    TT_TRY(s_read(self));
    TT_TRY(self->algorithm->create(&self->algo, &self->train, self->columns, self->cfg));
    self->threads = s_threads(&self->train);
    self->batch_steps = (uint64_t)self->train.num_envs * self->train.num_steps;
    return s_network(self, place);
}

tt_status_t model_open(model_t *self, const char *text, uint32_t place)
{
    *self = (model_t){.text = tt_strdup(text)};
    const tt_status_t status = s_open(self, place);
    if (status != TT_OK)
        model_close(self);
    return status;
}

tt_status_t model_check(const char *text)
{
    model_t self = {.text = tt_strdup(text)};
    const tt_status_t status = s_read(&self);
    model_close(&self);
    return status;
}

void model_close(model_t *self)
{
    for (uint32_t g = 0; g < self->opts; g++)
        tt_opt_destroy(&self->opt[g]);
    tt_net_destroy(&self->net);
    tt_stream_destroy(&self->stream);
    tt_device_close(&self->device);
    if (self->algo)
        self->algorithm->destroy(&self->algo);
    tt_columns_destroy(&self->columns);
    free(self->cfg);
    free(self->text);
    *self = (model_t){0};
}

tt_status_t model_init(model_t *self, tt_progress_t progress)
{
    for (uint32_t g = 0; g < self->opts; g++) {
        float *rest = tt_array0(self->opt_count[g], sizeof *rest);
        const tt_status_t status = tt_opt_put(self->opt[g], self->stream, rest, 0);
        free(rest);
        TT_TRY(status);
    }
    return tt_algorithm_init(self->algorithm, self->cfg, self->net, self->stream, self->train.seed, progress);
}
