/*  kube_parts - what kube.c and kube_open.c share, and nobody else. */
#pragma once
#include "elasticdl/kube.h"
#include "elasticdl/sets.h"

typedef struct last_words last_words_t; /* kube.c's */

typedef struct {
    edl_place_t base;
    tt_reactor_t *loop;
    kube_config_t *config;
    kube_client_t *client;
    edl_sets_t *sets;
    edl_objects_t objects;
    edl_templates_t templates;                  /* as objects has them */
    char *agent_image, *dir, *program, *python; /* as objects has them */
    json_t *found;                              /* the StatefulSets that were there */
    last_words_t *last;                         /* that are waited for              */
} edl_kube_t;

extern const edl_place_ops_t edl_kube_ops;
