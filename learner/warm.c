#define TT_LOG_COMPONENT "warm"
#include "learner/warm.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/snapshot/pieces.h"
#include "learner/core.h"

enum { DAMAGED_MAX = 3, LOOK_NS = 50000000 };

/* ---- who is asked ------------------------------------------------------------------------------------------------------ */

static void s_forget_question(warm_source_t *source)
{
    if (source->came)
        tt_packet_clear(&source->piece);
    source->asked = source->came = false;
}

static void s_close_source(warm_source_t *source)
{
    s_forget_question(source);
    ask_destroy(&source->ask);
}

static void s_close(warm_t *self)
{
    for (uint32_t i = 0; i < self->sources; i++)
        s_close_source(&self->source[i]);
    free(self->source);
    replay_warm_destroy(&self->replay);
}

void warm_close(warm_t *self)
{
    s_close(self);
    *self = (warm_t){0};
}

void warm_reset(core_t *self)
{
    warm_close(&self->warm);
    tt_link_warm(self->link, false);
}

static void s_begin(core_t *self)
{
    warm_reset(self);
    self->warm.era = self->view.era;
    self->warm.moved_ns = tt_now_ns(self->clock);
    replay_warm_new(&self->warm.replay, memory_replay(self->data.memory));
}

static const view_peer_t *s_peer(const core_t *self, uint64_t instance)
{
    for (uint32_t i = 0; i < self->view.learners; i++)
        if (self->view.learner[i].instance == instance)
            return &self->view.learner[i];
    return NULL;
}

static warm_source_t *s_source(const warm_t *self, uint64_t instance)
{
    for (uint32_t i = 0; i < self->sources; i++)
        if (self->source[i].instance == instance)
            return &self->source[i];
    return NULL;
}

static void s_add_source(core_t *self, uint64_t instance)
{
    warm_t *warm = &self->warm;
    const ask_cfg_t cfg = {.loop = self->loop,
        .keys = tt_location_keys(self->location),
        .name = "/warm",
        .index = tt_link_index(self->link),
        .instance = tt_link_instance(self->link),
        .repeat_ms = self->model.train.net.lease_ms,
        .clock = self->clock};
    warm->source = tt_realloc(warm->source, tt_mul(warm->sources + 1, sizeof *warm->source));
    warm->source[warm->sources++] = (warm_source_t){.instance = instance, .ask = ask_new(&cfg)};
}

/*  The learners of the newest roster, and no other; what was asked of one that is gone is lacking again. */
static void s_follow(core_t *self)
{
    warm_t *warm = &self->warm;
    for (uint32_t i = 0; i < warm->sources;)
        if (s_peer(self, warm->source[i].instance))
            i++;
        else {
            s_close_source(&warm->source[i]);
            warm->source[i] = warm->source[--warm->sources];
        }
    for (uint32_t i = 0; i < self->view.learners; i++) {
        const uint64_t instance = self->view.learner[i].instance;
        if (instance != tt_link_instance(self->link) && !s_source(warm, instance))
            s_add_source(self, instance);
    }
}

/* ---- what has come ------------------------------------------------------------------------------------------------------- */

static tt_status_t s_damaged(core_t *self, warm_source_t *source, const char *why)
{
    const view_peer_t *peer = s_peer(self, source->instance);
    s_forget_question(source);
    log_warn("learner/%u: a piece of the replay is damaged: %s; asked for again", peer->index, why);
    if (++self->warm.damaged < DAMAGED_MAX)
        return TT_OK;
    return tt_err(TT_UNAVAILABLE, "%d pieces of the replay were damaged, the last from learner/%u: %s", DAMAGED_MAX,
        peer->index, why);
}

static const char *s_fault(const warm_source_t *source, tt_packet_t *packet)
{
    const tt_msg_FETCHED_t *answer = &packet->msg.FETCHED;
    unsigned char hash[TT_PIECE_HASH];
    if (packet->frame_count == 0)
        return answer->until == answer->batch ? NULL : "it has no bytes";
    if (packet->frame_count != 2 || zmq_msg_size(&packet->frame[1]) != sizeof hash)
        return "it has no hash";
    if (answer->until <= answer->batch || answer->batch < source->first ||
        (source->until && answer->until > source->until))
        return "it has other batches than were asked for";
    tt_piece_hash(zmq_msg_data(&packet->frame[0]), zmq_msg_size(&packet->frame[0]), hash);
    return memcmp(hash, zmq_msg_data(&packet->frame[1]), sizeof hash) == 0 ? NULL : "its hash is another one";
}

