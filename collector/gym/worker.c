#include "collector/gym/worker.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "collector/gym/launch.h"
#include "collector/patience.h"
#include "common/base/clock.h"
#include "common/base/mem.h"
#define TT_LOG_COMPONENT "env"
#include "common/base/log.h"

enum {
    MESSAGE_MAX = 32 << 20, /* bounds of the largest spaces, as text */
    END_MS = 5000,          /* for envs to close                     */
    LAST_WORDS_MS = 1000,   /* for a traceback                       */
    LOOK_MS = 1000          /* how often a busy one is looked after  */
};

/*  What it owes us goes by its clock; what the kernel needs to carry a byte or to end a process, by the real one. */
static int64_t s_now_ms(const gym_worker_t *self)
{
    return tt_now_ms(tt_clock_or_real(self->clock));
}

static int64_t s_real_ms(void)
{
    return tt_now_ms(tt_clock_real());
}

static bool s_is_busy(const gym_worker_t *self)
{
    return self->told || gym_turn_plays(&self->turn);
}

static void s_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* ---- start ------------------------------------------------------------------------------------------------------- */

static tt_status_t s_open(gym_worker_t *self, const char *python, const char *package, int memory)
{
    int pair[2] = {-1, -1}, out[2] = {-1, -1};
    tt_status_t status = TT_OK;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0 || pipe2(out, O_CLOEXEC) != 0)
        status = tt_err_errno(TT_OS, "a socket and a pipe for a worker");
    char *argv[] = {(char *)(uintptr_t)python, (char *)(uintptr_t)package, NULL};
    const gym_launch_t how = {
        .program = python, .argv = argv, .mark = self->mark, .out = out[1], .socket = pair[1], .memory = memory};
    if (status == TT_OK)
        status = gym_launch(&self->pid, &how);
    s_close(&pair[1]);
    s_close(&out[1]);
    self->socket = pair[0];
    self->log = out[0];
    return status;
}

tt_status_t gym_worker_start(gym_worker_t *self, const char *python, const char *package, int memory)
{
    self->pid = 0;
    self->pidfd = self->socket = self->log = -1;
    tt_buf_init(&self->in, MESSAGE_MAX);
    gym_strays_mark(self->mark);
    TT_TRY(s_open(self, python, package, memory));
    fcntl(self->log, F_SETFL, O_NONBLOCK);
    self->pidfd = (int)syscall(SYS_pidfd_open, self->pid, 0);
    return self->pidfd < 0 ? tt_err_errno(TT_OS, "pidfd_open") : TT_OK;
}

/* ---- what it prints ------------------------------------------------------------------------------------------------ */

/*  For a message; when Python crashes it says where it stood, the innermost line first, and then more that is no help. */
static void s_remember(gym_worker_t *self)
{
    const char *line = self->line + strspn(self->line, " ");
    if (self->traceback < 2)
        snprintf(self->last, sizeof self->last, "%.255s", line);
    if (self->traceback == 1)
        self->traceback = 2;
    else if (!self->traceback && strstr(line, "(most recent call first)"))
        self->traceback = 1;
}

static void s_say(gym_worker_t *self)
{
    self->line[self->used] = '\0';
    self->used = 0;
    for (char *c = self->line; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = ' ';
    if (!self->line[strspn(self->line, " ")])
        return;
    s_remember(self);
    if (self->number < 0)
        log_debug("%s: %s", self->id, self->line);
    else
        log_info("%s, worker %d: %s", self->id, self->number, self->line);
}

static void s_take_text(gym_worker_t *self, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\n' || self->used + 1 == sizeof self->line)
            s_say(self);
        if (text[i] != '\n')
            self->line[self->used++] = text[i];
    }
}

/*  What there is now; a pipe that ended is closed. At most so much, for one that never stops. */
static void s_listen(gym_worker_t *self)
{
    char text[4096];
    for (int rounds = 0; self->log >= 0 && rounds < 64; rounds++) {
        const ssize_t size = read(self->log, text, sizeof text);
        if (size > 0)
            s_take_text(self, text, (size_t)size);
        else if (size == 0 || (errno != EAGAIN && errno != EINTR))
            s_close(&self->log);
        else if (errno == EAGAIN)
            return;
    }
}

