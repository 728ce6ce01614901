/*  mailbox - hands messages from one thread to another: a list under a mutex, and an eventfd that says there is something.
 *
 *  Inside tt_net only. Threads: any may put and take. */
#pragma once
#include <pthread.h>
#include "common/wire/msg.h"

typedef struct tt_letter {
    struct tt_letter *next;
    tt_msg_t msg;
    uint64_t tag; /* whose it is may use it */
} tt_letter_t;

/*  A list of letters; the list owns them. */
typedef struct {
    tt_letter_t *first, **end; /* end: where the next one is hung in */
    size_t count;
} tt_letters_t;

void tt_letters_init(tt_letters_t *self);
void tt_letters_add(tt_letters_t *self, tt_letter_t *letter); /* takes it */
tt_letter_t *tt_letters_take(tt_letters_t *self);             /* the first, the caller's now; NULL when empty */
void tt_letters_free(tt_letters_t *self);

/*  A letter with a copy of a message of the caller's. TT_INVALID: a field is over its limit. */
tt_status_t tt_letter_new(tt_letter_t **self_p, const void *msg);
void tt_letter_destroy(tt_letter_t **self_p);

typedef struct {
    pthread_mutex_t mutex;
    int fd; /* readable while something is in it, or after a wake */
    tt_letters_t letters;
} tt_mailbox_t;

tt_status_t tt_mailbox_init(tt_mailbox_t *self);
void tt_mailbox_free(tt_mailbox_t *self);

void tt_mailbox_put(tt_mailbox_t *self, tt_letter_t *letter); /* takes it */
/*  The oldest letter; NULL: none, and fd is not readable any more. */
tt_letter_t *tt_mailbox_take(tt_mailbox_t *self);
/*  Make fd readable without a letter. */
void tt_mailbox_wake(tt_mailbox_t *self);
