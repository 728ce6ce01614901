/*  labels - those that Kubernetes recommends, as k8s/dijob/labels.c makes them, in a test's quotes (tests/k8s/json.h). */
#pragma once

#define RECOMMENDED_OF_JOB(job)                                                                                        \
    "'app.kubernetes.io/name':'dijob','app.kubernetes.io/instance':'" job "','app.kubernetes.io/version':'" TT_VERSION \
    "','app.kubernetes.io/part-of':'tutti',"                                                                           \
    "'app.kubernetes.io/managed-by':'tutti-operator'"
#define RECOMMENDED(job, component) RECOMMENDED_OF_JOB(job) ",'app.kubernetes.io/component':'" component "'"
