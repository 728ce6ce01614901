/*  collector - one collector of all envs, as learners see it: it attaches to every learner of a roster and sends a batch as
 *  soon as all have credit for it. Its segments are a formula of (batch, env) alone, so that the same job always sees the
 *  same experience, and the weights at its end may be compared bit by bit.
 *
 *  Threads: the test's. */
#pragma once
#include "common/rl/columns.h"
#include "tests/fake/coordinator.h"

/*  Its way to the learner that is the member of the same place. */
typedef struct {
    tt_sock_t *sock; /* NULL = none */
    uint32_t index;
    bool credited; /* of this epoch */
    uint64_t upto, base, next, acked;
} fake_feed_t;

typedef struct {
    fake_coordinator_t *run;
    fake_member_t *member;
    const tt_columns_t *columns; /* borrowed */
    uint32_t N, T, S, lag;
    uint64_t gate; /* batches from here on are not sent (UINT64_MAX = all are)     */
    bool copies;   /* send what was sent before again, in other cuts                */
    bool twins;    /* where copies differ: learners other than 0 get other ones     */
    bool starve;   /* where copies differ: they get none                            */
    float poison;  /* added to every reward */
    fake_feed_t feed[FAKE_MEMBERS];
} fake_collector_t;

/*  columns, N, T, S and lag are set; the rest is zeroed, and the test's to set afterwards. */
void fake_collector_open(fake_collector_t *self, fake_coordinator_t *run);
void fake_collector_close(fake_collector_t *self);

/*  After a roster: attach to its learners, and to no others. */
void fake_collector_attach(fake_collector_t *self);
/*  Send what may be sent. */
void fake_collector_feed(fake_collector_t *self);
const fake_feed_t *fake_collector_to(const fake_collector_t *self, const fake_member_t *learner);
