/*  steps - what a process does between fork and exec to get the place of a container: a mount namespace of its own, folders
 *  where its mounts say, a control group. Planned in the parent, where memory may be had and messages be written; carried
 *  out in the child by system calls alone.
 *
 *  Threads: a list belongs to one thread. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

typedef enum {
    TT_STEP_NAMESPACE, /* a mount namespace of its own; a: uid_map, b: gid_map: in a user namespace of its own too (NULL = not) */
    TT_STEP_MKDIR,     /* a; there already is fine                                                        */
    TT_STEP_TOUCH,     /* a: an empty file                                                                */
    TT_STEP_LINK,      /* a: the link, b: what it says                                                    */
    TT_STEP_BIND,      /* a: where, b: what (with all that is mounted below)                              */
    TT_STEP_READ_ONLY, /* a: a bind mount                                                                 */
    TT_STEP_TMPFS,     /* a: where, b: options ("size=1024")                                              */
    TT_STEP_CHROOT,    /* a                                                                               */
    TT_STEP_WRITE      /* a: file, b: text                                                                */
} tt_step_kind_t;

typedef struct {
    tt_step_kind_t kind;
    char *a, *b;
} tt_step_t;

typedef struct {
    tt_step_t *steps;
    size_t count, room;
} tt_steps_t;

void tt_steps_add(tt_steps_t *self, tt_step_kind_t kind, const char *a, const char *b);
void tt_steps_clear(tt_steps_t *self);
/*  In the child. 0, or the errno of the first step that failed; *failed: which one. */
int tt_steps_run(const tt_steps_t *self, size_t *failed);

/*  May this process make mount namespaces: 'r' as root, 'u' in a user namespace, 0 not at all? Asks a child of its own. */
char tt_steps_allowed(void);
/*  The steps that begin a namespace of that kind ('r', 'u'). */
void tt_steps_namespace(tt_steps_t *self, char kind);
