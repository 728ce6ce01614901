/*  gang - the PodGroup of a job: by it a scheduler places so many of the job's pods at once, or none.
 *
 *  Two schedulers know one: Volcano (scheduling.volcano.sh/v1beta1: volcano-sh/apis, pkg/apis/scheduling) and the coscheduling of
 *  scheduler-plugins (scheduling.x-k8s.io/v1alpha1: kubernetes-sigs/scheduler-plugins, apis/scheduling). Which numbers are in it says
 *  the table of kinds (front.h: group, templates, scheduling). Pure. */
#pragma once
#include "k8s/front/front.h"

typedef struct gang {
    const char *name;  /* "volcano"                                                                      */
    const char *group; /* of the API                                                                     */
    const char *version;
    const char *scheduler;    /* schedulerName of pods whose template names none                                */
    const char *label, *note; /* by which a pod is of a group: label, annotation; NULL = not by such a one      */
    bool queues;              /* its PodGroup has a queue and a priority, and its pods a task                   */
    bool times;               /* it has a time to wait                                                          */
} gang_t;

/*  "volcano", "scheduler-plugins"; "none" and NULL: *out = NULL. TT_INVALID: no such scheduler. */
tt_status_t gang_pick(const gang_t **out, const char *name);
/*  The PodGroup, named as the job, which owns it; NULL: nothing of the job has to be placed together. admission: by a queue; whole: the
 *  job's object. */
json_t *gang_make(
    const gang_t *self, const front_t *front, const void *job, const front_admission_t *admission, const json_t *whole);
/*  The same for members that are no front end's: so many of each template. A queue (annotation) and a priority are those of the first template
 *  that names one. Takes metadata: name, namespace, labels. */
json_t *gang_of_parts(const gang_t *self, json_t *metadata, const front_part_t *parts, size_t count);
/*  "/apis/GROUP/VERSION/namespaces/NAMESPACE/podgroups/NAME", of no name that of all; caller frees. */
char *gang_path(const gang_t *self, const char *namespace_, const char *name);
/*  A pod that is about to be made, or a template of pods, becomes one of the job's group. */
void gang_dress(const gang_t *self, json_t *pod, const char *job);
