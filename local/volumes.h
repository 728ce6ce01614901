/*  volumes - the volumes of a pod as folders of this machine.
 *
 *    emptyDir                RUN/pods/<pod>/volumes/<name>; medium Memory: a file system in memory where namespaces allow
 *    hostPath                the path; where it may not be made, RUN/host/<path>, the same for all pods (said)
 *    persistentVolumeClaim   RUN/claims/<claim>
 *    configMap, secret       files from an object of that name in the manifest, or the job's own key
 *
 *  Threads: the run's one. */
#pragma once
#include "local/place.h"
#include "controller/view.h"

typedef struct {
    view_mount_t *mounts;
    size_t count;
} volumes_t;

/*  The mounts of one container (JSON) of a pod. TT_NOT_FOUND, TT_UNSUPPORTED, TT_IO: with words. */
tt_status_t volumes_mount(volumes_t *out, place_t *place, const json_t *pod, const json_t *container);
/*  Show a folder of this machine at a path of the container, to be read, where one of the mounts would hide that path. */
void volumes_show(volumes_t *self, const char *source, const char *target);
void volumes_clear(volumes_t *self);
/*  A path is of a file in the volume: relative, no part of it empty or "..". */
bool volume_is_below(const char *path);
/*  A pod is gone: its folder too. */
void volumes_remove(const place_t *place, const char *pod);
