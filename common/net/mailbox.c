#include "common/net/mailbox.h"
#include "common/base/mem.h"
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

void tt_letters_init(tt_letters_t *self)
{
    self->first = NULL;
    self->end = &self->first;
    self->count = 0;
}

void tt_letters_add(tt_letters_t *self, tt_letter_t *letter)
{
    letter->next = NULL;
    *self->end = letter;
    self->end = &letter->next;
    self->count++;
}

tt_letter_t *tt_letters_take(tt_letters_t *self)
{
    tt_letter_t *letter = self->first;
    if (!letter)
        return NULL;
    self->first = letter->next;
    if (!self->first)
        self->end = &self->first;
    self->count--;
    return letter;
}

void tt_letters_free(tt_letters_t *self)
{
    for (tt_letter_t *letter; (letter = tt_letters_take(self)) != NULL;)
        tt_letter_destroy(&letter);
}

/*  A deep copy by way of the wire: whatever can be sent can be copied, and what cannot is refused here. */
tt_status_t tt_letter_new(tt_letter_t **self_p, const void *msg)
{
    tt_buf_t bytes;
    tt_buf_init(&bytes, (size_t)8 << 20);
    tt_letter_t *self = tt_new0(sizeof *self);
    tt_status_t status = tt_msg_pack(&bytes, msg);
    if (status == TT_OK)
        status = tt_msg_unpack(&self->msg, bytes.data, bytes.size);
    tt_buf_free(&bytes);
    if (status != TT_OK) {
        free(self);
        return status;
    }
    *self_p = self;
    return TT_OK;
}

void tt_letter_destroy(tt_letter_t **self_p)
{
    tt_letter_t *self = *self_p;
    *self_p = NULL;
    if (!self)
        return;
    tt_msg_clear(&self->msg);
    free(self);
}

tt_status_t tt_mailbox_init(tt_mailbox_t *self)
{
    self->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (self->fd < 0)
        return tt_err_errno(TT_OS, "eventfd");
    pthread_mutex_init(&self->mutex, NULL);
    tt_letters_init(&self->letters);
    return TT_OK;
}

void tt_mailbox_free(tt_mailbox_t *self)
{
    tt_letters_free(&self->letters);
    pthread_mutex_destroy(&self->mutex);
    close(self->fd);
}

void tt_mailbox_wake(tt_mailbox_t *self)
{
    const uint64_t one = 1;
    const ssize_t written = write(self->fd, &one, sizeof one);
    (void)written; /* EAGAIN: it is readable already */
}

void tt_mailbox_put(tt_mailbox_t *self, tt_letter_t *letter)
{
    pthread_mutex_lock(&self->mutex);
    tt_letters_add(&self->letters, letter);
    /* one event for many: the taker goes on until nothing is left, and only then reads the event away */
    if (self->letters.count == 1)
        tt_mailbox_wake(self);
    pthread_mutex_unlock(&self->mutex);
}

tt_letter_t *tt_mailbox_take(tt_mailbox_t *self)
{
    pthread_mutex_lock(&self->mutex);
    tt_letter_t *letter = tt_letters_take(&self->letters);
    if (!letter) {
        uint64_t count;
        const ssize_t got = read(self->fd, &count, sizeof count);
        (void)got; /* EAGAIN: it was not readable */
    }
    pthread_mutex_unlock(&self->mutex);
    return letter;
}
