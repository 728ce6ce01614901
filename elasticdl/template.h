/*  template - what pods of members get beside what the master says itself (cards, nodes, volumes, variables), by a file of who runs it:
 *
 *      apiVersion: v1
 *      kind: PodTemplate
 *      metadata: {name: worker}    # of workers, ps: of parameter servers; without a name: of both
 *      template:
 *        spec: {containers: [{name: agent, resources: {limits: {example.com/gpu: 1}}}]}
 *
 *  Lists are added to the master's, other members come beside its own or in place of its defaults. What the master has to say itself, since
 *  members would not be found, started or ended otherwise, may not be there, nor anything that a pod has not.
 *
 *  Threads: pure but for the file. */
#pragma once
#include <jansson.h>
#include "elasticdl/cluster.h"

#define EDL_CONTAINER "agent"  /* the one that a member's pod has                                          */
#define EDL_AGENT     "tutti"  /* the container that brings the agent, the volume in which it does ...     */
#define EDL_TOKEN     "token"  /* ... and that of the token                                                */
#define EDL_AGENT_DIR "/tutti" /* in each pod: the agent and what it needs, and the program's output       */
#define EDL_TOKEN_DIR "/tutti-token"

enum { EDL_TYPES = ELASTICDL_WORKER + 1 };
typedef struct {
    json_t *of[EDL_TYPES]; /* PodTemplateSpecs, owned; NULL = nothing is said of that type */
} edl_templates_t;

/*  TT_NOT_FOUND, TT_IO: the file; TT_CONFIG: "file:line: why". */
tt_status_t edl_templates_read(edl_templates_t *out, const char *path);
/*  The same of a text; name stands in messages for the file's. */
tt_status_t edl_templates_parse(edl_templates_t *out, const char *text, size_t size, const char *name);
void edl_templates_clear(edl_templates_t *self);
/*  The template of a set of ours gets what theirs has. NULL: nothing. */
void edl_template_merge(json_t *ours, const json_t *theirs);
