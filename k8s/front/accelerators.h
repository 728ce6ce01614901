/*  accelerators - what a container gets that asks for a resource: folders of its node (drivers, libraries) and variables, by a file of who runs
 *  the operator. The file is that of tf-operator v0.1.0 (--controller-config-file):
 *
 *      accelerators:
 *        example.com/gpu:
 *          volumes: [{name: lib, hostPath: /opt/gpu/lib, mountPath: /usr/local/gpu/lib}]
 *          envVars: [{name: LD_LIBRARY_PATH, value: /usr/local/gpu/lib}]
 *
 *  What was read is JSON, an object of the resources, each with `volumes` and `envVars` as above. Pure but for the file. */
#pragma once
#include <jansson.h>
#include "common/base/status.h"

/*  Of the file at path. A new reference. TT_NOT_FOUND, TT_IO: the file; TT_CONFIG: "file:line: why". */
tt_status_t accelerators_read(json_t **out, const char *path);

/*  A container of a pod that is about to be made gets what is there for the resources that its requests or limits name. A path that it mounts
 *  already stays as it is; a variable of the same name is replaced. self NULL: nothing. TT_INVALID: the pod has another volume of a name that
 *  is needed; the pod is not to be used then. */
tt_status_t accelerators_dress(const json_t *self, json_t *pod, json_t *container);
