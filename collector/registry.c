#include "collector/registry.h"
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "collector/envs/envs.h"
#include "collector/guard.h"
#include "collector/patience.h"
#include "collector/gym/gym.h"
#include "collector/vec.h"
#include "common/base/file.h"
#include "common/base/mem.h"
#include "common/config/config.h"
#define TT_LOG_COMPONENT "env"
#include "common/base/log.h"

static const tt_env_ops_t *const s_envs[] = {
#define TT_ENV(name) &tt_env_##name,
#include "collector/envs/envs.def"
#undef TT_ENV
};

const tt_env_ops_t *const *tt_envs(size_t *count)
{
    *count = TT_COUNT(s_envs);
    return s_envs;
}

/* The words of a table, in the only way in which they may be wrong: absent, empty, too long, or not for a terminal. */
static bool s_text_ok(const char *text, size_t max)
{
    const size_t size = text ? strnlen(text, max + 1) : 0;
    for (size_t i = 0; i < size; i++) {
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            return false;
    }
    return size >= 1 && size <= max;
}

static tt_status_t s_check_spaces(const tt_env_ops_t *ops)
{
    tt_columns_t *columns;
    TT_TRY(tt_space_check(&ops->obs, "obs", false));
    TT_TRY(tt_space_check(&ops->action, "action", true));
    TT_TRY(tt_columns_new(&columns, &ops->obs, &ops->action, ops->mask, true));
    tt_columns_destroy(&columns);
    return TT_OK;
}

static tt_status_t s_check_options(const char *path, const tt_env_ops_t *ops)
{
    const tt_env_option_t *option = ops->options;
    if (option && !ops->init && !tt_env_batch(ops))
        return tt_err(TT_INVALID, "%s: options are set without init, which would get them", path);
    for (uint32_t i = 0; option && option->name; option++, i++) {
        if (i == TT_ENV_ARGS_MAX)
            return tt_err(TT_INVALID, "%s: more than %d options; the list ends with name NULL", path, TT_ENV_ARGS_MAX);
        if (!s_text_ok(option->name, 63) || !s_text_ok(option->initial, 255) || !s_text_ok(option->help, 255))
            return tt_err(TT_INVALID,
                "%s: options[%u]: name, initial and help must be 1 to 63, 255 and 255 printable bytes", path, i);
    }
    return TT_OK;
}

static tt_status_t s_check_state(const char *path, const tt_env_ops_t *ops)
{
    if (ops->state_size < 1 || ops->state_size > TT_ENV_MAX_STATE)
        return tt_err(TT_INVALID, "%s: state_size is %zu, must be 1 to %zu; allocate more in init", path,
            ops->state_size, (size_t)TT_ENV_MAX_STATE);
    if (ops->step_many && ops->state_size % 16 != 0)
        return tt_err(
            TT_INVALID, "%s: state_size is %zu, must be a multiple of 16 with step_many", path, ops->state_size);
    if ((ops->fini || ops->plain) && !ops->init)
        return tt_err(TT_INVALID, "%s: %s is set without init", path, ops->fini ? "fini" : "plain");
    if (ops->fini && ops->plain)
        return tt_err(TT_INVALID, "%s: plain is set, but there is a fini: what would it release?", path);
    if (!ops->save != !ops->load)
        return tt_err(TT_INVALID, "%s: save and load must both be set or both be NULL", path);
    if (ops->save && (ops->save_size < 1 || ops->save_size > TT_ENV_MAX_STATE))
        return tt_err(
            TT_INVALID, "%s: save_size is %zu, must be 1 to %zu", path, ops->save_size, (size_t)TT_ENV_MAX_STATE);
    if (tt_vec_save_size(ops, 1) > TT_ENV_STATE_MAX)
        return tt_err(TT_INVALID, "%s: a saved state with its observation is %zu bytes, must be at most %zu", path,
            tt_vec_save_size(ops, 1), (size_t)TT_ENV_STATE_MAX);
    return TT_OK;
}

static tt_status_t s_check_batch(const char *path, const tt_env_batch_ops_t *batch)
{
    const tt_env_ops_t *env = &batch->env;
    if (!batch->open || !batch->send || !batch->recv || !batch->close)
        return tt_err(TT_INVALID, "%s: open, send, recv and close of a batch must not be NULL", path);
    if (!batch->save != !batch->load)
        return tt_err(TT_INVALID, "%s: save and load must both be set or both be NULL", path);
    if (batch->save && (env->save_size < 1 || env->save_size > TT_ENV_MAX_STATE))
        return tt_err(
            TT_INVALID, "%s: save_size is %zu, must be 1 to %zu", path, env->save_size, (size_t)TT_ENV_MAX_STATE);
    if (tt_vec_save_size(env, 1) > TT_ENV_STATE_MAX)
        return tt_err(TT_INVALID, "%s: a saved state with its observation is %zu bytes, must be at most %zu", path,
            tt_vec_save_size(env, 1), (size_t)TT_ENV_STATE_MAX);
    if (env->reset || env->step || env->step_many || env->init || env->fini || env->save || env->load)
        return tt_err(
            TT_INVALID, "%s: a batch has open, send, recv and close; the functions for one env must be NULL", path);
    return TT_OK;
}

