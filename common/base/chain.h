/*  chain - things in a list that take themselves out of it, wherever they are: each has `next`, and `link`, which points at what points at
 *  it (`T *next, **link;`).
 *
 *  Threads: a chain belongs to one thread. */
#pragma once

/*  The first of those at head (T **) from now on. */
#define TT_CHAIN_ADD(head, self)                \
    do {                                        \
        (self)->next = *(head);                 \
        (self)->link = (head);                  \
        if ((self)->next)                       \
            (self)->next->link = &(self)->next; \
        *(head) = (self);                       \
    } while (0)

#define TT_CHAIN_REMOVE(self)                  \
    do {                                       \
        *(self)->link = (self)->next;          \
        if ((self)->next)                      \
            (self)->next->link = (self)->link; \
    } while (0)
