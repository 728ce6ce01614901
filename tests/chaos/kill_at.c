/*  kill_at - preloaded into every process of a run: a signal to one of them at the very message that a rule names.
 *
 *  What passes through libzmq says where a process stands: the GRAD of step 7 is about to be sent, the SUM of step 7 has come
 *  and nobody has looked at it. So the moment is exact, on a machine of any speed, and the product knows nothing of it.
 *
 *  $TT_KILL_AT names a folder with a file `rules`, one rule a line, 11 words each, `-` for none:
 *
 *      name who event message peer field=value nth when hold action whom
 *
 *  who: role/index, or a star for the index; whom: role/index, or self. event: `send` (before libzmq has the header), `sent` (it has the whole message), `full` (it refused
 *  it), `recv` (the header was read, the process does not know yet), and of memory that learners share `put` (a node is about to be copied there)
 *  and `yield` (what others put there was looked for, and is missing). message: its number in messages.def, 0 for any. peer: how the
 *  identity at the other end of a ROUTER begins. field=value: a number in the header, absent is 0. nth: the nth such message
 *  in one process. when: another rule that must have acted before this one counts. hold: the process stands still here until
 *  that rule has acted. action: kill, stop or cont (the three signals, and it is waited for until they have worked), mark (nothing).
 *
 *  $TT_KILL_AT_HWM, `role=messages`, lowers the high-water marks of a role's sockets, and the kernel's buffers behind them to a page.
 *
 *  A rule acts once in a run, whichever process is first; then there is a file with its name in the folder. Two rules of one
 *  name are one that has two ways to act. Each process leaves its id in `pid.<role>.<index>`. Threads: any. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

enum { RULES = 32, WORD = 48, PATHS = 512, HOLD_S = 30 };

typedef struct {
    char name[WORD], who[WORD], event[WORD], peer[WORD], field[WORD], when[WORD], hold[WORD], action[WORD], whom[WORD];
    unsigned long long message, value, nth, seen;
} rule_t;

/*  The message that this thread is sending or reading. */
typedef struct {
    const uint8_t *header;
    size_t size;
    char peer[WORD];
    uint8_t kept[1024]; /* of one that is sent: the header or its beginning, until the last frame was taken */
} passing_t;

static char s_folder[PATHS / 2], s_self[WORD];
static rule_t s_rule[RULES];
static size_t s_rules;
static int s_low; /* high-water mark of every socket, 0: as the process wants it */
static pthread_mutex_t s_lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local passing_t s_out, s_in;

/* ---- who we are, and the rules ----------------------------------------------------------------------------------- */

static void s_path(char path[PATHS], const char *a, const char *b)
{
    snprintf(path, PATHS, "%s/%s%s", s_folder, a, b);
}

static void s_give_up(const char *what, const char *name)
{
    fprintf(stderr, "kill_at: %s %s\n", what, name);
    abort();
}

/*  `tutti learner --run DIR --index 1` is learner/1; a coordinator has no number. */
static void s_find_self(void)
{
    char line[4096] = {0};
    const char *word[64] = {0}, *index = "0";
    size_t words = 0;
    const int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    const ssize_t size = fd < 0 ? 0 : read(fd, line, sizeof line - 1);
    if (fd >= 0)
        close(fd);
    for (const char *at = line; at < line + size && words < 64; at += strlen(at) + 1)
        word[words++] = at;
    for (size_t i = 2; i + 1 < words; i++)
        if (strcmp(word[i], "--index") == 0)
            index = word[i + 1];
    if (words > 1)
        snprintf(s_self, sizeof s_self, "%.20s/%.10s", word[1], index);
}

static void s_tell_pid(void)
{
    char name[WORD], path[PATHS], other[PATHS];
    snprintf(name, sizeof name, "%s", s_self);
    char *slash = strchr(name, '/');
    if (!slash)
        return;
    *slash = '.';
    s_path(other, "new.", name);
    s_path(path, "pid.", name);
    FILE *file = fopen(other, "we");
    if (!file)
        return;
    fprintf(file, "%d\n", (int)getpid());
    fclose(file);
    rename(other, path);
}