static tt_status_t s_check_table(const char *path, const tt_env_ops_t *ops)
{
    if (!ops)
        return tt_err(TT_INVALID, "%s: " TT_ENV_ENTRY "() returned NULL, not a table", path);
    if (ops->abi == 1)
        return tt_err(TT_INVALID,
            "%s: abi 1: it was built against an older collector/env.h. In ABI %d reset and step take tt_env_out_t, "
            "init takes "
            "the config's env.args and spaces have bounds of type double: see docs/guide/add-an-env.md, \"From ABI 1\"",
            path, TT_ENV_ABI);
    if (ops->abi != TT_ENV_ABI && ops->abi != TT_ENV_BATCH_ABI)
        return tt_err(TT_INVALID,
            "%s: is of env ABI %u, this is ABI %d: rebuild it against collector/env.h of this version", path, ops->abi,
            TT_ENV_ABI);
    if (!s_text_ok(ops->id, 127))
        return tt_err(TT_INVALID, "%s: id must be 1 to 127 printable bytes", path);
    if (!s_text_ok(ops->summary, 255))
        return tt_err(TT_INVALID, "%s: summary must be 1 to 255 printable bytes", path);
    if (s_check_spaces(ops) != TT_OK)
        return tt_err_wrap(TT_INVALID, "%s", path);
    TT_TRY(s_check_options(path, ops));
    if (isinf(ops->reward_threshold))
        return tt_err(TT_INVALID, "%s: reward_threshold must be a number, or NAN for none", path);
    if (tt_env_batch(ops))
        return s_check_batch(path, tt_env_batch(ops));
    TT_TRY(s_check_state(path, ops));
    if (!ops->reset || !ops->step)
        return tt_err(TT_INVALID, "%s: %s must not be NULL", path, ops->reset ? "step" : "reset");
    return TT_OK;
}

static tt_status_t s_enter_table(const tt_env_ops_t **out, void *object, const char *path)
{
    union { /* ISO C has no cast from an object's to a function's address; POSIX says that this works */
        void *address;
        tt_env_entry_t call;
    } entry = {.address = dlsym(object, TT_ENV_ENTRY)};
    if (!entry.address)
        return tt_err(TT_INVALID, "%s: is no environment: it exports no function " TT_ENV_ENTRY "()", path);
    guard_enter_within(path, TT_ENV_ENTRY "()");
    const tt_env_ops_t *ops = entry.call();
    const tt_status_t status = s_check_table(path, ops); /* inside: its pointers may lead nowhere */
    guard_leave();
    TT_TRY(status);
    log_debug("loaded env %s from %s", ops->id, path);
    *out = ops;
    return TT_OK;
}

/* dlopen counts and shares: the same path gives the same table again. */
static tt_status_t s_open_object(const tt_env_ops_t **out, const char *path)
{
    guard_enter_within(path, "its constructors");
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    guard_leave();
    if (!object)
        return tt_err(TT_INVALID, "cannot load env: %s", dlerror());
    const tt_status_t status = s_enter_table(out, object, path);
    if (status != TT_OK)
        dlclose(object);
    return status;
}

static tt_status_t s_load(const tt_env_ops_t **out, const char *path)
{
    const tt_status_t found = tt_file_check(path); /* dlopen would wait for a FIFO's writer */
    if (found != TT_OK)
        return tt_err(found == TT_NOT_FOUND ? found : TT_INVALID, "cannot load env: %s", tt_err_text());
    guard_arm();
    log_debug("loading env %s", path);
    patience_t patience;
    patience_begin(&patience, path, "its constructors and " TT_ENV_ENTRY "()");
    const tt_status_t status = s_open_object(out, path);
    patience_end(&patience);
    return status;
}

bool tt_env_is_native(const char *id)
{
    const char *slash = strchr(id, '/');
    const size_t family = slash ? (size_t)(slash - id) + 1 : 0;
    bool related = false;
    for (size_t i = 0; i < TT_COUNT(s_envs); i++) {
        if (strcmp(s_envs[i]->id, id) == 0)
            return true;
        related |= family && strncmp(s_envs[i]->id, id, family) == 0;
    }
    return related && access(id, F_OK) != 0;
}

