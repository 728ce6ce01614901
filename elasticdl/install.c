#include "elasticdl/install.h"
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/file.h"
#include "common/base/mem.h"
#include "common/http/mhd.h"

enum { PIECE = 1 << 16 };

typedef struct {
    const char *dir;
    bool linker; /* was among them */
    tt_status_t status;
} install_t;

static tt_status_t s_pour(int from, int to, const char *source)
{
    char piece[PIECE];
    for (ssize_t got; (got = read(from, piece, sizeof piece)) != 0;)
        if (got < 0 || !tt_file_write(to, piece, (size_t)got, NULL))
            return tt_err_errno(TT_IO, "a copy of %s", source);
    return TT_OK;
}

/*  For whoever runs in the pod: it may be another user. */
static tt_status_t s_copy(const char *source, const char *dir, const char *name)
{
    char *path = tt_sprintf("%s/%s", dir, name);
    const int from = open(source, O_RDONLY | O_CLOEXEC);
    const int to = from >= 0 ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0755) : -1;
    tt_status_t status = to >= 0 ? s_pour(from, to, source) : tt_err_errno(TT_IO, "%s", from >= 0 ? path : source);
    if (to >= 0 && fchmod(to, 0755) != 0 && status == TT_OK)
        status = tt_err_errno(TT_IO, "%s", path);
    if (to >= 0 && close(to) != 0 && status == TT_OK)
        status = tt_err_errno(TT_IO, "%s", path);
    if (from >= 0)
        close(from);
    free(path);
    return status;
}

/*  Each thing that is loaded: the program itself has no name, and the kernel's no path. */
static int s_on_loaded(struct dl_phdr_info *info, size_t size, void *ctx)
{
    (void)size;
    install_t *self = ctx;
    const char *slash = strrchr(info->dlpi_name, '/');
    if (!slash)
        return 0;
    const bool linker = info->dlpi_addr == getauxval(AT_BASE);
    self->linker |= linker;
    self->status = s_copy(info->dlpi_name, self->dir, linker ? "ld.so" : slash + 1);
    return self->status != TT_OK;
}

/*  What is loaded when it is first used (libmicrohttpd) is wanted, too. */
tt_status_t elasticdl_install(const char *dir)
{
    const mhd_t *mhd;
    install_t self = {.dir = dir};
    TT_TRY(mhd_load(&mhd));
    dl_iterate_phdr(s_on_loaded, &self);
    TT_TRY(self.status);
    if (!self.linker)
        return tt_err(TT_UNSUPPORTED, "this tutti has no dynamic linker, so it cannot be run from another folder");
    return s_copy("/proc/self/exe", dir, "tutti");
}