/* ---- how it ended ---------------------------------------------------------------------------------------------------- */

/*  "step of env 5": where it says that it is. */
static void s_where(const gym_worker_t *self, char *out, size_t size)
{
    static const char *const doing[] = {"making", "reset of", "step of", "close of", "saving", "loading"};
    if (!self->progress) {
        snprintf(out, size, "making it");
        return;
    }
    const int32_t slot = self->progress->slot, what = self->progress->doing;
    const bool known = what >= 0 && what < (int)TT_COUNT(doing) && slot >= 0;
    snprintf(
        out, size, "%s env %u", known ? doing[what] : "playing", self->lo + (known ? (uint32_t)slot : self->first));
}

static bool s_is_from_outside(int number)
{
    return number == SIGKILL || number == SIGTERM || number == SIGHUP || number == SIGINT;
}

static tt_status_t s_say_ended(const gym_worker_t *self, int status)
{
    char where[96];
    s_where(self, where, sizeof where);
    const char *said = *self->last ? "; it said: " : "";
    if (WIFSIGNALED(status) && s_is_from_outside(WTERMSIG(status)))
        return tt_err(TT_UNAVAILABLE,
            "its worker (process %d) was killed by signal %d in %s: somebody did that, or the "
            "system for want of memory%s%s",
            (int)self->pid, WTERMSIG(status), where, *self->last ? "; the last that it said: " : "", self->last);
    if (WIFSIGNALED(status))
        return tt_err(TT_INTERNAL,
            "%s crashed with signal %d (%s): the fault is in the environment's own code or in a "
            "library that it uses%s%s",
            where, WTERMSIG(status), strsignal(WTERMSIG(status)), said, self->last);
    return tt_err(TT_INTERNAL,
        "%s ended the process with code %d: an environment must not call exit() or os._exit()%s%s", where,
        WEXITSTATUS(status), said, self->last);
}

