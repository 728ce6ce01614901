#include "collector/registry.h"
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "collector/envs/envs.h"
#include "collector/guard.h"
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

static tt_status_t s_check_box(const char *path, const char *field, const tt_space_t *box, uint32_t max)
{
    if (box->n < 1 || box->n > max)
        return tt_err(TT_INVALID, "%s: %s.n is %u, must be 1 to %u", path, field, box->n, max);
    if (!box->low || !box->high)
        return tt_err(TT_INVALID, "%s: %s.low and %s.high must point to %u floats each", path, field, field, box->n);
    for (uint32_t i = 0; i < box->n; i++) {
        if (!(box->low[i] <= box->high[i])) /* a NaN fails, too */
            return tt_err(TT_INVALID, "%s: %s.low[%u] = %g is not below %s.high[%u] = %g", path, field, i,
                (double)box->low[i], field, i, (double)box->high[i]);
    }
    return TT_OK;
}

static tt_status_t s_check_spaces(const char *path, const tt_env_ops_t *ops)
{
    if (ops->obs.kind != TT_SPACE_BOX)
        return tt_err(TT_INVALID, "%s: obs.kind is %d, must be TT_SPACE_BOX", path, (int)ops->obs.kind);
    TT_TRY(s_check_box(path, "obs", &ops->obs, TT_ENV_MAX_OBS));
    if (ops->action.kind == TT_SPACE_BOX)
        return s_check_box(path, "action", &ops->action, TT_ENV_MAX_ACTION);
    if (ops->action.kind != TT_SPACE_DISCRETE)
        return tt_err(TT_INVALID, "%s: action.kind is %d, must be TT_SPACE_DISCRETE or TT_SPACE_BOX", path,
            (int)ops->action.kind);
    if (ops->action.n < 1 || ops->action.n > TT_ENV_MAX_ACTION)
        return tt_err(TT_INVALID, "%s: action.n is %u, must be 1 to %u", path, ops->action.n, TT_ENV_MAX_ACTION);
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
    if (ops->fini && !ops->init)
        return tt_err(TT_INVALID, "%s: fini is set without init", path);
    if (!ops->save != !ops->load)
        return tt_err(TT_INVALID, "%s: save and load must both be set or both be NULL", path);
    if (ops->save && (ops->save_size < 1 || ops->save_size > TT_ENV_MAX_STATE))
        return tt_err(
            TT_INVALID, "%s: save_size is %zu, must be 1 to %zu", path, ops->save_size, (size_t)TT_ENV_MAX_STATE);
    return TT_OK;
}

static tt_status_t s_check_table(const char *path, const tt_env_ops_t *ops)
{
    if (!ops)
        return tt_err(TT_INVALID, "%s: " TT_ENV_ENTRY "() returned NULL, not a table", path);
    if (ops->abi != TT_ENV_ABI)
        return tt_err(TT_INVALID,
            "%s: is of env ABI %u, this is ABI %u: rebuild it against collector/env.h of this version", path, ops->abi,
            (unsigned)TT_ENV_ABI);
    if (!s_text_ok(ops->id, 127))
        return tt_err(TT_INVALID, "%s: id must be 1 to 127 printable bytes", path);
    if (!s_text_ok(ops->summary, 255))
        return tt_err(TT_INVALID, "%s: summary must be 1 to 255 printable bytes", path);
    TT_TRY(s_check_spaces(path, ops));
    TT_TRY(s_check_state(path, ops));
    if (isinf(ops->reward_threshold))
        return tt_err(TT_INVALID, "%s: reward_threshold must be a number, or NAN for none", path);
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
static tt_status_t s_load(const tt_env_ops_t **out, const char *path)
{
    const tt_status_t found = tt_file_check(path); /* dlopen would wait for a FIFO's writer */
    if (found != TT_OK)
        return tt_err(TT_INVALID, "cannot load env: %s", tt_err_text());
    guard_arm();
    log_debug("loading env %s", path);
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

static bool s_is_object(const char *id)
{
    const size_t size = strlen(id);
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
    return tt_err(TT_NOT_FOUND, "no env '%s'; `tutti envs` lists all, and a path ending in .so loads one of yours", id);
}

tt_status_t tt_env_find(const tt_env_ops_t **out, const char *id)
{
    for (size_t i = 0; i < TT_COUNT(s_envs); i++) {
        if (strcmp(s_envs[i]->id, id) == 0) {
            *out = s_envs[i];
            return TT_OK;
        }
    }
    if (!s_is_object(id))
        return s_not_found(id);
    if (strchr(id, '/'))
        return s_load(out, id);
    char *here = tt_sprintf("./%s", id); /* a bare name is a file here, not a library of the system */
    const tt_status_t status = s_load(out, here);
    free(here);
    return status;
}
