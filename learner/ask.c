#define TT_LOG_COMPONENT "ask"
#include "learner/ask.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/log.h"
#include "common/base/mem.h"

enum { ANSWER_MAX = TT_FRAME_MAX + TT_FRAME_SLACK };

struct ask {
    ask_cfg_t cfg;
    tt_sock_t *sock;
    uint64_t whom;      /* instance of the process the socket leads to */
    tt_msg_FETCH_t msg; /* the open question; id 0 = none */
    uint64_t ids;
    int64_t sent_ms;
    tt_packet_t answer;
    bool answered;
};

ask_t *ask_new(const ask_cfg_t *cfg)
{
    ask_t *self = tt_new0(sizeof *self);
    self->cfg = *cfg;
    return self;
}

static void s_close(ask_t *self)
{
    if (self->sock) {
        tt_loop_forget_sock(self->cfg.loop, self->sock);
        tt_sock_destroy(&self->sock);
    }
    if (self->answered)
        tt_packet_clear(&self->answer);
    self->answered = false;
    self->msg.id = 0;
}

void ask_destroy(ask_t **self_p)
{
    if (!*self_p)
        return;
    s_close(*self_p);
    free(*self_p);
    *self_p = NULL;
}

static tt_status_t s_on_packet(void *ctx, tt_sock_t *sock, tt_packet_t *packet)
{
    (void)sock;
    ask_t *self = ctx;
    if (packet->msg.type != TT_MSG_FETCHED || self->msg.id == 0 || packet->msg.FETCHED.id != self->msg.id ||
        self->answered)
        return TT_OK;       /* an answer to a question of before */
    self->answer = *packet; /* moved as a whole: large frames hold no pointers into themselves */
    memset(packet, 0, sizeof *packet);
    self->answered = true;
    return TT_OK;
}

static tt_status_t s_open(ask_t *self, const view_peer_t *whom)
{
    if (self->sock && self->whom == whom->instance)
        return TT_OK;
    s_close(self);
    if (!whom->data[0])
        return tt_err(TT_UNAVAILABLE, "learner/%u has no endpoint that we can reach", whom->index);
    char identity[64];
    snprintf(identity, sizeof identity, "learner/%u/%llx%s", self->cfg.index, (unsigned long long)self->cfg.instance,
        self->cfg.name ? self->cfg.name : "");
    const tt_sock_opts_t opts = {
        .name = "learner", .identity = identity, .max_bytes = ANSWER_MAX, .keys = self->cfg.keys};
    TT_TRY(tt_sock_new(&self->sock, TT_DEALER, &opts));
    const tt_status_t status = tt_sock_connect(self->sock, whom->data);
    if (status != TT_OK) {
        tt_sock_destroy(&self->sock);
        return status;
    }
    tt_loop_sock(self->cfg.loop, self->sock, s_on_packet, self);
    self->whom = whom->instance;
    return TT_OK;
}

static bool s_same_question(const ask_t *self, const tt_msg_FETCH_t *question)
{
    const tt_msg_FETCH_t *msg = &self->msg;
    return msg->id && msg->what == question->what && msg->era == question->era &&
           msg->generation == question->generation && msg->batch == question->batch &&
           msg->env_lo == question->env_lo && msg->env_count == question->env_count && msg->until == question->until;
}

static tt_status_t s_send(ask_t *self)
{
    self->sent_ms = tt_now_ms(self->cfg.clock);
    const tt_status_t status = tt_sock_send(self->sock, NULL, &self->msg, NULL, 0);
    if (status != TT_OK && status != TT_AGAIN)
        return status;
    return TT_AGAIN;
}

tt_status_t ask_for(ask_t *self, const view_peer_t *whom, const tt_msg_FETCH_t *question, tt_packet_t *out)
{
    TT_TRY(s_open(self, whom));
    if (!s_same_question(self, question)) {
        if (self->answered)
            tt_packet_clear(&self->answer);
        self->answered = false;
        self->msg = *question;
        self->msg.id = ++self->ids;
        return s_send(self);
    }
    if (!self->answered)
        return tt_now_ms(self->cfg.clock) - self->sent_ms < self->cfg.repeat_ms ? TT_AGAIN : s_send(self);
    *out = self->answer;
    memset(&self->answer, 0, sizeof self->answer);
    self->answered = false;
    self->msg.id = 0;
    return TT_OK;
}