/*  Everything of its group, itself included; it is a zombie at least until it is waited for, so the number is its own. */
static int s_kill(gym_worker_t *self)
{
    int status = 0;
    if (!self->pid)
        return 0;
    kill(-self->pid, SIGKILL);
    kill(self->pid, SIGKILL); /* it may have left its group */
    while (waitpid(self->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

static void s_wait_for_end(gym_worker_t *self, int64_t until_ms)
{
    for (int64_t left; (left = until_ms - s_real_ms()) > 0;) {
        struct pollfd fds[2] = {{self->pidfd, POLLIN, 0}, {self->log, POLLIN, 0}};
        if (poll(fds, 2, (int)left) < 0 && errno != EINTR)
            return;
        s_listen(self);
        if (fds[0].revents)
            return;
    }
}

/*  It is gone, or as good as that. */
static tt_status_t s_died(gym_worker_t *self)
{
    s_wait_for_end(self, s_real_ms() + LAST_WORDS_MS);
    const int status = s_kill(self);
    s_listen(self);
    const tt_status_t said = s_say_ended(self, status);
    self->pid = 0;
    return said;
}

/*  SIGABRT makes Python say where it stands (faulthandler). */
static tt_status_t s_is_late(gym_worker_t *self, int seconds, const char *setting)
{
    char where[96];
    s_where(self, where, sizeof where);
    kill(self->pid, SIGABRT);
    s_wait_for_end(self, s_real_ms() + LAST_WORDS_MS);
    s_kill(self);
    s_listen(self);
    self->pid = 0;
    return tt_err(TT_INTERNAL, "%s did not come back within %d s (%s), and was ended%s%s", where, seconds, setting,
        *self->last ? "; it said: " : "", self->last);
}

/* ---- messages -------------------------------------------------------------------------------------------------------- */

/*  true: it is elsewhere than it was when it was last looked at. */
static bool s_has_moved(gym_worker_t *self)
{
    int32_t at[TT_COUNT(self->seen)] = {0};
    if (self->progress) {
        at[0] = self->progress->slot;
        at[1] = self->progress->doing;
        at[2] = self->progress->again;
    }
    const bool moved = memcmp(at, self->seen, sizeof at) != 0;
    memcpy(self->seen, at, sizeof at);
    return moved;
}

static void s_begin_wait(gym_worker_t *self)
{
    self->since_ms = s_now_ms(self);
    s_has_moved(self);
}

/*  To one that is gone nothing is sent: what it said before it ended may still lie in the socket, and whoever waits for its answer reads that,
 *  or that it ended. All else is said there, too. */
static void s_unsent(gym_worker_t *self, int why)
{
    if (why != EPIPE && why != ECONNRESET && !self->unsent)
        self->unsent = why;
}

static void s_send(gym_worker_t *self, const void *from, size_t size)
{
    const char *data = from;
    while (size) {
        const ssize_t sent = send(self->socket, data, size, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR) {
            s_unsent(self, errno);
            return;
        }
        data += sent < 0 ? 0 : sent;
        size -= sent < 0 ? 0 : (size_t)sent;
    }
}

/*  Four bytes, with which a descriptor travels; -1 = none. */
static void s_send_size(gym_worker_t *self, uint32_t size, int descriptor)
{
    union {
        char room[CMSG_SPACE(sizeof(int))];
        struct cmsghdr head;
    } beside = {0};
    struct iovec data = {&size, sizeof size};
    const struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = beside.room, .msg_controllen = sizeof beside.room};
    if (descriptor < 0) {
        s_send(self, &size, sizeof size);
        return;
    }
    beside.head =
        (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof descriptor), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(&beside.head), &descriptor, sizeof descriptor);
    ssize_t sent;
    while ((sent = sendmsg(self->socket, &message, MSG_NOSIGNAL)) < 0 && errno == EINTR)
        continue;
    if (sent < 0)
        s_unsent(self, errno);
    else
        s_send(self, (const char *)&size + sent, sizeof size - (size_t)sent);
}

/*  order: the byte before it, NULL = none, while its envs are not there yet. */
static void s_tell(gym_worker_t *self, const char *order, const json_t *message, int descriptor)
{
    char *text = json_dumps(message, JSON_COMPACT);
    TT_CHECK(text);
    const uint32_t size = (uint32_t)strlen(text);
    s_begin_wait(self);
    self->told = true; /* several may be told before the one answer to them */
    if (order)
        s_send(self, order, 1);
    s_send_size(self, size, descriptor);
    s_send(self, text, size);
    free(text);
}

void gym_worker_tell(gym_worker_t *self, const json_t *message)
{
    s_tell(self, NULL, message, -1);
}

void gym_worker_move(gym_worker_t *self, const json_t *message, int memory)
{
    s_tell(self, "m", message, memory);
}

void gym_worker_go(gym_worker_t *self, uint32_t half)
{
    s_begin_wait(self);
    if (gym_turn_ask(&self->turn, half))
        s_send(self, "w", 1);
}

/*  The status that its word names; what it may not say is its own fault. */
static tt_status_t s_status_of(const char *name)
{
    static const tt_status_t known[] = {TT_NOT_FOUND, TT_INVALID};
    for (size_t i = 0; name && i < TT_COUNT(known); i++)
        if (strcmp(name, tt_status_name(known[i])) == 0)
            return known[i];
    return TT_INTERNAL;
}

static tt_status_t s_failed(const json_t *message)
{
    const char *error = json_string_value(json_object_get(message, "error"));
    const char *status = json_string_value(json_object_get(message, "status"));
    return tt_err(s_status_of(status), "%s", error ? error : "its worker failed, and says not why");
}

/*  A whole message from `at` on, or TT_AGAIN. */
static tt_status_t s_message(const gym_worker_t *self, size_t at, json_t **out)
{
    uint32_t size;
    if (self->in.size < at + sizeof size)
        return TT_AGAIN;
    memcpy(&size, self->in.data + at, sizeof size);
    if (size > MESSAGE_MAX - 16)
        return tt_err(TT_INTERNAL, "its worker announces a message of %u bytes", size);
    if (self->in.size < at + sizeof size + size)
        return TT_AGAIN;
    *out = json_loadb(self->in.data + at + sizeof size, size, 0, NULL);
    return json_is_object(*out) ? TT_OK : tt_err(TT_INTERNAL, "its worker said what is no message");
}

/*  The message of a fault becomes the fault. */
static tt_status_t s_answer(gym_worker_t *self, size_t at, json_t **out)
{
    json_t *message = NULL;
    tt_status_t status = s_message(self, at, &message);
    if (status == TT_OK && json_object_get(message, "error"))
        status = s_failed(message);
    if (status == TT_OK && out)
        *out = json_incref(message);
    json_decref(message);
    return status;
}

/*  TT_AGAIN: it has not all come. */
static tt_status_t s_read_answer(gym_worker_t *self, json_t **out)
{
    if (self->in.size == 0)
        return TT_AGAIN;
    if (self->in.data[0] == 'w') { /* somebody's round may be over */
        tt_buf_clear(&self->in);
        return TT_AGAIN;
    }
    if (self->in.data[0] == 'd')
        return TT_OK;
    if (self->in.data[0] == 'm')
        return s_answer(self, 1, out);
    return tt_err(TT_INTERNAL, "its worker said what is no answer");
}

/*  One answer; the next one stays in the socket, where poll sees it. */
static tt_status_t s_receive(gym_worker_t *self, json_t **out)
{
    char data[16384];
    const size_t most = self->in.size ? sizeof data : 1;
    const ssize_t size = recv(self->socket, data, most, MSG_DONTWAIT);
    if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR))
        return s_died(self);
    if (size < 0)
        return TT_AGAIN;
    if (tt_buf_add(&self->in, data, (size_t)size) != TT_OK)
        return tt_err(TT_INTERNAL, "its worker said more than %d bytes", MESSAGE_MAX);
    TT_TRY(s_read_answer(self, out));
    if (!self->told)
        return tt_err(TT_INTERNAL, "its worker answers what nobody has asked");
    self->told = false;
    tt_buf_clear(&self->in);
    return TT_OK;
}

