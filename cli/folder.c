#include "cli/folder.h"
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/buf.h"
#include "common/base/mem.h"
#include "local/local.h"

enum { NAMED_MAX = 4, TEXT_ROOM = 2048 };

static bool s_is_kustomization(const struct dirent *entry)
{
    static const char *const names[] = {"kustomization.yaml", "kustomization.yml", "Kustomization"};
    for (size_t i = 0; i < TT_COUNT(names); i++)
        if (strcmp(entry->d_name, names[i]) == 0)
            return true;
    return false;
}

static int s_is_yaml(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0);
}

static bool s_can_be_run(const char *folder, const char *name)
{
    char *path = tt_sprintf("%s/%s", folder, name);
    local_manifest_t manifest = {0};
    const bool can = local_read(&manifest, path, NULL, NULL) == TT_OK;
    local_manifest_clear(&manifest);
    free(path);
    return can;
}

/*  The jobs among its files: the first in full, the others counted. How many? */
static size_t s_jobs(tt_buf_t *names, const char *folder)
{
    struct dirent **entries = NULL;
    const int count = scandir(folder, &entries, s_is_yaml, alphasort);
    size_t jobs = 0;
    for (int i = 0; i < count; i++) {
        if (s_can_be_run(folder, entries[i]->d_name) && jobs++ < NAMED_MAX)
            (void)tt_buf_printf(names, "%s%s", jobs > 1 ? ", " : "", entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    if (jobs > NAMED_MAX)
        (void)tt_buf_printf(names, " and %zu more", jobs - NAMED_MAX);
    return jobs;
}

static bool s_has_kustomization(const char *folder)
{
    DIR *dir = opendir(folder);
    bool has = false;
    for (const struct dirent *entry; dir && !has && (entry = readdir(dir));)
        has = s_is_kustomization(entry);
    if (dir)
        closedir(dir);
    return has;
}

tt_status_t folder_refuse(const char *path)
{
    tt_buf_t names;
    tt_buf_init(&names, TEXT_ROOM);
    const size_t jobs = s_jobs(&names, path);
    const char *of_it = jobs > 1 ? "; of its files these can be run: "
                        : jobs   ? "; of its files this one can be run: "
                                 : "";
    tt_status_t status = TT_OK;
    if (s_has_kustomization(path))
        status = tt_err(TT_USAGE, "%s is a folder of Kubernetes manifests, which 'kubectl apply -k %s' applies%s%s",
            path, path, of_it, tt_buf_text(&names));
    else if (jobs)
        status = tt_err(TT_USAGE, "%s is a folder%s%s", path, of_it, tt_buf_text(&names));
    tt_buf_free(&names);
    return status;
}