/*  Only rank 0 says what is evicted: it has to have the rest when its state is fetched, and may be an update behind. */
static void s_hear(core_t *self, warm_source_t *source, tt_packet_t *packet)
{
    warm_t *warm = &self->warm;
    const tt_msg_FETCHED_t *answer = &packet->msg.FETCHED;
    const bool leads = source->instance == self->view.learner[0].instance;
    const bool evicted = answer->batch > source->first;
    warm->moved_ns = tt_now_ns(self->clock);
    if (leads) {
        warm->settled = answer->settled;
        warm->answered = true;
    }
    if (leads && evicted && answer->batch > replay_warm_next(warm->replay))
        replay_warm_skip(warm->replay, answer->batch);
    s_forget_question(source);
    source->oldest = evicted ? answer->batch : source->oldest;
    if (packet->frame_count == 0 || (evicted && !leads))
        return;
    source->first = answer->batch;
    source->until = answer->until;
    source->came = true;
    source->piece = *packet;
    memset(packet, 0, sizeof *packet);
    const uint64_t run = source->until - source->first;
    warm->run = run > warm->run ? run : warm->run;
    core_progress(self);
}

static tt_status_t s_look(core_t *self, warm_source_t *source)
{
    const tt_msg_FETCH_t question =
        TT_MSG(FETCH, .what = TT_FETCH_REPLAY, .era = self->warm.era, .batch = source->first, .until = source->until);
    tt_packet_t packet = {0};
    const tt_status_t status = ask_for(source->ask, s_peer(self, source->instance), &question, &packet);
    if (status != TT_OK)
        return status == TT_AGAIN ? TT_OK : status;
    const char *fault = packet.msg.FETCHED.gone ? NULL : s_fault(source, &packet);
    tt_status_t heard = TT_OK;
    if (fault)
        heard = s_damaged(self, source, fault);
    else if (packet.msg.FETCHED.gone)
        s_forget_question(source); /* of another era: a roster is on its way */
    else
        s_hear(self, source, &packet);
    tt_packet_clear(&packet);
    return heard;
}

/*  A piece whose turn it is. What is before the first that is lacking came twice, or is evicted. */
static tt_status_t s_add(core_t *self, warm_source_t *source, bool *added)
{
    const uint64_t next = replay_warm_next(self->warm.replay);
    if (!source->came || source->first > next)
        return TT_OK;
    zmq_msg_t *frame = &source->piece.frame[0];
    const replay_piece_t piece = {zmq_msg_data(frame), zmq_msg_size(frame), source->first, source->until};
    const bool follows = source->first == next;
    const tt_status_t status = follows ? replay_warm_add(self->warm.replay, &piece) : TT_OK;
    *added |= follows;
    s_forget_question(source);
    return status == TT_OK ? TT_OK : tt_err_wrap(TT_UNAVAILABLE, "learner/%u", s_peer(self, source->instance)->index);
}

static tt_status_t s_add_all(core_t *self)
{
    for (bool added = true; added;) {
        added = false;
        for (uint32_t i = 0; i < self->warm.sources; i++)
            TT_TRY(s_add(self, &self->warm.source[i], &added));
    }
    return TT_OK;
}

/* ---- what is asked for --------------------------------------------------------------------------------------------------- */

/*  The first batch that is neither here nor on its way. */
static uint64_t s_lacking(const warm_t *self)
{
    uint64_t lacking = replay_warm_next(self->replay);
    for (uint32_t i = 0; i < self->sources;) {
        const warm_source_t *source = &self->source[i++];
        if (!(source->asked || source->came) || source->first > lacking)
            continue;
        if (!source->until)
            return UINT64_MAX;
        if (lacking < source->until) {
            lacking = source->until;
            i = 0;
        }
    }
    return lacking;
}

static void s_ask(warm_source_t *source, uint64_t first, uint64_t until)
{
    source->asked = true;
    source->first = first;
    source->until = until;
}

/*  Of rank 0; where nothing is known to be lacking, whatever there is by now. */
static void s_ask_leader(core_t *self, warm_source_t *source, uint64_t lacking)
{
    warm_t *warm = &self->warm;
    const int64_t now = tt_now_ns(self->clock);
    const uint64_t next = replay_warm_next(warm->replay);
    if (lacking < warm->settled) {
        s_ask(source, lacking, warm->run ? lacking + warm->run : 0);
        return;
    }
    if (lacking != next || (warm->answered && now - warm->looked_ns < LOOK_NS))
        return;
    warm->looked_ns = now;
    s_ask(source, next, 0);
}