/*  `learner/1`, or `learner/` and a star. */
static bool s_is_us(const char *who)
{
    const size_t length = strlen(who);
    const bool any = length && who[length - 1] == '*';
    return s_self[0] && strncmp(who, s_self, any ? length - 1 : sizeof s_self) == 0;
}

static void s_read_rules(void)
{
    char path[PATHS], line[1024], key[2 * WORD];
    s_path(path, "rules", "");
    FILE *file = fopen(path, "re");
    while (file && s_rules < RULES && fgets(line, sizeof line, file)) {
        rule_t *rule = &s_rule[s_rules];
        if (sscanf(line, "%47s %47s %47s %llu %47s %95s %llu %47s %47s %47s %47s", rule->name, rule->who, rule->event,
                &rule->message, rule->peer, key, &rule->nth, rule->when, rule->hold, rule->action, rule->whom) != 11)
            s_give_up("not a rule:", line);
        if (sscanf(key, "%47[^=]=%llu", rule->field, &rule->value) != 2)
            rule->field[0] = '\0';
        s_rules += s_is_us(rule->who);
    }
    if (file)
        fclose(file);
}

/*  `learner=5`: of learners. */
static int s_find_mark(const char *text)
{
    const char *equals = strchr(text, '=');
    const size_t length = equals ? (size_t)(equals - text) : 0;
    return length && strncmp(text, s_self, length) == 0 && s_self[length] == '/' ? atoi(equals + 1) : 0;
}

__attribute__((constructor)) static void s_begin(void)
{
    const char *folder = getenv("TT_KILL_AT"), *low = getenv("TT_KILL_AT_HWM");
    if (!folder || strlen(folder) >= sizeof s_folder)
        return;
    memcpy(s_folder, folder, strlen(folder) + 1);
    s_find_self();
    s_low = low ? s_find_mark(low) : 0;
    s_tell_pid();
    s_read_rules();
}

/* ---- headers: msgpack maps, {"m": number of the message, ...} ---------------------------------------------------- */

static bool s_is_header(const uint8_t *data, size_t size)
{
    const size_t skip = size > 0 && data[0] == 0xde ? 3 : 1;
    const bool map = size > skip + 2 && (data[0] == 0xde || (data[0] & 0xf0) == 0x80);
    return map && data[skip] == 0xa1 && data[skip + 1] == 'm';
}

/*  A big-endian number of so many bytes. */
static unsigned long long s_bytes(const uint8_t *at, size_t count)
{
    unsigned long long value = 0;
    for (size_t i = 0; i < count; i++)
        value = value << 8 | at[i];
    return value;
}

/*  Behind a value that is no list, and the number that it is (a flag is 0 or 1, other things are 0). false: it is a list, or cut off. */
static bool s_value(const uint8_t **at, const uint8_t *end, unsigned long long *out)
{
    if (*at >= end)
        return false;
    const uint8_t tag = *(*at)++;
    const bool text = (tag & 0xe0) == 0xa0 || (tag >= 0xd9 && tag <= 0xdb);
    const bool number = tag >= 0xcc && tag <= 0xcf, other = tag >= 0xd0 && tag <= 0xd3;
    const size_t bytes = number               ? (size_t)1 << (tag - 0xcc)
                         : other              ? (size_t)1 << (tag - 0xd0)
                         : tag == 0xca        ? 4
                         : tag == 0xcb        ? 8
                         : text && tag > 0xc0 ? (size_t)1 << (tag - 0xd9)
                                              : 0;
    if (tag > 0x7f && tag < 0xa0)
        return false;
    if (tag >= 0xdc && tag < 0xe0)
        return false;
    if (bytes > (size_t)(end - *at))
        return false;
    *out = number ? s_bytes(*at, bytes) : tag <= 0x7f ? tag : tag == 0xc3;
    const size_t length = !text ? 0 : tag < 0xc0 ? tag & 0x1f : (size_t)s_bytes(*at, bytes);
    *at += bytes;
    if (length > (size_t)(end - *at))
        return false;
    *at += length;
    return true;
}

