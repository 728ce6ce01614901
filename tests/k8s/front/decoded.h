/*  decoded - a job of a test's text as a front end reads it, beside the whole of it.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include "k8s/front/front.h"
#include "tests/k8s/json.h"

typedef struct {
    json_t *whole;
    const front_t *front;
    void *entry; /* of `front` */
} decoded_t;

/*  text: in a test's quotes (json.h); its kind is one that there is. */
static inline decoded_t decoded_open(const char *text)
{
    decoded_t self = {.whole = json_of(text)};
    self.front = front_of(self.whole);
    char *dump = kube_dump(self.whole);
    assert_ok(self.front->job_decode(&self.entry, dump, strlen(dump)));
    free(dump);
    return self;
}

static inline void decoded_close(decoded_t *self)
{
    self->front->job_destroy(self->entry);
    json_decref(self->whole);
}
