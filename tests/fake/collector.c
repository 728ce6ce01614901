#include "tests/fake/collector.h"
#include <string.h>
#include "common/base/rng.h"
#include "common/wire/segment.h"

enum { INSTANCE = 0x4d };

/* ---- segments ------------------------------------------------------------------------------------------------------- */

static uint32_t s_word(const fake_collector_t *self, uint64_t batch, uint32_t env, uint32_t t, uint32_t what)
{
    uint32_t words[4];
    tt_draw(words, self->N * 1000 + self->T, TT_STREAM_TEST, env, (batch << 24) + ((uint64_t)t << 8) + what);
    return words[0];
}

static float s_number(const fake_collector_t *self, uint64_t batch, uint32_t env, uint32_t t, uint32_t what)
{
    return tt_unit_f32(s_word(self, batch, env, t, what)) * 2 - 1;
}

static bool s_terminated(const fake_collector_t *self, uint64_t batch, uint32_t env, uint32_t t)
{
    return s_word(self, batch, env, t, 3) % 16 == 0;
}

/*  Steps since the env's last end, before the batch. */
static uint32_t s_age(const fake_collector_t *self, uint64_t batch, uint32_t env)
{
    uint32_t age = 0;
    for (uint64_t b = batch; b-- > 0;)
        for (uint32_t t = self->T; t-- > 0; age++)
            if (s_terminated(self, b, env, t) || env % self->T == t)
                return age;
    return age;
}

/*  Number `i` of a column, made of a random word. */
static void s_put(const tt_column_t *column, uint32_t choices, void *at, size_t i, uint32_t word)
{
    const uint32_t whole = column->choice ? word % choices : word & 255;
    if (column->dtype == TT_F32)
        ((float *)at)[i] = tt_unit_f32(word) * 2 - 1;
    else if (column->dtype == TT_U8)
        ((uint8_t *)at)[i] = (uint8_t)whole;
    else if (column->dtype == TT_I32)
        ((int32_t *)at)[i] = (int32_t)whole;
    else
        ((int64_t *)at)[i] = whole;
}

/*  Columns first .. +count-1 of (batch, env, t), as row `row` of at[]; `what` tells the kinds of numbers apart. */
static void s_put_row(const fake_collector_t *self, uint32_t first, uint32_t count, void *const *at, size_t row,
    uint64_t batch, uint32_t env, uint32_t t, uint32_t what)
{
    const tt_columns_t *columns = self->columns;
    for (uint32_t c = first; c < first + count; c++) {
        const tt_column_t *column = &columns->at[c];
        for (uint32_t d = 0; d < column->elements; d++)
            s_put(column, column->choice ? columns->choices[column->first + d] : 0, at[c], row * column->elements + d,
                s_word(self, batch, env, t, what++));
    }
}

/*  Forbidden is, of every element, the choice after the one that is taken. */
static void s_put_mask(
    const fake_collector_t *self, void *const *at, size_t row, uint64_t batch, uint32_t env, uint32_t t, uint32_t what)
{
    const tt_columns_t *columns = self->columns;
    if (columns->mask < 0)
        return;
    uint8_t *bit = (uint8_t *)at[columns->mask] + row * columns->mask_bits;
    for (uint32_t c = columns->action; c < columns->action + columns->action_count; c++)
        for (uint32_t d = 0; d < columns->at[c].elements; d++, what++) {
            const uint32_t n = columns->at[c].choice ? columns->choices[columns->at[c].first + d] : 0;
            const uint32_t chosen = n ? s_word(self, batch, env, t, what) % n : 0;
            for (uint32_t a = 0; a < n; a++)
                *bit++ = n == 1 || a != (chosen + 1) % n;
        }
}

/*  What an env shows at (batch, t): `what` is 10 for what it shows, 100 for the last of an episode that was cut. */
static void s_put_view(const fake_collector_t *self, void *const *at, size_t row, uint64_t batch, uint32_t env,
    uint32_t t, uint32_t twin, uint32_t what)
{
    s_put_row(self, 0, self->columns->obs_count, at, row, batch, env, t, twin + what);
    s_put_mask(self, at, row, batch, env, t, twin + 1);
}