/*  A field's number: all that is asked for stands before the first list. */
static unsigned long long s_field(const uint8_t *data, size_t size, const char *name)
{
    const uint8_t *at = data + (data[0] == 0xde ? 3 : 1), *end = data + size;
    while (at < end && (*at & 0xe0) == 0xa0) {
        const size_t length = *at++ & 0x1f;
        const uint8_t *key = at;
        unsigned long long value;
        at += length;
        if (at > end || !s_value(&at, end, &value))
            return 0;
        if (strlen(name) == length && memcmp(name, key, length) == 0)
            return value;
    }
    return 0;
}

/* ---- acting ------------------------------------------------------------------------------------------------------ */

static bool s_exists(const char *name)
{
    char path[PATHS];
    s_path(path, name, "");
    return access(path, F_OK) == 0;
}

static void s_pause(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

static void s_hold(const char *name)
{
    struct timespec begun, now;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    while (!s_exists(name)) {
        s_pause();
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec - begun.tv_sec > HOLD_S)
            s_give_up("waited in vain for", name);
    }
}

/*  Its state as /proc has it; X: there is no such process. */
static char s_state(int pid)
{
    char path[64], text[512] = {0};
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t size = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    const char *after = size > 0 ? strrchr(text, ')') : NULL;
    return after && after[1] && after[2] ? after[2] : 'X';
}

static int s_pid(const char *whom)
{
    char name[WORD], path[PATHS];
    int pid = 0;
    snprintf(name, sizeof name, "%s", whom);
    char *slash = strchr(name, '/');
    if (slash)
        *slash = '.';
    s_path(path, "pid.", name);
    FILE *file = fopen(path, "re");
    if (!file || fscanf(file, "%d", &pid) != 1)
        s_give_up("nobody is called", whom);
    fclose(file);
    return pid;
}

static void s_mark(const char *name)
{
    char from[PATHS], to[PATHS];
    s_path(from, "taken.", name);
    s_path(to, name, "");
    rename(from, to);
}

static void s_signal(const rule_t *rule)
{
    const bool kills = strcmp(rule->action, "kill") == 0, stops = strcmp(rule->action, "stop") == 0;
    const int pid = strcmp(rule->whom, "self") == 0 ? getpid() : s_pid(rule->whom);
    if (pid == getpid())
        s_mark(rule->name); /* there is no later */
    kill(pid, kills ? SIGKILL : stops ? SIGSTOP : SIGCONT);
    while (pid != getpid() && !strchr(kills ? "ZX" : stops ? "TZX" : "RSDZX", s_state(pid)))
        s_pause();
}

/*  The first to come takes the rule. */
static bool s_take(const char *name)
{
    char path[PATHS];
    if (s_exists(name))
        return false;
    s_path(path, "taken.", name);
    const int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static void s_act(const rule_t *rule)
{
    if (!s_take(rule->name))
        return;
    if (strcmp(rule->hold, "-") != 0)
        s_hold(rule->hold);
    if (strcmp(rule->action, "mark") != 0)
        s_signal(rule);
    s_mark(rule->name);
}

static bool s_matches(rule_t *rule, const char *event, const passing_t *passing)
{
    if (strcmp(rule->event, event) != 0)
        return false;
    if (rule->message && (!passing->size || s_field(passing->header, passing->size, "m") != rule->message))
        return false;
    if (rule->field[0] && (!passing->size || s_field(passing->header, passing->size, rule->field) != rule->value))
        return false;
    if (strcmp(rule->peer, "-") != 0 && strncmp(passing->peer, rule->peer, strlen(rule->peer)) != 0)
        return false;
    if (strcmp(rule->when, "-") != 0 && !s_exists(rule->when))
        return false;
    return ++rule->seen == rule->nth;
}

static void s_event(const char *event, const passing_t *passing)
{
    const int before = errno;
    for (size_t i = 0; i < s_rules; i++) {
        pthread_mutex_lock(&s_lock);
        const bool now = s_matches(&s_rule[i], event, passing);
        pthread_mutex_unlock(&s_lock);
        if (now)
            s_act(&s_rule[i]);
    }
    errno = before;
}

/* ---- libzmq ------------------------------------------------------------------------------------------------------ */

static void s_keep_peer(passing_t *passing, const void *data, size_t size)
{
    passing->size = 0;
    snprintf(passing->peer, sizeof passing->peer, "%.*s", (int)(size < WORD ? size : WORD - 1), (const char *)data);
}

/*  A part was given to libzmq, or refused. */
static void s_gave(bool taken, bool more)
{
    if (!taken)
        s_event("full", &s_out);
    else if (!more)
        s_event("sent", &s_out);
    if (!taken || !more)
        s_keep_peer(&s_out, "", 0);
}

int zmq_send(void *socket, const void *data, size_t size, int flags)
{
    static int (*next)(void *, const void *, size_t, int);
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "zmq_send");
    if (s_rules && s_is_header(data, size)) {
        s_out.size = size < sizeof s_out.kept ? size : sizeof s_out.kept;
        memcpy(s_out.kept, data, s_out.size);
        s_out.header = s_out.kept;
        s_event("send", &s_out);
    } else if (s_rules) {
        s_keep_peer(&s_out, data, size);
    }
    const int sent = next(socket, data, size, flags);
    if (s_rules)
        s_gave(sent >= 0, flags & ZMQ_SNDMORE);
    return sent;
}