/* ---- waiting --------------------------------------------------------------------------------------------------------- */

/*  Each call of the env has its own time: whenever it has moved on, it begins anew. */
static tt_status_t s_check_deadline(gym_worker_t *self, int64_t now_ms)
{
    if (s_has_moved(self)) {
        self->since_ms = now_ms;
        self->moves++;
    }
    const bool steps = self->seen[1] == GYM_STEPPING;
    const int limit_s = steps ? self->step_s : self->start_s;
    if (now_ms - self->since_ms < (int64_t)limit_s * 1000)
        return TT_OK;
    return s_is_late(self, limit_s, steps ? "TT_ENV_STEP_S" : "TT_ENV_START_S");
}

enum { POLLED = 3, LIST_MAX = 1024 };

static void s_fill(const gym_worker_t *list, uint32_t count, struct pollfd *fds)
{
    for (uint32_t i = 0; i < count; i++, fds += POLLED) {
        const bool busy = s_is_busy(&list[i]);
        fds[0] = (struct pollfd){busy ? list[i].socket : -1, POLLIN, 0};
        fds[1] = (struct pollfd){busy ? list[i].pidfd : -1, POLLIN, 0};
        fds[2] = (struct pollfd){list[i].log, POLLIN, 0};
    }
}

/*  Of everybody, for milliseconds at most: what is heard is remembered until it is looked at. */
static tt_status_t s_hear(gym_worker_t *list, uint32_t count, int ms)
{
    struct pollfd fds[POLLED * LIST_MAX];
    TT_CHECK(count <= LIST_MAX);
    s_fill(list, count, fds);
    if (poll(fds, POLLED * count, ms) < 0)
        return errno == EINTR ? TT_OK : tt_err_errno(TT_OS, "poll");
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < POLLED; k++)
            list[i].heard[k] = fds[POLLED * i + k].revents != 0;
    list->heard_ms = s_real_ms();
    return TT_OK;
}