/*  In a twin the numbers of the segment's fields differ, as they do at lag > 1. */
static void s_fill(const fake_collector_t *self, const tt_segment_shape_t *shape, uint64_t batch, uint32_t lo,
    uint32_t twin, void *block)
{
    const tt_columns_t *columns = self->columns;
    tt_segment_t at;
    tt_segment_map(shape, block, &at);
    uint32_t k = 0;
    for (uint32_t t = 0; t < shape->T; t++)
        for (uint32_t e = 0; e < shape->E; e++) {
            const uint32_t env = lo + e, i = t * shape->E + e;
            s_put_view(self, at.column, i, batch, env, t, twin, 10);
            s_put_row(self, columns->action, columns->action_count, at.column, i, batch, env, t, twin + 1);
            at.reward[i] = 1 + self->poison;
            if (at.value) {
                at.log_prob[i] = -0.69f;
                at.value[i] = s_number(self, batch, env, t, twin + 2);
            }
            at.terminated[i] = s_terminated(self, batch, env, t);
            at.truncated[i] = !at.terminated[i] && env % shape->T == t;
            if (at.truncated[i]) {
                at.final_t[k] = t;
                at.final_env[k] = e;
                if (at.final_value)
                    at.final_value[k] = s_number(self, batch, env, t, twin + 4);
                s_put_view(self, at.final, k++, batch, env, t, twin, 100);
            }
        }
    for (uint32_t e = 0; e < shape->E; e++) {
        s_put_view(self, at.last, e, batch, lo + e, shape->T, twin, 10);
        if (at.last_value)
            at.last_value[e] = s_number(self, batch, lo + e, shape->T, twin + 2);
        at.age[e] = s_age(self, batch, lo + e);
        memset(at.states + (size_t)e * shape->S, (int)((batch * 16 + lo + e) & 255), shape->S);
    }
}

static uint32_t s_finals(const fake_collector_t *self, uint64_t batch, uint32_t lo, uint32_t count)
{
    uint32_t finals = 0;
    for (uint32_t env = lo; env < lo + count; env++)
        finals += !s_terminated(self, batch, env, env % self->T);
    return finals;
}

/*  twin: 0, or which other numbers it holds. part: of a range of all envs; else it is its range. */
static void s_send_segment(
    fake_collector_t *self, fake_feed_t *to, uint64_t batch, uint32_t lo, uint32_t count, uint32_t twin, bool part)
{
    const uint64_t oldest = batch > self->lag ? batch - self->lag : 0;
    const tt_segment_shape_t shape = {
        .columns = self->columns, .T = self->T, .E = count, .K = s_finals(self, batch, lo, count), .S = self->S};
    size_t bytes = 0;
    assert_ok(tt_segment_size(&shape, &bytes));
    zmq_msg_t frame;
    tt_frame_new(&frame, bytes);
    memset(zmq_msg_data(&frame), 0, bytes);
    s_fill(self, &shape, batch, lo, twin, zmq_msg_data(&frame));
    const tt_msg_SEGMENT_t msg =
        TT_MSG(SEGMENT, .era = self->run->era, .instance = INSTANCE, .batch = batch, .version = oldest + (twin > 0),
            .env_lo = lo, .env_count = count, .steps = shape.T, .columns = self->columns->hash, .finals = shape.K,
            .state_bytes = shape.S, .before = part ? lo : 0, .after = part ? self->N - lo - count : 0);
    const tt_status_t status = tt_sock_send(to->sock, NULL, &msg, &frame, 1);
    if (status != TT_OK && status != TT_AGAIN)
        assert_ok(status);
    tt_frame_close(&frame);
}

/*  Where copies differ, only ranges as the roster names them count, in one segment or in two. */
static void s_send_whole(fake_collector_t *self, fake_feed_t *to, uint64_t batch)
{
    const uint32_t half = self->N / 2, twin = self->twins && batch > 0 ? 200 * to->index : 0;
    if (self->starve && to->index > 0)
        return;
    if (self->copies)
        s_send_segment(self, to, batch, 0, half, batch > 0 ? 100000 : 0, false); /* a range that nobody has */
    if (batch % 2) {
        s_send_segment(self, to, batch, 0, half, twin, true);
        s_send_segment(self, to, batch, half, self->N - half, twin, true);
    } else
        s_send_segment(self, to, batch, 0, self->N, twin, true);
}

static void s_send_batch(fake_collector_t *self, fake_feed_t *to, uint64_t batch)
{
    const uint32_t cut = 1 + (uint32_t)(batch % (self->N - 1)); /* ranges move from batch to batch */
    if (self->lag > 1 || self->S == 0) {
        s_send_whole(self, to, batch);
        return;
    }
    s_send_segment(self, to, batch, 0, cut, 0, false);
    if (self->copies)
        s_send_segment(self, to, batch, cut / 2, self->N - cut / 2 - 1, 0, false);
    s_send_segment(self, to, batch, cut, self->N - cut, 0, false);
    if (self->copies)
        s_send_segment(self, to, batch, 0, self->N, 0, false);
}

