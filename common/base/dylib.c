#include "common/base/dylib.h"
#include <dlfcn.h>
#include <string.h>

static tt_status_t s_load(tt_dylib_t *self)
{
    if (!self->object)
        self->object = dlopen(self->soname, RTLD_NOW | RTLD_LOCAL);
    if (!self->object)
        return tt_err(TT_UNSUPPORTED, "%s; %s", dlerror(), self->advice);
    for (size_t i = 0; i < self->symbol_count; i++) {
        void *address = dlsym(self->object, self->symbols[i].name);
        if (!address)
            return tt_err(TT_UNSUPPORTED, "%s has no %s", self->soname, self->symbols[i].name);
        memcpy(self->symbols[i].slot, &address, sizeof address); /* ISO C has no cast for this */
    }
    return self->init ? self->init() : TT_OK;
}

tt_status_t tt_dylib_load(tt_dylib_t *self)
{
    pthread_mutex_lock(&self->mutex);
    const tt_status_t status = self->loaded ? TT_OK : s_load(self);
    self->loaded = status == TT_OK;
    pthread_mutex_unlock(&self->mutex);
    return status;
}
