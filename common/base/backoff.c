#include "common/base/backoff.h"

int64_t tt_backoff_next(const tt_backoff_rule_t *rule, int64_t waited)
{
    const int64_t next = waited > rule->most / 2 ? rule->most : 2 * waited,
                  wait = next < rule->first ? rule->first : next;
    return wait < rule->most ? wait : rule->most;
}

int64_t tt_backoff_wait(const tt_backoff_rule_t *rule, int64_t failures)
{
    int64_t wait = 0;
    for (int64_t i = rule->at_once; i < failures && wait < rule->most; i++)
        wait = tt_backoff_next(rule, wait);
    return wait;
}

void tt_backoff_begin(tt_backoff_t *self, int64_t now)
{
    self->since = now;
}

int64_t tt_backoff_fail(tt_backoff_t *self, const tt_backoff_rule_t *rule, int64_t now)
{
    if (now - self->since >= rule->steady)
        self->failures = 0;
    if (self->failures < UINT32_MAX)
        self->failures++;
    return now + tt_backoff_wait(rule, self->failures);
}