/*  TT_AGAIN: it has not answered. What it said before it died is read first. */
static tt_status_t s_look_at(gym_worker_t *self, json_t **out)
{
    const bool socket = self->heard[0], end = self->heard[1], log = self->heard[2];
    if (self->unsent)
        return tt_err(
            TT_UNAVAILABLE, "worker %d could not be told what to do: %s", self->number, strerror(self->unsent));
    memset(self->heard, 0, sizeof self->heard);
    if (log)
        s_listen(self);
    if (socket)
        return s_receive(self, out);
    return end ? s_died(self) : TT_AGAIN;
}

/*  TT_AGAIN: nobody that was heard of has answered. */
static tt_status_t s_look(gym_worker_t *list, uint32_t count, uint32_t *which, json_t **out)
{
    for (uint32_t i = 0; i < count; i++) {
        const tt_status_t status = s_look_at(&list[i], out);
        if (status == TT_AGAIN)
            continue;
        *which = i;
        return status;
    }
    return TT_AGAIN;
}

bool gym_worker_ready(const gym_worker_t *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (list[i].heard[0] || list[i].heard[1] || gym_turn_is_over(&list[i].turn))
            return true;
    return false;
}

/*  A round that is over. */
static bool s_take(gym_worker_t *list, uint32_t count, uint32_t *which)
{
    uint32_t i = *which < count ? *which : 0;
    for (uint32_t left = count; left; left--, i = i + 1 == count ? 0 : i + 1)
        if (gym_turn_take(&list[i].turn)) {
            *which = i;
            return true;
        }
    return false;
}

/*  All that play do so in short steps; true: give them the core, and look again. What else they say is listened to now and then. */
static bool s_stays_awake(const gym_worker_t *list, uint32_t count, int64_t now_ms)
{
    for (uint32_t i = 0; i < count; i++)
        if (gym_turn_plays(&list[i].turn) && !gym_turn_is_brisk(&list[i].turn))
            return false;
    return now_ms - list->heard_ms < LOOK_MS;
}

static tt_status_t s_sleep(gym_worker_t *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        gym_turn_sleep(&list[i].turn);
    const tt_status_t status = s_hear(list, count, gym_worker_ready(list, count) ? 0 : LOOK_MS);
    for (uint32_t i = 0; i < count; i++)
        gym_turn_wake(&list[i].turn);
    return status;
}

/*  Whoever waits at a terminal for an environment that takes long to begin hears why, once. */
static void s_tell_patience(const gym_worker_t *self, int64_t now_ms)
{
    char where[96];
    const bool steps = self->progress && self->progress->doing == GYM_STEPPING;
    if (steps || now_ms - self->since_ms < PATIENCE_MS || !patience_first())
        return;
    s_where(self, where, sizeof where);
    if (self->number < 0)
        log_info("%s: waiting for the environment to be made and to make its first steps", self->id);
    else
        log_info("%s: waiting for the environment: %s", self->id, where);
}

/*  Nobody was heard of for so long. */
static tt_status_t s_check_deadlines(gym_worker_t *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (s_is_busy(&list[i])) {
            const int64_t now_ms = s_now_ms(&list[i]);
            TT_TRY(s_check_deadline(&list[i], now_ms));
            s_tell_patience(&list[i], now_ms);
        }
    return TT_OK;
}

/*  Until something may have come. */
static tt_status_t s_rest(gym_worker_t *list, uint32_t count, int64_t until_ns)
{
    const int64_t now_ns = tt_now_ns(tt_clock_real());
    if (now_ns < until_ns && s_stays_awake(list, count, now_ns / 1000000)) {
        sched_yield();
        return TT_OK;
    }
    TT_TRY(s_sleep(list, count));
    return gym_worker_ready(list, count) ? TT_OK : s_check_deadlines(list, count);
}

