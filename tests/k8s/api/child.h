/*  child - a Python server as a child of a test: it says its port, and ends when its input is closed. */
#pragma once

typedef struct {
    int in; /* the server ends when this is closed */
    int pid;
    int port;
} child_t;

/*  Returns when it has said its port. script: in tests/k8s/api; argument: NULL = none. */
void child_start(child_t *self, const char *script, const char *argument);
/*  Wait until it has ended. Its status as waitpid gives it. */
int child_stop(child_t *self);