/*  What rank 0 brought from behind the oldest that is lacking is let go where nobody brings that: only rank 0 is asked for it, or can say
 *  that it is evicted. (Somebody else had it to bring, and died, or has it no longer.) */
static void s_free_leader(core_t *self)
{
    warm_t *warm = &self->warm;
    warm_source_t *leader = s_source(warm, self->view.learner[0].instance);
    if (leader && leader->came && s_lacking(warm) == replay_warm_next(warm->replay))
        s_forget_question(leader);
}

static void s_ask_all(core_t *self)
{
    warm_t *warm = &self->warm;
    s_free_leader(self);
    for (uint32_t i = 0; i < self->view.learners; i++) { /* rank 0 first: it gets the oldest */
        warm_source_t *source = s_source(warm, self->view.learner[i].instance);
        if (!source || source->asked || source->came)
            continue;
        const uint64_t lacking = s_lacking(warm);
        if (i == 0)
            s_ask_leader(self, source, lacking);
        else if (warm->run && lacking >= source->oldest && lacking > replay_warm_next(warm->replay) &&
                 lacking < warm->settled)
            s_ask(source, lacking, lacking + warm->run);
    }
}

/*  One that we cannot reach is not needed, unless it leads. */
static tt_status_t s_look_all(core_t *self)
{
    for (uint32_t i = 0; i < self->warm.sources; i++) {
        warm_source_t *source = &self->warm.source[i];
        if (!source->asked)
            continue;
        const tt_status_t status = s_look(self, source);
        if (status != TT_OK && source->asked && source->instance != self->view.learner[0].instance)
            log_debug("%s", tt_err_text());
        else
            TT_TRY(status);
    }
    return TT_OK;
}

/* ---- the whole ------------------------------------------------------------------------------------------------------------- */

static tt_status_t s_check_deadline(const core_t *self)
{
    const int64_t waited_s = (tt_now_ns(self->clock) - self->warm.moved_ns) / 1000000000;
    if (!self->warm.answered || self->view.member || waited_s <= 2 * (int64_t)self->model.train.net.stall_s)
        return TT_OK;
    return tt_err(
        TT_UNAVAILABLE, "no learner has sent a piece of the replay for %" PRId64 " s (twice net.stall_s)", waited_s);
}

tt_status_t warm_turn(core_t *self, bool *ready)
{
    warm_t *warm = &self->warm;
    *ready = !self->data.memory;
    if (*ready)
        return TT_OK;
    if (!warm->replay || warm->era != self->view.era)
        s_begin(self);
    *ready = warm->ready && self->view.member;
    if (*ready) /* the state goes on where it is now: rank 0 has been asked for that */
        return TT_OK;
    s_follow(self);
    TT_TRY(s_look_all(self));
    TT_TRY(s_add_all(self));
    s_ask_all(self);
    TT_TRY(s_look_all(self)); /* off they go */
    if (warm->answered && !warm->ready && replay_warm_next(warm->replay) >= warm->settled) {
        log_info("warm: the replay is here up to batch %" PRIu64, replay_warm_next(warm->replay));
        warm->ready = true;
        tt_link_warm(self->link, true);
    }
    *ready = warm->ready;
    return s_check_deadline(self);
}

const char *warm_words(const core_t *self, char *out, size_t size)
{
    const warm_t *warm = &self->warm;
    snprintf(out, size, "warming: has the replay up to batch %" PRIu64 " of %" PRIu64,
        warm->replay ? replay_warm_next(warm->replay) : 0, warm->settled);
    return out;
}

uint64_t warm_next(const core_t *self)
{
    return self->warm.replay ? replay_warm_next(self->warm.replay) : 0;
}

void warm_again(core_t *self)
{
    self->warm.ready = self->warm.answered = false;
}

tt_status_t warm_finish(core_t *self, const void *block, size_t size)
{
    if (!self->warm.replay)
        return tt_err(TT_UNAVAILABLE, "a state came, but no replay is under way");
    const tt_status_t status = memory_take(self->data.memory, self->warm.replay, block, size);
    return status == TT_OK ? TT_OK
                           : tt_err_wrap(TT_UNAVAILABLE, "the state does not go on where the pieces of the replay end");
}