bool tt_env_is_object(const char *id)
{
    const size_t size = strlen(id);
    if (gym_is(id) || tt_env_is_native(id))
        return false;
    return strchr(id, '/') || (size > 3 && strcmp(id + size - 3, ".so") == 0);
}

static tt_status_t s_not_found(const char *id)
{
    const char *names[TT_COUNT(s_envs)];
    for (size_t i = 0; i < TT_COUNT(s_envs); i++)
        names[i] = s_envs[i]->id;
    const char *near = tt_nearest(id, names, TT_COUNT(s_envs));
    if (near)
        return tt_err(TT_NOT_FOUND, "no env '%s'; did you mean '%s'? `tutti envs` lists all", id, near);
    if (gym_could_be(id))
        return tt_err(TT_NOT_FOUND, "no env '%s'; Gymnasium's is called 'gym:%s' here; `tutti envs` lists all", id, id);
    return tt_err(TT_NOT_FOUND, "no env '%s'; `tutti envs` lists all, and a path ending in .so loads one of yours", id);
}

/*  One of Gymnasium's as it is without arguments. */
static tt_status_t s_find_alone(const tt_env_ops_t **out, const char *id)
{
    tt_train_cfg_t *cfg = tt_new0(sizeof *cfg);
    tt_status_t status = TT_INVALID;
    if (snprintf(cfg->env, sizeof cfg->env, "%s", id) < (int)sizeof cfg->env)
        status = gym_find(out, cfg, false);
    else
        tt_err(status, "%.64s...: an id of more than %zu bytes", id, sizeof cfg->env - 1);
    free(cfg);
    return status;
}

tt_status_t tt_env_find(const tt_env_ops_t **out, const char *id)
{
    for (size_t i = 0; i < TT_COUNT(s_envs); i++) {
        if (strcmp(s_envs[i]->id, id) == 0) {
            *out = s_envs[i];
            return TT_OK;
        }
    }
    if (gym_is(id))
        return s_find_alone(out, id);
    if (!tt_env_is_object(id))
        return s_not_found(id);
    if (strchr(id, '/'))
        return s_load(out, id);
    char *here = tt_sprintf("./%s", id); /* a bare name is a file here, not a library of the system */
    const tt_status_t status = s_load(out, here);
    free(here);
    return status;
}

tt_status_t tt_env_of(const tt_env_ops_t **out, const tt_train_cfg_t *cfg)
{
    return gym_is(cfg->env) ? gym_find(out, cfg, false) : tt_env_find(out, cfg->env);
}

/* ---- arguments ---------------------------------------------------------------------------------------------------- */

void tt_env_args_of(tt_env_arg_t out[TT_ENV_ARGS_MAX + 1], const tt_train_cfg_t *cfg)
{
    for (uint32_t i = 0; i < cfg->env_args.count; i++)
        out[i] = (tt_env_arg_t){cfg->env_args.at[i].key, cfg->env_args.at[i].value};
    out[cfg->env_args.count] = (tt_env_arg_t){0};
}

static size_t s_option_names(const tt_env_ops_t *ops, const char *names[TT_ENV_ARGS_MAX])
{
    size_t count = 0;
    for (const tt_env_option_t *option = ops->options; option && option->name; option++)
        names[count++] = option->name;
    return count;
}

static tt_status_t s_unknown(const tt_env_ops_t *ops, const char *key, const char *const *names, size_t count)
{
    if (count == 0)
        return tt_err(TT_CONFIG, "env.args.%s: %s takes no arguments", key, ops->id);
    char takes[256];
    size_t used = 0;
    for (size_t i = 0; i < count && used < sizeof takes; i++)
        used += (size_t)snprintf(takes + used, sizeof takes - used, "%s%s", i ? ", " : "", names[i]);
    const char *near = tt_nearest(key, names, count);
    if (near)
        return tt_err(TT_CONFIG, "env.args.%s: %s has no such argument; did you mean '%s'? It takes %s", key, ops->id,
            near, takes);
    return tt_err(TT_CONFIG, "env.args.%s: %s has no such argument; it takes %s", key, ops->id, takes);
}

tt_status_t tt_env_check_args(const tt_env_ops_t *ops, const tt_env_arg_t *args)
{
    const char *names[TT_ENV_ARGS_MAX];
    const size_t count = s_option_names(ops, names);
    if (tt_env_batch(ops) && tt_env_batch(ops)->any_args)
        return TT_OK;
    for (; args && args->key; args++) {
        size_t i = 0;
        while (i < count && strcmp(names[i], args->key) != 0)
            i++;
        if (i == count)
            return s_unknown(ops, args->key, names, count);
    }
    return TT_OK;
}