int zmq_msg_send(zmq_msg_t *part, void *socket, int flags)
{
    static int (*next)(zmq_msg_t *, void *, int);
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "zmq_msg_send");
    const int sent = next(part, socket, flags);
    if (s_rules)
        s_gave(sent >= 0, flags & ZMQ_SNDMORE);
    return sent;
}

int zmq_msg_recv(zmq_msg_t *part, void *socket, int flags)
{
    static int (*next)(zmq_msg_t *, void *, int);
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "zmq_msg_recv");
    const int size = next(part, socket, flags);
    if (!s_rules || size < 0)
        return size;
    if (s_is_header(zmq_msg_data(part), (size_t)size)) {
        s_in.header = zmq_msg_data(part);
        s_in.size = (size_t)size;
        s_event("recv", &s_in);
    } else {
        s_keep_peer(&s_in, zmq_msg_data(part), (size_t)size);
    }
    return size;
}

int zmq_setsockopt(void *socket, int option, const void *value, size_t size)
{
    static int (*next)(void *, int, const void *, size_t);
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "zmq_setsockopt");
    const bool mark = option == ZMQ_SNDHWM || option == ZMQ_RCVHWM;
    return s_low && mark ? next(socket, option, &s_low, sizeof s_low) : next(socket, option, value, size);
}

/* ---- memory that learners share ----------------------------------------------------------------------------------------- */

static char *s_area, *s_area_end; /* our own, which we may write to; found by one thread, before it is used */

static bool s_is_area(int prot, int fd)
{
    char path[64], name[64] = {0};
    if (!(prot & PROT_WRITE) || fd < 0)
        return false;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return readlink(path, name, sizeof name - 1) > 0 && strncmp(name, "/memfd:tutti-sums", 17) == 0;
}

void *mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset)
{
    static void *(*next)(void *, size_t, int, int, int, off_t);
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "mmap");
    char *mapped = next(at, size, prot, flags, fd, offset);
    if (s_rules && mapped != MAP_FAILED && s_is_area(prot, fd)) {
        s_area_end = mapped + size;
        s_area = mapped + 4096; /* behind what an area begins with */
    }
    return mapped;
}

/*  Not by its name: the compiler knows that nothing overlaps here, and would call us. */
static void *(*volatile s_move)(void *, const void *, size_t) = memmove;

void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
    const passing_t nothing = {.size = 0};
    if (s_area && (char *)to >= s_area && (char *)to < s_area_end)
        s_event("put", &nothing);
    return s_move(to, from, size);
}

int sched_yield(void)
{
    static int (*next)(void);
    const passing_t nothing = {.size = 0};
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "sched_yield");
    if (s_rules)
        s_event("yield", &nothing);
    return next();
}

/* ---- sockets --------------------------------------------------------------------------------------------------------- */

ssize_t send(int fd, const void *data, size_t size, int flags)
{
    static ssize_t (*next)(int, const void *, size_t, int);
    const int page = 4096;
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "send");
    if (s_low)
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &page, sizeof page);
    return next(fd, data, size, flags);
}