tt_status_t gym_worker_wait_a_moment(gym_worker_t *list, uint32_t count, uint32_t *which)
{
    gym_turn_look(list->turn.bell);
    if (s_take(list, count, which))
        return TT_OK;
    const tt_status_t status = s_look(list, count, which, NULL);
    if (status != TT_AGAIN)
        return status;
    TT_TRY(s_rest(list, count, 0));
    return TT_AGAIN;
}

tt_status_t gym_worker_wait(gym_worker_t *list, uint32_t count, bool message, uint32_t *which, json_t **out)
{
    gym_bell_t *bell = message ? NULL : list->turn.bell;
    const int64_t until_ns = bell ? tt_now_ns(tt_clock_real()) + GYM_SPIN_US * INT64_C(1000) : 0;
    for (;;) {
        if (bell)
            gym_turn_look(bell);
        if (!message && s_take(list, count, which))
            return TT_OK;
        const tt_status_t status = s_look(list, count, which, out);
        if (status != TT_AGAIN)
            return status;
        TT_TRY(s_rest(list, count, until_ns));
    }
}

/* ---- between two ranges ------------------------------------------------------------------------------------------------ */

/*  What it does not manage now is nobody's any more: another one takes its place. */
static void s_dismiss(gym_worker_t *self, const char *why)
{
    log_info("%s, worker %d ends with its range: %s", self->id, self->number, why);
    gym_worker_end(self, 1);
    self->told = false;
    self->turn = (gym_turn_t){0};
}

static bool s_any_is_busy(const gym_worker_t *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (s_is_busy(&list[i]))
            return true;
    return false;
}

/*  Answers until then; true: there may be more. */
static bool s_gather(gym_worker_t *list, uint32_t count, int64_t until_ms)
{
    const int64_t left = until_ms - s_real_ms();
    uint32_t which = 0;
    if (left <= 0 || !s_any_is_busy(list, count))
        return false;
    const tt_status_t status = s_look(list, count, &which, NULL);
    if (status == TT_AGAIN)
        return s_hear(list, count, (int)left) == TT_OK;
    if (status != TT_OK)
        s_dismiss(&list[which], tt_err_text());
    return true;
}

void gym_worker_shed(gym_worker_t *list, uint32_t count, const uint32_t *keep)
{
    TT_CHECK(count <= LIST_MAX);
    for (uint32_t i = 0; i < count; i++) {
        json_t *message = json_pack("{s:i}", "keep", (int)keep[i]);
        list[i].turn = (gym_turn_t){0}; /* its rows go */
        s_tell(&list[i], "s", message, -1);
        json_decref(message);
    }
    for (const int64_t until_ms = s_real_ms() + END_MS; s_gather(list, count, until_ms);)
        continue;
    for (uint32_t i = 0; i < count; i++)
        if (s_is_busy(&list[i]))
            s_dismiss(&list[i], "it does not come back from closing its environments");
}

/* ---- end --------------------------------------------------------------------------------------------------------------- */

static void s_end_strays(gym_worker_t *list, uint32_t count)
{
    char(*mark)[GYM_MARK] = tt_array0(count, sizeof *mark);
    size_t marks = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (list[i].mark[0])
            memcpy(mark[marks++], list[i].mark, GYM_MARK);
        list[i].mark[0] = '\0';
    }
    gym_strays_end((const char(*)[GYM_MARK])mark, marks);
    free(mark);
}

void gym_worker_end(gym_worker_t *list, uint32_t count)
{
    const int64_t until_ms = s_real_ms() + END_MS;
    for (uint32_t i = 0; i < count; i++)
        s_close(&list[i].socket); /* an idle one closes its envs then */
    for (uint32_t i = 0; i < count; i++) {
        if (list[i].pid && !s_is_busy(&list[i]) && list[i].pidfd >= 0)
            s_wait_for_end(&list[i], until_ms);
        s_kill(&list[i]);
        list[i].pid = 0;
        s_listen(&list[i]);
        s_close(&list[i].log);
        s_close(&list[i].pidfd);
        tt_buf_free(&list[i].in);
        memset(list[i].heard, 0, sizeof list[i].heard);
        list[i].unsent = 0;
    }
    s_end_strays(list, count);
}
