/*  steps - what a process does between fork and exec to get the place of a container: a mount namespace of its own, folders
 *  where the manifest says, a control group. Planned in the parent, where memory may be had and messages be written; carried
 *  out in the child by system calls alone.
 *
 *  Threads: a list belongs to one thread. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

typedef enum {
    STEP_NAMESPACE, /* a mount namespace of its own; a: uid_map, b: gid_map: in a user namespace of its own too (NULL = not) */
    STEP_MKDIR,     /* a; there already is fine                                                        */
    STEP_TOUCH,     /* a: an empty file                                                                */
    STEP_LINK,      /* a: the link, b: what it says                                                    */
    STEP_BIND,      /* a: where, b: what (with all that is mounted below)                              */
    STEP_READ_ONLY, /* a: a bind mount                                                                 */
    STEP_TMPFS,     /* a: where, b: options ("size=1024")                                              */
    STEP_CHROOT,    /* a                                                                               */
    STEP_WRITE      /* a: file, b: text                                                                */
} step_kind_t;

typedef struct {
    step_kind_t kind;
    char *a, *b;
} step_t;

typedef struct {
    step_t *steps;
    size_t count, room;
} steps_t;

void steps_add(steps_t *self, step_kind_t kind, const char *a, const char *b);
void steps_clear(steps_t *self);
/*  In the child. 0, or the errno of the first step that failed. (ctx: steps_t) */
int steps_run(void *ctx);

/*  May this process make mount namespaces: 'r' as root, 'u' in a user namespace, 0 not at all? Asks a child of its own. */
char steps_allowed(void);
/*  The steps that begin a namespace of that kind ('r', 'u'). */
void steps_namespace(steps_t *self, char kind);