/* ---- learners ------------------------------------------------------------------------------------------------------- */

/*  Learners of the roster, to each of which there is a feed. */
static bool s_is_fed(const fake_collector_t *self, size_t i)
{
    return self->run->member[i].role == TT_PEER_LEARNER && self->run->member[i].in && self->feed[i].sock;
}

/*  Does every learner of the roster have credit of this epoch? */
static bool s_all_credited(const fake_collector_t *self)
{
    for (size_t i = 0; i < self->run->members; i++)
        if (s_is_fed(self, i) && !self->feed[i].credited)
            return false;
    return true;
}

void fake_collector_feed(fake_collector_t *self)
{
    for (size_t i = 0; i < self->run->members && s_all_credited(self); i++) {
        fake_feed_t *to = &self->feed[i];
        for (; s_is_fed(self, i) && to->next < to->upto && to->next < self->gate; to->next++)
            s_send_batch(self, to, to->next);
    }
}

static fake_feed_t *s_by_sock(fake_collector_t *self, const tt_sock_t *sock)
{
    for (size_t i = 0; i < FAKE_MEMBERS; i++)
        if (self->feed[i].sock == sock)
            return &self->feed[i];
    fail_msg("a message on no feed");
    return NULL;
}

static void s_on_credit(fake_feed_t *from, const tt_msg_CREDIT_t *credit)
{
    if (!from->credited)
        from->next = credit->base;
    from->credited = true;
    from->upto = credit->upto;
    from->base = credit->base;
}

static tt_status_t s_on_packet(void *ctx, tt_sock_t *sock, tt_packet_t *packet)
{
    fake_collector_t *self = ctx;
    fake_feed_t *from = s_by_sock(self, sock);
    const tt_msg_CREDIT_t *credit = &packet->msg.CREDIT;
    if (packet->msg.type == TT_MSG_ACK && packet->msg.ACK.era == self->run->era)
        from->acked = packet->msg.ACK.below;
    if (packet->msg.type != TT_MSG_CREDIT || credit->era != self->run->era || credit->epoch != self->run->epoch)
        return TT_OK;
    s_on_credit(from, credit);
    fake_collector_feed(self);
    return TT_OK;
}

static void s_attach(fake_collector_t *self, const fake_member_t *learner, fake_feed_t *feed)
{
    feed->credited = false;
    feed->index = learner->index;
    if (!feed->sock) {
        const tt_sock_opts_t opts = {.name = "feed", .identity = "collector/0/4d"};
        assert_ok(tt_sock_new(&feed->sock, TT_DEALER, &opts));
        assert_ok(tt_sock_connect(feed->sock, learner->data));
        tt_loop_sock(self->run->loop, feed->sock, s_on_packet, self);
    }
    const tt_msg_ATTACH_t attach = TT_MSG(
        ATTACH, .role = TT_PEER_COLLECTOR, .instance = INSTANCE, .era = self->run->era, .epoch = self->run->epoch);
    assert_ok(tt_sock_send(feed->sock, NULL, &attach, NULL, 0));
}

static void s_close(fake_collector_t *self, fake_feed_t *feed)
{
    if (!feed->sock)
        return;
    tt_loop_forget_sock(self->run->loop, feed->sock);
    tt_sock_destroy(&feed->sock);
}

void fake_collector_attach(fake_collector_t *self)
{
    for (size_t i = 0; i < self->run->members; i++)
        if (self->run->member[i].role == TT_PEER_LEARNER && self->run->member[i].in)
            s_attach(self, &self->run->member[i], &self->feed[i]);
        else
            s_close(self, &self->feed[i]);
}

/* ---- life ----------------------------------------------------------------------------------------------------------- */

const fake_feed_t *fake_collector_to(const fake_collector_t *self, const fake_member_t *learner)
{
    return &self->feed[learner - self->run->member];
}

void fake_collector_open(fake_collector_t *self, fake_coordinator_t *run)
{
    self->run = run;
    self->gate = UINT64_MAX;
    self->member = fake_add(run, TT_PEER_COLLECTOR, 0, 0);
    self->member->instance = INSTANCE;
    self->member->env_count = self->N;
    self->member->in = true;
}

void fake_collector_close(fake_collector_t *self)
{
    for (size_t i = 0; i < FAKE_MEMBERS; i++)
        s_close(self, &self->feed[i]);
}
